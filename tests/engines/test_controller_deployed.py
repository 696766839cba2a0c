"""The controller as the component deploys it: by `pulumi up`, with its own account, in two replicas."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from alerting import Collector, Labels, firing
from controller_faults import no_worker_recorded
from controller_lab import GPU, JOBS, MANAGER, fleet_data, queue_data
from controller_lab import job as job_of_any_gpu
from kueue_admission.api.job_kinds import KINDS
from kueue_admission.read.dispatch_report import WAITING_CONDITION
from kueue_fleet.controller.patches import DISPATCH_MANAGER
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.controller_image import controller_image
from kueue_fleet.fleet_file.model.fleet_page import PAGE_NAME, FleetPageIap
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.fleet_file.worker_tokens import ACCOUNT_NAME, worker_tokens
from kueue_fleet.google.alerts import alert_policies
from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.new_kubeconfig import render_kubeconfig
from kueue_fleet.kube.tokens import token_life
from kueue_fleet.objects.controller import JOBS_ROLE_NAME, TOKENS_ROLE_NAME
from kueue_fleet.objects.fleet_page import VIEWER, page_rules
from kueue_fleet.objects.grants import RBAC_API, cluster_grant, role_grant, service_account_subject
from kueue_fleet.objects.teams import member_rules
from kueue_fleet.page.api_server import ApiServer
from kueue_fleet.page.viewers import Viewer
from kueue_fleet.settings.tokens import CONTROLLER_NAME, WorkerToken
from kueue_rehearsal.machine import inotify_instances
from kueue_rehearsal.pulumi_cli import PulumiResult
from kueue_rehearsal.session import Session
from kueue_rehearsal.standins.docker_build_provider import IMAGE, NOTHING_BUILT
from kueue_rehearsal.standins.gcp_provider import NO_TOKEN
from one_cluster import KUEUE, Json, OneCluster, Refused, condition, pods_run, wait_until
from quick_rehearsals import quick_rehearsals

ROOT = Path(__file__).parents[2]
JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets"
WORKER, NAMESPACE = "worker-eu", "kueue-fleet-system"
MOST_EVICTIONS = 10


@dataclass
class Deployed:
    """A fleet of a manager and one worker, brought up by Pulumi; requests are made as administrator."""

    clusters: dict[str, OneCluster]
    fleet: FleetSpec
    warnings: list[str]
    """Of the providers."""
    again: PulumiResult
    """Of a second `pulumi up`."""
    state: str
    """Pulumi's, as it is stored."""
    first_tokens: dict[str, str]
    """Those that `pulumi up` made, by account."""
    supervisor: psutil.Process
    """Of the rehearsal."""

    @property
    def manager(self) -> OneCluster:
        return self.clusters[MANAGER]

    def workload(self, name: str) -> Json | None:
        result = self.manager.items(f"{KUEUE}/namespaces/team/workloads")
        mine = [item for item in result if item["metadata"]["ownerReferences"][0]["name"] == name]
        return mine[0] if mine else None

    def token_of(self, account: str, cluster: str, namespace: str) -> str:
        """A fresh token of an account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(self.clusters[cluster].create(path, body)["status"]["token"])


FOLLOWS = "follows"
"""A queue whose quota follows capacity, its flavor, and the label of its nodes."""
FOLLOWED = 5
"""Its GPUs: 8 in the file less those of a cordoned node."""
BY_TIME, DURING = "by-time", 6
"""A queue with other quotas in a window that is always open, and its GPUs then."""
EVERY_DAY: Json = {
    "name": "every-day",
    "start": "2026-01-05T00:00:00Z",
    "duration": "24h",
    "days": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
}
CORDONED: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "cordoned", "labels": {FOLLOWS: "true"}},
    "spec": {"unschedulable": True},
    "status": {"allocatable": {GPU: "3", "cpu": "8"}, "capacity": {GPU: "3", "cpu": "8"}},
}


def job(name: str, **options: Any) -> Json:
    """A Job for one kind of GPU, as Autopilot wants it."""
    result = job_of_any_gpu(name, **options)
    result["spec"]["template"]["spec"]["nodeSelector"] = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    return result


def written_quota(clusters: Mapping[str, OneCluster], queue: str) -> list[int]:
    """Nominal GPUs of a queue on the manager and the worker."""
    queues = [clusters[name].get(f"{KUEUE}/clusterqueues/{queue}") for name in (MANAGER, WORKER)]
    flavors = [queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"] for queue in queues]
    return [int(item["nominalQuota"]) for quotas in flavors for item in quotas if item["name"] == GPU]


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "stacks").mkdir()
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    project["main"] = str(ROOT / "stacks")
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    prices = {"europe-west4": {"l4": 1.0}}
    data = fleet_data({WORKER: "europe-west4"}, prices=prices, watchdog={"stuckAfter": "2s"})
    data["jobSet"] = {"enabled": True}
    data["fleetPage"] = {}
    data["flavors"].append({"name": FOLLOWS, "nodeLabels": {FOLLOWS: "true"}})
    data["clusterQueues"].append({**queue_data(FOLLOWS, FOLLOWS, 8), "quotaFollows": "capacity"})
    data["clusterQueues"].append(queue_data(BY_TIME, "l4", 1))
    [gpus, *_] = data["clusterQueues"][-1]["resourceGroups"][0]["flavors"][0]["resources"]
    gpus["during"] = {"every-day": {"nominalQuota": DURING}}
    data["controller"]["quotaWindows"] = [EVERY_DAY]
    del data["controller"]["image"]
    del data["kueue"]  # what other tests have less of, to be quicker
    settings = {"config": {"gcp:project": "lab-project", "kueue-fleet:fleet": data}}
    (folder / "stacks" / "Pulumi.controller.yaml").write_text(yaml.safe_dump(settings))
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path_factory.mktemp("s")))
        quick_rehearsals(patch)
        session = Session.for_stack("controller", folder)
        stack.enter_context(session.exclusive())
        session.prepare_engines(print)
        stack.enter_context(session.running(keep=False))
        session.stand_ins()
        run = session.pulumi().up()
        for _ in run:
            pass
        token = session.paths.admin_token.read_text().strip()
        clusters = {objects["name"]: one_of(session, objects, token) for objects in session.client.clusters()}
        clusters[WORKER].create("/api/v1/nodes", CORDONED)
        wait_until(lambda: written_quota(clusters, FOLLOWS) == [FOLLOWED, FOLLOWED])
        wait_until(lambda: written_quota(clusters, BY_TIME) == [DURING, DURING])
        again = session.pulumi().up()
        for _ in again:
            pass
        [state] = session.paths.pulumi_backend.rglob("stacks/*/controller.json")
        fleet = parse_fleet(data)
        told = (run.result.warnings, again.result, state.read_text())
        supervisor = psutil.Process(session.client.health()["pid"])
        yield Deployed(clusters, fleet, *told, first_tokens(clusters[WORKER], fleet), supervisor)


def test_clusters_take_the_inotify_instances_that_a_rehearsal_looks_for(deployed: Deployed) -> None:
    def looked_for() -> bool:
        result = 0
        for process in deployed.supervisor.children(recursive=True):
            for descriptor in Path(f"/proc/{process.pid}/fd").glob("*"):
                with suppress(FileNotFoundError):  # It has been closed.
                    result += descriptor.readlink().name.endswith("inotify")
        assert result == inotify_instances(deployed.fleet)
        return True

    wait_until(looked_for)


def first_tokens(worker: OneCluster, fleet: FleetSpec) -> dict[str, str]:
    secrets = {place.account: place.first_secret for place in worker_tokens(fleet)}
    result = {account: worker.get(f"/api/v1/namespaces/kueue-system/secrets/{secrets[account]}") for account in secrets}
    return {account: base64.b64decode(secret["data"]["token"]).decode() for account, secret in result.items()}


def one_of(session: Session, made: Json, token: str) -> OneCluster:
    ca_file = session.paths.root / f"{made['name']}.crt"
    ca_file.write_bytes(base64.b64decode(made["caCertificate"]))
    # Nothing here asks for its supervisor.
    nobody: Any = None
    return OneCluster(
        made["name"], nobody, session.engines, f"https://{made['endpoint']}", ca_file.parent, token, ca_file
    )


def test_its_image_is_the_one_that_up_builds_and_nothing_is_built_here(deployed: Deployed) -> None:
    result = the_deployment(deployed.manager)
    image = result["spec"]["template"]["spec"]["containers"][0]["image"]
    assert re.fullmatch(rf"{re.escape(str(controller_image(deployed.fleet)))}@sha256:[0-9a-f]{{64}}", image)
    [warning] = deployed.warnings
    assert warning == f"{controller_image(deployed.fleet)}: {NOTHING_BUILT}"


def test_a_second_up_changes_nothing_and_the_token_is_not_in_clear_in_the_state(deployed: Deployed) -> None:
    assert deployed.again.unchanged, deployed.again.changes
    assert deployed.again.warnings == []
    assert IMAGE in deployed.state
    assert NO_TOKEN not in deployed.state


def test_a_second_up_leaves_the_quota_that_the_controller_wrote(deployed: Deployed) -> None:
    """The provider is Pulumi's own; `again` changed nothing, as the test before says."""
    for queue, quota in ((FOLLOWS, FOLLOWED), (BY_TIME, DURING)):
        assert written_quota(deployed.clusters, queue) == [quota, quota]  # settled: the up is over


