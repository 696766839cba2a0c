"""Stacks and the fleet's controller on the releases of Kueue that clusters name, mixed where the file says so.

`make releases` runs this file; `make test` runs one of these, in test_releases.py.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from controller_lab import JOBS, ControllerLab, controller_lab, fleet_data, job
from fleet_in_rehearsal import ROOT, FleetInRehearsal, copied
from job_files import jobs_in
from kueue_fleet.fleet_file import parse_fleet
from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.fleet_engines import fleet_engines
from kueue_rehearsal.jobs.views import JobState
from kueue_rehearsal.paths import engines_dir
from one_cluster import condition, wait_until
from two_regions import DISPATCH, PRICES, REGIONS

JOBS_SECONDS = 240
RUN_SECONDS = "kueue-fleet.dev/run-seconds"
PODS = "/api/v1/namespaces/kueue-system/pods?labelSelector=control-plane%3Dcontroller-manager"


class Mix(NamedTuple):
    """Which release runs on the manager, and which on the other clusters."""

    manager: str
    others: str

    def give_to(self, fleet: dict[str, Any]) -> None:
        """The file names the releases, as its user would."""
        fleet.setdefault("kueue", {})["version"] = self.others
        for each in fleet["clusters"]:
            if each["role"] == "manager" and self.manager != self.others:
                each["kueue"] = {"version": self.manager}
                if self.others < "0.18" < self.manager:
                    # Workers of 0.17 know the Workload of a Job by its label alone.
                    each["kueue"]["configuration"] = {"featureGates": {"WorkloadIdentifierAnnotations": False}}


MIXED = Mix("0.19.2", "0.18.3")
MIXES = (
    MIXED,
    Mix("0.17.1", "0.17.1"),
    Mix("0.18.3", "0.18.3"),
    Mix("0.18.3", "0.19.2"),
    Mix("0.19.2", "0.17.1"),
    Mix("0.17.1", "0.18.3"),
    Mix("0.17.1", "0.19.2"),
)


def releases_of(fleet: FleetInRehearsal) -> dict[str, set[str]]:
    """By cluster: the images of the pods of Kueue that are ready."""
    return {
        name: {
            re.sub(".*:v", "", pod["spec"]["containers"][0]["image"])
            for pod in fleet.clients.list(name, "", "v1", "pods")
            if pod["metadata"]["namespace"] == "kueue-system" and condition(pod, "Ready") == "True"
        }
        for name in fleet.fleet.cluster_names
    }


def run(fleet: FleetInRehearsal, jobs: Sequence[dict[str, Any]]) -> None:
    """The jobs end well."""
    views = list(fleet.session.run_jobs(fleet.fleet, jobs, JOBS_SECONDS))[-1]
    assert len(views) == len(jobs)
    clusters = list(fleet.fleet.cluster_names)
    unfinished = [view.name for view in views if view.state is not JobState.FINISHED]
    assert not unfinished, fleet.why_unfinished(unfinished, clusters)


@contextmanager
def brought_up(stack: str, mix: Mix, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetInRehearsal]:
    with copied(stack, tmp_path_factory) as fleet:
        fleet.change(mix.give_to)
        fleet.session.prepare_engines(print, fleet_engines(fleet.fleet))
        with fleet.session.exclusive(), fleet.session.running(keep=False):
            fleet.session.stand_ins()
            fleet.up()
            yield fleet


@pytest.mark.parametrize("mix", MIXES, ids="-with-".join)
def test_the_dws_stack_runs_its_jobs(mix: Mix, tmp_path_factory: pytest.TempPathFactory) -> None:
    run_dws_stack(mix, tmp_path_factory)


def run_dws_stack(mix: Mix, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each cluster has its release, and four jobs end well."""
    with brought_up("dws-multikueue", mix, tmp_path_factory) as fleet:
        expected = {each.name: {mix.manager if each.role == "manager" else mix.others} for each in fleet.fleet.clusters}
        wait_until(lambda: releases_of(fleet) == expected)
        jobs = [copy.deepcopy(each) for each in jobs_in(ROOT / "examples" / "dws-multikueue" / "jobs.yaml")[2:6]]
        for each in jobs:
            each["spec"]["template"]["metadata"]["annotations"][RUN_SECONDS] = "2"
        run(fleet, jobs)


@pytest.mark.parametrize("mix", [Mix("0.18.3", "0.18.3"), Mix("0.17.1", "0.17.1")], ids="-with-".join)
def test_the_batch_platform_runs_its_jobs(mix: Mix, tmp_path_factory: pytest.TempPathFactory) -> None:
    with brought_up("batch-platform", mix, tmp_path_factory) as fleet:
        wait_until(lambda: set().union(*releases_of(fleet).values()) == {mix.others})
        jobs = jobs_in(ROOT / "examples" / "batch-platform" / "jobs.yaml")[:8]
        run(fleet, jobs)


# Not a manager of 0.17.1 with newer workers: docs/changed-decisions.md has what that does.
@pytest.mark.parametrize("mix", MIXES[:-2], ids="-with-".join)
def test_the_fleets_controller_lets_each_job_run_once(mix: Mix, tmp_path_factory: pytest.TempPathFactory) -> None:
    asked = fleet_data(REGIONS, prices=PRICES, dispatch=DISPATCH)  # Fallback needs 0.18, as `check` says.
    mix.give_to(asked)
    build_engines(EngineCache(engines_dir()), names=fleet_engines(parse_fleet(asked)))
    with controller_lab(tmp_path_factory.mktemp("lab"), asked) as lab:
        lab.start_controller()
        names = [f"once-{number}" for number in range(4)]
        for name in names:
            lab.submit(job(name, seconds=2))
        wait_until(lambda: all(condition(lab.workload(name) or {}, "Finished") == "True" for name in names))
        wait_until(lambda: {name: ran(lab, name) for name in names} == dict.fromkeys(names, (1, 0)))


def ran(lab: ControllerLab, name: str) -> tuple[int, int]:
    """How many pods of a job ended well, and how many did not."""
    status = lab.manager.get(f"{JOBS}/{name}")["status"]
    return status.get("succeeded", 0), status.get("failed", 0)
