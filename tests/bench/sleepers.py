"""Thousands of real processes that sleep: forks of one small C program."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

# Children end with their parent, and the parent when its input does.
SLEEPERS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    int wanted = count > 1 ? atoi(words[1]) : 0, started = 0;
    int opened = count > 2 ? atoi(words[2]) : 0;
    int limit = count > 3 ? atoi(words[3]) : 0;
    int ready[2];
    char byte = 0;
    if (pipe(ready)) return 1;
    pid_t *pids = calloc(wanted + 1, sizeof *pids);
    for (; started < wanted; started++) {
        pid_t pid = fork();
        if (pid < 0) break;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            struct rlimit files = {limit, limit};
            if (limit) setrlimit(RLIMIT_NOFILE, &files);
            for (int copy = 0; copy < opened; copy++) dup(2);
            if (write(ready[1], &byte, 1) != 1) return 1;
            close(ready[0]);
            close(ready[1]);
            for (;;) pause();
        }
        pids[started] = pid;
    }
    for (int at = 0; at < started; at++)
        if (read(ready[0], &byte, 1) != 1) return 1;
    for (int at = 0; at < started; at++) printf("%d\n", pids[at]);
    printf("end\n");
    fflush(stdout);
    while (getchar() != EOF) {}
    for (int at = 0; at < started; at++) kill(pids[at], SIGKILL);
    while (wait(NULL) > 0) {}
    return 0;
}
"""


@contextmanager
def sleepers(program: Path, count: int, *, opened: int = 0, limit: int = 0) -> Iterator[list[int]]:
    """Processes that sleep until the block ends, however it ends, all of one parent.

    Each opens so many descriptors beside three, and has such a limit of them if it is not 0.
    """
    words = map(str, (program, count, opened, limit))
    parent = subprocess.Popen([*words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdin is not None
    assert parent.stdout is not None
    try:
        yield [int(line) for line in takewhile("end\n".__ne__, parent.stdout)]
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
