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


class UnlikeWatts:
    """A weigher and Shapley split that remembers nothing: d burns much, c is unknown to it."""

    def learn(self, *lesson):
        assert all(part is not None for part in lesson)

    def weights(self, activities, parts):
        watts = {"a": 100.0, "b": 0.0, "d": 400.0}
        known = {name: watts[name] * share for name, share in activities.items() if name in watts}
        return known, len(parts) % 2 == 0

    def split(self, activities):
        return {name: share**0.5 for name, share in activities.items()} if activities else None


@dataclass(frozen=True)
class Script:
    """A history of one board, and what its counter advanced by and its clock passed in it."""

    ticks: tuple[Tick, ...]
    burned_mj: tuple[int, ...]  # up to each tick
    passed_us: int


HOLDER = st.builds(
    Holder,
    st.sampled_from(ACCOUNTS),
    st.integers(0, 3),
    st.floats(0, 1) | st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, None]),
    st.integers(0, 80 * 2**30),
    st.sampled_from([{}, LINKS]),
)
HOLDERS = st.lists(HOLDER, max_size=4, unique_by=lambda holder: holder.account)
EVENTS = st.sampled_from(
    ["read"] * 12 + ["restart", "missing", "late", "other", "unlisted", "clock_back", "absurd"]
)
STEPS = st.tuples(
    st.just(1_000) | st.integers(0, 3_000) | st.sampled_from([29_999, 30_001, 90_000]),  # ms
    st.integers(0, 700) | st.just(0),  # W
    HOLDERS,
    EVENTS,
    st.integers(0, 10**9),  # bytes
)


@st.composite
def scripts(draw) -> Script:
    """Starts, stops, reshuffles, gaps, restarts, changes of source, late and missing readings."""
    at_ms, count, source = 10**6, draw(st.integers(0, 10**12)), "nvml"
    ticks, burned = [seen(at_ms / 1e3, count)], [0]
    for elapsed_ms, watts, holders, event, traffic in draw(
        st.lists(STEPS, min_size=2, max_size=25)
    ):
        at_ms += elapsed_ms
        delta_mj = 10**10 if event == "absurd" else watts * elapsed_ms
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
                None if event == "unlisted" else tuple(holders),
                PARTS,
                energy,
                power_watts=300.0,
                power_limit_watts=700.0,
                traffic={"nvlink": traffic, "pcie": traffic // 3},
            )
        )
    latest = [max(tick.at_us for tick in ticks[: end + 1]) for end in range(len(ticks))]
    return Script(tuple(ticks), tuple(burned), latest[-1] - latest[0])
