"""How labels and annotations get onto a Kubernetes node.

node-feature-discovery's local source reads feature files from
`/etc/kubernetes/node-feature-discovery/features.d/`: one `key=value` a line. Hidden files are
skipped, files over 64 KiB refused. There is no way to write annotations in one: those need one of
the patches (or a NodeFeatureRule).
nfd-master takes labels of every prefix outside kubernetes.io; where an operator has denied them
(`denyLabelNs: ["*"]`), `topology.seedance.io` must be listed in `extraLabelNs`.

The patches are for `kubectl patch node NAME --type json` or `--type merge`, and touch keys under
`topology.seedance.io/` alone.
"""

from collections.abc import Mapping
from typing import Any

from seedance_obs.topology.encoding.node_labels import PREFIX

Node = Mapping[str, Any]  # as the API server gives it in JSON


def feature_file(labels: Mapping[str, str]) -> str:
    """The labels as a feature file, which suits every release of NFD."""
    return "".join(f"{key}={value}\n" for key, value in sorted(labels.items()))


def json_patch(
    labels: Mapping[str, str], annotations: Mapping[str, str], *, current: Node | None = None
) -> list[dict[str, Any]]:
    """The operations (RFC 6902) that put the labels and annotations on a node.

    With `current`, the node as it is, there are only the operations that change something: keys
    of ours that are stale are removed, and a map that the node lacks is added before its first
    member. Without it, the node must have both maps, as every node that kubelet registers has.
    """
    operations: list[dict[str, Any]] = []
    for name, wanted in (("labels", labels), ("annotations", annotations)):
        path = f"/metadata/{name}"
        present = _present(current, name)
        if current is not None and present is None and wanted:
            operations.append({"op": "add", "path": path, "value": {}})
        for key, value in _changes(wanted, present or {}).items():
            at = f"{path}/{_pointer(key)}"
            if value is None:
                operations.append({"op": "remove", "path": at})
            else:
                operations.append({"op": "add", "path": at, "value": value})
    return operations


def merge_patch(
    labels: Mapping[str, str], annotations: Mapping[str, str], *, current: Node | None = None
) -> dict[str, Any]:
    """The same as a merge patch (RFC 7396): what is null is removed; empty if nothing changes."""
    metadata = {}
    for name, wanted in (("labels", labels), ("annotations", annotations)):
        changes = _changes(wanted, _present(current, name) or {})
        if changes:
            metadata[name] = changes
    return {"metadata": metadata} if metadata else {}


def _present(current: Node | None, name: str) -> Mapping[str, str] | None:
    """The labels or annotations of a node; None where it has no such map."""
    metadata = (current or {}).get("metadata") or {}
    found: Mapping[str, str] | None = metadata.get(name)
    return found


def _changes(wanted: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str | None]:
    """What to set, and None for what to remove, by key in order."""
    changes: dict[str, str | None] = {
        key: None for key in present if key.startswith(PREFIX) and key not in wanted
    }
    changes |= {key: value for key, value in wanted.items() if present.get(key) != value}
    return dict(sorted(changes.items()))


def _pointer(key: str) -> str:
    """A key as one step of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
