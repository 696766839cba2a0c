"""Faults of Kueue and clusters under load: no job is lost, stranded, run twice, or anywhere outside its regions.

There are always more jobs than GPUs, so that copies wait on the workers during every fault, and jobs run longer than
the Lease lasts. A round is: some jobs, the fault, one more job, the end of the fault, and it is over when the job that
came after the fault is nominated; the next round begins while the jobs of this one still run. What must never happen
is looked for after every round, and at the end every job has ended, and all quota is given back.

`make faults ROUNDS=20 SEED=7` does rounds of all faults in turn, in several processes at once, and prints for each its
seed and the time to recover: from the fault to the first nomination of the job that came after it.
"""

from __future__ import annotations

import time

import pytest

from controller_lab import JOBS, MANAGER, restart_kueue, wait_until_connected
from faulty_fleet import EU, RUN_SECONDS, US, Fleet
from one_cluster import KUEUE, Refused, wait_until

CONFIG_PATH = f"{KUEUE}/multikueueconfigs/multikueue"
MERGE = "application/merge-patch+json"


def test_the_managers_kueue_is_restarted_with_another_configuration(fleet: Fleet) -> None:
    def restart() -> None:
        restart_kueue(fleet.lab, MANAGER, gcInterval=f"{fleet.draw.randrange(20, 60)}s")
        wait_until_connected(fleet.lab)

    fleet.survive(restart)


def test_the_managers_api_server_is_killed(fleet: Fleet) -> None:
    def restart() -> None:
        fleet.lab.kill_api_server(MANAGER)
        fleet.lab.mend_api_server(MANAGER)

    fleet.survive(restart)


def test_a_workers_api_server_is_killed(fleet: Fleet) -> None:
    def cut() -> None:
        fleet.lab.kill_api_server(US)

    fleet.survive(cut, lambda: fleet.lab.mend_api_server(US))


@pytest.mark.parametrize("cut_off", ["Kueue", "the controller", "Kueue and the controller"])
def test_a_worker_that_goes_on_is_cut_off(fleet: Fleet, cut_off: str) -> None:
    """What runs there ends meanwhile, so that a copy that waits there gets its quota."""

    def cut() -> None:
        if "Kueue" in cut_off:
            fleet.gates[US].shut()
        if "controller" in cut_off:
            fleet.proxies[US].unreachable = True

    def join() -> None:
        time.sleep(fleet.draw.uniform(RUN_SECONDS, 2 * RUN_SECONDS))
        fleet.gates[US].open()
        fleet.proxies[US].unreachable = False

    fleet.survive(cut, join)


def test_a_worker_is_drained_before_it_leaves_the_queue(fleet: Fleet) -> None:
    """As docs/tasks/drain-a-worker.md has it: no job runs again."""
    queue = f"{KUEUE}/clusterqueues/gpu"

    def set_policy(policy: str) -> None:
        wait_until(lambda: has_policy(policy))

    def has_policy(policy: str) -> bool:
        try:
            return bool(fleet.lab.workers[US].request("PATCH", queue, {"spec": {"stopPolicy": policy}}, MERGE))
        except Refused as error:
            # Its Kueue may still be starting again, since the API server was killed.
            raise AssertionError(str(error)) from None

    def drain() -> None:
        # What is bound to that region waits for it; all others go elsewhere first.
        set_policy("Hold")
        fleet.wait_until_drained(US)
        fleet.lab.manager.request("PATCH", CONFIG_PATH, {"spec": {"clusters": [EU]}}, MERGE)

    def come_back() -> None:
        set_policy("None")
        fleet.lab.manager.request("PATCH", CONFIG_PATH, {"spec": {"clusters": [EU, US]}}, MERGE)

    fleet.survive(drain, come_back)


def test_a_worker_leaves_the_queue_while_jobs_run_there_and_comes_back(fleet: Fleet) -> None:
    """Kueue evicts them on the manager, and leaves them running; they start again only once they have ended there."""

    def leave() -> None:
        wait_until(lambda: [item for item in fleet.lab.workers[US].items(JOBS) if item.get("status", {}).get("active")])
        fleet.lab.manager.request("PATCH", CONFIG_PATH, {"spec": {"clusters": [EU]}}, MERGE)

    def come_back() -> None:
        time.sleep(RUN_SECONDS / 2)
        fleet.lab.manager.request("PATCH", CONFIG_PATH, {"spec": {"clusters": [EU, US]}}, MERGE)

    fleet.survive(leave, come_back, restarts=True)


def test_a_worker_is_destroyed_and_replaced_under_its_name(fleet: Fleet) -> None:
    """An operator says that it is gone; Kueue finds another worker later, and the controller too."""

    def say_gone(*workers: str) -> None:
        annotations = {"kueue-fleet.dev/gone-workers": ",".join(workers)}
        path = "/api/v1/namespaces/kueue-fleet-system"
        fleet.lab.manager.request("PATCH", path, {"metadata": {"annotations": annotations}}, MERGE)

    def replace() -> None:
        fleet.gates[US].shut()
        fleet.lab.supervisor.client.delete_cluster(US)
        fleet.witnesses.lost(US)
        say_gone(US)
        fleet.lab.replace_worker(US)
        fleet.gates[US].server = fleet.lab.clusters[US].server
        fleet.gates[US].open()
        say_gone()

    fleet.survive(replace, restarts=True)
