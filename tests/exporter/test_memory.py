"""What a board keeps while the source that knows it best is away."""

from seedance_obs.exporter.memory import BoardMemory
from seedance_obs.merge import MergedGpu, merge
from seedance_obs.quantities import QUANTITIES
from seedance_obs.sources.readings import Fabric, GpuReadings, MigReadings, NvLink, SourceSnapshot

ORDERS = {quantity.name: quantity.sources for quantity in QUANTITIES.values()}
LINKS = (NvLink(0, "switch", "0000:05:00.0"),)


def seen(source: str, taken_at: float, **fields) -> MergedGpu:
    (gpu,) = merge(
        [SourceSnapshot(source, taken_at, gpus=(GpuReadings("GPU-a", **fields),))], ORDERS
    )
    return gpu


def test_lasting_facts_stay_while_only_a_poorer_source_answers():
    memory = BoardMemory(patience_seconds=30.0)
    fabric = Fabric("ab" * 16, 7, 3, 0)
    facts = {"serial": "1", "vbios_version": "2"}
    memory.complete(
        seen(
            "nvml",
            0.0,
            index=3,
            pci_bus_id="0000:3b:00.0",
            model="H100",
            facts=facts,
            nvlinks=LINKS,
            fabric=fabric,
        )
    )
    gpu = memory.complete(seen("dcgm", 1.0, facts={"serial": "9"}))
    assert (gpu.index, gpu.pci_bus_id, gpu.model) == (3, "0000:3b:00.0", "H100")
    assert (gpu.nvlinks, gpu.fabric) == (LINKS, fabric)
    assert gpu.facts == {"serial": "1", "vbios_version": "2"}, "the better source's word stays"


def test_links_that_are_known_to_be_gone_are_gone():
    memory = BoardMemory(patience_seconds=30.0)
    memory.complete(seen("nvml", 0.0, nvlinks=LINKS))
    assert memory.complete(seen("nvml", 1.0, nvlinks=())).nvlinks == ()


def test_what_changes_is_not_remembered():
    memory = BoardMemory(patience_seconds=30.0)
    memory.complete(seen("nvml", 0.0, values={"power_watts": 5.0}, processes=()))
    gpu = memory.complete(seen("dcgm", 1.0))
    assert gpu.readings == {}
    assert gpu.processes is None


def energy(memory: BoardMemory, source: str, taken_at: float, value: float) -> float:
    values = {"energy_mj": value, "power_watts": value}
    complete = memory.complete(seen(source, taken_at, values=values))
    assert complete.value("power_watts") == value, "only counters are held"
    shown = complete.value("energy_mj")
    assert shown is not None
    return shown


def test_a_counter_does_not_step_back_when_a_source_that_lags_takes_over():
    memory = BoardMemory(patience_seconds=30.0)
    assert energy(memory, "nvml", 0.0, 5_000) == 5_000
    assert energy(memory, "dcgm", 5.0, 4_900) == 5_000
    assert energy(memory, "dcgm", 15.0, 5_100) == 5_100
    assert energy(memory, "nvml", 16.0, 5_200) == 5_200


def test_a_counter_that_restarted_is_shown_as_it_is():
    memory = BoardMemory(patience_seconds=30.0)
    energy(memory, "nvml", 0.0, 5_000)
    assert energy(memory, "nvml", 1.0, 40) == 40, "the same source went back: a restart"
    energy(memory, "nvml", 2.0, 6_000)
    assert energy(memory, "dcgm", 30.0, 50) == 6_000
    assert energy(memory, "dcgm", 50.0, 60) == 6_000
    assert energy(memory, "dcgm", 61.0, 70) == 70, "it moves, and no sampling interval explains it"


def test_a_page_that_is_frozen_behind_a_hung_driver_is_no_restart():
    memory = BoardMemory(patience_seconds=30.0)
    energy(memory, "nvml", 0.0, 5_000_000)
    for at in range(10, 1000, 10):
        assert energy(memory, "dcgm", float(at), 4_999_000) == 5_000_000
    assert energy(memory, "nvml", 1001.0, 5_100_000) == 5_100_000


def test_mig_instances_keep_their_names_while_only_their_numbers_are_known():
    memory = BoardMemory(patience_seconds=30.0)
    one = MigReadings(1, 0, "MIG-1", "3g.40gb", {"memory_used_bytes": 5.0})
    two = (MigReadings(2, 0, "MIG-2"), MigReadings(2, 1, "MIG-3"))
    memory.complete(seen("nvml", 0.0, mig=(one, *two)))
    active = {"engine_active_ratio": 0.5}
    gpu = memory.complete(seen("dcgm", 1.0, mig=(MigReadings(1, values=active), MigReadings(2))))
    assert gpu.mig == (MigReadings(1, 0, "MIG-1", "3g.40gb", active), MigReadings(2))
