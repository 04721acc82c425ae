"""The commands of `seedance-obs topology`."""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seedance_obs.cli_files import contents, decoded, node_of, shown_name, text_of
from seedance_obs.cli_fragmentation import fragmentation
from seedance_obs.errors import SeedanceError, UsageError

if TYPE_CHECKING:
    from seedance_obs.topology.declared.findings import Finding
    from seedance_obs.topology.declared.validate import Report
    from seedance_obs.topology.model import Reading, Topology
    from seedance_obs.topology.placement.policy import TopologyPolicy

# By name: what it is, and its default.
HOST_OPTIONS = {
    "node_name": (
        "The host's name, which the names of NVLink domains begin with.",
        "this host's own, none for a FILE",
    ),
    "node_root": ("The folder that holds the host's /sys.", "/"),
    "nvml_library": (
        "pynvml for the driver, or sim:NAME for a simulated machine, or replay:FILE for a "
        "captured one.",
        "pynvml",
    ),
}
ABOUT_FILE = """
    Without a FILE, the driver and /sys of this host are read; --node-root and --nvml-library are
    for that alone. A FILE is in any format of `topology parse`; - reads standard input.

    Exit codes: 0 fine, 1 the FILE holds no topology, 2 usage, or a FILE cannot be read, 3 no
    NVIDIA driver answers.
    """


@click.group()
def topology() -> None:
    """Read, draw, score and check topologies."""


topology.add_command(fragmentation)


def _of_host_or_file(command: Callable[..., None]) -> Callable[..., None]:
    """The argument FILE, and the options that say which host is read where there is none."""
    command.__doc__ = f"{command.__doc__}{ABOUT_FILE}"
    for name, (about, default) in reversed(HOST_OPTIONS.items()):
        command = click.option(
            f"--{name.replace('_', '-')}",
            name,
            metavar="VALUE",
            help=f"{about} [default: {default}; env: SEEDANCE_{name.upper()}]",
        )(command)
    return click.argument("file", required=False)(command)


@topology.command("show", short_help="Draw the tree and the matrix of this host, or of a FILE.")
@_of_host_or_file
@click.option("--json", "as_json", is_flag=True, help="Print it as `topology parse --json` does.")
def topology_show(file: str | None, *, as_json: bool, **host: str | None) -> None:
    """Draw where devices hang and how far apart they are, on this host or on that of a FILE.

    The tree is of NUMA nodes, PCIe root complexes, switches and devices; the matrix of link
    classes, from NVLink to the interconnect between sockets.
    """
    reading = _reading(file, host)
    if as_json:
        click.echo(json.dumps(_reading_as_data(reading), indent=2))
        return
    from rich.console import Console

    from seedance_obs.topology.drawing import draw_topology

    Console(highlight=False).print(draw_topology(reading))


@topology.command("parse", short_help="Read what nvidia-smi, lspci, lstopo or NCCL has printed.")
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
    from seedance_obs.topology.in_short import in_short

    readings = [(name, _parsed(text)) for name, text in contents(files)]
    for name, reading in readings:
        if as_json:
            data = {"file": name, **_reading_as_data(reading)}
            click.echo(json.dumps(data, indent=2 if len(files) == 1 else None))
            continue
        click.echo(f"{name}: {in_short(reading)}")
        for warning in reading.warnings:
            click.echo(f"{name}: warning: {warning}", err=True)
    sys.exit(0 if all(reading.format for _, reading in readings) else 1)


