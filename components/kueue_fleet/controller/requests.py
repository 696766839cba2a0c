"""The ProvisioningRequests of one cluster, by the Workload that they are for."""

from __future__ import annotations

from kueue_admission.read.printed import Printed
from kueue_fleet.dispatch import Provisioning
from kueue_fleet.kube.answers import Json


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
        printed_object = Printed.of(item)
        owner, uid = _owner(printed_object)
        if owner:
            self._owners[key] = owner
            self._found.setdefault(owner, {})[key] = uid, _read(printed_object)
        return owner

    def of(self, key: str, uid: str) -> tuple[Provisioning, ...]:
        """Those of the Workload with this uid; those of an earlier one may be gone later than it."""
        return tuple(request_object for owner, request_object in self._found.get(key, {}).values() if owner == uid)


def _owner(item: Printed) -> tuple[str, str]:
    """Key and uid of the Workload that an object belongs to."""
    owner = next((owner for owner in item.owners if owner.kind == "Workload"), None)
    return ("", "") if owner is None else (f"{item.namespace}/{owner.name}", owner.uid)


def _read(item: Printed) -> Provisioning:
    return Provisioning(
        name=item.name,
        uid=item.uid,
        accepted_at=item.since("Accepted"),
        provisioned_at=item.since("Provisioned"),
        failed=any(map(item.is_true, ("Failed", "BookingExpired", "CapacityRevoked"))),
    )
