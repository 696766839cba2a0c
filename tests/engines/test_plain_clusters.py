"""The fleets of examples/plain-cluster, by a real `up`: a worker outside GKE beside one of GKE, and one without GKE."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from command_line import call
from controller_faults import Gate
from fleet_in_rehearsal import ROOT, FleetInRehearsal, copied, shown_conditions
from job_files import jobs_in
from kueue_fleet.fleet_file import FleetSpec, parse_fleet_text
from kueue_rehearsal.jobs.clients import ClusterClients
from kueue_rehearsal.jobs.submission import submit_jobs
from kueue_rehearsal.jobs.witness import Witnesses
from kueue_rehearsal.plain_clusters import connections
from one_cluster import condition, wait_until

EXAMPLE = ROOT / "examples" / "plain-cluster"
JOBS = EXAMPLE / "jobs.yaml"
MANAGER, GKE, PARIS = "manager", "gke-europe-west4", "paris"
PATIENCE_SECONDS = 240
QUOTA = 8
"""GPUs of both workers, and of the manager; so many jobs of the example ask for one."""
RECONNECTED_SECONDS = 400
"""Kueue tries a worker again after 5 s, then after twice as long each time, up to 320 s."""


@dataclass
class Mixed:
    """The example's fleet, what its workers ever had, and the link between the manager and the worker outside GKE."""

    lab: FleetInRehearsal
    witnesses: Witnesses
    link: Gate

    def submit(self, jobs: Sequence[Mapping[str, Any]]) -> list[str]:
        """The names of these jobs on the manager."""
        return [job["metadata"]["name"] for job in submit_jobs(self.lab.clients, MANAGER, jobs)]

    def active(self, worker: str) -> int:
        """How many of a worker's jobs have pods that run."""
        return sum(job.get("status", {}).get("active", 0) > 0 for job in jobs_on(self.lab, worker))

    def have_one_worker_each(self, names: Sequence[str]) -> bool:
        """These jobs run, and no worker has a copy of another one's."""
        jobs = [job for worker in (GKE, PARIS) for job in jobs_on(self.lab, worker)]
        copies = Counter(job["metadata"]["name"] for job in jobs)
        running = {job["metadata"]["name"] for job in jobs if job.get("status", {}).get("active", 0) > 0}
        assert ({name: copies[name] for name in names}, running >= set(names)) == (dict.fromkeys(names, 1), True)
        return True

    def wait_until_finished(self, names: Sequence[str]) -> None:
        """All jobs have succeeded on the manager."""

        def finished() -> bool:
            jobs = {job["metadata"]["name"]: job for job in jobs_on(self.lab, MANAGER)}
            assert set(names) <= jobs.keys()
            waiting = [name for name in names if condition(jobs[name], "Complete") != "True"]
            workloads = self.lab.objects(MANAGER, "workloads").values() if waiting else ()
            assert not waiting, [shown_conditions(item) for item in workloads if condition(item, "Finished") is None]
            return True

        wait_until(finished, PATIENCE_SECONDS)

    def ran_once(self, names: Sequence[str]) -> bool:
        """Whether each of these jobs ran on one worker, and once."""
        runs = self.witnesses.runs()
        assert {name: runs[name] for name in names if runs[name] != 1} == {}
        return True

    def wait_until_connected(self, state: str = "True") -> None:
        """The manager says so of the link."""

        def has_state() -> bool:
            cluster = self.lab.objects(MANAGER, "multikueueclusters").get(PARIS, {})
            assert condition(cluster, "Active") == state, cluster
            return True

        wait_until(has_state, RECONNECTED_SECONDS)


def jobs_on(lab: FleetInRehearsal, cluster: str) -> list[dict[str, Any]]:
    return [dict(job) for job in lab.clients.list(cluster, "batch", "v1", "jobs")]


def example(file: str) -> dict[str, Any]:
    """A fleet of the example, with one replica of Kueue, and without protection of what is to be removed."""
    fleet: dict[str, Any] = yaml.safe_load((EXAMPLE / file).read_text())
    return fleet | {"deletionProtection": False, "kueue": {"replicas": 1}, "jobSet": {"enabled": False}}


