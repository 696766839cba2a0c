"""A fleet that waits for GPUs in three regions at once: stacks/Pulumi.dws-multikueue.yaml in Python."""

import kueue_fleet as kf

AMOUNTS = kf.Quota(gpu=4, cpu=64, memory="256Gi", ephemeral_storage="400Gi")
QUEUES = [kf.TeamQueue("gpu", cluster_queue="dws")]
WAITS = "Batch pods wait for room rather than evict others."
WORKERS = {f"worker-{region}": region for region in ("europe-west4", "us-east4", "asia-southeast1")}

spec = kf.FleetSpec(
    "dws-multikueue",
    "my-gcp-project",
    deletion_protection=False,
    clusters=[
        kf.Manager("manager-europe-west4", "europe-west4"),
        *(kf.Worker(name, region) for name, region in WORKERS.items()),
    ],
    flavors=[kf.Flavor("t4-dws", gpu="nvidia-tesla-t4")],
    admission_checks=[kf.DwsCheck("dws")],
    cluster_queues=[kf.Queue("dws", {"t4-dws": AMOUNTS}, checks=["dws"])],
    multi_kueue=kf.MultiKueueArgs(kf.ServiceAccountToken("2026-11", rotate_by="2027-02-01"), workers=[*WORKERS]),
    workload_priority_classes=[
        kf.WorkloadPriorityClassEntry("urgent", value=1000, description="A deadline depends on it."),
        kf.WorkloadPriorityClassEntry("normal", value=100, description="What a job gets that says nothing better."),
    ],
    priority_classes=[
        kf.PriorityClassEntry("batch", value=1000, preemption_policy="Never", description=WAITS),
    ],
    teams=[
        kf.TeamEntry("team-vision", local_queues=QUEUES),
        kf.TeamEntry("team-language", local_queues=QUEUES, allowed_priority_classes=["urgent", "normal", "batch"]),
    ],
    observability=kf.Observability(),
)
