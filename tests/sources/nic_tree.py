"""Network adapters as Linux shows them below a host root."""

from pathlib import Path

NIC = "0000:1a:00.0"


class NicTree:
    """Writes one adapter's files, each in place, so that who has one open sees it change."""

    def __init__(self, root: Path, address: str = NIC) -> None:
        self.device = root / "sys/bus/pci/devices" / address
        self.device.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, text: str | int) -> Path:
        file = self.device / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    def rdma(
        self,
        sent: int | str,
        received: int | str,
        *,
        name: str = "mlx5_0",
        port: int = 1,
        rate: str = "400 Gb/sec (4X NDR)",
        layer: str = "InfiniBand",
        state: str = "4: ACTIVE",
    ) -> None:
        """An RDMA port and its counters, in words of four bytes."""
        folder = f"infiniband/{name}/ports/{port}"
        self.write(f"{folder}/counters/port_xmit_data", sent)
        self.write(f"{folder}/counters/port_rcv_data", received)
        for file, text in {"rate": rate, "link_layer": layer, "state": state}.items():
            self.write(f"{folder}/{file}", text)

    def ethernet(
        self,
        sent: int,
        received: int,
        *,
        name: str = "ens1np0",
        folder: str = "net",
        kind: int = 1,
        mbits: int = 100_000,
        switch: str = "",
        port: str = "",
    ) -> None:
        """A network interface and its counters; `switch` and `port` as in switchdev mode."""
        folder = f"{folder}/{name}"
        self.write(f"{folder}/statistics/tx_bytes", sent)
        self.write(f"{folder}/statistics/rx_bytes", received)
        self.write(f"{folder}/type", kind)
        self.write(f"{folder}/speed", mbits)
        if switch:
            self.write(f"{folder}/phys_switch_id", switch)
            self.write(f"{folder}/phys_port_name", port)
