"""What a leak probe of 10,000 processes costs, beside a bare loop and prometheus-process-exporter.

    python -m tests.bench.leak_probe [--processes 2500 5000 10000]

Starts that many real processes that sleep (forks of one small C program, some 100 kB of kernel and
user memory each), so it needs `cc` and as many free pids, and ends them whatever happens. In the
same run and on the same processes: a loop that does no more than `stat` and read `statm`; our
probe, alone and with its bookkeeping of growth, whose values change in each pass, the worst case;
and Debian's prometheus-process-exporter (apt-get install
prometheus-process-exporter) without smaps and threads, in one group for each name, which also reads
the other processes of the machine and is charged for each of them alike.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

from seedance_obs.config import NodeSettings
from seedance_obs.sources.process_probe import ProbeReading, ProcessProbe

PASSES = 7
SCRAPES = 3
INTERVAL_SECONDS = 15.0
PEER = "prometheus-process-exporter"
PEER_CONFIG = 'process_names:\n  - name: "{{.Comm}}"\n    cmdline: [".+"]\n'
PEER_START_SECONDS = 60.0
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# Children end with their parent, and the parent when its input does.
SLEEPERS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    int wanted = count > 1 ? atoi(words[1]) : 0, started = 0;
    pid_t *pids = calloc(wanted + 1, sizeof *pids);
    for (; started < wanted; started++) {
        pid_t pid = fork();
        if (pid < 0) break;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) pause();
        }
        pids[started] = pid;
    }
    for (int at = 0; at < started; at++) printf("%d\n", pids[at]);
    printf("end\n");
    fflush(stdout);
    while (getchar() != EOF) {}
    for (int at = 0; at < started; at++) kill(pids[at], SIGKILL);
    while (wait(NULL) > 0) {}
    return 0;
}
"""


@dataclass(frozen=True)
class Cost:
    """What one pass over all processes costs; `first` is the pass that meets them."""

    name: str
    processes: int
    seconds: float
    first: float
    rss_bytes: int

    @property
    def micros(self) -> float:
        """CPU microseconds a process."""
        return self.seconds / self.processes * 1e6

    def __str__(self) -> str:
        return (
            f"  {self.name:28} {self.seconds * 1e3:9.1f} ms {self.micros:8.2f} us a process"
            f"   first {self.first * 1e3:8.1f} ms   RSS {self.rss_bytes / 2**20:6.1f} MiB"
        )


@contextmanager
def sleepers(program: Path, count: int) -> Iterator[list[int]]:
    """Processes that sleep until the block ends, however it ends."""
    parent = subprocess.Popen(
        [program, f"{count}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    try:
        yield [int(line) for line in iter(parent.stdout.readline, "end\n") if line]
    finally:
        parent.stdin.close()
        try:
            parent.wait(60)
        except subprocess.TimeoutExpired:
            parent.kill()
            parent.wait()
        parent.stdout.close()


def compiled(folder: Path) -> Path | None:
    source, program = folder / "sleepers.c", folder / "sleepers"
    source.write_text(SLEEPERS)
    if shutil.which("cc") is None:
        return None
    subprocess.run(["cc", "-O1", "-o", program, source], check=True)
    return program


def ours(name: str, pids: Sequence[int], work: Callable[[], object]) -> Cost:
    """What a pass of our own costs in this process."""
    spent = []
    for _ in range(PASSES + 1):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return Cost(name, len(pids), min(spent[1:]), spent[0], rss_bytes(os.getpid()))


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


def probe_and_growth(pids: Sequence[int]) -> Cost | None:
    """The probe and what remembers and judges it, with the rules that are the default."""
    try:
        from seedance_obs.leaks.growth import GrowthWatch
        from seedance_obs.leaks.growth_rules import read_growth_rules
    except ImportError:
        return None
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


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


def measure(pids: Sequence[int], folder: Path) -> Iterator[str]:
    """Lines about one number of processes."""
    yield f"{len(pids)} processes"
    yield str(bare(pids))
    mine = probe(pids)
    yield str(mine)
    whole = probe_and_growth(pids)
    yield "  no bookkeeping of growth to join to it" if whole is None else str(whole)
    other = peer(pids, folder)
    yield f"  {other}" if isinstance(other, str) else str(other)
    if isinstance(other, Cost):
        ratio = other.micros / (whole or mine).micros
        yield f"  {ratio:.1f} times less CPU a process than {PEER}"


def main(sizes: Sequence[int]) -> None:
    """Print what each number of processes costs."""
    with TemporaryDirectory() as name:
        program = compiled(Path(name))
        if program is None:
            sys.stdout.write("a C compiler is needed for the processes: apt-get install gcc\n")
            return
        for size in sizes:
            with sleepers(program, size) as pids:
                if len(pids) < size:
                    sys.stdout.write(f"only {len(pids)} of {size} processes could be started\n")
                for line in measure(pids, Path(name)) if pids else ():
                    sys.stdout.write(f"{line}\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[2500, 5000, 10_000])
    main(parser.parse_args().processes)
