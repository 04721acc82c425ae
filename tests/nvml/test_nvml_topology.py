"""What the reader makes of links, places and pairs, whatever of it a driver refuses."""

from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.nvml.library import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    UNKNOWN,
    NvmlError,
)
from seedance_obs.sources.nvml.nvlinks import read_nvlinks
from seedance_obs.sources.nvml.place import read_place
from seedance_obs.sources.nvml.reader import STATIC_PASSES, NvmlReader
from seedance_obs.sources.readings import GpuPair, GpuPlace, NvLink
from seedance_obs.sources.sim.fleet import load_machine
from seedance_obs.sources.sim.library import SimNvml

MESH = Path(__file__).parent.parent / "nvml_abi/gh200-mesh.yaml"
FIELDS = "nvmlDeviceGetFieldValues"
STATE_CALL = "nvmlDeviceGetNvLinkState"
ANCESTOR = "nvmlDeviceGetTopologyCommonAncestor"
NEAREST = "nvmlDeviceGetTopologyNearestGpus"
P2P = "nvmlDeviceGetP2PStatus"
SPEED_COMMON, COUNT, REMOTE, SPEED, STATE = 90, 91, 146, 164, 165


class Driver:
    """A simulated machine whose answers a test changes: by function, by call, by field."""

    def __init__(self, machine=MESH, t=0.0):
        self.inner = SimNvml(load_machine(machine), lambda: t)
        self.changes = {}  # function, or (function, device, *args), to an answer or an error code
        self.fields = {}  # (field, scope) to a value or an error code
        self.calls = []

    def call(self, function, device=None, *args):
        self.calls.append((function, device, *args))
        for key in ((function, device, *args), (function, device), function, (device, "*")):
            if key in self.changes:
                change = self.changes[key]
                if isinstance(change, Refusal):
                    raise NvmlError(change.code)
                return change
        answer = self.inner.call(function, device, *args)
        if function == FIELDS:
            return [self._field(entry) for entry in answer]
        return answer

    def _field(self, entry):
        change = self.fields.get((entry["fieldId"], entry["scopeId"]), entry["value"])
        if isinstance(change, Refusal):
            return entry | {"nvmlReturn": change.code, "value": None}
        return entry | {"nvmlReturn": 0 if change is not None else 3, "value": change}

    def asked(self, *functions):
        return Counter(function for function, *_ in self.calls if function in functions)


class Refusal:
    def __init__(self, code):
        self.code = code


@pytest.fixture
def driver():
    made = Driver()
    made.call("nvmlInit")
    return made


def started(driver, clock):
    reader = NvmlReader(driver, monotonic=clock)
    reader.start()
    return reader


def test_every_port_is_read_whether_it_is_up_or_not(driver):
    ports = read_nvlinks(driver, "gpu0")
    assert [port.link for port in ports] == list(range(18))
    assert ports[3] == NvLink(3, "unknown", active=False)
    assert ports[17] == NvLink(
        17, "gpu", "0039:01:00.0", mb_per_second=26_562.0, version="4.0", remote_link=5, p2p=True
    )
    assert [port.link for port in ports if not port.active] == [3]
    assert driver.asked(FIELDS) == {FIELDS: 1 + 18}, "none behind the last port"


