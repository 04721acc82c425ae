"""A kubelet that is not there, not allowed, hung, wrong or dying costs one reading and says why."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from podresources_server import (
    always,
    container,
    device,
    failing,
    field,
    kubelet,
    listener,
    pod,
    silence,
)

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.podresources import wire
from seedance_obs.sources.podresources.source import PodResourcesSource
from tests.privileges import as_nobody

GPU = "GPU-8dcd427f-1a2b-4c5d-8e9f-0a1b2c3d4e5f"
PODS = pod("p", container("c", device("nvidia.com/gpu", GPU)))
HTTP2_SETTINGS = b"\0\0\0\4\0\0\0\0\0"  # an empty SETTINGS frame, a server's first word


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(SourceUnavailableError) as caught:
        PodResourcesSource(path, **({"timeout_seconds": 30} | options)).read()
    message = str(caught.value)
    assert str(path) in message
    return message


def test_a_node_without_a_kubelet_is_told_what_to_check(path: Path) -> None:
    message = refusal(path)
    assert "No such file or directory" in message
    assert "mounted" in message
    assert "mounted" in refusal(path / "below" / "kubelet.sock")


def test_a_file_that_is_no_socket_is_refused(path: Path) -> None:
    path.write_text("")
    assert "is not a socket" in refusal(path)


def test_a_socket_that_a_dead_kubelet_left_behind_is_told_from_none(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert "nobody listens there" in refusal(path)


def test_a_path_too_long_for_a_socket_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    with kubelet(tmp_path / "k.sock", List=always(PODS)):
        folder.symlink_to(tmp_path)
        assert "longer than the 107 bytes" in refusal(folder / "k.sock")


@pytest.mark.parametrize("locked", ["socket", "folder"])
def test_a_socket_that_this_user_may_not_use_says_so(locked: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="kubelet-"))  # tmp_path is closed to other users
    path = folder / "k.sock"
    try:
        with kubelet(path, List=always(PODS)):
            path.chmod(0o000 if locked == "socket" else 0o777)
            folder.chmod(0o000 if locked == "folder" else 0o755)
            with as_nobody():
                message = refusal(path)
            folder.chmod(0o700)
        assert "Permission denied" in message
        assert "run as root" in message
    finally:
        shutil.rmtree(folder)


def test_a_kubelet_that_hangs_is_given_up_at_the_deadline(path: Path) -> None:
    done = threading.Event()

    def hang(_request: bytes, _context: object) -> bytes:
        done.wait(60)
        return PODS

    with kubelet(path, List=hang):
        message = refusal(path, timeout_seconds=0.2)
        done.set()
    assert "did not answer within 0.2 s" in message


def test_a_listener_that_never_speaks_is_given_up_at_the_deadline(path: Path) -> None:
    hung_up = threading.Event()

    def listen(connection: socket.socket) -> None:
        silence(connection)
        hung_up.set()

    with listener(path, listen):
        assert "did not answer within 0.2 s" in refusal(path, timeout_seconds=0.2)
        assert hung_up.wait(9)  # the connection is not left behind


def test_a_hung_kubelet_does_not_hold_up_the_one_that_replaces_it(path: Path) -> None:
    source = PodResourcesSource(path, timeout_seconds=0.2)
    with listener(path, silence), pytest.raises(SourceUnavailableError):
        source.read()
    patient = PodResourcesSource(path, timeout_seconds=30)
    with kubelet(path, List=always(PODS)):
        assert len(patient.read().containers) == 1


def talking(text: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.sendall(text)
        connection.recv(65536)

    return talk


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"hello\r\n",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        b"\xff" * 4096,
        HTTP2_SETTINGS,  # then it hangs up, in the middle of the call
        HTTP2_SETTINGS + b"\0\0\4\1\4\0\0\0\1\xff\xff\xff\xff",  # headers that cannot be unpacked
    ],
)
def test_a_listener_that_does_not_speak_grpc_is_refused(path: Path, text: bytes) -> None:
    with listener(path, talking(text)):
        message = refusal(path)
    assert "broke off or does not speak gRPC" in message
    assert len(message) < 600


@pytest.mark.parametrize(
    "reply",
    [
        b"\xff\xff\xff\xff",
        b"hello world",
        field(1, b"\xff"),
        field(1, field(1, b"\xff\xfe")),  # a name that is not UTF-8
        PODS[:-1],
        field(7, "a message of some other service"),
    ],
)
def test_a_reply_that_is_no_list_of_pods_is_refused(path: Path, reply: bytes) -> None:
    with kubelet(path, List=always(reply)):
        assert "is not pod-resources v1" in refusal(path)


def test_a_kubelet_that_dies_in_the_middle_of_an_answer_costs_one_reading(path: Path) -> None:
    entered, over = threading.Event(), threading.Event()

    def answer(_request: bytes, _context: object) -> bytes:
        entered.set()
        over.wait(60)
        return PODS

    with kubelet(path, List=answer) as server:

        def die() -> None:
            entered.wait(60)
            server.stop(None)

        killer = threading.Thread(target=die)
        killer.start()
        message = refusal(path)
        over.set()
        killer.join()
    assert "broke off" in message or "nobody listens" in message or "No such file" in message


def test_a_kubelet_too_old_for_the_call_is_named_as_such(path: Path) -> None:
    with kubelet(path):
        assert "does not know List" in refusal(path)
        source = PodResourcesSource(path, timeout_seconds=30)
        with pytest.raises(SourceUnavailableError, match=r"does not know Get .*1\.27"):
            source.get("research", "p")
        with pytest.raises(SourceUnavailableError, match="does not know GetAllocatableResources"):
            source.allocatable()


def test_a_call_that_is_switched_off_is_told_from_a_pod_that_is_not_there(path: Path) -> None:
    off = failing(grpc.StatusCode.UNKNOWN, "PodResources API Get method disabled")
    with kubelet(path, Get=off):
        source = PodResourcesSource(path, timeout_seconds=30)
        with pytest.raises(SourceUnavailableError, match="enable its feature gate"):
            source.get("research", "p")


def test_a_reply_over_the_limit_is_refused_with_the_limit(path: Path) -> None:
    with kubelet(path, List=always(PODS * 100)):
        assert "more than 1000 bytes" in refusal(path, reply_limit_bytes=1000)


def test_a_kubelet_that_is_asked_too_often_says_so(path: Path) -> None:
    answer = failing(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
    with kubelet(path, List=answer):
        assert "ask less often" in refusal(path)


def test_any_other_answer_is_passed_on(path: Path) -> None:
    with kubelet(path, List=failing(grpc.StatusCode.DATA_LOSS, "etcd\nis on fire")):
        assert "DATA_LOSS (etcd is on fire)" in refusal(path)


@pytest.mark.parametrize(
    ("module", "package"),
    [("grpc", "grpcio"), ("google.protobuf.descriptor_pool", "protobuf")],
)
def test_a_missing_library_is_named_with_the_way_to_install_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    with kubelet(path, List=always(PODS)):
        monkeypatch.setitem(sys.modules, module, None)  # what Python takes for "not there"
        wire._message_classes.cache_clear()
        with pytest.raises(SourceUnavailableError) as caught:
            PodResourcesSource(path, timeout_seconds=30).read()
    assert f"the package {package}," in str(caught.value)
    assert "pip install 'seedance-obs[kubernetes]'" in str(caught.value)


def run(code: str, path: Path) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    clean = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    return subprocess.Popen([sys.executable, "-c", code, str(path)], text=True, env=clean, **pipes)


NO_KUBELET = """
import sys
from pathlib import Path
from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.podresources.source import PodResourcesSource
try:
    PodResourcesSource(Path(sys.argv[1])).read()
