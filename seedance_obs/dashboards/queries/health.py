"""The health of GPUs: what failed, what is about to, and what slows boards down.

What is wrong now is asked of whole clusters. How each GPU fared over time is asked of chosen nodes:
of a thousand it would take too long, and nobody could read it.
"""

from seedance_obs.dashboards.queries.scope import CHOSEN, FLEET
from seedance_obs.dashboards.queries.shape import band, columns

BY_GPU = "by (cluster, instance, gpu, gpu_uuid)"
BY_XID = "by (cluster, instance, gpu, gpu_uuid, xid, class)"
EXPECTED = f"seedance_gpus_expected{{{FLEET}}}"
SEEN = f"seedance_gpus_seen{{{FLEET}}}"
XID = f"max {BY_XID} (seedance_gpu_xid_errors_total{{{FLEET}}})"
RECOVERY = f"seedance_gpu_recovery_action{{{FLEET}}}"
LINKS_DOWN = (
    f"clamp_min(seedance_gpu_nvlinks_expected{{{FLEET}}}"
    f" - seedance_gpu_nvlinks_active{{{FLEET}}}, 0)"
)


def _ecc(error: str) -> str:
    matchers = f'{FLEET},scope="volatile",error="{error}"'
    return f"sum {BY_GPU} (seedance_gpu_ecc_errors_total{{{matchers}}}) > 0"


def _flag(expr: str) -> str:
    return f"max {BY_GPU} ({expr}) > 0"


def _slowed(reasons: str) -> str:
    matchers = f'{CHOSEN},reason=~"{reasons}"'
    active = f"max by (instance, gpu) (seedance_gpu_clocks_event_active{{{matchers}}})"
    return band(active)


MISSING = f"sum(clamp_min({EXPECTED} - {SEEN}, 0))"
GPUS_WITH_XID = f"count(count by (cluster, instance, gpu_uuid) ({XID})) or vector(0)"
GPUS_TO_RECOVER = f"count(count by (cluster, instance, gpu_uuid) ({RECOVERY})) or vector(0)"
GPUS_WITH_LINKS_DOWN = f"count({LINKS_DOWN} > 0) or vector(0)"
ROWS_PENDING = f"sum(seedance_gpu_remapped_rows_pending{{{FLEET}}})"
ROWS_FAILED = f"sum(seedance_gpu_remapped_rows_failed{{{FLEET}}})"

FAULTS = columns(
    lost=_flag(f'seedance_topology_device_info{{{FLEET},kind="gpu",state="missing"}}'),
    ecc_uncorrected=_ecc("uncorrected"),
    remap_failed=_flag(f"seedance_gpu_remapped_rows_failed{{{FLEET}}}"),
    remap_pending=_flag(f"seedance_gpu_remapped_rows_pending{{{FLEET}}}"),
    nvlinks_down=_flag(LINKS_DOWN),
    fabric_ill=_flag(f"1 - seedance_gpu_fabric_healthy{{{FLEET}}}"),
    pcie_degraded=_flag(f"seedance_gpu_pcie_link_degraded{{{FLEET}}}"),
    ecc_corrected=_ecc("corrected"),
)
XIDS = columns(errors=XID)
ACTIONS = columns(asked=f"max by (cluster, instance, gpu, gpu_uuid, action) ({RECOVERY})")

XIDS_OVER_TIME = f"sum by (class) (seedance_gpu_xid_errors_total{{{FLEET}}})"
CORRECTED_RATE = (
    "sum by (instance, gpu) (rate(seedance_gpu_ecc_errors_total"
    f'{{{CHOSEN},scope="volatile",error="corrected"}}[$__rate_interval])) > 0'
)
REPLAY_RATE = (
    "sum by (instance, gpu) (rate(seedance_gpu_pcie_replays_total"
    f"{{{CHOSEN}}}[$__rate_interval])) > 0"
)
NVLINKS_UP = band(
    f"seedance_gpu_nvlinks_active{{{CHOSEN}}} / (seedance_gpu_nvlinks_expected{{{CHOSEN}}} > 0)"
)
TEMPERATURE = f"max by (instance, gpu) (seedance_gpu_temperature_celsius{{{CHOSEN}}})"
SLOWED_BY_HARDWARE = _slowed("hw_.+|sw_thermal_slowdown")
CAPPED = _slowed("sw_power_cap")
