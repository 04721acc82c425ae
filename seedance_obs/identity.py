"""One name per device, however its sources spell it."""

import re

_BUS_ID = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$")


def canonical_bus_id(text: str) -> str | None:
    """`00000000:1B:00.0` and `1b:00.0` as `0000:1b:00.0`; None for anything else.

    NVML pads the domain to eight digits and sysfs to four. Exactly the padding is cut, since
    domains above 0 exist (GB200: `0008:06:00.0`) and may need more than four digits.
    """
    match = _BUS_ID.match(text.strip().lower())
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function}"


def canonical_uuid(text: str) -> str | None:
    """A `GPU-...` or `MIG-...` identifier in lower-case hex, or None for anything else."""
    prefix, _, rest = text.strip().partition("-")
    if prefix.upper() not in ("GPU", "MIG") or not rest:
        return None
    return f"{prefix.upper()}-{rest.lower()}"
