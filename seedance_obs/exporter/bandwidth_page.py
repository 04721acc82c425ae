"""`GET /bandwidth`: shared segments and who uses them, as JSON for people and programs.

Keys stay, and what is not known is null. Levels are bytes per second of links and segments, 0 to 1
of `hbm` channels, watts of `power`; `seedance_obs.cli_bandwidth_table` reads the page back.
"""

import json
import math
from collections.abc import Mapping
from typing import TypeAlias

from seedance_obs.bandwidth.reading import (
    ChannelReading,
    NodeBandwidth,
    SegmentReading,
    Sensitivity,
    TenantReading,
)
from seedance_obs.exporter.view import GPU_LABELS, NodeView
from seedance_obs.flow import Channel

Json: TypeAlias = "Mapping[str, Json] | list[Json] | str | float | bool | None"


def why_no_bandwidth(view: NodeView) -> str | None:
    """The sentence for who asks for the page while there is none; None where there is one."""
    if view.bandwidth is None:
        return "no fast loop runs here: set bandwidth.enabled"
    if not view.bandwidth.channels and not view.bandwidth.segments:
        if not view.gpus:
            return "no GPU of this node can be read now: seedance_source_up says who fails"
        return "the fast loops have seen nothing yet: ask again in a moment"
    return None


def bandwidth_page(view: NodeView) -> str:
    """The page, what was contended for longest first; an empty object where no fast loop runs."""
    page = {} if view.bandwidth is None else _page(view, view.bandwidth)
    return json.dumps(page, indent=2, allow_nan=False) + "\n"


def _page(view: NodeView, node: NodeBandwidth) -> dict[str, Json]:
    names = _names(view, node)
    return {
        "node": _text(view.node_name),
        "window_seconds": node.window_seconds,
        "segments": [
            _segment(one, node, names) for one in sorted(node.segments, key=_most_contended)
        ],
        "channels": [
            _channel(key, reading, node, names) for key, reading in sorted(node.channels.items())
        ],
    }


def _names(view: NodeView, node: NodeBandwidth) -> Mapping[str, str]:
    """What a person calls the devices: `GPU 3` by its UUID, `mlx5_0` by its address."""
    places = [dict(zip(GPU_LABELS, gpu.labels, strict=True)) for gpu in view.gpus]
    gpus = {place["gpu_uuid"]: f"GPU {place['gpu']}" for place in places if place["gpu"]}
    return gpus | {nic.pci_bus_id: nic.name for nic in node.nics if nic.name}


def _most_contended(one: SegmentReading) -> tuple[float, float, str, str, str]:
    segment = one.segment
    load = (one.mean or 0.0) / one.capacity if one.capacity else 0.0
    return (-one.contention_seconds, -load, segment.kind, segment.name, segment.direction)


def _segment(one: SegmentReading, node: NodeBandwidth, names: Mapping[str, str]) -> dict[str, Json]:
    segment = one.segment
    using = {each.tenant: each for each in node.tenants if each.segment == segment}
    sensitive = {
        each.tenant: each.sensitivity for each in node.sensitivities if each.segment == segment
    }
    tenants = sorted(
        using.keys() | sensitive.keys(),
        key=lambda tenant: (-using[tenant].mean if tenant in using else math.inf, tenant),
    )
    return {
        "kind": segment.kind,
        "segment": _text(segment.name),
        "device": _text(names.get(segment.name, "")),
        "direction": _text(segment.direction),
        "capacity": _number(one.capacity),
        "mean": _number(one.mean),
        "peak": _number(one.peak),
        "total": one.total,
        "busy_seconds": _busy(one.busy_seconds),
        "contention_seconds": one.contention_seconds,
        "observed_seconds": one.observed_seconds,
        "tenants": [
            _tenant(tenant, using.get(tenant), sensitive.get(tenant)) for tenant in tenants
        ],
    }


def _tenant(
    name: str, using: TenantReading | None, sensitivity: Sensitivity | None
) -> dict[str, Json]:
    shown = ("mean", "jitter", "share", "peak", "contention_seconds")
    return {
        "tenant": _text(name),
        **{key: None if using is None else _number(getattr(using, key)) for key in shown},
        "sensitivity": None if sensitivity is None else _sensitivity(sensitivity),
    }


def _sensitivity(found: Sensitivity) -> dict[str, Json]:
    return {
        "score": _number(found.score),
        "p_value": _number(found.p_value),
        "windows_low": found.low,
        "windows_high": found.high,
        "windows": found.windows,
        "verdict": found.verdict,
        "proxy": found.proxy,
    }


def _channel(
    key: Channel,
    reading: ChannelReading,
    node: NodeBandwidth,
    names: Mapping[str, str],
) -> dict[str, Json]:
    device, medium, direction = key
    return {
        "id": _text(device),
        "device": _text(names.get(device, "")),
        "medium": medium,
        "direction": _text(direction),
        "source": _text(reading.source),
        "stuck_source": node.stuck.get(key),
        "capacity": _number(reading.capacity),
        "mean": _number(reading.mean),
        "peak": _number(reading.peak),
        "total": reading.total,
        "busy_seconds": _busy(reading.busy_seconds),
        "observed_seconds": reading.observed_seconds,
        "late_seconds": reading.late_seconds,
    }


def _busy(seconds: Mapping[float, float]) -> dict[str, Json]:
    return {str(threshold): seconds[threshold] for threshold in sorted(seconds)}


def _text(text: str) -> str | None:
    """The text, null where it is empty; halves of characters, which no reader takes, replaced."""
    return text.encode("utf-8", errors="replace").decode() or None


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