KUEUE_PODS = "/api/v1/namespaces/kueue-system/pods"


def test_kueue_runs_in_two_replicas_that_nodes_can_be_drained_of(deployed: Deployed) -> None:
    for cluster in deployed.clusters.values():
        wait_until(lambda cluster=cluster: pods_run(cluster, "kueue-system"))  # type: ignore[misc]
        pods = cluster.items(KUEUE_PODS)  # settled: as many as the Deployment has, all ready
        assert len(pods) == 2
        for pod in pods:
            assert pod["spec"]["priority"] == 1_000_000_000
            assert pod["spec"]["containers"][0]["image"] == "registry.k8s.io/kueue/kueue:v0.19.2"
            places = [rule["topologyKey"] for rule in pod["spec"]["topologySpreadConstraints"]]
            assert places == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
        assert budget_of_kueue(cluster)["spec"]["minAvailable"] == 1
        wait_until(lambda cluster=cluster: disruptions_allowed(cluster) == 1)  # type: ignore[misc]
    result = the_deployment(deployed.manager)
    assert result["spec"]["template"]["spec"]["priorityClassName"] == "kueue-fleet-critical"


def budget_of_kueue(cluster: OneCluster) -> Json:
    """Its PodDisruptionBudget."""
    path = "/apis/policy/v1/namespaces/kueue-system/poddisruptionbudgets"
    [budget] = cluster.items(path)  # settled: `up` makes it
    return budget


