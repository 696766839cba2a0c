"""`kueue_fleet.submit`: what the command of that name does, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.jobs.new_job import JobRequest, job_for


def submit(
    fleet: FleetSpec, job: JobRequest, *, kubeconfig: Path | None = None, dry_run: bool = False
) -> Mapping[str, Any]:
    """Make the Job or JobSet that its queue needs, check it, and submit it where the fleet takes jobs.

        fleet = kueue_fleet.parse_fleet_text(Path("fleet.yaml").read_text(), source="fleet.yaml")
        job = kueue_fleet.JobRequest(name="train", queue="gpu", image="trainer:1", gpus=8, nodes=2)
        made = kueue_fleet.submit(fleet, job)

    Args:
        fleet: the fleet.
        job: what to run.
        kubeconfig: has a context of the name of the cluster that takes jobs; default: the one that kubectl uses.
        dry_run: submit nothing.

    Returns:
        The manifest; with `dry_run` as it would be submitted, else as the API server made it.

    Raises:
        SimulationError: a ValueError, with every problem of the job.
        RuntimeError: there is no such context, or the API server refuses the job.
    """
    from kueue_admission.cli.console import CommandError
    from kueue_fleet.cli.contexts import namespace_of
    from kueue_fleet.fleet_simulation.job_findings import check_manifests

    document = Document("", job_for(fleet, job, namespace_of(kubeconfig, fleet)))
    if problems := check_manifests(fleet, [document]).problems:
        raise SimulationError(problems)
    if dry_run:
        return document.data
    from kueue_fleet.cli.live_jobs import Clusters
    from kueue_fleet.cli.submit import create_job

    try:
        return create_job(Clusters("submit", kubeconfig, fleet), fleet.home, document.data)
    except CommandError as failed:
        raise RuntimeError(str(failed)) from None
