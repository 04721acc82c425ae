"""What the kubelet lists, over a real gRPC connection; the bytes are written by hand."""

from pathlib import Path

import grpc
import pytest
from podresources_server import (
    always,
    claim,
    container,
    device,
    failing,
    field,
    kubelet,
    pod,
    pod_message,
    varint,
)

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.podresources.devices import HeldDevice
from seedance_obs.sources.podresources.pods import DraClaim, PodContainer
from seedance_obs.sources.podresources.source import PodResourcesSource
from seedance_obs.sources.readings import SourceSnapshot

HEX = "8dcd427f-1a2b-4c5d-8e9f-0a1b2c3d4e5f"
GPU, MIG = f"GPU-{HEX}", f"MIG-{HEX}"
ONE_GPU = device("nvidia.com/gpu", GPU)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


def listed(path: Path, *pods: bytes, resource_names: tuple[str, ...] = ()) -> SourceSnapshot:
    with kubelet(path, List=always(b"".join(pods))):
        source = PodResourcesSource(path, timeout_seconds=30, resource_names=resource_names)
        return source.read()


def devices(path: Path, *parts: bytes) -> tuple[HeldDevice, ...]:
    (found,) = listed(path, pod("p", container("c", *parts))).containers
    return found.devices


def test_a_container_is_listed_with_its_devices_and_the_moment(path: Path) -> None:
    with kubelet(path, List=always(pod("train-0", container("main", ONE_GPU)))):
        answer = PodResourcesSource(path, timeout_seconds=30, monotonic=lambda: 123.0).read()
    held = PodContainer("research", "train-0", "main", (HeldDevice(gpu_uuid=GPU),))
    assert answer == SourceSnapshot("podresources", 123.0, containers=(held,))


def test_a_node_without_pods_answers_with_nothing(path: Path) -> None:
    assert listed(path).containers == ()


def test_only_containers_that_hold_an_nvidia_device_are_kept(path: Path) -> None:
    answer = listed(
        path,
        pod("proxy", container("proxy")),
        pod("nic", container("a", device("vendor.com/nic", "eth0"))),
        pod("mixed", container("sidecar"), container("main", ONE_GPU)),
        pod("network", container("x", claim("c", "channel-0", driver="compute-domain.nvidia.com"))),
    )
    assert [(each.pod, each.container) for each in answer.containers] == [("mixed", "main")]
    assert answer.dropped == {}


@pytest.mark.parametrize(
    "resource",
    [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-3g.40gb.me",
    ],
)
def test_nvidias_resources_are_known_by_name(path: Path, resource: str) -> None:
    assert devices(path, device(resource, GPU)) == (HeldDevice(gpu_uuid=GPU),)


def test_a_renamed_resource_is_looked_at_when_it_is_asked_for(path: Path) -> None:
    pods = pod("p", container("c", device("example.com/h100", GPU)))
    assert listed(path, pods).containers == ()
    (found,) = listed(path, pods, resource_names=("example.com/h100",)).containers
    assert found.devices == (HeldDevice(gpu_uuid=GPU),)


def test_mig_instances_and_replicas_arrive_in_every_spelling(path: Path) -> None:
    ids = (MIG, f"MIG-GPU-{HEX}/7/0", "nvidia0/gi2", f"{GPU}::3", f"{MIG}::0", f"{GPU}-7")
    assert devices(path, device("nvidia.com/mig-1g.10gb", *ids)) == (
        HeldDevice(mig_uuid=MIG),
        HeldDevice(gpu_uuid=GPU, gpu_instance=7, compute_instance=0),
        HeldDevice(index=0, gpu_instance=2),
        HeldDevice(gpu_uuid=GPU, replica=3),
        HeldDevice(mig_uuid=MIG, replica=0),
        HeldDevice(gpu_uuid=GPU, replica=7),
    )


def test_a_device_in_an_unknown_spelling_is_counted_and_costs_only_itself(path: Path) -> None:
    answer = listed(
        path,
        pod("odd", container("c", device("nvidia.com/gpu", "no-such-spelling"))),
        pod("half", container("c", device("nvidia.com/gpu", "another", GPU))),
    )
    (found,) = answer.containers
    assert (found.pod, found.devices) == ("half", (HeldDevice(gpu_uuid=GPU),))
    assert answer.dropped == {"device": 2}


@pytest.mark.parametrize(
    ("topology", "numa"),
    [
        (None, None),  # no topology at all
        (b"", None),  # a topology without a node
        (field(1, b""), frozenset({0})),  # proto3 sends no zero
        (field(1, b"\x08\x00"), frozenset({0})),
        (field(1, b"\x08\x03"), frozenset({3})),
        (field(1, b"") + field(1, b"\x08\x01"), frozenset({0, 1})),
        (field(1, b"\x08" + varint(2**64 - 1)), None),  # -1 is no node
    ],
)
def test_a_numa_node_without_a_number_is_node_zero(
    path: Path, topology: bytes | None, numa: frozenset[int] | None
) -> None:
    (found,) = devices(path, device("nvidia.com/gpu", GPU, topology=topology))
    assert found.numa == numa