def disruptions_allowed(cluster: OneCluster) -> int:
    """As the disruption controller counts."""
    return int(budget_of_kueue(cluster)["status"]["disruptionsAllowed"])


def the_deployment(manager: OneCluster) -> Json:
    """The controller's."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{CONTROLLER_NAME}"
    return manager.get(path)  # settled: `up` makes it


def test_two_replicas_are_ready_and_one_of_them_leads(deployed: Deployed) -> None:
    manager = deployed.manager
    wait_until(lambda: the_deployment(manager)["status"].get("readyReplicas") == 2)
    pods = {pod["metadata"]["name"] for pod in manager.items(f"/api/v1/namespaces/{NAMESPACE}/pods")}
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{CONTROLLER_NAME}"
    # Replicas are ready before one of them leads.
    wait_until(lambda: ((manager.find(path) or {}).get("spec") or {}).get("holderIdentity") in pods)


def test_a_job_is_nominated_by_it_and_admitted_on_the_worker(deployed: Deployed) -> None:
    deployed.manager.create(JOBS, job("deployed"))

    def admitted() -> Json | None:
        results = deployed.workload("deployed")
        return results if results is not None and condition(results, "Admitted") == "True" else None

    result = wait_until(admitted)
    assert result["status"]["clusterName"] == WORKER
    assert DISPATCH_MANAGER in {entry["manager"] for entry in result["metadata"]["managedFields"]}


def test_our_own_check_is_active_so_its_queue_is_too(deployed: Deployed) -> None:
    def active() -> bool:
        queues = deployed.manager.items(f"{KUEUE}/clusterqueues")
        return bool(queues) and all(condition(queue, "Active") == "True" for queue in queues)

    wait_until(active)


VOIDING = {("delete", "secrets")}
"""First tokens are voided three minutes after they were replaced, here by the last test of this module."""


def test_every_permission_that_is_granted_is_used_and_nothing_else_is_asked_for(deployed: Deployed) -> None:
    """Whatever the replicas asked of the API servers in this module, beside the rules that the component declares.

    What Kueue does not finish, the controller does, by permissions that are for nothing else. Whether Kueue finishes an
    eviction is chance, so that some more jobs are evicted until it did not.
    """
    for number in range(MOST_EVICTIONS):
        end_before_recorded(deployed, number)
        evict(deployed, number)
        if all(asked(deployed, cluster) >= granted(deployed, cluster) - VOIDING for cluster in (MANAGER, WORKER)):
            break

    def used_is_granted() -> bool:
        assert {status for *_, status in requests_of(deployed) if status == "403"} == set()
        for cluster in (MANAGER, WORKER):
            assert asked(deployed, cluster) - VOIDING == granted(deployed, cluster) - VOIDING
        return True

    wait_until(used_is_granted)


def end_before_recorded(deployed: Deployed, number: int) -> None:
    """A Job and a JobSet end while Kueue may not write where they run; waits until both are resumed."""
    manager, names = deployed.manager, (f"ended-{number}", f"ended-set-{number}")
    with no_worker_recorded(manager):
        manager.create(JOBS, job(names[0], seconds=1))
        manager.create(JOB_SETS, job_set(names[1], seconds=1))
        for path in (f"{JOBS}/{names[0]}", f"{JOB_SETS}/{names[1]}"):
            wait_until(lambda path=path: not manager.get(path)["spec"]["suspend"])  # type: ignore[misc]


def evict(deployed: Deployed, number: int) -> None:
    """Evict a Job and a JobSet on the manager while their pods run; waits until both have given their quota back."""
    manager, names = deployed.manager, (f"long-{number}", f"long-set-{number}")
    manager.create(JOBS, job(names[0], seconds=600))
    manager.create(JOB_SETS, job_set(names[1], seconds=600))
    wait_until(lambda: manager.get(f"{JOBS}/{names[0]}").get("status", {}).get("active"))
    wait_until(lambda: active_jobs(manager.get(f"{JOB_SETS}/{names[1]}")))
    for name in names:
        result = deployed.workload(name)
        assert result is not None
        path = f"{KUEUE}/namespaces/team/workloads/{result['metadata']['name']}"
        manager.request("PATCH", path, {"spec": {"active": False}}, "application/merge-patch+json")
        wait_until(lambda path=path: "admission" not in manager.get(path)["status"])  # type: ignore[misc]
    assert active_jobs(manager.get(f"{JOB_SETS}/{names[1]}")) == 0


def asked(deployed: Deployed, cluster: str) -> set[tuple[str, str]]:
    """Verb and resource of each request to a cluster that a replica counted."""
    return {(verb, resource) for where, verb, resource, _ in requests_of(deployed) if where == cluster}


def job_set(name: str, seconds: int) -> Json:
    """A JobSet of one replicated job, the Job of `job`."""
    result = job(name, seconds=seconds)
    replicated = {"name": "w", "replicas": 1, "template": {"spec": {"template": result["spec"]["template"]}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": result["metadata"],
        "spec": {"suspend": True, "replicatedJobs": [replicated]},
    }


def active_jobs(found: Json) -> int:
    """How many of its jobs have pods, as its status says."""
    return sum(int(one["active"]) for one in found.get("status", {}).get("replicatedJobsStatus", []))


def requests_of(deployed: Deployed) -> set[tuple[str, str, str, str]]:
    """Cluster, verb, resource and status of each request that a replica counted."""
    result = set()
    for pod in deployed.manager.items(f"/api/v1/namespaces/{NAMESPACE}/pods"):
        with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8080/metrics", timeout=10) as answer:
            text = answer.read().decode()
        for line in re.findall(r"^kueue_fleet_requests_total\{(.*)\} ", text, re.MULTILINE):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            result.add((labels["cluster"], labels["verb"], labels["resource"], labels["status"]))
    return result


def granted(deployed: Deployed, cluster: str) -> set[tuple[str, str]]:
    """Verb and resource of each rule of the controller's roles, as the API server has them."""
    here, rbac = deployed.clusters[cluster], "/apis/rbac.authorization.k8s.io/v1"
    roles = [here.get(f"{rbac}/clusterroles/{name}") for name in (CONTROLLER_NAME, JOBS_ROLE_NAME)]
    places = [("kueue-system", TOKENS_ROLE_NAME)]
    if cluster == MANAGER:
        places += [(NAMESPACE, CONTROLLER_NAME), (NAMESPACE, TOKENS_ROLE_NAME)]
    roles += [here.get(f"{rbac}/namespaces/{namespace}/roles/{name}") for namespace, name in places]
    result = set()
    for rule in (rule for role in roles for rule in role["rules"]):
        for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"]):
            name, _, part = resource.partition("/")
            result.add((verb, ".".join(filter(None, (name, group))) + (f"/{part}" if part else "")))
    return result


