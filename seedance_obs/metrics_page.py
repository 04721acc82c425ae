"""METRICS.md: what the exporter of a node tells, in a form for people."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.exporter.registry import registrations
from seedance_obs.exporter.view import GPU_LABELS

FRAGMENTATION = """\
All of it is about what nobody holds, by who was given what and not by how full memory is. Four
measures need no more than that, or the sizes of requests:

- **Memory** (`seedance_node_fragmentation_memory_ratio`): free memory outside the GPU that has most
  of it. An empty node of eight GPUs reads 0.875, so the normalised one is for comparing.
- **Unusable** (`seedance_node_unusable_free_gpus`): what lies in parts smaller than a typical
  request wants of one GPU.
- **Island** (`seedance_node_island_free_gpus`): whole free GPUs on the island (NVLink domain, PCIe
  switch or NUMA node) that has most of them.
- **Gang** (`seedance_node_gang_free_gpus`): whole free GPUs that can serve requests for 1, 2, 4 or
  8 of one node.

Two more weigh what is free by the request mix, which on a node is what was placed there lately:

- **FGD** (`seedance_node_fragmentation_fgd_gpus`): all that is free to a request for more GPUs with
  enough free than the node has, else left-overs smaller than the request; the mean over the most
  frequent requests, up to 95 %.
- **Stranded** (`seedance_node_stranded_free_gpus`): all that is free to such a request, without
  left-overs; the mean over all requests.

Whatever is placed here has a GPU, and what it wants of the CPU is not known: on a node neither
requests for no GPU nor a lack of CPU make a fragment. `seedance-obs topology fragmentation` knows
both, from tables of a fleet's nodes and requests, and prints what each contributes to FGD's rate.
One state of the cluster in Alibaba's public trace, filled at random until 80 % of its GPUs were
asked for, reads by that command:

- **75.8 % by FGD**, as its authors compute it: 13.6 for requests that want no GPU, to which all
  that is free is a fragment; 37.5 where the CPU is used up; 17.2 where GPUs alone are too few; 7.4
  left-overs. Empty, the same cluster reads 13.9 %, since some of its requests want no GPU.
- **29.0 % stranded**: where GPUs are too few, with or without a lack of CPU, in the mean over the
  requests for GPUs alone.

Neither is wrong; they answer different questions. Alert on the stranded share, which says where
moving work helps, and explain it with FGD and its causes. Over a fleet divide sums of GPUs by sums
of GPUs, as the recording rules do for each value of the target label `cluster`, and never average
ratios. A node that is cordoned is not known to the exporter as such.
"""


def metrics_page(scrape: str) -> str:
    """METRICS.md: every family of a scrape with its type, labels and meaning."""
    lines = [
        "# Metrics of the node exporter",
        "",
        "Generated from `node.prom` by `make generate`. A label that is empty is not known. `GPU`",
        "stands for the labels every GPU series carries: `gpu` (index), `gpu_uuid`, `pci_bus_id`,",
        "`numa_node`, `pcie_root`, `pcie_switch`, `nvlink_domain`.",
        "",
        "## Collectors",
        "",
        "| collector | default | what it tells |",
        "|---|---|---|",
        *(
            f"| `{entry.name}` | {'on' if entry.default else 'off'} | {entry.about} |"
            for entry in registrations().values()
        ),
        "",
        "## Fragmentation",
        "",
        *FRAGMENTATION.splitlines(),
        "",
        "## Series",
        "",
        "| series | type | labels | meaning |",
        "|---|---|---|---|",
    ]
    for family in text_string_to_metric_families(scrape):
        sample = family.samples[0]
        about = family.documentation.replace("|", "\\|")
        lines.append(f"| `{sample.name}` | {family.type} | {_labels(sample.labels)} | {about} |")
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    whole = labels.keys() >= set(GPU_LABELS)
    own = [f"`{name}`" for name in labels if not (whole and name in GPU_LABELS)]
    return ", ".join([*(["GPU"] if whole else []), *own])