@pytest.mark.parametrize(("state", "active"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_port_that_sleeps_is_up_and_one_without_traffic_is_not(driver, state, active):
    driver.fields[STATE, 8] = state
    assert read_nvlinks(driver, "gpu0")[8].active is active


def test_a_driver_without_the_fields_of_single_links_is_asked_the_older_call(driver):
    new = read_nvlinks(driver, "gpu0")
    driver.changes[FIELDS] = Refusal(FUNCTION_NOT_FOUND)
    old = read_nvlinks(driver, "gpu0")
    assert old == tuple(replace(port, mb_per_second=None, remote_link=None) for port in new)


def test_the_speed_of_the_board_stands_in_for_that_of_a_link(driver):
    driver.fields[SPEED, 7] = Refusal(NOT_SUPPORTED)
    driver.fields[SPEED, 8] = 0
    driver.fields[SPEED_COMMON, 0] = 25_000
    ports = read_nvlinks(driver, "gpu0")
    assert [port.mb_per_second for port in ports[6:9]] == [26_562.0, 25_000.0, 25_000.0]


def test_a_speed_and_a_far_port_that_are_sentinels_are_unknown(driver):
    driver.fields[SPEED, 7] = driver.fields[SPEED_COMMON, 0] = 0
    driver.fields[REMOTE, 7] = 2**32 - 1
    port = read_nvlinks(driver, "gpu0")[7]
    assert (port.active, port.mb_per_second, port.remote_link) == (True, None, None)


@pytest.mark.parametrize(
    ("version", "text"), [(0, None), (1, "1.0"), (3, "2.2"), (8, "6.0"), (9, None)]
)
def test_the_number_of_a_version_is_no_version(driver, version, text):
    driver.changes["nvmlDeviceGetNvLinkVersion"] = version
    ports = read_nvlinks(driver, "gpu0")
    assert {port.version for port in ports if port.active} == {text}
    assert ports[3].version is None


def test_a_number_without_a_port_is_left_out_and_the_rest_is_there(driver):
    driver.fields[STATE, 5] = Refusal(NOT_SUPPORTED)
    driver.changes[STATE_CALL, "gpu0", 5] = Refusal(NOT_SUPPORTED)
    driver.fields[COUNT, 0] = 17
    ports = read_nvlinks(driver, "gpu0")
    assert [port.link for port in ports] == [link for link in range(18) if link != 5]


def test_a_port_that_does_not_say_is_neither_up_nor_down(driver):
    whole = read_nvlinks(driver, "gpu0")
    driver.fields[STATE, 5] = Refusal(UNKNOWN)
    driver.changes[STATE_CALL, "gpu0", 5] = Refusal(UNKNOWN)
    ports = read_nvlinks(driver, "gpu0")
    assert ports[5] == NvLink(5, "unknown", active=None)
    assert [*ports[:5], *ports[6:]] == [*whole[:5], *whole[6:]]


def test_nothing_is_known_of_links_none_of_which_says_anything(driver):
    for link in range(36):
        driver.fields[STATE, link] = Refusal(UNKNOWN)
    driver.changes[STATE_CALL] = Refusal(UNKNOWN)
    assert read_nvlinks(driver, "gpu0") is None


@pytest.mark.parametrize(("code", "links"), [(NOT_SUPPORTED, ()), (FUNCTION_NOT_FOUND, None)])
def test_a_board_that_supports_no_nvlink_has_none(driver, code, links):
    driver.changes[STATE_CALL] = Refusal(code)
    driver.changes[FIELDS] = Refusal(code)
    assert read_nvlinks(driver, "gpu0") == links


def test_asking_ends_with_the_last_port_even_where_the_count_is_not_known(driver):
    driver.fields[COUNT, 0] = Refusal(NOT_SUPPORTED)
    assert len(read_nvlinks(driver, "gpu0")) == 18
    assert driver.asked(STATE_CALL) == {STATE_CALL: 1}, "of the port behind the last"


@pytest.mark.parametrize("count", [None, 18])
def test_what_a_board_in_mig_mode_does_not_tell_of_its_links_is_unknown(clock, count):
    driver = Driver("h100-mig")
    driver.call("nvmlInit")
    driver.fields[COUNT, 0] = count
    first, second = started(driver, clock).read().gpus[:2]
    assert first.nvlinks is None
    assert len(second.nvlinks) == 18


def test_a_board_without_bridges_has_ports_that_are_down():
    driver = Driver("a100-pcie")
    driver.call("nvmlInit")
    ports = read_nvlinks(driver, "gpu0")
    assert ports == tuple(NvLink(link, "unknown", active=False) for link in range(12))


def test_a_superchip_has_a_place(driver):
    assert read_place(driver, "gpu1") == GpuPlace(
        memory_node=12,
        numa=frozenset((1,)),
        cpus=frozenset(range(72, 144)),
        c2c_links=10,
        c2c_mb_per_second=447_120.0,
        addressing_mode="ats",
    )


def test_c2c_links_count_while_they_are_up(driver):
    driver.fields[171, 4] = 0
    place = read_place(driver, "gpu0")
    assert (place.c2c_links, place.c2c_mb_per_second) == (9, 402_408.0)
    driver.fields[172, 5] = Refusal(UNKNOWN)
    place = read_place(driver, "gpu0")
    assert (place.c2c_links, place.c2c_mb_per_second) == (9, None)


def test_a_board_without_c2c_says_nothing_of_it():
    driver = Driver("v100-cubemesh")
    driver.call("nvmlInit")
    place = read_place(driver, "gpu0")
    assert place == GpuPlace(numa=frozenset((0,)), cpus=place.cpus)
    assert place.cpus == frozenset((*range(20), *range(40, 60)))


@pytest.mark.parametrize("answer", [Refusal(FUNCTION_NOT_FOUND), [], [0, 0]])
def test_cpus_are_asked_of_the_older_call_where_the_newer_says_nothing(driver, answer):
    driver.changes["nvmlDeviceGetCpuAffinityWithinScope"] = answer
    driver.changes["nvmlDeviceGetCpuAffinity"] = [0, 5]
    assert read_place(driver, "gpu0").cpus == frozenset((64, 66))


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("nvmlDeviceGetNumaNodeId", -1),
        ("nvmlDeviceGetMemoryAffinity", [0]),
        ("nvmlDeviceGetAddressingMode", 9),
        ("nvmlDeviceGetAddressingMode", Refusal(INVALID_ARGUMENT)),
    ],
)
def test_a_part_of_the_place_that_says_nothing_is_unknown_alone(driver, function, answer):
    whole = read_place(driver, "gpu0")
    driver.changes[function] = answer
    field = {"Numa": "memory_node", "Memo": "numa", "Addr": "addressing_mode"}[function[13:17]]
    assert read_place(driver, "gpu0") == replace(whole, **{field: None})


