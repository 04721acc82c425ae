"""UUIDs in one spelling, whichever tool printed them."""

import re

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def gpu_uuid(text: str) -> str | None:
    """`GPU-` and a whole UUID in lower case; None for anything less (pastes elide UUIDs)."""
    prefix, _, rest = text.strip().partition("-")
    rest = rest.lower()
    return f"GPU-{rest}" if prefix.upper() == "GPU" and _UUID.fullmatch(rest) else None


def cluster_uuid(text: str) -> str | None:
    """A fabric's UUID as 32 hex digits, zeros too; None for anything else."""
    lower = text.strip().lower()
    return lower.replace("-", "") if _UUID.fullmatch(lower) else None
