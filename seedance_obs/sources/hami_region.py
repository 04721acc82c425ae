"""The limits in the file that HAMi shares between the processes of a container.

HAMi-core maps it as `shared_region_t` (`multiprocess_memory_limit.h`, version 1.1 and 1.2 of the
layout, 64-bit little-endian with glibc's 32-byte semaphore): a magic number and the version, then
at byte 56 the number of devices, at 64 sixteen UUIDs of 96 bytes, at 1600 sixteen limits of memory
in bytes, at 1728 sixteen of SM share in percent. Only this head is read, and nothing is mapped or
written. The container may write to the file: what it holds is no more than its word.
"""

import re
import struct

from seedance_obs.sources.quotas import Quota

HEAD_BYTES = 1856
_MAGIC = 19920718
_VERSIONS = ((1, 1), (1, 2))
_MOST_DEVICES = 16
_HEAD = struct.Struct("<iII")
_COUNT = struct.Struct("<Q")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]{1,90}", re.ASCII)


def parse_region(head: bytes) -> tuple[Quota, ...] | None:
    """A quota for each device of the head of a region; None where it is not one we know."""
    if len(head) < HEAD_BYTES:
        return None
    magic, *version = _HEAD.unpack_from(head)
    (count,) = _COUNT.unpack_from(head, 56)
    if magic != _MAGIC or tuple(version) not in _VERSIONS or count > _MOST_DEVICES:
        return None
    quotas = (_device(head, index) for index in range(count))
    return tuple(quota for quota in quotas if quota is not None)


def _device(head: bytes, index: int) -> Quota | None:
    start = 64 + 96 * index
    uuid = head[start : start + 96].partition(b"\0")[0].decode("ascii", errors="replace")
    (memory,) = _COUNT.unpack_from(head, 1600 + 8 * index)
    (percent,) = _COUNT.unpack_from(head, 1728 + 8 * index)
    memory_bytes = memory if 0 < memory < 2**63 else None
    sm_ratio = percent / 100 if 0 < percent < 100 else None
    if _UUID.fullmatch(uuid) is None or (memory_bytes is None and sm_ratio is None):
        return None
    return Quota("hami", memory_bytes, sm_ratio, gpu=uuid)
