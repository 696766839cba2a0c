"""Fields of Jobs and JobSets, and their values: what the API server and JobSet refuse."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from pkgutil import get_data
from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed
from tests.simulation.fleets import GPU, fleet_data

from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.simulation.fleet import check_manifests
from kueue_fleet.simulation.job_fields import check_job_fields

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


def said(changes: dict[str, Any], job: dict[str, Any] = JOB) -> list[str]:
    made = changed(job, changes)
    found = [str(each) for each in check_job_fields([Document("j.yaml:1", made)])]
    name = f"j.yaml:1: {made['kind']} team-a/{made['metadata']['name']}."
    assert all(text.startswith(name) for text in found)
    return [text.removeprefix(name) for text in found]


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
    "too little": ({"spec/ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished: is -1; write 0 or more"),
    "no port": ({f"{MAIN}/ports/+": {"containerPort": 70000}}, "containerPort: is 70000; write 65535 or less"),
    "a word in the wrong case": (
        {f"{MAIN}/imagePullPolicy": "always"},
        "imagePullPolicy: is 'always', which Kubernetes does not know; did you mean Always?",
    ),
    "no such effect": (
        {f"{POD}/tolerations": [{"key": "a", "effect": "Noschedule"}]},
        "tolerations[0].effect: is 'Noschedule', which Kubernetes does not know; did you mean NoSchedule?",
    ),
    "a value with Exists": (
        {f"{POD}/tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        "tolerations[0]: has a value, and with operator Exists Kubernetes refuses it; remove the value",
    ),
    "an image with a blank": (
        {f"{MAIN}/image": " busybox"},
        "image: ' busybox' is not the name of an image, and no node can pull it; correct it",
    ),
    "a tag without a name": ({f"{MAIN}/image": "busybox:"}, "image: 'busybox:' is not the name of an image"),
    "a mount of no volume": (
        {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [{**DATA, "name": "scrach"}]},
        "volumeMounts[0].name: there is no volume scrach; did you mean scratch?",
    ),
    "two mounts of one path": (
        {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [DATA, DATA]},
        "volumeMounts[1].mountPath: /data is that of another mount; mount it elsewhere",
    ),
    "a colon in a path": (
        {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [{**DATA, "mountPath": "/a:b"}]},
        "volumeMounts[0].mountPath: /a:b has a colon, and Kubernetes refuses it; use another path",
    ),
    "a path out of the volume": (
        {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [{**DATA, "subPath": "../x"}]},
        "volumeMounts[0].subPath: ../x leads out of the volume; write a path below it",
    ),
    "a mount without a path": (
        {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [{"name": "scratch"}]},
        "volumeMounts[0].mountPath: is missing; write it",
    ),
    "one name for two volumes": (
        {f"{POD}/volumes": [SCRATCH, SCRATCH]},
        "volumes[1].name: scratch is the name of another volume; use another name",
    ),
    "a volume of two kinds": (
        {f"{POD}/volumes": [{**SCRATCH, "hostPath": {"path": "/"}}]},
        "volumes[0]: has emptyDir, hostPath, and Kubernetes refuses it; write one kind, such as emptyDir: {}",
    ),
    "a volume of no kind": ({f"{POD}/volumes": [{"name": "a"}]}, "volumes[0]: does not say what it is, and Kubernetes"),
    "a variable with =": (
        {f"{MAIN}/env/+": {"name": "A=", "value": "1"}},
        "env[0].name: 'A=' has an equals sign, and Kubernetes refuses it; use another name",
    ),
    "limits of indexes without any": (
        {"spec/backoffLimitPerIndex": 1},
        "spec.backoffLimitPerIndex: is for Jobs that are Indexed, and Kubernetes refuses it",
    ),
    "a policy for pods that are restarted": (
        {f"{POD}/restartPolicy": "OnFailure", "spec/podFailurePolicy": {"rules": []}},
        "spec.podFailurePolicy: is for pods that are not restarted, and Kubernetes refuses it",
    ),
    "a selector": (
        {"spec/selector": {"matchLabels": {}}},
        "spec.selector: is set, and Kubernetes makes it itself; remove",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    changes, expected = REFUSED[case]
    [text] = said(changes)
    assert expected in text


OF_JOBSETS: dict[str, tuple[dict[str, Any], str]] = {
    "a digit first": (
        {"metadata/name": "1a"},
        "spec.replicatedJobs[0].name: w makes Jobs 1a-w-0, a name that JobSet refu",
    ),
    "a dot": (
        {"metadata/name": "a.b"},
        "spec.replicatedJobs[0].name: w makes Jobs a.b-w-0, a name that JobSet refuses",
    ),
    "a capital": ({"spec/replicatedJobs/0/name": "W"}, "spec.replicatedJobs[0].name: W makes Jobs j-W-0, a name that"),
    "no such job": (
        {"spec/successPolicy": {"operator": "All", "targetReplicatedJobs": ["x"]}},
        "spec.successPolicy: there is no replicatedJob x; use one of w",
    ),
    "no such coordinator": (
        {"spec/coordinator": {"replicatedJob": "x"}},
        "spec.coordinator: there is no replicatedJob x",
    ),
    "after itself": (
        {"spec/replicatedJobs/0/dependsOn": [{"name": "w", "status": "Ready"}]},
        "spec.replicatedJobs[0].dependsOn: there is no replicatedJob w before this one, and JobSet refuses it",
    ),
    "no such operator": (
        {"spec/successPolicy": {"operator": "Any of them"}},
        "spec.successPolicy.operator: is 'Any of them', which Kubernetes does not know",
    ),
    "no Service": ({"spec/network": {"subdomain": "a_b"}}, "spec.network.subdomain: a_b is not the name of a Service"),
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


def test_what_is_not_given_is_not_refused() -> None:
    assert (
        said({f"{MAIN}/env": None, f"{MAIN}/args": None, f"{MAIN}/ports": REMOVED, f"{POD}/nodeSelector": None}) == []
    )
    assert said({}, JOBSET) == []


def test_check_says_it_of_jobs_of_the_fleet() -> None:
    made = changed(JOB, {f"{MAIN}/resources": {"requests": {"cpu": 1, GPU: 1}, "limits": {GPU: 1}}})
    fleet = parse_fleet(fleet_data())
    assert check_manifests(fleet, [Document("j.yaml:1", copy.deepcopy(made))]).problems == []
    made = changed(made, {f"{MAIN}/imagePullPolicy": "always"})
    [problem] = check_manifests(fleet, [Document("j.yaml:1", made)]).problems
    assert problem.rule.code == "KF905"


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
TABLE = json.loads(get_data("kueue_fleet.simulation", "job_fields.json") or b"")


@pytest.mark.skipif(not SOURCE.exists(), reason="the engines, which bring Kubernetes' source, are not built")
def test_the_table_is_that_of_kubernetes() -> None:
    found: dict[str, dict[str, str]] = {}
    _reduced(json.loads(SOURCE.read_text())["components"]["schemas"], "io.k8s.api.batch.v1.JobSpec", found)
    assert {name: fields for name, fields in TABLE.items() if not name.startswith("JobSet")} == {
        **found,
        "JobTemplateSpec": TABLE["JobTemplateSpec"],
    }


def test_each_type_of_the_table_is_in_it() -> None:
    plain = {"any", "string", "boolean", "integer", "number", "quantity", "intOrString"}
    types = {type_.replace("[]", "").replace("{}", "") for fields in TABLE.values() for type_ in fields.values()}
    assert types <= {*plain, *TABLE}