REFUSED = [
    ("GET", "/api/v1/secrets"),
    ("GET", "/api/v1/namespaces/kueue-system/secrets/kueue-webhook-server-cert"),
    ("PATCH", "/api/v1/namespaces/kueue-system/secrets/kueue-webhook-server-cert"),
    ("POST", "/api/v1/namespaces/kueue-system/secrets"),
    ("POST", "/api/v1/namespaces/kueue-system/serviceaccounts/kueue-controller-manager/token"),
    ("GET", "/api/v1/pods"),
    ("GET", "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config"),
    ("DELETE", "/api/v1/namespaces/team"),
    ("GET", "/apis/batch/v1/jobs"),
    ("POST", JOBS),
    ("PATCH", f"{JOBS}/long-0"),
    ("PATCH", f"{JOB_SETS}/long-set-0"),
    ("PATCH", "/apis/batch/v1/namespaces/kube-system/jobs/any"),
    ("GET", "/apis/batch/v1/namespaces/kube-system/jobs/any"),
    ("PATCH", "/apis/batch/v1/namespaces/kube-system/jobs/any/status"),
    ("PATCH", f"{KUEUE}/namespaces/kube-system/workloads/any/status"),
    ("POST", "/api/v1/namespaces/kube-system/events"),
    ("PATCH", f"{KUEUE}/clusterqueues/gpu"),
    ("DELETE", f"{KUEUE}/clusterqueues/gpu"),
    ("PATCH", f"{KUEUE}/namespaces/team/workloads/any"),
    ("DELETE", f"{KUEUE}/namespaces/team/workloads/any"),
    ("PATCH", f"{KUEUE}/multikueueclusters/{WORKER}"),
    ("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{CONTROLLER_NAME}"),
    ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
]
REFUSED_ON_A_WORKER = [
    ("PATCH", f"{JOBS}/long/status"),
    ("DELETE", f"{KUEUE}/namespaces/team/workloads/any"),
    ("PATCH", f"{KUEUE}/namespaces/default/workloads/any/status"),
    ("PATCH", f"{KUEUE}/admissionchecks/dws/status"),
    ("POST", "/api/v1/namespaces/team/events"),
    ("PATCH", "/apis/autoscaling.x-k8s.io/v1/namespaces/team/provisioningrequests/any"),
]


