"""What one tick of the attribution costs on a full node: eight boards in 56 MIG instances, on which
four hundred pods run a process each.

The driver, the page and the kubelet are those of a simulated machine and are read beforehand, so
that nothing of the simulator is in the times; /proc, cgroups and the checkpoint are real files.

Run by hand from the root of the repository: `python -m tests.bench.attribution_tick [TICKS]`.
Times are CPU, the mean over the ticks. The budget is 25 ms for all parts together.
"""

import cProfile
import pstats
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.attribution import Attribution
from seedance_obs.exporter.opening import open_attribution
from seedance_obs.exporter.view import LocatedGpu
from seedance_obs.layout import HostLayout
from seedance_obs.merge import merge
from seedance_obs.sources.dcgm.page import read_page
from seedance_obs.sources.podresources.source import PodResourcesSource
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.sources.sim.hostfs import write_proc, write_sysfs
from seedance_obs.sources.sim.kubelet import SimulatedKubelet
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.loading import parse_machine
from seedance_obs.sources.sim.machine import Machine
from seedance_obs.sources.sim.page import render_page
from seedance_obs.topology.model import Topology
from tests.machine import LibrarySource

BOARDS, INSTANCES, PODS = 8, 7, 400
TENANTS = ("chat", "search", "vision", "risk")
WARM_UP_TICKS = 100  # the intensities of many accounts are fitted first after 60
RECORDED = 20  # seconds, which then come again and again
FIRST_SECOND = 100
EPOCH_UNIX = 1_700_000_000.0
MODEL = "NVIDIA H100 80GB HBM3"


@dataclass(frozen=True)
class Second:
    """What was read at one second."""

    driver: SourceSnapshot
    gpus: tuple[LocatedGpu, ...]


