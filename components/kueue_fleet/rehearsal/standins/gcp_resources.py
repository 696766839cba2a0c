"""Which Google Cloud resources the stand-in knows: their ids, what replaces them, what Google adds to them.

In: a resource's inputs and where the provider works. Out: plain data. Nothing here talks to anybody; clusters and
node pools are made by `gcp_provider` through the rehearsal's supervisor.
Source of ids and replacing properties: the resources of terraform-provider-google 7.x, which pulumi-gcp 10 carries.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kueue_fleet.rehearsal.standins.plugin_errors import PluginError
from kueue_fleet.rehearsal.standins.property_diff import Pattern, parse_pattern
from kueue_fleet.rehearsal.standins.property_values import UNKNOWN, Secret, Value, reveal

CLUSTER: Final = "gcp:container/cluster:Cluster"
"""Pulumi type of a GKE cluster."""
NODE_POOL: Final = "gcp:container/nodePool:NodePool"
"""Pulumi type of a GKE node pool."""
RESERVATIONS: Final = ("gcp:compute/reservation:Reservation", "gcp:compute/futureReservation:FutureReservation")
"""Pulumi types of reservations."""
COMPUTE_API: Final = "https://www.googleapis.com/compute/v1"
"""How links to resources of Compute Engine begin."""
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


def _number(text: str) -> str:
    """A number as Google gives out, the same for the same text."""
    return str(10**11 + zlib.crc32(text.encode()))


def _network(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"selfLink": f"{COMPUTE_API}/{resource_id}", "networkId": _number(resource_id), "gatewayIpv4": ""}


def _subnetwork(inputs: Properties, resource_id: str) -> dict[str, Value]:
    first = str(inputs["ipCidrRange"]).partition("/")[0]
    gateway = f"{first.rpartition('.')[0]}.1"
    return {**_self_link(inputs, resource_id), "subnetworkId": int(_number(resource_id)), "gatewayAddress": gateway}


def _account(inputs: Properties, resource_id: str) -> dict[str, Value]:
    email = f"{inputs['accountId']}@{inputs['project']}.iam.gserviceaccount.com"
    return {
        "email": email,
        "member": f"serviceAccount:{email}",
        "name": resource_id,
        "uniqueId": f"{int(hashlib.sha256(email.encode()).hexdigest(), 16) % 10**21:021d}",
    }


def _policy(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"etag": "BwXrehearsal="}


def _hub(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {"name": resource_id, "createTime": CREATION_TIME, "uid": _number(resource_id)}


def _reservation(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {**_self_link(inputs, resource_id), "status": "READY", "commitment": "", "kind": "compute#reservation"}


def _future_reservation(inputs: Properties, resource_id: str) -> dict[str, Value]:
    return {**_self_link(inputs, resource_id), "selfLinkWithId": f"{COMPUTE_API}/{resource_id}", "statuses": []}


def _commitment(inputs: Properties, resource_id: str) -> dict[str, Value]:
    times = {"startTimestamp": CREATION_TIME, "endTimestamp": CREATION_TIME}
    return {
        **_self_link(inputs, resource_id),
        **times,
        "commitmentId": _number(resource_id),
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
    replacing: tuple[Pattern, ...]
    derive: Derive = _nothing
    named: bool = True
    """Whether a `name` is made up when none is given."""
    defaults: tuple[tuple[str, Value], ...] = ()
    """What is in the state when the program does not say it."""

    def resource_id(self, inputs: Properties) -> str:
        """The id that Google would give it; where Google makes one up, a number that its inputs decide."""
        plain = reveal(dict(inputs))
        if "{_id}" in self.id_template:
            plain["_id"] = _number(json.dumps(plain, sort_keys=True, default=str))
        return self.id_template.format_map(plain)


def _patterns(text: str) -> tuple[Pattern, ...]:
    return tuple(parse_pattern(part) for part in text.split())


KINDS: Final[Mapping[str, ResourceKind]] = {
    "gcp:compute/network:Network": ResourceKind(
        "projects/{project}/global/networks/{name}",
        _patterns("name project description autoCreateSubnetworks enableUlaInternalIpv6 internalIpv6Range"),
        _network,
    ),
    "gcp:compute/subnetwork:Subnetwork": ResourceKind(
        "projects/{project}/regions/{region}/subnetworks/{name}",
        _patterns("name project region network purpose description reservedInternalRange"),
        _subnetwork,
    ),
    "gcp:compute/router:Router": ResourceKind(
        "projects/{project}/regions/{region}/routers/{name}",
        _patterns("name project region network encryptedInterconnectRouter"),
        _self_link,
    ),
    "gcp:compute/routerNat:RouterNat": ResourceKind(
        "{project}/{region}/{router}/{name}",
        _patterns("name project region router type"),
    ),
    "gcp:compute/firewall:Firewall": ResourceKind(
        "projects/{project}/global/firewalls/{name}", _patterns("name project network direction"), _self_link
    ),
    "gcp:compute/address:Address": ResourceKind(
        "projects/{project}/regions/{region}/addresses/{name}",
        _patterns(
            "name project region address addressType description ipVersion network networkTier purpose "
            "subnetwork prefixLength"
        ),
        _self_link,
    ),
    "gcp:compute/reservation:Reservation": ResourceKind(
        "projects/{project}/zones/{zone}/reservations/{name}",
        _patterns(
            "name project zone description specificReservationRequired params "
            "specificReservation.instanceProperties specificReservation.sourceInstanceTemplate"
        ),
        _reservation,
    ),
    "gcp:compute/futureReservation:FutureReservation": ResourceKind(
        "projects/{project}/zones/{zone}/futureReservations/{name}",
        _patterns("name namePrefix project zone description params"),
        _future_reservation,
    ),
    "gcp:compute/regionCommitment:RegionCommitment": ResourceKind(
        "projects/{project}/regions/{region}/commitments/{name}",
        _patterns(
            "name project region description plan resources type category licenseResource autoRenew params "
            "existingReservations"
        ),
        _commitment,
    ),
    "gcp:compute/resourcePolicy:ResourcePolicy": ResourceKind(
        "projects/{project}/regions/{region}/resourcePolicies/{name}",
        _patterns(
            "name project region description diskConsistencyGroupPolicy groupPlacementPolicy instanceSchedulePolicy "
            "snapshotSchedulePolicy workloadPolicy"
        ),
        _self_link,
    ),
    "gcp:monitoring/dashboard:Dashboard": ResourceKind(
        "projects/{project}/dashboards/{_id}", _patterns("project"), named=False
    ),
    "gcp:monitoring/alertPolicy:AlertPolicy": ResourceKind(
        "projects/{project}/alertPolicies/{_id}", _patterns("project"), _alert_policy, named=False
    ),
    "gcp:monitoring/notificationChannel:NotificationChannel": ResourceKind(
        "projects/{project}/notificationChannels/{_id}", _patterns("project"), _channel, named=False
    ),
    "gcp:kms/keyRing:KeyRing": ResourceKind(
        "projects/{project}/locations/{location}/keyRings/{name}", _patterns("name project location")
    ),
    "gcp:kms/cryptoKey:CryptoKey": ResourceKind(
        "{keyRing}/cryptoKeys/{name}",
        _patterns(
            "name keyRing purpose importOnly skipInitialVersionCreation cryptoKeyBackend destroyScheduledDuration"
        ),
    ),
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": ResourceKind(
        "{cryptoKeyId}/{role}/{member}", _patterns("cryptoKeyId role member condition"), _policy, named=False
    ),
    "gcp:artifactregistry/repository:Repository": ResourceKind(
        "projects/{project}/locations/{location}/repositories/{repositoryId}",
        _patterns("project location repositoryId format kmsKeyName mode"),
        _hub,
        named=False,
    ),
    "gcp:serviceaccount/account:Account": ResourceKind(
        "projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com",
        _patterns("accountId project createIgnoreAlreadyExists"),
        _account,
        named=False,
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": ResourceKind(
        "{serviceAccountId}/{role}/{member}",
        _patterns("serviceAccountId role member condition"),
        _policy,
        named=False,
    ),
    "gcp:projects/iAMMember:IAMMember": ResourceKind(
        "{project}/{role}/{member}", _patterns("project role member condition"), _policy, named=False
    ),
    "gcp:projects/service:Service": ResourceKind(
        "{project}/{service}", _patterns("project service"), named=False, defaults=(("disableOnDestroy", False),)
    ),
    "gcp:gkehub/fleet:Fleet": ResourceKind(
        "projects/{project}/locations/global/fleets/default", _patterns("project"), _hub, named=False
    ),
    "gcp:gkehub/membership:Membership": ResourceKind(
        "projects/{project}/locations/{location}/memberships/{membershipId}",
        _patterns("project location membershipId endpoint"),
        _hub,
        named=False,
        defaults=(("location", "global"),),
    ),
    "gcp:gkehub/feature:Feature": ResourceKind(
        "projects/{project}/locations/{location}/features/{name}", _patterns("project location name"), named=False
    ),
    CLUSTER: ResourceKind(
        "projects/{project}/locations/{location}/clusters/{name}",
        _patterns(
            "name project location description network subnetwork enableAutopilot ipAllocationPolicy clusterIpv4Cidr "
            "initialNodeCount enableKubernetesAlpha enableTpu defaultMaxPodsPerNode datapathProvider networkingMode "
            "nodeConfig confidentialNodes privateClusterConfig.enablePrivateNodes enableMultiNetworking "
            "privateClusterConfig.masterIpv4CidrBlock masterAuth.clientCertificateConfig removeDefaultNodePool"
        ),
        defaults=(("deletionProtection", True),),
    ),
    NODE_POOL: ResourceKind(
        "projects/{project}/locations/{location}/clusters/{cluster}/nodePools/{name}",
        _patterns(
            "name namePrefix project location cluster initialNodeCount maxPodsPerNode placementPolicy "
            "queuedProvisioning networkConfig.createPodRange networkConfig.podRange nodeConfig.guestAccelerators "
            "nodeConfig.serviceAccount nodeConfig.oauthScopes nodeConfig.spot nodeConfig.preemptible "
            "nodeConfig.localSsdCount nodeConfig.minCpuPlatform nodeConfig.reservationAffinity nodeConfig.flexStart "
            "nodeConfig.maxRunDuration nodeConfig.gvnic nodeConfig.localNvmeSsdBlockConfig nodeConfig.metadata "
            "nodeConfig.ephemeralStorageLocalSsdConfig nodeConfig.shieldedInstanceConfig nodeConfig.secondaryBootDisks"
        ),
    ),
}
"""Every type that is known; the provider refuses others by name."""

NOT_ON_AUTOPILOT: Final = (
    "addonsConfig.networkPolicyConfig",
    "clusterAutoscaling.enabled",
    "clusterAutoscaling.resourceLimits",
    "defaultMaxPodsPerNode",
    "enableIntranodeVisibility",
    "enableShieldedNodes",
    "networkPolicy",
    "nodeConfig",
    "nodePools",
    "nodeVersion",
    "removeDefaultNodePool",
    "workloadIdentityConfig",
)
"""What the real provider refuses beside enableAutopilot, or would replace the cluster for on every update."""


def find_kind(token: str) -> ResourceKind:
    """The kind of a type token. Raises PluginError for a type that the stand-in does not know."""
    if token not in KINDS:
        raise PluginError(
            f"{token}: the stand-in of the Google Cloud provider does not know this type; it knows {known()}"
        )
    return KINDS[token]


def known() -> str:
    """The types that are known, for a message."""
    return ", ".join(sorted(token.removeprefix("gcp:") for token in KINDS))


def completed(kind: ResourceKind, inputs: dict[str, Value], where: Mapping[str, str]) -> dict[str, Value]:
    """`inputs` with the project, region and zone of the provider, and the kind's defaults.

    Raises PluginError when an input of the id is given nowhere.
    """
    filled = dict(kind.defaults) | inputs
    for key in ("project", "region", "zone"):
        if f"{{{key}}}" in kind.id_template and not filled.get(key):
            if not where.get(key):
                raise PluginError(f"{key}: required field is not set; set it on the resource or on the provider")
            filled[key] = where[key]
    if "{location}" in kind.id_template and not filled.get("location"):
        if not (given := where.get("region") or where.get("zone")):
            raise PluginError("location: required field is not set; set it on the resource, or the provider's region")
        filled["location"] = given
    return filled


def autopilot_problems(inputs: Mapping[str, Value]) -> list[tuple[str, str]]:
    """What an Autopilot cluster does not take."""
    plain = reveal(dict(inputs))
    if plain.get("enableAutopilot") is not True:
        return []
    problems = []
    for text in NOT_ON_AUTOPILOT:
        value: Any = plain
        for part in text.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None and value is not False:
            problems.append(
                (text, f"{text}: conflicts with enableAutopilot; remove it, Autopilot manages nodes itself")
            )
    return problems


def check_version(inputs: Properties, running: str) -> None:
    """Raises PluginError when the rehearsal's Kubernetes is older than `minMasterVersion`."""
    wanted = str(inputs.get("minMasterVersion") or "")
    numbers = re.match(r"(\d+)\.(\d+)", wanted)
    here = re.match(r"v?(\d+)\.(\d+)", running)
    if numbers and here and tuple(map(int, numbers.groups())) > tuple(map(int, here.groups())):
        raise PluginError(f"minMasterVersion: {wanted} wanted, a rehearsal has Kubernetes {running}; lower it")


