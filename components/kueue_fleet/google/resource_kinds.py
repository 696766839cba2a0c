"""The ids that Google gives to resources, and the outputs that it makes of their inputs.

Nothing here sends a request. What Google answers otherwise than it was asked for is in `google.answers`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kueue_admission.kernel.unknown import is_set
from kueue_fleet.google.answers import COMPUTE_API, number_of
from kueue_fleet.google.gke_answers import answer
from kueue_fleet.google.provider_facts import load_facts
from kueue_fleet.google.resource_types import (
    ACCOUNT_MEMBER,
    ALERT_POLICY,
    API_SERVICE,
    BUCKET,
    BUCKET_MEMBER,
    CLUSTER,
    COMMITMENT,
    CRYPTO_KEY,
    CUSTOM_ROLE,
    DASHBOARD,
    FILESTORE,
    FUTURE_RESERVATION,
    GLOBAL_ADDRESS,
    IMAGE_REPOSITORY,
    KEY_MEMBER,
    LUSTRE,
    MEMBERSHIP,
    NETWORK,
    NODE_POOL,
    PROJECT_MEMBER,
    RESERVATION,
    ROUTER_NAT,
    SERVICE_ACCOUNT,
    SERVICE_CONNECTION,
    SUBNETWORK,
)

RESERVATIONS: Final = (RESERVATION, FUTURE_RESERVATION)
"""Pulumi types of what node pools wait for: a reservation, and a request that turns into one."""
CREATION_TIME: Final = "2024-01-01T00:00:00.000-00:00"
"""When everything was made: a constant, so that outputs never differ."""

Properties = Mapping[str, Any]
"""Properties of a resource, as plain data."""
Derive = Callable[[Properties, str], dict[str, Any]]
"""Takes complete inputs and the id, and returns the outputs that Google adds."""


def _always(**outputs: Any) -> Derive:
    """The same outputs whatever the inputs are; in a text, `{id}` is the id, and `{number}` a number of its own."""

    def derive(_: Properties, resource_id: str) -> dict[str, Any]:
        words = {"id": resource_id, "number": number_of(resource_id)}
        return {name: text.format_map(words) if isinstance(text, str) else text for name, text in outputs.items()}

    return derive


_NOTHING: Final = _always()
_LINK: Final = {"selfLink": f"{COMPUTE_API}/{{id}}", "creationTimestamp": CREATION_TIME}
_self_link: Final = _always(**_LINK)
_policy: Final = _always(etag="BwXrehearsal=")
_hub: Final = _always(name="{id}", createTime=CREATION_TIME, uid="{number}")
_commitment: Final = _always(
    **_LINK,
    startTimestamp=CREATION_TIME,
    endTimestamp=CREATION_TIME,
    commitmentId="{number}",
    status="ACTIVE",
    statusMessage="",
)


def _subnetwork(inputs: Properties, resource_id: str) -> dict[str, Any]:
    first = str(inputs["ipCidrRange"]).partition("/")[0]
    gateway = f"{first.rpartition('.')[0]}.1"
    return {**_self_link(inputs, resource_id), "subnetworkId": int(number_of(resource_id)), "gatewayAddress": gateway}


def _account(inputs: Properties, resource_id: str) -> dict[str, Any]:
    email = f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"
    return {
        "email": email,
        "member": f"serviceAccount:{email}",
        "name": resource_id,
        "uniqueId": f"{int(hashlib.sha256(email.encode()).hexdigest(), 16) % 10**21:021d}",
    }


def _filestore(inputs: Properties, resource_id: str) -> dict[str, Any]:
    networks = [{**network, "ipAddresses": [_address(resource_id)]} for network in inputs.get("networks") or ()]
    return {"createTime": CREATION_TIME, "networks": networks}


def _lustre(inputs: Properties, resource_id: str) -> dict[str, Any]:
    point = f"{_address(resource_id)}@tcp:/{inputs.get('filesystem')}"
    return {"name": resource_id, "state": "ACTIVE", "createTime": CREATION_TIME, "mountPoint": point}


def _range(inputs: Properties, resource_id: str) -> dict[str, Any]:
    return {**_self_link(inputs, resource_id), "address": inputs.get("address") or "10.255.240.0"}


def _address(resource_id: str) -> str:
    """A private address, the same for the same resource."""
    return f"10.255.{int(number_of(resource_id)) % 254 + 1}.2"


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """One type of resource."""

    id_template: str
    """With the names of inputs in braces; `_id` for a number that Google makes up."""
    derive: Derive = _NOTHING
    named: bool = True
    """Whether a `name` is made up when none is given."""

    def resource_id(self, inputs: Properties) -> str:
        """The id that Google would give it; where Google makes one up, a number that its inputs decide."""
        plain = dict(inputs)
        if "{_id}" in self.id_template:
            plain["_id"] = number_of(json.dumps(plain, sort_keys=True, default=str))
        return self.id_template.format_map(plain)


_UNUSUAL: Final[Mapping[str, ResourceKind]] = {
    NETWORK: ResourceKind(
        "projects/{project}/global/networks/{name}",
        _always(selfLink=_LINK["selfLink"], networkId="{number}", gatewayIpv4=""),
    ),
    SUBNETWORK: ResourceKind("projects/{project}/regions/{region}/subnetworks/{name}", _subnetwork),
    ROUTER_NAT: ResourceKind("{project}/{region}/{router}/{name}"),
    RESERVATION: ResourceKind(
        "projects/{project}/zones/{zone}/reservations/{name}",
        _always(**_LINK, status="READY", commitment="", kind="compute#reservation"),
    ),
    FUTURE_RESERVATION: ResourceKind(
        "projects/{project}/zones/{zone}/futureReservations/{name}",
        _always(**_LINK, selfLinkWithId=_LINK["selfLink"], statuses=[]),
    ),
    COMMITMENT: ResourceKind("projects/{project}/regions/{region}/commitments/{name}", _commitment),
    DASHBOARD: ResourceKind("projects/{project}/dashboards/{_id}", named=False),
    ALERT_POLICY: ResourceKind(
        "projects/{project}/alertPolicies/{_id}", _always(name="{id}", creationRecords=[]), named=False
    ),
    "gcp:monitoring/notificationChannel:NotificationChannel": ResourceKind(
        "projects/{project}/notificationChannels/{_id}",
        _always(name="{id}", verificationStatus="VERIFICATION_STATUS_UNSPECIFIED"),
        named=False,
    ),
    CRYPTO_KEY: ResourceKind("{keyRing}/cryptoKeys/{name}"),
    KEY_MEMBER: ResourceKind("{cryptoKeyId}/{role}/{member}", _policy, named=False),
    IMAGE_REPOSITORY: ResourceKind(
        "projects/{project}/locations/{location}/repositories/{repositoryId}", _hub, named=False
    ),
    SERVICE_ACCOUNT: ResourceKind(
        "projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com", _account, named=False
    ),
    ACCOUNT_MEMBER: ResourceKind("{serviceAccountId}/{role}/{member}", _policy, named=False),
    CUSTOM_ROLE: ResourceKind("projects/{project}/roles/{roleId}", _always(name="{id}", deleted=False), named=False),
    PROJECT_MEMBER: ResourceKind("{project}/{role}/{member}", _policy, named=False),
    API_SERVICE: ResourceKind("{project}/{service}", named=False),
    "gcp:gkehub/fleet:Fleet": ResourceKind("projects/{project}/locations/global/fleets/default", _hub, named=False),
    MEMBERSHIP: ResourceKind("projects/{project}/locations/{location}/memberships/{membershipId}", _hub, named=False),
    "gcp:gkehub/feature:Feature": ResourceKind("projects/{project}/locations/{location}/features/{name}", named=False),
    BUCKET: ResourceKind("{name}", _always(url="gs://{id}", selfLink="https://www.googleapis.com/storage/v1/b/{id}")),
    BUCKET_MEMBER: ResourceKind("b/{bucket}/{role}/{member}", _policy, named=False),
    FILESTORE: ResourceKind("projects/{project}/locations/{location}/instances/{name}", _filestore),
    LUSTRE: ResourceKind("projects/{project}/locations/{location}/instances/{instanceId}", _lustre, named=False),
    GLOBAL_ADDRESS: ResourceKind("projects/{project}/global/addresses/{name}", _range),
    SERVICE_CONNECTION: ResourceKind("{network}:{service}", named=False),
    CLUSTER: ResourceKind("projects/{project}/locations/{location}/clusters/{name}"),
    NODE_POOL: ResourceKind("projects/{project}/locations/{location}/clusters/{cluster}/nodePools/{name}"),
}
"""The types whose ids or outputs are not those of most."""
OTHER: Final = ResourceKind("{name}", named=False)
"""Any other type: its outputs are its inputs."""


@cache
def kinds() -> Mapping[str, ResourceKind]:
    """Every type of which the provider's facts are known, by token."""
    return {token: _UNUSUAL.get(token) or _usual(token) for token in load_facts().resources}


