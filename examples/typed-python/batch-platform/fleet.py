"""One Standard cluster that four teams share: stacks/Pulumi.batch-platform.yaml in Python; the reasons are there."""

import kueue_fleet as kf

PAIRS = {"team-a": "team-a-b", "team-b": "team-a-b", "team-c": "team-c-d", "team-d": "team-c-d"}
"""The cohort of each team: the two teams of a cohort lend each other what they do not use."""
WITH_DWS = ("team-a", "team-b")
"""Teams that may ask Dynamic Workload Scheduler (DWS) for machines."""
POD_PRIORITIES = ["default-priority-nonpreempting", "compact-priority-preempting", "high-priority-preempting"]

GPU_LIMITS = {
    "nvidia-l4": 300,
    "nvidia-tesla-t4": 300,
    "nvidia-tesla-a100": 100,
    "nvidia-a100-80gb": 100,
    "nvidia-tesla-v100": 100,
    "nvidia-tesla-p100": 100,
    "nvidia-tesla-p4": 100,
}
PREEMPTING = kf.ClusterQueuePreemption(
    reclaim_within_cohort="LowerPriority",
    within_cluster_queue="LowerPriority",
    borrow_within_cohort=kf.BorrowWithinCohort(policy="LowerPriority"),
)


def amounts(cpu: int, gib: int, gpu: int, borrow: tuple[int, int, int] | None = None) -> list[kf.FleetResourceQuota]:
    """CPUs, GiB of memory and GPUs of one flavor, and how many of each a queue may borrow; None: without a limit."""
    cpus, gibs, gpus = borrow or (None, None, None)
    return [
        kf.FleetResourceQuota("cpu", cpu, borrowing_limit=cpus),
        kf.FleetResourceQuota("memory", f"{gib}Gi", borrowing_limit=None if gibs is None else f"{gibs}Gi"),
        kf.FleetResourceQuota("nvidia.com/gpu", gpu, borrowing_limit=gpus),
    ]


KINDS = {
    "hp": {
        "gpu-l4-reserved": amounts(2, 10, 2, borrow=(2, 10, 2)),
        "gpu-l4-ondemand": amounts(4, 20, 4, borrow=(4, 20, 4)),
    },
    "lp": {
        "gpu-l4-reserved": amounts(0, 0, 0, borrow=(4, 20, 4)),
        "gpu-l4-spot": amounts(12, 60, 12, borrow=(4, 20, 4)),
    },
    "compact": {"gpu-a100-compact-spot": amounts(20, 120, 2, borrow=(0, 0, 0))},
}
"""Quotas by the kind of queue: high priority, low priority, machines that stand close together."""


def queue(team: str, kind: str) -> kf.ClusterQueueEntry:
    """A team's queue of one kind."""
    return kf.Queue(
        f"cq-{team}-{kind}",
        KINDS[kind],
        cohort_name=PAIRS[team],
        queueing_strategy="StrictFIFO",
        namespace_selector=kf.LabelSelector(match_labels={"kubernetes.io/metadata.name": team}),
        preemption=kf.ClusterQueuePreemption() if kind == "lp" else PREEMPTING,
    )


def team(name: str) -> kf.TeamEntry:
    """A team: its account, what it may use, and its queues."""
    dws = [kf.TeamQueue("dws-local-queue", cluster_queue="dws-cluster-queue")] if name in WITH_DWS else []
    return kf.TeamEntry(
        name,
        service_account=f"{name}-ksa",
        google_service_account=kf.TeamGoogleServiceAccount(
            roles=["roles/monitoring.metricWriter", "roles/logging.logWriter", "roles/storage.objectUser"]
        ),
        members=[f"group:{name}@example.com"],
        allowed_priority_classes=POD_PRIORITIES,
        resource_quota={"count/jobs.batch": 500, "pods": 500},
        local_queues=[*(kf.TeamQueue(f"lq-{name}-{kind}", cluster_queue=f"cq-{name}-{kind}") for kind in KINDS), *dws],
    )


