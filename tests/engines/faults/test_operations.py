"""What operators do to a fleet while its jobs run, as docs/tasks says; see `test_clusters` for what a round is."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from controller_lab import (
    MANAGER,
    PATHS,
    apply_object,
    install_kueue,
    restart_kueue,
    route,
    wait_until_connected,
    write_kubeconfig_for,
)
from faulty_fleet import US, Fleet
from kueue_fleet.cli import app
from kueue_fleet.cli import rotate as rotation
from kueue_fleet.diff.upgrade import fleet_after, upgrade_moves
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.worker_tokens import worker_tokens
from kueue_fleet.kube.tokens import EXPIRES_ANNOTATION
from kueue_fleet.objects import render_cluster
from kueue_fleet.settings.tokens import WorkerToken
from kueue_rehearsal.engines import KUEUE_ENGINES
from one_cluster import PATIENCE_SECONDS, Json, OneCluster, condition, wait_until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCESS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{{namespace}}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{{namespace}}/rolebindings",
}
"""Paths of what a worker grants to the manager."""
USED_BY_QUEUES = ("ResourceFlavor", "AdmissionCheck")
APPLY = "application/apply-patch+yaml"
OTHER_RELEASE = {"0.17.1": "0.18.3", "0.18.3": "0.19.2", "0.19.2": "0.18.3"}


def jobs_run(cluster: OneCluster) -> list[Json]:
    return [item for item in cluster.items("/apis/batch/v1/jobs") if item.get("status", {}).get("active")]


def route_all(fleet: Fleet) -> None:
    """The manager's Kueue reaches each worker as its administrator, by the gate."""
    for name, gate in fleet.gates.items():
        route(fleet.lab, name, gate.url)
    wait_until_connected(fleet.lab)


def test_the_manager_is_lost_and_made_again(fleet: Fleet) -> None:
    """As docs/tasks/recover-the-manager.md has it: what runs goes on until it ends, and its jobs are not known."""

    met: list[int] = []

    def times_met() -> int:
        lines = [line for replica in fleet.replicas.values() for line in replica.lines()]
        return sum(f"{MANAGER}: is another cluster than before" in line["message"] for line in lines)

    def recover() -> None:
        met.append(times_met())
        wait_until(lambda: any(map(jobs_run, fleet.lab.workers.values())))
        fleet.lab.replace_manager(gcInterval="0s")
        fleet.forgotten |= fleet.bound.keys()
        route_all(fleet)

    def collect() -> None:
        wait_until(lambda: all(_ended(fleet, cluster) for cluster in fleet.lab.workers.values()))
        restart_kueue(fleet.lab, MANAGER, gcInterval="20s")
        wait_until_connected(fleet.lab)
        # The leader after the next notes what went with the first manager.
        fleet.replicas[fleet.leader()].kill()
        wait_until(lambda: times_met() > met[0])
        fleet.replicas[fleet.leader()].kill()

    fleet.survive(recover, collect)


def _ended(fleet: Fleet, worker: OneCluster) -> bool:
    """Nothing runs there of what the manager does not know."""
    return not [item for item in jobs_run(worker) if item["metadata"]["name"] in fleet.forgotten]


@pytest.mark.parametrize("where", [US, MANAGER], ids=["a worker's", "the manager's"])
def test_the_contents_of_a_cluster_are_half_destroyed_and_come_back(fleet: Fleet, where: str) -> None:
    """`pulumi destroy` of a fleet on clusters that are not its own, which somebody ends in the middle, and `up`."""
    cluster = fleet.lab.clusters[where]
    result = [each for each in render_cluster(fleet.lab.fleet, where) if each["kind"] in PATHS]
    going = [each for each in result if each["kind"] not in ("Namespace", "PriorityClass")]

    def path(item: Any) -> str:
        place = PATHS[item["kind"]].format(namespace=item["metadata"].get("namespace", ""))
        return f"{place}/{item['metadata']['name']}"

    def destroy() -> None:
        wait_until(lambda: jobs_run(fleet.lab.workers[US]))
        for entry in reversed(going):
            cluster.delete(path(entry))

    def is_whole() -> bool:
        """What is gone is made again. A flavor or check that a new queue uses may stay in deletion, and works on."""
        there = [(each, cluster.find(path(each))) for each in going]
        for each, found in there:
            if found is None:
                apply_object(cluster, each)
        queues = [found for each, found in there if each["kind"] == "ClusterQueue"]
        active = all(found is not None and condition(found, "Active") == "True" for found in queues)
        return active and all(
            results is not None and ("deletionTimestamp" not in results["metadata"] or each["kind"] in USED_BY_QUEUES)
            for each, results in there
        )

    def come_back() -> None:
        wait_until(is_whole, 2 * PATIENCE_SECONDS)
        wait_until_connected(fleet.lab)

    fleet.survive(destroy, come_back, restarts=True)


