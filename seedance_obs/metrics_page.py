"""METRICS.md: what the exporter of a node tells, in a form for people."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from seedance_obs.exporter.registry import registrations
from seedance_obs.exporter.view import GPU_LABELS

FRAGMENTATION = """\
Four measures, each named for what it is, from who holds which GPU and not from memory occupancy:

- **FGD** (`seedance_node_fragmentation_fgd_gpus`): what is free and cannot be used, in the mean
  over the request mix: the most frequent of the last placements, up to 95 %. To a request for no
  GPU all that is free counts; GPUs whose node has no CPU left count, and so do left-overs smaller
  than a request.
- **Stranded** (`seedance_node_stranded_free_gpus`): in the mean over all requests *for GPUs*,
  what is free where too few GPUs have room for them, whatever the CPU.
- **Unusable, island, gang** (`seedance_node_unusable_free_gpus`, `..._island_free_gpus`,
  `..._gang_free_gpus`): free parts below a typical request; free GPUs on
  the island (NVLink domain, switch or NUMA node) with most of them; free GPUs that can serve a
  request for 1, 2, 4 or 8 of one node.
- **Memory** (`seedance_node_fragmentation_memory_ratio`): free memory outside the emptiest GPU.
  An empty node of eight GPUs reads 0.875, so the normalised one is for comparing.

FGD and stranded differ by design. A public state of Alibaba's cluster reads 75.8 % by the first,
which is what its authors print, and 29.0 % by the second; the same cluster reads 13.9 % by FGD
while it is empty, because some requests want no GPU. Alert on the stranded share, which says
where moving work helps; explain it with FGD and the causes that `seedance-obs topology
fragmentation` prints. Over a fleet, divide sums of GPUs by sums of GPUs, as the recording rules
do, and never average ratios. A node that is cordoned is not known to the exporter as such.
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
