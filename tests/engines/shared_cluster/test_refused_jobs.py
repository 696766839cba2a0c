"""Jobs that Kubernetes and JobSet refuse, by `check --jobs --kubeconfig`, which asks a real API server."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kueue_admission.simulate.documents import Document
from kueue_fleet.cli.check import _refused_by_server
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.jobs.check.fields import check_job_fields
from kueue_fleet.jobs.queued_job import QueuedJob
from one_cluster import Json, OneCluster
from small_fleets import standalone_data
from tests.fleet_file.builders import REMOVED, changed

POD = "spec/template/spec"
MAIN = f"{POD}/containers/0"
SCRATCH = {"name": "scratch", "emptyDir": {}}
DATA = {"name": "scratch", "mountPath": "/data"}
JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
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
JOBSET: Json = {
    **JOB,
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "spec": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": JOB["spec"]}}]},
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affine(requirement: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{POD}/affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}}
    }


def exits(codes: dict[str, Any], action: str = "Ignore") -> dict[str, Any]:
    return {"spec/podFailurePolicy": {"rules": [{"action": action, "onExitCodes": codes}]}}


REFUSED: dict[str, Json] = {
    "too little": {"spec/ttlSecondsAfterFinished": -1},
    "no port": {f"{MAIN}/ports/+": {"containerPort": 70000}},
    "a word in the wrong case": {f"{MAIN}/imagePullPolicy": "always"},
    "no such effect": {f"{POD}/tolerations": [{"key": "a", "effect": "Noschedule"}]},
    "a value with Exists": {f"{POD}/tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
    "a mount of no volume": {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [{**DATA, "name": "scrach"}]},
    "two mounts of one path": {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [DATA, DATA]},
    "a path out of the volume": {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [{**DATA, "subPath": "../x"}]},
    "one name for two volumes": {f"{POD}/volumes": [SCRATCH, SCRATCH]},
    "a volume of two kinds": {f"{POD}/volumes": [{**SCRATCH, "hostPath": {"path": "/"}}]},
    "a variable with =": {f"{MAIN}/env/+": {"name": "A=", "value": "1"}},
    "limits of indexes without any": {"spec/backoffLimitPerIndex": 1},
    "a policy for pods that are restarted": {
        f"{POD}/restartPolicy": "OnFailure",
        "spec/podFailurePolicy": {"rules": []},
    },
    "no image": {f"{MAIN}/image": REMOVED},
    "no image of what runs first": {f"{POD}/initContainers": [{"name": "i"}]},
    "a probe of nothing": {f"{MAIN}/readinessProbe": {"periodSeconds": 5}},
    "a probe of two kinds": {f"{MAIN}/startupProbe": {"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}},
    "a probe by no command": {f"{MAIN}/livenessProbe": {"exec": {}}},
    "a probe of port 0": {f"{MAIN}/livenessProbe": {"tcpSocket": {"port": 0}}},
    "a port in quotes": {f"{MAIN}/livenessProbe": {"httpGet": {"port": "8080"}}},
    "a scheme in small letters": {f"{MAIN}/livenessProbe": {"httpGet": {"port": 1, "scheme": "https"}}},
    "a negative period": {f"{MAIN}/livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": -1}},
    "two successes to be alive": {f"{MAIN}/livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}},
    "a grace period of readiness": {
        f"{MAIN}/readinessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 5}
    },
    "a probe of what runs first": {
        f"{POD}/initContainers": [{"name": "i", "image": "a", "readinessProbe": {"tcpSocket": {"port": 1}}}]
    },
    "a hook of nothing": {f"{MAIN}/lifecycle": {"preStop": {}}},
    "a label with a blank": {"spec/template/metadata": {"labels": {"owner": "John Doe"}}},
    "a long label": {"metadata/labels/a": "x" * 64},
    "a key with two slashes": {"spec/template/metadata": {"labels": {"a/b/c": "d"}}},
    "a key of an annotation with a blank": {"spec/template/metadata": {"annotations": {"a b": "c"}}},
    "too much in annotations": {"metadata/annotations": {"a": "b" * 300_000}},
    "a selector with a blank": {f"{POD}/nodeSelector": {"a": "b c"}},
    "a variable from nowhere": {f"{MAIN}/env/+": {"name": "A", "valueFrom": {}}},
    "a field that pods do not have": {
        f"{MAIN}/env/+": {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nam"}}}
    },
    "variables of nothing": {f"{MAIN}/envFrom": [{}]},
    "variables of a ConfigMap without a name": {f"{MAIN}/envFrom": [{"configMapRef": {}}]},
    "one name for two ports": {f"{MAIN}/ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
    "a long name of a port": {f"{MAIN}/ports": [{"containerPort": 1, "name": "HTTP"}]},
    "a toleration without a key": {f"{POD}/tolerations": [{"value": "a", "effect": "NoSchedule"}]},
    "seconds of another effect": {
        f"{POD}/tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]
    },
    "an affinity to nothing": {f"{POD}/affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}},
    "an affinity to no value": affine({"key": "a", "operator": "In"}),
    "an affinity to a value with Exists": affine({"key": "a", "operator": "Exists", "values": ["b"]}),
    "a host name with a capital": {f"{POD}/hostname": "Main"},
    "more than 32 bits": {"spec/backoffLimit": 2**40},
    "a rule for no failure": {"spec/podFailurePolicy": {"rules": [{"action": "Ignore"}]}},
    "a rule for success": exits({"operator": "In", "values": [0]}),
    "exit codes in disorder": exits({"operator": "In", "values": [2, 1]}),
    "exit codes of no container": exits({"operator": "In", "values": [1], "containerName": "mian"}),
    "indexes that fail without a limit": exits({"operator": "In", "values": [1]}, action="FailIndex"),
    "pods that are replaced early": {
        **exits({"operator": "In", "values": [1]}),
        "spec/podReplacementPolicy": "TerminatingOrFailed",
    },
    "a volume of a ConfigMap without a name": {f"{POD}/volumes": [{"name": "v", "configMap": {}}]},
    "a volume of a Secret by name": {f"{POD}/volumes": [{"name": "v", "secret": {"optional": True}}]},
    "a volume with a capital": {f"{POD}/volumes": [{"name": "V", "emptyDir": {}}]},
    "a mode in decimal": {f"{POD}/volumes": [{"name": "v", "configMap": {"name": "a", "defaultMode": 644}}]},
    "no name servers": {f"{POD}/dnsPolicy": "None"},
    "ephemeral containers": {f"{POD}/ephemeralContainers": [{"name": "e", "image": "a"}]},
    "an alias of no address": {f"{POD}/hostAliases": [{"ip": "10.0.0.256", "hostnames": ["a.b"]}]},
    "an alias with zeros": {f"{POD}/hostAliases": [{"ip": "010.0.0.1"}]},
    "an alias with an interface": {f"{POD}/hostAliases": [{"ip": "fe80::1%eth0"}]},
    "an alias with an underscore": {f"{POD}/hostAliases": [{"ip": "::1", "hostnames": ["a", "my_db"]}]},
    "a name server by name": {f"{POD}/dnsConfig": {"nameservers": ["dns.example.com"]}},
    "four name servers": {f"{POD}/dnsConfig": {"nameservers": ["1.1.1.1"] * 4}},
    "a node with a capital": {f"{POD}/nodeName": "Node_1"},
    "a class with a capital": {f"{POD}/priorityClassName": "High"},
    "an account with an underscore": {f"{POD}/serviceAccountName": "my_account"},
    "less than no scratch space": {f"{POD}/volumes": [{"name": "v", "emptyDir": {"sizeLimit": "-1Gi"}}]},
    "scratch space in another unit": {f"{POD}/volumes": [{"name": "v", "emptyDir": {"sizeLimit": "10GB"}}]},
    "another port of the host's network": {
        f"{POD}/hostNetwork": True,
        f"{MAIN}/ports/+": {"containerPort": 80, "hostPort": 8080},
    },
    "another name in the host's network": {f"{POD}/hostNetwork": True, f"{POD}/hostnameOverride": "a"},
    "processes of the host by other users": {f"{POD}/hostPID": True, f"{POD}/hostUsers": False},
    "spread twice": {
        f"{POD}/topologySpreadConstraints": 2
        * [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    },
    "a gate with a blank": {f"{POD}/schedulingGates": [{"name": "my gate"}]},
    "a negative group": {f"{POD}/securityContext": {"runAsGroup": -1}},
}

OF_JOBSETS: dict[str, Json] = {
    "a digit first": {"metadata/name": "1a"},
    "a dot": {"metadata/name": "a.b"},
    "a capital": {"spec/replicatedJobs/0/name": "W"},
    "no such job": {"spec/successPolicy": {"operator": "All", "targetReplicatedJobs": ["x"]}},
    "no such coordinator": {"spec/coordinator": {"replicatedJob": "x"}},
    "after itself": {"spec/replicatedJobs/0/dependsOn": [{"name": "w", "status": "Ready"}]},
    "no such operator": {"spec/successPolicy": {"operator": "Any of them"}},
    "no Service": {"spec/network": {"subdomain": "a_b"}},
}


TAKEN: dict[str, tuple[Json, Json]] = {
    "a colon in a path": (JOB, {f"{POD}/volumes": [SCRATCH], f"{MAIN}/volumeMounts": [{**DATA, "mountPath": "/a:b"}]}),
    "a volume of no kind": (JOB, {f"{POD}/volumes": [{"name": "a"}]}),
    "memory in small letters": (JOB, {f"{POD}/volumes": [{"name": "v", "emptyDir": {"medium": "memory"}}]}),
    "a selector": (JOB, {"spec/selector": {"matchLabels": {}}}),
    "a label of its Jobs": (JOBSET, {"spec/replicatedJobs/0/template/metadata": {"labels": {"a": "b c"}}}),
    "a label of its pods": (
        JOBSET,
        {"spec/replicatedJobs/0/template/spec/template/metadata": {"labels": {"a": "b c"}}},
    ),
}
"""What looks wrong, and is not: `check` may not refuse it."""


def said(cluster: OneCluster, job: Json, changes: Json) -> list[str]:
    """What the server says of the job with the changes."""
    data = standalone_data()
    data["clusters"][0]["name"] = cluster.name
    document = Document("j.yaml:1", changed(copy.deepcopy(job), changes))
    kubeconfig = cluster.folder / "kubeconfig"
    return list(map(str, _refused_by_server(parse_fleet(data), [document], kubeconfig)))


@pytest.mark.parametrize("case", REFUSED)
def test_the_api_server_refuses_the_job(kueue_cluster: OneCluster, case: str) -> None:
    [text] = said(kueue_cluster, JOB, REFUSED[case])
    assert text.startswith(f"j.yaml:1: Job default/j: {kueue_cluster.name} refuses it: ")


@pytest.mark.parametrize("case", OF_JOBSETS)
def test_the_api_server_refuses_the_jobset(kueue_cluster: OneCluster, case: str) -> None:
    [text] = said(kueue_cluster, JOBSET, OF_JOBSETS[case])
    assert text.startswith("j.yaml:1: JobSet default/")


@pytest.mark.parametrize("case", TAKEN)
def test_the_api_server_takes_it(kueue_cluster: OneCluster, case: str) -> None:
    assert said(kueue_cluster, *TAKEN[case]) == []


@pytest.mark.parametrize("job", [JOB, JOBSET], ids=["Job", "JobSet"])
def test_what_is_right_is_not_refused(kueue_cluster: OneCluster, job: Json) -> None:
    assert said(kueue_cluster, job, {}) == []


@pytest.mark.parametrize("case", [case for case, (job, _) in TAKEN.items() if job is JOB])
def test_nor_does_check(case: str) -> None:
    job = QueuedJob(Document("j.yaml:1", changed(copy.deepcopy(JOB), TAKEN[case][1])), "", ())
    assert list(check_job_fields(parse_fleet(standalone_data()), job)) == []
