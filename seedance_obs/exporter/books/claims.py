"""What allocators say of who was given which device: the kubelet, else a DCGM page; Slurm's map.

They name pods and jobs, devices in spellings of their own, and they may be late. What is made of
it here is compared with living processes by `residency`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seedance_obs.exporter.books.residency import Claim, Place
from seedance_obs.merge import MergedGpu
from seedance_obs.sources.podresources.devices import HeldDevice
from seedance_obs.sources.podresources.pods import PodContainer
from seedance_obs.sources.slurm import MappedGpu
from seedance_obs.workload import Workload

# The workload of a pod by namespace, name and container; None for one that is known to have ended.
PodFinder = Callable[[str, str, str], Workload | None]


@dataclass(frozen=True, slots=True)
class Given:
    """A device and who was given it."""

    device: HeldDevice
    claim: Claim


def given_to_pods(containers: Iterable[PodContainer], find: PodFinder) -> list[Given]:
    """The devices of pods that are not known to have ended."""
    found = []
    for container in containers:
        workload = find(container.namespace, container.pod, container.container)
        if workload is not None:
            found += [
                Given(device, Claim(workload, shared=device.replica is not None))
                for device in container.devices
            ]
    return found


def given_to_jobs(jobs: Mapping[MappedGpu, Sequence[str]]) -> list[Given]:
    """The devices of Slurm jobs, several on one where its files list several."""
    return [
        Given(_mapped(gpu), Claim(Workload("slurm", job, 0, slurm_job=job), shared=len(on) > 1))
        for gpu, on in jobs.items()
        for job in on
    ]


def _mapped(gpu: MappedGpu) -> HeldDevice:
    uuid = gpu.uuid or ""
    return HeldDevice(
        gpu_uuid=uuid if uuid.startswith("GPU-") else None,
        mig_uuid=uuid if uuid.startswith("MIG-") else None,
        index=gpu.index,
        gpu_instance=gpu.gpu_instance,
    )


class Claims:
    """Everything that was given; `pods_told` is False where no kubelet has answered yet."""

    def __init__(
        self,
        given: Sequence[Given],
        find: PodFinder,
        *,
        pods_told: bool,
        before: "Claims | None" = None,
    ) -> None:
        """Take what is given now; of what was `before`, that a board is one that pods are given."""
        self._of_pods: set[str] = set() if before is None else before._of_pods
        self._given = _by_name(given)
        self._find = find
        self._pods_told = pods_told

    def on(self, gpu: MergedGpu) -> Callable[[Place], Sequence[Claim] | None]:
        """The claims on each place of a board.

        None where pods were seen on it before and nobody tells of pods now.
        """
        return lambda place: self._at(gpu, place)

    def _at(self, gpu: MergedGpu, place: Place) -> Sequence[Claim] | None:
        near = [g for name in _names_of(gpu, place) for g in self._given.get(name, ())]
        given = [g.claim for g in near if _is_at(g.device, gpu, place)]
        if any(claim.workload.kind == "pod" for claim in given):
            self._of_pods.add(gpu.uuid)
        if self._pods_told or given:
            return given
        if gpu.pods is None:
            return None if gpu.pod_managed or gpu.uuid in self._of_pods else ()
        return [*self._of_page(gpu, place)]

    def _of_page(self, gpu: MergedGpu, place: Place) -> Iterator[Claim]:
        here = [pod for pod in gpu.pods or () if _names(pod.gpu_instance, place)]
        names = dict.fromkeys((pod.namespace, pod.pod) for pod in here)
        for namespace, name in names:
            workload = self._find(namespace, name, "")
            if workload is not None:
                yield Claim(workload, shared=len(names) > 1)


def _by_name(given: Iterable[Given]) -> Mapping[object, Sequence[Given]]:
    """What was given, by the instance that its device names, else by the board."""
    found: defaultdict[object, list[Given]] = defaultdict(list)
    for each in given:
        device = each.device
        found[device.mig_uuid or ("board", device.gpu_uuid)].append(each)
        if device.mig_uuid is not None:
            found["instances of", device.gpu_uuid].append(each)
    return found


def _names_of(gpu: MergedGpu, place: Place) -> Iterator[object]:
    """Under which names that which is at a place may be found; the board may be told by number."""
    boards = (gpu.uuid, None)
    yield from (("board", uuid) for uuid in boards)
    if place.instance is not None and place.instance.uuid is not None:
        yield place.instance.uuid
    else:
        yield from (("instances of", uuid) for uuid in boards)


def _names(instance: int | None, place: Place) -> bool:
    """Whether a number of a GPU instance, or none for the whole board, means this place."""
    return instance == (None if place.instance is None else place.instance.gpu_instance)


def _is_at(device: HeldDevice, gpu: MergedGpu, place: Place) -> bool:
    instance = place.instance
    if device.mig_uuid is not None and instance is not None and instance.uuid is not None:
        return device.mig_uuid == instance.uuid
    if not _is_on(device, gpu):
        return False
    if device.gpu_instance is not None:
        compute = (device.compute_instance, None if instance is None else instance.compute_instance)
        return _names(device.gpu_instance, place) and (None in compute or compute[0] == compute[1])
    if device.mig_profile is not None:
        alike = [other for other in gpu.mig if other.profile == device.mig_profile]
        return len(alike) == 1 and alike[0] == instance
    return not device.is_mig and instance is None


def _is_on(device: HeldDevice, gpu: MergedGpu) -> bool:
    if device.gpu_uuid is not None:
        return device.gpu_uuid == gpu.uuid
    number = gpu.facts.get("minor_number", "" if gpu.index is None else str(gpu.index))
    return device.index is not None and str(device.index) == number
