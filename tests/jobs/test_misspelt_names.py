"""Names in jobs that are nearly right, of which Kueue and Kubernetes say nothing, or something that does not help."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.fleets import GPU, dispatched_data, fleet_data

from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests


def job(**changes: Any) -> dict[str, Any]:
    amounts = changes.pop("amounts", {"cpu": "1", GPU: "1"})
    pods = {"metadata": {"annotations": changes.pop("of_pods", {})}}
    container = {"name": "c", "image": "busybox", "resources": {"requests": amounts, "limits": amounts}}
    labels = {"kueue.x-k8s.io/queue-name": "gpu", **changes.pop("labels", {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "team-a", "labels": labels, **changes},
        "spec": {"template": {**pods, "spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def said(data: dict[str, Any], **changes: Any) -> list[str]:
    findings = check_manifests(parse_fleet(data), [Document("j.yaml:1", job(**changes))])
    return [str(one) for one in (*findings.problems, *findings.warnings)]


JOB = "j.yaml:1: Job team-a/j: "


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        (
            {"annotations": {"kueue.x-k8s.io/priority-class": "urgent"}},
            "has kueue.x-k8s.io/priority-class as an annotation, which Kueue reads as label only; move it to "
            "metadata.labels",
        ),
        (
            {"labels": {"kueue.x-k8s.io/job-min-parallelism": "2"}},
            "has kueue.x-k8s.io/job-min-parallelism as a label, which Kueue reads as annotation only; move it to "
            "metadata.annotations",
        ),
        (
            {"labels": {"kueue.x-k8s.io/priority-clas": "urgent"}},
            "has the label kueue.x-k8s.io/priority-clas, which Kueue does not know; did you mean "
            "kueue.x-k8s.io/priority-class?",
        ),
        (
            {"of_pods": {"kueue.x-k8s.io/podset-required-topolgy": "rack"}},
            "pod set main has the annotation kueue.x-k8s.io/podset-required-topolgy, which Kueue does not know; did "
            "you mean kueue.x-k8s.io/podset-required-topology?",
        ),
        (
            {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}},
            "has the annotation kueue.x-k8s.io/podset-required-topology on what makes pods, and Kueue reads it on the "
            "pods' own template; move it to metadata.annotations of the pod template",
        ),
        (
            {"of_pods": {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "3600"}},
            "pod set main has the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds, which Kueue reads on the "
            "job only; move it to its metadata.annotations",
        ),
        (
            {"annotations": {"kueue.x-k8s.io/elastic-job": "yes"}},
            "has the annotation kueue.x-k8s.io/elastic-job with the value yes, which Kueue takes for false; write "
            '"true"',
        ),
    ],
)
def test_keys_that_kueue_ignores_are_warned_of(changes: dict[str, Any], warning: str) -> None:
    assert said(fleet_data(), **changes) == [JOB + warning]


def test_other_keys_are_nobodys_business() -> None:
    keys = {"example.com/priority-clas": "x", "kueue.x-k8s.io/retriable-in-group": "false"}
    assert said(fleet_data(), annotations=keys) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gpu", "pod set main requests gpu, which is no resource of Kubernetes and has no domain; did you mean"),
        (
            "nvidi\u0430.com/gpu",
            'pod set main requests "nvidi\u0430.com/gpu", which has a prefix that has the character U+0430',
        ),
    ],
)
def test_resources_are_named_as_they_are_meant(name: str, text: str) -> None:
    result = said(fleet_data(), amounts={"cpu": "1", name: "1"})
    assert [one for one in result if one.startswith(JOB + text) and f"did you mean {GPU}" in one], result


def test_a_word_that_is_no_region_is_named() -> None:
    data = dispatched_data()
    data["controller"]["regionGroups"] = {"eu": ["europe-west4"]}
    result = said(data, labels={"kueue-fleet.dev/regions": "europe_us-east4"})
    assert result == [
        f"{JOB}has the label kueue-fleet.dev/regions with europe, which is no region of the fleet and no group of "
        "them; did you mean europe-west4? (_ joins several)"
    ]
    assert said(data, labels={"kueue-fleet.dev/regions": "eu_us-east4"}) == []


def test_a_kind_of_gpu_that_gke_does_not_have() -> None:
    data = job()
    data["spec"]["template"]["spec"]["nodeSelector"] = {"cloud.google.com/gke-accelerator": "nvidia-a100-40gb"}
    findings = check_manifests(parse_fleet(fleet_data()), [Document("j.yaml:1", data)])
    [warning] = [str(one) for one in findings.warnings if "gke-accelerator" in str(one)]
    assert "selects cloud.google.com/gke-accelerator: nvidia-a100-40gb is not a known accelerator of GKE" in warning


def test_a_cron_job_makes_a_job_for_the_queue() -> None:
    data = job()
    template = {"metadata": {"labels": data["metadata"].pop("labels")}, "spec": data["spec"]}
    cron = {**data, "kind": "CronJob", "spec": {"schedule": "0 3 * * *", "jobTemplate": template}}
    assert check_manifests(parse_fleet(fleet_data()), [Document("j.yaml:1", cron)]).problems == []
    template["metadata"]["labels"] = {}
    [refused] = check_manifests(parse_fleet(fleet_data()), [Document("j.yaml:1", cron)]).problems
    assert refused.wrong == "is a CronJob"