def test_a_driver_that_says_nothing_of_a_place_has_none(driver):
    for function in (
        FIELDS,
        "nvmlDeviceGetNumaNodeId",
        "nvmlDeviceGetMemoryAffinity",
        "nvmlDeviceGetCpuAffinityWithinScope",
        "nvmlDeviceGetCpuAffinity",
        "nvmlDeviceGetAddressingMode",
    ):
        driver.changes[function] = Refusal(FUNCTION_NOT_FOUND)
    assert read_place(driver, "gpu0") is None


def test_facts_and_health_are_part_of_the_board(driver, clock):
    gpu = started(driver, clock).read().gpus[0]
    assert (gpu.fabric.health_mask, gpu.fabric.health_summary) == (0x25A9, 3)
    assert gpu.facts.items() >= {
        ("memory_bus_width_bits", "6144"),
        ("memory_clock_max_mhz", "2619"),
    }
    assert gpu.place.memory_node == 4
    assert "chassis_serial" not in gpu.facts


def test_a_board_in_a_rack_knows_its_place_there(clock):
    driver = Driver("gb200")
    driver.changes["nvmlDeviceGetPlatformInfo"] = {
        "chassisSerialNumber": "",
        "slotNumber": 7,
        "trayIndex": 0,
        "hostId": 1,
        "peerType": 1,
        "moduleId": 2,
    }
    facts = started(driver, clock).read().gpus[0].facts
    places = {"slot_number": "7", "tray_index": "0", "host_id": "1", "peer_type": "1"}
    assert facts.items() >= (places | {"module_id": "2"}).items()
    assert "chassis_serial" not in facts


