"""Fields of Jobs and JobSets, and their values: what the API server and JobSet refuse."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from pkgutil import get_data
from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed
from tests.simulation.fleets import GPU, fleet_data

from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.jobs.check.fields import check_job_fields, check_priorities
from kueue_fleet.jobs.check.values import field_faults, object_faults
from kueue_fleet.jobs.queued_job import QueuedJob, queued_jobs
from kueue_fleet.simulation.job_findings import check_manifests

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
    made = changed(job, changes)
    found = [str(each) for each in check_job_fields(FLEET, QueuedJob(Document("j.yaml:1", made), "", ()))]
    name = f"j.yaml:1: {made['kind']} team-a/{made['metadata']['name']}."
    assert all(text.startswith(name) for text in found)
    return [text.removeprefix(name) for text in found]


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
    "no image": (
        {f"{MAIN}/image": REMOVED},
        "containers[0].image: is missing, and Kubernetes refuses the job; write it",
    ),
    "no image of what runs first": (
        {f"{POD}/initContainers": [{"name": "i"}]},
        "initContainers[0].image: is missing, and Kubernetes refuses the job",
    ),
    "a probe of nothing": (
        {f"{MAIN}/readinessProbe": {"periodSeconds": 5}},
        "readinessProbe: does not say what it is, and Kubernetes refuses it; write exec, httpGet, tcpSocket or grpc",
    ),
    "a probe of two kinds": (
        {f"{MAIN}/startupProbe": {"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}},
        "startupProbe: has exec and tcpSocket, and Kubernetes takes one of them; keep exec or tcpSocket",
    ),
    "a probe by no command": ({f"{MAIN}/livenessProbe": {"exec": {}}}, "livenessProbe.exec.command: is missing"),
    "a probe of port 0": ({f"{MAIN}/livenessProbe": {"tcpSocket": {"port": 0}}}, "tcpSocket.port: is 0; write 1 to"),
    "a port in quotes": (
        {f"{MAIN}/livenessProbe": {"httpGet": {"port": "8080"}}},
        "httpGet.port: '8080' is neither a number nor the name of a port; write the number, without quotes",
    ),
    "a scheme in small letters": (
        {f"{MAIN}/livenessProbe": {"httpGet": {"port": 1, "scheme": "https"}}},
        "httpGet.scheme: is 'https', which Kubernetes does not know; did you mean HTTPS?",
    ),
    "a negative period": (
        {f"{MAIN}/livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": -1}},
        "livenessProbe.periodSeconds: is -1; write 0 or more",
    ),
    "two successes to be alive": (
        {f"{MAIN}/livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}},
        "livenessProbe.successThreshold: is more than 1",
    ),
    "a grace period of readiness": (
        {f"{MAIN}/readinessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 5}},
        "readinessProbe.terminationGracePeriodSeconds: is not for readiness",
    ),
    "a probe of what runs first": (
        {f"{POD}/initContainers": [{"name": "i", "image": "a", "readinessProbe": {"tcpSocket": {"port": 1}}}]},
        "initContainers[0].readinessProbe: is for containers that stay, and Kubernetes refuses it of others",
    ),
    "a hook of nothing": ({f"{MAIN}/lifecycle": {"preStop": {}}}, "preStop: does not say what it is, and Kubernetes"),
    "a label with a blank": (
        {"spec/template/metadata": {"labels": {"owner": "John Doe"}}},
        "spec.template.metadata.labels[owner]: 'John Doe' has characters or a form that are not allowed, and",
    ),
    "a long label": ({"metadata/labels/a": "x" * 64}, "metadata.labels[a]: "),
    "a key with two slashes": (
        {"spec/template/metadata": {"labels": {"a/b/c": "d"}}},
        "spec.template.metadata.labels[a/b/c]: 'a/b/c' has a prefix that has characters",
    ),
    "a key of an annotation with a blank": (
        {"spec/template/metadata": {"annotations": {"a b": "c"}}},
        "spec.template.metadata.annotations[a b]: 'a b' has characters or a form that are not allowed",
    ),
    "too much in annotations": (
        {"metadata/annotations": {"a": "b" * 300_000}},
        "metadata.annotations: have 300,001 bytes",
    ),
    "a selector with a blank": ({f"{POD}/nodeSelector": {"a": "b c"}}, "spec.nodeSelector[a]: 'b c' has characters or"),
    "a variable from nowhere": (
        {f"{MAIN}/env/+": {"name": "A", "valueFrom": {}}},
        "valueFrom: does not say what it is",
    ),
    "a field that pods do not have": (
        {f"{MAIN}/env/+": {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nam"}}}},
        "fieldRef.fieldPath: there is no metadata.nam for variables; did you mean metadata.name?",
    ),
    "variables of nothing": (
        {f"{MAIN}/envFrom": [{}]},
        "envFrom[0]: does not say what it is, and Kubernetes refuses it",
    ),
    "variables of a ConfigMap without a name": (
        {f"{MAIN}/envFrom": [{"configMapRef": {}}]},
        "envFrom[0].configMapRef.name: is missing",
    ),
    "one name for two ports": (
        {f"{MAIN}/ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
        "ports[1].name: a is the name of another port",
    ),
    "a long name of a port": (
        {f"{MAIN}/ports": [{"containerPort": 1, "name": "HTTP"}]},
        "ports[0].name: 'HTTP' is not the name of a port",
    ),
    "a toleration without a key": (
        {f"{POD}/tolerations": [{"value": "a", "effect": "NoSchedule"}]},
        "tolerations[0]: has no key, and Kubernetes takes that with operator Exists only",
    ),
    "seconds of another effect": (
        {f"{POD}/tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]},
        "tolerations[0].tolerationSeconds: is for effect NoExecute",
    ),
    "an affinity to nothing": (
        {f"{POD}/affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}},
        "nodeSelectorTerms: is missing",
    ),
    "an affinity to no value": (affine({"key": "a", "operator": "In"}), "values: is empty, and In needs some"),
    "an affinity to a value with Exists": (
        affine({"key": "a", "operator": "Exists", "values": ["b"]}),
        "values: is not for operator Exists; remove it, or use In",
    ),
    "a host name with a capital": ({f"{POD}/hostname": "Main"}, "spec.hostname: 'Main' has characters or a form"),
    "more than 32 bits": (
        {"spec/backoffLimit": 2**40},
        "spec.backoffLimit: is 1099511627776; write 2147483647 or less",
    ),
    "a rule for no failure": (
        {"spec/podFailurePolicy": {"rules": [{"action": "Ignore"}]}},
        "podFailurePolicy.rules[0]: does not say what it is, and Kubernetes refuses it; write onExitCodes or onPodCond",
    ),
    "a rule for success": (
        exits({"operator": "In", "values": [0]}),
        "onExitCodes.values: has 0, which is not a failure",
    ),
    "exit codes in disorder": (exits({"operator": "In", "values": [2, 1]}), "onExitCodes.values: is not in order"),
    "exit codes of no container": (
        exits({"operator": "In", "values": [1], "containerName": "mian"}),
        "onExitCodes.containerName: there is no container mian; did you mean main?",
    ),
    "indexes that fail without a limit": (
        exits({"operator": "In", "values": [1]}, action="FailIndex"),
        "rules[0].action: is FailIndex, and Kubernetes takes that with backoffLimitPerIndex only",
    ),
    "pods that are replaced early": (
        {**exits({"operator": "In", "values": [1]}), "spec/podReplacementPolicy": "TerminatingOrFailed"},
        "spec.podReplacementPolicy: is not Failed",
    ),
    "a volume of a ConfigMap without a name": (
        {f"{POD}/volumes": [{"name": "v", "configMap": {}}]},
        "volumes[0].configMap.name: is missing",
    ),
    "a volume of a Secret by name": (
        {f"{POD}/volumes": [{"name": "v", "secret": {"optional": True}}]},
        "volumes[0].secret.secretName: is missing",
    ),
    "memory in small letters": (
        {f"{POD}/volumes": [{"name": "v", "emptyDir": {"medium": "memory"}}]},
        "emptyDir.medium: is 'memory', which Kubernetes does not know; did you mean Memory?",
    ),
    "a volume with a capital": (
        {f"{POD}/volumes": [{"name": "V", "emptyDir": {}}]},
        "volumes[0].name: 'V' has characters",
    ),
    "a mode in decimal": (
        {f"{POD}/volumes": [{"name": "v", "configMap": {"name": "a", "defaultMode": 644}}]},
        "configMap.defaultMode: is 644; write 511 or less",
    ),
    "no name servers": (
        {f"{POD}/dnsPolicy": "None"},
        "spec.dnsPolicy: is None, and Kubernetes then takes no pod without",
    ),
    "ephemeral containers": (
        {f"{POD}/ephemeralContainers": [{"name": "e", "image": "a"}]},
        "spec.ephemeralContainers: cannot be in a template",
    ),
    "an alias of no address": (
        {f"{POD}/hostAliases": [{"ip": "10.0.0.256", "hostnames": ["a.b"]}]},
        "hostAliases[0].ip: '10.0.0.256' is not an IP address, and Kubernetes refuses it; write one, as 10.0.0.7",
    ),
    "an alias with zeros": ({f"{POD}/hostAliases": [{"ip": "010.0.0.1"}]}, "hostAliases[0].ip: '010.0.0.1' is not an"),
    "an alias with an interface": (
        {f"{POD}/hostAliases": [{"ip": "fe80::1%eth0"}]},
        "hostAliases[0].ip: 'fe80::1%eth0'",
    ),
    "an alias without an address": ({f"{POD}/hostAliases": [{"hostnames": ["a"]}]}, "hostAliases[0].ip: is missing"),
    "an alias with an underscore": (
        {f"{POD}/hostAliases": [{"ip": "::1", "hostnames": ["a", "my_db"]}]},
        "hostAliases[0].hostnames[1]: 'my_db' has characters or a form",
    ),
    "a name server by name": (
        {f"{POD}/dnsConfig": {"nameservers": ["dns.example.com"]}},
        "dnsConfig.nameservers[0]: 'dns.example.com' is not an IP address",
    ),
    "four name servers": (
        {f"{POD}/dnsConfig": {"nameservers": ["1.1.1.1"] * 4}},
        "dnsConfig.nameservers: has 4, and Kubernetes takes 3",
    ),
    "a node with a capital": ({f"{POD}/nodeName": "Node_1"}, "spec.nodeName: 'Node_1' has characters or a form"),
    "a class with a capital": ({f"{POD}/priorityClassName": "High"}, "spec.priorityClassName: 'High' has characters"),
    "an account with an underscore": ({f"{POD}/serviceAccountName": "my_account"}, "serviceAccountName: 'my_account'"),
    "less than no scratch space": (
        {f"{POD}/volumes": [{"name": "v", "emptyDir": {"sizeLimit": "-1Gi"}}]},
        "volumes[0].emptyDir.sizeLimit: is -1Gi, and Kubernetes takes no negative one; write a positive amount",
    ),
    "scratch space in another unit": (
        {f"{POD}/volumes": [{"name": "v", "emptyDir": {"sizeLimit": "10GB"}}]},
        "volumes[0].emptyDir.sizeLimit: ",
    ),
    "another port of the host's network": (
        {f"{POD}/hostNetwork": True, f"{MAIN}/ports/+": {"containerPort": 80, "hostPort": 8080}},
        "containers[0].ports[0].hostPort: is not its containerPort, and with hostNetwork Kubernetes refuses that",
    ),
    "another name in the host's network": (
        {f"{POD}/hostNetwork": True, f"{POD}/hostnameOverride": "a"},
        "spec.hostnameOverride: is set beside hostNetwork, and Kubernetes refuses it; remove one of them",
    ),
    "processes of the host by other users": (
        {f"{POD}/hostPID": True, f"{POD}/hostUsers": False},
        "spec.hostPID: is set beside hostUsers: false, and Kubernetes refuses it",
    ),
    "spread twice": (
        {
            f"{POD}/topologySpreadConstraints": 2
            * [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
        },
        "topologySpreadConstraints[1]: is the second for zone with DoNotSchedule, and Kubernetes refuses it",
    ),
    "a gate with a blank": (
        {f"{POD}/schedulingGates": [{"name": "my gate"}]},
        "schedulingGates[0].name: 'my gate' has",
    ),
    "a negative group": ({f"{POD}/securityContext": {"runAsGroup": -1}}, "runAsGroup: is -1; write 0 or more"),
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
    "a label of its Jobs": (
        {"spec/replicatedJobs/0/template/metadata": {"labels": {"a": "b c"}}},
        "spec.replicatedJobs[0].template.metadata.labels[a]: 'b c' has characters or a form that are not allowed",
    ),
    "a label of its pods": (
        {"spec/replicatedJobs/0/template/spec/template/metadata": {"labels": {"a": "b c"}}},
        "spec.replicatedJobs[0].template.spec.template.metadata.labels[a]: 'b c' has characters or a form",
    ),
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


@pytest.mark.parametrize("value", [None, 1, "a", True, [], ["a"], {}, {"a": 1}, [None]])
def test_any_value_is_answered(value: Any) -> None:
    for type_, fields in TABLE.items():
        for field in fields:
            list(object_faults(type_, {field.removesuffix("!"): value}))
            list(field_faults(f"{type_}.{field.removesuffix('!')}", value))


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
    made = changed(JOB, {f"{POD}/{field}": value for field, value in pod.items()})
    found = list(map(str, check_priorities(fleet, next(queued_jobs(fleet, [Document("j.yaml:1", made)])))))
    assert len(found) == bool(said)
    assert all(said in each for each in found)


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
TABLE = json.loads(get_data("kueue_fleet.jobs.check", "fields.json") or b"")


CHECKED = "00aed73c0eb9485b"
"""The digest of the table when it was last compared with Kubernetes' source, which the build of the engines brings."""


def test_the_table_is_that_of_kubernetes() -> None:
    digest = hashlib.sha256(json.dumps(TABLE, sort_keys=True).encode()).hexdigest()[:16]
    assert digest == CHECKED, "build the engines, run this test, and write the new digest here"
    if not SOURCE.exists():
        return  # Where no engine was built the digest stands for the comparison.
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
