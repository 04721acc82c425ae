"""A recording gives back what was asked, in order, hangs included, and names nobody's machine."""

import json
import re
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.errors import UsageError
from seedance_obs.sources.nvml.anonymiser import Anonymiser, anonymise
from seedance_obs.sources.nvml.library import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    TIMEOUT,
    NvmlError,
    NvmlLibrary,
    Plain,
)
from seedance_obs.sources.nvml.recording import RecordingLibrary, ReplayLibrary, settled
from tests.nvml_abi.machines import MACHINES, TableLibrary, machine_library
from tests.nvml_abi.state_file import Call, calls_of, outcome


class ScriptLibrary:
    """Answers the given outcomes one after the other, whatever is asked."""

    def __init__(self, outcomes: list[Plain | NvmlError]) -> None:
        self._outcomes = iter(outcomes)

    def call(self, *_asked: str | int | None) -> Plain:
        answer = next(self._outcomes)
        if isinstance(answer, NvmlError):
            raise answer
        return answer


class Sleeper:
    def __init__(self) -> None:
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def recorded(library: NvmlLibrary, calls: list[Call]) -> list[str]:
    lines: list[str] = []
    recorder = RecordingLibrary(library, lines.append, monotonic=count().__next__)
    for call in calls:
        outcome(recorder, call)
    return lines


def outcomes(library: NvmlLibrary, calls: list[Call]) -> list[object]:
    answers = [outcome(library, call) for call in calls]
    return [answer.code if isinstance(answer, NvmlError) else answer for answer in answers]


