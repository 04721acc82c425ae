import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.topology.model import UNKNOWN, UNSUPPORTED, Device
from seedance_obs.topology.readers import nvlink_status
from tests.topology import index_of_samples as index

UUID = "GPU-5269b708-678a-b1a8-60f0-c90406537486"
SPEEDS = [(file, what) for file, what in index.others().items() if re.search(r"\d+ links at", what)]


def sample(file: str):
    return nvlink_status.read(index.text_of(f"other/{file}"))


def only_gpu(text: str) -> Device:
    (gpu,) = nvlink_status.read(text).topology.gpus
    return gpu


@index.needs_samples
@pytest.mark.parametrize(("file", "what"), SPEEDS)
def test_a_sample_has_the_links_and_speeds_of_the_index(file, what):
    links, speed = re.search(r"(\d+) links at ([\d.]+) GB/s", what).groups()
    text = index.text_of(f"other/{file}")
    gpus = int(re.search(r"(\d+) GPUs", what)[1]) if "GPUs" in what else 1
    reading = nvlink_status.read(text)
    assert nvlink_status.recognises(text)
    assert reading.format == "nvlink-s"
    assert len(reading.topology.gpus) == gpus
    for gpu in reading.topology.gpus:
        assert [port.port for port in gpu.nvlinks] == list(range(int(links)))
        assert {port.mb_per_second for port in gpu.nvlinks} == {1000 * float(speed)}
        assert {port.active for port in gpu.nvlinks} == {True}
        assert isinstance(gpu.uuid, str)
    assert bool(reading.warnings) == ("missing" in what)


@index.needs_samples
def test_links_above_the_first_gpu_are_nobodys():
    reading = sample("nvlink-s-2x-rtx3090.txt")
    assert [(gpu.name, gpu.index) for gpu in reading.topology.gpus] == [("GPU1", 1)]
    assert reading.warnings == ("links 1 to 3: the line of their GPU is missing",)


@index.needs_samples
def test_inactive_links_have_no_speed():
    (gpu,) = sample("nvlink-s-v100-two-links-inactive.txt").topology.gpus
    assert {port.port for port in gpu.nvlinks if port.active is False} == {3, 5}
    assert {port.mb_per_second for port in gpu.nvlinks if not port.active} == {UNKNOWN}
    assert gpu.uuid is UNKNOWN
    assert gpu.model == "Tesla V100-SXM2-32GB"


@index.needs_samples
@pytest.mark.parametrize(
    ("file", "nvlinks", "warning"),
    [
        ("nvlink-s-h200-mig-not-supported.txt", UNKNOWN, "MIG"),
        ("nvlink-s-l40s-no-nvlink.txt", UNSUPPORTED, ""),
        ("nvlink-s-rtx2080s-inactive.txt", UNKNOWN, "inactive"),
    ],
)
def test_a_sentence_instead_of_links_says_why(file, nvlinks, warning):
    assert nvlink_status.recognises(index.text_of(f"other/{file}"))
    reading = sample(file)
    assert [gpu.nvlinks for gpu in reading.topology.gpus] == [nvlinks]
    assert len(reading.warnings) == bool(warning)
    assert all(warning in sentence for sentence in reading.warnings)


@index.needs_samples
def test_far_ends_are_canonical_addresses_and_ports():
    reading = sample("nvlink-R-a100-nvswitch-excerpt.txt")
    (gpu,) = reading.topology.gpus
    assert reading.format == "nvlink-R"
    assert gpu.name == "GPU5"
    assert [(port.port, port.remote, port.remote_port) for port in gpu.nvlinks] == [
        (0, "0008:00:00.0", 32),
        (1, "0008:00:00.0", 33),
    ]
    assert {port.active for port in gpu.nvlinks} == {UNKNOWN}


def test_speeds_and_far_ends_of_one_text_are_of_the_same_ports():
    text = (
        f"GPU 0: NVIDIA X (UUID: {UUID})\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"
        f"GPU 0: NVIDIA X (UUID: {UUID})\n\t Link 0: Remote Device 0000000A:1B:00.0: Link 4\n"
    )
    first, second = only_gpu(text).nvlinks
    assert (first.active, first.mb_per_second, first.remote) == (True, 25000, "000a:1b:00.0")
    assert (second.active, second.remote_port) == (False, UNKNOWN)


