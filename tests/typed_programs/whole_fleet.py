"""A fleet as somebody writes it first: lists, and durations, days and amounts as text."""

import kueue_fleet as kf

TEAMS = {"vision": "research", "language": "research", "serving": "prod", "adhoc": "adhoc"}


def group(gpus: dict[str, int], borrow: int) -> kf.FleetResourceGroup:
    """Quotas of GPUs, and what goes with them."""
    return kf.FleetResourceGroup(
        covered_resources=["nvidia.com/gpu", "cpu", "memory", "ephemeral-storage"],
        flavors=[
            kf.FleetFlavorQuotas(
                name=flavor,
                resources=[
                    kf.FleetResourceQuota(name="nvidia.com/gpu", nominal_quota=n, borrowing_limit=borrow),
                    kf.FleetResourceQuota(name="cpu", nominal_quota=n * 9),
                    kf.FleetResourceQuota(name="memory", nominal_quota=f"{n * 40}Gi"),
                    kf.FleetResourceQuota(name="ephemeral-storage", nominal_quota=f"{n * 20}Gi"),
                ],
            )
            for flavor, n in gpus.items()
        ],
    )


def spec(project: str) -> kf.FleetSpec:
    """The fleet in a project."""
    return kf.FleetSpec(
        name="pyuser",
        project=project,
        deletion_protection=False,
        clusters=[
            kf.ClusterEntry(name="manager", role="manager", region="europe-west4"),
            kf.ClusterEntry(name="std", role="worker", region="us-central1", mode="Standard"),
            kf.ClusterEntry(name="auto", role="worker", region="europe-west4", mode="Autopilot"),
        ],
        node_pools=[
            kf.NodePoolEntry(
                name="h100-reserved",
                clusters=["std"],
                zones=["us-central1-a"],
                machine_type="a3-highgpu-8g",
                node_count=1,
                capacity=kf.Reserved(reservation="h100-block"),
            ),
            kf.NodePoolEntry(
                name="l4-spot",
                clusters=["std"],
                machine_type="g2-standard-24",
                autoscaling=kf.PoolAutoscaling(total_max_node_count=4),
                capacity=kf.Spot(),
            ),
            kf.NodePoolEntry(
                name="h100-dws",
                clusters=["std"],
                zones=["us-central1-a"],
                machine_type="a3-highgpu-8g",
                autoscaling=kf.PoolAutoscaling(total_max_node_count=2),
                capacity=kf.FlexStart(max_run_duration="72h"),
            ),
        ],
        flavors=[
            kf.FlavorEntry(name="h100-reserved", node_pool="h100-reserved"),
            kf.FlavorEntry(name="l4-spot", node_pool="l4-spot"),
            kf.FlavorEntry(name="h100-dws", node_pool="h100-dws"),
            kf.FlavorEntry(
                name="l4-auto", clusters=["auto"], node_labels={"cloud.google.com/gke-accelerator": "nvidia-l4"}
            ),
        ],
        cohorts=[kf.CohortEntry(name="company")],
        admission_checks=[
            kf.AdmissionCheckEntry(
                name="dws",
                clusters=["std"],
                provisioning_request=kf.ProvisioningRequestCheckArgs(
                    provisioning_class_name="queued-provisioning.gke.io",
                    managed_resources=["nvidia.com/gpu"],
                ),
            )
        ],
        cluster_queues=[
            kf.ClusterQueueEntry(
                name="prod",
                cohort_name="company",
                namespace_selector=kf.LabelSelector(),
                resource_groups=[group({"h100-reserved": 4, "l4-spot": 2, "l4-auto": 4}, borrow=4)],
            ),
            kf.ClusterQueueEntry(
                name="research",
                cohort_name="company",
                namespace_selector=kf.LabelSelector(),
                resource_groups=[group({"h100-reserved": 4, "l4-spot": 4, "h100-dws": 16, "l4-auto": 4}, borrow=2)],
                admission_checks_strategy=kf.AdmissionChecksStrategy(
                    admission_checks=[kf.AdmissionCheckStrategyRule(name="dws", on_flavors=["h100-dws"])]
                ),
            ),
            kf.ClusterQueueEntry(
                name="adhoc",
                cohort_name="company",
                namespace_selector=kf.LabelSelector(),
                resource_groups=[group({"l4-spot": 2, "l4-auto": 0}, borrow=2)],
            ),
        ],
        workload_priority_classes=[
            kf.WorkloadPriorityClassEntry(name="urgent", value=1000),
            kf.WorkloadPriorityClassEntry(name="normal", value=100),
        ],
        priority_classes=[kf.PriorityClassEntry(name="batch", value=1000, preemption_policy="Never")],
        teams=[
            kf.TeamEntry(name=team, local_queues=[kf.TeamQueue(name="gpu", cluster_queue=queue)])
            for team, queue in TEAMS.items()
        ],
        multi_kueue=kf.MultiKueueArgs(credentials=kf.ServiceAccountToken(rotation="2026-11", rotate_by="2027-02-01")),
    )