def full_node() -> Machine:
    """The description of the machine."""
    gpus = range(BOARDS)
    return parse_machine(
        {
            "name": "full",
            "driver_version": "580.105.08",
            "cuda_version": 13000,
            "uptime_s": 86400,
            "memory_gib": 2048,
            "numa_cpus": ["0-63", "64-127"],
            "rapl_packages": 2,
            "dcgm_interval_s": 1,
            "kubernetes": True,
            "tenants": {name: 2001 + number for number, name in enumerate(TENANTS)},
            "gpus": [
                {"model": "h100-sxm5-80gb", "pci": f"0000:{16 + gpu}:00.0", "numa": gpu // 4}
                | {"path": [f"pci0000:{gpu}0", f"0000:{gpu}0:01.0"]}
                for gpu in gpus
            ],
            "mig": [
                {"gpu": gpu, "profile": "1g.10gb", "gpu_instance": 7 + instance}
                for gpu in gpus
                for instance in range(INSTANCES)
            ],
            "workloads": [_pod(number) for number in range(PODS)],
        },
        file="full",
    )


def _pod(number: int) -> dict[str, object]:
    board, place = number % BOARDS, number // BOARDS % INSTANCES
    tenant = TENANTS[number % len(TENANTS)]
    return {
        "name": f"server-{number}",
        "tenant": tenant,
        "kind": "inference",
        "mig_instances": [f"{board}/{place}"],
        "start_s": 10.0,
        "phases": [[1.0 + number % 17 / 10, 1.0], [0.7 + number % 13 / 10, 0.0]],
        "memory_mib": 1000,
        "share": 0.125,
        "pod": {"namespace": tenant, "name": f"server-{number}-0", "container": "main"},
    }


def record(machine: Machine, root: Path) -> tuple[list[Second], Topology]:
    """What the sources of the machine say during some seconds."""
    now = float(FIRST_SECOND)
    driver = LibrarySource(SimNvml(machine, lambda: now), lambda: now)
    layout = HostLayout(root / "sys", machine.name)
    layout.refresh()
    orders = NodeSettings().source_orders()
    seconds = []
    for second in range(FIRST_SECOND - 1, FIRST_SECOND + RECORDED):
        now = float(second)
        read = driver.read()
        page = read_page(render_page(machine, now), taken_at=now)
        boards = merge([read, page], orders)
        topology = layout.lay_out(boards, [], read.pairs)
        gpus = (LocatedGpu(b, topology.by_name[b.pci_bus_id or b.uuid], ()) for b in boards)
        seconds.append(Second(read, tuple(gpus)))
    return seconds[1:], topology  # before the first the driver has no window to tell of


def at(recorded: Second, second: int, energy_mj: int) -> Second:
    """The same at another time and with other energy counters."""
    taken_at = float(second)
    gpus = []
    for gpu in recorded.gpus:
        counter = replace(gpu.merged.readings["energy_mj"], value=energy_mj, taken_at=taken_at)
        readings = {**gpu.merged.readings, "energy_mj": counter}
        merged = replace(gpu.merged, readings=readings, listed_at=taken_at, seen_at=taken_at)
        gpus.append(replace(gpu, merged=merged))
    return Second(replace(recorded.driver, taken_at=taken_at), tuple(gpus))


def play(recorded: list[Second]) -> Iterator[tuple[int, Second]]:
    """The seconds without end; each board draws some 300 W, by who is active then."""
    energy_mj = 10**9
    for second in range(FIRST_SECOND, sys.maxsize):
        energy_mj += 250_000 + second * 7919 % 100_000
        yield second, at(recorded[second % len(recorded)], second, energy_mj)


@dataclass
class Meter:
    """CPU seconds by part."""

    spent: Counter[str]
    begun: float = 0.0

    def begin(self) -> None:
        """Start a part."""
        self.begun = process_time()

    def end(self, part: str) -> None:
        """End it."""
        self.spent[part] += process_time() - self.begun


def run(
    attribution: Attribution,
    recorded: list[Second],
    topology: Topology,
    pods: SourceSnapshot,
    ticks: int,
) -> Counter[str]:
    """CPU milliseconds a tick, by part."""
    spent: Counter[str] = Counter()
    for number, (second, read) in zip(range(WARM_UP_TICKS + ticks), play(recorded), strict=False):
        if number == WARM_UP_TICKS:
            spent.clear()
        marks = [process_time()]
        attribution.observe(read.driver)
        marks.append(process_time())
        told = replace(pods, taken_at=second // 5 * 5.0)
        attribution.advance(read.gpus, topology, float(second), pods=told)
        marks.append(process_time())
        attribution.view()
        marks.append(process_time())
        for part, begin, end in zip(("observe", "advance", "view"), marks, marks[1:], strict=False):
            spent[part] += (end - begin) * 1000 / ticks
    return spent


def main(ticks: int, *, profiled: bool) -> None:
    """Print what each part costs."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        machine, root = full_node(), folder / "root"
        write_sysfs(machine, root)
        write_proc(machine, root, FIRST_SECOND, epoch_unix=EPOCH_UNIX)
        (root / "proc/sys/kernel/random").mkdir(parents=True)
        (root / "proc/sys/kernel/random/boot_id").write_text("a-boot\n")
        recorded, topology = record(machine, root)
        socket = folder / "kubelet.sock"
        with SimulatedKubelet(machine, socket, now=lambda: FIRST_SECOND):
            pods = PodResourcesSource(socket, monotonic=lambda: FIRST_SECOND).read()
        settings = NodeSettings(
            node_root=str(root), attribution_floor_watts=(f"{MODEL}=68",)
        )
        kept = replace(settings, state_directory=str(folder))
        costs = []
        for each in (settings, kept):
            attribution = open_attribution(
                each, monotonic=lambda: 0.0, wall=lambda: EPOCH_UNIX, environment={}
            )
            if profiled and each is kept:
                profile = cProfile.Profile()
                profile.enable()
            costs.append(run(attribution, recorded, topology, pods, ticks))
        if profiled:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(60)
            pstats.Stats(profile).sort_stats("cumtime").print_stats(60)
        view = attribution.view()
        print(len(view.workload_accounts), (folder / "node.json").stat().st_size, costs)


if __name__ == "__main__":
    main(int(sys.argv[1]), profiled=len(sys.argv) > 2)
