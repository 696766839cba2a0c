"""`ui`: a live page about a fleet for administrators, on this machine alone."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_admission.cli import console
from kueue_fleet.cli.contexts import Kubeconfig, check_readable
from kueue_fleet.cli.fleet_files import PricesFile, load_fleet, load_prices
from kueue_fleet.cli.live_fleet import FleetReader, patience
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.prices import Prices

if TYPE_CHECKING:
    from kueue_fleet.cli.ui_server import View


def ui(
    file: FleetFile,
    kubeconfig: Kubeconfig = None,
    every: Annotated[float, typer.Option("--every", min=1, help="Seconds between two looks at the clusters.")] = 2.0,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0: a free one.")] = 0,
    prices: PricesFile = None,
) -> None:
    """Show a live fleet as a page in the browser: clusters, flavors, queues, teams, DWS requests, and each job.

    Why a job waits and what would change it are a click away. It only reads, with the rights of the kubeconfig's
    user, and listens on 127.0.0.1 alone, under an address with a secret in it: open the one that it prints. Ctrl-C
    ends it. Needs the extra `controller`.

    \b
    Examples:
      kueue-fleet ui stacks/Pulumi.prod.yaml --kubeconfig kubeconfig
      kueue-fleet ui . --port 8090 --every 10
    """
    fleet, table = load_fleet(file), load_prices(prices)
    check_readable(kubeconfig)
    try:
        from kueue_fleet.cli.ui_server import PageServer
    except ImportError:
        raise console.CommandError("ui needs aiohttp; pip install 'kueue-fleet[controller]'") from None
    # What is wrong with the kubeconfig is said at once; what fails later is said on the page.
    reader = FleetReader("ui", fleet, kubeconfig, patience(every), nodes=True)
    server = PageServer(
        look(fleet, reader, table),
        lambda: look(fleet, reader, table),
        lambda space, name: explain(fleet, kubeconfig, space, name),
    )
    asyncio.run(server.run(port, every, lambda address: console.line(f"Open {address}")))


def look(fleet: FleetSpec, reader: FleetReader, prices: Prices) -> View:
    """What the page shows now."""
    from kueue_fleet.cli.status import status_of
    from kueue_fleet.cli.ui_server import View
    from kueue_fleet.status import flavor_tops
    from kueue_fleet.status.jobs import job_rows

    clusters = reader.look()
    now = datetime.now(UTC)  # noqa: TID251 - the edge has the clock
    status = status_of(fleet, clusters, prices, None, now)
    said = {name: value for name, value in status.as_json().items() if name != "pending"}
    rows = job_rows(fleet.home, clusters, status.pending, now)
    flavors = [asdict(each) for each in flavor_tops(fleet, clusters)]
    return View({**said, "flavors": flavors, "at": now.isoformat(timespec="seconds")}, rows)


def explain(fleet: FleetSpec, kubeconfig: Path | None, namespace: str, name: str) -> str:
    """Why a job waits and what would change it, as `describe` says it, and what happened to it before; what cannot be
    known is said in its place."""
    from kueue_admission.explain import render_clusters
    from kueue_fleet.cli.live_jobs import find_job
    from kueue_fleet.kube.answers import ApiError
    from kueue_fleet.status.job import timeline

    try:
        found = find_job("ui", name, fleet.home, namespace, kubeconfig)
        explained = render_clusters(found.explanations(fair_sharing=False))
        unknown = (f"Not known: {problem}" for problem in found.problems)
        return "\n".join([explained, *unknown, "", *timeline(found.workload)])
    except (ApiError, console.CommandError) as failed:
        return f"Not known: {failed}"
