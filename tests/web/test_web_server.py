"""The server around the page: where it listens, what it answers, how it stops."""

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from seedance_obs.cli import main
from seedance_obs.errors import UsageError
from seedance_obs.promql.client import Prometheus
from seedance_obs.web.app import create_app, open_server

NOWHERE = Prometheus("http://127.0.0.1:1")


def test_the_health_address_asks_nothing_of_prometheus() -> None:
    answer = create_app(NOWHERE).server.test_client().get("/-/healthy")
    assert answer.status_code == 200


def test_every_answer_keeps_the_browser_to_this_server() -> None:
    answer = create_app(NOWHERE).server.test_client().get("/")
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    page = answer.get_data(as_text=True)
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_two_apps_share_nothing() -> None:
    assert create_app(NOWHERE).server is not create_app(NOWHERE).server


def test_a_taken_port_is_a_usage_error() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot listen at 127\.0\.0\.1:{port}.*--listen"):
            open_server(NOWHERE, f"127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["8050", "localhost", "127.0.0.1:no", "127.0.0.1:99999", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="want HOST:PORT"):
        open_server(NOWHERE, address)


def test_the_command_listens_on_loopback_by_default() -> None:
    text = CliRunner().invoke(main, ["web", "--help"]).output
    assert "127.0.0.1:8050" in text
    assert "http://127.0.0.1:9090" in text


def test_the_command_serves_until_it_is_interrupted() -> None:
    command = [sys.executable, "-c", "from seedance_obs.cli import main; main()"]
    with subprocess.Popen(
        [*command, "web", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            with urllib.request.urlopen(f"{address}-/healthy", timeout=20) as answer:
                assert answer.status == 200
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