except SourceUnavailableError:
    print(sorted({"grpc", "google.protobuf"} & set(sys.modules)))
"""


def test_a_node_without_a_kubelet_loads_no_library(path: Path) -> None:
    with run(NO_KUBELET, path) as process:
        out, errors = process.communicate(timeout=60)
    assert (out, errors, process.returncode) == ("[]\n", "", 0)


LOUD = """
import sys
from concurrent.futures import ThreadPoolExecutor
from seedance_obs.sources.podresources.wire import grpc_library
try:
    grpc_library().server(ThreadPoolExecutor(1)).add_insecure_port("unix:" + sys.argv[1])
except RuntimeError:
    print("refused")
"""


def test_grpcs_own_log_stays_off_standard_error(path: Path) -> None:
    with run(LOUD, path / "no such folder" / "k.sock") as process:
        out, errors = process.communicate(timeout=60)
    assert (out, errors) == ("refused\n", "")


HANGING = """
import sys, threading
from pathlib import Path
from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.podresources.source import PodResourcesSource
folder = Path(sys.argv[1])
for name in ("left.sock", "text.sock", "junk.sock"):
    try:
        PodResourcesSource(folder / name).read()
    except SourceUnavailableError:
        print("refused")
source = PodResourcesSource(folder / "hung.sock", timeout_seconds=600)
threading.Thread(target=source.read, daemon=True).start()
sys.stdin.readline()
"""


def test_nothing_is_written_to_standard_error_and_a_hung_call_lets_the_process_go(
    tmp_path: Path,
) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))
    asked, over = threading.Event(), threading.Event()

    def hang(_request: bytes, _context: object) -> bytes:
        asked.set()
        over.wait(60)
        return b""

    with (
        listener(tmp_path / "text.sock", talking(b"hello\r\n")),
        kubelet(tmp_path / "junk.sock", List=always(b"\xff\xff")),
        kubelet(tmp_path / "hung.sock", List=hang),
        run(HANGING, tmp_path) as process,
    ):
        assert asked.wait(60)
        out, errors = process.communicate("\n", timeout=60)
        over.set()
    assert (out, errors, process.returncode) == ("refused\n" * 3, "", 0)


def test_files_threads_and_memory_stay_flat_over_many_readings(path: Path) -> None:
    def read(times: int) -> None:
        for _ in range(times):
            source = PodResourcesSource(path, timeout_seconds=30)
            with suppress(SourceUnavailableError):
                source.read()
            source.close()

    def series() -> None:
        with kubelet(path, List=always(PODS * 100)):
            read(50)
        with listener(path, talking(b"hello\r\n")):
            read(50)
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        read(50)
        path.unlink()
        read(50)

    series()
    before = held()
    series()
    growth = [now - then for now, then in zip(held(), before, strict=True)]
    assert growth[0] < 20  # open files: gRPC closes some of them a moment later
    assert growth[1] < 10  # threads
    assert growth[2] < 4096  # KiB


def held() -> tuple[int, int, int]:
    status = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), int(status)
