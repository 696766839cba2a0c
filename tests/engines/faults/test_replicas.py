"""Faults of the controller's replicas and of what they hear and say; see `test_clusters` for what a round is."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from controller_faults import LEASE, NOISE, QUIET, STORM
from controller_lab import MANAGER, ControllerProcess, apply_object
from faulty_fleet import EU, LEASE_PATH, RECOVERY_SECONDS, REGIONS, RUN_SECONDS, US, Fleet
from one_cluster import KUEUE, Json, wait_until

MERGE = "application/merge-patch+json"


def test_the_leader_is_killed_between_decision_and_write(fleet: Fleet) -> None:
    def kill(*, written: bool) -> None:
        killed = threading.Event()

        def at_the_write() -> bool:
            fleet.replicas[fleet.leader()].kill()
            killed.set()
            return written

        fleet.proxies[fleet.draw.choice([MANAGER, EU, US])].on_patch = at_the_write
        fleet.submit(f"trigger-{fleet.rounds}")
        for name in (EU, US):
            fleet.submit(f"trigger-{fleet.rounds}-{name}", place=name)
        assert killed.wait(RECOVERY_SECONDS)

    fleet.survive(lambda: kill(written=fleet.fault_round % 2 == 0))


def test_both_replicas_are_killed(fleet: Fleet) -> None:
    def kill() -> None:
        for replica in fleet.replicas.values():
            replica.kill()

    fleet.survive(kill)


def test_the_leader_is_stopped_for_longer_than_its_lease_and_goes_on(fleet: Fleet) -> None:
    stopped: list[ControllerProcess] = []

    def stop() -> None:
        replica = fleet.replicas[fleet.leader()]
        replica.process.send_signal(signal.SIGSTOP)
        stopped.append(replica)
        first = fleet.lab.manager.get(LEASE_PATH)["spec"]["holderIdentity"]
        wait_until(lambda: fleet.lab.manager.get(LEASE_PATH)["spec"]["holderIdentity"] != first)

    def go_on() -> None:
        time.sleep(LEASE.lease)
        stopped.pop().process.send_signal(signal.SIGCONT)

    fleet.survive(stop, go_on)


def test_the_lease_is_deleted(fleet: Fleet) -> None:
    fleet.survive(lambda: fleet.lab.manager.delete(LEASE_PATH))


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2], ids=["ahead", "back"])
def test_the_clock_of_the_leader_jumps_an_hour(fleet: Fleet, number: int) -> None:
    """It leads on with that clock, and then the other one, whose clock is right, goes on with what it wrote."""
    jumped: list[ControllerProcess] = []

    def jump() -> None:
        jumped.append(fleet.replicas[fleet.leader()])
        jumped[-1].process.send_signal(number)

    fleet.survive(jump, lambda: jumped.pop().kill())


def test_the_controller_is_upgraded(fleet: Fleet) -> None:
    """One replica after the other ends and comes again with another configuration."""

    def upgrade() -> None:
        fleet.changes = {"prices": {"europe-west4": {"l4": fleet.draw.uniform(1, 2)}, "us-east4": {"l4": 1.5}}}
        standby = fleet.other(fleet.leader())
        for identity in (standby, fleet.other(standby)):
            before = fleet.replicas[identity]
            before.stop()
            wait_until(lambda identity=identity, before=before: fleet.replicas[identity] is not before)  # type: ignore[misc]

    fleet.survive(upgrade)


def test_a_workers_watches_fall_silent(fleet: Fleet) -> None:
    def silence() -> None:
        fleet.proxies[US].held = ("",)

    def again() -> None:
        time.sleep(RUN_SECONDS)
        fleet.proxies[US].held = ()

    fleet.survive(silence, again)


def test_conflicts_dropped_watches_old_versions_and_refused_tokens(fleet: Fleet) -> None:
    def noise() -> None:
        for proxy in fleet.proxies.values():
            proxy.noise = NOISE

    fleet.survive(noise)

    def seen() -> set[str]:
        return {kind for kind in NOISE if any(proxy.counts[kind] for proxy in fleet.proxies.values())}

    # The jobs of the round still run, and the Lease is renewed.
    wait_until(lambda: seen() == set(NOISE))
    print({name: dict(proxy.counts) for name, proxy in fleet.proxies.items()})


def test_a_storm_of_429s(fleet: Fleet) -> None:
    def storm() -> None:
        for proxy in fleet.proxies.values():
            proxy.noise = STORM

    def calm() -> None:
        time.sleep(5.0)
        for proxy in fleet.proxies.values():
            proxy.noise = QUIET

    fleet.survive(storm, calm)


def test_a_token_expires_and_another_one_comes(fleet: Fleet) -> None:
    def expire() -> None:
        for proxy in fleet.proxies.values():
            proxy.noise = {"unauthorized": 1.0}

    def renew() -> None:
        time.sleep(1.0)
        for proxy in fleet.proxies.values():
            proxy.noise = QUIET

    fleet.survive(expire, renew)


def test_the_manager_is_another_cluster_for_a_moment(fleet: Fleet) -> None:
    """Its name leads to another cluster, as when it was replaced, and then to the first one again."""
    real = fleet.proxies[MANAGER].cluster

    def replace() -> None:
        fleet.proxies[MANAGER].cluster = fleet.lab.clusters[EU]
        fleet.proxies[MANAGER].unreachable = True
        time.sleep(0.2)
        fleet.proxies[MANAGER].unreachable = False
        time.sleep(2.0)

        fleet.proxies[MANAGER].cluster = real

    fleet.survive(replace)


def test_a_namespace_is_seen_later_than_its_workloads(fleet: Fleet) -> None:
    def hold() -> None:
        fleet.proxies[MANAGER].held = ("/api/v1/namespaces",)
        name = f"late-{fleet.rounds}"
        label = {"kueue-fleet.dev/regions": REGIONS[EU]}
        for cluster in fleet.lab.clusters.values():
            metadata: Json = {"name": name, "labels": label if cluster is fleet.lab.manager else {}}
            apply_object(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            queue = {"name": "gpu", "namespace": name}
            local = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": queue}
            apply_object(cluster, {**local, "spec": {"clusterQueue": "gpu"}})
        for index in range(2):
            fleet.submit(f"{name}-{index}", namespace=name, place=EU)

    def release() -> None:
        time.sleep(2.0)
        fleet.proxies[MANAGER].held = ()

    fleet.survive(hold, release)


JUNK = ["", "\u0663; drop", "{" * 300, "europe-west4_", "0x10", "-1", "NaN", "\n", "a" * 5000, "\u202e"]


def test_garbage_in_annotations_labels_and_conditions(fleet: Fleet) -> None:
    def litter() -> None:
        for item in fleet.lab.manager.items(f"{KUEUE}/workloads"):
            name, draw = item["metadata"]["name"], fleet.draw
            if f"-r{fleet.rounds}-" not in name:
                continue
            junk = {
                "kueue-fleet.dev/regionz": draw.choice(JUNK),
                "provreq.kueue.x-k8s.io/maxRunDurationSeconds": draw.choice(JUNK),
            }
            path = f"{KUEUE}/namespaces/team/workloads/{name}"
            fleet.lab.manager.request("PATCH", path, {"metadata": {"annotations": junk}}, MERGE)
            condition_of_ours = {
                "type": draw.choice(["kueue-fleet.dev/GivenUp", "kueue-fleet.dev/Other"]),
                "status": draw.choice(["True", "False", "Unknown"]),
                "reason": "Junk",
                "message": draw.choice(JUNK) + "\nworker-us: 0.9 (price x): \x00",
                "lastTransitionTime": draw.choice(["1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z"]),
            }
            status = {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Workload",
                "metadata": {"name": name, "namespace": "team"},
                "status": {"conditions": [condition_of_ours]},
            }
            query = "?fieldManager=junk&force=true"
            fleet.lab.manager.request("PATCH", f"{path}/status{query}", status, "application/apply-patch+yaml")

    fleet.survive(litter)