def test_a_fabric_of_an_old_driver_has_no_health(driver, clock):
    driver.changes["nvmlDeviceGetGpuFabricInfoV"] = {
        "clusterUuid": "0" * 32,
        "cliqueId": 0,
        "state": 3,
        "status": 0,
        "healthMask": None,
    }
    fabric = started(driver, clock).read().gpus[0].fabric
    assert (fabric.state, fabric.health_mask, fabric.health_summary) == (3, None, None)


def pair_of(snapshot, one, other):
    uuids = {gpu.index: gpu.uuid for gpu in snapshot.gpus}
    for pair in snapshot.pairs:
        if (pair.uuid, pair.other_uuid) == (uuids[one], uuids[other]):
            return pair
    return None


def test_each_pair_is_there_once(driver, clock):
    snapshot = started(driver, clock).read()
    uuids = [gpu.uuid for gpu in snapshot.gpus]
    assert [(p.uuid, p.other_uuid) for p in snapshot.pairs] == list(combinations(uuids, 2))
    disabled = "disabled_by_regkey"
    p2p = {"read": disabled, "write": disabled, "nvlink": "ok"}
    assert {pair.level for pair in snapshot.pairs} == {50}
    assert snapshot.pairs[0] == GpuPair(uuids[0], uuids[1], 50, p2p)


@pytest.mark.parametrize(
    ("status", "word"), [(3, "topology_not_supported"), (6, "unknown"), (77, "unknown")]
)
def test_a_status_has_a_word(driver, clock, status, word):
    driver.changes[P2P, "gpu0", 2, 1] = status
    assert pair_of(started(driver, clock).read(), 0, 2).p2p["write"] == word


@pytest.mark.parametrize("level", [45, -1, Refusal(UNKNOWN)])
def test_a_level_that_nobody_knows_is_unknown_and_the_pair_stays(driver, clock, level):
    driver.changes[ANCESTOR, "gpu0", 2] = level
    driver.changes[NEAREST] = Refusal(NOT_SUPPORTED)
    pair = pair_of(started(driver, clock).read(), 0, 2)
    assert (pair.level, pair.p2p["nvlink"]) == (None, "ok")


def test_the_level_is_looked_up_among_the_nearest_where_the_pair_has_none(driver, clock):
    told = pair_of(started(driver, clock).read(), 0, 2).level
    driver.changes[ANCESTOR] = Refusal(NOT_SUPPORTED)
    assert pair_of(started(driver, clock).read(), 0, 2).level == told
    driver.changes[NEAREST] = Refusal(NOT_SUPPORTED)
    assert pair_of(started(driver, clock).read(), 0, 2).level is None


def test_what_is_refused_of_a_pair_costs_itself_only(driver, clock):
    driver.changes[P2P, "gpu1", 3, 0] = Refusal(NOT_SUPPORTED)
    pair = pair_of(started(driver, clock).read(), 1, 3)
    assert (pair.level, set(pair.p2p)) == (50, {"write", "nvlink"})


def test_a_driver_that_knows_no_pairs_has_none_and_is_asked_once(driver, clock):
    driver.changes |= dict.fromkeys((ANCESTOR, NEAREST, P2P), Refusal(FUNCTION_NOT_FOUND))
    reader = started(driver, clock)
    assert [reader.read().pairs, reader.read().pairs] == [(), ()]
    assert driver.asked(ANCESTOR) == {ANCESTOR: 6}


def test_pairs_are_asked_again_when_the_boards_are(driver, clock):
    reader = started(driver, clock)
    for _ in range(STATIC_PASSES):
        assert len(reader.read().pairs) == 6
    assert driver.asked(ANCESTOR, P2P) == {ANCESTOR: 6, P2P: 18}
    driver.changes[ANCESTOR] = 40
    assert {pair.level for pair in reader.read().pairs} == {40}
    assert driver.asked(ANCESTOR, P2P) == {ANCESTOR: 12, P2P: 36}


