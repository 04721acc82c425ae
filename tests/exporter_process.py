"""The node exporter as users start it: a process, its flags, its page."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.request import ProxyHandler, build_opener

from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.demo.programs import free_port

OPENER = build_opener(ProxyHandler({}))
PATIENCE_SECONDS = 30.0


def get(url: str) -> str:
    with OPENER.open(url, timeout=10) as response:
        return response.read().decode()


def labelled_values(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@contextmanager
def exporter(env: Mapping[str, str] | None = None, **flags: str) -> Iterator[str]:
    """The URL of a running exporter."""
    address = f"127.0.0.1:{free_port()}"
    options = {"server-address": address, **flags}
    command = [sys.executable, "-m", "seedance_obs", "exporter", "node"]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    process = subprocess.Popen(command, env={**os.environ, **(env or {})}, stderr=subprocess.PIPE)
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


def until(read: Callable[[], str], accept: Callable[[str], bool]) -> str:
    """The first text that is accepted; the last one is shown when none is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    text = ""
    while time.monotonic() < deadline:
        try:
            text = read()
        except OSError:
            text = ""
        if text and accept(text):
            return text
        time.sleep(0.05)
    raise AssertionError(f"nothing acceptable within {PATIENCE_SECONDS} s; the last was: {text}")
