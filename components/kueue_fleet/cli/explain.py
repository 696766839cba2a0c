"""`explain`: why a workload is pending, on a dump of live clusters or at a simulated moment; nothing is touched."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.explain import check_options, explain_code, is_code, show
from kueue_admission.cli.input_files import Output, OutputOption, well_formed

if TYPE_CHECKING:
    # The other commands start without the admission core.
    from collections.abc import Callable, Mapping

    from kueue_admission.cli.dumps import Moment
    from kueue_admission.decide.model import Snapshot
    from kueue_admission.explain import Explanation
    from kueue_fleet.fleet_file import FleetSpec


def explain(
    context: typer.Context,
    workload: options.Workload = "",
    objects: options.Dumps = (),  # type: ignore[assignment]
    stack: Annotated[
        Path | None,
        typer.Option(
            "--stack",
            help="Simulate this Pulumi.<env>.yaml or bare fleet YAML, every cluster of it. With --objects: compare the "
            "wait with its goals.",
        ),
    ] = None,
    jobs: Annotated[Path | None, typer.Option("--workload", "-w", help="The jobs that are submitted to it.")] = None,
    second: options.Second = None,
    seed: options.Seed = 0,
    fair_sharing: options.FairSharing = False,
    kueue: options.Kueue = None,
    at: options.PrintedAt = None,
    short: options.Short = False,
    output: OutputOption = Output.text,
) -> None:
    """Explain why a workload is pending: one reason, the numbers, what would change it, and the next step.

    Every listed change was tried: Kueue's rules were applied again with the change. Nothing on a cluster changes.

    With --second, it simulates the objects, or a stack with a workload file, up to that second and explains the state
    then. It is the state that `simulate` shows with the same input, seed and --until.

    \b
    Examples:
      mkdir dump && for kind in resourceflavors cohorts clusterqueues \\
          localqueues admissionchecks topologies multikueueconfigs \\
          multikueueclusters provisioningrequestconfigs workloads \\
          workloadpriorityclasses priorityclasses jobs namespaces nodes \\
          pods limitranges runtimeclasses; \\
          do kubectl get $kind -A -o yaml > dump/$kind.yaml; done
      kubectl get configmap kueue-manager-config -n kueue-system -o yaml \\
          > dump/configuration.yaml
      kueue-fleet explain --objects dump/
      kueue-fleet explain team-a/train-1 --objects dump/
      kueue-fleet explain team-a/train-1 --objects manager=m.yaml \\
          --objects us-east4=e.yaml --output json
      kueue-fleet explain train-3 --stack stacks/Pulumi.prod.yaml \\
          -w jobs.yaml --second 600
      kueue-fleet explain train-3 --objects dump/ --second 600
      kueue-fleet explain train-3 --objects dump/ \\
          --stack stacks/Pulumi.prod.yaml
      kueue-fleet explain KF105
    """
    if is_code(workload):
        from kueue_fleet.fleet_file.rules import FLEET_RULES

        options.refuse_idle(context, "", f"with {workload}, the code of a message")
        explain_code(workload, FLEET_RULES)
        return
    _check_options(context, objects, stack, jobs, second, fair_sharing=fair_sharing)
    check_options(context, workload, objects, second, at, output)
    simulation, decides = None, options.read_kueue(kueue)
    fleet = None if stack is None else cache(partial(_load, stack))
    if second is not None:
        from kueue_admission.cli.dumps import simulate_dump

        simulation = (
            partial(simulate_dump, Path(objects[0]), second, fair_sharing=fair_sharing, kueue=decides)
            if fleet is None or stack is None or jobs is None
            else partial(_simulate_stack, fleet, stack, jobs, second, seed)
        )
    show(
        workload,
        objects,
        at,
        simulation,
        fair_sharing=fair_sharing,
        kueue=decides,
        short=short,
        output=output,
        with_nodes=partial(_beyond_kueue, fleet),
        room_of=None if fleet is None else partial(_room, fleet),
    )


def _load(stack: Path) -> FleetSpec:
    from kueue_fleet.cli.fleet_files import load_fleet

    return load_fleet(stack)


def _room(fleet_of: Callable[[], FleetSpec], snapshot: Snapshot, cluster: str) -> Mapping[tuple[str, str], int]:
    """How much more quota the nodes of its flavors can hold, by the file."""
    from kueue_fleet.fleet_simulation.explained_nodes import room_for_quota

    fleet = fleet_of()
    return room_for_quota(fleet, snapshot, cluster) if cluster in fleet.job_clusters else {}


def _beyond_kueue(
    fleet_of: Callable[[], FleetSpec] | None, snapshot: Snapshot, explanation: Explanation
) -> Explanation:
    """With what nodes are to its pods, and how its wait compares with the goals of the file, where there is one."""
    from kueue_fleet.fleet_file.goals import wait_goals
    from kueue_fleet.fleet_simulation.explained_nodes import nodes_behind_quota, with_nodes

    explanation = with_nodes(snapshot, explanation)
    job = next((workload for workload in snapshot.workloads if workload.key == explanation.workload), None)
    if fleet_of is None or explanation.state in ("Admitted", "Finished"):
        return explanation
    fleet = fleet_of()
    if explanation.cluster in fleet.job_clusters:
        explanation = replace(
            explanation, nodes=(*explanation.nodes, *nodes_behind_quota(fleet, snapshot, explanation))
        )
    if job is None or (explanation.cluster != fleet.home and explanation.cluster in fleet.cluster_names):
        return explanation  # Where no copy of it is, or one waits, which came later.
    return replace(
        explanation, goals=tuple(wait_goals(fleet, job.local_queue, job.priority, job.created, snapshot.now))
    )


def _check_options(
    context: typer.Context,
    objects: list[str],
    stack: Path | None,
    jobs: Path | None,
    second: float | None,
    *,
    fair_sharing: bool,
) -> None:
    """Raises CommandError for options that do not go together."""
    simulates = stack is not None and not objects
    if not (objects or simulates) or simulates != (jobs is not None):
        raise console.mistyped(
            "what to explain is missing, or given twice; give one of: --objects PATH, --stack FILE with --workload FILE"
        )
    if simulates and second is None:
        raise console.mistyped("--stack: give --second SECONDS, the moment to explain")
    if not simulates:
        options.refuse_idle(context, "seed", "with --objects, of which no number is drawn")
    if simulates and fair_sharing:
        raise console.mistyped("--fair-sharing: a stack says so itself, in kueue.configuration")
    if simulates:
        options.refuse_idle(context, "kueue", "with a stack, which says it in kueue.version")


def _simulate_stack(fleet_of: Callable[[], FleetSpec], stack: Path, workload: Path, second: float, seed: int) -> Moment:
    """The fleet of a stack after so many seconds of its workload file. Raises CommandError with every problem."""
    from kueue_admission.cli import simulate_ends
    from kueue_admission.cli.dumps import Moment, as_clusters
    from kueue_admission.simulate.delays import Delays
    from kueue_admission.simulate.result import Result
    from kueue_fleet.cli.simulate_input import read_workload
    from kueue_fleet.dispatch import report_of
    from kueue_fleet.fleet_simulation.fleet import fleet_run
    from kueue_fleet.fleet_simulation.offers import FleetDispatcher
    from kueue_fleet.jobs.problems import Sources

    fleet = fleet_of()
    with well_formed(workload):
        file, place = read_workload(workload)
        run = fleet_run(fleet, file, Delays(), seed=seed, sources=Sources(console.source_name(stack), place))
    end = run.drive(0.0, second)
    result = Result(tuple(run.settle()), 0.0, second, seed, end=end)
    simulate_ends.tell([result])
    engines = {name: run.clusters[name].engine for name in dict.fromkeys((run.home, *run.clusters))}
    source = f"{stack} with {workload} at second {second:g}"
    decisions = run.dispatcher.decisions if isinstance(run.dispatcher, FleetDispatcher) else {}
    reports = {run.home: {key: report_of(decision) for key, decision in decisions.items()}}
    return Moment(second, as_clusters(engines, source, second, result.records, reports), result)
