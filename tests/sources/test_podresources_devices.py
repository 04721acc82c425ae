"""Every spelling of a held device becomes the same value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.sources.podresources.devices import HeldDevice, device_of_claim, device_of_id

HEX = "8dcd427f-1a2b-4c5d-8e9f-0a1b2c3d4e5f"
GPU, MIG = f"GPU-{HEX}", f"MIG-{HEX}"


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (GPU, HeldDevice(gpu_uuid=GPU)),
        (f"GPU-{HEX.upper()}", HeldDevice(gpu_uuid=GPU)),
        (f"gpu-{HEX}", HeldDevice(gpu_uuid=GPU)),
        (f" {GPU} ", HeldDevice(gpu_uuid=GPU)),
        (MIG, HeldDevice(mig_uuid=MIG)),
        (f"mig-{HEX.upper()}", HeldDevice(mig_uuid=MIG)),
        (f"MIG-GPU-{HEX}/7/0", HeldDevice(gpu_uuid=GPU, gpu_instance=7, compute_instance=0)),
        (f"mig-gpu-{HEX.upper()}/11/2", HeldDevice(GPU, None, 11, 2)),
        ("nvidia0", HeldDevice(index=0)),
        ("NVIDIA12", HeldDevice(index=12)),
        ("nvidia0/gi2", HeldDevice(index=0, gpu_instance=2)),
        ("nvidia3/GI0", HeldDevice(index=3, gpu_instance=0)),
    ],
)
def test_a_device_id_says_which_device(text: str, held: HeldDevice) -> None:
    assert device_of_id(text) == held


@pytest.mark.parametrize("base", [GPU, MIG, f"MIG-GPU-{HEX}/7/0", "nvidia0", "nvidia0/gi2"])
@pytest.mark.parametrize("mark", ["::", "/vgpu", "-", "__", "-_-"])
@pytest.mark.parametrize("number", [0, 7, 12])
def test_a_replica_is_the_same_device_with_a_number(base: str, mark: str, number: int) -> None:
    whole, share = device_of_id(base), device_of_id(f"{base}{mark}{number}")
    assert whole is not None
    assert whole.replica is None
    assert share is not None
    assert share.replica == number
    assert (share.gpu_uuid, share.mig_uuid, share.index) == (
        whole.gpu_uuid,
        whole.mig_uuid,
        whole.index,
    )
    assert (share.gpu_instance, share.compute_instance) == (
        whole.gpu_instance,
        whole.compute_instance,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GPU-",
        "GPU-7",
        f"{GPU}::",
        f"{GPU}::x",
        f"{GPU}::1::2",
        f"{GPU}0",
        f"GPU-{HEX[:-1]}",
        f"MIG-GPU-{HEX}",
        f"MIG-GPU-{HEX}/7",
        "nvidia",
        "nvidia0/gi",
        "nvidia\N{ARABIC-INDIC DIGIT ONE}",  # an Arabic digit is a digit to Python, not to a kernel
        "nvidia" + "1" * 5000,
        "nvidiactl",
        "0000:3b:00.0",
        "tpu-0",
        f"GPU-{HEX}\n{GPU}",
    ],
)
def test_an_unknown_spelling_is_no_device(text: str) -> None:
    assert device_of_id(text) is None


@given(st.text(max_size=80))
def test_no_text_breaks_the_reading_of_a_name(text: str) -> None:
    for device in (device_of_id(text), device_of_claim(text, (text,))):
        assert device is None or device != HeldDevice()


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("gpu-0", HeldDevice(index=0)),
        ("gpu-15", HeldDevice(index=15)),
        (
            "gpu-0-mig-1g10gb-19-2",
            HeldDevice(index=0, mig_profile="1g.10gb", mig_start=2),
        ),
        (
            "gpu-3-mig-1g10gb-me-20-0",
            HeldDevice(index=3, mig_profile="1g.10gb+me", mig_start=0),
        ),
        (
            "gpu-3-mig-1c3g40gb-9-4",
            HeldDevice(index=3, mig_profile="1c.3g.40gb", mig_start=4),
        ),
        ("gpu-0-mig-9-4-4", HeldDevice(index=0, mig_start=4)),  # profile id, start, size
        ("gpu-0-mig-novelty-19-2", HeldDevice(index=0, mig_start=2)),
    ],
)
def test_a_claimed_device_is_read_from_its_name(name: str, held: HeldDevice) -> None:
    assert device_of_claim(name) == held
    assert device_of_claim(name, (f"k8s.gpu.nvidia.com/claim={HEX}-{name}",)) == held


@pytest.mark.parametrize(
    "name", ["gpu-vfio-0", "gpu-0-mig", "gpu-0-mig-2", "channel-0", "gpu-", ""]
)
def test_a_claimed_device_that_is_not_numbered_like_boards_has_no_index(name: str) -> None:
    assert device_of_claim(name) is None


def test_the_uuid_comes_from_the_first_cdi_name_that_has_one() -> None:
    names = ("k8s.gpu.nvidia.com/claim=x-gpu-2", f"nvidia.com/gpu=GPU-{HEX.upper()}")
    assert device_of_claim("gpu-2", names) == HeldDevice(gpu_uuid=GPU, index=2)
    assert device_of_claim("channel", names) == HeldDevice(gpu_uuid=GPU)
    mig = device_of_claim("gpu-2-mig-1g10gb-19-2", (f"nvidia.com/gpu={MIG}",))
    assert mig == HeldDevice(mig_uuid=MIG, index=2, mig_profile="1g.10gb", mig_start=2)


def test_a_claims_own_uid_is_not_taken_for_a_devices() -> None:
    assert device_of_claim("gpu-vfio-0", (f"k8s.gpu.nvidia.com/claim={HEX}-gpu-vfio-0",)) is None
    assert device_of_claim("other", (f"vendor/class=my-{HEX}",)) is None


@pytest.mark.parametrize(
    ("text", "is_mig"), [(GPU, False), ("nvidia0", False), (MIG, True), ("nvidia0/gi0", True)]
)
def test_a_slice_is_never_taken_for_the_whole_board(text: str, is_mig: bool) -> None:
    device = device_of_id(text)
    assert device is not None
    assert device.is_mig is is_mig


def test_a_claimed_slice_is_told_from_its_board_even_where_it_is_not_known_which_slice() -> None:
    device = device_of_claim("gpu-0-mig-9-0-4")
    assert device is not None
    assert device.is_mig
