"""Fields of Jobs and JobSets: misspelt ones, and those of another type; `fields.json` is made here too."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed
from tests.simulation.fleets import GPU, fleet_data

from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.jobs import check
from kueue_fleet.jobs.check.fields import check_job_fields, check_priorities
from kueue_fleet.jobs.queued_job import QueuedJob, queued_jobs

POD = "spec/template/spec"
MAIN = f"{POD}/containers/0"
SCRATCH = {"name": "scratch", "emptyDir": {}}
DATA = {"name": "scratch", "mountPath": "/data"}
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": 1}}, "env": [], "ports": []}
                ],
            }
        }
    },
}
JOBSET: dict[str, Any] = {
    **JOB,
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "spec": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": JOB["spec"]}}]},
}
FLEET = parse_fleet(fleet_data())


def said(changes: dict[str, Any], job: dict[str, Any] = JOB) -> list[str]:
    result = changed(job, changes)
    results = [str(item) for item in check_job_fields(FLEET, QueuedJob(Document("j.yaml:1", result), "", ()))]
    name = f"j.yaml:1: {result['kind']} team-a/{result['metadata']['name']}."
    assert all(text.startswith(name) for text in results)
    return [text.removeprefix(name) for text in results]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affine(requirement: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{POD}/affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}}
    }


def exits(codes: dict[str, Any], action: str = "Ignore") -> dict[str, Any]:
    return {"spec/podFailurePolicy": {"rules": [{"action": action, "onExitCodes": codes}]}}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a misspelt field": (
        {"spec/paralellism": 2},
        "spec.paralellism: is not a field that Kubernetes has here, and kubectl refuses it; did you mean parallelism?",
    ),
    "a misspelt field of a container": ({f"{MAIN}/comand": ["a"]}, "comand: is not a field that Kubernetes has here, "),
    "a number in env": (
        {f"{MAIN}/env/+": {"name": "A", "value": 1}},
        "env[0].value: is a whole number, and Kubernetes takes text; put it in quotes",
    ),
    "a text as command": (
        {f"{MAIN}/command": "sleep 1"},
        "command: is text, and Kubernetes takes a list; write a list",
    ),
    "a list as env": ({f"{MAIN}/env": {"A": "1"}}, "env: is a map, and Kubernetes takes a list; write a list"),
    "a text as number": ({"spec/backoffLimit": "3"}, "spec.backoffLimit: is text, and Kubernetes takes a whole number"),
    "true as number": (
        {"spec/backoffLimit": True},
        "spec.backoffLimit: is true or false, and Kubernetes takes a whole",
    ),
    "a number in an annotation": ({"metadata/annotations": {"a/b": 1}}, "metadata.annotations[a/b]: is a whole number"),
    "a mount without a path": (
        {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [{"name": "scratch"}]},
        "volumeMounts[0].mountPath: is missing; write it",
    ),
    "an alias without an address": ({f"{POD}/hostAliases": [{"hostnames": ["a"]}]}, "hostAliases[0].ip: is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    changes, expected = REFUSED[case]
    [text] = said(changes)
    assert expected in text


OF_JOBSETS: dict[str, tuple[dict[str, Any], str]] = {
    "what a Job has": ({"spec/backoffLimit": 1}, "spec.backoffLimit: is not a field that Kubernetes has here"),
    "what its Jobs have not": (
        {"spec/replicatedJobs/0/template/spec/template/spec/containers/0/img": "x"},
        "spec.replicatedJobs[0].template.spec.template.spec.containers[0].img: is not a field that Kubernetes has here",
    ),
}


@pytest.mark.parametrize("case", OF_JOBSETS)
def test_refused_of_jobsets(case: str) -> None:
    changes, expected = OF_JOBSETS[case]
    [text] = said(changes, JOBSET)
    assert text.startswith(expected)


@pytest.mark.parametrize(
    "image",
    [
        "busybox",
        "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
        "us-central1-docker.pkg.dev/p/r/i@sha256:" + "0" * 64,
        "localhost:5000/a__b/c-d",
        "HOST/a:1",
    ],
)
def test_images_that_can_be_pulled(image: str) -> None:
    assert said({f"{MAIN}/image": image}) == []


ALLOWED: list[dict[str, Any]] = [
    {f"{MAIN}/readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "successThreshold": 3}},
    {f"{MAIN}/livenessProbe": {"grpc": {"port": 1}, "terminationGracePeriodSeconds": 5}},
    {
        f"{POD}/initContainers": [
            {"name": "i", "image": "a", "restartPolicy": "Always", "startupProbe": {"exec": {"command": ["a"]}}}
        ]
    },
    {f"{MAIN}/lifecycle": {"preStop": {"sleep": {"seconds": 5}}}},
    {"spec/template/metadata": {"labels": {"a.b/C_d": "", "e": "F-g.h_1"}, "annotations": {"A.b/C": "any text"}}},
    {f"{MAIN}/env/+": {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a/b']"}}}},
    {f"{POD}/tolerations": [{"operator": "Exists"}, {"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}]},
    affine({"key": "a", "operator": "NotIn", "values": ["b"]}),
    affine({"key": "a", "operator": "Gt", "values": ["1"]}),
    exits({"operator": "NotIn", "values": [0, 1]}),
    {f"{POD}/volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]},
    {f"{POD}/terminationGracePeriodSeconds": 2**40},
    {f"{POD}/hostAliases": [{"ip": "10.0.0.7", "hostnames": ["db", "db.example.com"]}, {"ip": "fd00::7"}]},
    {f"{POD}/nodeName": "gke-a-1.b"},
    {f"{POD}/volumes": [{"name": "v", "emptyDir": {"sizeLimit": 0}}]},
    {f"{POD}/hostNetwork": True, f"{MAIN}/ports/+": {"containerPort": 80, "hostPort": 80}},
]


@pytest.mark.parametrize("changes", ALLOWED)
def test_what_kubernetes_takes_is_not_refused(changes: dict[str, Any]) -> None:
    assert said(changes) == []


def test_what_is_not_given_is_not_refused() -> None:
    assert (
        said({f"{MAIN}/env": None, f"{MAIN}/args": None, f"{MAIN}/ports": REMOVED, f"{POD}/nodeSelector": None}) == []
    )
    assert said({}, JOBSET) == []


def test_check_says_it_of_jobs_of_the_fleet() -> None:
    result = changed(JOB, {f"{MAIN}/resources": {"requests": {"cpu": 1, GPU: 1}, "limits": {GPU: 1}}})
    fleet = parse_fleet(fleet_data())
    assert check_manifests(fleet, [Document("j.yaml:1", copy.deepcopy(result))]).problems == []
    result = changed(result, {f"{MAIN}/comand": ["a"]})
    [problem] = check_manifests(fleet, [Document("j.yaml:1", result)]).problems
    assert problem.rule.code == "KF905"


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ({"priority": 7}, "has priority 7, and Kubernetes makes no pod with another than the 0 of pods without a"),
        ({"priority": 7, "priorityClassName": "urgent"}, "with another than the 9 of priority class urgent; remove it"),
        ({"priority": 7, "priorityClassName": "system-node-critical"}, "than the 2000001000 of priority class system-"),
        ({"preemptionPolicy": "PreemptLowerPriority", "priorityClassName": "urgent"}, "with another than the Never of"),
        ({"priority": 9, "preemptionPolicy": "Never", "priorityClassName": "urgent"}, ""),
        ({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}, ""),
        ({"priority": 2_000_000_000, "priorityClassName": "system-cluster-critical"}, ""),
    ],
)
def test_what_pods_say_beside_their_priority_class(pod: dict[str, Any], said: str) -> None:
    fleet = parse_fleet(
        fleet_data() | {"priorityClasses": [{"name": "urgent", "value": 9, "preemptionPolicy": "Never"}]}
    )
    result = changed(JOB, {f"{POD}/{field}": value for field, value in pod.items()})
    results = list(map(str, check_priorities(fleet, next(queued_jobs(fleet, [Document("j.yaml:1", result)])))))
    assert len(results) == bool(said)
    assert all(said in item for item in results)


def _reduced(schemas: dict[str, Any], name: str, found: dict[str, dict[str, str]]) -> str:
    """The type in the words of the table, with all that it leads to."""
    short = name.rpartition(".")[2]
    if short in ("Quantity", "IntOrString", "Time", "FieldsV1"):
        return {"Quantity": "quantity", "IntOrString": "intOrString", "Time": "string", "FieldsV1": "any"}[short]

    def typed(schema: dict[str, Any]) -> str:
        schema = schema | (schema["allOf"][0] if "allOf" in schema else {})
        if "$ref" in schema:
            return _reduced(schemas, schema["$ref"].rpartition("/")[2], found)
        if schema.get("type") == "array":
            return f"[]{typed(schema['items'])}"
        if schema.get("type") == "object":
            return "{}" + typed(schema["additionalProperties"]) if "additionalProperties" in schema else "any"
        return str(schema.get("type", "any"))

    if short not in found:
        found[short] = {}
        needed, properties = schemas[name].get("required", ()), schemas[name].get("properties", {})
        found[short] |= {f"{key}{'!' * (key in needed)}": typed(properties[key]) for key in sorted(properties)}
    return short


SOURCE = Path.home() / "go/pkg/mod/k8s.io/kubernetes@v1.36.3/api/openapi-spec/v3/apis__batch__v1_openapi.json"
FIELDS = Path(check.__file__).with_name("fields.json")
TABLE = json.loads(FIELDS.read_text())


CHECKED = "00aed73c0eb9485b"
"""The digest of the table when it was last made of Kubernetes' source, which the build of the engines brings."""


