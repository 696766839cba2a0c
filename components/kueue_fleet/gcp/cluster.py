"""GKE clusters of a fleet: the cluster, the identity of its nodes, its kubeconfig and its Kubernetes provider.

In: one entry of the fleet's `clusters`, and the ids of a network. Out: outputs that the Kubernetes side is built on.
Not here: accelerator node pools, and anything inside the cluster (`kueue_fleet.kueue`).
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pulumi
import pulumi_kubernetes as kubernetes

from kueue_fleet.gcp.identity import NodeIdentity
from kueue_fleet.gcp.kubeconfig import cluster_kubeconfig
from kueue_fleet.gcp.resources import ContainerCluster, ContainerNodePool
from kueue_fleet.spec import ClusterEntry

CLOUD_PLATFORM_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""The one scope; what nodes may do is limited by their account's roles. Source:
https://cloud.google.com/kubernetes-engine/docs/how-to/access-scopes."""

SYSTEM_MACHINE_TYPE = "e2-standard-4"
"""Machine of a Standard cluster's system pool: Kueue and JobSet ask for 0.5 CPU and 512 MiB each."""

_CLUSTER_TIMEOUTS = pulumi.CustomTimeouts(create="60m", update="90m", delete="60m")
_POOL_TIMEOUTS = pulumi.CustomTimeouts(create="45m", update="90m", delete="45m")


