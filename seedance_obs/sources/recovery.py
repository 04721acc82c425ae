"""What the driver asks for to get a GPU back, by the numbers that NVML and DCGM give it.

The numbers have grown twice since the first of them came: one that is not here is still a wish of
the driver, unlike 0.
"""

FIRST_RELEASE = 565  # of the driver
ACTIONS = (  # nvmlDeviceGpuRecoveryAction_t
    "none",
    "gpu_reset",
    "node_reboot",
    "drain_p2p",
    "drain_and_reset",
    "recover_imex_domain",
    "bus_reset",
    "system_reboot",
)


def action_name(action: int) -> str:
    """The name of a recovery action, `action_<n>` for one that is not known."""
    return ACTIONS[action] if 0 <= action < len(ACTIONS) else f"action_{action}"