def cluster_outputs(inputs: Properties, control_plane: Properties) -> dict[str, Value]:
    """What Google adds to a cluster, from the control plane that the supervisor started."""
    project, location = inputs["project"], inputs["location"]
    dns = {**((inputs.get("controlPlaneEndpointsConfig") or {}).get("dnsEndpointConfig") or {})}
    dns["endpoint"] = control_plane.get("dnsEndpoint") or ""
    outputs: dict[str, Value] = {
        "endpoint": control_plane["endpoint"],
        "masterAuth": {
            "clientCertificate": "",
            "clientKey": Secret(""),
            "clientCertificateConfig": {"issueClientCertificate": False},
            "clusterCaCertificate": control_plane["caCertificate"],
        },
        "masterVersion": control_plane["version"],
        "selfLink": control_plane["selfLink"],
        "controlPlaneEndpointsConfig": {
            **(inputs.get("controlPlaneEndpointsConfig") or {}),
            "dnsEndpointConfig": dns,
        },
        "clusterIpv4Cidr": "10.0.0.0/14",
        "servicesIpv4Cidr": "34.118.224.0/20",
        "labelFingerprint": _number(str(sorted((inputs.get("resourceLabels") or {}).items()))),
        "effectiveLabels": dict(inputs.get("resourceLabels") or {}),
        "pulumiLabels": dict(inputs.get("resourceLabels") or {}),
    }
    if inputs.get("enableAutopilot"):
        outputs["workloadIdentityConfig"] = {"workloadPool": f"{project}.svc.id.goog"}
        outputs["nodeLocations"] = [f"{location}-{zone}" for zone in "abc"]
    return outputs