def test_the_table_is_that_of_kubernetes(request: pytest.FixtureRequest) -> None:
    """With `--snapshot-update` it is written anew: the types of Jobs, with those of JobSets as they are."""
    if SOURCE.exists():
        result: dict[str, dict[str, str]] = {}
        _reduced(json.loads(SOURCE.read_text())["components"]["schemas"], "io.k8s.api.batch.v1.JobSpec", result)
        own = {name: fields for name, fields in TABLE.items() if name.startswith("JobSet") or name == "JobTemplateSpec"}
        if request.config.getoption("update_snapshots"):
            lines = (
                f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted({**result, **own}.items())
            )
            FIELDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        assert {**result, **own} == TABLE
    digest = hashlib.sha256(json.dumps(TABLE, sort_keys=True).encode()).hexdigest()[:16]
    assert digest == CHECKED, "build the engines, run this test with --snapshot-update, and write the new digest here"


def test_each_type_of_the_table_is_in_it() -> None:
    plain = {"any", "string", "boolean", "integer", "number", "quantity", "intOrString"}
    types = {type_.replace("[]", "").replace("{}", "") for fields in TABLE.values() for type_ in fields.values()}
    assert types <= {*plain, *TABLE}


def test_an_image_that_no_node_can_pull_is_a_warning() -> None:
    changes = {f"{MAIN}/image": "busybox:", f"{MAIN}/resources": {"requests": {GPU: 1, "cpu": 1}, "limits": {GPU: 1}}}
    result = check_manifests(FLEET, [Document("j.yaml:1", changed(JOB, changes))])
    assert result.problems == []
    assert any("has an image 'busybox:', which is not the name of one" in text for text in map(str, result.warnings))


@pytest.mark.parametrize("volumes", ["x", ["x"], [{"name": "a", "persistentVolumeClaim": "x"}], [{"csi": []}]])
def test_volumes_of_another_form_end_no_check(volumes: object) -> None:
    assert check_manifests(FLEET, [Document("j.yaml:1", changed(JOB, {f"{POD}/volumes": volumes}))]).problems
