"""Every option of the node exporter, in one place: file, environment and flags are views of it.

An option `nvml_deadline_seconds` is `deadline_seconds` under `[nvml]` in the file,
`SEEDANCE_NVML_DEADLINE_SECONDS` in the environment and `--nvml-deadline-seconds` on the command
line. A flag beats the environment, the environment beats the file, the file beats the default.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from seedance_obs.errors import UsageError
from seedance_obs.quantities import QUANTITIES

# An energy counter may stand still for two minutes before it tells of those who held the board.
LEAST_ENDED_SECONDS = 150.0
MOST_WORKLOADS = 100_000
SHORTEST_FAST_SECONDS = 0.02
LONGEST_WINDOW_SECONDS = 3600.0


def _about(text: str) -> Mapping[str, str]:
    return {"about": text}


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The node exporter's options; units are in the names, `about` in each field's metadata."""

    server_address: str = field(
        default="127.0.0.1:19400",
        metadata=_about("Address and port to serve; loopback unless you say otherwise."),
    )
    node_name: str = field(
        default="",
        metadata=_about("Name of this node in ids such as nvlink_domain; empty: the host name."),
    )
    node_root: str = field(
        default="/",
        metadata=_about("Where the host's /proc, /sys and /etc are; /host inside a container."),
    )
    node_expected_gpus: int = field(
        default=0,
        metadata=_about("GPUs this node should have; 0: as many as PCI shows or were ever seen."),
    )
    sampler_interval_seconds: float = field(
        default=1.0, metadata=_about("How often NVML is read and the scrape is rebuilt.")
    )
    sampler_stale_after_seconds: float = field(
        default=30.0,
        metadata=_about("A source silent for longer than this leaves the scrape."),
    )
    nvml_enabled: bool = field(default=True, metadata=_about("Read the driver through NVML."))
    nvml_library: str = field(
        default="pynvml",
        metadata=_about(
            "Who answers NVML calls: pynvml (the driver), sim:MACHINE@EPOCH or replay:FILE."
        ),
    )
    nvml_start_deadline_seconds: float = field(
        default=30.0,
        metadata=_about("How long the driver may take to initialise before it counts as hung."),
    )
    nvml_deadline_seconds: float = field(
        default=5.0,
        metadata=_about("How long one pass over the GPUs may take before the worker is killed."),
    )
    nvml_release_file: str = field(
        default="",
        metadata=_about(
            "While this file exists the exporter holds no driver handle (upgrade, reset, VFIO)."
        ),
    )
    dcgm_url: str = field(
        default="",
        metadata=_about(
            "A dcgm-exporter page to merge, such as http://127.0.0.1:9400/metrics; empty: none."
        ),
    )
    dcgm_interval_seconds: float = field(
        default=10.0, metadata=_about("How often the DCGM page is read.")
    )
    dcgm_timeout_seconds: float = field(
        default=5.0, metadata=_about("How long the DCGM page may take, connect to last byte.")
    )
    dcgm_page_limit_bytes: int = field(
        default=16 * 2**20, metadata=_about("A DCGM page larger than this is refused.")
    )
    podresources_socket: str = field(
        default="/var/lib/kubelet/pod-resources/kubelet.sock",
        metadata=_about(
            "The kubelet's pod-resources socket, below node.root; where there is none, no pods are "
            "looked for."
        ),
    )
    podresources_interval_seconds: float = field(
        default=5.0, metadata=_about("How often the kubelet is asked who holds which device.")
    )
    podresources_timeout_seconds: float = field(
        default=3.0, metadata=_about("How long the kubelet may take to answer.")
    )
    podresources_resource_names: tuple[str, ...] = field(
        default=(),
        metadata=_about(
            "Resources to look at besides nvidia.com/gpu, nvidia.com/gpu.shared and "
            "nvidia.com/mig-*, for device plugins that rename them."
        ),
    )
    slurm_job_map_directory: str = field(
        default="",
        metadata=_about(
            "Where the Slurm prolog writes one file of job ids for each GPU, below node.root; "
            "empty: jobs are known by their cgroups alone."
        ),
    )
    tenants_file: str = field(
        default="",
        metadata=_about(
            "Ordered rules that say whose a workload is, read again when it changes; empty: the "
            "namespace, else the Slurm account, else the user."
        ),
    )
    attribution_floor_watts: tuple[str, ...] = field(
        default=(),
        metadata=_about(
            "What an idle board draws, for boards that are never seen idle: "
            '"NVIDIA H100 80GB HBM3=68".'
        ),
    )
    attribution_shapley: bool = field(
        default=False,
        metadata=_about("Also split active energy by Shapley value where at most 7 share a board."),
    )
    attribution_workload_limit: int = field(
        default=500,
        metadata=_about("Workloads shown at most; what more there are is counted, and billed."),
    )
    attribution_ended_seconds: float = field(
        default=300.0,
        metadata=_about("How long an ended workload stays visible, so that its end is scraped."),
    )
    bandwidth_enabled: bool = field(
        default=True,
        metadata=_about("Run the fast loops, which see bursts that a scrape cannot."),
    )
    bandwidth_interval_seconds: float = field(
        default=0.1,
        metadata=_about(
            "How often the fast loops read what passes over links, memory and network adapters."
        ),
    )
    bandwidth_window_seconds: float = field(
        default=15.0,
        metadata=_about(
            "Over how long means and peaks are taken: no shorter than the scrape interval, or what "
            "lies between two scrapes is not seen."
        ),
    )
    fragmentation_placements: int = field(
        default=1000,
        metadata=_about("The last placements on this node whose requests make the request mix."),
    )
    leaks_processes: str = field(
        default="gpu",
        metadata=_about(
            "Which processes are probed for leaks: gpu (those on GPUs and the whole of their "
            "workloads), all, or none."
        ),
    )
    leaks_interval_seconds: float = field(
        default=15.0, metadata=_about("How often processes are probed.")
    )
    leaks_idle_seconds: float = field(
        default=300.0,
        metadata=_about("How long all must be quiet before an idle window opens."),
    )
    leaks_idle_cpu_ratio: float = field(
        default=0.12,
        metadata=_about(
            "A node is quiet below this share of its CPUs, a workload below this share of the "
            "CPUs that go with its GPUs."
        ),
    )
    leaks_idle_memory_ratio: float = field(
        default=0.12,
        metadata=_about("A node is quiet below this share of memory in use (not available)."),
    )
    leaks_idle_gpu_ratio: float = field(
        default=0.05, metadata=_about("GPUs are quiet below this share of their time.")
    )
    leaks_fd_growth: tuple[str, ...] = field(
        default=("fast=8/s,3m", "slow=0.05/s,2h"),
        metadata=_about(
            "File descriptors leak when they grow at this rate over three such windows in a row: "
            "NAME=RATE,WINDOW. A process is judged once it was watched for five windows, since "
            "what climbs from birth cannot be told from a sawtooth before its first reset: a leak "
            "from birth, or soon after a restart of the exporter, is told after 15 minutes by "
            "fast=8/s,3m and after 10 hours by slow=0.05/s,2h."
        ),
    )
    leaks_fd_limit_ratio: float = field(
        default=0.8,
        metadata=_about("A process is near its limit of open files from this share of it."),
    )
    leaks_memory_growth: tuple[str, ...] = field(
        default=("fast=32MiB/h,20m", "slow=4MiB/h,2h"),
        metadata=_about(
            "The same for anonymous memory, over idle time in as many windows as that takes."
        ),
    )
    leaks_residency_ratio: float = field(
        default=0.3,
        metadata=_about(
            "Anonymous memory (data and stack) is sparse when less than this share is resident..."
        ),
    )
    leaks_residency_least_bytes: int = field(
        default=2_000_000_000,
        metadata=_about("...of a process with more than this resident in all."),
    )
    leaks_smaps: bool = field(
        default=False,
        metadata=_about(
            "Also read how much of a suspect's memory was used lately from smaps_rollup, which "
            "holds the suspect up meanwhile; one suspect a probe."
        ),
    )
    leaks_smaps_most_bytes: int = field(
        default=8 * 2**30,
        metadata=_about(
            "smaps_rollup is not read of suspects with more resident memory than this."
        ),
    )
    leaks_smaps_seconds: float = field(
        default=1.0,
        metadata=_about(
            "How long reading smaps_rollup may take; of who took longer it is not read again."
        ),
    )
    leaks_context_seconds: float = field(
        default=1800.0,
        metadata=_about("How long a GPU context must do nothing to be pseudo-idle."),
    )
    leaks_context_samples: int = field(
        default=100, metadata=_about("How many samples of its activity must say so at least.")
    )
    leaks_context_activity_ratio: float = field(
        default=0.01,
        metadata=_about(
            "A context does nothing below this activity of SMs, memory and video engines."
        ),
    )
    leaks_gpu_memory_bytes: int = field(
        default=512 * 2**20,
        metadata=_about("GPU memory below this is nobody's leak: contexts leave residues."),
    )
    leaks_warm_servers: tuple[str, ...] = field(
        default=(),
        metadata=_about(
            'Workloads that may hold GPU memory and wait: "namespace=serving", "image=*vllm*", '
            '"tenant=...", "pod=...", "container=...", "user=...", "slurm_account=...", "comm=...".'
        ),
    )
    leaks_orphan_seconds: float = field(
        default=300.0,
        metadata=_about("How long a GPU must be used by no living process to be suspect."),
    )
    leaks_allocated_seconds: float = field(
        default=1800.0,
        metadata=_about("How long a holder may run nothing on its GPU."),
    )
    leaks_spin_seconds: float = field(
        default=600.0,
        metadata=_about("How long a GPU must look busy and draw little to be spinning."),
    )
    leaks_shown: int = field(
        default=10, metadata=_about("Suspects shown of each kind at most; more are counted.")
    )
    prices_currency: str = field(
        default="", metadata=_about("Currency of the prices below, such as EUR.")
    )
    prices_kwh: float = field(
        default=0.0, metadata=_about("What a kilowatt-hour costs; 0: not known.")
    )
    prices_gpu_hour: float = field(
        default=0.0, metadata=_about("What an hour of one GPU costs; 0: not known.")
    )
    state_directory: str = field(
        default="",
        metadata=_about(
            "Where the accounts are kept over restarts; empty: $STATE_DIRECTORY, as systemd sets "
            "it, else they are not kept."
        ),
    )
    merge_order: tuple[str, ...] = field(
        default=(),
        metadata=_about(
            'Sources of a quantity where the default order does not suit: "power_watts=dcgm,nvml".'
        ),
    )
    collectors_disabled: tuple[str, ...] = field(
        default=(), metadata=_about("Collectors to leave out.")
    )
    collectors_enabled: tuple[str, ...] = field(
        default=(), metadata=_about("Collectors to add that are off by default.")
    )

    def __post_init__(self) -> None:
        """Refuse values that could only fail later.

        Raises:
            UsageError: names the option, what it holds and what it could hold.
        """
        split_address(self.server_address, "server.address")
        for option in dataclasses.fields(self):
            value = getattr(self, option.name)
            if option.name.endswith("_seconds") and not 0 < value < math.inf:
                raise UsageError(f"{dotted(option.name)} = {value}: more than 0 seconds is needed")
        kind, colon, argument = self.nvml_library.partition(":")
        if self.nvml_library != "pynvml" and not (kind in ("sim", "replay") and colon and argument):
            raise UsageError(
                f"nvml.library = {self.nvml_library!r}: "
                "wanted pynvml, sim:MACHINE@EPOCH or replay:FILE"
            )
        if self.node_expected_gpus < 0:
            raise UsageError(f"node.expected_gpus = {self.node_expected_gpus}: 0 or more is needed")
        stale = self.sampler_stale_after_seconds
        polled = ["sampler_interval_seconds", *(["dcgm_interval_seconds"] if self.dcgm_url else [])]
        for name in polled:
            if 2 * getattr(self, name) > stale:
                raise UsageError(
                    f"{dotted(name)} = {getattr(self, name):g}: at most half of "
                    f"sampler.stale_after_seconds ({stale:g}) is needed, else readings come and go"
                )
        if self.attribution_ended_seconds < LEAST_ENDED_SECONDS:
            raise UsageError(
                f"attribution.ended_seconds = {self.attribution_ended_seconds:g}: at least "
                f"{LEAST_ENDED_SECONDS:g} is needed, else a workload may leave before its last "
                "energy is booked"
            )
        if not 0 <= self.attribution_workload_limit <= MOST_WORKLOADS:
            raise UsageError(
                f"attribution.workload_limit = {self.attribution_workload_limit}: "
                f"0 to {MOST_WORKLOADS} is needed"
            )
        self._check_leaks()
        self._check_bandwidth()
        if self.dcgm_page_limit_bytes < 1:
            raise UsageError("dcgm.page_limit_bytes: 1 or more is needed")
        if self.dcgm_url and urlsplit(self.dcgm_url).scheme != "http":
            raise UsageError(f"dcgm.url = {self.dcgm_url!r}: an http:// URL is needed")
        self.source_orders()

    def _check_leaks(self) -> None:
        if self.leaks_processes not in ("gpu", "all", "none"):
            raise UsageError(f"leaks.processes = {self.leaks_processes!r}: wanted gpu, all or none")
        for name in (name for name in OPTIONS if name.startswith(("leaks_", "prices_"))):
            value = getattr(self, name)
            if name.endswith("_ratio") and not 0 < value <= 1:
                raise UsageError(f"{dotted(name)} = {value:g}: more than 0, at most 1 is needed")
            if isinstance(value, int | float) and not 0 <= value < math.inf:
                raise UsageError(f"{dotted(name)} = {value:g}: 0 or more is needed")
        if (self.prices_kwh or self.prices_gpu_hour) and not self.prices_currency:
            raise UsageError("prices.currency is empty: a price needs one, such as EUR")

    def _check_bandwidth(self) -> None:
        interval, window = self.bandwidth_interval_seconds, self.bandwidth_window_seconds
        if interval < SHORTEST_FAST_SECONDS:
            raise UsageError(
                f"bandwidth.interval_seconds = {interval:g}: {SHORTEST_FAST_SECONDS:g} or more is "
                "needed, since drivers answer no faster"
            )
        if not 3 * interval <= window <= LONGEST_WINDOW_SECONDS:
            raise UsageError(
                f"bandwidth.window_seconds = {window:g}: at least three times "
                f"bandwidth.interval_seconds ({interval:g}) and at most "
                f"{LONGEST_WINDOW_SECONDS:g} is needed"
            )
        if self.fragmentation_placements < 1:
            raise UsageError("fragmentation.placements: 1 or more is needed")

    def source_orders(self) -> Mapping[str, tuple[str, ...]]:
        """The sources of each quantity, most trusted first, `merge_order` applied."""
        orders = {quantity.name: quantity.sources for quantity in QUANTITIES.values()}
        for entry in self.merge_order:
            name, _, sources = entry.partition("=")
            chosen = tuple(part.strip() for part in sources.split(",") if part.strip())
            known = orders.get(name.strip(), ())
            if not chosen or not set(chosen) <= set(known):
                raise UsageError(
                    f"merge.order entry {entry!r}: wanted QUANTITY=SOURCE[,SOURCE] with a quantity "
                    f"such as {', '.join(sorted(orders)[:3])} and sources that can read it"
                    + (f" ({', '.join(known)})" if known else "")
                )
            orders[name.strip()] = chosen
        return orders


OPTIONS = {option.name: option for option in dataclasses.fields(NodeSettings)}


def dotted(name: str) -> str:
    """`nvml_deadline_seconds` as it is spoken of in the file: `nvml.deadline_seconds`."""
    return name.replace("_", ".", 1)


def split_address(text: str, what: str) -> tuple[str, int]:
    """`127.0.0.1:19400` or `[::1]:19400` as host and port.

    Raises:
        UsageError: it is not an address and a port from 0 to 65535.
    """
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise UsageError(f"{what} = {text!r}: wanted HOST:PORT, for example 127.0.0.1:19400")
    return host.strip("[]"), int(port)
