"""The commands of `seedance-obs topology`."""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seedance_obs.errors import UsageError

if TYPE_CHECKING:
    from seedance_obs.topology.declared.findings import Finding
    from seedance_obs.topology.declared.validate import Report
    from seedance_obs.topology.model import Reading
    from seedance_obs.topology.placement.policy import TopologyPolicy

STDIN = "<stdin>"
HOST_OPTIONS = {
    "node_name": "The host's name in NVLink domains; empty: its own.",
    "node_root": "Where the host's /sys is.",
    "nvml_library": "pynvml, sim:NAME or replay:FILE; see exporter node.",
}


@click.group()
def topology() -> None:
    """Read, draw, score and check topologies."""


def _of_host_or_file(command: Callable[..., None]) -> Callable[..., None]:
    """The argument FILE, and the options that say which host is read where there is none."""
    for name, about in reversed(HOST_OPTIONS.items()):
        command = click.option(f"--{name.replace('_', '-')}", name, metavar="VALUE", help=about)(
            command
        )
    return click.argument("file", required=False)(command)


@topology.command("show")
@_of_host_or_file
@click.option("--json", "as_json", is_flag=True, help="Print it as `topology parse --json` does.")
def topology_show(file: str | None, *, as_json: bool, **host: str | None) -> None:
    """Draw the tree and the matrix of this host, or of a FILE in any format of `parse`."""
    reading = _reading(file, host)
    if as_json:
        click.echo(json.dumps(_reading_as_data(reading), indent=2))
        return
    from rich.console import Console

    from seedance_obs.topology.drawing import draw_topology

    Console(highlight=False).print(draw_topology(reading))


@topology.command("parse")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="Print everything that was read.")
def topology_parse(files: tuple[str, ...], *, as_json: bool) -> None:
    """Read what a tool printed of a topology; - reads standard input.

    \b
    Formats: nvidia-smi topo -m, topo -p2p, nvlink -s, nvlink -R, -q;
    lspci -tv, -nn, -v; lstopo --of xml; the file of NCCL_TOPO_DUMP_FILE.

    As JSON a FILE is one object (several FILEs are one object a line) with gpus, nics, links
    (pairs with class and NVLink count), domains, numa and warnings. What cannot be read is null,
    and a warning says where.

    Exit codes: 0 read, 1 a FILE holds no topology, 2 a FILE cannot be read.
    """
    readings = {name: _parsed(text) for name, text in _contents(files)}
    for name, reading in readings.items():
        if as_json:
            data = {"file": name, **_reading_as_data(reading)}
            click.echo(json.dumps(data, indent=2 if len(files) == 1 else None))
            continue
        click.echo(f"{name}: {_read_in_short(reading)}")
        for warning in reading.warnings:
            click.echo(f"{name}: warning: {warning}", err=True)
    sys.exit(0 if all(reading.format for reading in readings.values()) else 1)


@topology.command("labels")
@_of_host_or_file
@click.option(
    "--format",
    "form",
    type=click.Choice(["labels", "nfd", "json-patch", "merge-patch", "json"]),
    default="labels",
    show_default=True,
    help="Lines for people, a node-feature-discovery feature file (labels only), a patch for "
    "`kubectl patch node NAME --type json|merge --patch-file`, or labels and annotations as JSON.",
)
@click.option(
    "--node-json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With a patch: the node as `kubectl get node NAME -o json` prints it; what we set there "
    "before and is no longer true is then removed.",
)
def topology_labels(
    file: str | None, *, form: str, node_json: Path | None, **host: str | None
) -> None:
    """Print the Kubernetes labels and annotations of this host, or of a FILE."""
    from seedance_obs.topology.encoding.node_labels import node_labels
    from seedance_obs.topology.encoding.node_patch import feature_file, json_patch, merge_patch

    found = node_labels(_reading(file, host).topology)
    if node_json is not None and not form.endswith("-patch"):
        raise UsageError("--node-json goes with --format json-patch or merge-patch")
    current = None if node_json is None else _node(node_json)
    if form == "nfd":
        click.echo(feature_file(found.labels), nl=False)
    elif form == "json-patch":
        patch = json_patch(found.labels, found.annotations, current=current)
        click.echo(json.dumps(patch, indent=2))
    elif form == "merge-patch":
        merged = merge_patch(found.labels, found.annotations, current=current)
        click.echo(json.dumps(merged, indent=2))
    elif form == "json":
        click.echo(json.dumps(dataclasses.asdict(found), indent=2))
    else:
        for key, value in found.labels.items():
            click.echo(f"{key}={value}")
        for key, value in found.annotations.items():
            click.echo(f"# annotation {key}={value}")


