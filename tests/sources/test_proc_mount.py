"""What a /proc shows: the kernel's own, folders of files, and every spelling of hidepid."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from seedance_obs.sources.proc_mount import ProcMount, read_proc_mount

REPOSITORY = Path(__file__).parent.parent.parent
WHOLE = "         0          0 4294967295\n"
PTRACE = "0000000000080000"


def own(
    folder: Path,
    options: str,
    *,
    capabilities: str = "0000000000000000",
    groups: str = "",
    uid_map: str = WHOLE,
) -> Path:
    """What the kernel would tell of this process, were its /proc mounted with these options."""
    device = os.stat("/proc").st_dev
    mount = f"22 27 {os.major(device)}:{os.minor(device)} / /proc rw,relatime shared:5 - proc proc"
    (folder / "mountinfo").write_text(f"1 0 254:0 / / rw - ext4 /dev/vda rw\n{mount} {options}\n")
    status = f"Gid:\t0\t0\t0\t99\nGroups:\t{groups} \nCapEff:\t{capabilities}\n"
    (folder / "status").write_text(status)
    (folder / "uid_map").write_text(uid_map)
    return folder


def test_the_kernels_own_proc_is_told_from_a_folder(tmp_path: Path) -> None:
    assert read_proc_mount("/").procfs
    (tmp_path / "proc").mkdir()
    assert read_proc_mount(tmp_path) == ProcMount(procfs=False, hidepid="off", shows_all=True)


def test_a_proc_is_known_under_any_path(tmp_path: Path) -> None:
    (tmp_path / "with space\\040").mkdir()
    (tmp_path / "with space\\040/proc").symlink_to("/proc")
    assert read_proc_mount(tmp_path / "with space\\040") == read_proc_mount("/")


def test_a_proc_that_is_not_among_our_mounts_proves_nothing(tmp_path: Path) -> None:
    assert read_proc_mount("/", tmp_path) == ProcMount(procfs=True)
    (tmp_path / "mountinfo").write_text("22 27 9999:9 / /proc rw - proc proc rw,hidepid=off\n")
    assert read_proc_mount("/", tmp_path).shows_all is None


def test_a_folder_inside_a_proc_is_none(tmp_path: Path) -> None:
    (tmp_path / "proc").symlink_to("/proc/sys")
    assert not read_proc_mount(tmp_path).procfs


def test_where_there_is_no_proc_nothing_is_proven(tmp_path: Path) -> None:
    assert read_proc_mount(tmp_path) == ProcMount(procfs=False)
    assert read_proc_mount(tmp_path).shows_all is None


def test_this_kernel_counts_descriptors_if_its_own_folder_says_so() -> None:
    held = os.open("/", os.O_RDONLY)
    counted = os.stat("/proc/self/fd").st_size > 0
    os.close(held)
    assert read_proc_mount("/").counts_fds is counted


@pytest.mark.parametrize(
    ("options", "hidepid", "shows_all"),
    [
        ("rw", "off", True),
        ("rw,hidepid=0", "off", True),
        ("rw,hidepid=off", "off", True),
        ("rw,gid=5,hidepid=1", "noaccess", True),
        ("rw,hidepid=noaccess", "noaccess", True),
        ("rw,hidepid=2", "invisible", False),
        ("rw,gid=5,hidepid=invisible", "invisible", False),
        ("rw,hidepid=4", "ptraceable", False),
        ("rw,hidepid=ptraceable,subset=pid", "ptraceable", False),
        ("rw,hidepid=unknown", None, None),
        ("rw,hidepid=3", None, None),
    ],
)
def test_hidepid_is_read_in_every_spelling(
    tmp_path: Path, options: str, hidepid: str | None, shows_all: bool | None
) -> None:
    mount = read_proc_mount("/", own(tmp_path, options))
    assert (mount.procfs, mount.hidepid, mount.shows_all) == (True, hidepid, shows_all)


@pytest.mark.parametrize("hidepid", ["invisible", "2", "ptraceable", "4"])
def test_who_may_trace_all_sees_all(tmp_path: Path, hidepid: str) -> None:
    told = own(tmp_path, f"rw,hidepid={hidepid}", capabilities=PTRACE)
    assert read_proc_mount("/", told).shows_all is True


@pytest.mark.parametrize(
    ("options", "shows_all"),
    [
        ("rw,gid=5,hidepid=invisible", True),
        ("rw,gid=99,hidepid=invisible", True),
        ("rw,gid=55,hidepid=invisible", False),
        ("rw,hidepid=invisible", True),  # without gid= it is root's group, 0
        ("rw,gid=5,hidepid=ptraceable", False),
    ],
)
def test_the_group_of_the_mount_sees_what_is_invisible(
    tmp_path: Path, options: str, shows_all: bool
) -> None:
    told = own(tmp_path, options, groups="0 5 7")
    assert read_proc_mount("/", told).shows_all is shows_all


def test_rights_inside_a_user_namespace_prove_nothing(tmp_path: Path) -> None:
    mapped = "         0     100000      65536\n"
    told = own(tmp_path, "rw,hidepid=invisible", capabilities=PTRACE, uid_map=mapped)
    assert read_proc_mount("/", told).shows_all is None


def test_unreadable_rights_prove_nothing(tmp_path: Path) -> None:
    told = own(tmp_path, "rw,hidepid=invisible", capabilities=PTRACE)
    (told / "status").unlink()
    assert read_proc_mount("/", told).shows_all is None


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that any user may enter, as a test's own may not be."""
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        Path(folder, "proc").mkdir()
        yield Path(folder)


