"""`seedance-obs topology parse` over the whole sample folder, beside what its INDEX.md says."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from seedance_obs.cli import main
from tests.topology import index_of_samples as index

pytestmark = index.needs_samples

Parsed = dict[str, Any]

FORMATS = {
    "hwloc-": "hwloc-xml",
    "lspci-nn-": "lspci",
    "lspci-tv-": "lspci-tree",
    "nccl-topo-": "nccl-xml",
    "nvidia-smi-q-": "nvidia-smi-q",
    "nvlink-R-": "nvlink-R",
    "nvlink-s-": "nvlink-s",
    "p2p-": "topo-p2p",
}
NUMBERS = {"two": 2, "four": 4}
STATUSES = {
    "all OK": "ok",
    "CNS": "chipset_not_supported",
    "GNS": "gpu_not_supported",
}


@pytest.fixture(scope="module")
def parsed() -> dict[str, Parsed]:
    """What one call over all files prints, by file name."""
    files = [*index.SAMPLES.glob("*.txt"), *index.SAMPLES.glob("other/*.txt")]
    done = CliRunner().invoke(main, ["topology", "parse", "--json", *map(str, files)])
    assert (done.exit_code, done.stderr) == (0, "")
    readings = [json.loads(line) for line in done.stdout.splitlines()]
    assert [reading["file"] for reading in readings] == [str(file) for file in files]
    return {file.name: reading for file, reading in zip(files, readings, strict=True)}


def between_gpus(data: Parsed) -> list[Parsed]:
    gpus = {gpu["name"] for gpu in data["gpus"]}
    return [link for link in data["links"] if {link["source"], link["target"]} <= gpus]


def linked_pairs(data: Parsed) -> dict[tuple[int, int], int]:
    number = {gpu["name"]: gpu["index"] for gpu in data["gpus"]}
    return {
        (number[link["source"]], number[link["target"]]): link["nvlinks"]
        for link in between_gpus(data)
        if link["nvlinks"]
    }


def test_every_file_of_the_folder_is_in_the_index_and_the_other_way_round(parsed):
    named = {sample.file for sample in index.matrices()} | set(index.others())
    assert named == set(parsed)
    assert (len(index.matrices()), len(index.others())) == (51, 24)


@pytest.mark.parametrize("sample", index.matrices(), ids=lambda sample: sample.file)
def test_a_matrix_is_what_a_person_reads_off_it(sample, parsed):
    data = parsed[sample.file]
    assert data["format"] == "topo-m"
    assert [gpu["index"] for gpu in data["gpus"]] == list(range(sample.gpus))
    assert len(data["nics"]) == sample.nics
    assert linked_pairs(data) == sample.nvlinks
    numa = {gpu["index"]: gpu["numa"] for gpu in data["gpus"] if gpu["numa"] is not None}
    assert numa == {gpu: [node] for gpu, node in sample.numa.items()}
    by_node: dict[str, list[str]] = {}
    for gpu, node in sample.numa.items():
        by_node.setdefault(str(node), []).append(f"GPU{gpu}")
    assert data["numa"] == by_node
    assert bool(data["warnings"]) == sample.is_cut


@pytest.mark.parametrize("sample", index.matrices(), ids=lambda sample: sample.file)
def test_domains_join_exactly_the_gpus_that_nvlinks_join(sample, parsed):
    groups = [{gpu} for gpu in range(sample.gpus)]
    for pair in sample.nvlinks:
        joined = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    members = {frozenset(names) for names in parsed[sample.file]["domains"].values()}
    assert members == {
        frozenset(f"GPU{gpu}" for gpu in group) for group in groups if len(group) > 1
    }


def gpus(data: Parsed, count: str) -> None:
    assert len(data["gpus"]) == int(NUMBERS.get(count, count))


def of_class(data: Parsed, count: str, code: str) -> None:
    if code == "0302":  # NVSwitches are no part of the JSON
        gpus(data, count)


def pci_domains(data: Parsed, first: str, last: str) -> None:
    found = sorted(gpu["bus_id"].partition(":")[0] for gpu in data["gpus"])
    assert (found[0], found[-1]) == (first, last)


def links_at(data: Parsed, count: str, rate: str) -> None:
    for gpu in data["gpus"]:
        rates = [port["mb_per_second"] for port in gpu["nvlinks"]]
        assert rates == [pytest.approx(float(rate) * 1000)] * int(count)


def links_to_each_other(data: Parsed, count: str) -> None:
    assert linked_pairs(data) == {(0, 1): int(count)}
    assert between_gpus(data)[0]["nvlink_kind"] == "direct"


def links_to_switches(data: Parsed, count: str, shares: str) -> None:
    links = [int(share) for share in shares.split(",")]
    assert len(links) == int(count)
    assert set(linked_pairs(data).values()) == {sum(links)}
    assert {link["nvlink_kind"] for link in between_gpus(data)} == {"switch"}


def links_of_a_pair(data: Parsed, count: str) -> None:
    assert set(linked_pairs(data).values()) == {int(count)}


def one_rate(data: Parsed, rate: str) -> None:
    found = {port["mb_per_second"] for gpu in data["gpus"] for port in gpu["nvlinks"] or ()}
    assert found <= {float(rate)}
    assert set(linked_pairs(data).values())


def pcie(data: Parsed, generation: str, width: str) -> None:
    link = data["gpus"][0]["pcie"]
    assert (link["generation"], link["width"]) == (int(generation), int(width))


def pcie_below_its_best(data: Parsed, now: str, device: str, host: str) -> None:
    link = data["gpus"][0]["pcie"]
    best = min(int(device), int(host))
    assert (link["generation"], link["generation_max"]) == (int(now), best)


def no_pcie(data: Parsed) -> None:
    for gpu in data["gpus"]:
        assert (gpu["pcie"]["generation"], gpu["pcie"]["width"]) == (None, None)


def completed(data: Parsed) -> None:
    fabric = data["gpus"][0]["fabric"]
    assert (fabric["state"], fabric["status"]) == (3, 0)


def out_of_resources(data: Parsed) -> None:
    fabric = data["gpus"][0]["fabric"]
    assert (fabric["state"], fabric["status"]) == (3, 23)


def zero_uuid(data: Parsed) -> None:
    assert data["gpus"][0]["fabric"]["cluster_uuid"].strip("0") == ""
    assert data["domains"] == {}


def clique(data: Parsed, number: str) -> None:
    assert data["gpus"][0]["fabric"]["clique_id"] == int(number)


def unhealthy(data: Parsed) -> None:
    assert data["gpus"][0]["fabric"]["healthy"] is False


def no_fabric(data: Parsed) -> None:
    assert data["gpus"][0]["fabric"] == "unsupported"


def bus_id(data: Parsed, address: str) -> None:
    assert data["gpus"][0]["bus_id"] == f"0000:{address}"


def inactive_links(data: Parsed) -> None:
    states = {port["active"] for port in data["gpus"][0]["nvlinks"]}
    assert states == {True, False}


def remote_switch(data: Parsed) -> None:
    for port in data["gpus"][0]["nvlinks"]:
        assert re.fullmatch(r"\w{4}:\w\w:\w\w\.\w", port["remote"])
        assert isinstance(port["remote_port"], int)


def mig_mode(data: Parsed) -> None:
    assert data["gpus"][0]["nvlinks"] is None
    assert "MIG" in data["warnings"][0]


def no_nvlink(data: Parsed) -> None:
    assert data["gpus"][0]["nvlinks"] == "unsupported"


def all_inactive(data: Parsed) -> None:
    assert data["gpus"][0]["nvlinks"] is None
    assert "inactive" in data["warnings"][0]


def same_switch(data: Parsed, model: str) -> None:
    near = [nic for nic in data["nics"] if nic["label"] == model]
    gpu = data["gpus"][0]["name"]
    to_them = [link for link in data["links"] if {gpu} < {link["source"], link["target"]}]
    classes = {
        link["target"] if link["source"] == gpu else link["source"]: link["class"]
        for link in to_them
    }
    assert {classes[nic["name"]] for nic in near} == {"PXB"}


def own_root_ports(data: Parsed) -> None:
    roots = [gpu["pcie_root"] for gpu in data["gpus"]]
    assert len(set(roots)) == len(roots)
    assert {gpu["pcie_switch"] for gpu in data["gpus"]} == {"unsupported"}


def p2p(data: Parsed, way: str, status: str) -> None:
    count = len(data["gpus"])
    told = [set(link["p2p"].values()) for link in between_gpus(data)]
    assert told == [{STATUSES[status]}] * (count * (count - 1) // 2)
    assert {capability for link in data["links"] for capability in link["p2p"]} <= {
        "p2p",
        {"r": "read", "w": "write", "p": "pcie"}[way[0]],
    }


CLAIMS: dict[str, Callable[..., None]] = {
    r"^hwloc XML of a DGX-2: (\d+) nvml OS devices": gpus,
    r"\((\d+) GPUs \+": gpus,
    r"POWER8 \+ (\d+) P100": gpus,
    r"MB/s \((\d+) links\)": links_of_a_pair,
    r"(\d+) MB/s": one_rate,
    r"(\d+) class (\d{4}) functions": of_class,
    r"PCI domains (\w{4})-(\w{4})": pci_domains,
    r"(\w+) RTX 6000 Ada": gpus,
    r"on its own root port": own_root_ports,
    r"GPU and ([\w-]+) below one switch": same_switch,
    r": (two|\d+) [AH]100": gpus,
    r"(\d+) links direct to each other": links_to_each_other,
    r"link_speed empty and width 0": no_pcie,
    r"links to (\d+) NVSwitches \(counts ([\d,]+),": links_to_switches,
    r"PCIe gen (\d+) x(\d+)": pcie,
    r"PCIe current (\d+), device max (\d+), host max (\d+)": pcie_below_its_best,
    r"Completed/Success": completed,
    r"Completed with status Insufficient Resources": out_of_resources,
    r"zero (?:Cluster)?UUID": zero_uuid,
    r"CliqueId (\d+)": clique,
    r"Unhealthy": unhealthy,
    r"Fabric N/A": no_fabric,
    r"Bus Id ([\w:.]+)": bus_id,
    r"remote device is a switch bus id with remote link number": remote_switch,
    r"^nvlink -s: (\d+) GPUs": gpus,
    r"(\d+) links at ([\d.]+) GB/s": links_at,
    r"`<inactive>` entries": inactive_links,
    r"message for MIG mode": mig_mode,
    r"message for a GPU without NVLink": no_nvlink,
    r"message when all links are inactive": all_inactive,
    r"topo -p2p (r|w|rw|p)\b.*, (all OK|CNS|GNS)": p2p,
}


@pytest.mark.parametrize("file", index.others())
def test_another_text_is_recognised_and_shows_what_the_index_says_of_it(file, parsed):
    data = parsed[file]
    assert data["format"] == next(form for head, form in FORMATS.items() if file.startswith(head))
    row = index.others()[file]
    claims = [
        (check, found.groups())
        for pattern, check in CLAIMS.items()
        for found in re.finditer(pattern, row)
    ]
    assert claims, row
    for check, values in claims:
        check(data, *values)


@pytest.mark.parametrize("file", index.others())
def test_the_number_of_gpus_in_a_files_name_is_the_number_that_is_read(file, parsed):
    named = re.search(r"-(\d+)x-", file)
    if file == "nvlink-s-2x-rtx3090.txt":  # the line that names the first lies before the excerpt
        assert len(parsed[file]["gpus"]) == 1
    elif named:
        assert len(parsed[file]["gpus"]) == int(named[1])
    elif "xml" not in file:
        assert len(parsed[file]["gpus"]) == 1


def test_every_claim_is_made_somewhere():
    rows = "\n".join(index.others().values())
    assert [pattern for pattern in CLAIMS if not re.search(pattern, rows, re.MULTILINE)] == []
