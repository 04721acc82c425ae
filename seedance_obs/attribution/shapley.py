"""Stub."""

from collections.abc import Hashable, Mapping


class ShapleySplit:
    """Stub."""

    def learn(self, total_activity: float, watts: float, seconds: float) -> None:
        """Stub."""

    def split(self, activities: Mapping[Hashable, float]) -> Mapping[Hashable, float] | None:
        """Stub."""
        return None
