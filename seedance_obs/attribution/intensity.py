"""Stub until the learned intensities arrive."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """Stub."""

    seconds: float = 0.0
    condition: float | None = None
    residual_ratio: float | None = None
    used: bool = False


class Intensities:
    """Stub."""

    evidence = Evidence()

    def learn(
        self,
        activities: Mapping[Hashable, float],
        parts: Mapping[Hashable, float],
        watts: float,
        seconds: float,
    ) -> None:
        """Stub."""

    def weights(
        self, activities: Mapping[Hashable, float], parts: Mapping[Hashable, float]
    ) -> tuple[Mapping[Hashable, float], bool]:
        """Stub."""
        return activities, False

    def of(self, account: Hashable) -> float | None:
        """Stub."""
        return None

    def forget(self, account: Hashable) -> None:
        """Stub."""
