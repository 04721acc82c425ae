"""Collectors by name: each registers itself beside its definition, each fails alone."""

import importlib
import logging
import pkgutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector as PrometheusCollector

from seedance_obs.config import NodeSettings
from seedance_obs.errors import UsageError
from seedance_obs.exporter import collectors
from seedance_obs.exporter.view import NodeView

LOG = logging.getLogger(__name__)


class Collector(Protocol):
    """Builds metric families afresh from a view; no sample means "nothing of that here"."""

    def collect(self, view: NodeView, now: float, /) -> Iterable[Metric]:
        """The families of one scrape, `now` being its monotonic time."""
        ...


@dataclass(frozen=True, slots=True)
class Registration:
    """A collector's entry: its name, what it tells, whether it runs unless asked otherwise."""

    name: str
    about: str
    default: bool
    build: Callable[[], Collector]


_REGISTERED: dict[str, Registration] = {}
Builder = TypeVar("Builder", bound=Callable[[], Collector])


def register(name: str, about: str, *, default: bool = True) -> Callable[[Builder], Builder]:
    """Enter a collector class under a name; used as a decorator on the class."""

    def enter(build: Builder) -> Builder:
        _REGISTERED[name] = Registration(name=name, about=about, default=default, build=build)
        return build

    return enter


def registrations() -> dict[str, Registration]:
    """Every collector of the package, in the order of their names."""
    for module in pkgutil.iter_modules(collectors.__path__):
        importlib.import_module(f"{collectors.__name__}.{module.name}")
    return dict(sorted(_REGISTERED.items()))


def choose(settings: NodeSettings) -> dict[str, Registration]:
    """The collectors that the settings ask for.

    Raises:
        UsageError: a name in the settings is no collector.
    """
    known = registrations()
    for name in (*settings.collectors_disabled, *settings.collectors_enabled):
        if name not in known:
            raise UsageError(f"there is no collector {name!r}; there are {', '.join(known)}")
    return {
        name: entry
        for name, entry in known.items()
        if (entry.default or name in settings.collectors_enabled)
        and name not in settings.collectors_disabled
    }


class CollectorSet(PrometheusCollector):
    """All chosen collectors as one, with each one's duration, success and whether it had data.

    One scrape shows one view to all of them, so that what belongs together adds up.
    """

    def __init__(
        self,
        view: Callable[[], NodeView],
        settings: NodeSettings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._collectors = {name: entry.build() for name, entry in choose(settings).items()}
        self._monotonic = monotonic
        self._view = view
        self._timer = timer
        self._failing: set[str] = set()

    def collect(self) -> Iterator[Metric]:
        """Yield every collector's families, then the three about the collectors themselves."""
        duration = GaugeMetricFamily(
            "seedance_collector_duration_seconds",
            "Time a collector took in this scrape.",
            labels=["collector"],
        )
        success = GaugeMetricFamily(
            "seedance_collector_success",
            "1 if a collector finished in this scrape, 0 if it broke and its series are missing.",
            labels=["collector"],
        )
        has_data = GaugeMetricFamily(
            "seedance_collector_has_data",
            "1 if a collector had anything to show, 0 if this machine has nothing of its kind now.",
            labels=["collector"],
        )
        view, now = self._view(), self._monotonic()
        for name, collector in self._collectors.items():
            started = self._timer()
            families = self._run(name, collector, view, now)
            duration.add_metric([name], self._timer() - started)
            yield from families or ()
            success.add_metric([name], float(families is not None))
            has_data.add_metric([name], float(any(family.samples for family in families or ())))
        yield from (duration, success, has_data)

    def _run(
        self, name: str, collector: Collector, view: NodeView, now: float
    ) -> list[Metric] | None:
        try:
            families = [family for family in collector.collect(view, now) if family.samples]
        except Exception:
            if name not in self._failing:
                LOG.exception("event=collector_failing collector=%s", name)
            self._failing.add(name)
            return None
        if name in self._failing:
            self._failing.discard(name)
            LOG.warning("event=collector_recovered collector=%s", name)
        return families
