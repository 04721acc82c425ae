"""Our API group, and what Kubernetes takes as a name, a namespace and a label (RFC 1123)."""

import re

GROUP = "topology.seedance.io"
API_VERSION = f"{GROUP}/v1"
LABEL_VALUE_MAX = 63

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LABEL_TEXT = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")

NAME_RULE = "lower-case letters, digits, '-' and '.', at most 253 characters"
NAMESPACE_RULE = "lower-case letters, digits and '-', at most 63 characters"


def is_name(text: str) -> bool:
    """Whether an object may have this name."""
    return len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_namespace(text: str) -> bool:
    """Whether a namespace may have this name."""
    return len(text) <= 63 and _DNS_LABEL.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether this is a label's key: at most 63 characters, `domain/` before them or not."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_name(prefix)) and bool(name) and is_label_value(name)


def is_label_value(text: str) -> bool:
    """Whether this is a label's value: empty, or at most 63 characters of `[A-Za-z0-9._-]`."""
    return len(text) <= LABEL_VALUE_MAX and (not text or _LABEL_TEXT.fullmatch(text) is not None)