@pytest.mark.parametrize(
    ("cluster", "namespace", "calls"),
    [(MANAGER, NAMESPACE, REFUSED), (WORKER, "kueue-system", [*REFUSED, *REFUSED_ON_A_WORKER])],
    ids=["manager", "worker"],
)
def test_whatever_was_not_granted_is_refused(
    deployed: Deployed, cluster: str, namespace: str, calls: list[tuple[str, str]]
) -> None:
    token = deployed.token_of(CONTROLLER_NAME, cluster, namespace)
    here = deployed.clusters[cluster]
    for method, path in calls:
        assert refused(here, method, path, token), (method, path)
    assert here.request("GET", f"{KUEUE}/workloads", token=token)["kind"] == "WorkloadList"


def refused(here: OneCluster, method: str, path: str, token: str) -> bool:
    """Whether the API server forbids the request; it is made, so that whatever else is wrong with it is seen."""
    body: Json | None = None if method == "GET" else {"metadata": {"labels": {"x": "y"}}} if method == "PATCH" else {}
    try:
        here.request(method, path, body, "application/merge-patch+json" if method == "PATCH" else "", token)
    except Refused as problem:
        return str(problem).startswith("403 ")
    return False


WRITES = [
    ("POST", "batch/v1", "jobs"),
    ("PATCH", "batch/v1", "jobs/any"),
    ("DELETE", "batch/v1", "jobs/any"),
    ("POST", "jobset.x-k8s.io/v1alpha2", "jobsets"),
    ("DELETE", "jobset.x-k8s.io/v1alpha2", "jobsets/any"),
    ("POST", "kueue.x-k8s.io/v1beta2", "workloads"),
    ("PATCH", "kueue.x-k8s.io/v1beta2", "workloads/any"),
    ("DELETE", "kueue.x-k8s.io/v1beta2", "workloads/any"),
    ("PATCH", "kueue.x-k8s.io/v1beta2", "workloads/any/status"),
]
"""What the manager's Kueue writes on a worker."""


