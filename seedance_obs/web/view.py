"""What the page shows, as the query part of its address and back."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from urllib.parse import parse_qs, urlencode
from zoneinfo import ZoneInfo, available_timezones

from seedance_obs.errors import UsageError
from seedance_obs.web.usage import Window

RANGES = {"15m": 900, "1h": 3600, "6h": 21_600, "24h": 86_400, "7d": 604_800}
MEASURES = {"energy": "Energy", "gpus": "GPUs"}
FORMS = {"chart": "Chart", "table": "Table"}
LONGEST_SECONDS = 366 * 86_400


@dataclass(frozen=True, slots=True)
class View:
    """The state of the page; `between` (seconds since the epoch) replaces `span` when given."""

    span: str = "15m"
    between: tuple[int, int] | None = None
    zone: str = "UTC"
    measure: str = "energy"
    form: str = "chart"

    def window(self, now: float) -> Window:
        """The window to show at a moment: the custom one, else the last `span`."""
        if self.between:
            return Window(*self.between)
        return Window(int(now) - RANGES[self.span], int(now))

    def search(self) -> str:
        """The query part of the address, without what is at its default."""
        fields: dict[str, str] = {}
        if self.between:
            fields |= {"from": _utc(self.between[0]), "to": _utc(self.between[1])}
        elif self.span != View().span:
            fields["range"] = self.span
        for key, name in (("tz", "zone"), ("show", "measure"), ("as", "form")):
            if getattr(self, name) != getattr(View(), name):
                fields[key] = getattr(self, name)
        return "?" + urlencode(fields, safe=":/") if fields else "?"


def parse_view(search: str | None) -> View:
    """The state that an address names.

    Raises:
        UsageError: a value in it is none of those the page knows.
    """
    given = {key: values[-1] for key, values in parse_qs((search or "").lstrip("?")).items()}
    view = View(
        span=_one_of(RANGES, given.get("range", View().span), what="range"),
        zone=given.get("tz", View().zone),
        measure=_one_of(MEASURES, given.get("show", View().measure), what="show"),
        form=_one_of(FORMS, given.get("as", View().form), what="as"),
    )
    zone_of(view.zone)
    if "from" not in given and "to" not in given:
        return view
    if "from" not in given or "to" not in given:
        raise UsageError("A window needs both its start (from=) and its end (to=).")
    return between(view, given["from"], given["to"])


def between(view: View, start: str, end: str) -> View:
    """The view over a window given as ISO 8601 times, in the view's zone unless they name one.

    Raises:
        UsageError: a time cannot be read or never was, or the window is empty or over a year.
    """
    zone = zone_of(view.zone)
    first, last = (_moment(text, zone=zone, name=view.zone) for text in (start, end))
    if first >= last:
        raise UsageError("The window ends before it starts: swap its start and end.")
    if last - first > LONGEST_SECONDS:
        raise UsageError("The window is longer than a year: choose a shorter one.")
    return replace(view, between=(first, last))


def zone_names() -> list[str]:
    """Every time zone this machine knows, UTC first."""
    return ["UTC", *sorted(available_timezones() - {"UTC", "localtime"})]


def zone_of(name: str) -> tzinfo:
    """A time zone by its name.

    Raises:
        UsageError: there is none of that name.
    """
    if name == "UTC":
        return UTC
    if name not in available_timezones():
        raise UsageError(f"There is no time zone {name!r}: use a name such as Europe/Berlin.")
    return ZoneInfo(name)


def _one_of(known: dict[str, int] | dict[str, str], value: str, *, what: str) -> str:
    if value not in known:
        raise UsageError(f"{what}={value} is not known: use one of {', '.join(known)}.")
    return value


def _moment(text: str, *, zone: tzinfo, name: str) -> int:
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(f"{text!r} is not a time: write it as 2025-11-03 14:30.") from error
    if given.tzinfo is not None:
        return int(given.timestamp())
    moment = given.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) != given:
        raise UsageError(f"{text} never was in {name}: the clocks went forward over it.")
    return int(moment.timestamp())


def _utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
