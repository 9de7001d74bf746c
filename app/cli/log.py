"""`tenure log tail | verify | head`: the log itself, and whether anybody altered it."""

import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any

import orjson
import typer
from eventsourcing.persistence import Notification

from adapters.audit import BrokenChain, HeadNotFound, WrittenHead, check_log
from adapters.entry import Head
from adapters.mapper import ChainedNotification
from adapters.postgres.check_snapshots import SnapshotPlace, checked_snapshots
from adapters.postgres.recorder import PostgresRecorder
from adapters.postgres.store import PostgresStore
from app.cli.database import (
    AsJson,
    DatabaseUrl,
    DataDir,
    Failed,
    database,
    progress_bar,
    say,
    say_json,
)
from app.cli.times import rfc3339

PAGE_ENTRIES = 1_000
TAIL_ENTRIES = 10
_HEAD = re.compile(r"(\d{1,18}):([0-9a-f]{64})")

log = typer.Typer(help="The log: follow it, check it, state its head.", no_args_is_help=True)


@log.command()
def head(
    database_url: DatabaseUrl = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Print the log's position and chain value, to be written down outside of it."""
    with database(database_url, data_dir) as dsn:
        store = PostgresStore(dsn)
        try:
            found = store.head()
        finally:
            store.close()
    _show_head(found, as_json)


@log.command()
def verify(
    written: Annotated[
        str | None,
        typer.Option("--head", metavar="POSITION:CHAIN", help="A head written down earlier."),
    ] = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the chain and fold every snapshot anew; name what is not as it should be."""
    with database(database_url, data_dir) as dsn:
        expected = None if written is None else _written(written)
        store = PostgresStore(dsn)
        try:
            with progress_bar() as bar:
                task = bar.add_task("verifying", total=store.head().position, rate="")
                found = check_log(store, expected, lambda at: bar.update(task, completed=at))
        except (BrokenChain, HeadNotFound) as error:
            if as_json:
                position = error.position if isinstance(error, BrokenChain) else None
                say_json({"intact": False, "first_bad_position": position})
            raise Failed(str(error)) from error
        finally:
            store.close()
        checked, different = _check_snapshots(dsn)
        if as_json:
            told = {**checked, "different": [it._asdict() for it in different]}
            _show_head(found, as_json, intact=not different, snapshots=told)
        elif not different:
            _show_head(found, as_json)
            say(f"{checked['equal']} snapshots equal the log")
            if checked["of_other_code"]:
                say(f"{checked['of_other_code']} snapshots of other code were skipped: never used")
        if different:
            named = "; ".join(f"{it.stream} at version {it.version}" for it in different)
            raise Failed(f"snapshots differ from the log, which is intact: {named}")


def _check_snapshots(dsn: str) -> tuple[dict[str, int], list[SnapshotPlace]]:
    """How many are fine or cannot be judged, and those that are not what the log folds to."""
    counts, different = {"equal": 0, "of_other_code": 0}, []
    with progress_bar() as bar:
        task = bar.add_task("folding snapshots", total=None, rate="")
        for place, verdict in checked_snapshots(dsn):
            if verdict == "different":
                different.append(place)
            else:
                counts[verdict] += 1
            bar.advance(task)
    return counts, different


@log.command()
def tail(
    after: Annotated[
        int | None, typer.Option(min=0, help="Begin after this position; default: the last few.")
    ] = None,
    follow: Annotated[bool, typer.Option(help="Go on until interrupted.")] = True,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print entries as they are written."""
    with (
        database(database_url, data_dir) as dsn,
        _ended_by_sigterm(),
        closing(PostgresRecorder(dsn)) as recorder,
    ):
        newest = recorder.max_notification_id() or 0
        start = max(0, newest - TAIL_ENTRIES) if after is None else after
        if follow:
            with recorder.subscribe(gt=start) as subscription:
                for found in subscription:
                    _show_entry(found, as_json)
            return
        while page := recorder.select_notifications(
            start, PAGE_ENTRIES, newest, inclusive_of_start=False
        ):
            for found in page:
                _show_entry(found, as_json)
            start = page[-1].id


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Leave the block quietly on SIGTERM as on an interrupt."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _written(text: str) -> WrittenHead:
    match = _HEAD.fullmatch(text.strip().lower())
    if match is None:
        raise Failed("--head takes POSITION:CHAIN, the chain as 64 hexadecimal digits")
    return WrittenHead(int(match[1]), bytes.fromhex(match[2]))


def _show_head(found: Head, as_json: bool, **more: Any) -> None:
    if as_json:
        told = {"position": found.position, "chain": found.chain.hex()}
        say_json({**told, "recorded_at": rfc3339(found.recorded_at), **more})
        return
    say(f"{found.position}:{found.chain.hex()}")
    if found.position:
        say(f"recorded at {rfc3339(found.recorded_at)}")


def _show_entry(found: Notification, as_json: bool) -> None:
    assert isinstance(found, ChainedNotification)
    stored, recorded_at = orjson.loads(found.state), rfc3339(found.recorded_at)
    if as_json:
        place = {
            "position": found.id,
            "stream": found.originator_id,
            "version": found.originator_version,
            "topic": found.topic,
        }
        say_json({**place, **stored, "chain": found.chain.hex(), "recorded_at": recorded_at})
        return
    event = orjson.dumps(stored["event"]).decode()
    where = f"{found.originator_id} v{found.originator_version}"
    say(f"{found.id:>8}  {recorded_at}  {found.topic:<24} {where}  {event}")
