"""What a container may use: quota files, MIG, MPS and HAMi, and what is wrong with them."""

import logging
import os
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedance_obs.sources import quota_reader
from seedance_obs.sources.hami_region import HEAD_BYTES, parse_region
from seedance_obs.sources.quota_reader import QuotaReader
from seedance_obs.sources.quota_variables import hami_quotas, limiting_variables, mps_quotas
from seedance_obs.sources.quotas import AtLimit, Quota, mig_quota, over, parse_gpu_quota
from seedance_obs.sources.readings import MigReadings

GIB = 2**30
UUID = "GPU-5f9a1b2c-0000-1111-2222-333344445555"
OTHER = "GPU-00000000-0000-1111-2222-333344445555"


@pytest.mark.parametrize(
    ("text", "memory", "share"),
    [
        ("3G:40%", 3 * GIB, 0.4),
        ("  3G:40%\n", 3 * GIB, 0.4),
        ("3 GiB : 40 %\n", 3 * GIB, 0.4),
        ("3GB:40%", 3 * GIB, 0.4),
        ("3072M:40%", 3 * GIB, 0.4),
        ("3145728k:40%", 3 * GIB, 0.4),
        ("3221225472:40%", 3 * GIB, 0.4),
        ("1.5G:12.5%", 3 * GIB // 2, 0.125),
        ("0.1K:100%", 102, 1.0),
        ("3G:", 3 * GIB, None),
        ("3G", 3 * GIB, None),
        (":40%", None, 0.4),
        ("40%", None, 0.4),
        ("max:40%", None, 0.4),
        ("3G:max", 3 * GIB, None),
        ("max", None, None),
        ("max:max", None, None),
        ("0:0%", 0, 0.0),
    ],
)
def test_a_quota_file_says_memory_and_share(text, memory, share):
    assert parse_gpu_quota(text) == (memory, share)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", ":", "3G:40", "3G:0.4", "3G:101%", "-3G:40%", "3G:-4%", "3X:4%", "3G:4%:5"),
        *("3G 4%", "3G:40%\n4G:50%", "nan:4%", "1e9:4%", "9E:1%", "9" * 21, "8388608T:1%"),
        *("٣G:4%", "G:4%"),
    ],
)
def test_what_is_no_quota_is_refused(text):
    with pytest.raises(ValueError, match="wanted"):
        parse_gpu_quota(text)


@given(st.integers(0, 2**40), st.sampled_from(["", "K", "M", "G"]), st.integers(0, 100))
def test_every_quota_of_the_form_is_read_exactly(size, unit, percent):
    scale = 1024 ** ["", "K", "M", "G"].index(unit)
    if size * scale < 2**63:
        assert parse_gpu_quota(f"{size}{unit}:{percent}%") == (size * scale, percent / 100)


@pytest.mark.parametrize(
    ("memory", "share", "expected"),
    [
        (3 * GIB, 0.39, AtLimit(memory=True, sm=False)),
        (3 * GIB - 1, 0.40, AtLimit(memory=False, sm=True)),
        (None, 0.5, AtLimit(memory=None, sm=True)),
        (4 * GIB, None, AtLimit(memory=True, sm=None)),
    ],
)
def test_a_limit_is_reached_where_as_much_is_used(memory, share, expected):
    assert over(Quota("gpu-quota", 3 * GIB, 0.4), memory, share) == expected


def test_without_a_limit_nothing_is_known_to_be_reached():
    assert over(Quota("gpu-quota"), 3 * GIB, 1.0) == AtLimit(memory=None, sm=None)


def test_near_a_limit_counts_where_slack_is_given():
    quota = Quota("hami", 100, 0.5)
    assert over(quota, 98, 0.49, slack_ratio=0.02) == AtLimit(memory=True, sm=True)
    assert over(quota, 97, 0.48, slack_ratio=0.02) == AtLimit(memory=False, sm=False)


def test_a_mig_instance_is_limited_to_its_memory_and_slices():
    instance = MigReadings(3, slices=2, values={"memory_total_bytes": 20.0 * GIB})
    assert mig_quota(instance, 7) == Quota("mig", 20 * GIB, 2 / 7)
    assert mig_quota(MigReadings(3), 7) == Quota("mig")
    assert mig_quota(instance, None) == Quota("mig", 20 * GIB)