@contextmanager
def up(data: Mapping[str, Any], factory: pytest.TempPathFactory) -> Iterator[FleetInRehearsal]:
    """This fleet, up until the end of the context."""

    def become(fleet: dict[str, Any]) -> None:
        fleet.clear()
        fleet.update(copy.deepcopy(dict(data)))

    with copied("dev", factory) as lab:
        lab.change(become)
        with lab.session.exclusive(), lab.session.running(keep=False):
            lab.session.stand_ins()
            lab.session.write_settings()
            lab.session.make_existing_clusters(lab.fleet)
            lab.up()
            yield lab


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    links: list[Gate] = []

    def by_the_link(clusters: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
        direct = connections(clusters)
        if PARIS in direct and not links:
            links.append(Gate(direct[PARIS]["server"]))
        return {name: item | {"server": links[0].url} for name, item in direct.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kueue_rehearsal.session.connections", by_the_link)
        with up(example("fleet.yaml"), tmp_path_factory) as lab:
            servers = ClusterClients(lab.session.paths.kubeconfig, [GKE, PARIS])
            witnesses = Witnesses({name: servers.server(name) for name in (GKE, PARIS)})
            try:
                yield Mixed(lab, witnesses, links[0])
            finally:
                witnesses.close()
                links[0].close()


def lasting(jobs: Sequence[Mapping[str, Any]], seconds: int) -> list[dict[str, Any]]:
    """The same jobs, each for so many seconds."""
    result = copy.deepcopy([dict(job) for job in jobs])
    for job in result:
        job["spec"]["template"]["metadata"]["annotations"]["kueue-fleet.dev/run-seconds"] = str(seconds)
    return result


def test_a_second_up_changes_nothing(mixed: Mixed) -> None:
    assert mixed.lab.up().unchanged, mixed.lab.touched()


def test_thirteen_jobs_run_once_on_both_platforms(mixed: Mixed) -> None:
    names = mixed.submit(jobs_in(JOBS))
    mixed.wait_until_finished(names)
    places = mixed.witnesses.jobs
    assert len(names) == 13
    assert all(places[worker].names().keys() & set(names) for worker in (GKE, PARIS))
    assert mixed.ran_once(names)


def test_jobs_go_on_while_the_link_is_cut_and_none_is_lost_or_runs_twice(mixed: Mixed) -> None:
    """For less than workerLostTimeout, and each job has one worker: a copy that waits for quota can start there too."""
    jobs = jobs_in(JOBS)
    small, others = jobs[:QUOTA], jobs[QUOTA:]
    names = mixed.submit(lasting(small, 30))
    wait_until(lambda: mixed.have_one_worker_each(names), PATIENCE_SECONDS)
    mixed.link.shut()
    names += mixed.submit(others)
    mixed.wait_until_connected("False")
    wait_until(lambda: not mixed.active(PARIS), PATIENCE_SECONDS)
    mixed.link.open()
    mixed.wait_until_connected()
    mixed.wait_until_finished(names)
    assert mixed.ran_once(names)


def without_paris(fleet: dict[str, Any]) -> None:
    """Take the worker out of the file, with its flavor."""
    fleet["clusters"] = [entry for entry in fleet["clusters"] if entry["name"] != PARIS]
    fleet["multiKueue"]["workers"].remove(PARIS)
    fleet["flavors"] = [item for item in fleet["flavors"] if item["name"] != "t4-paris"]
    [group] = fleet["clusterQueues"][0]["resourceGroups"]
    group["flavors"] = [each for each in group["flavors"] if each["name"] != "t4-paris"]


def test_a_worker_is_drained_removed_and_added_while_jobs_run(mixed: Mixed) -> None:
    """As docs/tasks/drain-a-worker.md has it; the cluster stays, without Kueue."""
    file = mixed.lab.stack_file.read_text()
    names = mixed.submit(lasting(jobs_in(JOBS), 12))
    wait_until(lambda: mixed.active(PARIS), PATIENCE_SECONDS)
    queue = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/gpu"
    mixed.lab.clients.merge(PARIS, queue, {"spec": {"stopPolicy": "Hold"}})
    wait_until(lambda: not mixed.active(PARIS), PATIENCE_SECONDS)
    names += mixed.submit(lasting(jobs_in(JOBS)[:4], 12))
    mixed.lab.change(without_paris)
    mixed.lab.up()
    left = mixed.lab.session.client.clusters()
    mixed.lab.stack_file.write_text(file)
    # The owner's kubeconfig still has the cluster; that of the rehearsal has those of the file.
    mixed.lab.session.make_existing_clusters(mixed.lab.fleet)
    mixed.lab.up()
    mixed.wait_until_connected()
    names += mixed.submit(jobs_in(JOBS))
    mixed.wait_until_finished(names)
    assert PARIS in {cluster["name"] for cluster in left}
    assert mixed.ran_once(names)
    assert mixed.witnesses.overlaps() == []


def imported(cluster: str, lab: FleetInRehearsal) -> FleetSpec:
    """What `import` writes of a cluster that it reads by itself."""
    kubeconfig = f"--kubeconfig={lab.session.paths.kubeconfig}"
    result = call("import", cluster, "--name=again", f"--kubernetes={cluster}", kubeconfig)
    assert result.returncode == 0, result.stderr
    return parse_fleet_text(result.stdout, "again")


def test_a_fleet_without_gke_runs_jobs_stays_and_leaves_its_cluster(tmp_path_factory: pytest.TempPathFactory) -> None:
    [job] = lasting(jobs_in(JOBS)[:1], 1)
    job["metadata"] |= {"namespace": "research", "labels": {"kueue.x-k8s.io/queue-name": "batch"}}
    requests = {"cpu": "1", "memory": "1Gi"}
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": requests}
    fleet = example("standalone.yaml")
    fleet["clusters"][0]["podMonitors"] = {"labels": {"release": "prometheus"}}
    with up(fleet, tmp_path_factory) as lab:
        [result] = submit_jobs(lab.clients, "lab", [job])

        def is_complete() -> bool:
            [there] = [each for each in jobs_on(lab, "lab") if each["metadata"]["uid"] == result["metadata"]["uid"]]
            return condition(there, "Complete") == "True"

        wait_until(is_complete, PATIENCE_SECONDS)
        [monitor] = lab.clients.list("lab", "monitoring.coreos.com", "v1", "podmonitors")
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        assert monitor["spec"]["podMetricsEndpoints"][0]["authorization"]["credentials"]["key"] == "token"
        assert lab.up().unchanged, lab.touched()
        again = imported("lab", lab)
        assert (again.plain_clusters, again.cluster("lab").pod_monitors) == (
            ("lab",),
            lab.fleet.cluster("lab").pod_monitors,
        )
        [node] = again.cluster("lab").nodes
        assert (node.count, str(node.allocatable["cpu"])) == (1, "8")
        assert [item.name for item in again.cluster_queues] == [entry.name for entry in lab.fleet.cluster_queues]
        lab.run(lambda project: project.destroy())
        assert [cluster["name"] for cluster in lab.session.client.clusters()] == ["lab"]
