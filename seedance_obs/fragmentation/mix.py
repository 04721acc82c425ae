"""What is asked for, and how often: the weights by which fragmentation is measured.

The mix of the FGD paper (Weng et al., ATC'23): the most frequent distinct requests until they make
up 95 % of all of them, their shares brought to 1 again. On real traces that leaves some dozens of
some hundreds of distinct requests.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from seedance_obs.fragmentation.request import Request

PERCENT_KEPT = 95
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class Mix:
    """Requests and their weights, which add up to 1; the most frequent one comes first.

    A mix of no requests says nothing, and is false.

    Attributes:
        weights: Each distinct request with its share of all that are in the mix.
    """

    weights: tuple[tuple[Request, float], ...] = ()

    @classmethod
    def of(cls, requests: Iterable[Request], *, percent_kept: float = PERCENT_KEPT) -> "Mix":
        """The mix of single requests, each of which counts once."""
        return cls.of_counts(Counter(requests), percent_kept=percent_kept)

    @classmethod
    def of_counts(
        cls, counts: Mapping[Request, int], *, percent_kept: float = PERCENT_KEPT
    ) -> "Mix":
        """The mix of requests that are counted already, such as those of several nodes added up.

        Which of two equally frequent requests comes first does not depend on their order.
        """
        total = sum(counts.values())
        kept: list[tuple[Request, int]] = []
        reached = 0
        for request, count in sorted(counts.items(), key=_most_frequent_first):
            if count <= 0 or 100 * reached >= percent_kept * total:
                break
            kept.append((request, count))
            reached += count
        return cls(tuple((request, count / reached) for request, count in kept))

    def __len__(self) -> int:
        return len(self.weights)

    def __iter__(self) -> Iterator[tuple[Request, float]]:
        return iter(self.weights)

    def demands_milli(self, quantiles: Sequence[float] = QUARTILES) -> list[int]:
        """What the requests for GPUs want of each GPU, at some quantiles of them.

        Args:
            quantiles: In [0, 1]; at q the least demand that a share q of the requests stays within.

        Returns:
            Thousandths of a GPU, one for each quantile; none where nothing asks for a GPU.
        """
        asking = sorted((one.gpu_milli, weight) for one, weight in self.weights if one.gpus)
        if not asking:
            return []
        reached = list(accumulate(weight for _, weight in asking))
        places = (bisect_left(reached, quantile * reached[-1]) for quantile in quantiles)
        return [asking[place][0] for place in places]


def _most_frequent_first(counted: tuple[Request, int]) -> tuple[object, ...]:
    request, count = counted
    return (
        -count,
        request.gpus,
        request.gpu_milli,
        request.cpu_milli,
        sorted(request.models),
    )
