"""The company's fleet of the stack `prod`: brought up with one of its workers, and changed as such a fleet is.

Its workers are alike; what a change touches with all of them is in tests/test_fleet_changes.py. Kueue is upgraded to a
chart that is the installed one under the next patch version: another version cannot be had without a network.
"""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet_in_rehearsal import ROOT, FleetInRehearsal, copied
from job_files import jobs_in
from kueue_fleet.fleet_file.charts import CHARTS_KEY
from kueue_fleet.fleet_file.worker_tokens import manager_accounts
from kueue_rehearsal.jobs.views import JobState
from kueue_rehearsal.pulumi_cli import PulumiError
from kueue_rehearsal.standins.google_tokens import make_token
from one_cluster import condition, wait_until
from one_worker import with_one_worker

MANAGER = "manager-europe-west4"
WORKER = "worker-europe-west4"
NODE_POOL = "gcp:container/nodePool:NodePool"
RELEASE = "kubernetes:helm.sh/v3:Release"


@pytest.fixture(scope="module")
def prod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetInRehearsal]:
    with copied("prod", tmp_path_factory) as fleet, fleet.session.exclusive(), fleet.session.running(keep=False):
        fleet.session.stand_ins()
        fleet.change(with_one_worker)
        fleet.up()
        yield fleet


def steps(prod: FleetInRehearsal) -> set[tuple[str, str, str]]:
    """(operation, type, name) of all that the last run changed; the components themselves left out."""
    return {
        (step.op, step.type, step.name)
        for step in prod.steps
        if not step.type.startswith(("kueue-fleet:", "pulumi:pulumi:"))
    }


def replaced(prod: FleetInRehearsal) -> set[tuple[str, str]]:
    """(type, name) of what the last run has made anew."""
    return {(kind, name) for op, kind, name in steps(prod) if "replace" in op}


def wait_until_connected(prod: FleetInRehearsal) -> None:
    def connected() -> bool:
        clusters = prod.objects(MANAGER, "multikueueclusters")
        assert set(clusters) == {WORKER}
        assert condition(clusters[WORKER], "Active") == "True", clusters
        return True

    wait_until(connected)


def test_every_queue_is_active_on_every_cluster(prod: FleetInRehearsal) -> None:
    """Those of a worker are active once the fleet's controller answers their check."""
    wait_until_connected(prod)
    for cluster in (MANAGER, WORKER):

        def active(cluster: str = cluster) -> bool:
            queues = prod.objects(cluster, "clusterqueues")
            return bool(queues) and all(condition(queue, "Active") == "True" for queue in queues.values())

        wait_until(active)


def test_jobs_reach_the_worker_by_google_accounts_and_no_token_is_kept_anywhere(prod: FleetInRehearsal) -> None:
    """Kueue reads the ClusterProfile and runs the plugin; so does the fleet's own controller with its kubeconfig."""
    wait_until_connected(prod)
    source = prod.objects(MANAGER, "multikueueclusters")[WORKER]["spec"]["clusterSource"]  # settled: `up` ended
    assert source == {"clusterProfileRef": {"name": WORKER}}
    kept = {str(claims(token)["sub"]) for name in (MANAGER, WORKER) for token in prod.tokens(name) if "." in token}
    assert not {account for account in kept if account.endswith(("multikueue-manager", "kueue-fleet-controller"))}
    assert "kubeconfig" not in prod.secret_keys(MANAGER)
    jobs = [job for job in jobs_in(ROOT / "examples" / "prod" / "jobs.yaml") if job["metadata"]["namespace"] == "ads"]
    *_, last = prod.session.run_jobs(prod.fleet, jobs[:1], 120.0)
    assert [(view.cluster, view.state) for view in last] == [(WORKER, JobState.FINISHED)]


def claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    result: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return result


