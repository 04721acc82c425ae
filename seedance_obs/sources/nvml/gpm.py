"""The GPM metrics that are asked for: their numbers, their units, and how often they may be.

GPM (Hopper and later) counts in hardware. A metric is the difference between two samples of those
counters, which the board refreshes ten times a second: `nvml.h` wants more than 100 ms between
two samples. The DCGM of these boards takes its profiling fields from the same metrics.
"""

from seedance_obs.sources.nvml.library import NO_PERMISSION

MIB = 2**20
REFRESH_SECONDS = 0.1
SHORTEST_SECONDS = 1.1 * REFRESH_SECONDS  # a tick that is due after 100 ms can be early by a little

# What refuses the call for as long as this process runs: it wants CAP_SYS_ADMIN in a container.
LASTING = {"nvmlGpmMetricsGet": (NO_PERMISSION,)}

# NVML_GPM_METRIC_*: percent.
ACTIVITY_METRICS = {
    1: "engine_active_ratio",
    2: "sm_active_ratio",
    3: "sm_occupancy_ratio",
    5: "tensor_active_ratio",
    10: "dram_active_ratio",
    11: "fp64_active_ratio",
    12: "fp32_active_ratio",
    13: "fp16_active_ratio",
}
DRAM_BUSY = 10

# NVML_GPM_METRIC_*: MiB/s, as medium and direction.
TRAFFIC_METRICS = {
    20: ("pcie", "transmit"),
    21: ("pcie", "receive"),
    61: ("nvlink", "transmit"),
    60: ("nvlink", "receive"),
}