def test_gpus_of_two_hosts_are_not_mixed():
    text = (
        f"GPU 0: NVIDIA X (UUID: {UUID})\n Link 0: 25 GB/s\n"
        f"GPU 0: NVIDIA X (UUID: {UUID[:-1]}0)\n Link 1: 25 GB/s\n"
    )
    assert [port.port for port in only_gpu(text).nvlinks] == [0]
    assert "two hosts" in nvlink_status.read(text).warnings[0]


@pytest.mark.parametrize("far", ["fffffff:ffff:ff", "", "0000:zz:00.0"])
def test_a_far_end_that_is_no_address_is_unknown(far):
    text = f"GPU 0: X (UUID: {UUID})\n Link 0: Remote Device {far or '?'}: Link 3\n"
    (port,) = only_gpu(text).nvlinks
    assert (port.remote, port.remote_port) == (UNKNOWN, 3)


def test_a_link_line_of_another_report_is_unreadable_and_not_recognised():
    text = f"GPU 0: X (UUID: {UUID})\n Link 0: Replay Errors: 0\n Link 1: Replay Errors: 0\n"
    reading = nvlink_status.read(text)
    assert not nvlink_status.recognises(text)
    assert "GPU0: links 0 to 1: unreadable" in reading.warnings


@given(st.lists(st.sampled_from([25.0, 26.562, 25.781, None]), min_size=1, max_size=18), st.data())
def test_a_cut_text_holds_no_untrue_value(speeds, data):
    lines = [f"\t Link {at}: {f'{s:g} GB/s' if s else '<inactive>'}" for at, s in enumerate(speeds)]
    far = [
        f"\t Link {at}: Remote Device 00000000:{at:02X}:00.0: Link {at + 9}"
        for at in range(len(speeds))
    ]
    gpu = f"GPU 12: NVIDIA H100 (UUID: {UUID})"
    text = "\n".join([gpu, *lines, gpu, *far, ""])
    cut = text[: data.draw(st.integers(0, len(text)))]
    for device in nvlink_status.read(cut).topology.gpus:
        assert (device.name, device.index) == ("GPU12", 12)
        assert device.uuid in (UUID, UNKNOWN)
        assert device.model in ("NVIDIA H100", UNKNOWN)
        for port in device.nvlinks if isinstance(device.nvlinks, tuple) else ():
            speed = speeds[port.port]
            assert port.active in (speed is not None, UNKNOWN)
            assert port.mb_per_second in (speed and speed * 1000, UNKNOWN)
            assert port.remote in (f"0000:{port.port:02x}:00.0", UNKNOWN)
            assert port.remote_port in (port.port + 9, UNKNOWN)


@given(st.text(), st.text(st.sampled_from("GPULink 01:<>inactive.GB/s()UUID\n")))
def test_no_text_raises(text, near):
    for each in (text, near):
        reading = nvlink_status.read(each)
        assert reading.topology.devices or reading.warnings


def test_the_number_of_a_far_port_at_the_end_may_be_longer():
    text = f"GPU 0: X (UUID: {UUID})\n Link 0: Remote Device 00000000:01:00.0: Link 3"
    (cut,) = only_gpu(text).nvlinks
    (whole,) = only_gpu(f"{text}\n").nvlinks
    assert (cut.remote, cut.remote_port) == ("0000:01:00.0", UNKNOWN)
    assert (whole.remote, whole.remote_port) == ("0000:01:00.0", 3)
    assert nvlink_status.read(text).warnings == ("GPU0: the text ends in the middle of a line",)


@pytest.mark.parametrize("mark", ["....", "...", "[...]", "[snip]", "\u2026"])
def test_lines_that_are_left_out_are_named(mark):
    text = f"GPU 0: A (UUID: x)\n Link 0: 25 GB/s\n {mark}\nGPU 1: A (UUID: y)\n Link 0: 25 GB/s\n"
    reading = nvlink_status.read(text)
    assert reading.warnings == ("GPU0: lines are left out behind its links",)
    assert [gpu.index for gpu in reading.topology.gpus] == [0, 1]


def test_a_name_without_a_uuid_is_read_if_its_line_is_whole():
    text = "GPU 0: Tesla V100\n Link 0: 25 GB/s\nGPU 1: Tesla V1"
    reading = nvlink_status.read(text)
    assert [gpu.model for gpu in reading.topology.gpus] == ["Tesla V100", UNKNOWN]
    assert "GPU1: its name and UUID cannot be read" in reading.warnings


def test_links_in_an_escaped_string_are_read():
    text = r'{"out": "GPU 0: A (UUID: x)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"}'
    (gpu,) = nvlink_status.read(text).topology.gpus
    assert [port.active for port in gpu.nvlinks] == [True, False]