def test_a_google_account_may_do_on_a_worker_what_its_roles_say_and_nothing_else(prod: FleetInRehearsal) -> None:
    key, now = prod.session.paths.admin_token.read_text().strip(), int(time.time())
    kueue, controller = manager_accounts(prod.fleet)

    def answer(address: str, verb: str, path: str, expires: int = now + 60, key: str = key) -> int:
        return prod.status(WORKER, make_token(key, address, expires), verb, path)

    jobs, workloads = "/apis/batch/v1/namespaces/{}/jobs", "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"
    # 422 and 400: it may, but the object is not a good one.
    assert answer(kueue.address, "GET", "/apis/batch/v1/jobs") == 200
    assert answer(kueue.address, "POST", jobs.format("ads")) in (400, 422)
    assert answer(controller.address, "GET", "/api/v1/namespaces") == 200
    refused = {
        (kueue.address, "POST", jobs.format("kube-system")),
        (kueue.address, "POST", workloads.format("kueue-system")),
        (kueue.address, "GET", "/api/v1/namespaces/ads/secrets"),
        (kueue.address, "GET", "/api/v1/pods"),
        (kueue.address, "POST", "/api/v1/namespaces/kueue-system/serviceaccounts/kueue-controller-manager/token"),
        (controller.address, "POST", jobs.format("ads")),
        (controller.address, "POST", workloads.format("ads")),
        (controller.address, "GET", "/api/v1/namespaces/kueue-system/secrets"),
        ("someone@atlas-prod-batch.iam.gserviceaccount.com", "GET", "/api/v1/namespaces"),
    }
    assert {item: answer(*item) for item in refused} == dict.fromkeys(refused, 403)
    assert answer(kueue.address, "GET", "/apis/batch/v1/jobs", expires=now - 1) == 401
    assert answer(kueue.address, "GET", "/apis/batch/v1/jobs", key="guessed") == 401


def test_another_machine_type_replaces_one_pool_and_a_new_team_touches_nothing(prod: FleetInRehearsal) -> None:
    def on_demand(fleet: dict[str, Any]) -> dict[str, Any]:
        pool: dict[str, Any] = next(one for one in fleet["nodePools"] if one["name"] == "l4-on-demand")
        return pool

    def unprotected(fleet: dict[str, Any]) -> None:
        on_demand(fleet)["deletionProtection"] = False

    def larger(fleet: dict[str, Any]) -> None:
        on_demand(fleet)["machineType"] = "g2-standard-48"

    def larger_with_audio(fleet: dict[str, Any]) -> None:
        larger(fleet)
        team = dict(fleet["teams"][0], name="audio", localQueues=[{"name": "main", "clusterQueue": "foundation"}])
        fleet["teams"].append(team | {"members": ["group:audio@example.com"]})

    before = prod.stack_file.read_text()
    prod.change(larger)
    with pytest.raises(PulumiError, match="marked for protection"):
        prod.up()
    assert steps(prod) == set()
    prod.stack_file.write_text(before)
    prod.change(unprotected)
    prod.up()
    prod.change(larger_with_audio)
    prod.up()
    # Four GPUs on a node rather than two: GKE does not change the accelerators of a pool in place.
    assert replaced(prod) == {(NODE_POOL, f"{WORKER}/l4-on-demand")}
    others = {item for item in steps(prod) if item[1:] not in replaced(prod)}
    assert {op for op, _, _ in others} == {"create"}, others
    assert all("audio" in name for _, _, name in others), others
    for cluster in (MANAGER, WORKER):
        queues = prod.session.clients(prod.fleet).list(cluster, "kueue.x-k8s.io", "v1beta2", "localqueues")
        assert "audio" in {queue["metadata"]["namespace"] for queue in queues}


def test_the_next_patch_version_of_kueue_updates_the_releases_alone(
    prod: FleetInRehearsal, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chart = tmp_path_factory.mktemp("chart") / "kueue"
    shutil.copytree(prod.session.engines.asset("kueue-chart"), chart)
    version = next_patch(chart)
    document = yaml.safe_load(prod.stack_file.read_text())
    document["config"][CHARTS_KEY] = {"kueue": str(chart)}
    document["config"]["kueue-fleet:fleet"]["kueue"]["version"] = version
    prod.stack_file.write_text(yaml.safe_dump(document, sort_keys=False))
    prod.up()
    assert replaced(prod) == set()
    assert steps(prod) == {("update", RELEASE, f"{cluster}/kueue") for cluster in (MANAGER, WORKER)}
    wait_until_connected(prod)


def next_patch(chart: Path) -> str:
    """Raises the version of the chart by one patch."""
    file = chart / "Chart.yaml"
    about = yaml.safe_load(file.read_text())
    major, minor, patch = str(about["version"]).split(".")
    about["version"] = f"{major}.{minor}.{int(patch) + 1}"
    about["appVersion"] = f"v{about['version']}"
    file.write_text(yaml.safe_dump(about))
    return str(about["version"])
