"""Times as people write them."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(at_us: int) -> str:
    """Epoch microseconds as RFC 3339, in UTC."""
    return (_EPOCH + timedelta(microseconds=at_us)).isoformat().replace("+00:00", "Z")


def clock_time(at_ms: int, now_ms: int) -> str:
    """Epoch milliseconds as a time of today, or with its date when it is not, in UTC."""
    at, now = (_EPOCH + timedelta(milliseconds=it) for it in (at_ms, now_ms))
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def epoch_us(text: str) -> int:
    """Epoch microseconds of an RFC 3339 time with its offset, or of epoch milliseconds.

    Raises `ValueError`.
    """
    if text.isdecimal():
        return int(text) * 1_000
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text} has no offset from UTC")
    return (at - _EPOCH) // timedelta(microseconds=1)
