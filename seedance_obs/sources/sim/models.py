"""The simulated GPU models: sizes, limits, clocks, and what their driver cannot answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MIB = 2**20

_PASSIVE = frozenset({"nvmlDeviceGetFanSpeed"})
_NO_MIG = frozenset({"nvmlDeviceGetMigMode", "nvmlDeviceGetMigDeviceHandleByIndex"})
_NO_FABRIC = frozenset({"nvmlDeviceGetGpuFabricInfoV"})
_NO_ROW_REMAPPER = frozenset({"nvmlDeviceGetRemappedRows"})
_NO_PLATFORM = frozenset({"nvmlDeviceGetPlatformInfo"})  # before Blackwell
_NO_ADDRESSING_MODE = frozenset({"nvmlDeviceGetAddressingMode"})  # before Turing


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One way to cut an instance out of a board."""

    slices: int  # of the model's
    multiprocessors: int
    memory_mib: int
    copy_engines: int
    decoders: int


@dataclass(frozen=True, slots=True)
class Model:
    """What every board of one product has in common."""

    product: str
    device_id: int  # PCI device, without the vendor
    subsystem_id: int
    vbios_version: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    memory_mib: int
    reserved_mib: int
    idle_watts: float
    context_watts: float  # added while a process holds the board, busy or not
    limit_watts: float
    hot_celsius: float  # at the power limit
    sm_mhz: tuple[int, int]  # idle, boost
    memory_mhz: tuple[int, int]  # idle, busy
    memory_bus_bits: int
    video_mhz: tuple[int, int]
    pcie_generation: int
    pcie_width: int
    pcie_slows_when_idle: bool
    nvlinks: int
    nvlink_mbps: int
    nvlink_version: int  # nvmlNvlinkVersion_t
    idle_performance_state: int
    memory_sensor: bool
    unsupported: frozenset[str]
    p2p_over_pcie: bool = True
    c2c_links: int = 0
    c2c_mbps: int = 0  # each
    mig_profiles: Mapping[str, MigProfile] = field(default_factory=dict)
    mig_slices: int = 7


_H100_PROFILES = {
    "1g.10gb": MigProfile(1, 16, 9_984, 1, 1),
    "2g.20gb": MigProfile(2, 32, 20_096, 2, 2),
    "3g.40gb": MigProfile(3, 60, 40_448, 3, 3),
    "4g.40gb": MigProfile(4, 64, 40_448, 4, 4),
    "7g.80gb": MigProfile(7, 132, 80_896, 8, 7),
}
_A100_PROFILES = {
    "1g.10gb": MigProfile(1, 14, 9_728, 1, 0),
    "2g.20gb": MigProfile(2, 28, 19_968, 2, 1),
    "3g.40gb": MigProfile(3, 42, 40_192, 3, 2),
    "7g.80gb": MigProfile(7, 98, 80_896, 7, 5),
}
_A30_PROFILES = {
    "1g.6gb": MigProfile(1, 14, 5_952, 1, 1),
    "2g.12gb": MigProfile(2, 28, 11_968, 2, 2),
    "4g.24gb": MigProfile(4, 56, 24_062, 4, 4),
}

