"""Where the links of alerts lead: paths as shipped, addresses once somebody says what goes before.

A webhook gets annotations as they are, and Alertmanager's own page shows them so: a path is no link
there. The template of mail and chat puts the addresses before paths, and leaves addresses alone.
"""

import re
from pathlib import Path

from seedance_obs.errors import UsageError


def link_alerts(folder: Path, *, grafana_url: str | None, runbooks_url: str | None) -> None:
    """Complete the links of the rules in a folder, and the addresses in its template.

    Raises:
        UsageError: that is no address.
    """
    if grafana_url is not None:
        pattern = r'(?<=dashboard: )(?=/d/)|(?<=define "seedance\.grafana" }})[^{]*'
        _replace(folder, pattern, _address(grafana_url))
    if runbooks_url is not None:
        pattern = r'(?<=runbook_url: )(?=alerts/)|(?<=define "seedance\.runbooks" }})[^{]*'
        _replace(folder, pattern, _address(runbooks_url) + "/")


def _address(url: str) -> str:
    if not re.fullmatch(r"https?://[\w.:/~@%+-]+", url):
        raise UsageError(f"wanted an address as https://grafana.example, found {url}")
    return url.rstrip("/")


def _replace(folder: Path, pattern: str, address: str) -> None:
    for file in (*sorted(folder.glob("*.rules.yml")), folder / "seedance.tmpl"):
        text = file.read_text("utf-8")
        file.write_text(re.sub(pattern, lambda _: address, text), "utf-8")
