"""The ProvisioningRequests of one cluster, by the Workload that they are for."""

from __future__ import annotations

from typing import Final

from kueue_admission.read.manifests import since
from kueue_fleet.dispatch import Provisioning
from kueue_fleet.kube.answers import Json

PROVISIONING: Final = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
"""Path of all ProvisioningRequests."""


class Requests:
    """What a watch of them says."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, tuple[str, Provisioning]]] = {}
        self._owners: dict[str, str] = {}

    def take(self, key: str, item: Json | None) -> str:
        """A ProvisioningRequest is new, changed or gone; the key of its Workload, empty if it has none."""
        if item is None:
            owner = self._owners.pop(key, "")
            self._found.get(owner, {}).pop(key, None)
            if not self._found.get(owner, True):
                del self._found[owner]
            return owner
        owner, uid = _owner(item)
        if owner:
            self._owners[key] = owner
            self._found.setdefault(owner, {})[key] = uid, _read(item)
        return owner

    def of(self, key: str, uid: str) -> tuple[Provisioning, ...]:
        """Those of the Workload with this uid; those of an earlier one may be gone later than it."""
        return tuple(found for owner, found in self._found.get(key, {}).values() if owner == uid)


def _owner(item: Json) -> tuple[str, str]:
    """Key and uid of the Workload that an object belongs to."""
    metadata = item["metadata"]
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("kind") == "Workload":
            return f"{metadata['namespace']}/{reference['name']}", str(reference.get("uid", ""))
    return "", ""


def _read(item: Json) -> Provisioning:
    return Provisioning(
        name=item["metadata"]["name"],
        uid=str(item["metadata"].get("uid", "")),
        accepted_at=since(item, "Accepted"),
        provisioned_at=since(item, "Provisioned"),
        failed=any(since(item, kind) is not None for kind in ("Failed", "BookingExpired", "CapacityRevoked")),
    )
