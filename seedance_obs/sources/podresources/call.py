"""One call to the kubelet over its unix socket: bytes in, bytes out, or a sentence for an operator.

Each call has a connection of its own. That costs about a millisecond, and in return there is
nothing to reconnect when the kubelet restarts, no back-off of gRPC's to wait for, and nothing to
keep between calls.
"""

import os
import socket
import stat
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from seedance_obs.errors import SourceUnavailableError
from seedance_obs.sources.podresources.wire import SERVICE, grpc_library

_DETAIL_CHARACTERS = 200
_PROBE_SECONDS = 1.0
SOCKET_PATH_BYTES = 107  # unix(7): sun_path, less its closing zero
_BROKEN = ("UNAVAILABLE", "INTERNAL", "CANCELLED")  # the connection, not the answer


class PodUnknownError(SourceUnavailableError):
    """The kubelet answered that it has no such pod."""


class KubeletSocket:
    """Calls methods of pod-resources v1.

    Args:
        path: the socket.
        timeout_seconds: for one call, from connecting to the last byte.
        reply_limit_bytes: a larger reply is refused (gRPC's own limit is 4 MiB).
    """

    def __init__(self, path: Path, *, timeout_seconds: float, reply_limit_bytes: int) -> None:
        self._path = path
        self._timeout_seconds = timeout_seconds
        self._reply_limit_bytes = reply_limit_bytes

    def check(self) -> None:
        """Look whether there is a socket, without a connection and without gRPC.

        Raises:
            SourceUnavailableError: there is none that this process can see.
        """
        if len(os.fsencode(os.path.abspath(self._path))) > SOCKET_PATH_BYTES:
            raise SourceUnavailableError(
                f"{self._path} is longer than the {SOCKET_PATH_BYTES} bytes that a socket's path "
                "may have: mount or link the kubelet's directory under a shorter one"
            )
        try:
            mode = os.stat(self._path).st_mode
        except OSError as error:
            raise self._cannot_connect(error) from error
        if not stat.S_ISSOCK(mode):
            raise SourceUnavailableError(
                f"{self._path} is not a socket: give the path of the kubelet's pod-resources socket"
            )

    def ask(self, method: str, request: bytes) -> bytes:
        """The serialized reply to a serialized request.

        Raises:
            PodUnknownError: there is no such pod.
            SourceUnavailableError: there is no kubelet, or it did not answer as it should.
        """
        grpc = grpc_library()
        target = f"unix:{quote(os.path.abspath(self._path))}"
        try:
            with grpc.insecure_channel(target, options=self._options()) as channel:
                call = channel.unary_unary(f"/{SERVICE}/{method}")
                reply: bytes = call(request, timeout=self._timeout_seconds)
                return reply
        except grpc.RpcError as error:
            self._refuse(method, error)

    def _options(self) -> tuple[tuple[str, Any], ...]:
        return (
            ("grpc.max_receive_message_length", self._reply_limit_bytes),
            ("grpc.use_local_subchannel_pool", 1),  # calls share no back-off
            # As gRPC counts this is also how long a connection may take to greet; 20 s else.
            ("grpc.min_reconnect_backoff_ms", max(100, round(self._timeout_seconds * 1000))),
            ("grpc.default_authority", "localhost"),
            ("grpc.enable_http_proxy", 0),
        )

    def _refuse(self, method: str, error: Any) -> NoReturn:
        code, details = error.code().name, _shortened(error.details() or "")
        if code in ("UNKNOWN", "NOT_FOUND") and method == "Get" and details.endswith("not found"):
            raise PodUnknownError(f"the kubelet at {self._path} has no such pod: {details}")
        if code in _BROKEN:
            self._probe()
        raise SourceUnavailableError(self._sentence(method, code, details)) from error

    def _sentence(self, method: str, code: str, details: str) -> str:
        where = f"the kubelet at {self._path}"
        if code == "DEADLINE_EXCEEDED":
            return (
                f"{where} did not answer within {self._timeout_seconds:g} s: look into its log for "
                "what holds it up, or raise the time limit"
            )
        if code == "UNIMPLEMENTED":
            return (
                f"{where} does not know {method} of pod-resources v1: Kubernetes 1.20 or newer is "
                "wanted (1.23 for GetAllocatableResources, 1.27 for Get)"
            )
        if code == "RESOURCE_EXHAUSTED" and "larger than" in details:
            return (
                f"{where} sent a reply of more than {self._reply_limit_bytes} bytes: raise the "
                "limit, or look for pods that ended and are still listed"
            )
        if code == "RESOURCE_EXHAUSTED":
            return f"{where} is asked too often ({details}): ask less often"
        if code == "UNKNOWN" and details.endswith("disabled"):
            return f"{where} has {method} switched off ({details}): enable its feature gate"
        if code in _BROKEN:
            return (
                f"what listens at {self._path} broke off or does not speak gRPC ({details}): check "
                "that the path is the pod-resources socket, and whether the kubelet restarts"
            )
        return f"{where} answered {method} with {code} ({details}): read its log for the cause"

    def _probe(self) -> None:
        """Find out why there was no connection: gRPC hides the error number in a text."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_PROBE_SECONDS)
            try:
                probe.connect(str(self._path))
            except OSError as error:
                raise self._cannot_connect(error) from error

    def _cannot_connect(self, error: OSError) -> SourceUnavailableError:
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            advice = (
                "on a Kubernetes node, check that the kubelet runs and that its pod-resources "
                "directory is mounted here"
            )
        elif isinstance(error, PermissionError):
            advice = "run as root, or give this user access to the socket and its directory"
        elif isinstance(error, ConnectionRefusedError):
            advice = "nobody listens there: the kubelet is down or restarts"
        else:
            advice = "check the path, and that the kubelet runs"
        reason = error.strerror or str(error)
        return SourceUnavailableError(
            f"cannot reach the kubelet at {self._path} ({reason}): {advice}"
        )


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _DETAIL_CHARACTERS else f"{line[:_DETAIL_CHARACTERS]}..."
