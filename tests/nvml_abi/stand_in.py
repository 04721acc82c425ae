"""The stand-in NVML library: compiled with cc, found by child processes.

library = build(folder)
write_state(state, state_of(truth))            # every call of the machine, from state_file
with BindingInChild(environment(library, state)) as nvml:
    nvml.call("nvmlDeviceGetCount")
"""

import os
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def header_folder() -> Path:
    """Where `nvml.h` of the package nvidia-nvml-dev is."""
    try:
        headers = [path for path in files("nvidia-nvml-dev") or () if path.name == "nvml.h"]
    except PackageNotFoundError:
        headers = []
    if not headers:
        pytest.fail("nvidia-nvml-dev is not installed: it belongs to the dev dependencies")
    return Path(str(headers[0].locate())).parent


def build(folder: Path, *, driver: str = "") -> Path:
    """Compile the library into a folder; `driver` may be `OLD_DRIVER` or `NEW_DRIVER`."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail("no C compiler: install gcc, these tests build a library")
    target = folder / "libnvidia-ml.so.1"
    flags = ["-shared", "-fPIC", "-O0", "-pthread", "-Wall", "-Wextra", "-Werror"]
    define = [f"-D{driver}"] if driver else []
    sources = [str(path) for path in sorted(HERE.glob("*.c"))]
    command = [compiler, *flags, *define, f"-I{header_folder()}", "-o", str(target), *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def environment(library: Path, state: Path) -> dict[str, str]:
    """What a child process needs in order to find this library and this state."""
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(library.parent),
        "SEEDANCE_NVML_STATE": str(state),
        "PYTHONPATH": str(ROOT),
    }
