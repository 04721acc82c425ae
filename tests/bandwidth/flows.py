"""Windows as a loop that ticks every 100 ms would make them."""

from collections.abc import Iterable, Sequence

from seedance_obs.flow import Channel, Flow, Window

TICK = 0.1
CAPACITY = 10_000_000_000.0
PER_TICK = 1_000_000_000  # bytes at capacity
PCIE = Channel("GPU-0", "pcie", "transmit")


def ticks(
    amounts: Iterable[float], *, start: float = 100.0, tick: float = TICK
) -> tuple[Window, ...]:
    """One window for each amount, without gaps."""
    return tuple(
        Window(start + place * tick, start + (place + 1) * tick, amount)
        for place, amount in enumerate(amounts)
    )


def stepping(ratio: float, *, seconds: float, every: int, first: int = 0) -> tuple[Window, ...]:
    """A counter at a ratio of capacity, written every so many ticks; the first after `first`."""
    step = round(ratio * PER_TICK * every)
    count = round(seconds / TICK)
    return ticks(step if place % every == first else 0 for place in range(count))


def flow(source: str, windows: Sequence[Window], channel: Channel = PCIE) -> Flow:
    return Flow(channel, source, tuple(windows))
