"""Moments as a reader in a time zone sees them, and where an axis puts its marks."""

from datetime import datetime, timedelta, tzinfo

from seedance_obs.web.usage import Window

_MARK_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
_MOST_MARKS = 6


def at(seconds: float, zone: tzinfo) -> datetime:
    """The local date and time of a moment."""
    return datetime.fromtimestamp(seconds, zone)


def day(moment: datetime) -> str:
    """A date without its year, such as Nov 3."""
    return f"{moment:%b} {moment.day}"


def minute(moment: datetime) -> str:
    """A date and time to the minute, such as Nov 3, 14:30."""
    return f"{day(moment)}, {moment:%H:%M}"


def span(window: Window, zone: tzinfo, *, now: float) -> str:
    """A window in words, without what goes without saying: a date twice, the present year."""
    start, end = at(window.start, zone), at(window.end, zone)
    tail = f"{end:%H:%M}" if start.date() == end.date() else minute(end)
    year = "" if start.year == at(now, zone).year else f"{start.year} "
    return f"{year}{minute(start)} – {tail}"  # noqa: RUF001 - an en dash joins a range


def marks(window: Window, zone: tzinfo) -> list[tuple[float, str]]:
    """At most six or so axis marks on round local times: (seconds since the epoch, text)."""
    for minutes in _MARK_MINUTES:
        if window.seconds / (60 * minutes) <= _MOST_MARKS:
            return _clock_marks(window, zone, minutes=minutes)
    return _day_marks(window, zone)


def _clock_marks(window: Window, zone: tzinfo, *, minutes: int) -> list[tuple[float, str]]:
    first = -(-window.start // 60) * 60
    moments = (at(seconds, zone) for seconds in range(first, window.end + 1, 60))
    return [
        (m.timestamp(), day(m) if m.hour == m.minute == 0 else f"{m:%H:%M}")
        for m in moments
        if (m.hour * 60 + m.minute) % minutes == 0
    ]


def _day_marks(window: Window, zone: tzinfo) -> list[tuple[float, str]]:
    stride = max(1, -(-window.seconds // (86_400 * (_MOST_MARKS + 1))))
    midnight = at(window.start, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    found = []
    while midnight.timestamp() <= window.end:
        if midnight.timestamp() >= window.start:
            found.append((midnight.timestamp(), day(midnight)))
        midnight += timedelta(days=stride)
    return found
