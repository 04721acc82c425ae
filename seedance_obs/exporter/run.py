"""The node exporter put together: settings in, a running scrape target out."""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry, ProcessCollector

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.node import Node, Source
from seedance_obs.exporter.registry import CollectorSet
from seedance_obs.exporter.sampler import Sampler
from seedance_obs.exporter.server import ScrapeServer
from seedance_obs.sources.nvml.source import NvmlSource
from seedance_obs.sources.podresources.source import PodResourcesSource


def open_sources(settings: NodeSettings) -> list[Source]:
    """The sources the settings ask for, most trusted first.

    Raises:
        UsageError: the simulated machine or the recording cannot be read.
    """
    sources: list[Source] = []
    if settings.nvml_enabled:
        if settings.nvml_library != "pynvml":
            from seedance_obs.sources.nvml.worker import open_library  # of no use with a driver

            open_library(settings.nvml_library)  # one that cannot be read is refused now
        release = settings.nvml_release_file
        sources.append(
            NvmlSource(
                settings.nvml_library,
                start_deadline_seconds=settings.nvml_start_deadline_seconds,
                deadline_seconds=settings.nvml_deadline_seconds,
                release_file=Path(release) if release else None,
                fast_interval_seconds=fast_seconds(settings),
            )
        )
    if settings.dcgm_url:
        from seedance_obs.sources.dcgm.source import DcgmSource

        sources.append(
            DcgmSource(
                settings.dcgm_url,
                timeout_seconds=settings.dcgm_timeout_seconds,
                page_limit_bytes=settings.dcgm_page_limit_bytes,
            )
        )
    socket = Path(settings.node_root) / settings.podresources_socket.lstrip("/")
    if settings.podresources_socket and socket.parent.is_dir():
        sources.append(
            PodResourcesSource(
                socket,
                timeout_seconds=settings.podresources_timeout_seconds,
                resource_names=settings.podresources_resource_names,
            )
        )
    return sources


def fast_seconds(settings: NodeSettings) -> float | None:
    """The interval of the fast loops; None where they are off."""
    return settings.bandwidth_interval_seconds if settings.bandwidth_enabled else None


@contextmanager
def running_exporter(settings: NodeSettings) -> Iterator[ScrapeServer]:
    """A scrape target that serves until the context ends.

    Raises:
        UsageError: the address is taken, or a collector in the settings does not exist.
    """
    node = Node(
        settings,
        open_sources(settings),
        node_name=settings.node_name or platform.node(),
    )
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(CollectorSet(lambda: node.view, settings))
    sampler = Sampler(
        node,
        interval_seconds=settings.sampler_interval_seconds,
        source_intervals={
            "nvml": settings.sampler_interval_seconds,
            "dcgm": settings.dcgm_interval_seconds,
            "podresources": settings.podresources_interval_seconds,
        },
        probe_seconds=settings.leaks_interval_seconds,
        fast_seconds=fast_seconds(settings),
        first_view_patience_seconds=settings.nvml_start_deadline_seconds,
    )
    server = ScrapeServer(
        settings.server_address,
        registry,
        view=lambda: node.view,
        healthy=lambda: sampler.healthy,
        ready=lambda: sampler.ready,
    )
    sampler.start()
    server.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        sampler.stop()