def test_of_an_environment_only_the_limits_are_kept():
    environ = (
        b"PATH=/bin\0AWS_SECRET_ACCESS_KEY=x\0CUDA_DEVICE_SM_LIMIT=30\0=\0CUDA_DEVICE_SM_LIMIT=9"
    )
    assert limiting_variables(environ) == {"CUDA_DEVICE_SM_LIMIT": "30"}
    assert limiting_variables(b"CUDA_DEVICE_MEMORY_LIMIT_0=\xff\0CUDA_DEVICE_MEMORY_LIMIT_x=1") == {
        "CUDA_DEVICE_MEMORY_LIMIT_0": "�"
    }
    assert limiting_variables(b"") == {}


THREADS, PINNED = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"


@pytest.mark.parametrize(
    ("variables", "quotas"),
    [
        ({}, ()),
        ({THREADS: "25"}, (Quota("mps", sm_ratio=0.25),)),
        ({THREADS: "12.5"}, (Quota("mps", sm_ratio=0.125),)),
        ({THREADS: "0"}, ()),
        ({THREADS: "101"}, ()),
        ({THREADS: "lots"}, ()),
        ({PINNED: "0=8G"}, (Quota("mps", 8 * GIB, gpu="0"),)),
        ({PINNED: "0=512MB", THREADS: "50"}, (Quota("mps", GIB // 2, 0.5, gpu="0"),)),
        ({PINNED: "0=1G,1=1024M"}, (Quota("mps", GIB),)),
        ({PINNED: "0=1G, 1=2G"}, (Quota("mps", GIB, gpu="0"), Quota("mps", 2 * GIB, gpu="1"))),
        ({PINNED: f"{UUID}=1G"}, (Quota("mps", GIB, gpu=UUID),)),
        (
            {PINNED: "0=1G,1=2G", "CUDA_VISIBLE_DEVICES": f"{UUID},GPU-0000"},
            (Quota("mps", GIB, gpu=UUID), Quota("mps", 2 * GIB, gpu="GPU-0000")),
        ),
        ({PINNED: "0=1G", "CUDA_VISIBLE_DEVICES": "3"}, (Quota("mps", GIB, gpu="0"),)),
        ({PINNED: "1G"}, ()),
        ({PINNED: "x=1G,0=big,,="}, ()),
    ],
)
def test_mps_limits_come_from_its_variables(variables, quotas):
    assert mps_quotas(variables) == quotas


MEMORY, SM = "CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_SM_LIMIT"


@pytest.mark.parametrize(
    ("variables", "quotas"),
    [
        ({}, ()),
        ({MEMORY: "1g", SM: "30"}, (Quota("hami", GIB, 0.3),)),
        ({f"{MEMORY}_0": "3000m", SM: "50"}, (Quota("hami", 3000 * 2**20, 0.5, gpu="0"),)),
        ({f"{MEMORY}_0": "1g", f"{MEMORY}_1": "1024m"}, (Quota("hami", GIB),)),
        (
            {f"{MEMORY}_0": "1g", MEMORY: "2g", f"{SM}_1": "20", SM: "40"},
            (Quota("hami", GIB, 0.4, gpu="0"), Quota("hami", 2 * GIB, 0.2, gpu="1")),
        ),
        ({MEMORY: "1g", SM: "100"}, (Quota("hami", GIB),)),
        ({MEMORY: "1g", f"{SM}_0": "100", SM: "40"}, (Quota("hami", GIB, gpu="0"),)),
        ({MEMORY: "0", SM: "0"}, ()),
        (
            {MEMORY: "1g", SM: "40", "GPU_CORE_UTILIZATION_POLICY": "DISABLE"},
            (Quota("hami", GIB),),
        ),
        ({MEMORY: "1g", "CUDA_DISABLE_CONTROL": "true"}, ()),
        ({MEMORY: "much"}, ()),
    ],
)
def test_hami_limits_come_from_its_variables(variables, quotas):
    assert hami_quotas(variables) == quotas


def test_a_quota_holds_on_the_board_that_it_names():
    assert Quota("mps").holds_on(UUID, only=False)
    assert Quota("mps", gpu="GPU-5f9a").holds_on(UUID, only=False)
    assert not Quota("mps", gpu=OTHER).holds_on(UUID, only=True)
    assert Quota("mps", gpu="0").holds_on(UUID, only=True)
    assert not Quota("mps", gpu="0").holds_on(UUID, only=False)
    assert not Quota("mps", gpu="1").holds_on(UUID, only=True)


def region(
    *devices: tuple[str, int, int],
    magic: int = 19920718,
    version: tuple[int, int] = (1, 2),
    count: int | None = None,
) -> bytes:
    """The head of a region, laid out field by field as HAMi-core's structure is."""
    padded = [*devices, *[("", 0, 0)] * (16 - len(devices))]
    head = struct.pack("<iIIi", magic, *version, 1)  # flag, major, minor, sm_init_flag
    head += struct.pack("<Q", 4711) + b"\1" * 32  # owner_pid, sem
    head += struct.pack("<Q", len(devices) if count is None else count)
    head += b"".join(uuid.encode().ljust(96, b"\0") for uuid, _, _ in padded)
    head += struct.pack("<16Q", *(memory for _, memory, _ in padded))
    return head + struct.pack("<16Q", *(percent for _, _, percent in padded)) + b"\2" * 99


def test_a_hami_region_has_the_limits_of_each_device_by_uuid():
    assert parse_region(region((UUID, GIB, 30), (OTHER, 2 * GIB, 100))) == (
        Quota("hami", GIB, 0.3, gpu=UUID),
        Quota("hami", 2 * GIB, gpu=OTHER),
    )
    assert parse_region(region((UUID, 0, 0), ("x", 1, 1))) == ()
    assert parse_region(region((UUID, 2**63, 5), version=(1, 1))) == (
        Quota("hami", None, 0.05, gpu=UUID),
    )


@pytest.mark.parametrize(
    "head",
    [
        b"",
        region((UUID, GIB, 30))[: HEAD_BYTES - 1],
        region((UUID, GIB, 30), magic=0),
        region((UUID, GIB, 30), version=(1, 3)),
        region((UUID, GIB, 30), version=(2, 1)),
        region((UUID, GIB, 30), count=17),
    ],
)
def test_a_region_of_another_layout_is_none(head):
    assert parse_region(head) is None


@given(st.binary(max_size=2000))
def test_no_region_breaks_its_reader(content):
    assert parse_region(content) is None
    for quota in parse_region(region((UUID, GIB, 30))[:1600] + content.ljust(256, b"\7")) or ():
        assert quota.sm_ratio is None or 0 < quota.sm_ratio < 1


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reader(tmp_path: Path, clock: Clock) -> QuotaReader:
    cgroups = tmp_path / "sys/fs/cgroup"
    cgroups.mkdir(parents=True)
    (cgroups / "cgroup.controllers").write_text("cpu memory\n")
    return QuotaReader(tmp_path, clock=clock)


def put(root: Path, cgroup: str, text: str, *, changed_at: int = 1000) -> Path:
    file = root / "sys/fs/cgroup" / cgroup.strip("/") / "cgroup.gpu-quota"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (0, changed_at))
    return file


def start(root: Path, pid: int, environ: bytes) -> Path:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "environ").write_bytes(environ)
    return folder / "environ"


POD = "/kubepods.slice/pod1/cri-1.scope"


def test_a_quota_file_holds_for_its_cgroup_and_all_below(reader, tmp_path):
    put(tmp_path, "/kubepods.slice/pod1", "3G:40%\n", changed_at=1234)
    quota = (Quota("gpu-quota", 3 * GIB, 0.4, changed_at=1234.0),)
    assert reader.quotas(1, 1, POD) == quota
    assert reader.quotas(2, 1, "/kubepods.slice/pod1") == quota
    assert reader.quotas(3, 1, "/kubepods.slice") == ()
    assert reader.quotas(4, 1, "/kubepods.slice/pod2") == ()


def test_the_smallest_limit_on_the_way_up_holds_and_the_last_change_counts(reader, tmp_path):
    put(tmp_path, "/", "max:90%", changed_at=50)
    put(tmp_path, "/kubepods.slice", "2G:50%", changed_at=300)
    put(tmp_path, POD, "3G:40%", changed_at=200)
    assert reader.quotas(1, 1, POD) == (Quota("gpu-quota", 2 * GIB, 0.4, changed_at=300.0),)


def test_a_file_that_limits_nothing_still_tells_its_change(reader, tmp_path):
    put(tmp_path, POD, "max", changed_at=7)
    assert reader.quotas(1, 1, POD) == (Quota("gpu-quota", changed_at=7.0),)


def test_with_cgroup_v1_each_hierarchy_is_looked_at(tmp_path, clock):
    put(tmp_path, f"memory{POD}", "3G", changed_at=5)
    put(tmp_path, f"devices{POD}", "40%", changed_at=6)
    (tmp_path / "sys/fs/cgroup/alias").symlink_to("memory")
    reader = QuotaReader(tmp_path, clock=clock)
    assert reader.quotas(1, 1, POD) == (Quota("gpu-quota", 3 * GIB, 0.4, changed_at=6.0),)


def test_a_changed_quota_is_seen_after_the_refresh_and_not_read_before(reader, tmp_path, clock):
    file = put(tmp_path, POD, "3G:40%")
    before = reader.quotas(1, 1, POD)
    put(tmp_path, POD, "1G:10%", changed_at=2000)
    assert reader.quotas(1, 1, POD) == before
    clock.now += 5.1
    assert reader.quotas(1, 1, POD) == (Quota("gpu-quota", GIB, 0.1, changed_at=2000.0),)
    file.unlink()
    clock.now += 5.1
    assert reader.quotas(1, 1, POD) == ()


def test_what_is_told_is_never_older_than_the_refresh(reader, tmp_path, clock):
    put(tmp_path, "/a", "3G")
    reader.quotas(1, 1, "/a/b")
    put(tmp_path, "/a", "2G")
    clock.now += 2.4
    reader.quotas(2, 1, "/a/c")  # put together of what was read for its neighbour
    clock.now += 2.4
    (quota,) = reader.quotas(2, 1, "/a/c")
    clock.now += 0.3
    (later,) = reader.quotas(2, 1, "/a/c")
    assert (quota.memory_bytes, later.memory_bytes) == (3 * GIB, 2 * GIB)


def test_a_broken_quota_file_costs_itself_and_is_logged_when_it_starts_and_ends(
    reader, tmp_path, clock, caplog
):
    caplog.set_level(logging.INFO, "seedance_obs.sources.quota_reader")
    put(tmp_path, "/kubepods.slice", "5G", changed_at=9)
    put(tmp_path, POD, "three gigs")
    for pid in range(3):
        assert reader.quotas(pid, 1, POD) == (Quota("gpu-quota", 5 * GIB, changed_at=9.0),)
        clock.now += 9
    (line,) = caplog.messages
    assert line.startswith("event=gpu_quota_unreadable folder=")
    assert "found 'three gigs'" in line
    put(tmp_path, POD, "3G")
    (quota,) = reader.quotas(4, 1, POD)
    assert quota.memory_bytes == 3 * GIB
    assert len(caplog.messages) == 2
    assert caplog.messages[1].startswith("event=gpu_quota_recovered folder=")


def test_bytes_that_are_no_text_a_folder_and_a_pipe_are_no_quota(reader, tmp_path):
    put(tmp_path, "/a", "").write_bytes(b"\xff\xfe")
    (tmp_path / "sys/fs/cgroup/b/cgroup.gpu-quota").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/c").mkdir()
    os.mkfifo(tmp_path / "sys/fs/cgroup/c/cgroup.gpu-quota")
    put(tmp_path, "/d", "3G").rename(tmp_path / "real")
    (tmp_path / "sys/fs/cgroup/d/cgroup.gpu-quota").symlink_to(tmp_path / "real")
    for cgroup in ("/a", "/b", "/c", "/d"):
        assert reader.quotas(1, 1, cgroup) == ()


@pytest.mark.parametrize("cgroup", [None, "", "/..", "/../kubepods.slice/pod1", "/a/../b"])
def test_a_cgroup_that_is_not_known_or_hidden_has_no_quota(reader, tmp_path, cgroup):
    put(tmp_path, "/", "1G")
    put(tmp_path, "/kubepods.slice/pod1", "1G")
    put(tmp_path, "/b", "1G")
    assert reader.quotas(1, 1, cgroup) == ()


def test_a_host_without_any_of_it_has_no_quotas(tmp_path, clock):
    reader = QuotaReader(tmp_path / "nothing", clock=clock)
    assert reader.quotas(1, 1, POD, pod_uid="u", container="c") == ()


def test_an_environment_is_read_once_for_each_process(reader, tmp_path, clock):
    environ = start(tmp_path, 42, b"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=20\0")
    assert reader.quotas(42, 1, None) == (Quota("mps", sm_ratio=0.2),)
    environ.write_bytes(b"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30\0")
    clock.now += 1000
    assert reader.quotas(42, 1, None) == (Quota("mps", sm_ratio=0.2),)
    assert reader.quotas(42, 2, None) == (Quota("mps", sm_ratio=0.3),)  # the pid is another's now


def test_an_environment_that_may_not_be_read_costs_only_itself(reader, tmp_path, monkeypatch):
    start(tmp_path, 42, b"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=20\0")
    put(tmp_path, POD, "3G")
    real = os.open

    def refused(file: str, flags: int) -> int:
        if file.endswith("environ"):
            raise PermissionError(13, "Permission denied", file)
        return real(file, flags)

    monkeypatch.setattr(quota_reader.os, "open", refused)
    assert [quota.source for quota in reader.quotas(42, 1, POD)] == ["gpu-quota"]


def test_this_very_process_is_read_from_the_real_proc(clock):
    assert isinstance(QuotaReader("/", clock=clock).quotas(os.getpid(), 1, "/"), tuple)


def share(root: Path, name: str, content: bytes) -> Path:
    folder = root / "usr/local/vgpu/containers" / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "4b1d.cache"
    file.write_bytes(content)
    return file


def test_hamis_own_file_goes_before_the_environment(reader, tmp_path, clock):
    start(tmp_path, 42, b"CUDA_DEVICE_MEMORY_LIMIT_0=3g\0CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=20\0")
    mps, own = Quota("mps", sm_ratio=0.2), Quota("hami", 3 * GIB, gpu="0")
    assert reader.quotas(42, 1, None, pod_uid="u", container="c") == (mps, own)
    share(tmp_path, "u_c", region((UUID, 2 * GIB, 30)))
    clock.now += 6
    shared = Quota("hami", 2 * GIB, 0.3, gpu=UUID)
    assert reader.quotas(42, 1, None, pod_uid="u", container="c") == (mps, shared)
    assert reader.quotas(42, 1, None, pod_uid="v", container="c") == (mps, own)


def test_what_a_container_puts_into_its_hami_folder_breaks_nothing(reader, tmp_path):
    folder = share(tmp_path, "u_c", region((UUID, GIB, 30))).parent
    os.mkfifo(folder / "0.cache")
    (folder / "1.cache").symlink_to("/dev/zero")
    (folder / "2.cache").mkdir()
    (folder / "3.cache").write_bytes(b"no region")
    assert [quota.gpu for quota in reader.quotas(1, 1, None, pod_uid="u", container="c")] == [UUID]
    assert reader.quotas(1, 1, None, pod_uid="../containers/u", container="c") == ()


def test_memory_stays_flat_over_many_processes_and_cgroups(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(quota_reader, "_REMEMBERED", 50)
    reader = QuotaReader(tmp_path, clock=clock)

    def live(first: int) -> None:
        for number in range(first, first + 500):
            reader.quotas(number, number, f"/pod{number}", pod_uid=f"{number}", container="c")

    live(0)
    tracemalloc.start()
    try:
        live(500)
        before = held_bytes()
        live(1000)
        assert held_bytes() < before + 20_000
    finally:
        tracemalloc.stop()


def held_bytes() -> int:
    """What was allocated by this package and is held: other threads' memory is not the reader's."""
    own = tracemalloc.Filter(inclusive=True, filename_pattern="*/seedance_obs/sources/*")
    snapshot = tracemalloc.take_snapshot().filter_traces([own])
    return sum(statistic.size for statistic in snapshot.statistics("filename"))


def test_reading_leaves_no_file_open(reader, tmp_path, clock):
    put(tmp_path, POD, "3G")
    start(tmp_path, 42, b"A=b\0")
    share(tmp_path, "u_c", b"")
    reader.quotas(42, 1, POD, pod_uid="u", container="c")
    before = len(os.listdir("/proc/self/fd"))
    for start_ticks in range(50):
        clock.now += 10
        reader.quotas(42, start_ticks, POD, pod_uid="u", container="c")
    # Threads of other tests may open a file meanwhile; fifty rounds that leak leave fifty.
    assert len(os.listdir("/proc/self/fd")) < before + 10
