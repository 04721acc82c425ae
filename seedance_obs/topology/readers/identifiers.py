"""Bus ids and UUIDs in one spelling, whichever tool printed them."""

import re

_BUS_ID = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def bus_id(text: str) -> str | None:
    """`00000000:1B:00.0` and `1b:00.0` as `0000:1b:00.0`; None for anything else.

    Padding is cut to four digits of domain, but no digit that counts.
    """
    found = _BUS_ID.fullmatch(text.strip().lower())
    if found is None:
        return None
    domain, bus, device, function = found.groups()
    return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function}"


def gpu_uuid(text: str) -> str | None:
    """`GPU-` and a whole UUID in lower case; None for anything less (pastes elide UUIDs)."""
    prefix, _, rest = text.strip().partition("-")
    rest = rest.lower()
    return f"GPU-{rest}" if prefix.upper() == "GPU" and _UUID.fullmatch(rest) else None


def cluster_uuid(text: str) -> str | None:
    """A fabric's UUID as 32 hex digits, zeros too; None for anything else."""
    lower = text.strip().lower()
    return lower.replace("-", "") if _UUID.fullmatch(lower) else None
