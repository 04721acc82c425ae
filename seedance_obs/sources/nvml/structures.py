"""NVML structures that the binding lacks or has wrong in some of its generations.

Each is passed to the driver with the version it says it is of; older drivers refuse newer ones.
"""

import ctypes

_VERSION_SHIFT = 24


class Versioned(ctypes.Structure):
    """A structure whose first member `version` holds its size and its version."""

    _number_ = 1

    def __init__(self) -> None:
        super().__init__(version=ctypes.sizeof(self) | self._number_ << _VERSION_SHIFT)


_FABRIC = (
    ("clusterUuid", ctypes.c_ubyte * 16),
    ("status", ctypes.c_uint),
    ("cliqueId", ctypes.c_uint),
    ("state", ctypes.c_ubyte),
)
_FABRIC_V2 = (("version", ctypes.c_uint), *_FABRIC, ("healthMask", ctypes.c_uint))


class FabricInfo(ctypes.Structure):
    """nvmlGpuFabricInfo_t, the only one without a version."""

    _fields_ = _FABRIC


class FabricInfo2(Versioned):
    """nvmlGpuFabricInfo_v2_t."""

    _number_ = 2
    _fields_ = _FABRIC_V2


class FabricInfo3(Versioned):
    """nvmlGpuFabricInfo_v3_t."""

    _number_ = 3
    _fields_ = (*_FABRIC_V2, ("healthSummary", ctypes.c_ubyte))


class AddressingMode(Versioned):
    """nvmlDeviceAddressingMode_v1_t."""

    _fields_ = (("version", ctypes.c_uint), ("value", ctypes.c_uint))


class _Value(ctypes.Union):
    """nvmlValue_t."""

    _fields_ = (
        ("dVal", ctypes.c_double),
        ("siVal", ctypes.c_int),
        ("uiVal", ctypes.c_uint),
        ("ulVal", ctypes.c_ulong),
        ("ullVal", ctypes.c_ulonglong),
        ("sllVal", ctypes.c_longlong),
        ("usVal", ctypes.c_ushort),
    )


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t, whose members the binding's own takes three times as long to read."""

    _fields_ = (
        ("fieldId", ctypes.c_uint),
        ("scopeId", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latencyUsec", ctypes.c_longlong),
        ("valueType", ctypes.c_uint),
        ("nvmlReturn", ctypes.c_uint),
        ("value", _Value),
    )


class ProcessSample(ctypes.Structure):
    """nvmlProcessUtilizationSample_t."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("timeStamp", ctypes.c_ulonglong),
        ("smUtil", ctypes.c_uint),
        ("memUtil", ctypes.c_uint),
        ("encUtil", ctypes.c_uint),
        ("decUtil", ctypes.c_uint),
    )


class ProcessInfoSample(ctypes.Structure):
    """nvmlProcessUtilizationInfo_v1_t."""

    _fields_ = (
        ("timeStamp", ctypes.c_ulonglong),
        ("pid", ctypes.c_uint),
        ("smUtil", ctypes.c_uint),
        ("memUtil", ctypes.c_uint),
        ("encUtil", ctypes.c_uint),
        ("decUtil", ctypes.c_uint),
        ("jpgUtil", ctypes.c_uint),
        ("ofaUtil", ctypes.c_uint),
    )


class ProcessInfoSamples(Versioned):
    """nvmlProcessesUtilizationInfo_v1_t."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("processSamplesCount", ctypes.c_uint),
        ("lastSeenTimeStamp", ctypes.c_ulonglong),
        ("procUtilArray", ctypes.POINTER(ProcessInfoSample)),
    )


class VgpuSample(ctypes.Structure):
    """nvmlVgpuInstanceUtilizationSample_t, its unions as the unsigned integers they hold."""

    _fields_ = (
        ("vgpuInstance", ctypes.c_uint),
        ("timeStamp", ctypes.c_ulonglong),
        ("smUtil", ctypes.c_uint),
        ("_sm_rest", ctypes.c_uint),
        ("memUtil", ctypes.c_uint),
        ("_mem_rest", ctypes.c_uint),
        ("encUtil", ctypes.c_uint),
        ("_enc_rest", ctypes.c_uint),
        ("decUtil", ctypes.c_uint),
        ("_dec_rest", ctypes.c_uint),
    )


class PlatformInfo1(Versioned):
    """nvmlPlatformInfo_v1_t, its members under their names of version 2."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("ibGuid", ctypes.c_ubyte * 16),
        ("chassisSerialNumber", ctypes.c_ubyte * 16),
        ("slotNumber", ctypes.c_ubyte),
        ("trayIndex", ctypes.c_ubyte),
        ("hostId", ctypes.c_ubyte),
        ("peerType", ctypes.c_ubyte),
        ("moduleId", ctypes.c_ubyte),
    )


class PlatformInfo2(PlatformInfo1):
    """nvmlPlatformInfo_v2_t."""

    _number_ = 2


class GpmSupport(ctypes.Structure):
    """nvmlGpmSupport_t, whose version is a plain number."""

    _fields_ = (("version", ctypes.c_uint), ("isSupportedDevice", ctypes.c_uint))

    def __init__(self) -> None:
        super().__init__(version=1)


class GpmMetric(ctypes.Structure):
    """nvmlGpmMetric_t; its last three members are texts about the metric."""

    _fields_ = (
        ("metricId", ctypes.c_uint),
        ("nvmlReturn", ctypes.c_uint),
        ("value", ctypes.c_double),
        ("shortName", ctypes.c_void_p),
        ("longName", ctypes.c_void_p),
        ("unit", ctypes.c_void_p),
    )


class GpmMetricsGet(ctypes.Structure):
    """nvmlGpmMetricsGet_t, which asks for `metrics`, with more room than any header has so far."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("numMetrics", ctypes.c_uint),
        ("sample1", ctypes.c_void_p),
        ("sample2", ctypes.c_void_p),
        ("metrics", GpmMetric * 512),
    )

    def __init__(self, *metrics: int) -> None:
        super().__init__(version=1, numMetrics=len(metrics))
        for place, metric in enumerate(metrics):
            self.metrics[place].metricId = metric