class GkeCluster(pulumi.ComponentResource):
    """What the clusters of every role have in common; use the subclass of the role."""

    cluster_name: str
    """Name in Google Cloud, and of the kubeconfig's context."""
    identifier: str
    """`projects/P/locations/L/clusters/N`: known before the cluster exists and the same for its whole life."""
    cluster: ContainerCluster
    """The GKE cluster."""
    endpoint: pulumi.Output[str]
    """Address of the API server, without a scheme."""
    ca_certificate: pulumi.Output[str]
    """Certificate authority of the API server, base64 PEM."""
    kubeconfig: pulumi.Output[dict[str, Any]]
    """Kubeconfig with one context; it holds no credential, gke-gcloud-auth-plugin gets one."""
    provider: kubernetes.Provider
    """Provider for everything in this cluster and for nothing outside it."""
    workload_pool: str
    """Workload Identity pool of the project."""
    node_service_account: pulumi.Output[str]
    """Address of the nodes' service account."""

    pulumi_type: ClassVar[str]
    role: ClassVar[str]

    def __init__(
        self,
        name: str,
        spec: ClusterEntry,
        *,
        project: str,
        network: pulumi.Input[str],
        subnetwork: pulumi.Input[str],
        deletion_protection: bool = True,
        labels: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the cluster.

        `network` and `subnetwork` are self links or names; `deletion_protection` sets GKE's own protection and Pulumi's
        `protect`, and must be false in the state before the cluster can be destroyed; `labels` are Google Cloud labels.

        Raises:
            ValueError: the entry has another role than the class.
        """
        if spec.role != self.role:
            raise ValueError(
                f"cluster {spec.name}: {type(self).__name__} needs role {self.role}, but it has {spec.role}"
            )
        super().__init__(self.pulumi_type, name, None, opts)
        self.cluster_name = spec.name
        self.identifier = f"projects/{project}/locations/{spec.region}/clusters/{spec.name}"
        self.workload_pool = f"{project}.svc.id.goog"
        identity = NodeIdentity(
            f"{name}-nodes", project=project, cluster_name=spec.name, opts=pulumi.ResourceOptions(parent=self)
        )
        self.node_service_account = identity.email
        properties: dict[str, Any] = {
            "name": spec.name,
            "project": project,
            "location": spec.region,
            "network": network,
            "subnetwork": subnetwork,
            "ipAllocationPolicy": {},
            "releaseChannel": {"channel": spec.release_channel},
            "privateClusterConfig": {"enablePrivateNodes": True, "enablePrivateEndpoint": False},
            "resourceLabels": {"managed-by": "kueue-fleet", "kueue-fleet-role": spec.role, **(labels or {})},
            "deletionProtection": deletion_protection,
        }
        autopilot = spec.mode == "Autopilot"
        properties |= (
            _autopilot_properties(identity.email)
            if autopilot
            else _standard_properties(identity.email, self.workload_pool, spec.zones)
        )
        self.cluster = ContainerCluster(
            name,
            properties,
            pulumi.ResourceOptions(
                parent=self,
                protect=deletion_protection,
                depends_on=identity.roles,
                # The pool that this described is gone once the cluster stands.
                ignore_changes=None if autopilot else ["nodeConfig"],
                custom_timeouts=_CLUSTER_TIMEOUTS,
            ),
        )
        self.endpoint = self.cluster.output("endpoint")
        self.ca_certificate = self.cluster.output("masterAuth").apply(lambda auth: _ca_certificate(auth))
        self.kubeconfig = pulumi.Output.all(self.endpoint, self.ca_certificate).apply(
            lambda parts: cluster_kubeconfig(spec.name, *parts)
        )
        system_pool = [] if autopilot else [self._system_pool(name, project, spec, identity)]
        self.provider = kubernetes.Provider(
            name,
            kubeconfig=self.kubeconfig.apply(lambda kubeconfig: json.dumps(kubeconfig, sort_keys=True)),
            cluster_identifier=self.identifier,
            # A worker's kubeconfig is rotated in place: the manager never is without it.
            enable_secret_mutable=True,
            opts=pulumi.ResourceOptions(parent=self, depends_on=system_pool),
        )
        self.register_outputs(
            {"identifier": self.identifier, "endpoint": self.endpoint, "nodeServiceAccount": self.node_service_account}
        )

    def _system_pool(self, name: str, project: str, spec: ClusterEntry, identity: NodeIdentity) -> ContainerNodePool:
        return ContainerNodePool(
            f"{name}/system",
            {
                "name": "system",
                "project": project,
                "location": spec.region,
                "cluster": self.cluster.output("name"),
                **({"nodeLocations": list(spec.zones)} if spec.zones else {}),
                "autoscaling": {"totalMinNodeCount": 1, "totalMaxNodeCount": 3, "locationPolicy": "BALANCED"},
                "management": {"autoRepair": True, "autoUpgrade": True},
                "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0},
                "nodeConfig": {
                    "machineType": SYSTEM_MACHINE_TYPE,
                    "serviceAccount": identity.email,
                    "oauthScopes": [CLOUD_PLATFORM_SCOPE],
                    "workloadMetadataConfig": {"mode": "GKE_METADATA"},
                    "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
                },
            },
            pulumi.ResourceOptions(parent=self, deleted_with=self.cluster, custom_timeouts=_POOL_TIMEOUTS),
        )


class ManagerCluster(GkeCluster):
    """The cluster that jobs are submitted to; it runs Kueue and no jobs."""

    pulumi_type = "kueue-fleet:index:ManagerCluster"
    role = "manager"


class WorkerCluster(GkeCluster):
    """A cluster that runs the jobs a manager sends to it."""

    pulumi_type = "kueue-fleet:index:WorkerCluster"
    role = "worker"


class StandaloneCluster(GkeCluster):
    """A cluster that runs the jobs submitted to it, without MultiKueue."""

    pulumi_type = "kueue-fleet:index:StandaloneCluster"
    role = "standalone"


def _autopilot_properties(node_service_account: pulumi.Output[str]) -> dict[str, Any]:
    """What only an Autopilot cluster takes.

    No nodeConfig: the provider would replace the cluster on every update. No workloadIdentityConfig and no
    enableShieldedNodes: Autopilot has both, and the provider refuses them beside enableAutopilot.
    """
    return {
        "enableAutopilot": True,
        "clusterAutoscaling": {
            "autoProvisioningDefaults": {
                "serviceAccount": node_service_account,
                "oauthScopes": [CLOUD_PLATFORM_SCOPE],
            }
        },
    }


def _standard_properties(
    node_service_account: pulumi.Output[str], workload_pool: str, zones: tuple[str, ...]
) -> dict[str, Any]:
    """What only a Standard cluster takes; its default pool lives for minutes and needs an account all the same."""
    return {
        "removeDefaultNodePool": True,
        "initialNodeCount": 1,
        "nodeConfig": {"serviceAccount": node_service_account, "oauthScopes": [CLOUD_PLATFORM_SCOPE]},
        "workloadIdentityConfig": {"workloadPool": workload_pool},
        "enableShieldedNodes": True,
        "datapathProvider": "ADVANCED_DATAPATH",
        **({"nodeLocations": list(zones)} if zones else {}),
    }


def _ca_certificate(master_auth: Mapping[str, Any]) -> str:
    return str(master_auth["clusterCaCertificate"])
