"""`seedance-obs leaks`: what the exporter of a node suspects, for who is on call."""

import io
import json
import os
import sys
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import click

from seedance_obs.errors import SourceUnavailableError, UsageError
from seedance_obs.leaks.suspect import INFORMATIONAL, KINDS

TIMEOUT_SECONDS = 10.0
MOST_PAGE_BYTES = 64 * 2**20
MOST_SAID = 300
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@click.command()
@click.option(
    "--exporter",
    "url",
    metavar="URL",
    help="The node exporter to ask. [default: where SEEDANCE_SERVER_ADDRESS, else the file "
    "SEEDANCE_CONFIG, says that this node's listens, else http://127.0.0.1:19400]",
)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(list(KINDS)),
    multiple=True,
    metavar="KIND",
    help="Only suspects of this kind, and all of them; may be given again. Kinds: "
    f"{', '.join(KINDS)}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the exporter's /leaks page.")
def leaks(url: str | None, *, kinds: tuple[str, ...], as_json: bool) -> None:
    """Show what the leak probes of this node see now.

    Each suspect comes with what it is, whose, the processes from the first of its container, job
    or session down to it, and the numbers that say so; the worst kind comes first, what is for
    information only comes last.

    Exit codes: 0 no suspects (sparse_residency is for information only), 1 suspects, 2 usage, 3 no
    exporter answers, or it probes nothing.
    """
    from seedance_obs.leaks.report.page import read_page

    address = _address(url)
    data, cleaned = _json(_fetch(address), address)
    page = read_page(cleaned)
    if as_json:
        if kinds:
            data["suspects"] = [one for one in data["suspects"] if one["kind"] in kinds]
        # DEL is the one character that JSON leaves as it is and a terminal may act on.
        click.echo(json.dumps(data, indent=2).replace("\x7f", "\\u007f"))
    else:
        from rich.console import Console

        from seedance_obs.leaks.report.drawing import LeakReport

        if isinstance(sys.stdout, io.TextIOWrapper):  # it may be in an encoding that lacks U+FFFD
            sys.stdout.reconfigure(errors="replace")
        # Names are to be pasted: one that is wider than the terminal is left to it to break.
        Console(highlight=False).print(LeakReport(page, kinds), crop=False)
    found = {suspect.kind for suspect in page.of_kinds(kinds)}
    sys.exit(1 if found - INFORMATIONAL else 0)


def _address(url: str | None) -> str:
    """The page's address.

    Raises:
        UsageError: what was given is not one, or the settings name no port.
    """
    if url is None:
        return f"{_local_url()}/leaks"
    whole = (url if "://" in url else f"http://{url}").rstrip("/")
    try:
        parts = urlsplit(whole)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not whole.isascii() or not whole.isprintable() or " " in whole:
        raise UsageError(f"--exporter {url!r}: wanted http://HOST:PORT")
    return f"{whole.removesuffix('/metrics').removesuffix('/leaks')}/leaks"


def _local_url() -> str:
    from seedance_obs.config import split_address
    from seedance_obs.config_reading import ENVIRONMENT_PREFIX, load_settings

    name = f"{ENVIRONMENT_PREFIX}SERVER_ADDRESS"
    file = os.environ.get("SEEDANCE_CONFIG")
    given = {name: os.environ[name]} if name in os.environ else {}
    address = load_settings(Path(file) if file and not given else None, given, {}).server_address
    host, port = split_address(address, "server.address")
    if not port:
        raise UsageError(f"server.address = {address!r}: its port changes; say --exporter URL")
    host = WILDCARDS.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _fetch(address: str) -> bytes:
    """The page; proxies in the environment are ignored.

    Raises:
        SourceUnavailableError: there is none.
    """
    try:
        with build_opener(ProxyHandler({})).open(address, timeout=TIMEOUT_SECONDS) as response:
            body = bytes(response.read(MOST_PAGE_BYTES + 1))
    except HTTPError as error:
        raise _refusal(address, error) from error
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        raise SourceUnavailableError(
            f"no exporter answers at {address} ({_short(said)}): start one with `seedance-obs "
            "exporter node`, or say with --exporter where it listens"
        ) from error
    if len(body) > MOST_PAGE_BYTES:
        raise SourceUnavailableError(f"the page at {address} is too large to be one of leaks")
    return body


def _refusal(address: str, error: HTTPError) -> SourceUnavailableError:
    with error:
        try:
            said = error.read(4 * MOST_SAID).decode("utf-8", errors="replace")
        except (OSError, HTTPException):
            said = ""
    if error.code == 503 and said.strip():
        return SourceUnavailableError(f"{address} says: {_short(said)}")
    return SourceUnavailableError(
        f"{address} answered HTTP {error.code}: is it a seedance-obs node exporter of this version?"
    )


def _json(body: bytes, address: str) -> tuple[Any, Any]:
    """What a page holds, as it is and with its texts made safe for a terminal.

    Raises:
        SourceUnavailableError: it is not JSON.
    """
    try:
        data = json.loads(body, parse_constant=_refuse)
        return data, _cleaned(data)
    except (ValueError, RecursionError) as error:
        raise SourceUnavailableError(
            f"{address} does not answer in JSON: is it a seedance-obs node exporter?"
        ) from error


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number in JSON")


def _cleaned(data: Any) -> Any:
    from seedance_obs.topology.shown_text import printable

    if isinstance(data, str):
        return printable(data)
    if isinstance(data, list):
        return [_cleaned(one) for one in data]
    if isinstance(data, dict):
        return {printable(name): _cleaned(value) for name, value in data.items()}
    return data


def _short(text: str) -> str:
    from seedance_obs.topology.shown_text import printable

    return printable(text.strip())[:MOST_SAID]
