"""What a workload asks for, and what a node has free: the plain values of every measure here."""

from dataclasses import dataclass

WHOLE_GPU = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """What one workload asks for.

    Attributes:
        gpus: How many GPUs; 0 for one that needs the CPU alone.
        gpu_milli: Thousandths of each of those GPUs; 1000 for whole ones.
        cpu_milli: Thousandths of a core; 0 where that is not known.
        models: The GPU models that will do; empty: any.
    """

    gpus: int
    gpu_milli: int = WHOLE_GPU
    cpu_milli: int = 0
    models: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FreeNode:
    """What nobody holds on one node.

    Attributes:
        gpu_milli: Free thousandths of each GPU, 0 to 1000.
        cpu_milli: Free thousandths of cores; None where that is not known, and then no request
            fails for it.
        model: The GPUs' model; empty where that is not known, and then no request fails for it.
    """

    gpu_milli: tuple[int, ...]
    cpu_milli: int | None = None
    model: str = ""