LOOK = """
import json, os, sys
from seedance_obs.sources.proc_mount import read_proc_mount
from seedance_obs.sources.process_probe import ProcessProbe
root, group = sys.argv[1], int(sys.argv[2])
try:
    os.setgroups([]); os.setresgid(group, group, group); os.setresuid(65534, 65534, 65534)
except OSError:
    sys.exit(9)
mount = read_proc_mount(root)
outcomes = dict(ProcessProbe(root).read([1, 2**22 + 1]).outcomes)
print(json.dumps([mount.hidepid, mount.shows_all, outcomes]))
"""


def look_as_nobody(folder: Path, options: str, group: int) -> list[object]:
    """What a user without rights makes of a /proc that is really mounted so."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a /proc is mounted by root, in a mount namespace")
    mount = f'mount -t proc -o {options} proc {folder}/proc || exit 9; exec "$@"'
    look = [sys.executable, "-c", LOOK, f"{folder}", f"{group}"]
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, "sh", *look],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode in (1, 9) and "Traceback" not in ran.stderr:
        pytest.skip(f"no /proc can be mounted here, or no rights laid down: {ran.stderr.strip()}")
    found = json.loads(ran.stdout)
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("options", "group", "expected"),
    [
        ("hidepid=0", 65534, ["off", True, {"read": 1, "gone": 1}]),
        ("hidepid=1", 65534, ["noaccess", True, {"no_permission": 1, "gone": 1}]),
        ("hidepid=2", 65534, ["invisible", False, {"hidden": 2}]),
        ("hidepid=2", 0, ["invisible", True, {"read": 1, "gone": 1}]),
        ("hidepid=2,gid=12", 0, ["invisible", False, {"hidden": 2}]),
        ("hidepid=2,gid=12", 12, ["invisible", True, {"read": 1, "gone": 1}]),
        ("hidepid=4", 0, ["ptraceable", False, {"hidden": 2}]),
    ],
)
def test_a_really_mounted_proc_hides_what_we_say_it_hides(
    open_folder: Path, options: str, group: int, expected: list[object]
) -> None:
    if not read_proc_mount("/").counts_fds and "read" in f"{expected}":
        pytest.skip("before Linux 6.2 descriptors of others are unknown")
    assert look_as_nobody(open_folder, options, group) == expected
