"""The committed OpenAPI document. After a change on purpose: `python -m tests.http.golden`."""

from pathlib import Path

import orjson

from tests.http.running import described

DOCUMENT = Path(__file__).parents[1] / "golden" / "openapi.json"


def rendered() -> bytes:
    """The document as it is committed."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(described(), option=options)


if __name__ == "__main__":
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_bytes(rendered())