CLUSTER_ADDS: Final = frozenset(
    cluster_outputs(
        {"project": "", "location": "", "enableAutopilot": True},
        {"endpoint": "", "caCertificate": "", "version": "", "selfLink": ""},
    )
)
"""Outputs of a cluster that are not inputs too."""
POOL_ADDS: Final = frozenset({"instanceGroupUrls", "managedInstanceGroupUrls", "version", "operation"})
"""Outputs of a node pool that are not inputs too."""


def pool_outputs(inputs: Properties, version: str) -> dict[str, Value]:
    """What Google adds to a node pool."""
    return {
        "instanceGroupUrls": [],
        "managedInstanceGroupUrls": [],
        "version": inputs.get("version") or version,
        "operation": "",
    }


def previewed(token: str, inputs: dict[str, Value]) -> dict[str, Value]:
    """The outputs as far as they are known before the resource exists: what Google adds is not."""
    if token == CLUSTER:
        added = CLUSTER_ADDS
    elif token == NODE_POOL:
        added = POOL_ADDS
    else:
        known_inputs = dict.fromkeys(("ipCidrRange", "accountId", "project"), "") | reveal(inputs)
        added = frozenset(KINDS[token].derive(known_inputs, ""))
    return {**dict.fromkeys(sorted(added), UNKNOWN), **inputs}
