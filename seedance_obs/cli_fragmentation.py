"""`seedance-obs topology fragmentation`: how much of what is free is of use, from two tables."""

import gzip
import io
import json
import zlib
from typing import TYPE_CHECKING, Any

import click

from seedance_obs.cli_files import contents, decoded
from seedance_obs.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.table import Table

    from seedance_obs.fragmentation.fgd import Cause
    from seedance_obs.fragmentation.report import FleetReport, NodeFragments

GZIP_MARK = b"\x1f\x8b"
MOST_TABLE_BYTES = 256 * 2**20  # unpacked
CAUSES = {
    "no_gpu_wanted": "requests for no GPU call all that is free a fragment: nothing to do",
    "other_model": "of a model that is not asked for: loosen gpu_spec",
    "gpu_and_cpu": "too few GPUs with enough free, and too little CPU: move pods away",
    "gpu": "too few GPUs with enough free: pack tighter, or move small shares away",
    "cpu": "the GPUs would do, the CPU is gone: ask for less CPU per GPU, move CPU work",
    "remainder": "left-overs beside GPUs that do: offer sizes that add up to a GPU",
}
FGD = "cannot be used, in the mean over the requests of the mix; the causes:"
STRANDED = (
    "lies on nodes with too few fitting GPUs, in the mean over the requests for GPUs, "
    "whatever the CPU: moving placements can win back some of it"
)
UNUSABLE = (
    "lies on GPUs with less free than requests want ({}), CPU and number of GPUs aside: pack "
    "small shares together"
)
EXTERNAL = (
    "is elsewhere than on the freest GPU of its node: of note where one GPU should have it all, "
    "and high on any node with several free GPUs"
)
ISLAND = "is outside the island of its node with most free: fill one island before the next"
GANG = "of the whole free GPUs no job of {} on a node can get"


@click.command("fragmentation", short_help="Measure how much of the free GPUs is of use.")
@click.option(
    "--nodes", "node_file", required=True, metavar="FILE", help="What is free on each node."
)
@click.option("--pods", "pod_file", required=True, metavar="FILE", help="What is asked for.")
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many nodes to list, those with the largest fragments.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, shares from 0 to 1.")
def fragmentation(node_file: str, pod_file: str, *, worst: int, as_json: bool) -> None:
    """Measure how much of what is free on a fleet's GPUs is of use to what is asked for.

    FILEs are CSV, as it is or compressed by gzip, or a JSON list of objects with the same names;
    - reads standard input. Columns are those of Alibaba's public trace; others are ignored:

    \b
        nodes  sn or name, model
               gpu0_milli_free, gpu1_milli_free ... (0 to 1000, empty: there is
               no such GPU; JSON: the list gpu_milli_free), cpu_milli_free
               gpu0_island, gpu1_island ... (NVLink domain or PCIe switch)
               or, of nodes that are wholly free: gpu (how many), cpu_milli
        pods   num_gpu, gpu_milli (of each GPU, empty: whole ones), cpu_milli,
               gpu_spec (models that will do: A|B, empty: any)

    A node whose CPU or model is not told lacks neither. What is free is what nobody is given, not
    what happens to be idle. The pods' columns are those of all that was asked for lately, placed
    or not: how often each request comes is its weight.

    Exit codes: 0 measured, 2 usage, or a FILE cannot be read, or a row of it is wrong.
    """
    from seedance_obs.fragmentation.report import fleet_report
    from seedance_obs.fragmentation.tables import read_nodes, read_requests

    if node_file == pod_file == "-":
        raise UsageError("--nodes - --pods -: standard input can be one of them")
    (node_name, node_text), (pod_name, pod_text) = map(_text, (node_file, pod_file))
    report = fleet_report(
        read_nodes(node_text, name=node_name), read_requests(pod_text, name=pod_name)
    )
    if as_json:
        click.echo(json.dumps(_as_data(report, worst), indent=2))
    else:
        _show(report, worst)


def _show(report: "FleetReport", worst: int) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for part in _drawn(report, worst):
        console.print(part)


