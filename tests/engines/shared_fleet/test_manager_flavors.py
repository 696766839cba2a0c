"""Queues that become two groups, and one again, while their jobs run: the real Kueue keeps all of them."""

from __future__ import annotations

from typing import Any

from controller_lab import GPU, MANAGER, ControllerLab, apply_object, job, restart_kueue
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.objects import render_cluster
from one_cluster import Json, condition, wait_until
from two_regions import data

KINDS = ("ResourceFlavor", "ClusterQueue")


def apply_manager(lab: ControllerLab, cohort: Json, **multi_kueue: Any) -> None:
    """The flavors and queues of the manager, as `pulumi up` would change them; `cohort` is for L4 and B200."""
    result = data()
    for queue in result["clusterQueues"]:
        queue |= cohort if queue["name"] in ("gpu", "dws") else {}
    result["multiKueue"] |= multi_kueue
    for manifest in render_cluster(parse_fleet(result), MANAGER):
        if manifest["kind"] in KINDS:
            apply_object(lab.manager, manifest)


def waits_with_quota(lab: ControllerLab, name: str) -> None:
    """Submit a job for which the workers have no quota left, and the manager has.

    Kueue that has just started does not know that it is to set managedBy (docs/found-in-kueue.md, 7).
    """
    body = job(name)
    body["spec"]["managedBy"] = MULTIKUEUE_CONTROLLER
    lab.submit(body)
    wait_until(lambda: condition(lab.workload(name) or {}, "QuotaReserved") == "True")


def ended(lab: ControllerLab, name: str) -> Json:
    """Waits until a job has ended well, and was never evicted; its flavors."""
    result = wait_until(lambda: w if condition(w := lab.workload(name) or {}, "Finished") == "True" else None, 90)
    assert condition(result, "Evicted") is None
    [assigned] = result["status"]["admission"]["podSetAssignments"]
    return dict(assigned["flavors"])


def test_jobs_keep_their_quota_and_their_worker_when_the_flavor_of_their_queue_changes(lab: ControllerLab) -> None:
    for replica in lab.replicas:
        replica.stop()
    lab.clear()
    for worker in lab.workers:
        lab.set_gpus(worker, 1)
    lab.start_controller("flavors", dispatch={"widenAfter": "2s", "giveUpAfter": "24h"})
    for name in ("one", "two"):
        lab.submit(job(name, seconds=30))
    for name in ("one", "two"):
        lab.placed(name)
    waits_with_quota(lab, "before")
    apply_manager(lab, {"cohortName": "company"})
    # It looks at every Workload again, and at its checks.
    restart_kueue(lab, MANAGER)
    waits_with_quota(lab, "apart")
    apply_manager(lab, {}, formerManagerFlavorNames=["multikueue-l4"])
    waits_with_quota(lab, "after")
    flavors = {name: ended(lab, name)[GPU] for name in ("one", "two", "before", "apart", "after")}
    assert flavors.pop("apart") == "multikueue-l4"
    assert set(flavors.values()) == {"multikueue"}
