"""Queues on two clusters that exist, and MultiKueue from one to the other: single components, without a fleet."""

import pulumi
import pulumi_kubernetes

import kueue_fleet as kf

TEAMS = {"vision": "research", "serving": "production"}
"""Namespaces, each with the ClusterQueue of its jobs."""
GPUS = {"research": 4, "production": 8}
"""Quotas of the ClusterQueues."""

config = pulumi.Config()


def inside(context: str) -> pulumi.ResourceOptions:
    """Options of what is in a cluster: its provider, from a context of the kubeconfig."""
    provider = pulumi_kubernetes.Provider(context, kubeconfig=config.require("kubeconfig"), context=context)
    return pulumi.ResourceOptions(provider=provider)


def queues(
    cluster: str,
    flavor: kf.ResourceFlavor,
    check: kf.AdmissionCheck | kf.ProvisioningRequestCheck,
    opts: pulumi.ResourceOptions,
) -> list[kf.LocalQueue]:
    """ClusterQueues that borrow from each other, and a LocalQueue in each team's namespace."""
    company = kf.Cohort(f"{cluster}-company", kf.CohortSpec(), object_name="company", opts=opts)
    checks = kf.AdmissionChecksStrategy(admission_checks=[kf.AdmissionCheckStrategyRule(check)])
    cluster_queues: dict[str, kf.ClusterQueue] = {}
    for name, gpus in GPUS.items():
        quota = kf.Quota(gpu=gpus, cpu=10 * gpus, memory=f"{40 * gpus}Gi", borrow=4)
        group = kf.ResourceGroup(
            covered_resources=["nvidia.com/gpu", "cpu", "memory"], flavors=[kf.FlavorQuotas(flavor, quota)]
        )
        spec = kf.ClusterQueueSpec(
            cohort_name=company,
            namespace_selector=kf.LabelSelector(),
            preemption=kf.ClusterQueuePreemption(reclaim_within_cohort="Any"),
            resource_groups=[group],
            admission_checks_strategy=checks,
        )
        cluster_queues[name] = kf.ClusterQueue(f"{cluster}-{name}", spec, object_name=name, opts=opts)
    namespaces = kf.Namespaces(f"{cluster}-teams", list(TEAMS), opts=opts).names
    return [
        kf.LocalQueue(
            f"{cluster}-{team}",
            namespace=namespaces[team],
            object_name="gpu",
            cluster_queue=cluster_queues[name],
            opts=opts,
        )
        for team, name in TEAMS.items()
    ]


# The worker: nodes of one pool, which Dynamic Workload Scheduler brings for each job.
std = inside("std")
nodes = kf.ResourceFlavorSpec(node_labels={"cloud.google.com/gke-nodepool": "h100-dws"})
h100 = kf.ResourceFlavor("std-h100", nodes, object_name="h100", opts=std)
dws = kf.ProvisioningRequestCheck("std-dws", kf.DwsCheck("dws"), opts=std)
ready = queues("std", h100, dws, std)
access = kf.WorkerAccess(
    "std-access",
    cluster_name="std",
    endpoint=config.require("workerEndpoint"),
    ca_certificate=config.require("workerCertificateAuthority"),
    credentials=kf.ServiceAccountToken("2026-11", rotate_by="2027-02-01"),
    namespaces=list(TEAMS),
    opts=pulumi.ResourceOptions.merge(std, pulumi.ResourceOptions(depends_on=ready)),
)

# The manager: the same queues, and their jobs run on the worker. It connects after the access, and so after the queues.
manager = inside("manager")
multikueue = kf.MultiKueue("multikueue", workers={"std": access}, opts=manager)
anywhere = kf.ResourceFlavor("manager-anywhere", kf.ResourceFlavorSpec(), object_name="anywhere", opts=manager)
entrances = queues("manager", anywhere, multikueue.checks["multikueue"], manager)

pulumi.export(
    "queues", [pulumi.Output.concat(team, "/", queue.name) for team, queue in zip(TEAMS, entrances, strict=True)]
)
