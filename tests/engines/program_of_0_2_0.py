"""A program written for 0.2.0: a fleet below a component, a cluster with a pool, and components alone on clusters.

`stack_of_0_2_0.json.gz` is the stack that 0.2.0 (commit 7d31062c) made of it, with the providers in `memory_provider`.
"""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as kubernetes

import kueue_fleet as kf

QUOTA = {"name": "nvidia.com/gpu", "nominalQuota": 8}
GROUPS = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "l4", "resources": [QUOTA]}]}]
MULTI_KUEUE = {"credentials": {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"}}
FLEET = {
    "name": "lab",
    "project": "lab-project",
    "clusters": [
        {"name": "manager-eu", "role": "manager", "region": "europe-west4"},
        {"name": "worker-us", "role": "worker", "region": "us-east4"},
    ],
    "flavors": [{"name": "l4", "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}],
    "cohorts": [{"name": "vision"}],
    "clusterQueues": [
        {"name": "gpu", "cohortName": "vision", "namespaceSelector": {}, "resourceGroups": GROUPS},
    ],
    "teams": [{"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}],
    "multiKueue": MULTI_KUEUE,
}


def program() -> None:
    platform = pulumi.ComponentResource("company:index:Platform", "platform")
    kf.Fleet("lab", FLEET, opts=pulumi.ResourceOptions(parent=platform))
    entry = kf.ClusterEntry(name="batch", role="standalone", region="us-central1", mode="Standard")
    cluster = kf.StandaloneCluster("batch", entry, project="lab-project", network="default", subnetwork="default")
    kf.NodePool(
        "l4",
        kf.NodePoolEntry(
            name="l4", machine_type="g2-standard-24", autoscaling=kf.PoolAutoscaling(total_max_node_count=4)
        ),
        cluster_spec=entry,
        project="lab-project",
        cluster=cluster.cluster.name,
        service_account=cluster.node_service_account,
    )
    kueue = kf.KueueInstall("batch/kueue", opts=pulumi.ResourceOptions(provider=cluster.provider))
    inside = pulumi.ResourceOptions(provider=cluster.provider, depends_on=[kueue])
    flavor = kf.ResourceFlavor(
        "batch/l4", {"nodeLabels": {"cloud.google.com/gke-nodepool": "l4"}}, object_name="l4", opts=inside
    )
    cohort = kf.Cohort("batch/vision", kf.CohortSpec(), object_name="vision", opts=inside)
    check = kf.ProvisioningRequestCheck(
        "batch/dws",
        kf.AdmissionCheckEntry(
            name="dws",
            provisioning_request=kf.ProvisioningRequestCheckArgs(provisioning_class_name="queued-provisioning.gke.io"),
        ),
        opts=inside,
    )
    rule = {"admissionChecks": [{"name": "dws"}]}
    queue = kf.ClusterQueue(
        "batch/gpu",
        {"cohortName": "vision", "namespaceSelector": {}, "resourceGroups": GROUPS, "admissionChecksStrategy": rule},
        object_name="gpu",
        opts=pulumi.ResourceOptions(provider=cluster.provider, depends_on=[kueue, flavor, cohort, check]),
    )
    spaces = kf.Namespaces("batch/vision", ["vision"], opts=inside)
    kf.LocalQueue(
        "batch/vision/gpu",
        kf.LocalQueueSpec(cluster_queue="gpu"),
        namespace="vision",
        object_name="gpu",
        cluster_queue=queue,
        opts=pulumi.ResourceOptions(provider=cluster.provider, depends_on=[kueue, spaces]),
    )
    manager = kubernetes.Provider("manager-two", kubeconfig="{}")
    kf.MultiKueue(
        "manager-two/multikueue",
        kf.FleetSpec.model_validate(
            {
                **FLEET,
                "name": "two",
                "clusters": [
                    {"name": "manager-two", "role": "manager", "region": "us-east4"},
                    {"name": "batch", "role": "worker", "region": "us-central1"},
                ],
                "flavors": [],
                "cohorts": [],
                "clusterQueues": [],
                "teams": [],
            }
        ),
        kubeconfigs={"batch": "{}"},
        opts=pulumi.ResourceOptions(provider=manager),
    )
