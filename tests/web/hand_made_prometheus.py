"""A real Prometheus over hand-made samples."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Points = list[tuple[float, float]]
Exposition = list[tuple[str, dict[str, str], Points]]


def openmetrics(exposition: Exposition) -> str:
    lines = []
    for name, labels, points in exposition:
        inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
        lines += [f"{name}{{{inside}}} {value!r} {at!r}" for at, value in points]
    return "\n".join([*lines, "# EOF", ""])


def write_blocks(folder: Path, exposition: Exposition) -> Path:
    samples = folder / "samples.txt"
    samples.write_text(openmetrics(exposition))
    blocks = folder / "blocks"
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", samples, blocks]
    subprocess.run(command, check=True, capture_output=True)
    return blocks


@contextmanager
def running_prometheus(folder: Path, blocks: Path) -> Iterator[str]:
    config = folder / "prometheus.yml"
    config.write_text("global: {}\n")
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={blocks}",
        "--storage.tsdb.retention.time=100y",
        "--web.listen-address=127.0.0.1:0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://{_listening_address(process)}"
        finally:
            process.terminate()


def _listening_address(process: subprocess.Popen[str]) -> str:
    address, ready = "", False  # said in either order
    for line in process.stderr or ():
        if '"Listening on"' in line:
            address = line.rsplit("address=", 1)[1].strip()
        ready = ready or "Server is ready" in line
        if address and ready:
            return address
    raise RuntimeError("prometheus ended before it was ready")
