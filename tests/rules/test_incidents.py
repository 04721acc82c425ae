"""How many messages an incident is, and that its end is told, by a running Alertmanager."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.rules.running_alertmanager import Alertmanager, running_alertmanager

NODE = "topic=health instance=n1"
XID = (
    f"alertname=SeedanceGpuXidCritical severity=critical class=driver xid=119 gpu_uuid=GPU-5 {NODE}"
)
LOST = f"alertname=SeedanceGpuLost severity=critical gpu_uuid=GPU-5 {NODE}"
WORN = f"alertname=SeedanceGpuRowRemapFailed severity=critical gpu_uuid=GPU-6 {NODE}"
HANGS = "alertname=SeedanceGpuSourcesDown severity=critical topic=exporter instance=n1"
DOWN = "alertname=SeedanceTargetDown severity=warning topic=exporter instance=n1"
GONE = DOWN.replace("Down", "Gone")


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    with running_alertmanager(tmp_path_factory.mktemp("alertmanager")) as running:
        yield running


def names(message: dict[str, Any], status: str = "firing") -> list[str]:
    return sorted(
        each["labels"]["alertname"] for each in message["alerts"] if each["status"] == status
    )


def firing(*alerts: str) -> Callable[[dict[str, Any]], bool]:
    """Messages of which just these fire."""
    return lambda message: names(message) == sorted(alerts)


def test_the_end_of_a_page_is_told_while_its_node_is_down(alertmanager: Alertmanager) -> None:
    here = "restarted"
    alertmanager.push(here, LOST)
    alertmanager.wait_for(here, "page", firing("SeedanceGpuLost"))
    alertmanager.push(here, DOWN)
    alertmanager.wait_for(here, "ticket", firing("SeedanceTargetDown"))
    alertmanager.push(here, LOST, over=True)
    alertmanager.wait_for(here, "page", lambda message: message["status"] == "resolved")


def test_a_hang_behind_an_xid_is_no_second_page_and_no_all_clear_comes_between(
    alertmanager: Alertmanager,
) -> None:
    here = "hangs"
    alertmanager.push(here, XID)
    alertmanager.wait_for(here, "page", firing("SeedanceGpuXidCritical"))
    alertmanager.push(here, HANGS)
    alertmanager.push(here, XID, over=True)
    then = alertmanager.wait_for(here, "page", firing("SeedanceGpuSourcesDown"))
    assert names(then, "resolved") == ["SeedanceGpuXidCritical"]
    alertmanager.push(here, HANGS, over=True)
    alertmanager.wait_for(here, "page", lambda message: message["status"] == "resolved")
    told = alertmanager.told_of(here, "page")
    assert [each["status"] for each in told] == ["firing", "firing", "resolved"]
    assert len({each["groupKey"] for each in told}) == 1


def test_pages_of_one_node_are_one_message_but_for_a_board_to_be_replaced(
    alertmanager: Alertmanager,
) -> None:
    here = "one node"
    alertmanager.push(here, LOST, XID.replace("GPU-5", "GPU-7"), WORN)
    alertmanager.wait_for(here, "page", firing("SeedanceGpuLost", "SeedanceGpuXidCritical"))
    alertmanager.wait_for(here, "page", firing("SeedanceGpuRowRemapFailed"))


def test_targets_that_are_gone_are_one_ticket_of_their_cluster(alertmanager: Alertmanager) -> None:
    here = "shrinks"
    alertmanager.push(here, *(GONE.replace("n1", f"n{number}") for number in range(3)))
    alertmanager.wait_for(here, "ticket", firing(*3 * ["SeedanceTargetGone"]))
