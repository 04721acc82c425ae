"""Hosts as hypothesis makes them up: much is missing, and texts are anything."""

from hypothesis import strategies as st

from seedance_obs.topology.model import (
    Absent,
    Device,
    FabricMembership,
    Kind,
    NvLinkPort,
    Path,
    PcieLevel,
    Topology,
)
from tests.topology.hand_made import CLUSTER

# What is legal in a label, what is not, and what a reader may be handed.
ALPHABET = "aZ09._-:/~=, \n\x1b[é漢\U0001f600\ud800"

texts = st.text(ALPHABET.replace("\ud800", ""), max_size=80)
tri_texts = texts | st.sampled_from(Absent)
tri_numbers = st.frozensets(st.integers(0, 40)) | st.sampled_from(Absent)
ports = st.builds(
    NvLinkPort, port=st.integers(0, 17), active=st.booleans() | st.sampled_from(Absent)
)
fabrics = st.builds(
    FabricMembership,
    state=st.integers(0, 3),
    status=st.sampled_from([0, 23, *Absent]),
    cluster_uuid=st.sampled_from([CLUSTER, "0" * 32, *Absent]),
    clique_id=st.integers(0, 2**32 - 1) | st.sampled_from(Absent),
)


@st.composite
def topologies(draw):
    """Hosts that a reader could come back with, of which much is missing."""
    gpus = [
        Device(
            name=f"g{i}",
            kind=Kind.GPU,
            index=draw(st.sampled_from([i, None])),
            uuid=draw(tri_texts),
            bus_id=draw(tri_texts),
            model=draw(st.sampled_from(["NVIDIA L4", "NVIDIA H200", "?", *Absent])),
            numa=draw(tri_numbers),
            pcie_root=draw(tri_texts),
            pcie_switch=draw(tri_texts),
            nvlinks=draw(st.lists(ports, max_size=3).map(tuple) | st.sampled_from(Absent)),
            fabric=draw(fabrics | st.sampled_from(Absent)),
        )
        for i in range(draw(st.integers(0, 5)))
    ]
    paths = [
        Path(
            one.name,
            other.name,
            draw(st.sampled_from([*PcieLevel, *Absent])),
            draw(st.sampled_from([0, 4, *Absent])),
        )
        for i, one in enumerate(gpus)
        for other in gpus[i + 1 :]
        if draw(st.booleans())
    ]
    domains = {gpu.name: draw(texts) for gpu in gpus if draw(st.booleans())}
    return Topology((Device("host", Kind.HOST), *gpus), tuple(paths), domains=domains)
