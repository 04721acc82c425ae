"""By how much the fast loops of a node were late, whatever channels come and go."""

from collections.abc import Mapping

from seedance_obs.bandwidth.reading import ChannelReading
from seedance_obs.flow import Channel

NOT_OUR_LOOPS = frozenset({"dcgm", "throughput"})  # which have paces of their own


class LateSeconds:
    """By how much the ticks of each loop came late: what its latest channel adds each time."""

    def __init__(self) -> None:
        self.of_loops: dict[str, float] = {}
        self._of_channels: dict[Channel, float] = {}

    def add(self, channels: Mapping[Channel, ChannelReading]) -> None:
        """Take in the channels as they are now."""
        more: dict[str, float] = {}
        for channel, reading in channels.items():
            before = self._of_channels.get(channel, 0.0)
            self._of_channels[channel] = reading.late_seconds
            if reading.source not in NOT_OUR_LOOPS:
                loop = "network" if channel.medium == "network" else "gpu"
                more[loop] = max(more.get(loop, 0.0), reading.late_seconds - before)
        for loop, seconds in more.items():
            self.of_loops[loop] = self.of_loops.get(loop, 0.0) + seconds
