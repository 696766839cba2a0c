"""The same jobs as two releases of Kueue decide them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.fleets import fleet_data
from tests.simulation.objects import API, cluster, documents, job, queue

from kueue_admission.simulate.errors import SimulationError
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_simulation.other_release import Compared, compare_dump, compare_jobs
from kueue_fleet.jobs.workload_file import WorkloadFile

SHARES = {"admissionFairSharing": {"usageHalfLifeTime": "30s"}}


def fleet(version: str = "0.18.3", **configuration: Any) -> FleetSpec:
    return parse_fleet(fleet_data(kueue={"version": version, "configuration": configuration}))


def group(**quotas: str) -> list[dict[str, Any]]:
    """Quotas by flavor; nothing is borrowed of `a`."""
    flavors = [
        {
            "name": name,
            "resources": [{"name": "cpu", "nominalQuota": quota, **({"borrowingLimit": "0"} if name == "a" else {})}],
        }
        for name, quota in quotas.items()
    ]
    return [{"coveredResources": ["cpu"], "flavors": flavors}]


def candidates() -> list[dict[str, Any]]:
    """Flavor a is full and nothing can be preempted, flavor b can be borrowed: scenario `changed-candidates`."""
    fungibility = {
        "whenCanBorrow": "TryNextFlavor",
        "whenCanPreempt": "TryNextFlavor",
        "preference": "PreemptionOverBorrowing",
    }
    lower = {"withinClusterQueue": "LowerPriority"}
    [_, _, local, high] = cluster()
    return [
        *({"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}} for name in "ab"),
        {"apiVersion": API, "kind": "Cohort", "metadata": {"name": "left"}, "spec": {"parentName": "root"}},
        queue(resourceGroups=group(a="2", b="0"), cohortName="left", flavorFungibility=fungibility, preemption=lower),
        queue("other-a", resourceGroups=group(a="2"), cohortName="left"),
        queue("other-b", resourceGroups=group(b="2"), cohortName="root"),
        local,
        high,
        job("first", 0, **{"priority-class": "high"}),
        job("second", 0),
    ]


def small(name: str, **selector: str) -> dict[str, Any]:
    result = job(name, 0, "10", cpu="1")
    result["metadata"]["namespace"] = "team-a"
    result["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "gpu"
    container = result["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"] |= {"memory": "1Gi", "nvidia.com/gpu": "1"}
    result["spec"]["template"]["spec"]["nodeSelector"] = selector
    return result


def said(compared: Compared) -> list[str]:
    return [str(problem) for problem in compared.problems]


def test_a_job_of_a_dump_that_the_later_release_admits() -> None:
    result = compare_dump(fleet("0.19.0"), "0.19.2", documents(*candidates()))
    assert (result.jobs, len(result.differences)) == (2, 1)
    assert said(result) == [
        "test.yaml:9: default/second: is decided differently: with Kueue 0.19.0 Pending; with Kueue 0.19.2 Admitted "
        "with b; see docs/releases.md, and change the job or its queue first where it must not be so"
    ]


def test_the_release_of_a_dump_is_that_of_its_configmap() -> None:
    labels = {"app.kubernetes.io/version": "v0.19.2"}
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system", "labels": labels},
        "data": {"controller_manager_config.yaml": f"apiVersion: config.{API}\nkind: Configuration\n"},
    }
    assert not compare_dump(fleet("0.19.0"), "0.19.2", documents(settings, *candidates())).differences


def test_jobs_of_which_both_releases_decide_the_same_are_counted() -> None:
    result = compare_jobs(fleet(), "0.19.2", WorkloadFile(), documents(small("one"), small("two")))
    assert (result.jobs, result.differences, result.problems) == (2, [], [])


RESERVED = (
    "admissionFairSharing: admission fair sharing that counts from the quota reservation, since Kueue 0.20, is not "
    "modelled, so what Kueue 0.20.0 decides is not known; "
)


def test_what_is_not_modelled_for_a_release_is_refused_by_name() -> None:
    result = compare_jobs(fleet("0.19.2", **SHARES), "0.20.0", WorkloadFile(), documents(small("one")))
    assert result.jobs == 0
    assert [problem.severity for problem in result.problems] == ["error"]
    assert said(result)[0].startswith(RESERVED)


def test_of_a_dump_too() -> None:
    result = compare_dump(fleet("0.19.2", **SHARES), "0.20.0", documents(*candidates()))
    assert said(result)[0].startswith(RESERVED)


def test_jobs_that_are_wrong_are_not_compared() -> None:
    stray = small("one")
    stray["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "none"
    with pytest.raises(SimulationError, match="there is no LocalQueue team-a/none"):
        compare_jobs(fleet(), "0.19.2", WorkloadFile(), documents(stray))


def test_of_a_release_that_never_ran_here_nothing_is_sure() -> None:
    result = compare_jobs(fleet("0.19.2"), "0.20.0", WorkloadFile(), documents(small("one")))
    assert result.notes == (
        "Kueue 0.20.0 never ran here: what it decides is known from its source and changelog alone",
    )
