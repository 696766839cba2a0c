"""What a rehearsal shows before it builds its engines: what is known without them, and how long they take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kueue_admission.cli import console
from kueue_fleet.cli.fleet_files import load_prices
from kueue_fleet.cli.progress import line
from kueue_fleet.cli.rehearsed_jobs import Jobs
from kueue_fleet.objects import render_cluster

if TYPE_CHECKING:
    from kueue_fleet.cli.given_fleets import GivenFleet
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_rehearsal.session import Session


def show_what_is_known(
    session: Session, given_fleet: GivenFleet, fleet: FleetSpec, jobs: Jobs, build_seconds: float
) -> None:
    """The check, the size of the plan and the simulation of the jobs; then how long the engines take."""
    file = session.stack_file
    objects = sum(len(render_cluster(fleet, cluster)) for cluster in fleet.cluster_names)
    places = f"{console.count(len(fleet.clusters), 'cluster')}, {console.count(len(fleet.node_pools), 'node pool')}"
    line("Check", f"{file}: valid")
    line("Plan", f"{places}, {console.count(objects, 'Kubernetes object')}")
    if jobs.none is None:
        _simulate(session, given_fleet, jobs)
    minutes = console.count(math.ceil(build_seconds / 60), "minute")
    line("First run", f"builds the engines once, about {minutes}; Ctrl-C keeps what is built")
    line("Meanwhile", f"kueue-fleet render {file}   prints every Kubernetes object")
    line("", f"kueue-fleet simulate fleet {file} --help   answers what a change would do")


def _simulate(session: Session, given_fleet: GivenFleet, jobs: Jobs) -> None:
    from kueue_admission.cli.simulate_tables import show
    from kueue_admission.cli.simulations import RunOptions
    from kueue_admission.simulate.delays import Delays
    from kueue_admission.simulate.errors import SimulationError
    from kueue_fleet.cli.simulate_input import of_stack

    run = RunOptions(Delays(), seed=session.settings.seed)
    try:
        result = of_stack(
            given_fleet, None, jobs.file, run, prices=load_prices(None), as_published=session.as_published
        )([]).run()
    except SimulationError as refused:
        # A rehearsal takes kinds of jobs that the simulator does not.
        for problem in refused.problems:
            line("Simulation", f"not known: {problem}")
        return
    line("Simulation", f"of {jobs.file}:")
    console.line()
    show(result)
    console.line()