def test_a_lost_gpu_costs_its_own_pairs_and_is_asked_when_it_is_back(driver, clock):
    reader = started(driver, clock)
    reader.read()
    driver.changes["gpu2", "*"] = Refusal(GPU_IS_LOST)
    snapshot = reader.read()
    assert [gpu.index for gpu in snapshot.gpus] == [0, 1, 3]
    assert len(snapshot.pairs) == 3
    assert snapshot.dropped == {"gpu_is_lost": 1}
    del driver.changes["gpu2", "*"]
    driver.calls.clear()
    assert len(reader.read().pairs) == 6
    assert driver.asked(ANCESTOR) == {ANCESTOR: 3}


def test_a_gpu_that_is_lost_between_its_reading_and_its_pairs_costs_its_pairs(driver, clock):
    for one, other in combinations(range(4), 2):
        if 1 in (one, other):
            driver.changes[ANCESTOR, f"gpu{one}", other] = Refusal(GPU_IS_LOST)
    snapshot = started(driver, clock).read()
    assert len(snapshot.gpus) == 4
    lost = snapshot.gpus[1].uuid
    assert len(snapshot.pairs) == 3
    assert all(lost not in (pair.uuid, pair.other_uuid) for pair in snapshot.pairs)


def test_a_driver_that_goes_away_among_the_pairs_is_a_source_that_is_down(driver, clock):
    driver.changes[P2P, "gpu1", 2, 1] = Refusal(DRIVER_NOT_LOADED)
    with pytest.raises(SourceUnavailableError, match="modprobe nvidia"):
        started(driver, clock).read()


def test_a_pass_between_two_descriptions_asks_nothing_of_what_lasts(driver, clock):
    reader = started(driver, clock)
    reader.read()
    driver.calls.clear()
    snapshot = reader.read()
    assert len(snapshot.pairs) == 6
    lasting = {
        function
        for function, *_ in driver.calls
        if any(word in function for word in ("NvLink", "P2P", "Affinity", "Numa", "Fabric"))
        or function in (ANCESTOR, "nvmlDeviceGetPlatformInfo", "nvmlDeviceGetMaxClockInfo")
    }
    assert lasting == set()
    # Of each board: its memory temperature, and which links are up.
    assert driver.asked(FIELDS) == {FIELDS: 8}


@pytest.mark.parametrize("fields", [True, False])
def test_a_link_that_goes_down_or_comes_up_is_seen_in_the_next_pass(driver, clock, fields):
    if not fields:
        driver.changes[FIELDS] = Refusal(FUNCTION_NOT_FOUND)
    reader = started(driver, clock)
    up = reader.read().gpus[0].nvlinks
    assert up[8].active
    driver.fields[STATE, 8] = 0
    driver.changes[STATE_CALL, "gpu0", 8] = 0
    down = reader.read().gpus[0].nvlinks
    assert [port.link for port in down if not port.active] == [3, 8]
    del driver.fields[STATE, 8], driver.changes[STATE_CALL, "gpu0", 8]
    assert reader.read().gpus[0].nvlinks == up


def test_a_state_that_is_refused_is_no_change(driver, clock):
    reader = started(driver, clock)
    up = reader.read().gpus[0].nvlinks
    driver.changes[FIELDS] = driver.changes[STATE_CALL] = Refusal(UNKNOWN)
    assert reader.read().gpus[0].nvlinks == up


def test_pairs_are_asked_again_where_a_link_has_changed(driver, clock):
    reader = started(driver, clock)
    reader.read()
    driver.calls.clear()
    driver.fields[STATE, 8] = 0
    reader.read()
    assert driver.asked(ANCESTOR) == {ANCESTOR: 6}