def test_claims_keep_their_names_and_become_devices(path: Path) -> None:
    cdi = f"k8s.gpu.nvidia.com/claim={HEX}-gpu-1"
    (found,) = listed(
        path, pod("p", container("c", claim("single", "gpu-1", cdi), ONE_GPU))
    ).containers
    assert found.devices == (HeldDevice(gpu_uuid=GPU), HeldDevice(index=1))
    assert found.claims == (DraClaim("single", "research", "gpu.nvidia.com", "node-7", "gpu-1"),)


def test_the_uuid_of_a_claim_is_taken_from_its_cdi_name(path: Path) -> None:
    cdi = f"nvidia.com/gpu={GPU}"
    assert devices(path, claim("c", "gpu-1", cdi)) == (HeldDevice(gpu_uuid=GPU, index=1),)


def test_a_claim_for_a_device_nobody_can_name_is_still_a_claim(path: Path) -> None:
    answer = listed(path, pod("vm", container("c", claim("passthrough", "gpu-vfio-0"))))
    (found,) = answer.containers
    assert (found.devices, found.claims[0].device) == ((), "gpu-vfio-0")
    assert answer.dropped == {"device": 1}


def test_fields_that_a_newer_kubelet_adds_are_passed_over(path: Path) -> None:
    newer = container("c", ONE_GPU, field(3, b"\x00\x01"), field(99, "new"))
    answer = listed(path, field(1, pod_message("p", newer) + field(4, b"\x02") + field(77, "x")))
    assert len(answer.containers) == 1


def test_twenty_thousand_pods_and_more_than_four_mebibytes_are_read(path: Path) -> None:
    reply = b"".join(
        pod(
            f"inference-deployment-with-a-long-name-{number:05}-7c9d8f6b5-x{number % 36:02}kq",
            container("istio-proxy"),
            container("inference-server", device("nvidia.com/gpu", f"{GPU}::{number}")),
            container("log-shipper-with-a-name", device("vendor.com/fuse", f"fuse-{number}")),
            namespace="team-with-a-long-namespace-name",
        )
        for number in range(20_000)
    )
    assert len(reply) > 4 << 20
    answer = listed(path, reply)
    assert [each.devices[0].replica for each in answer.containers] == list(range(20_000))


def test_one_pod_is_asked_for_by_name(path: Path) -> None:
    def answer(request: bytes, _context: object) -> bytes:
        assert request == field(1, "train-0") + field(2, "research")
        return field(1, pod_message("train-0", container("main", ONE_GPU)))

    with kubelet(path, Get=answer):
        found = PodResourcesSource(path, timeout_seconds=30).get("research", "train-0")
    held = PodContainer("research", "train-0", "main", (HeldDevice(gpu_uuid=GPU),))
    assert found == (held,)


def test_a_pod_without_devices_is_told_from_no_pod(path: Path) -> None:
    with kubelet(path, Get=always(field(1, pod_message("proxy", container("proxy"))))):
        assert PodResourcesSource(path, timeout_seconds=30).get("research", "proxy") == ()
    missing = failing(grpc.StatusCode.UNKNOWN, "pod gone in namespace research not found")
    with kubelet(path, Get=missing):
        assert PodResourcesSource(path, timeout_seconds=30).get("research", "gone") is None


def test_what_the_kubelet_can_hand_out_is_listed_with_its_numa_nodes(path: Path) -> None:
    # An AllocatableResourcesResponse holds ContainerDevices under number 1, a container under 2.
    one = field(1, device("nvidia.com/gpu", GPU, topology=field(1, b""))[2:])
    other = field(1, device("vendor.com/nic", "eth0")[2:])
    with kubelet(path, GetAllocatableResources=always(one + other)):
        found = PodResourcesSource(path, timeout_seconds=30).allocatable()
    assert found == (HeldDevice(gpu_uuid=GPU, numa=frozenset({0})),)


@pytest.mark.parametrize("name", ["with space", "100%25", "a#b?c", "ünï"])
def test_a_socket_is_found_whatever_its_path_is_called(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    plain = tmp_path / "k.sock"
    with kubelet(plain, List=always(pod("p", container("c", ONE_GPU)))):
        named = tmp_path / name / "kubelet.sock"
        named.symlink_to(plain)
        assert len(PodResourcesSource(named, timeout_seconds=30).read().containers) == 1


def test_a_restarted_kubelet_is_read_again_at_once(path: Path) -> None:
    source = PodResourcesSource(path, timeout_seconds=30)
    for name in ("before", "after", "later"):
        with kubelet(path, List=always(pod(name, container("c", ONE_GPU)))):
            assert [each.pod for each in source.read().containers] == [name]
            assert [each.pod for each in source.read().containers] == [name]
        for _ in range(3):
            with pytest.raises(SourceUnavailableError):
                source.read()


def test_a_closed_source_can_be_read_again(path: Path) -> None:
    source = PodResourcesSource(path, timeout_seconds=30)
    with kubelet(path, List=always(pod("p", container("c", ONE_GPU)))):
        source.close()
        assert len(source.read().containers) == 1
        source.close()
        source.close()