def test_the_managers_kueue_writes_on_a_worker_in_the_namespaces_of_teams_and_nowhere_else(deployed: Deployed) -> None:
    worker = deployed.clusters[WORKER]
    token = deployed.token_of(ACCOUNT_NAME, WORKER, "kueue-system")
    for method, api, resource in WRITES:
        for namespace in ("kube-system", "kueue-system", "default"):
            assert refused(worker, method, f"/apis/{api}/namespaces/{namespace}/{resource}", token), (method, resource)
        # Not found, or without the fields that it needs: the account itself is let in.
        assert not refused(worker, method, f"/apis/{api}/namespaces/team/{resource}", token), (method, resource)
    for api, resource in {(api, resource.partition("/")[0]) for _, api, resource in WRITES}:
        assert worker.request("GET", f"/apis/{api}/{resource}", token=token)["kind"].endswith("List")
    for method, path in (
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/team/secrets"),
        ("POST", "/api/v1/namespaces/kube-system/pods"),
        ("POST", "/api/v1/namespaces/team/pods"),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings"),
        ("POST", f"/api/v1/namespaces/kueue-system/serviceaccounts/{ACCOUNT_NAME}/token"),
        ("PATCH", f"{KUEUE}/clusterqueues/gpu"),
    ):
        assert refused(worker, method, path, token), (method, path)


def test_it_is_not_to_be_seen_in_a_log_that_anything_was_refused(deployed: Deployed) -> None:
    """Every watch works with the rules that were declared."""
    pods = deployed.manager.items(f"/api/v1/namespaces/{NAMESPACE}/pods")  # settled: a replica led before
    names = [f"{NAMESPACE}_{pod['metadata']['name']}_*/controller.log" for pod in pods]
    logs = [log for name in names for log in deployed.manager.folder.rglob(name)]
    assert logs
    text = "".join(log.read_text() for log in logs)
    assert '"message": "leading"' in text
    assert "Forbidden" not in text


def test_another_replica_of_kueue_leads_when_the_leader_is_gone(deployed: Deployed) -> None:
    """And the alert `kueue-gone`, on what the real replicas measure, is about a follower that is alone and no other."""
    worker = deployed.clusters[WORKER]

    def one_leads() -> dict[str, str] | None:
        result = kueue_metrics(worker)
        return result if sorted(map(leads, result.values())) == [False, True] else None

    before = wait_until(one_leads)
    [leader] = [pod for pod, text in before.items() if leads(text)]
    [follower] = before.keys() - {leader}
    assert kueue_gone(before) == {}
    assert kueue_gone({follower: before[follower]}) == {(("cluster", WORKER),): (10, 20)}
    worker.delete(f"{KUEUE_PODS}/{leader}")

    def another_that_leads() -> dict[str, str]:
        # The follower or the pod that replaces the leader, whichever takes the Lease first.
        return {pod: text for pod, text in kueue_metrics(worker).items() if pod != leader and leads(text)}

    assert kueue_gone(wait_until(another_that_leads)) == {}


