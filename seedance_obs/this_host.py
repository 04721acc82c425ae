"""The topology of the machine this runs on, read once."""

import platform
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.exporter.run import open_sources
from seedance_obs.layout import HostLayout
from seedance_obs.merge import merge
from seedance_obs.topology.model import Topology


def host_topology(settings: NodeSettings) -> Topology:
    """What the driver and the PCI bus say now.

    Raises:
        SourceUnavailableError: the driver, or a page that the settings name, does not answer.
    """
    sources = open_sources(settings)
    try:
        snapshots = [source.read() for source in sources]
    finally:
        for source in sources:
            source.close()
    layout = HostLayout(Path(settings.node_root) / "sys", settings.node_name or platform.node())
    layout.refresh()
    pairs = [pair for snapshot in snapshots for pair in snapshot.pairs]
    return layout.lay_out(merge(snapshots, settings.source_orders()), (), pairs)