MODELS = {
    "h100-sxm5-80gb": Model(
        product="NVIDIA H100 80GB HBM3",
        device_id=0x2330,
        subsystem_id=0x16C1,
        vbios_version="96.00.A5.00.01",
        compute_capability=(9, 0),
        multiprocessors=132,
        memory_mib=81_559,
        reserved_mib=563,
        idle_watts=67.0,
        context_watts=48.0,
        limit_watts=700.0,
        hot_celsius=68.0,
        sm_mhz=(345, 1980),
        memory_mhz=(2619, 2619),
        memory_bus_bits=5120,
        video_mhz=(765, 1545),
        pcie_generation=5,
        pcie_width=16,
        pcie_slows_when_idle=False,
        nvlinks=18,
        nvlink_mbps=26_562,
        nvlink_version=6,
        idle_performance_state=0,
        memory_sensor=True,
        unsupported=_PASSIVE | _NO_PLATFORM,
        mig_profiles=_H100_PROFILES,
    ),
    "a100-pcie-80gb": Model(
        product="NVIDIA A100 80GB PCIe",
        device_id=0x20B5,
        subsystem_id=0x1533,
        vbios_version="92.00.68.00.01",
        compute_capability=(8, 0),
        multiprocessors=108,
        memory_mib=81_920,
        reserved_mib=596,
        idle_watts=44.0,
        context_watts=22.0,
        limit_watts=300.0,
        hot_celsius=72.0,
        sm_mhz=(210, 1410),
        memory_mhz=(1512, 1512),
        memory_bus_bits=5120,
        video_mhz=(585, 1275),
        pcie_generation=4,
        pcie_width=16,
        pcie_slows_when_idle=False,
        nvlinks=12,
        nvlink_mbps=25_000,
        nvlink_version=4,
        idle_performance_state=0,
        memory_sensor=True,
        unsupported=_PASSIVE | _NO_PLATFORM | _NO_FABRIC,
        mig_profiles=_A100_PROFILES,
    ),
    "a30": Model(
        product="NVIDIA A30",
        device_id=0x20B7,
        subsystem_id=0x1532,
        vbios_version="92.00.66.00.0B",
        compute_capability=(8, 0),
        multiprocessors=56,
        memory_mib=24_576,
        reserved_mib=514,
        idle_watts=28.0,
        context_watts=10.0,
        limit_watts=165.0,
        hot_celsius=70.0,
        sm_mhz=(210, 1440),
        memory_mhz=(1215, 1215),
        memory_bus_bits=3072,
        video_mhz=(585, 1305),
        pcie_generation=4,
        pcie_width=16,
        pcie_slows_when_idle=False,
        nvlinks=4,
        nvlink_mbps=25_000,
        nvlink_version=4,
        idle_performance_state=0,
        memory_sensor=True,
        unsupported=_PASSIVE | _NO_PLATFORM | _NO_FABRIC,
        mig_profiles=_A30_PROFILES,
        mig_slices=4,
    ),
    "l40s": Model(
        product="NVIDIA L40S",
        device_id=0x26B9,
        subsystem_id=0x1851,
        vbios_version="95.02.66.00.02",
        compute_capability=(8, 9),
        multiprocessors=142,
        memory_mib=46_068,
        reserved_mib=598,
        idle_watts=36.0,
        context_watts=44.0,
        limit_watts=350.0,
        hot_celsius=71.0,
        sm_mhz=(210, 2520),
        memory_mhz=(405, 9001),
        memory_bus_bits=384,
        video_mhz=(765, 1965),
        pcie_generation=4,
        pcie_width=16,
        pcie_slows_when_idle=True,
        nvlinks=0,
        nvlink_mbps=0,
        nvlink_version=0,
        idle_performance_state=8,
        memory_sensor=True,
        unsupported=_PASSIVE | _NO_PLATFORM | _NO_FABRIC | _NO_MIG,
    ),
    "v100-sxm2-32gb": Model(
        product="Tesla V100-SXM2-32GB",
        device_id=0x1DB5,
        subsystem_id=0x1249,
        vbios_version="88.00.48.00.02",
        compute_capability=(7, 0),
        multiprocessors=80,
        memory_mib=32_768,
        reserved_mib=262,
        idle_watts=42.0,
        context_watts=14.0,
        limit_watts=300.0,
        hot_celsius=66.0,
        sm_mhz=(135, 1530),
        memory_mhz=(877, 877),
        memory_bus_bits=4096,
        video_mhz=(555, 1372),
        pcie_generation=3,
        pcie_width=16,
        pcie_slows_when_idle=False,
        nvlinks=6,
        nvlink_mbps=25_781,
        nvlink_version=2,
        idle_performance_state=0,
        memory_sensor=True,
        unsupported=_PASSIVE
        | _NO_PLATFORM
        | _NO_MIG
        | _NO_FABRIC
        | _NO_ROW_REMAPPER
        | _NO_ADDRESSING_MODE,
    ),
    "rtx3090": Model(
        product="NVIDIA GeForce RTX 3090",
        device_id=0x2204,
        subsystem_id=0x1467,
        vbios_version="94.02.42.00.A9",
        compute_capability=(8, 6),
        multiprocessors=82,
        memory_mib=24_576,
        reserved_mib=307,
        idle_watts=21.0,
        context_watts=84.0,
        limit_watts=350.0,
        hot_celsius=74.0,
        sm_mhz=(210, 1905),
        memory_mhz=(405, 9751),
        memory_bus_bits=384,
        video_mhz=(555, 1695),
        pcie_generation=4,
        pcie_width=16,
        pcie_slows_when_idle=True,
        nvlinks=4,
        nvlink_mbps=14_062,
        nvlink_version=5,
        idle_performance_state=8,
        memory_sensor=False,
        unsupported=_NO_MIG
        | _NO_PLATFORM
        | _NO_FABRIC
        | _NO_ROW_REMAPPER
        | {"nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetSerial"},
        p2p_over_pcie=False,
    ),
    "gb200": Model(
        product="NVIDIA GB200",
        device_id=0x2941,
        subsystem_id=0x2046,
        vbios_version="97.00.88.00.18",
        compute_capability=(10, 0),
        multiprocessors=152,
        memory_mib=189_471,
        reserved_mib=742,
        idle_watts=166.0,
        context_watts=60.0,
        limit_watts=1200.0,
        hot_celsius=70.0,
        sm_mhz=(120, 2062),
        memory_mhz=(3996, 3996),
        memory_bus_bits=8192,
        video_mhz=(600, 1600),
        pcie_generation=5,
        pcie_width=16,
        pcie_slows_when_idle=False,
        nvlinks=18,
        nvlink_mbps=53_125,
        nvlink_version=7,
        idle_performance_state=0,
        memory_sensor=True,
        unsupported=_PASSIVE,
        c2c_links=5,
        c2c_mbps=44_712,
    ),
    "a100-sxm4-80gb": Model(
        product="NVIDIA A100-SXM4-80GB",
        device_id=0x20B2,
        subsystem_id=0x1463,
        vbios_version="92.00.45.00.03",
        compute_capability=(8, 0),
        multiprocessors=108,
        memory_mib=81_920,
        reserved_mib=616,
        idle_watts=61.0,
        context_watts=26.0,
        limit_watts=400.0,
        hot_celsius=66.0,
        sm_mhz=(210, 1410),
        memory_mhz=(1593, 1593),
        memory_bus_bits=5120,
        video_mhz=(585, 1290),
        pcie_generation=4,
        pcie_width=16,
        pcie_slows_when_idle=False,
        nvlinks=12,
        nvlink_mbps=25_000,
        nvlink_version=4,
        idle_performance_state=0,
        memory_sensor=True,
        unsupported=_PASSIVE | _NO_PLATFORM | _NO_FABRIC,
        mig_profiles=_A100_PROFILES,
    ),
    "a100-sxm4-40gb": Model(
        product="NVIDIA A100-SXM4-40GB",
        device_id=0x20B0,
        subsystem_id=0x144E,
        vbios_version="92.00.19.00.13",
        compute_capability=(8, 0),
        multiprocessors=108,
        memory_mib=40_960,
        reserved_mib=571,
        idle_watts=52.0,
        context_watts=24.0,
        limit_watts=400.0,
        hot_celsius=65.0,
        sm_mhz=(210, 1410),
        memory_mhz=(1215, 1215),
        memory_bus_bits=5120,
        video_mhz=(585, 1290),
        pcie_generation=4,
        pcie_width=16,
        pcie_slows_when_idle=False,
        nvlinks=12,
        nvlink_mbps=25_000,
        nvlink_version=4,
        idle_performance_state=0,
        memory_sensor=True,
        unsupported=_PASSIVE | _NO_PLATFORM | _NO_FABRIC,
    ),
    "gh200-96gb": Model(
        product="NVIDIA GH200 120GB",
        device_id=0x2342,
        subsystem_id=0x16EB,
        vbios_version="96.00.84.00.01",
        compute_capability=(9, 0),
        multiprocessors=132,
        memory_mib=97_871,
        reserved_mib=690,
        idle_watts=88.0,
        context_watts=42.0,
        limit_watts=900.0,
        hot_celsius=66.0,
        sm_mhz=(345, 1980),
        memory_mhz=(2619, 2619),
        memory_bus_bits=6144,
        video_mhz=(765, 1545),
        pcie_generation=5,
        pcie_width=16,
        pcie_slows_when_idle=False,
        nvlinks=18,
        nvlink_mbps=26_562,
        nvlink_version=6,
        idle_performance_state=0,
        memory_sensor=True,
        unsupported=_PASSIVE | _NO_PLATFORM,
        c2c_links=10,
        c2c_mbps=44_712,
    ),
}
