"""`status --page`: a live page about a fleet for administrators, on this machine alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kueue_admission.cli import console
from kueue_fleet.cli.contexts import check_readable
from kueue_fleet.cli.fleet_files import load_fleet, load_prices
from kueue_fleet.cli.live_fleet import FleetReader, patience
from kueue_fleet.cli.past_goals import check_store
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.prices import Prices

EVERY = 1.0
"""Seconds between two looks at the clusters, unless others are given."""
_HISTORY_EVERY = timedelta(minutes=5)

if TYPE_CHECKING:
    from kueue_fleet.cli.live_jobs import LiveJob
    from kueue_fleet.cli.ui_server import View


def serve_page(
    file: Path, kubeconfig: Path | None, every: float, port: int, prices: Path | None, store: str | None
) -> None:
    """Serve the page until Ctrl-C; it only reads, with the rights of the kubeconfig's user.

    Raises:
        CommandError: what is given cannot be read, or aiohttp is missing.
    """
    fleet, table = load_fleet(file), load_prices(prices)
    check_readable(kubeconfig)
    check_store(store)
    try:
        from kueue_fleet.cli.ui_server import PageServer
    except ImportError:
        raise console.CommandError("status --page: needs aiohttp; run: pip install 'kueue-fleet[controller]'") from None
    # What is wrong with the kubeconfig is said at once; what fails later is said on the page.
    history = History(fleet, store)
    reader = FleetReader("status", fleet, kubeconfig, patience(every), nodes=True, again=True)
    server = PageServer(
        look(fleet, reader, table, history),
        lambda: look(fleet, reader, table, history),
        {"job": partial(explain, fleet, kubeconfig), "logs": partial(logs, fleet, kubeconfig)},
        partial(what_if, fleet, kubeconfig),
    )
    asyncio.run(server.run(port, every, lambda address: console.line(f"Open {address}")))


class History:
    """What the store of a fleet says; it is read again after some minutes, as days are read and not hours."""

    def __init__(self, fleet: FleetSpec, store: str | None) -> None:
        self._fleet, self._store = fleet, store
        self._said: dict[str, Any] = {}
        self._read_at: datetime | None = None

    def at(self, now: datetime) -> dict[str, Any]:
        """Goals and the last hours; no hours without a store. Raises CommandError."""
        from kueue_fleet.cli.past_goals import judged_by, last_hours, read_week

        if self._read_at is None or now - self._read_at > _HISTORY_EVERY:
            past = read_week(self._store, now) if self._store is not None else None
            goals = [verdict.to_dict() for verdict in judged_by(self._fleet, past, now)]
            hours = last_hours(past, now) if past is not None else []
            self._said, self._read_at = {"goals": goals, "hours": hours}, now
        return self._said


def look(fleet: FleetSpec, reader: FleetReader, prices: Prices, history: History) -> View:
    """What the page shows now."""
    from kueue_fleet.cli.status_parts import status_of
    from kueue_fleet.cli.ui_server import View
    from kueue_fleet.status import flavor_tops
    from kueue_fleet.status.jobs import job_rows

    clusters = reader.look()
    now = datetime.now(UTC)  # noqa: TID251 - the edge has the clock
    status = status_of(fleet, clusters, prices, None, now)
    data = replace(status, pending=()).as_json()  # Each of them is among the jobs.
    rows = job_rows(fleet.home, clusters, status.pending, fleet.team_of, now)
    flavors = [asdict(flavor_top) for flavor_top in flavor_tops(fleet, clusters)]
    return View({**data, **history.at(now), "flavors": flavors, "at": now.isoformat(timespec="seconds")}, rows)


def explain(fleet: FleetSpec, kubeconfig: Path | None, namespace: str, name: str) -> str:
    """Why a job waits and what would change it, as `describe` says it, and what happened to it before."""
    from kueue_admission.explain import render_clusters
    from kueue_admission.read.printed import WorkloadState
    from kueue_fleet.fleet_file.goals import wait_goals
    from kueue_fleet.status.job import timeline

    def told(live_job: LiveJob) -> str:
        explanation_text = render_clusters(live_job.explanations(fair_sharing=False))
        unknown = (f"Not known: {problem}" for problem in live_job.problems)
        job, now = live_job.workload, time.time()
        queue_place = job.local_queue, job.spec.data.get("priority"), job.created or now, now
        goals = wait_goals(fleet, *queue_place) if job.state is not WorkloadState.ADMITTED else []
        return "\n".join([explanation_text, *goals, *unknown, "", *timeline(live_job.workload)])

    return _about(fleet, kubeconfig, namespace, name, told)


def logs(fleet: FleetSpec, kubeconfig: Path | None, namespace: str, name: str) -> str:
    """The ends of the logs of a job's pods, from the cluster that runs it."""
    return _about(fleet, kubeconfig, namespace, name, lambda found: found.log_ends())


def what_if(fleet: FleetSpec, kubeconfig: Path | None, changes: Mapping[str, str]) -> str:
    """Who gains and who loses by another quota on a cluster; see `live_what_if`."""
    from kueue_admission.simulate.errors import SimulationError
    from kueue_fleet.cli import live_what_if
    from kueue_fleet.cli.live_jobs import Clusters
    from kueue_fleet.kube.answers import ApiError

    cluster = changes.get("cluster", "")
    if cluster not in fleet.cluster_names:
        return f"Not tried: the fleet has no cluster {cluster!r}; choose one of {', '.join(fleet.cluster_names)}"
    try:
        return live_what_if.what_if(cluster, Clusters("status", kubeconfig, fleet).admission_objects(cluster), changes)
    except (ApiError, console.CommandError, SimulationError) as failed:
        return f"Not tried: {failed}"


def _about(
    fleet: FleetSpec, kubeconfig: Path | None, namespace: str, name: str, text_of: Callable[[LiveJob], str]
) -> str:
    """What `text_of` says of a job; what cannot be known is said in its place."""
    from kueue_fleet.cli.live_jobs import Clusters, job_on, parse_job
    from kueue_fleet.kube.answers import ApiError

    try:
        return text_of(job_on(Clusters("status", kubeconfig, fleet), fleet.home, parse_job(name, namespace)))
    except (ApiError, console.CommandError) as failed:
        return f"Not known: {failed}"
