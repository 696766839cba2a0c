"""How a real API server keeps teams apart: jobs, pods, Services and rights of members, refused one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from job_definitions import ensure_job_kinds, place_of
from kueue_admission.api.job_kinds import DISPATCHED_FRAMEWORKS, KINDS
from kueue_fleet.cli import app
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.objects import render_cluster
from one_cluster import KUEUE, Json, OneCluster, Refused, condition, kueue_object, wait_until
from tests.fleet_file.builders import changed, fleet_data, standalone_data

MEMBER, TEAM, OTHER = "ann@example.com", "vision", "speech"
CONTROLLER = "system:serviceaccount:jobset-system:jobset-controller"
QUEUE, PRIORITY, REGIONS = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class", "kueue-fleet.dev/regions"
JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets"
JOBS = f"/apis/batch/v1/namespaces/{TEAM}/jobs"
PODS = f"/api/v1/namespaces/{TEAM}/pods"
PLACES = {
    "Namespace": "/api/v1/namespaces",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "LimitRange": "/api/v1/namespaces/{}/limitranges",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "LocalQueue": KUEUE + "/namespaces/{}/localqueues",
}
"""Where objects of a kind are created."""


def the_fleet() -> FleetSpec:
    """Two teams, every kind of job."""
    return parse_fleet(fleet_of_teams())


def fleet_of_teams() -> Json:
    queues = [{"name": "main", "clusterQueue": "on-demand"}]
    return changed(
        standalone_data(),
        {
            "kueue/configuration": {"integrations": {"frameworks": list(KINDS)}},
            "clusterQueues/0/name": "on-demand",
            "localQueues": [],
            "priorityClasses": [{"name": "team-low", "value": 1}, {"name": "team-high", "value": 2}],
            "teams": [
                {
                    "name": TEAM,
                    "members": [f"user:{MEMBER}"],
                    "allowedRegions": ["us-central1"],
                    "localQueues": queues,
                },
                {
                    "name": OTHER,
                    "members": ["user:bob@example.com"],
                    "localQueues": queues,
                    "limitRange": {"default": {"cpu": 2, "memory": "4Gi"}, "defaultRequest": {"cpu": "500m"}},
                },
            ],
        },
    )


@pytest.fixture(scope="module")
def cluster(kueue_cluster: OneCluster) -> OneCluster:
    """The cluster with what the fleet renders for its teams."""
    fleet = the_fleet()
    ensure_job_kinds(kueue_cluster)
    for manifest in render_cluster(fleet, fleet.cluster_names[0]):
        if manifest["kind"] in PLACES:
            kueue_cluster.ensure(PLACES[manifest["kind"]].format(manifest["metadata"].get("namespace")), manifest)
    # Before the policy counts, members do not have their rights yet, and are refused for that.
    wait_until(lambda: "is missing; use main" in refusal(kueue_cluster, JOBS, job_of("batch/job", queue="")))
    quota = f"/api/v1/namespaces/{TEAM}/resourcequotas/kueue-fleet"
    wait_until(lambda: kueue_cluster.get(quota).get("status", {}).get("hard"))
    return kueue_cluster


def pod(priority_class: str = "") -> Json:
    """A pod with a GPU, or the template of one."""
    chosen = {"priorityClassName": priority_class} if priority_class else {}
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 1}}
    containers = [{"name": "main", "image": "train:1", "resources": resources}]
    return {"spec": {"restartPolicy": "Never", "containers": containers, **chosen}}


def _ray(template: Json) -> Json:
    return {"headGroupSpec": {"template": pod()}, "workerGroupSpecs": [{"groupName": "w", "template": template}]}


def _served(template: Json) -> Json:
    labels = {"app": "a"}
    spec = {**template["spec"], "restartPolicy": "Always"}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}


SPECS: Mapping[str, Callable[[Json], Json]] = {
    "batch/job": lambda template: {"suspend": True, "template": template},
    "jobset.x-k8s.io/jobset": lambda template: {
        "suspend": True,
        "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": {"template": template}}}],
    },
    "kubeflow.org/mpijob": lambda template: {
        "runPolicy": {"suspend": True},
        "mpiReplicaSpecs": {"Launcher": {"template": pod()}, "Worker": {"template": template}},
    },
    "kubeflow.org/paddlejob": lambda template: {"paddleReplicaSpecs": {"Worker": {"template": template}}},
    "kubeflow.org/pytorchjob": lambda template: {"pytorchReplicaSpecs": {"Master": {"template": template}}},
    "kubeflow.org/tfjob": lambda template: {"tfReplicaSpecs": {"Chief": {"template": template}}},
    "kubeflow.org/xgboostjob": lambda template: {"xgbReplicaSpecs": {"Master": {"template": template}}},
    "kubeflow.org/jaxjob": lambda template: {"jaxReplicaSpecs": {"Worker": {"template": template}}},
    "ray.io/rayjob": lambda template: {
        "suspend": True,
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": _ray(template),
    },
    "ray.io/raycluster": lambda template: {"suspend": True, **_ray(template)},
    "ray.io/rayservice": lambda template: {"rayClusterConfig": _ray(template)},
    "workload.codeflare.dev/appwrapper": lambda template: {
        "components": [{"template": {"kind": "Job", "spec": {"template": template}}}]
    },
    "sparkoperator.k8s.io/sparkapplication": lambda template: {
        "driver": {},
        "executor": {"priorityClassName": template["spec"].get("priorityClassName", "")},
    },
    "leaderworkerset.x-k8s.io/leaderworkerset": lambda template: {"leaderWorkerTemplate": {"workerTemplate": template}},
    "pod": lambda template: dict(template["spec"]),
    "deployment": _served,
    "statefulset": _served,
    "trainer.kubeflow.org/trainjob": lambda _: {"suspend": True, "runtimeRef": {"name": "torch"}},
}
"""The spec of a job of each kind, with a pod template in it."""


def job_of(framework: str, *, queue: str = "main", priority_class: str = "", **labels: str) -> Json:
    """A job of the framework; `labels` have the names of labels above."""
    kind = KINDS[framework]
    own = {QUEUE: queue} if queue else {}
    return {
        "apiVersion": f"{kind.group}/{KINDS[framework].version}" if kind.group else "v1",
        "kind": kind.kind,
        "metadata": {"name": "it", "labels": {**own, **{globals()[name]: value for name, value in labels.items()}}},
        "spec": SPECS[framework](pod(priority_class)),
    }


def refusal(cluster: OneCluster, place: str, body: Json, user: str = MEMBER) -> str:
    """Why the API server would not take the object from the user; empty if it would."""
    try:
        cluster.request("POST", f"{place}?dryRun=All", body, user=user)
    except Refused as error:
        return str(error)
    return ""


@pytest.mark.parametrize("framework", KINDS)
def test_a_job_keeps_to_what_its_team_may_use(cluster: OneCluster, framework: str) -> None:
    place = place_of(framework, TEAM)
    for body in (job_of(framework), job_of(framework, priority_class="team-low", REGIONS="us-central1")):
        # What Kueue's webhooks say of such small jobs is not looked at.
        result = refusal(cluster, place, body)
        assert not result or "admission webhook" in result
    queue, priority = f"metadata.labels[{QUEUE}]", f"metadata.labels[{PRIORITY}]"
    regions = f"metadata.labels[{REGIONS}]"
    refused = {
        f"{queue}: is missing; use main": job_of(framework, queue=""),
        f"{queue}: trial is not a LocalQueue of team vision; use main": job_of(framework, queue="trial"),
        f"{priority}: team-high is not a priority class for team vision; use team-low": job_of(
            framework, PRIORITY="team-high"
        ),
        f"{regions}: us-central1_us-east4 is not within the regions of team vision; use us-central1": job_of(
            framework, REGIONS="us-central1_us-east4"
        ),
    }
    if KINDS[framework].pod_specs or KINDS[framework].other_classes:
        text = "priorityClassName of its pods: {} is not a priority class for team vision; use team-low"
        for name in ("team-high", "system-node-critical"):
            refused[text.format(name)] = job_of(framework, priority_class=name)
    for says, body in refused.items():
        assert says in refusal(cluster, place, body)


BROKEN: Mapping[str, Json] = {
    "hostNetwork, hostPID or hostIPC of its pods": {"hostNetwork": True},
    "volumes of its pods": {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]},
    "securityContext.privileged of its containers": {"securityContext": {"privileged": True}},
    "securityContext.capabilities.add of its containers": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}},
    "ports of its containers": {"ports": [{"containerPort": 80, "hostPort": 80}]},
    "securityContext.sysctls of its pods": {"securityContext": {"sysctls": [{"name": "kernel.sem", "value": "1"}]}},
    "securityContext.seccompProfile of its pods": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "securityContext.appArmorProfile of its pods": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
    "securityContext.seLinuxOptions of its pods": {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}},
    "host of probes and lifecycle handlers of its containers": {
        "livenessProbe": {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}
    },
}
"""What the standard baseline refuses: the path in our words, and what the spec of a pod, or its container, has."""


def broken_pod(path: str, fields: Json) -> Json:
    """A pod that has these fields."""
    result = pod()
    if "containers" in path:
        result["spec"]["containers"][0] |= fields
    else:
        result["spec"] |= fields
    return result


@pytest.mark.parametrize("path", BROKEN)
def test_a_job_whose_pods_the_namespace_refuses_is_refused_itself(cluster: OneCluster, path: str) -> None:
    result = broken_pod(path, BROKEN[path])
    body = job_of("batch/job")
    body["spec"]["template"] = result
    assert f"{path}: is against Pod Security Standard baseline of the namespace; " in refusal(cluster, JOBS, body)
    alone = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}, **result}
    assert "violates PodSecurity" in refusal(cluster, PODS, alone, "")


@pytest.mark.parametrize("framework", [name for name, kind in KINDS.items() if kind.pod_specs and name != "pod"])
def test_annotations_of_every_kind_of_job_are_looked_at(cluster: OneCluster, framework: str) -> None:
    body = job_of(framework)
    unconfined = {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}
    template = {**pod(), "metadata": {"annotations": unconfined}}
    body["spec"] = SPECS[framework](template)
    if framework == "sparkoperator.k8s.io/sparkapplication":
        body["spec"] = {"driver": {"template": template}, "executor": {}}
    if framework in ("deployment", "statefulset"):
        body["spec"]["template"]["metadata"]["annotations"] = unconfined
    says = "annotations container.apparmor.security.beta.kubernetes.io/ of its pods: is against "
    assert says in refusal(cluster, place_of(framework, TEAM), body)


@pytest.mark.parametrize("framework", [name for name, kind in KINDS.items() if kind.pod_specs and name != "pod"])
def test_pods_of_every_kind_of_job_are_looked_at(cluster: OneCluster, framework: str) -> None:
    body = job_of(framework)
    result = broken_pod("", BROKEN["hostNetwork, hostPID or hostIPC of its pods"])
    body["spec"] = SPECS[framework](result)
    if framework == "sparkoperator.k8s.io/sparkapplication":
        body["spec"] = {"driver": {"template": result}, "executor": {}}
    assert "hostNetwork, hostPID or hostIPC of its pods: is against " in refusal(
        cluster, place_of(framework, TEAM), body
    )


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"nodeName": "node-1"}, "nodeName of its pods: takes a node past the flavors of its queue; use nodeSelector"),
        (
            {"nodeSelector": {"cloud.google.com/gke-queued": "true"}},
            "nodeSelector or tolerations of its pods: are for nodes of DWS, and queue main asks for none; remove them",
        ),
        (
            {"tolerations": [{"key": "cloud.google.com/gke-queued", "operator": "Exists"}]},
            "nodeSelector or tolerations of its pods: are for nodes of DWS, and queue main asks for none; remove them",
        ),
    ],
)
def test_a_job_takes_no_nodes_that_are_not_of_its_queue(cluster: OneCluster, fields: Json, says: str) -> None:
    for framework in ("batch/job", "jobset.x-k8s.io/jobset"):
        template = pod()
        template["spec"] |= fields
        body = {**job_of(framework), "spec": SPECS[framework](template)}
        assert says in refusal(cluster, place_of(framework, TEAM), body)


def test_a_job_of_a_member_has_no_finalizers(cluster: OneCluster) -> None:
    says = "metadata.finalizers: Kueue could not stop the job once it is deleted; remove it"
    for framework in ("batch/job", "jobset.x-k8s.io/jobset", "pod"):
        body = job_of(framework)
        body["metadata"]["finalizers"] = ["example.com/keep"]
        assert says in refusal(cluster, place_of(framework, TEAM), body)


@pytest.mark.parametrize("how", [{"propagationPolicy": "Orphan"}, {"orphanDependents": True}])
def test_a_member_leaves_no_pods_of_a_deleted_job(cluster: OneCluster, how: Json) -> None:
    """On Kueue 0.19.2 the pods run on, and their quota is free for others."""
    body = job_of("batch/job")
    body["metadata"]["name"] = "left"
    cluster.ensure(JOBS, body)
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    with pytest.raises(Refused, match="propagationPolicy: Orphan would leave pods that run without quota; delete the"):
        cluster.request("DELETE", f"{JOBS}/left", {**options, **how}, user=MEMBER)
    for policy in ("Background", "Foreground"):
        deletion = {**options, "propagationPolicy": policy}
        cluster.request("DELETE", f"{JOBS}/left?dryRun=All", {**deletion, "dryRun": ["All"]}, user=MEMBER)
    cluster.delete(f"{JOBS}/left")


def test_a_refusal_has_no_characters_that_a_terminal_obeys(cluster: OneCluster) -> None:
    body = job_of("jobset.x-k8s.io/jobset", priority_class="\x1b]0;owned\x07\x1b[2J")
    result = refusal(cluster, JOBSETS, body)
    assert "a name with other characters than those of names is not a priority class for team vision" in result
    assert "\x1b" not in result


def test_a_member_takes_no_addresses_of_others(cluster: OneCluster) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "it"}, "spec": {"ports": [{"port": 80}]}}
    place = f"/api/v1/namespaces/{TEAM}/services"
    assert not refusal(cluster, place, service)
    service["spec"] = {**service["spec"], "externalIPs": ["192.0.2.1"]}  # type: ignore[dict-item]
    assert "spec.externalIPs: traffic to any address could be taken with it; remove it" in refusal(
        cluster, place, service
    )


@pytest.fixture(scope="module")
def manager(cluster: OneCluster) -> str:
    """A namespace with the policy that a manager has for a team; its Kueue knows of no dispatched queue."""
    fleet = parse_fleet(
        changed(fleet_data(), {"kueue/configuration": {"integrations": {"frameworks": sorted(DISPATCHED_FRAMEWORKS)}}})
    )
    for item in render_cluster(fleet, "manager"):
        name = item["metadata"]["name"]
        if name in ("team-vision", "kueue-fleet-team-team-vision") and item["kind"] in PLACES:
            cluster.ensure(PLACES[item["kind"]].format(item["metadata"].get("namespace")), item)
    wait_until(lambda: refusal(cluster, place_of("batch/job", "team-vision"), job_of("batch/job", queue=""), ""))
    return "team-vision"


@pytest.mark.parametrize("framework", sorted(DISPATCHED_FRAMEWORKS))
def test_a_job_that_kueue_rejected_later_is_refused_while_it_starts(
    cluster: OneCluster, manager: str, framework: str
) -> None:
    """Kueue sets managedBy once it has read its queues; it never does so here."""
    place, body = place_of(framework, manager), job_of(framework)
    says = "spec.managedBy: is not kueue.x-k8s.io/multikueue, which Kueue sets once it has started"
    result = refusal(cluster, place, body, "")
    assert (says in result) == bool(KINDS[framework].managed_by), result
    spec = body["spec"].setdefault("runPolicy", {}) if framework.startswith("kubeflow.org/") else body["spec"]
    spec["managedBy"] = "kueue.x-k8s.io/multikueue"
    assert says not in refusal(cluster, place, body, "")


def test_an_account_that_workers_do_not_have_is_refused(cluster: OneCluster, manager: str) -> None:
    body = job_of("batch/job")
    body["spec"] |= {"managedBy": "kueue.x-k8s.io/multikueue"}
    body["spec"]["template"]["spec"]["serviceAccountName"] = "mine"
    says = "serviceAccountName of its pods: mine is not an account that the fleet makes for team team-vision on workers"
    assert says in refusal(cluster, place_of("batch/job", manager), body, "")


@pytest.mark.parametrize("framework", sorted(DISPATCHED_FRAMEWORKS - {"trainer.kubeflow.org/trainjob"}))
def test_a_job_that_requests_nothing_that_counts_is_refused_on_a_manager(
    cluster: OneCluster, manager: str, framework: str
) -> None:
    body = job_of(framework)
    says = "resources of its pods: requests nothing that queue main counts, so that it would never run; request cpu or "
    assert says not in refusal(cluster, place_of(framework, manager), body, "")
    asked = json.dumps(body)
    bare = json.loads(re.sub(r'"resources": {"requests": {[^}]*}, "limits": {[^}]*}}', '"resources": {}', asked))
    result = refusal(cluster, place_of(framework, manager), bare, "")
    assert (says in result) == (not KINDS[framework].counts_more), result
    licence = '"resources": {"requests": {"example.com/licence": 1}, "limits": {"example.com/licence": 1}}'
    other = json.loads(json.dumps(bare).replace('"resources": {}', licence))
    assert (says in refusal(cluster, place_of(framework, manager), other, "")) == (not KINDS[framework].counts_more)


def owner(kind: str, api_version: str, name: str = "it", uid: str = "00000000-0000-0000-0000-000000000000") -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def test_only_controllers_make_jobs_for_other_jobs(cluster: OneCluster) -> None:
    parent = job_of("jobset.x-k8s.io/jobset")
    parent["metadata"]["name"] = "parent"
    parent["spec"]["replicatedJobs"][0]["replicas"] = 100  # more than there is quota for
    uid = cluster.request("POST", JOBSETS, parent, user=MEMBER)["metadata"]["uid"]
    child = job_of("batch/job", queue="")
    child["metadata"]["ownerReferences"] = [owner("JobSet", "jobset.x-k8s.io/v1alpha2", "parent", uid)]
    # Kueue's webhook looks for the parent among those that it has seen already.
    wait_until(lambda: '"parent" not found' not in refusal(cluster, JOBS, child, CONTROLLER))
    assert not refusal(cluster, JOBS, child, CONTROLLER)
    says = "metadata.ownerReferences: only a controller makes a job that belongs to another one; remove ownerReferences"
    assert says in refusal(cluster, JOBS, child)
    # An administrator, and a pod of the team that somebody gave rights to.
    cluster.ensure(
        PLACES["RoleBinding"].format(TEAM),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "pods"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "kueue-fleet-members"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": TEAM}],
        },
    )
    pod = f"system:serviceaccount:{TEAM}:default"
    wait_until(lambda: "cannot create resource" not in refusal(cluster, JOBS, child, pod))  # RBAC reads from a watch
    for forger in ("", pod):
        assert says in refusal(cluster, JOBS, child, forger)
    # A job of a CronJob is one of its own: Kueue queues it by itself.
    child["metadata"]["ownerReferences"] = [owner("CronJob", "batch/v1")]
    cron = "system:serviceaccount:kube-system:cronjob-controller"
    assert "is missing; use main" in refusal(cluster, JOBS, child, cron)
    child["metadata"]["labels"] = {QUEUE: "main"}
    assert not refusal(cluster, JOBS, child, cron)
    cluster.delete(f"{JOBSETS}/parent")


def test_members_do_not_start_jobs_or_change_what_they_may_not_ask_for(cluster: OneCluster) -> None:
    held = job_of("batch/job")
    held["metadata"]["name"] = "held"
    held["spec"] |= {"parallelism": 100, "completions": 100}  # more than there is quota for: it is never started
    cluster.request("POST", JOBS, held, user=MEMBER)

    def change(patch: Json, user: str = MEMBER) -> str:
        try:
            cluster.request("PATCH", f"{JOBS}/held?dryRun=All", patch, "application/merge-patch+json", user=user)
        except Refused as error:
            return str(error)
        return ""

    assert "spec: Kueue starts the job when there is quota for it" in change({"spec": {"suspend": False}})
    assert "is missing" in change({"metadata": {"labels": {QUEUE: None}}})
    assert "is not a priority class" in change({"metadata": {"labels": {PRIORITY: "team-high"}}})
    forged = owner("JobSet", "jobset.x-k8s.io/v1alpha2")
    assert "remove ownerReferences" in change({"metadata": {"ownerReferences": [forged]}})
    assert not change({"metadata": {"annotations": {"note": "mine"}}})
    cluster.delete(f"{JOBS}/held")


def test_a_jobset_of_a_member_runs_to_its_end(cluster: OneCluster) -> None:
    """Its Jobs are made by JobSet's controller, its start is Kueue's."""
    body = job_of("jobset.x-k8s.io/jobset")
    body["metadata"]["name"] = "runs"
    cluster.request("POST", JOBSETS, body, user=MEMBER)
    wait_until(lambda: condition(cluster.get(f"{JOBSETS}/runs"), "Completed") == "True")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"hostNetwork": True}, "host namespaces"),
        ({"hostPID": True}, "host namespaces"),
        ({"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}, "hostPath volumes"),
        ({"container": {"securityContext": {"privileged": True}}}, "privileged"),
        ({"container": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}}, "non-default capabilities"),
        ({"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}, "hostPort"),
    ],
)
def test_hostile_pods_are_refused(cluster: OneCluster, spec: Json, says: str) -> None:
    body = job_of("pod")
    container = spec.get("container", {})
    body["spec"] |= {key: value for key, value in spec.items() if key != "container"}
    body["spec"]["containers"][0] |= container
    result = refusal(cluster, PODS, body)
    assert 'violates PodSecurity "baseline' in result
    assert says in result
    assert not refusal(cluster, PODS, job_of("pod"))


def test_only_the_pods_of_an_unknown_runtime_class_are_refused(cluster: OneCluster) -> None:
    """So that the job keeps its quota."""
    for framework, says in (("pod", 'RuntimeClass "nowhere" not found'), ("batch/job", "")):
        template = pod()
        template["spec"]["runtimeClassName"] = "nowhere"
        body = {**job_of(framework), "spec": SPECS[framework](template)}
        result = refusal(cluster, place_of(framework, TEAM), body)
        assert says in result
        assert bool(result) is bool(says)


@pytest.mark.parametrize("kind", ["LoadBalancer", "NodePort"])
def test_services_are_not_reached_from_outside(cluster: OneCluster, kind: str) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "it"}, "spec": {"ports": [{"port": 80}]}}
    place = f"/api/v1/namespaces/{TEAM}/services"
    assert not refusal(cluster, place, service)
    service["spec"] = {"type": kind, "ports": [{"port": 80}]}
    assert "exceeded quota: kueue-fleet" in refusal(cluster, place, service)


def test_kueue_counts_a_job_without_requests_by_the_limit_range_and_does_not_write_them_down(
    cluster: OneCluster,
) -> None:
    body = job_of("batch/job")
    body["metadata"] |= {"name": "silent", "namespace": OTHER}
    del body["spec"]["template"]["spec"]["containers"][0]["resources"]
    cluster.create(f"/apis/batch/v1/namespaces/{OTHER}/jobs", body)

    def admitted() -> Json | None:
        items = cluster.items(f"{KUEUE}/namespaces/{OTHER}/workloads")
        return next((item for item in items if (item.get("status") or {}).get("admission")), None)

    workload = wait_until(admitted)
    [assigned] = workload["status"]["admission"]["podSetAssignments"]
    assert assigned["resourceUsage"] == {"cpu": "500m", "memory": "4Gi"}
    [container] = workload["spec"]["podSets"][0]["template"]["spec"]["containers"]
    assert not container["resources"]
    cluster.delete(f"/apis/batch/v1/namespaces/{OTHER}/jobs/silent")


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"min": {"cpu": "4"}, "default": {"cpu": "2"}}, "min value 4 is greater than default value 2"),
        ({"defaultRequest": {"cpu": "3"}, "max": {"cpu": "2"}}, "default request value 3 is greater than max value 2"),
        ({"default": {"pods": "1"}}, "must be a standard resource for containers"),
        ({"default": {"nvidia.com/gpu": "2"}, "defaultRequest": {"nvidia.com/gpu": "1"}}, "must equal to"),
    ],
)
def test_limit_ranges_that_the_check_refuses_are_refused(cluster: OneCluster, limits: Json, says: str) -> None:
    items = [{"type": "Container", **limits}]
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "odd"}, "spec": {"limits": items}}
    with pytest.raises(Refused, match=says):
        cluster.create(f"{PLACES['LimitRange'].format(OTHER)}?dryRun=All", body)


def test_members_read_what_their_jobs_become_and_nothing_of_others(cluster: OneCluster) -> None:
    requests = "/apis/autoscaling.x-k8s.io/v1/namespaces/{}/provisioningrequests"
    readable = [
        *(place_of(framework, "{}") for framework in KINDS),
        KUEUE + "/namespaces/{}/workloads",
        KUEUE + "/namespaces/{}/localqueues",
        requests,
        "/api/v1/namespaces/{}/events",
        "/apis/events.k8s.io/v1/namespaces/{}/events",
        "/api/v1/namespaces/{}/resourcequotas",
        "/api/v1/namespaces/{}/limitranges",
    ]
    hidden = ["/api/v1/namespaces/{}/secrets", PLACES["Role"], PLACES["NetworkPolicy"]]
    for place in readable:
        cluster.request("GET", place.format(TEAM), user=MEMBER)
    for path in (*(place.format(OTHER) for place in readable), *(place.format(TEAM) for place in hidden)):
        with pytest.raises(Refused, match="403"):
            cluster.request("GET", path, user=MEMBER)
    for path in (f"/api/v1/namespaces/{TEAM}", f"{PLACES['ResourceQuota'].format(TEAM)}/kueue-fleet"):
        with pytest.raises(Refused, match="403"):
            cluster.request("PATCH", path, {"metadata": {"labels": {}}}, "application/merge-patch+json", user=MEMBER)
    queue = kueue_object("LocalQueue", "mine", {"clusterQueue": "on-demand"}, TEAM)
    assert "403" in refusal(cluster, PLACES["LocalQueue"].format(TEAM), queue)


def test_submit_has_the_rights_of_whom_the_kubeconfig_impersonates(cluster: OneCluster, tmp_path: Path) -> None:
    config = yaml.safe_load((cluster.folder / "kubeconfig").read_text())
    config["users"][0]["user"]["as"] = MEMBER
    config["contexts"][0]["name"] = config["current-context"] = the_fleet().home
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(fleet_of_teams()))
    options = (
        f"--fleet {tmp_path / 'fleet.yaml'} --image train:1 --gpus 1 --cpu 1 --memory 1Gi --no-estimate "
        f"--kubeconfig {tmp_path / 'kubeconfig'}"
    )
    refused = CliRunner().invoke(app, f"submit {options} -q {OTHER}/main --name theirs".split())
    assert f'User "{MEMBER}" cannot create resource "jobs"' in str(refused.exception)
    allowed = CliRunner().invoke(app, f"submit {options} -q {TEAM}/main --name own".split())
    assert allowed.exit_code == 0, str(allowed.exception)
    assert cluster.find(f"{JOBS}/own") is not None  # settled: submit has returned
    assert cluster.find(f"{JOBS.replace(TEAM, OTHER)}/theirs") is None  # settled: it was refused
    cluster.delete(f"{JOBS}/own")
