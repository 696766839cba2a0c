"""The company's fleet of the stack `prod`: brought up with one of its workers, and changed as such a fleet is.

Its workers are alike; what a change touches with all of them is in tests/test_fleet_changes.py. Kueue is upgraded to a
chart that is the installed one under the next patch version: another version cannot be had without a network.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet_in_rehearsal import FleetInRehearsal, copied
from kueue_fleet.fleet_file.parse import CHARTS_KEY
from kueue_fleet.rehearsal.pulumi_cli import PulumiError
from one_cluster import wait_until

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


def with_one_worker(fleet: dict[str, Any]) -> None:
    region = WORKER.removeprefix("worker-")
    fleet["clusters"] = [cluster for cluster in fleet["clusters"] if cluster["name"] in (MANAGER, WORKER)]
    fleet["reservations"] = [entry for entry in fleet["reservations"] if entry["zone"].startswith(region)]
    for thing in [*fleet["nodePools"], *fleet["clusterQueues"]]:
        thing.pop("perCluster", None)
        if "clusters" in thing:
            thing["clusters"] = [WORKER]
    fleet["multiKueue"]["workers"] = [WORKER]
    prices = fleet["admissionController"]["prices"]
    fleet["admissionController"]["prices"] = {region: prices[region]}


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


def is_active(thing: dict[str, Any]) -> bool:
    return any(one["type"] == "Active" and one["status"] == "True" for one in thing["status"].get("conditions", ()))


def wait_until_connected(prod: FleetInRehearsal) -> None:
    def connected() -> bool:
        clusters = prod.objects(MANAGER, "multikueueclusters")
        assert set(clusters) == {WORKER}
        assert is_active(clusters[WORKER]), clusters
        return True

    wait_until(connected)


def test_every_queue_is_active_on_every_cluster(prod: FleetInRehearsal) -> None:
    """Those of a worker are active once the fleet's controller answers their check."""
    wait_until_connected(prod)
    for cluster in (MANAGER, WORKER):

        def active(cluster: str = cluster) -> bool:
            queues = prod.objects(cluster, "clusterqueues")
            return bool(queues) and all(is_active(queue) for queue in queues.values())

        wait_until(active)


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
    others = {each for each in steps(prod) if each[1:] not in replaced(prod)}
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
    document["config"]["kueue-fleet:fleet"]["kueue"] = {"version": version}
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