spec = kf.FleetSpec(
    "batch-platform",
    "my-gcp-project",
    deletion_protection=False,
    clusters=[
        kf.Standalone(
            "batch-dev",
            "us-central1",
            zones=["us-central1-a", "us-central1-b", "us-central1-c"],
            mode="Standard",
            release_channel="RAPID",
            system_pool=kf.SystemPool(machine_type="e2-standard-4", total_min_node_count=6, total_max_node_count=9),
            node_auto_provisioning=kf.NodeAutoProvisioning(
                resource_limits=[
                    kf.ResourceLimit("cpu", minimum=4, maximum=1000),
                    kf.ResourceLimit("memory", minimum=16, maximum=4000),
                    *(kf.ResourceLimit(gpu, maximum=most) for gpu, most in GPU_LIMITS.items()),
                ]
            ),
            rbac_security_group="gke-security-groups@example.com",
        )
    ],
    observability=kf.Observability(),
    kueue=kf.KueueInstallation(configuration=kf.KueueConfiguration(metrics={"enableClusterQueueResources": True})),
    reservations=[
        kf.ReservationEntry("machine-reservation", zone="us-central1-c", machine_type="g2-standard-24", count=4)
    ],
    node_pools=[
        kf.Pool(
            "reserved-np",
            "g2-standard-24",
            nodes=4,
            zones=["us-central1-c"],
            capacity=kf.Reserved("machine-reservation"),
            labels={"resource-type": "reservation"},
            taints=[kf.Taint(key="reserved", value="true", effect="NoSchedule")],
        ),
        kf.Pool(
            "ondemand-np",
            "g2-standard-24",
            max_nodes=24,
            labels={"resource-type": "ondemand"},
            taints=[kf.Taint(key="ondemand", value="true", effect="NoSchedule")],
        ),
        kf.Pool(
            "spot-np",
            "g2-standard-24",
            max_nodes=36,
            capacity=kf.Spot(),
            labels={"resource-type": "spot"},
            taints=[kf.Taint(key="spot", value="true", effect="NoSchedule")],
        ),
        kf.Pool("dws-a100-np", "a2-highgpu-2g", max_nodes=2, capacity=kf.FlexStart(queued_provisioning=True)),
        kf.Pool("dws-h100-np", "a3-highgpu-8g", max_nodes=2, capacity=kf.FlexStart(queued_provisioning=True)),
    ],
    flavors=[
        kf.Flavor("gpu-l4-reserved", node_pool="reserved-np"),
        kf.Flavor("gpu-l4-ondemand", node_pool="ondemand-np"),
        kf.Flavor("gpu-l4-spot", node_pool="spot-np"),
        kf.Flavor(
            "gpu-a100-compact-spot",
            gpu="nvidia-tesla-a100",
            spot=True,
            node_labels={"resource-type": "compact"},
            tolerations=[
                kf.Toleration(key="resource-type", operator="Equal", value="compact", effect="NoSchedule"),
                kf.Toleration(key="cloud.google.com/gke-spot", operator="Equal", value="true", effect="NoSchedule"),
                kf.Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"),
            ],
        ),
        kf.Flavor("dws-a100", node_pool="dws-a100-np"),
        kf.Flavor("dws-h100", node_pool="dws-h100-np"),
    ],
    admission_checks=[kf.DwsCheck("dws")],
    cohorts=[kf.CohortEntry("team-a-b"), kf.CohortEntry("team-c-d")],
    cluster_queues=[
        *(queue(team, kind) for team in PAIRS for kind in KINDS),
        kf.Queue(
            "dws-cluster-queue",
            {"dws-a100": amounts(40, 300, 4), "dws-h100": amounts(400, 2000, 16)},
            checks=["dws"],
        ),
    ],
    priority_classes=[
        kf.PriorityClassEntry(POD_PRIORITIES[0], value=10, global_default=True, preemption_policy="Never"),
        kf.PriorityClassEntry(POD_PRIORITIES[1], value=15),
        kf.PriorityClassEntry(POD_PRIORITIES[2], value=20),
    ],
    teams=[team(name) for name in PAIRS],
)