@topology.command("placements")
@_of_host_or_file
@click.option("--size", type=click.IntRange(min=1), help="How many GPUs to place.")
@click.option("--free", metavar="LIST", help="The free GPUs, such as 0,1,5 or 0-3 or UUIDs.")
@click.option("--gpus", metavar="LIST", help="GPUs that hold a placement: compare it to the best.")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Score by the rules of a file of `kind: TopologyPolicy`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def topology_placements(
    file: str | None,
    *,
    size: int | None,
    free: str | None,
    gpus: str | None,
    policy_file: Path | None,
    as_json: bool,
    **host: str | None,
) -> None:
    """Find the best and the worst set of GPUs of a size, on this host or on that of a FILE.

    Sets are ranked by what a collective feels: the slowest pair, then the mean over the pairs,
    then the number of NUMA nodes.
    """
    from seedance_obs.topology.placement.gpu_lists import named_gpus
    from seedance_obs.topology.placement.report import report

    found = _reading(file, host).topology
    names = {
        option: None if text is None else named_gpus(found, text, option=f"--{option}")
        for option, text in (("free", free), ("gpus", gpus))
    }
    policy = None if policy_file is None else _policy(policy_file)
    result = report(found, size=size, free=names["free"], actual=names["gpus"], policy=policy)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
        return
    from rich.console import Console

    from seedance_obs.topology.placement.report_table import print_report

    print_report(result, Console(highlight=False))


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


def _parsed(text: bytes) -> "Reading":
    from seedance_obs.topology.readers.formats import read

    return read(text.decode("utf-8", errors="replace"))


def _reading(file: str | None, host: dict[str, str | None]) -> "Reading":
    """What a FILE says, its warnings on stderr; without one, this host."""
    given = {name: value for name, value in host.items() if value is not None}
    if file is None:
        return _host_reading(given)
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{names}: a FILE is read instead of a host, give one of them")
    ((name, text),) = _contents((file,))
    reading = _parsed(text)
    if not reading.format:
        raise UsageError(f"{name}: {reading.warnings[0]}")
    return reading


def _host_reading(given: dict[str, str]) -> "Reading":
    from seedance_obs.config import load_settings
    from seedance_obs.this_host import host_topology
    from seedance_obs.topology.model import Reading

    return Reading(host_topology(load_settings(None, os.environ, given)), format="host")


def _reading_as_data(reading: "Reading") -> dict[str, Any]:
    from seedance_obs.topology.encoding.as_json import topology_json

    return topology_json(reading)


def _read_in_short(reading: "Reading") -> str:
    if not reading.format:
        return "no topology"
    found = reading.topology
    pairs = sum(isinstance(path.nvlinks, int) and path.nvlinks > 0 for path in found.paths)
    nodes = {node for gpu in found.gpus if isinstance(gpu.numa, frozenset) for node in gpu.numa}
    counts = (
        (len(found.gpus), "GPU"),
        (sum(device.kind == "nic" for device in found.devices), "NIC"),
        (pairs, "NVLink pair"),
        (len(set(found.domains.values())), "NVLink domain"),
        (len(nodes), "NUMA node"),
        (len(reading.warnings), "warning"),
    )
    return f"{reading.format}: {', '.join(_count(number, noun) for number, noun in counts)}"


def _node(file: Path) -> dict[str, Any]:
    try:
        node = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: a node as JSON is wanted: {error}") from error
    if not isinstance(node, dict) or not isinstance(node.get("metadata"), dict):
        raise UsageError(f"{file}: a node as JSON is wanted, with metadata")
    return node


def _policy(file: Path) -> "TopologyPolicy":
    from seedance_obs.topology.placement.policy_file import read_policy

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    return read_policy(text, name=str(file))


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
