"""Single components as a platform repository uses them: on a cluster that exists, without a fleet."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pulumi_kubernetes
import pytest

import kueue_fleet
import pulumi_mocks
from kueue_admission.api import (
    AdmissionCheckSpec,
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    PriorityClassFields,
    ResourceFlavorSpec,
    ResourceGroup,
    TopologyLevel,
    TopologySpec,
    WorkloadPriorityClassFields,
)
from kueue_fleet import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    JobSetInstall,
    KueueInstall,
    LocalQueue,
    ManagerCluster,
    Namespaces,
    NodePool,
    Pool,
    PriorityClass,
    ResourceFlavor,
    Team,
    Topology,
    WorkerCluster,
    WorkloadPriorityClass,
)
from kueue_fleet.fleet_file import ClusterEntry, JobSetInstallation, KueueInstallation, TeamEntry, TeamQueue

GPUS = ResourceGroup.model_validate(
    {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": "l4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}],
    }
)


def platform() -> None:
    provider = pulumi_kubernetes.Provider("existing", kubeconfig="{}", cluster_identifier="lab/existing")

    def on_it(*needed: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(provider=provider, depends_on=list(needed))

    jobset = JobSetInstall("jobset", JobSetInstallation(), opts=on_it())
    kueue = KueueInstall("kueue", KueueInstallation(), values={}, opts=on_it(jobset))
    PriorityClass("batch", PriorityClassFields(value=10), opts=on_it())
    WorkloadPriorityClass("urgent", WorkloadPriorityClassFields(value=10), opts=on_it(kueue))
    topology = Topology("racks", TopologySpec(levels=(TopologyLevel(node_label="rack"),)), opts=on_it(kueue))
    flavor = ResourceFlavor("l4", ResourceFlavorSpec(node_labels={"gpu": "l4"}), opts=on_it(kueue, topology))
    check = AdmissionCheck("residency", AdmissionCheckSpec(controller_name="lab.dev/residency"), opts=on_it(kueue))
    cohort = Cohort("research", CohortSpec(), opts=on_it(kueue))
    queue = ClusterQueue(
        "gpu",
        ClusterQueueSpec(cohort_name="research", resource_groups=(GPUS,)),
        opts=on_it(kueue, flavor, check, cohort),
    )
    namespaces = Namespaces("namespaces", ["shared"], opts=on_it())
    LocalQueue(
        "shared-gpu",
        LocalQueueSpec(cluster_queue="gpu"),
        namespace="shared",
        object_name="gpu",
        cluster_queue=queue,
        opts=on_it(kueue, namespaces),
    )
    team = TeamEntry(name="vision", local_queues=(TeamQueue(name="gpu", cluster_queue="gpu"),))
    Team("vision", team, cluster_queues={"gpu": queue}, opts=on_it(kueue))


def test_everything_reaches_the_provider_that_was_given() -> None:
    recording = pulumi_mocks.run(platform)
    provider = recording.one("pulumi:providers:kubernetes")
    objects = [r for r in recording if r.type.startswith("kubernetes:")]
    assert len(objects) == 16
    assert {r.provider for r in objects} == {provider.urn}


def test_a_component_that_waits_for_another_waits_for_all_of_it() -> None:
    recording = pulumi_mocks.run(platform)
    release = recording.one("Release", "kueue")
    assert recording.is_before(recording.one("Release", "jobset"), release)
    for kind in ("Topology", "ResourceFlavor", "AdmissionCheck", "Cohort", "ClusterQueue", "WorkloadPriorityClass"):
        assert recording.is_before(release, recording.one(kind, custom=True))
    queue = recording.one("ClusterQueue", custom=True)
    for kind in ("ResourceFlavor", "AdmissionCheck", "Cohort"):
        assert recording.is_before(recording.one(kind, custom=True), queue)
    locals_ = [r for r in recording.of_type("LocalQueue") if r.custom]
    assert len(locals_) == 2
    assert all(recording.is_before(queue, local) for local in locals_)
    assert recording.is_before(
        recording.one("Namespace", "namespaces/shared"), recording.one("LocalQueue", "shared-gpu", custom=True)
    )


def test_a_cluster_alone_serves_components_on_it() -> None:
    entry = ClusterEntry(name="manager", role="manager", region="us-east4")

    def program() -> None:
        cluster = ManagerCluster("manager", entry, project="lab-project", network="default", subnetwork="default")
        options = pulumi.ResourceOptions(provider=cluster.provider, deleted_with=cluster.cluster)
        KueueInstall("kueue", KueueInstallation(), values={}, opts=options)

    recording = pulumi_mocks.run(program)
    release = recording.one("Release")
    assert recording.is_before(recording.one("gcp:container/cluster:Cluster"), release)
    assert release.deleted_with == recording.one("gcp:container/cluster:Cluster").urn


def test_without_a_provider_the_ambient_one_is_used_as_pulumi_does() -> None:
    recording = pulumi_mocks.run(lambda: ResourceFlavor("l4", ResourceFlavorSpec(node_labels={"gpu": "l4"})))
    assert recording.one("ResourceFlavor", custom=True).provider == ""


def test_an_existing_cluster_in_a_zone_takes_a_pool_and_kueue() -> None:
    there = "projects/lab-project/locations/us-central1-a/clusters/old"
    entry = ClusterEntry("old", role="worker", region="us-central1", mode="Standard", existing=True)

    def program() -> None:
        old = WorkerCluster("old", entry, project="lab-project", existing_id=there)
        pool = NodePool(
            "l4",
            Pool("l4", "g2-standard-24", nodes=1),
            cluster_spec=entry,
            project="lab-project",
            cluster=old.name,
            service_account=old.node_service_account,
            location="us-central1-a",
            private_nodes=old.private_nodes,
        )
        KueueInstall("kueue", opts=pulumi.ResourceOptions(provider=old.provider, depends_on=[pool]))

    recording = pulumi_mocks.run(program)
    assert recording.read == (there,)
    assert recording.one("gcp:container/nodePool:NodePool").inputs["location"] == "us-central1-a"
    assert recording.one("kubernetes").inputs["clusterIdentifier"] == there
    assert recording.one("Release").provider == recording.one("kubernetes").urn


ROOT = Path(kueue_fleet.__file__).parent


@pytest.mark.parametrize(
    "module", [*ROOT.glob("gcp/*.py"), *ROOT.glob("kueue/*.py"), ROOT / "fleet.py"], ids=lambda path: path.stem
)
def test_component_modules_keep_their_annotations_for_pulumis_component_host(module: Path) -> None:
    """It reads the types of constructors at run time and fails on annotations that are text."""
    assert "from __future__ import annotations" not in module.read_text()