def _usual(token: str) -> ResourceKind:
    """What most types are: something with a name in a collection of a zone, a region, a location or the project."""
    noun = token.partition("/")[2].partition(":")[0]
    collection = re.sub("y$", "ie", noun) + "s" if noun[-1] != "s" else f"{noun}es"
    properties = load_facts().properties(token)
    places = {"zone": "zones/{zone}", "region": "regions/{region}", "location": "locations/{location}"}
    place = next((place for name, place in places.items() if name in properties), "global")
    derive = _self_link if "selfLink" in properties else _NOTHING
    return ResourceKind(f"projects/{{project}}/{place}/{collection}/{{name}}", derive)


def kind_of(token: str) -> ResourceKind:
    """The kind of a type token."""
    return kinds().get(token, OTHER)


def completed(token: str, inputs: Mapping[str, Any], where: Mapping[str, Any]) -> dict[str, Any]:
    """`inputs` with the parts of the id that come from elsewhere: defaults, and the provider's project, region, zone.

    What is given nowhere is missing.
    """
    template = kind_of(token).id_template
    places = {**where, "location": where.get("region", where.get("zone"))}
    filled_in = dict(inputs)
    for name, fact in load_facts().properties(token).items():
        if f"{{{name}}}" in template and not is_set(inputs.get(name)):
            value = places.get(name) if fact.default is None else fact.default
            filled_in |= {name: value} if is_set(value) else {}
    return filled_in


def answered(
    token: str, properties: Mapping[str, Any], resource_id: str, control_plane: Mapping[str, Any]
) -> dict[str, Any]:
    """The state of a resource: `properties`, plain and complete, as Google answers it.

    `control_plane` is that of the cluster or of the node pool's cluster, and is not looked at for other types.
    """
    state = answer(token, properties, control_plane)
    return {**state, **kind_of(token).derive(state, resource_id)}
