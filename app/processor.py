"""One processor for one process.

Python runs one thread at a time. On several processors the HTTP and the writer's thread pull each
other's objects from cache to cache: on one, the same service answers 40 % more requests.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TASKS = Path("/proc/self/task")


@contextmanager
def own_processor(folder: Path) -> Iterator[int | None]:
    """Run all of this process's threads on a processor that no other holder of `folder` has.

    Yields its number, or None where that cannot be had: then nothing changes. Processes started
    before keep the processors they have.
    """
    if not hasattr(os, "sched_setaffinity") or len(allowed := os.sched_getaffinity(0)) < 2:
        yield None
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        taken = next((it for it in sorted(allowed) if _take(folder, it, stack)), None)
        if taken is None:
            yield None
            return
        _run_on({taken})
        try:
            yield taken
        finally:
            _run_on(allowed)


def _take(folder: Path, processor: int, stack: contextlib.ExitStack) -> bool:
    """Whether nobody else holds the processor; the kernel frees it when we die."""
    file = stack.enter_context((folder / f"processor-{processor}.lock").open("w"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _run_on(processors: set[int]) -> None:
    for task in TASKS.iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread may end meanwhile
            os.sched_setaffinity(int(task.name), processors)