def test_kueue_gets_another_release_and_the_first_one_again(fleet: Fleet) -> None:
    """In the steps of `upgrade`, and these back; a fleet of several releases gets the newest of them everywhere."""
    lab, before = fleet.lab, fleet.lab.fleet
    versions = {before.kueue_on(name).version for name in before.cluster_names}
    to = max(versions) if len(versions) > 1 else OTHER_RELEASE[before.kueue.version]
    moves = upgrade_moves(before, to)

    def install(number: int, after: int) -> None:
        """On the cluster of a move, as the fleet is after so many of them."""
        cluster = moves[number].cluster
        lab.fleet = parse_fleet(fleet_after(before.wire(), to, moves[:after]))
        lab.clusters[cluster].kueue = KUEUE_ENGINES[lab.fleet.kueue_on(cluster).release.minor]
        install_kueue(lab, cluster)

    def go() -> None:
        for number in range(len(moves)):
            install(number, number + 1)
        wait_until_connected(lab)

    def come_back() -> None:
        if min(versions) < "0.18":
            # It does not know the Workloads of jobs that a newer manager has marked.
            fleet.settle()
        for number in reversed(range(len(moves))):
            install(number, number)
        wait_until_connected(lab)

    fleet.survive(go, come_back)


def test_the_tokens_of_the_workers_are_replaced(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By `kueue-fleet rotate`, which revokes the first ones: see docs/tasks/rotate-credentials.md."""
    monkeypatch.setattr(rotation, "sleep", lambda seconds: time.sleep(min(seconds, 3.0)))
    file, kubeconfig = tmp_path / "fleet.yaml", tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(fleet.lab.fleet.wire()))
    kubeconfig.write_text(yaml.safe_dump(_contexts(fleet, tmp_path)))
    tokens = worker_tokens(fleet.lab.fleet)

    def rotate() -> None:
        for token in tokens:
            _grant(fleet, token, tmp_path)
        result = CliRunner().invoke(app, ["rotate", str(file), "--kubeconfig", str(kubeconfig)])
        assert result.exit_code == 0, result.output
        for token in tokens:
            secret = fleet.lab.manager.get(f"{_secrets(token.secret_namespace)}/{token.secret}")
            assert EXPIRES_ANNOTATION in secret["metadata"]["annotations"]
            assert (
                fleet.lab.workers[token.worker].find(f"{_secrets(token.account_namespace)}/{token.first_secret}")
                is None
            )
        wait_until_connected(fleet.lab)

    fleet.survive(rotate, lambda: route_all(fleet))


def _secrets(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


def _contexts(fleet: Fleet, folder: Path) -> Json:
    """A kubeconfig with a context for each cluster, of its administrator."""
    result: Json = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for name, cluster in fleet.lab.clusters.items():
        write_kubeconfig_for(folder / "one", cluster)
        one = yaml.safe_load((folder / "one").read_text())
        result["clusters"].append({**one["clusters"][0], "name": name})
        result["users"].append({**one["users"][0], "name": name})
        result["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    return result


def _grant(fleet: Fleet, token: WorkerToken, folder: Path) -> None:
    """The account on the worker, and its first token on the manager, as `pulumi up` makes them."""
    worker, manager = fleet.lab.workers[token.worker], fleet.lab.manager
    for item in render_cluster(fleet.lab.fleet, token.worker):
        if item["kind"] in ACCESS:
            place = ACCESS[item["kind"]].format(namespace=item["metadata"].get("namespace", ""))
            worker.request("PATCH", f"{place}/{item['metadata']['name']}?fieldManager=lab&force=true", item, APPLY)
    first = f"{_secrets(token.account_namespace)}/{token.first_secret}"
    data = wait_until(lambda: (worker.find(first) or {}).get("data"))
    write_kubeconfig_for(folder / "first", worker, fleet.gates[token.worker].url)
    config = yaml.safe_load((folder / "first").read_text())
    config["users"][0]["user"]["token"] = base64.b64decode(data["token"]).decode()
    body: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": token.secret, "namespace": token.secret_namespace},
        "data": {"kubeconfig": base64.b64encode(yaml.safe_dump(config).encode()).decode()},
    }
    path = f"{_secrets(token.secret_namespace)}/{token.secret}?fieldManager=lab&force=true"
    manager.request("PATCH", path, body, APPLY)
