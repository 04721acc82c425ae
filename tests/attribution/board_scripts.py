"""Made-up histories of a board, and what its account must add up to after them."""

from dataclasses import dataclass

from hypothesis import strategies as st

from seedance_obs.attribution.board import BoardAccount
from seedance_obs.attribution.tick import EnergyReading, Holder, Tick

GAP_US = 30_000_000
ACCOUNTS = ("a", "b", "c", "d")
PARTS = 7
LINKS = {"nvlink": "NV18"}


def board(**more) -> BoardAccount:
    return BoardAccount(gap_us=GAP_US, **more)


def seen(at_s: float, energy_mj: int | None, *holders: Holder, **more) -> Tick:
    """A tick with a counter that is read at its moment, and the whole board as one part."""
    at_us = round(at_s * 1e6)
    source = more.pop("source", "nvml")
    energy = None if energy_mj is None else EnergyReading(energy_mj, at_us, source)
    return Tick(at_us, holders, energy=energy, **more)


def played(ticks, account: BoardAccount | None = None, **more) -> BoardAccount:
    account = account or board(**more)
    for tick in ticks:
        account.advance(tick)
    return account


def energy_mj(account: BoardAccount) -> dict[str, tuple[int, int]]:
    """Active and reserved millijoules of every account that has any."""
    return {
        name: (balance.active_mj, balance.reserved_mj)
        for name, balance in account.balances().items()
        if balance.active_mj or balance.reserved_mj
    }


def time_us(account: BoardAccount) -> dict[str, tuple[int, int]]:
    return {
        name: (balance.active_us, balance.reserved_us)
        for name, balance in account.balances().items()
        if balance.active_us or balance.reserved_us
    }


def booked_mj(account: BoardAccount) -> int:
    return sum(active + reserved for active, reserved in energy_mj(account).values())


def booked_us(account: BoardAccount) -> int:
    return sum(active + reserved for active, reserved in time_us(account).values())


@dataclass(frozen=True)
class Script:
    """A history of one board, and what its counter advanced by and its clock passed in it."""

    ticks: tuple[Tick, ...]
    burned_mj: tuple[int, ...]  # up to each tick
    passed_us: int


HOLDERS = st.none() | st.lists(
    st.builds(
        Holder,
        st.sampled_from(ACCOUNTS),
        st.integers(0, 3),
        st.none() | st.sampled_from([0.0, 0.05, 0.5, 1.0]) | st.floats(0, 1),
        st.integers(0, 80 * 2**30),
        st.sampled_from([{}, LINKS]),
    ),
    max_size=4,
    unique_by=lambda holder: holder.account,
)
EVENTS = st.sampled_from(["read"] * 6 + ["restart", "missing", "late", "other", "clock_back"])
STEPS = st.tuples(
    st.integers(0, 3_000) | st.sampled_from([1_000, 29_999, 30_001, 90_000]),  # ms
    st.integers(0, 2_000) | st.integers(0, 3_000_000) | st.integers(0, 10**10),  # mJ
    HOLDERS,
    EVENTS,
    st.integers(0, 10**9),  # bytes
)


@st.composite
def scripts(draw, steps=STEPS, max_steps=25) -> Script:
    """Starts, stops, reshuffles, gaps, restarts, changes of source, late and missing readings."""
    at_ms, count, source = 10**6, draw(st.integers(0, 10**12)), "nvml"
    ticks, burned = [seen(at_ms / 1e3, count)], [0]
    for elapsed_ms, delta_mj, holders, event, traffic in draw(st.lists(steps, max_size=max_steps)):
        at_ms += elapsed_ms
        reading: int | None = count + delta_mj
        if event == "other":
            source = "dcgm" if source == "nvml" else "nvml"
        if event == "restart" and count > 500:
            # Half a joule is what a board may well have burned since.
            reading, delta_mj = 500, 500
        shown = source
        if event == "missing":
            reading, delta_mj = None, 0
        elif event == "late":
            # Another source, that has not got as far as the last one had.
            reading, delta_mj, shown = max(0, count - 1), 0, "late"
        else:
            count = reading
        burned.append(burned[-1] + delta_mj)
        shown_at_us = (at_ms - (2_000 if event == "clock_back" else 0)) * 1000
        energy = None if reading is None else EnergyReading(reading, at_ms * 1000, shown)
        ticks.append(
            Tick(
                shown_at_us,
                None if holders is None else tuple(holders),
                PARTS,
                energy,
                power_watts=300.0,
                power_limit_watts=700.0,
                traffic={"nvlink": traffic, "pcie": traffic // 3},
            )
        )
    latest = [max(tick.at_us for tick in ticks[: end + 1]) for end in range(len(ticks))]
    return Script(tuple(ticks), tuple(burned), latest[-1] - latest[0])
