"""What has to be there in Google Cloud before a fleet: APIs that are enabled, and rights on keys.

Whether they are there is not known without the cloud.

Source: the pages named at each API; https://cloud.google.com/kubernetes-engine/docs/how-to/encrypting-secrets and
https://cloud.google.com/kubernetes-engine/docs/how-to/using-cmek (service agents).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kueue_admission.kernel.base import SpecModel
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.google_apis import UsesApis
from kueue_fleet.fleet_file.projects import clusters_in

KEY_ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
"""To encrypt and decrypt with a key of Cloud KMS."""


class RequiredApi(NamedTuple):
    """An API of Google Cloud that a project of the fleet has to have enabled."""

    name: str
    """Such as container.googleapis.com."""
    reason: str
    """What needs it."""


class KeyGrant(NamedTuple):
    """A right on a key of Cloud KMS that a service agent of Google has to have."""

    key: str
    """The key's full name."""
    agent: str
    """Address of the service agent, with PROJECT_NUMBER for the number of the cluster's project."""
    reason: str
    """What it encrypts."""


def required_apis(fleet: FleetSpec, project: str) -> list[RequiredApi]:
    """The APIs that `fleet` needs in a project of it, those that every project needs first."""
    clusters = clusters_in(fleet, project)
    own = _apis_of_parts(fleet) if project == fleet.project else {}
    some = {
        "gkehub.googleapis.com": (
            any(cluster.fleet_membership for cluster in clusters if not cluster.existing),
            "membership of clusters in the project's GKE fleet",
        ),
        "containerfilesystem.googleapis.com": (any(cluster.image_streaming for cluster in clusters), "image streaming"),
        "cloudkms.googleapis.com": (bool(key_grants(clusters)), "keys of Cloud KMS, in their own project too"),
        **{f"{api}.googleapis.com": (True, reason) for api, reason in own.items()},
        "binaryauthorization.googleapis.com": (
            any(cluster.binary_authorization for cluster in clusters),
            "attestations of images",
        ),
    }
    return [
        RequiredApi("container.googleapis.com", "clusters and node pools"),
        RequiredApi("compute.googleapis.com", "networks, nodes, reservations and commitments"),
        RequiredApi("iam.googleapis.com", "service accounts of nodes and teams"),
        RequiredApi("iamcredentials.googleapis.com", "Workload Identity: pods that act as service accounts"),
        RequiredApi("cloudresourcemanager.googleapis.com", "roles in the project"),
        RequiredApi("logging.googleapis.com", "logs of clusters and jobs"),
        RequiredApi("monitoring.googleapis.com", "metrics, dashboards and alerts"),
        RequiredApi(
            "artifactregistry.googleapis.com",
            "images of jobs and the controller; image streaming takes them from there",
        ),
        *(RequiredApi(name, reason) for name, (is_needed, reason) in some.items() if is_needed),
    ]


def _apis_of_parts(fleet: FleetSpec) -> dict[str, str]:
    """The APIs that parts of the file use, in the order of their classes."""
    sections = [part for value in fleet.__dict__.values() for part in (value if isinstance(value, tuple) else [value])]
    fields = [field for part in sections if isinstance(part, SpecModel) for field in part.__dict__.values()]
    kinds = [kind for kind in UsesApis.__subclasses__() if any(isinstance(part, kind) for part in sections + fields)]
    return {api: reason for kind in kinds for api, reason in kind.apis.items()}


def key_grants(clusters: Iterable[ClusterEntry]) -> list[KeyGrant]:
    """Who needs `KEY_ROLE` on which key: GKE's service agent for Secrets, Compute Engine's for disks."""
    grants = []
    for cluster in clusters:
        of_cluster = (
            (cluster.database_encryption_key, "container-engine-robot", "Secrets in etcd"),
            (cluster.disk_encryption_key, "compute-system", "boot disks"),
        )
        for key, agent, what in of_cluster:
            if key is not None:
                address = f"service-PROJECT_NUMBER@{agent}.iam.gserviceaccount.com"
                grants.append(KeyGrant(key, address, what))
    return list(dict.fromkeys(grants))
