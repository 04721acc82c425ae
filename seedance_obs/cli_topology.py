"""The commands of `seedance-obs topology`."""

import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from seedance_obs.errors import UsageError

if TYPE_CHECKING:
    from seedance_obs.topology.declared.findings import Finding
    from seedance_obs.topology.declared.validate import Report

STDIN = "<stdin>"


@click.group()
def topology() -> None:
    """Read, draw, score and check topologies."""


@topology.command("validate")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="How many findings of each rule to show; 0 shows all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def topology_validate(files: tuple[str, ...], *, limit: int, as_json: bool) -> None:
    """Find what is wrong with a declared topology.

    FILEs are read as one topology; - reads standard input. YAML, JSON or JSON Lines, one document
    for each node (in YAML also the items of a List):

    \b
        apiVersion: topology.seedance.io/v1
        kind: ResourceNode                 # or JobVertex
        metadata: {name: gpu-a, namespace: train, labels: {zone: a}}
        spec:
          edges:
            - {type: affinity, to: gpu-b}  # in the same namespace
            - {type: latency-sla, to: serve/frontend, maxMilliseconds: 5}
            - {type: anti-affinity, to: gpu-c}

    affinity and latency-sla are directed and must form no cycle, within a namespace or across
    them. anti-affinity holds both ways, takes no part in cycles, and contradicts an affinity
    between the same two nodes. A node has at most 512 edges, and every edge leads to a node.

    Files of very many edges are read much faster as JSON Lines than as YAML.

    Exit codes: 0 valid (there may be warnings), 1 errors were found, 2 a FILE cannot be read.
    """
    from seedance_obs.topology.declared.validate import validate

    begun = time.perf_counter()
    report = validate(_contents(files), limit=limit)
    seconds = time.perf_counter() - begun
    if as_json:
        click.echo(json.dumps(_as_data(report, seconds), indent=2))
    else:
        for finding in report.findings:
            click.echo(_as_line(finding))
        for rule, count in report.omitted.items():
            click.echo(f"{count} more of {rule} not shown; --limit 0 shows all")
        click.echo(_summary(report, len(files), seconds))
    sys.exit(0 if report.valid else 1)


def _contents(files: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    for file in files:
        name = STDIN if file == "-" else click.format_filename(file)
        try:
            with click.open_file(file, "rb") as stream:
                yield name, stream.read()
        except OSError as error:
            raise UsageError(f"{name}: cannot be read: {error.strerror or error}") from error


def _as_line(finding: "Finding") -> str:
    severity = click.style(
        finding.severity, fg="red" if finding.severity == "error" else "yellow", bold=True
    )
    place = f"{finding.file}:{finding.line}"
    return f"{place}: {severity}: {finding.message} [{finding.rule}]"


def _summary(report: "Report", files: int, seconds: float) -> str:
    verdict = (
        click.style("valid", fg="green", bold=True)
        if report.valid
        else click.style("invalid", fg="red", bold=True)
    )
    found = f"{_count(report.errors, 'error')}, {_count(report.warnings, 'warning')}"
    read = f"{_count(report.nodes, 'node')}, {_count(report.edges, 'edge')}"
    return f"{verdict}: {found}; {read} in {_count(files, 'file')}, {seconds:.2f} s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _as_data(report: "Report", seconds: float) -> dict[str, object]:
    data = dataclasses.asdict(report)
    for entry, finding in zip(data["findings"], report.findings, strict=True):
        entry["severity"] = finding.severity
        entry["related"] = [{"file": file, "line": line} for file, line in finding.related]
    return {"valid": report.valid, "seconds": round(seconds, 3), **data}
