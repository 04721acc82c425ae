"""What a collective costs on a placement: as measured where somebody did, else as NCCL plans."""

from dataclasses import dataclass
from enum import StrEnum

from seedance_obs.collectives.calibration import Calibration, said
from seedance_obs.collectives.collective import Collective, Group, checked_size
from seedance_obs.collectives.fabric import Fabric
from seedance_obs.collectives.fastest import Fastest, best


class Basis(StrEnum):
    """What a time rests on.

    MEASURED: between two sizes that were measured in this very case. EXTRAPOLATED: beyond them,
    where the times had settled. NCCL: bandwidths and NCCL's constants.
    """

    MEASURED = "measured"
    EXTRAPOLATED = "extrapolated"
    NCCL = "nccl"


@dataclass(frozen=True, slots=True)
class Cost:
    """The time of one operation, and what it rests on.

    Attributes:
        seconds: From a start that all GPUs make together to the end of the last.
        why: One sentence for a person.
        fastest: NCCL's plan and the others it had; None where the time was measured, since then
            nobody knows which it was.
    """

    seconds: float
    basis: Basis
    why: str
    fastest: Fastest | None = None


class CollectiveModel:
    """Tells times of collectives; by NCCL's constants alone where it is given no calibration."""

    def __init__(self, calibration: Calibration | None = None) -> None:
        self._calibration = calibration or Calibration(())

    def cost(
        self, collective: Collective, *, size_bytes: float, group: Group, fabric: Fabric
    ) -> Cost | None:
        """What one operation takes.

        None where nobody measured it and a bandwidth that it needs is unknown, or NCCL has no
        model of it (gather, scatter, send and receive).

        Args:
            collective: What is done.
            size_bytes: The S of `collective`.
            group: Who takes part.
            fabric: What lies between them; its `link_class` decides what a calibration says of it.

        Raises:
            ValueError: the size is negative, infinite or no number.
        """
        checked_size(size_bytes)
        measured = self._measured(collective, size_bytes, group, fabric.link_class)
        if measured is not None:
            return measured
        found = best(collective, size_bytes=size_bytes, group=group, fabric=fabric)
        if found is None:
            return None
        return Cost(found.plan.seconds, Basis.NCCL, found.why, found)

    def _measured(
        self, collective: Collective, size_bytes: float, group: Group, link_class: str | None
    ) -> Cost | None:
        curve = self._calibration.curve(collective, group, link_class=link_class)
        time = None if curve is None else curve.time(size_bytes)
        if curve is None or time is None:
            return None
        by = f" by {curve.origin.tool}" if curve.origin.tool else ""
        beyond = ", beyond the sizes measured" if time.extrapolated else ""
        basis = Basis.EXTRAPOLATED if time.extrapolated else Basis.MEASURED
        return Cost(time.seconds, basis, f"{said(curve)}, measured{by}{beyond}")
