"""One value per held device, however a device plugin or a DRA driver spells it.

Known spellings of a device id: NVIDIA's device plugin (`GPU-uuid`, `MIG-uuid`, before driver 470
`MIG-GPU-uuid/gi/ci`), GKE's (`nvidia0`, `nvidia0/gi2`), each with the mark of a shared device
behind it: `::3` (time slicing and MPS), `/vgpu3` (GKE), `-3` (HAMi, Volcano), `__3` (nvshare),
`-_-3` (gpushare). A DRA driver names devices `gpu-0` and `gpu-0-mig-1g10gb-19-2`, in
its older versions `gpu-0-mig-19-2-1`.
"""

import re
from dataclasses import dataclass, replace

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NUMBER = "[0-9]{1,9}"
_DEVICE_ID = re.compile(
    rf"""
    (?: GPU-(?P<gpu>{_UUID})
      | MIG-(?P<mig>{_UUID})
      | MIG-GPU-(?P<parent>{_UUID})/(?P<gi>{_NUMBER})/(?P<ci>{_NUMBER})
      | nvidia(?P<index>{_NUMBER})(?:/gi(?P<gke_gi>{_NUMBER}))?
    )
    (?: (?: :: | /vgpu | __ | -_- | - )(?P<replica>{_NUMBER}) )?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DRA_NAME = re.compile(
    rf"gpu-(?P<index>{_NUMBER})"
    rf"(?:-mig-(?:{_NUMBER}-(?P<old_start>{_NUMBER})-{_NUMBER}"
    rf"|(?P<profile>.+)-{_NUMBER}-(?P<start>{_NUMBER})))?",
    re.IGNORECASE,
)
_DRA_PROFILE = re.compile(r"(?:([0-9])c)?([0-9])g([0-9]+)gb(?:-(.+))?", re.IGNORECASE)
_UUID_IN_TEXT = re.compile(rf"(?<![0-9a-z])(GPU|MIG)-({_UUID})(?![0-9a-f])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HeldDevice:
    """A board or MIG instance that a container holds; what its spelling does not say is None.

    Attributes:
        gpu_uuid: The board, canonical `GPU-...`; for a MIG instance the board it is part of.
        mig_uuid: The MIG instance, canonical `MIG-...`.
        gpu_instance: The MIG GPU instance's id on its board.
        compute_instance: The MIG compute instance's id in its GPU instance.
        index: The number in `/dev/nvidiaN`, which is the kernel's minor number and on most, not
            on all machines also NVML's index.
        replica: Which share of a device that is handed out several times.
        mig_profile: The instance's size, `1g.10gb` or `1g.10gb+me`, where a DRA driver says it.
        mig_start: The instance's first memory slice on its board, where a DRA driver says it.
        numa: The NUMA nodes nearest to it.
    """

    gpu_uuid: str | None = None
    mig_uuid: str | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None
    index: int | None = None
    replica: int | None = None
    mig_profile: str | None = None
    mig_start: int | None = None
    numa: frozenset[int] | None = None

    @property
    def is_mig(self) -> bool:
        """Whether it is a MIG instance, not the whole board, even one that cannot be told which."""
        found = (self.mig_uuid, self.gpu_instance, self.mig_profile, self.mig_start)
        return any(value is not None for value in found)


def device_of_id(text: str, *, numa: frozenset[int] | None = None) -> HeldDevice | None:
    """What a device plugin's device id says, None for a spelling nobody has seen."""
    match = _DEVICE_ID.fullmatch(text.strip())
    if match is None:
        return None
    return HeldDevice(
        gpu_uuid=_prefixed("GPU", match["gpu"] or match["parent"]),
        mig_uuid=_prefixed("MIG", match["mig"]),
        gpu_instance=_number(match["gi"] or match["gke_gi"]),
        compute_instance=_number(match["ci"]),
        index=_number(match["index"]),
        replica=_number(match["replica"]),
        numa=numa,
    )


def device_of_claim(name: str, cdi_names: tuple[str, ...] = ()) -> HeldDevice | None:
    """What a DRA device's name and its CDI names say together, None where that is nothing.

    NVIDIA's driver names a claim's CDI devices `k8s.gpu.nvidia.com/claim=CLAIM-UID-gpu-0`, without
    a device's UUID; other CDI specifications (`nvidia.com/gpu=GPU-...`) have it. A board that is
    passed through to a VM (`gpu-vfio-0`) is counted by numbers of its own: they are no index.
    """
    device = _device_of_name(name.strip())
    for match in map(_UUID_IN_TEXT.search, cdi_names):
        if match is not None:
            kind, uuid = match[1].upper(), _prefixed(match[1].upper(), match[2])
            known = device or HeldDevice()
            return replace(known, gpu_uuid=uuid) if kind == "GPU" else replace(known, mig_uuid=uuid)
    return device


def _device_of_name(name: str) -> HeldDevice | None:
    match = _DRA_NAME.fullmatch(name)
    if match is None:
        return None
    return HeldDevice(
        index=_number(match["index"]),
        mig_profile=_profile(match["profile"]),
        mig_start=_number(match["start"] or match["old_start"]),
    )


def _profile(text: str | None) -> str | None:
    """`1c3g20gb-me` as `1c.3g.20gb+me`: a DRA name has neither dots nor plus signs."""
    match = None if text is None else _DRA_PROFILE.fullmatch(text)
    if match is None:
        return None
    compute, slices, memory, attribute = match.groups()
    parts = ([f"{compute}c"] if compute else []) + [f"{slices}g", f"{memory}gb"]
    return ".".join(parts) + (f"+{attribute.lower()}" if attribute else "")


def _prefixed(prefix: str, uuid: str | None) -> str | None:
    return None if uuid is None else f"{prefix}-{uuid.lower()}"


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
