"""Hosts that nobody would build, for properties."""

from hypothesis import strategies as st

from seedance_obs.topology.model import UNKNOWN, PcieLevel, PcieLink, Topology
from tests.topology.hosts_by_hand import gpu, host, ports

LEVELS = st.sampled_from([*PcieLevel, UNKNOWN])
LINKS = st.sampled_from([0, 0, 0, 1, 2, 4, UNKNOWN])
NUMA = st.sampled_from([None, 0, 1, 2])
RATES = st.sampled_from([20_000.0, 25_000.0, 26_562.0, UNKNOWN])


@st.composite
def hosts(draw: st.DrawFn, *, least: int = 1, most: int = 7, known: bool = False) -> Topology:
    count = draw(st.integers(least, most))
    levels = st.sampled_from(list(PcieLevel)) if known else LEVELS
    links = st.integers(0, 3) if known else LINKS
    pairs = {
        (one, other): (draw(levels), draw(links)) for other in range(count) for one in range(other)
    }
    gpus = [
        gpu(
            place,
            numa=draw(NUMA),
            pcie=PcieLink(generation_max=draw(st.sampled_from([UNKNOWN, 3, 4, 5]))),
            nvlinks=ports(4, draw(RATES)),
        )
        for place in range(count)
    ]
    return host(gpus, lambda i, j: pairs[i, j][0], lambda i, j: pairs[i, j][1])