def _text(file: str) -> tuple[str, str]:
    ((name, content),) = contents((file,))
    if content.startswith(GZIP_MARK):
        try:
            with gzip.open(io.BytesIO(content)) as opened:
                content = opened.read(MOST_TABLE_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(f"{name}: cannot be decompressed: {error}") from error
    if len(content) > MOST_TABLE_BYTES:
        raise UsageError(f"{name}: more than {MOST_TABLE_BYTES >> 20} MiB are too much for a table")
    return name, decoded(content)


def _as_data(report: "FleetReport", worst: int) -> dict[str, Any]:
    return {
        "nodes": len(report.nodes),
        "gpus": report.gpus,
        "free_gpus": report.free_milli / 1000,
        "requests": report.requests,
        "classes": report.classes,
        "nodes_of_unknown_model": report.models_unknown,
        "fgd": report.fgd,
        "fgd_by_cause": {cause.value: share for cause, share in report.by_cause.items()},
        "stranded": report.stranded,
        "unusable": report.unusable,
        "unusable_demands_milli": report.demands_milli,
        "external": report.external,
        "island": report.island,
        "gang": report.gang,
        "worst": [
            {
                "node": node.name,
                "free_gpus": node.free_milli / 1000,
                "fragment_gpus": node.fragment_milli / 1000,
                "main_cause": node.main_cause.value,
            }
            for node in report.worst(worst)
        ],
    }


def _drawn(report: "FleetReport", worst: int) -> "list[RenderableType]":
    from seedance_obs.topology.in_short import counted

    nodes, gpus = counted(len(report.nodes), "node"), counted(report.gpus, "GPU")
    kinds = "of one kind" if report.classes == 1 else f"the {report.classes} most frequent kinds"
    head = (
        f"{nodes} with {gpus}, {report.free_milli / 1000:.1f} of them free. "
        f"FGD's mix: {counted(report.requests, 'request')}, {kinds}."
    )
    if not report.free_milli:
        return [head, "Nothing is free, so nothing is fragmented."]
    parts: list[RenderableType] = [head]
    if report.models_unknown:
        parts.append(
            f"Of {counted(report.models_unknown, 'node')} no model is known: requests that name "
            "models are taken to run there all the same."
        )
    parts += ["", _measures(report)]
    if listed := report.worst(worst):
        parts += ["", _worst(listed)]
    return parts


def _measures(report: "FleetReport") -> "Table":
    table = _table("Of what is free")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("")
    for measure, share, said in _rows(report):
        if share is not None:
            table.add_row(measure, f"{share:.1%}", said)
    return table


def _rows(report: "FleetReport") -> "Iterator[tuple[str, float | None, str]]":
    """Each measure, what it reads and what that means."""
    yield "FGD fragmentation", report.fgd, FGD
    for cause, part in _largest(report):
        yield f"  {_said(cause)}", part, CAUSES[cause.value]
    yield "stranded", report.stranded, STRANDED
    yield "unusable share", report.unusable, UNUSABLE.format(_quartiles(report))
    yield "external", report.external, EXTERNAL
    yield "island", report.island, ISLAND
    for gpus, share in report.gang.items():
        yield f"gang of {gpus}", share, GANG.format(gpus)


def _largest(report: "FleetReport") -> "list[tuple[Cause, float]]":
    shares = sorted(report.by_cause.items(), key=lambda pair: -pair[1])
    return [(cause, share) for cause, share in shares if share > 0]


def _worst(listed: "list[NodeFragments]") -> "Table":
    from seedance_obs.topology.shown_text import as_written

    table = _table("Worst nodes")
    for column in ("GPUs free", "of no use"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("most of it for")
    for node in listed:
        free, lost = node.free_milli / 1000, node.fragment_milli / 1000
        table.add_row(as_written(node.name), f"{free:.2f}", f"{lost:.2f}", _said(node.main_cause))
    return table


def _table(first: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, overflow="fold")
    return table


def _said(cause: "Cause") -> str:
    return cause.value.replace("_", " ").replace("gpu", "GPU").replace("cpu", "CPU")


def _quartiles(report: "FleetReport") -> str:
    return ", ".join(f"{milli / 1000:g}" for milli in report.demands_milli)
