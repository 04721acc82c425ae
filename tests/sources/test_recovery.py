"""What the driver asks for to get a GPU back, from driver and page to the scrape."""

import re

import pytest

from seedance_obs.sources.dcgm.page import read_page
from seedance_obs.sources.nvml.reader import NvmlReader
from seedance_obs.sources.readings import SourceSnapshot
from seedance_obs.sources.recovery import ACTIONS, action_name
from seedance_obs.sources.sim.library import SimNvml
from seedance_obs.sources.sim.page import render_page
from tests.machine import LibrarySource, PageSource, machine
from tests.sim.one_gpu import machine_with

RESET_AT_5_DONE_AT_9 = [
    {"at_s": 5, "gpu": 0, "xid": 95, "recovery_action": "gpu_reset"},
    {"at_s": 9, "gpu": 0, "recovery_action": "none"},
]


def action(snapshot: SourceSnapshot) -> float | None:
    (gpu,) = snapshot.gpus
    return gpu.values.get("recovery_action")


@pytest.mark.parametrize(
    ("driver", "told"),
    [("580.105.08", [0, 1, 1, 0]), ("565.57.01", [0, 1, 1, 0]), ("560.35.05", [None] * 4)],
)
def test_driver_and_page_tell_the_last_wish_from_release_565_on(driver, told):
    node = machine_with(faults=RESET_AT_5_DONE_AT_9, driver_version=driver, dcgm_interval_s=1)
    now = 0.0
    reader = NvmlReader(SimNvml(node, lambda: now), monotonic=lambda: now)
    reader.start()
    by_driver, by_page = [], []
    for now in (4.0, 5.0, 8.0, 9.0):  # the reader's clock
        by_driver.append(action(reader.read()))
        by_page.append(action(read_page(render_page(node, now), taken_at=now)))
    assert (by_driver, by_page) == (told, told)


@pytest.mark.parametrize("name", ["GET_GPU_RECOVERY_ACTION", "GPU_RECOVERY_ACTION"])
@pytest.mark.parametrize(("shown", "taken"), [("3", 3), ("9223372036854775794", None)])
def test_both_names_of_dcgm_are_read_and_its_blank_is_not(name, shown, taken):
    row = f'DCGM_FI_DEV_{name}{{gpu="0",UUID="GPU-{"0" * 8}-0000-0000-0000-{"0" * 12}"}} {shown}\n'
    assert action(read_page(row, taken_at=0.0)) == taken


def recovery_series(node, clock, root) -> list[str]:
    found = machine(
        [LibrarySource(SimNvml(node, clock), clock), PageSource(render_page(node, clock()), clock)],
        clock,
        root=root,
    )
    found.pass_once()
    scrape = found.scrape()
    found.node.close()
    assert 'seedance_gpu_source_gpus{quantity="recovery_action",source="nvml"} 1.0' in scrape
    return re.findall(r'^seedance_gpu_recovery_action\{action="(\w+)",.* 1\.0$', scrape, re.M)


def test_a_gpu_has_a_series_while_the_driver_asks_for_something(clock, tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("btime 0\n")
    for wish in ACTIONS:
        fault = {"at_s": 0, "gpu": 0, "recovery_action": wish}
        node = machine_with(faults=[fault], dcgm_interval_s=1)
        assert recovery_series(node, clock, tmp_path) == ([] if wish == "none" else [wish])


def test_a_number_that_is_not_known_is_still_a_wish():
    assert action_name(8) == "action_8"
