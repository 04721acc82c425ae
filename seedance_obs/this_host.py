"""The topology of the machine this runs on, or of a simulated one, read once."""

import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from seedance_obs.config import NodeSettings
from seedance_obs.errors import SourceUnavailableError
from seedance_obs.exporter.run import open_sources
from seedance_obs.layout import HostLayout
from seedance_obs.merge import merge
from seedance_obs.topology.model import Absent, Reading, Topology

FORMAT = "host"


def host_reading(settings: NodeSettings) -> Reading:
    """What the driver and the PCI bus say now; a warning where the bus is not to be seen.

    Raises:
        SourceUnavailableError: the driver, or a page that the settings name, does not answer.
    """
    try:
        with _with_its_own_tree(settings) as whole:
            found = host_topology(whole)
    except SourceUnavailableError as error:
        raise SourceUnavailableError(
            f"{error}; or give a FILE that a host with GPUs has printed, see topology parse --help"
        ) from error
    if any(not isinstance(device.pcie_root, Absent) for device in found.devices):
        return Reading(found, format=FORMAT)
    sys_folder = Path(settings.node_root) / "sys"
    lost = f"{sys_folder} shows none of the GPUs: PCIe paths and NICs are not known"
    return Reading(found, (lost,), FORMAT)


def host_topology(settings: NodeSettings) -> Topology:
    """What the driver and the PCI bus say now.

    Raises:
        SourceUnavailableError: the driver, or a page that the settings name, does not answer.
    """
    # A page of dcgm-exporter knows nothing of the wiring that the driver does not.
    sources = open_sources(replace(settings, dcgm_url="") if settings.nvml_enabled else settings)
    try:
        snapshots = [source.read() for source in sources]
    finally:
        for source in sources:
            source.close()
    layout = HostLayout(Path(settings.node_root) / "sys", settings.node_name or platform.node())
    layout.refresh()
    pairs = [pair for snapshot in snapshots for pair in snapshot.pairs]
    return layout.lay_out(merge(snapshots, settings.source_orders()), (), pairs)


@contextmanager
def _with_its_own_tree(settings: NodeSettings) -> Iterator[NodeSettings]:
    """The settings; a simulated machine, `sim:NAME`, is not to be seen in this host's /sys."""
    kind, _, name = settings.nvml_library.partition(":")
    if kind != "sim" or settings.node_root != "/":
        yield settings
        return
    from seedance_obs.sources.sim.fleet import load_machine
    from seedance_obs.sources.sim.hostfs import write_sysfs

    machine = load_machine(name.partition("@")[0])
    with tempfile.TemporaryDirectory(prefix="seedance-") as folder:
        write_sysfs(machine, Path(folder))
        yield replace(
            settings,
            node_root=folder,
            node_name=settings.node_name or machine.name,
        )