plain = st.recursive(
    st.none() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
results = plain | st.builds(NvmlError, st.integers(1, 999))
functions = st.sampled_from(["nvmlDeviceGetPowerUsage", "nvmlDeviceGetName", "nvmlInit"])
call_of_any = st.tuples(
    functions,
    st.none() | st.sampled_from(["gpu0", "gpu1/mig2"]),
    st.lists(st.integers(0, 3), max_size=2).map(tuple),
)


@given(st.lists(st.tuples(call_of_any, results), max_size=20), st.booleans())
def test_replaying_the_same_calls_gives_the_same_outcomes(
    script: list[tuple[Call, Plain | NvmlError]], settle: bool
) -> None:
    calls = [call for call, _ in script]
    lines = recorded(ScriptLibrary([result for _, result in script]), calls)
    replay = ReplayLibrary(settled(lines) if settle else lines)
    assert outcomes(replay, calls) == outcomes(
        ScriptLibrary([result for _, result in script]), calls
    )


@pytest.mark.parametrize("name", MACHINES)
def test_a_recorded_machine_is_that_machine(name: str) -> None:
    calls = list(calls_of(machine_library(name)))
    replay = ReplayLibrary(recorded(machine_library(name), calls))
    assert outcomes(replay, calls) == json.loads(json.dumps(outcomes(machine_library(name), calls)))


def test_the_last_answer_stays() -> None:
    power: Call = ("nvmlDeviceGetPowerUsage", "gpu0", ())
    replay = ReplayLibrary(recorded(ScriptLibrary([1, 2]), [power, power]))
    assert outcomes(replay, [power] * 4) == [1, 2, 2, 2]


def test_what_was_never_asked_is_not_found() -> None:
    replay = ReplayLibrary([])
    asked: list[Call] = [("nvmlDeviceGetName", "gpu0", ()), ("nvmlEventSetWait", None, ())]
    assert outcomes(replay, asked) == [FUNCTION_NOT_FOUND, TIMEOUT]
    assert replay.call("nvmlShutdown") is None


def test_a_recorded_event_comes_once() -> None:
    wait: Call = ("nvmlEventSetWait", None, ())
    event: Plain = {"device": "gpu0", "xid": 79}
    replay = ReplayLibrary(recorded(ScriptLibrary([event]), [wait]))
    assert outcomes(replay, [wait, wait]) == [event, TIMEOUT]


def test_each_call_says_how_long_it_took() -> None:
    ticks = iter([5.0, 5.00025])
    lines: list[str] = []
    library = TableLibrary({("nvmlInit", None, ()): None})
    RecordingLibrary(library, lines.append, monotonic=lambda: next(ticks)).call("nvmlInit")
    assert json.loads(lines[-1])["ms"] == 0.25


class HangError(Exception):
    """Stands for a call that never returns: nothing after it happens."""


class HangingLibrary:
    def call(self, _function: str, device: str | None = None, *_args: int) -> Plain:
        if device == "gpu1":
            raise HangError
        return 7


@pytest.mark.parametrize("settle", [False, True])
@pytest.mark.parametrize("asked_again_after_a_restart", [False, True])
def test_exactly_the_call_that_hung_hangs(settle: bool, asked_again_after_a_restart: bool) -> None:
    lines: list[str] = []
    recorder = RecordingLibrary(HangingLibrary(), lines.append)
    recorder.call("nvmlDeviceGetPowerUsage", "gpu0")
    with pytest.raises(HangError):
        recorder.call("nvmlDeviceGetPowerUsage", "gpu1")
    if asked_again_after_a_restart:
        RecordingLibrary(ScriptLibrary([8]), lines.append).call("nvmlDeviceGetPowerUsage", "gpu1")
    sleeper = Sleeper()
    replay = ReplayLibrary(settled(lines) if settle else lines, sleep=sleeper)
    assert replay.call("nvmlDeviceGetPowerUsage", "gpu0") == 7
    assert sleeper.slept == []
    with pytest.raises(NvmlError):
        replay.call("nvmlDeviceGetPowerUsage", "gpu1")
    assert sleeper.slept == [pytest.approx(1e9)]
    if asked_again_after_a_restart:
        assert replay.call("nvmlDeviceGetPowerUsage", "gpu1") == 8


@pytest.mark.parametrize(
    "line", ["nonsense", "[]", "{}", '{"function": "nvmlInit"}', '{"function": "f", "args": 3}']
)
def test_a_line_that_is_no_call_is_named(line: str) -> None:
    good = '{"function": "nvmlInit", "device": null, "args": [], "ms": 1, "answer": null}'
    with pytest.raises(UsageError, match="line 3 of the NVML recording"):
        ReplayLibrary([good, "", line])


@pytest.mark.parametrize("name", MACHINES)
def test_an_anonymised_machine_has_none_of_its_names(name: str) -> None:
    calls = list(calls_of(machine_library(name)))
    lines = recorded(machine_library(name), calls)
    after = "\n".join(anonymise(lines))
    for function in ("nvmlDeviceGetUUID", "nvmlDeviceGetSerial", "nvmlVgpuInstanceGetUUID"):
        for line in lines:
            entry = json.loads(line)
            if entry["function"] == function and "answer" in entry:
                assert entry["answer"] not in after


@pytest.mark.parametrize("name", MACHINES)
def test_an_anonymised_machine_keeps_everything_else(name: str) -> None:
    calls = list(calls_of(machine_library(name)))
    lines = recorded(machine_library(name), calls)
    before, after = ReplayLibrary(lines), ReplayLibrary(anonymise(lines))
    named = (
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetSerial",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetPlatformInfo",
        "nvmlVgpuInstanceGetUUID",
        "nvmlVgpuInstanceGetVmID",
    )
    kept = [call for call in calls if call[0] not in named]
    assert outcomes(after, kept) == outcomes(before, kept)


def _answer(function: str, answer: Plain) -> str:
    return json.dumps({"function": function, "device": "gpu0", "args": [], "answer": answer})


def test_one_name_has_one_stand_in_everywhere() -> None:
    uuid, serial = "GPU-6e1d5e0f-9c15-5a02-b4ea-a1b2c3d4e5f6", "1563221012345"
    anonymiser = Anonymiser(["gpu-node-17.corp.example", "gpu-node-17"])
    lines = [_answer("nvmlDeviceGetUUID", uuid), _answer("nvmlDeviceGetSerial", serial)]
    new_uuid, new_serial = (json.loads(line)["answer"] for line in anonymiser.recording(lines))
    page = f'{{UUID="{uuid.upper()}",serial="{serial}",Hostname="GPU-node-17"}} 9{serial}'
    assert (
        anonymiser.text(page)
        == f'{{UUID="{new_uuid}",serial="{new_serial}",Hostname="node2"}} 9{serial}'
    )
    assert anonymiser.text("gpu-node-17.corp.example gpu-node-171") == "node1 gpu-node-171"
    assert re.fullmatch(r"GPU-[0-9a-f-]{36}", new_uuid)
    assert len(new_serial) == len(serial)


def test_the_same_capture_is_anonymised_the_same_way_twice() -> None:
    lines = recorded(machine_library("h100-mig"), list(calls_of(machine_library("h100-mig"))))
    assert list(anonymise(lines)) == list(anonymise(lines))


def test_host_names_that_look_like_stand_ins_are_replaced_once() -> None:
    assert Anonymiser(["node2", "node1"]).text("node1 node2") == "node2 node1"


def test_boards_without_a_serial_number_do_not_change_other_texts() -> None:
    anonymiser = Anonymiser()
    list(anonymiser.recording([_answer("nvmlDeviceGetSerial", "0")]))
    assert anonymiser.text("power 0 W") == "power 0 W"


def test_no_fabric_stays_no_fabric_and_a_fabric_gets_a_stand_in() -> None:
    real = "a1b2c3d4" * 4
    fabrics = [
        _answer("nvmlDeviceGetGpuFabricInfoV", {"clusterUuid": uuid, "state": 3})
        for uuid in ("0" * 32, real, real)
    ]
    answers = [json.loads(line)["answer"] for line in anonymise(fabrics)]
    assert [answer["clusterUuid"] for answer in answers] == ["0" * 32, *["0" * 31 + "1"] * 2]
    assert {answer["state"] for answer in answers} == {3}


def test_the_chassis_gets_a_stand_in_and_the_place_in_it_stays() -> None:
    places: dict[str, Plain] = {"slotNumber": 7, "trayIndex": 6, "hostId": 1, "moduleId": 2}
    lines = [
        _answer("nvmlDeviceGetPlatformInfo", {"chassisSerialNumber": serial, **places})
        for serial in ("1820325190512", "", "1820325190512")
    ]
    answers = [json.loads(line)["answer"] for line in anonymise(lines)]
    stand_in = "0" * 12 + "1"
    assert [answer["chassisSerialNumber"] for answer in answers] == [stand_in, "", stand_in]
    assert all(answer.items() >= places.items() for answer in answers)


def test_a_virtual_machine_gets_a_stand_in_of_its_own() -> None:
    vm, vgpu = "a1b2c3d4-0000-4000-8000-00000000c0de", "c0ffee00-0000-4000-8000-000000003001"
    lines = [_answer("nvmlVgpuInstanceGetVmID", vm), _answer("nvmlVgpuInstanceGetUUID", vgpu)]
    anonymiser = Anonymiser()
    answers = [json.loads(line)["answer"] for line in anonymiser.recording([*lines, lines[0]])]
    assert len(set(answers)) == 2
    assert answers[0] == answers[2]
    assert anonymiser.text(f"qemu {vm}") == f"qemu {answers[0]}"


def test_samples_come_in_their_order_whatever_moment_is_asked_for() -> None:
    asked: list[Call] = [("nvmlDeviceGetProcessUtilization", "gpu0", (n,)) for n in (0, 166, 333)]
    replay = ReplayLibrary(recorded(ScriptLibrary([[1], [2], [3]]), asked))
    later: list[Call] = [("nvmlDeviceGetProcessUtilization", "gpu0", (n,)) for n in (0, 7, 9, 11)]
    assert outcomes(replay, later) == [[1], [2], [3], [3]]


def test_a_lost_gpu_stays_lost_in_an_anonymised_recording() -> None:
    lines = recorded(ScriptLibrary([NvmlError(GPU_IS_LOST)]), [("nvmlDeviceGetUUID", "gpu0", ())])
    assert outcomes(ReplayLibrary(anonymise(lines)), [("nvmlDeviceGetUUID", "gpu0", ())]) == [15]
