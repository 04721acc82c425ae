"""The parts of the Prometheus HTTP API that this package asks for, over the standard library.

The same requests are answered by Mimir, Thanos and VictoriaMetrics.
"""

import json
import logging
import math
import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from seedance_obs.errors import SourceUnavailableError, UsageError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sample:
    """One series at one moment: `at` in seconds since the epoch, UTC."""

    labels: dict[str, str]
    value: float
    at: float


@dataclass(frozen=True, slots=True)
class Series:
    """One series over a range: `points` are (seconds since the epoch, value), oldest first."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A scrape target; `health` is up, down or unknown, `last_error` is empty when it is up."""

    labels: dict[str, str]
    health: str
    last_error: str


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert that a rule raises now; `state` is pending or firing."""

    labels: dict[str, str]
    annotations: dict[str, str]
    state: str


class Prometheus:
    """A Prometheus server at a URL, which may have a path; proxies in the environment are ignored.

    Every method raises SourceUnavailableError when the server is down, slow or refuses the query.

    Raises:
        UsageError: the URL is not an http or https address.
    """

    def __init__(self, url: str, timeout_seconds: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UsageError(f"{url!r} is no Prometheus address: want http://HOST:PORT")
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._opener = build_opener(ProxyHandler({}))

    def instant(self, expr: str, at: float | None = None) -> list[Sample]:
        """The value of every series of an expression at one moment (now when `at` is None).

        A series whose value is NaN is left out; a scalar is one sample without labels.
        """
        moment = time.time() if at is None else at
        data = self._ask("query", {"query": expr, "time": _seconds(moment)})
        if data["resultType"] == "scalar":
            return _samples([{"metric": {}, "value": data["result"]}])
        if data["resultType"] != "vector":
            raise SourceUnavailableError(
                f"{expr!r} gives a {data['resultType']}, not one value per series"
            )
        return _samples(data["result"])

    def range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """The values of every series at start, start + step … end; NaN points are left out."""
        window = {"start": _seconds(start), "end": _seconds(end), "step": _seconds(step)}
        data = self._ask("query_range", {"query": expr, **window})
        return [Series(row["metric"], _points(row["values"])) for row in data["result"]]

    def targets(self) -> list[Target]:
        """Every active scrape target."""
        rows = self._ask("targets", {"state": "active"}, method="GET")["activeTargets"]
        return [Target(row["labels"], row["health"], row.get("lastError", "")) for row in rows]

    def alerts(self) -> list[Alert]:
        """Every alert that is pending or firing."""
        rows = self._ask("alerts", {}, method="GET")["alerts"]
        return [Alert(row["labels"], row.get("annotations", {}), row["state"]) for row in rows]

    def _ask(self, endpoint: str, fields: dict[str, str], *, method: str = "POST") -> Any:
        body = self._fetch(endpoint, urlencode(fields), method=method)
        answer = _decode(body)
        if answer is None:
            raise SourceUnavailableError(
                f"{self.url} does not speak the Prometheus API: is the address right?"
            )
        if answer["status"] != "success":
            reason = answer.get("error", "no reason given")
            raise SourceUnavailableError(f"Prometheus at {self.url} refused the query: {reason}")
        for warning in answer.get("warnings", []):
            log.warning("prometheus_warning url=%s warning=%s", self.url, warning)
        return answer["data"]

    def _fetch(self, endpoint: str, fields: str, *, method: str) -> bytes:
        address = f"{self.url}/api/v1/{endpoint}"
        if method == "POST":
            request = Request(address, data=fields.encode(), method="POST")
        else:
            request = Request(f"{address}?{fields}", method="GET")
        try:
            with self._opener.open(request, timeout=self._timeout_seconds) as response:
                return bytes(response.read())
        except HTTPError as error:
            return self._refusal(error)
        except TimeoutError as error:
            raise self._slow() from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise self._slow() from error
            raise SourceUnavailableError(
                f"Prometheus at {self.url} does not answer ({reason}): is it running?"
            ) from error

    def _refusal(self, error: HTTPError) -> bytes:
        """The body of an answer that carries Prometheus' own message, else an exception."""
        with error:
            body = bytes(error.read())
        if _decode(body) is None:
            raise SourceUnavailableError(
                f"{self.url} answered HTTP {error.code} {error.reason}: "
                "is it a Prometheus server, and is it ready?"
            ) from error
        return body

    def _slow(self) -> SourceUnavailableError:
        return SourceUnavailableError(
            f"Prometheus at {self.url} did not answer within {self._timeout_seconds:g} s: "
            "ask for a shorter window, or allow more time"
        )


def _decode(body: bytes) -> Any:
    """The envelope of an API answer; None where the body is something else."""
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and "status" in answer else None


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _points(pairs: list[tuple[float, str]]) -> tuple[tuple[float, float], ...]:
    numbers = ((float(at), float(text)) for at, text in pairs)
    return tuple(point for point in numbers if not math.isnan(point[1]))


def _samples(rows: list[dict[str, Any]]) -> list[Sample]:
    return [
        Sample(row["metric"], value, at) for row in rows for at, value in _points([row["value"]])
    ]
