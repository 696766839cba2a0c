"""A Pulumi program of somebody who checks types: mypy sees it with everything else, pyright in a test of its own."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes

from kueue_fleet import (
    ClusterEntry,
    ClusterQueue,
    ClusterQueueSpec,
    Cohort,
    FairSharing,
    FlavorQuotas,
    Fleet,
    KueueInstall,
    KueueInstallation,
    LabelSelector,
    LocalQueue,
    LocalQueueSpec,
    NetworkIds,
    NodePool,
    NodePoolEntry,
    PoolAutoscaling,
    Quantity,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    StandaloneCluster,
    TeamEntry,
    parse_fleet,
)

CPU = ResourceQuota(name="cpu", nominal_quota=4)
MEMORY = ResourceQuota(name="memory", nominal_quota="64Gi", borrowing_limit=None, lending_limit=Quantity("16Gi"))
TEAM = TeamEntry(name="vision", resource_quota={"count/jobs.batch": 500, "requests.storage": "10Ti"})


def read_again(quota: ResourceQuota) -> str:
    """An amount is a Quantity, whatever it was given as."""
    spare: Quantity = quota.nominal_quota - Quantity(1)
    limit: Quantity | None = quota.lending_limit
    return f"{spare} {limit}"


def queues() -> None:
    """Kueue and its objects on a cluster that exists."""
    kueue = KueueInstall("kueue")
    elsewhere = pulumi.ResourceOptions(provider=pulumi_kubernetes.Provider("other"))
    KueueInstall("other", KueueInstallation(namespace="batch"), deletion_protection=False, opts=elsewhere)
    after = pulumi.ResourceOptions(depends_on=[kueue])
    ResourceFlavor("l4", {"nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}, opts=after)
    Cohort("research", {"fairSharing": {"weight": 2}}, opts=after)
    group = ResourceGroup(
        covered_resources=("cpu", "memory"), flavors=(FlavorQuotas(name="l4", resources=(CPU, MEMORY)),)
    )
    typed = ClusterQueueSpec(
        resource_groups=(group,),
        cohort_name="research",
        namespace_selector=LabelSelector(),
        fair_sharing=FairSharing(weight="500m"),
    )
    queue = ClusterQueue("typed", typed, opts=after)
    LocalQueue("main", LocalQueueSpec(cluster_queue="typed"), namespace="vision", cluster_queue=queue)
    quotas = [{"name": "cpu", "nominalQuota": 8}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "l4", "resources": quotas}]}]
    ClusterQueue("plain", {"namespaceSelector": {}, "resourceGroups": groups}, opts=after)


def nodes() -> None:
    """A node pool on a cluster that exists."""
    NodePool(
        "l4",
        NodePoolEntry(name="l4", machine_type="g2-standard-24", autoscaling=PoolAutoscaling(total_max_node_count=8)),
        cluster_spec=ClusterEntry(name="batch", role="standalone", region="us-central1", mode="Standard"),
        project="my-project",
        cluster="batch",
        service_account="gke-nodes@my-project.iam.gserviceaccount.com",
    )


def fleet() -> None:
    """The program of docs/programs.md."""
    spec = parse_fleet(pulumi.Config("kueue-fleet").require_object("fleet"))
    result = Fleet(spec.name, spec)
    pulumi.export("kubeconfig", result.kubeconfig)


def elsewhere(project: pulumi.Output[str], network: pulumi.Output[str], image: pulumi.Output[str]) -> None:
    """A fleet, and one cluster more, with what another stack made: its outputs are inputs here."""
    spec = parse_fleet(pulumi.Config("kueue-fleet").require_object("fleet"))
    subnets = {cluster.region: pulumi.Output.concat(network, "-", cluster.region) for cluster in spec.clusters}
    vpc = NetworkIds(network, subnets, pod_range_names=dict.fromkeys(subnets, "pods"))
    Fleet("elsewhere", spec, project=project, network=vpc, controller_image=image)
    entry = ClusterEntry(name="batch", role="standalone", region="us-central1", mode="Standard")
    StandaloneCluster("batch", entry, project=project, network=network, subnetwork=subnets[spec.clusters[0].region])