@topology.command("labels", short_help="Print Kubernetes labels of this host, or of a FILE.")
@_of_host_or_file
@click.option(
    "--format",
    "form",
    type=click.Choice(["labels", "nfd", "json-patch", "merge-patch", "json"]),
    default="labels",
    show_default=True,
    help="labels: lines for people. nfd: a node-feature-discovery feature file, which holds no "
    "annotations. json-patch, merge-patch: for `kubectl patch node NAME --type json|merge "
    "--patch-file PATCH`. json: labels and annotations as one object.",
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
    """Print the Kubernetes labels and annotations of this host, or of a FILE.

    All keys begin with topology.seedance.io/. Labels are for schedulers to match on; annotations
    hold addresses, UUIDs and the link class of every two GPUs.
    """
    from seedance_obs.topology.encoding.node_labels import node_labels
    from seedance_obs.topology.encoding.node_patch import feature_file, json_patch, merge_patch
    from seedance_obs.topology.host_name import has_nameless_domain

    if node_json is not None and not form.endswith("-patch"):
        raise UsageError("--node-json goes with --format json-patch or merge-patch")
    current = None if node_json is None else node_of(node_json)
    wiring = _topology(file, host)
    if has_nameless_domain(wiring):
        click.echo(
            "warning: NVLink domains of two hosts may have one name: give --node-name", err=True
        )
    found = node_labels(wiring)
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


@topology.command("placements", short_help="Find the best and the worst set of GPUs of a size.")
@_of_host_or_file
@click.option(
    "--size", type=click.IntRange(min=1), help="How many GPUs; wanted unless --gpus is given."
)
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

    With --free there are also the best and the worst set of free GPUs. With --gpus, such a set is
    compared to the best. Where too few GPUs are free, or the policy allows no set, the command
    exits with 1. With --policy every set is scored by the rules of a file such as

    \b
        apiVersion: topology.seedance.io/v1
        kind: TopologyPolicy
        metadata: {name: training}
        spec:
          affinityRules:
            - {type: nvlink-proximity, weight: 120}
            - {type: numa-locality, weight: 80}
          constraints:
            - {key: gpu-count, operator: Gt, value: 1}

    Rules: nvlink-proximity, numa-locality, pcie-proximity, nic-locality (a near adapter for every
    GPU), domain-packing (leave whole NVLink domains free). Keys of constraints: gpu-count,
    numa-nodes, nvlink-domains, pcie-roots, gpu-model, worst-link-class, bottleneck-gbps, mean-gbps
    (10^9 bytes per second); operators as in Kubernetes: In, NotIn, Exists, DoesNotExist, Gt, Lt.
    """
    from seedance_obs.topology.placement.gpu_lists import named_gpus
    from seedance_obs.topology.placement.report import report

    if size is None and gpus is None:
        raise UsageError("--size N is wanted, or --gpus LIST of a placement to compare")
    policy = None if policy_file is None else _policy(policy_file)
    found = _topology(file, host)
    names = {
        option: None if text is None else named_gpus(found, text, option=f"--{option}")
        for option, text in (("free", free), ("gpus", gpus))
    }
    result = report(found, size=size, free=names["free"], actual=names["gpus"], policy=policy)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        from rich.console import Console

        from seedance_obs.topology.placement.report_table import print_report

        print_report(result, Console(highlight=False))
    sys.exit(0 if result.feasible else 1)


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
    report = validate(contents(files), limit=limit)
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


def _parsed(text: bytes) -> "Reading":
    from seedance_obs.topology.readers.formats import read

    return read(decoded(text))


def _reading(file: str | None, host: dict[str, str | None]) -> "Reading":
    """What a FILE says; without one, this host."""
    from seedance_obs.topology.host_name import under_name

    given = {name: value for name, value in host.items() if value is not None}
    if file is None:
        return _host_reading(given)
    name = given.pop("node_name", "")
    if given:
        names = ", ".join(f"--{option.replace('_', '-')}" for option in given)
        raise UsageError(f"{names}: a FILE is read instead of a host, give one of them")
    ((shown, text),) = contents((file,))
    reading = _parsed(text)
    if not reading.format:
        raise SeedanceError(f"{shown}: {reading.warnings[0]}")
    if not name:
        return reading
    return dataclasses.replace(reading, topology=under_name(reading.topology, name))


def _topology(file: str | None, host: dict[str, str | None]) -> "Topology":
    """The topology of a reading, whose warnings go to stderr."""
    reading = _reading(file, host)
    place = "" if file is None else f"{shown_name(file)}: "
    for warning in reading.warnings:
        click.echo(f"{place}warning: {warning}", err=True)
    return reading.topology


def _host_reading(given: dict[str, str]) -> "Reading":
    from seedance_obs.config_reading import load_settings
    from seedance_obs.this_host import host_reading

    return host_reading(load_settings(None, os.environ, given))


def _reading_as_data(reading: "Reading") -> dict[str, Any]:
    from seedance_obs.topology.encoding.as_json import topology_json

    return topology_json(reading)


def _policy(file: Path) -> "TopologyPolicy":
    from seedance_obs.topology.placement.policy_file import read_policy

    return read_policy(text_of(file), name=str(file))


def _as_line(finding: "Finding") -> str:
    severity = click.style(
        finding.severity, fg="red" if finding.severity == "error" else "yellow", bold=True
    )
    place = f"{finding.file}:{finding.line}"
    return f"{place}: {severity}: {finding.message} [{finding.rule}]"


def _summary(report: "Report", files: int, seconds: float) -> str:
    from seedance_obs.topology.in_short import counted

    verdict = (
        click.style("valid", fg="green", bold=True)
        if report.valid
        else click.style("invalid", fg="red", bold=True)
    )
    found = f"{counted(report.errors, 'error')}, {counted(report.warnings, 'warning')}"
    read = f"{counted(report.nodes, 'node')}, {counted(report.edges, 'edge')}"
    return f"{verdict}: {found}; {read} in {counted(files, 'file')}, {seconds:.2f} s"


def _as_data(report: "Report", seconds: float) -> dict[str, object]:
    data = dataclasses.asdict(report)
    for entry, finding in zip(data["findings"], report.findings, strict=True):
        entry["severity"] = finding.severity
        entry["related"] = [{"file": file, "line": line} for file, line in finding.related]
    return {"valid": report.valid, "seconds": round(seconds, 3), **data}
