"""Which Google Cloud resources the stand-in knows: their ids, and the outputs that Google makes of the inputs.

Nothing here sends a request; clusters and node pools are made by `gcp_provider` through the rehearsal's supervisor.
What is refused, what replaces and what is answered otherwise is in `gcp_checks`, `google.plan` and `google.answers`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kueue_admission.forms.unknown import is_set
from kueue_fleet.google.answers import COMPUTE_API, number_of
from kueue_fleet.google.gke_answers import answer
from kueue_fleet.google.provider_facts import CLUSTER, NODE_POOL, load_facts
from kueue_rehearsal.standins.plugin_errors import PluginError
from kueue_rehearsal.standins.property_values import Secret, Value, reveal

RESERVATIONS: Final = ("gcp:compute/reservation:Reservation", "gcp:compute/futureReservation:FutureReservation")
"""Pulumi types of reservations."""
CREATION_TIME: Final = "2024-01-01T00:00:00.000-00:00"
"""When everything was made: always the same, so that outputs are."""

Properties = Mapping[str, Any]
"""Properties of a resource, as plain data."""
Derive = Callable[[Properties, str], dict[str, Value]]
"""Inputs (complete) and id in, the outputs that Google adds out."""


def _nothing(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {}


def _self_link(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"selfLink": f"{COMPUTE_API}/{resource_id}", "creationTimestamp": CREATION_TIME}


def _network(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"selfLink": f"{COMPUTE_API}/{resource_id}", "networkId": number_of(resource_id), "gatewayIpv4": ""}


def _subnetwork(inputs: Properties, resource_id: str) -> dict[str, Value]:
    first = str(inputs["ipCidrRange"]).partition("/")[0]
    gateway = f"{first.rpartition('.')[0]}.1"
    return {**_self_link(inputs, resource_id), "subnetworkId": int(number_of(resource_id)), "gatewayAddress": gateway}


def _account(inputs: Properties, resource_id: str) -> dict[str, Value]:
    email = f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"
    return {
        "email": email,
        "member": f"serviceAccount:{email}",
        "name": resource_id,
        "uniqueId": f"{int(hashlib.sha256(email.encode()).hexdigest(), 16) % 10**21:021d}",
    }


def _custom_role(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"name": resource_id, "deleted": False}


def _policy(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"etag": "BwXrehearsal="}


def _hub(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"name": resource_id, "createTime": CREATION_TIME, "uid": number_of(resource_id)}


def _reservation(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {**_self_link(inputs, resource_id), "status": "READY", "commitment": "", "kind": "compute#reservation"}


def _future_reservation(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {**_self_link(inputs, resource_id), "selfLinkWithId": f"{COMPUTE_API}/{resource_id}", "statuses": []}


def _commitment(inputs: Properties, resource_id: str) -> dict[str, Value]:
    times = {"startTimestamp": CREATION_TIME, "endTimestamp": CREATION_TIME}
    return {
        **_self_link(inputs, resource_id),
        **times,
        "commitmentId": number_of(resource_id),
        "status": "ACTIVE",
        "statusMessage": "",
    }


def _alert_policy(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"name": resource_id, "creationRecords": []}


def _channel(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"name": resource_id, "verificationStatus": "VERIFICATION_STATUS_UNSPECIFIED"}


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """One type of resource."""

    id_template: str
    """With the names of inputs in braces."""
    derive: Derive = _nothing
    named: bool = True
    """Whether a `name` is made up when none is given."""

    def resource_id(self, inputs: Properties) -> str:
        """The id that Google would give it; where Google makes one up, a number that its inputs decide."""
        plain = reveal(dict(inputs))
        if "{_id}" in self.id_template:
            plain["_id"] = number_of(json.dumps(plain, sort_keys=True, default=str))
        return self.id_template.format_map(plain)


KINDS: Final[Mapping[str, ResourceKind]] = {
    "gcp:compute/network:Network": ResourceKind("projects/{project}/global/networks/{name}", _network),
    "gcp:compute/subnetwork:Subnetwork": ResourceKind(
        "projects/{project}/regions/{region}/subnetworks/{name}", _subnetwork
    ),
    "gcp:compute/router:Router": ResourceKind("projects/{project}/regions/{region}/routers/{name}", _self_link),
    "gcp:compute/routerNat:RouterNat": ResourceKind("{project}/{region}/{router}/{name}"),
    "gcp:compute/firewall:Firewall": ResourceKind("projects/{project}/global/firewalls/{name}", _self_link),
    "gcp:compute/address:Address": ResourceKind("projects/{project}/regions/{region}/addresses/{name}", _self_link),
    "gcp:compute/reservation:Reservation": ResourceKind(
        "projects/{project}/zones/{zone}/reservations/{name}", _reservation
    ),
    "gcp:compute/futureReservation:FutureReservation": ResourceKind(
        "projects/{project}/zones/{zone}/futureReservations/{name}", _future_reservation
    ),
    "gcp:compute/regionCommitment:RegionCommitment": ResourceKind(
        "projects/{project}/regions/{region}/commitments/{name}", _commitment
    ),
    "gcp:compute/resourcePolicy:ResourcePolicy": ResourceKind(
        "projects/{project}/regions/{region}/resourcePolicies/{name}", _self_link
    ),
    "gcp:monitoring/dashboard:Dashboard": ResourceKind("projects/{project}/dashboards/{_id}", named=False),
    "gcp:monitoring/alertPolicy:AlertPolicy": ResourceKind(
        "projects/{project}/alertPolicies/{_id}", _alert_policy, named=False
    ),
    "gcp:monitoring/notificationChannel:NotificationChannel": ResourceKind(
        "projects/{project}/notificationChannels/{_id}", _channel, named=False
    ),
    "gcp:kms/keyRing:KeyRing": ResourceKind("projects/{project}/locations/{location}/keyRings/{name}"),
    "gcp:kms/cryptoKey:CryptoKey": ResourceKind("{keyRing}/cryptoKeys/{name}"),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": ResourceKind(
        "{cryptoKeyId}/{role}/{member}", _policy, named=False
    ),
    "gcp:artifactregistry/repository:Repository": ResourceKind(
        "projects/{project}/locations/{location}/repositories/{repositoryId}", _hub, named=False
    ),
    "gcp:serviceaccount/account:Account": ResourceKind(
        "projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com", _account, named=False
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": ResourceKind("{serviceAccountId}/{role}/{member}", _policy, named=False),
    "gcp:projects/iAMCustomRole:IAMCustomRole": ResourceKind(
        "projects/{project}/roles/{roleId}", _custom_role, named=False
    ),
    "gcp:projects/iAMMember:IAMMember": ResourceKind("{project}/{role}/{member}", _policy, named=False),
    "gcp:projects/service:Service": ResourceKind("{project}/{service}", named=False),
    "gcp:gkehub/fleet:Fleet": ResourceKind("projects/{project}/locations/global/fleets/default", _hub, named=False),
    "gcp:gkehub/membership:Membership": ResourceKind(
        "projects/{project}/locations/{location}/memberships/{membershipId}", _hub, named=False
    ),
    "gcp:gkehub/feature:Feature": ResourceKind("projects/{project}/locations/{location}/features/{name}", named=False),
    CLUSTER: ResourceKind("projects/{project}/locations/{location}/clusters/{name}"),
    NODE_POOL: ResourceKind("projects/{project}/locations/{location}/clusters/{cluster}/nodePools/{name}"),
}
"""Every type that is known; the provider refuses others by name."""


def find_kind(token: str) -> ResourceKind:
    """The kind of a type token. Raises PluginError for a type that the stand-in does not know."""
    if token not in KINDS:
        known = ", ".join(sorted(token.removeprefix("gcp:") for token in KINDS))
        raise PluginError(
            f"{token}: the stand-in of the Google Cloud provider does not know this type; it knows {known}"
        )
    return KINDS[token]


def completed(token: str, inputs: Mapping[str, Value], where: Mapping[str, Any]) -> dict[str, Value]:
    """`inputs` with the parts of the id that come from elsewhere: project, region and zone of the provider, defaults.

    Raises PluginError when an input of the id is given nowhere.
    """
    template = find_kind(token).id_template
    location = where.get("region", where.get("zone"))
    places = {**dict.fromkeys(("project", "region", "zone")), **where, "location": location}
    filled_in = dict(inputs)
    for name, fact in load_facts().resources[token].items():
        if f"{{{name}}}" not in template or is_set(inputs.get(name)):
            continue
        if fact.default is not None:
            filled_in[name] = fact.default
        elif name in places:
            if not is_set(places[name]):
                where_else = "the provider's region" if name == "location" else "the provider"
                raise PluginError(f"{name}: required field is not set; set it on the resource, or {where_else}")
            filled_in[name] = places[name]
    return filled_in


def check_version(inputs: Properties, running: str) -> None:
    """Raises PluginError when the rehearsal's Kubernetes is older than `minMasterVersion`."""
    wanted = str(inputs.get("minMasterVersion") or "")
    numbers = re.match(r"(\d+)\.(\d+)", wanted)
    here = re.match(r"v?(\d+)\.(\d+)", running)
    if numbers and here and tuple(map(int, numbers.groups())) > tuple(map(int, here.groups())):
        raise PluginError(f"minMasterVersion: {wanted} wanted, a rehearsal has Kubernetes {running}; lower it")


def answered(
    token: str, given: Mapping[str, Any], resource_id: str, control_plane: Mapping[str, Any]
) -> dict[str, Value]:
    """The state of a resource: `given`, plain and complete, as Google answers it.

    `control_plane` is that of the cluster or of the node pool's cluster, and is not looked at for other types.
    """
    state = answer(token, given, control_plane)
    if token == CLUSTER:
        state["masterAuth"] = {**state["masterAuth"], "clientKey": Secret(state["masterAuth"]["clientKey"])}
    return {**state, **find_kind(token).derive(state, resource_id)}
