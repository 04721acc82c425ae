"""What a leak probe of 10,000 processes costs, beside a bare loop and prometheus-process-exporter.

    python -m tests.bench.leak_probe [--processes 2500 5000 10000]

Starts that many real processes that sleep (forks of one small C program, some 100 kB of kernel and
user memory each), so it needs `cc` and as many free pids, and ends them whatever happens. In the
same run and on the same processes: a loop that does no more than `stat` and read `statm`; our
probe, alone and with its bookkeeping of growth, whose values change in each pass, the worst case;
the whole probe of all processes up to its suspects; and Debian's prometheus-process-exporter
(apt-get install prometheus-process-exporter) without smaps and threads, in one group for each name,
which also reads the other processes of the machine and is charged for each of them alike. At last
whole probes of as many others: with many descriptors each, of one workload without a cgroup, and
with a fifth of them suspect.

A time is CPU, user and system: ours the least of several passes, which other load disturbs least;
the exporter's the mean of its scrapes after the first, in which it meets its processes. The budget
is 250 ms for 10,000 processes, and a twelfth of the exporter's. RSS is of the whole process.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

from seedance_obs.config import NodeSettings
from seedance_obs.leaks.growth import GrowthWatch
from seedance_obs.leaks.growth_rules import read_growth_rules
from seedance_obs.sources.process_probe import ProbeReading, ProcessProbe
from tests.bench.pass_cost import Cost, ours, rss_bytes
from tests.bench.sleepers import compiled, sleepers
from tests.bench.whole_leak_probe import INTERVAL_SECONDS, dearer_probes, plain_probe

SCRAPES = 3
PEER = "prometheus-process-exporter"
PEER_CONFIG = 'process_names:\n  - name: "{{.Comm}}"\n    cmdline: [".+"]\n'
PEER_START_SECONDS = 60.0
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


def bare(pids: Sequence[int]) -> Cost:
    """The least that reads both: no outcome, no identity, nothing kept."""
    places = [(f"/proc/{pid}/fd", f"/proc/{pid}/statm") for pid in pids]

    def read_all() -> None:
        for folder, statm in places:
            os.stat(folder)
            descriptor = os.open(statm, os.O_RDONLY)
            os.read(descriptor, 256)
            os.close(descriptor)

    return ours("bare stat and statm", pids, read_all)


def probe(pids: Sequence[int]) -> Cost:
    reader = ProcessProbe("/")
    return ours("probe", pids, lambda: reader.read(pids))


def probe_and_growth(pids: Sequence[int]) -> Cost:
    """The probe and what remembers and judges it, with the rules that are the default."""
    settings = NodeSettings()
    fds = GrowthWatch(read_growth_rules(settings.leaks_fd_growth, "fds"))
    memory = GrowthWatch(read_growth_rules(settings.leaks_memory_growth, "bytes"))
    reader = ProcessProbe("/")
    passed = 0

    def read_and_note() -> None:
        nonlocal passed
        passed += 1
        reading = reader.read(pids)
        now = passed * INTERVAL_SECONDS
        fds.note(now, changing(reading, 1, passed))
        memory.note(now, changing(reading, 2, passed))
        fds.growing(now)
        memory.growing(now)

    return ours("probe and growth", pids, read_and_note)


def changing(reading: ProbeReading, column: int, passed: int) -> dict[tuple[int, int], int]:
    """What was read, made to change each time: sleepers would not."""
    return {
        (pid, counts[0]): (counts[column] or 0) + passed % 7
        for pid, counts in reading.counts.items()
    }


def peer(pids: Sequence[int], folder: Path) -> Cost | str:
    """The exporter's own cost, or why it cannot be had."""
    program = shutil.which(PEER)
    if program is None:
        return f"{PEER} is not installed: apt-get install {PEER}"
    config = folder / "peer.yml"
    config.write_text(PEER_CONFIG)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [program, f"-config.path={config}", f"-web.listen-address={address}"]
    exporter = subprocess.Popen(
        [*command, "-gather-smaps=false", "-threads=false"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return scraped(exporter, f"http://{address}/metrics", len(pids))
    finally:
        exporter.kill()
        exporter.wait()


def scraped(exporter: subprocess.Popen[bytes], url: str, least: int) -> Cost | str:
    page = first_page(exporter, url)
    if page is None:
        return f"{PEER} does not answer on {url}"
    first = cpu_seconds(exporter.pid)
    for _ in range(SCRAPES):
        with urlopen(url) as answer:
            page = answer.read().decode()
    seconds = (cpu_seconds(exporter.pid) - first) / SCRAPES
    counts = re.findall(r"^namedprocess_namegroup_num_procs\{.*\} (\S+)$", page, re.MULTILINE)
    processes = sum(int(float(count)) for count in counts)
    if processes < least:
        return f"{PEER} shows {processes} processes of {least}"
    return Cost(PEER, processes, seconds, first, rss_bytes(exporter.pid))


def first_page(exporter: subprocess.Popen[bytes], url: str) -> str | None:
    deadline = time.monotonic() + PEER_START_SECONDS
    while time.monotonic() < deadline and exporter.poll() is None:
        with suppress(URLError, ConnectionError), urlopen(url) as answer:
            return str(answer.read().decode())
        time.sleep(0.1)
    return None


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_SECONDS


def measure(size: int, program: Path, *, last: bool) -> Iterator[Cost | str]:
    """What so many processes cost; of the last also what makes a probe of them dearer."""
    with sleepers(program, size) as pids:
        yield f"{len(pids)} processes"
        yield bare(pids)
        yield probe(pids)
        yield probe_and_growth(pids)
        whole = [plain_probe(pids)]
        yield whole[0]
        other = peer(pids, program.parent)
    yield other if isinstance(other, Cost) else f"  {other}"
    for cost in dearer_probes(program, size) if last else ():
        whole.append(cost)
        yield cost
    if isinstance(other, Cost):
        least = other.micros / max(cost.micros for cost in whole)
        yield f"  {least:.1f} times less CPU a process than {PEER}, by the dearest whole probe"


def main(sizes: Sequence[int]) -> None:
    """Print what each number of processes costs."""
    with TemporaryDirectory() as name:
        program = compiled(Path(name))
        if program is None:
            sys.stdout.write("a C compiler is needed for the processes: apt-get install gcc\n")
            return
        for size in sizes:
            for line in measure(size, program, last=size == sizes[-1]):
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[2500, 5000, 10_000])
    main(parser.parse_args().processes)
