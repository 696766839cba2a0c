"""Jobs of several roles, and what GKE takes of them as a ProvisioningRequest."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_admission.api import ProvisioningRequestConfigSpec
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.jobs.check.provisioning_request import refused_by_gke
from kueue_fleet.jobs.queued_job import pod_set_templates
from kueue_fleet.jobs.workload_file import WorkloadFile
from small_fleets import standalone_data

GPU = "nvidia.com/gpu"
SIMILAR = "IdenticalWorkloadSchedulingRequirements"


def role(name: str, gpus: int = 1, cpu: str = "1", replicas: int = 1, image: str = "i", **spec: Any) -> dict[str, Any]:
    resources: dict[str, dict[str, Any]] = {"requests": {"cpu": cpu}, "limits": {}}
    for kind in resources.values():
        kind.update({GPU: gpus} if gpus else {})
    pods = {"spec": {"containers": [{"name": "c", "image": image, "resources": resources}], **spec}}
    return {"name": name, "replicas": replicas, "template": {"spec": {"parallelism": 2, "template": pods}}}


def job_set(*roles: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "roles", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
        "spec": {"replicatedJobs": list(roles)},
    }


def config(policy: str | None = None, class_name: str = "queued-provisioning.gke.io") -> ProvisioningRequestConfigSpec:
    data = {"provisioningClassName": class_name, "managedResources": [GPU], "podSetMergePolicy": policy}
    return ProvisioningRequestConfigSpec.model_validate({key: value for key, value in data.items() if value})


def refused(policy: str | None, *roles: dict[str, Any]) -> bool:
    return bool(refused_by_gke(config(policy), pod_set_templates(job_set(*roles))))


@pytest.mark.parametrize(
    ("policy", "roles", "is_refused"),
    [
        (None, [role("a")], False),
        (None, [role("a"), role("b")], True),
        (None, [role("a"), role("b", gpus=0)], False),
        (None, [role("a"), role("b", replicas=0)], False),
        ("IdenticalPodTemplates", [role("a"), role("b")], False),
        ("IdenticalPodTemplates", [role("a"), role("b", cpu="1000m")], False),
        ("IdenticalPodTemplates", [role("a"), role("b", image="other")], True),
        (SIMILAR, [role("a"), role("b", image="other")], False),
        (SIMILAR, [role("a"), role("b", cpu="2")], True),
        (SIMILAR, [role("a"), role("b", nodeSelector={"x": "y"})], True),
        (SIMILAR, [role("a"), role("b", tolerations=[])], False),
        (SIMILAR, [role("a"), role("b", initContainers=[{"resources": {"requests": {"cpu": "1"}}}])], True),
        (SIMILAR, [role("a"), role("b"), role("c", cpu="2")], True),
    ],
)
def test_what_kueue_merges(policy: str | None, roles: list[dict[str, Any]], is_refused: bool) -> None:
    assert refused(policy, *roles) is is_refused


def test_other_classes_take_several_pod_sets() -> None:
    pods = pod_set_templates(job_set(role("a"), role("b")))
    assert not refused_by_gke(config(class_name="check-capacity.autoscaling.x-k8s.io"), pods)


def check(*roles: dict[str, Any], **provisioning: str) -> list[str]:
    data = standalone_data()
    data["admissionChecks"][0]["provisioningRequest"] |= {"managedResources": [GPU], **provisioning}
    data["clusterQueues"][0]["resourceGroups"][0]["coveredResources"] = [GPU, "cpu"]
    for flavor in data["clusterQueues"][0]["resourceGroups"][0]["flavors"]:
        flavor["resources"].append({"name": "cpu", "nominalQuota": 100})
    data["clusters"][0] |= {"mode": "Autopilot"}
    data["clusters"][0].pop("zones")
    return list(map(str, check_manifests(parse_fleet(data), [Document("roles.yaml:1", job_set(*roles))]).problems))


def test_check_says_which_policy_helps() -> None:
    (result,) = check(role("driver"), role("workers", image="other"))
    assert result.startswith(
        "roles.yaml:1: JobSet team-a/roles: GKE refuses a ProvisioningRequest of 2 PodSets (driver "
    )
    assert result.endswith(f"; set podSetMergePolicy: {SIMILAR} in the check's provisioningRequest")


DISK = {"cloud.google.com/gke-boot-disk": "pd-ssd"}


def test_check_says_what_keeps_roles_apart() -> None:
    (result,) = check(role("driver"), role("workers", cpu="2", nodeSelector=DISK), podSetMergePolicy=SIMILAR)
    assert "(different now: requests of containers, nodeSelector)" in result
    assert check(role("driver"), role("workers", image="other"), podSetMergePolicy=SIMILAR) == []


def test_check_reads_jobs_as_the_simulation_does() -> None:
    wrong = job_set(role("a"))
    wrong["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "cpu"
    documents = [Document("a.yaml:1", wrong)]
    fleet = parse_fleet(standalone_data())
    assert list(map(str, check_manifests(fleet, documents).problems)) == [
        "a.yaml:1: workload team-a/roles: there is no LocalQueue team-a/cpu; did you mean gpu?"
    ]
    [first, *_] = map(
        str, check_manifests(fleet, [Document("b.yaml:3", {"kind": "RayJob", "metadata": {"name": "r"}})]).problems
    )
    assert first == (
        "b.yaml:3: is a RayJob, which the fleet's Kueue does not manage; "
        "add ray.io/rayjob to kueue.configuration.integrations.frameworks"
    )


def test_a_refused_job_keeps_its_quota_in_the_simulation() -> None:
    data = standalone_data()
    data["clusters"][0] |= {"mode": "Autopilot"}
    data["clusters"][0].pop("zones")
    for name, policy in (("Admitted", SIMILAR), ("QuotaReserved", None)):
        if policy:
            data["admissionChecks"][0]["provisioningRequest"]["podSetMergePolicy"] = policy
        else:
            del data["admissionChecks"][0]["provisioningRequest"]["podSetMergePolicy"]
        roles = [role("driver"), role("workers")]
        for one in roles:
            for kind in one["template"]["spec"]["template"]["spec"]["containers"][0]["resources"].values():
                kind.pop("cpu", None)
        jobs = [Document("roles.yaml:1", job_set(*roles))]
        result = prepare_fleet(parse_fleet(data), WorkloadFile(), Delays(), manifests=jobs).run()
        (results,) = result.as_json()["workloads"]
        assert results["state"] == name
        assert ("single PodSet per request" in results["message"]) is (policy is None)


def test_a_volume_whose_claim_comes_with_the_pod() -> None:
    fleet = parse_fleet(standalone_data())
    for ephemeral, count in (({"volumeClaimTemplate": {}}, 1), (None, 0)):
        volume = {"name": "scratch", **({"ephemeral": ephemeral} if ephemeral else {"emptyDir": {}})}
        findings = check_manifests(fleet, [Document("j.yaml:1", job_set(role("workers", volumes=[volume])))])
        assert len([one for one in findings.warnings if "generic ephemeral volume scratch" in one.wrong]) == count
