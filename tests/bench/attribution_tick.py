"""What a tick of the attribution costs on a full node: 56 MIG instances, on which 400 pods run.

The driver, the page and the kubelet are those of a simulated machine and are read beforehand, so
that nothing of the simulator is in the times; /proc, cgroups and the checkpoint are real files.

Run by hand from the root of the repository: `python -m tests.bench.attribution_tick [TICKS]`.
A time is CPU, the mean over the ticks of a round, and of all rounds the least, which other load
disturbs least. The budget is 25 ms for all parts together.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.books.attribution import Attribution
from seedance_obs.exporter.books.opening import STATE_FILE, open_attribution
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
PARTS = ("observe", "advance", "view")
TENANTS = ("chat", "search", "vision", "risk")
WARM_UP_TICKS = 100  # the intensities of many accounts are fitted first after 60
ROUNDS = 5
CLAIMS_SECONDS = 5  # how often the kubelet is asked
RECORDED = 20  # seconds, which then come again and again
FIRST_SECOND = 100
EPOCH_UNIX = 1_700_000_000.0
FLOOR = "NVIDIA H100 80GB HBM3=68"


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


def measure(
    attribution: Attribution,
    recorded: list[Second],
    topology: Topology,
    pods: SourceSnapshot,
    ticks: int,
) -> dict[str, float]:
    """CPU milliseconds a tick, by part."""
    seconds = play(recorded)
    rounds: list[Counter[str]] = []
    for count in (WARM_UP_TICKS, *[ticks] * ROUNDS):
        spent: Counter[str] = Counter()
        for _, (second, read) in zip(range(count), seconds, strict=False):
            told = replace(pods, taken_at=float(second // CLAIMS_SECONDS * CLAIMS_SECONDS))
            marks = [process_time()]
            attribution.observe(read.driver)
            marks.append(process_time())
            attribution.advance(read.gpus, topology, float(second), pods=told)
            marks.append(process_time())
            attribution.view()
            marks.append(process_time())
            for part, since, until in zip(PARTS, marks, marks[1:], strict=False):
                spent[part] += (until - since) * 1000 / count
        rounds.append(spent)
    return min(rounds[1:], key=Counter.total)


def main(ticks: int) -> None:
    """Print what each part costs."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        machine, root = full_node(), folder / "root"
        write_sysfs(machine, root)
        write_proc(machine, root, FIRST_SECOND, epoch_unix=EPOCH_UNIX)
        recorded, topology = record(machine, root)
        socket = folder / "kubelet.sock"
        with SimulatedKubelet(machine, socket, now=lambda: FIRST_SECOND):
            pods = PodResourcesSource(socket, monotonic=lambda: FIRST_SECOND).read()
        settings = NodeSettings(node_root=str(root), attribution_floor_watts=(FLOOR,))
        bare, kept = (
            measure(_opened(each), recorded, topology, pods, ticks)
            for each in (settings, replace(settings, state_directory=str(folder)))
        )
        size = (folder / STATE_FILE).stat().st_size
    costs = {**bare, f"checkpoint of {size / 1e3:.0f} kB": kept["advance"] - bare["advance"]}
    for part, milliseconds in costs.items():
        sys.stdout.write(f"{milliseconds:6.2f} ms  {part}\n")
    sys.stdout.write(f"{sum(kept.values()):6.2f} ms  all with a checkpoint\n")


def _opened(settings: NodeSettings) -> Attribution:
    return open_attribution(
        settings, monotonic=lambda: 0.0, wall=lambda: EPOCH_UNIX, environment={}
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
