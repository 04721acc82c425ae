"""A board being put together from the rows of a dcgm-exporter page."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seedance_obs.identity import canonical_bus_id
from seedance_obs.sources.dcgm.fields import FACT_LABELS, Field
from seedance_obs.sources.readings import GpuReadings, MigReadings, Pod

SENTINEL_TEXTS = ("<<<", "SKIPPING DCGM VALUE", "ERROR - FAILED TO CONVERT")


def label(labels: Mapping[str, str], *names: str) -> str | None:
    """The first of these labels that says something."""
    for name in names:
        value = labels.get(name, "").strip()
        if value and not value.startswith(SENTINEL_TEXTS):
            return value
    return None


@dataclass(slots=True)
class Values:
    """Quantities held so far, each with the rank of the field it came from."""

    held: dict[str, tuple[int, float]] = field(default_factory=dict)

    def keep(self, known: Field, value: float) -> bool:
        """Hold the better of two readings; False where equally good ones contradict."""
        rank, before = self.held.get(known.quantity, (known.rank + 1, value))
        if known.rank < rank:
            self.held[known.quantity] = (known.rank, value)
        return known.rank != rank or before == value

    def plain(self) -> dict[str, float]:
        """The quantities by name."""
        return {quantity: value for quantity, (_, value) in self.held.items()}


@dataclass(slots=True)
class Instance:
    """One MIG instance of a board."""

    number: int
    profile: str | None = None
    values: Values = field(default_factory=Values)

    def readings(self) -> MigReadings:
        """The instance as every source delivers it."""
        return MigReadings(self.number, profile=self.profile, values=self.values.plain())


@dataclass(slots=True)
class Board:
    """One GPU. `repeated` holds its values as found on rows of its instances."""

    uuid: str
    index: int | None = None
    pci_bus_id: str | None = None
    model: str | None = None
    facts: dict[str, str] = field(default_factory=dict)
    own: Values = field(default_factory=Values)
    repeated: Values = field(default_factory=Values)
    instances: dict[int, Instance] = field(default_factory=dict)
    pods: dict[Pod, None] = field(default_factory=dict)

    def learn(self, labels: Mapping[str, str]) -> None:
        """Fill in what the labels of one more row say of the board."""
        index = labels.get("gpu", "")
        if self.index is None and index.isascii() and index.isdecimal() and len(index) < 5:
            self.index = int(index)
        self.pci_bus_id = self.pci_bus_id or canonical_bus_id(labels.get("pci_bus_id", ""))
        self.model = self.model or label(labels, "modelName", "model_name")
        for fact, names in FACT_LABELS.items():
            if fact not in self.facts and (value := label(labels, *names)):
                self.facts[fact] = value
        if pod := _pod(labels):
            self.pods[pod] = None

    def readings(self) -> GpuReadings:
        """The board as every source delivers it."""
        return GpuReadings(
            self.uuid,
            index=self.index,
            pci_bus_id=self.pci_bus_id,
            model=self.model,
            values={**self.repeated.plain(), **self.own.plain()},
            facts=self.facts,
            mig=tuple(self.instances[number].readings() for number in sorted(self.instances)),
            pods=tuple(self.pods),
        )


def _pod(labels: Mapping[str, str]) -> Pod | None:
    namespace = label(labels, "namespace", "pod_namespace")
    pod = label(labels, "pod", "pod_name")
    if namespace is None or pod is None:
        return None
    number = labels.get("GPU_I_ID", "")
    instance = int(number) if number.isascii() and number.isdecimal() else None
    return Pod(namespace, pod, label(labels, "container", "container_name") or "", instance)
