"""What the fast loop saw of each network adapter near a GPU."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from seedance_obs.exporter.channel_families import ChannelKind, counter, gauge
from seedance_obs.exporter.registry import register
from seedance_obs.exporter.view import NodeView

NIC_LABELS = ("nic", "pci_bus_id", "numa_node", "pcie_root", "pcie_switch")
NIC = ChannelKind(
    prefix="seedance_nic",
    unit="bytes_per_second",
    labels=(*NIC_LABELS, "direction"),
    what="Bytes a second over a network adapter, RDMA and Ethernet, one way",
    full="its rate",
)


@register("nics", "what the fast loop saw of network adapters near GPUs, tick by tick")
class NicsCollector:
    """The channels of network adapters."""

    def collect(self, view: NodeView, _now: float) -> Iterator[Metric]:
        """The families of one scrape; nothing where no fast loop runs."""
        if view.bandwidth is None:
            return
        nics = {
            nic.pci_bus_id: (
                *(nic.name, nic.pci_bus_id, nic.numa_node),
                *(nic.pcie_root, nic.pcie_switch),
            )
            for nic in view.bandwidth.nics
        }
        rows = [
            ((*nics[device], direction), reading)
            for (device, medium, direction), reading in sorted(view.bandwidth.channels.items())
            if medium == "network" and device in nics
        ]
        yield counter(
            "seedance_nic_bytes",
            "Bytes over a network adapter near a GPU, RDMA and Ethernet, while the fast loop "
            "watched, since this exporter started; transmit leaves the node.",
            NIC.labels,
            ((labels, reading.total) for labels, reading in rows),
        )
        yield from NIC.levels(rows)
        yield gauge(
            "seedance_nic_capacity_bytes_per_second",
            "What a network adapter can carry each way at its present rate.",
            NIC_LABELS,
            {labels[:-1]: reading.capacity for labels, reading in rows}.items(),
        )
        yield counter(
            "seedance_nic_observed_seconds",
            "Time in which mean, peak and busy time of a network adapter were judged, since this "
            "exporter started.",
            NIC_LABELS,
            {labels[:-1]: reading.observed_seconds for labels, reading in rows}.items(),
        )
