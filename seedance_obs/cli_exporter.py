"""Asks the exporter of a node for one of its pages, for the commands that show it."""

import io
import json
import os
import sys
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from seedance_obs.errors import SourceUnavailableError, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

EXPORTER_HELP = (
    "The node exporter to ask. [default: where SEEDANCE_SERVER_ADDRESS, else the file "
    "SEEDANCE_CONFIG, says that this node's listens, else http://127.0.0.1:19400]"
)
TIMEOUT_SECONDS = 10.0
MOST_PAGE_BYTES = 64 * 2**20
MOST_SAID = 300
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def page_address(url: str | None, page: str) -> str:
    """The address of a page such as `/leaks`, of the exporter at a URL or of this node's.

    Raises:
        UsageError: what was given is not one, or the settings name no port.
    """
    if url is None:
        return f"{_local_url()}{page}"
    whole = (url if "://" in url else f"http://{url}").rstrip("/")
    try:
        parts = urlsplit(whole)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not whole.isascii() or not whole.isprintable() or " " in whole:
        raise UsageError(f"--exporter {url!r}: wanted http://HOST:PORT")
    return f"{whole.removesuffix('/metrics').removesuffix(page)}{page}"


def json_text(data: Any) -> str:
    """A page for a program or a terminal.

    DEL is the one character that JSON leaves as it is and a terminal may act on.
    """
    return json.dumps(data, indent=2).replace("\x7f", "\\u007f")


def show(report: "RenderableType") -> None:
    """Draw a report on the terminal, whatever characters it has.

    Names are to be pasted: one that is wider than the terminal is left to it to break.
    """
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):  # it may be in an encoding that lacks U+FFFD
        sys.stdout.reconfigure(errors="replace")
    Console(highlight=False).print(report, crop=False)


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


def fetch(address: str) -> bytes:
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
        raise SourceUnavailableError(f"the page at {address} is too large to be an exporter's")
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


def parsed(body: bytes, address: str) -> tuple[Any, Any]:
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
    from seedance_obs.topology.safe_text import printable

    if isinstance(data, str):
        return printable(data)
    if isinstance(data, list):
        return [_cleaned(one) for one in data]
    if isinstance(data, dict):
        return {printable(name): _cleaned(value) for name, value in data.items()}
    return data


def _short(text: str) -> str:
    from seedance_obs.topology.safe_text import printable

    return printable(text.strip())[:MOST_SAID]