def leads(text: str) -> bool:
    """Whether a replica says of the queue `gpu` that it leads."""
    return bool(
        re.search(r'^kueue_cluster_queue_status\{cluster_queue="gpu",replica_role="leader"', text, re.MULTILINE)
    )


def kueue_metrics(cluster: OneCluster) -> dict[str, str]:
    """What each replica of Kueue measures, by the name of its pod."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    result = {}
    for pod in cluster.items(KUEUE_PODS):
        address = pod["status"].get("podIP")
        request = urllib.request.Request(f"https://{address}:8443/metrics")
        request.add_header("Authorization", f"Bearer {cluster.token}")
        with suppress(OSError), urllib.request.urlopen(request, context=context, timeout=20) as response:
            result[pod["metadata"]["name"]] = response.read().decode()
    return result


def kueue_gone(texts: Mapping[str, str]) -> dict[Labels, tuple[float, float]]:
    """What the alert fires for in twenty minutes of these metrics."""
    policy = alert_policies(
        "lab", manager=None, job_clusters=[WORKER], kueue_namespace="kueue-system", provisioning_seconds=60
    )["kueue-gone"]
    return firing(policy, [Collector(WORKER, pod).follow(lambda _, t=t: t, 20) for pod, t in texts.items()], 20)  # type: ignore[misc]


def grant(deployed: Deployed, called: str, rules: list[Json], **subject: str) -> None:
    """In the namespace `team` of the manager."""
    role, binding = role_grant(called, "team", rules, subject)
    for plural, result in (("roles", role), ("rolebindings", binding)):
        deployed.manager.create(f"/apis/{RBAC_API}/namespaces/team/{plural}", result)


def account(deployed: Deployed, name: str, namespace: str) -> str:
    """The token of an account that is made."""
    deployed.manager.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    return deployed.token_of(name, MANAGER, namespace)


def page(deployed: Deployed, path: str, token: str = "") -> tuple[int, str]:
    """What the page answers, in its pod."""
    [pod] = deployed.manager.items(f"/api/v1/namespaces/{PAGE_NAME}/pods")  # settled: it runs
    address = pod["status"]["podIP"]
    request = urllib.request.Request(f"http://{address}:8080/{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_a_member_sees_on_the_page_why_their_job_waits_and_others_see_nothing(deployed: Deployed) -> None:
    manager = deployed.manager
    wait_until(lambda: pods_run(manager, PAGE_NAME))
    ada, eve = account(deployed, "ada", "team"), account(deployed, "eve", "default")
    rules = member_rules([KINDS["batch/job"]], submits=True)
    grant(deployed, "members", rules, kind="ServiceAccount", name="ada", namespace="team")
    manager.create(JOBS, job("holds", gpus=8, seconds=600))
    wait_until(lambda: condition(deployed.workload("holds") or {}, "Admitted") == "True")
    manager.create(JOBS, job("waits", gpus=8))
    wait_until(lambda: condition(deployed.workload("waits") or {}, WAITING_CONDITION) == "True")

    def shown() -> Json | None:
        status, text = page(deployed, "live/jobs", ada)
        rows = {item["name"]: item for item in json.loads(text)["jobs"]} if status == 200 else {}
        return rows.get("waits")

    row = wait_until(shown)
    assert row["says"].startswith("It asks for 8 nvidia.com/gpu; 0 of 8 is free on the worker clusters together")
    status, text = page(deployed, "live/job?namespace=team&name=waits", ada)
    assert (status, "submitted to LocalQueue gpu" in text) == (200, True)
    for path in ("live/jobs", "live/job?namespace=team&name=waits"):
        assert page(deployed, path)[0] == 401
        assert page(deployed, path, "forged")[0] == 401
        status, text = page(deployed, path, eve)
        assert (status, "waits" in text) == (403, False)
    manager.delete(f"{JOBS}/holds")
    manager.delete(f"{JOBS}/waits")


def test_behind_iap_the_pages_account_may_act_as_members_of_teams_and_as_nobody_else(
    deployed: Deployed, tmp_path: Path
) -> None:
    """Its rights are those that a fleet with IAP renders; here they are granted beside those of the fleet without."""
    manager, group = deployed.manager, "ml@example.com"
    team = {"name": "team", "members": [f"group:{group}"]}
    result = deployed.fleet.model_copy(update={"teams": (TeamEntry.model_validate(team),)})
    rules = page_rules(result, FleetPageIap(host="jobs.example.com", groups={group: ["ada@example.com"]}))
    objects = cluster_grant("page-behind-iap", rules, service_account_subject(PAGE_NAME, PAGE_NAME))
    for plural, entry in zip(("clusterroles", "clusterrolebindings"), objects, strict=True):
        manager.create(f"/apis/{RBAC_API}/{plural}", entry)
    grant(deployed, "group", member_rules([KINDS["batch/job"]], submits=True), kind="Group", name=group)
    config = tmp_path / "kubeconfig"
    cluster = {"server": manager.server, "certificate-authority": str(manager.ca_file)}
    token = deployed.token_of(PAGE_NAME, MANAGER, PAGE_NAME)
    config.write_text(yaml.safe_dump(render_kubeconfig("page", cluster, {"token": token})))

    def reads(user: str, *groups: str, namespace: str = "team") -> int:
        async def ask() -> int:
            api = ApiServer(config)
            headers = (("Impersonate-User", user), *(("Impersonate-Group", item) for item in groups))
            try:
                await api.listed(f"{KUEUE}/namespaces/{namespace}/workloads", Viewer("v", headers, by_account=True))
            except ApiError as refused:
                return refused.status
            finally:
                await api.close()
            return 200

        return asyncio.run(ask())

    wait_until(lambda: reads(VIEWER, group) == 200)
    assert reads(VIEWER) == 403
    assert reads(VIEWER, group, namespace="default") == 403
    assert reads(VIEWER, "system:masters") == 403
    assert reads("ada@example.com") == 403
    assert reads("system:admin") == 403


def token_in(deployed: Deployed, place: WorkerToken) -> str:
    """The token that a worker is reached by, from its Secret on the manager."""
    result = deployed.manager.get(f"/api/v1/namespaces/{place.secret_namespace}/secrets/{place.secret}")
    kubeconfig = yaml.safe_load(base64.b64decode(result["data"]["kubeconfig"]))
    return str(kubeconfig["users"][0]["user"]["token"])


def test_workers_are_reached_by_tokens_that_expire_once_the_first_ones_are_void(deployed: Deployed) -> None:
    """The last test: it voids the first tokens, as the controller does three minutes after it has replaced them."""
    worker = deployed.clusters[WORKER]
    own = deployed.token_of(CONTROLLER_NAME, WORKER, "kueue-system")

    def is_void(token: str) -> bool:
        try:
            worker.request("GET", f"{KUEUE}/workloads", token=token)
        except Refused as problem:
            return str(problem).startswith("401 ")
        return False

    for place in worker_tokens(deployed.fleet):
        life = token_life(token_in(deployed, place))  # settled: `up` makes it
        assert life.expires is not None
        assert life.expires - life.issued == 7 * 24 * 3600
        path = f"/api/v1/namespaces/kueue-system/secrets/{place.first_secret}"
        first = deployed.first_tokens[place.account]
        # On a slow machine the controller was faster: there is nothing to delete.
        assert not refused(worker, "DELETE", path, own)
        wait_until(lambda first=first: is_void(first))  # type: ignore[misc]
    deployed.manager.create(JOBS, job("after-the-first-tokens"))

    def admitted() -> bool:
        result = deployed.workload("after-the-first-tokens")
        return result is not None and condition(result, "Admitted") == "True"

    wait_until(admitted)
