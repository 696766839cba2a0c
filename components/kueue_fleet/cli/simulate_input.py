"""What `simulate` reads, made ready to run: a stack and its jobs, Kubernetes objects, or a generator's file.

Each function reads its files once, and returns what makes a simulation of them with some fields changed. Both raise
SimulationError, CommandError or SpecError with every problem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kueue_admission.cli import console
from kueue_admission.cli.input_files import read_objects, read_text
from kueue_admission.forms import SpecError
from kueue_admission.forms.yaml_text import load_document
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.models import as_model, read_data
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.what_if import Change, apply_changes, apply_to_documents
from kueue_fleet.cli.explain_input import tell_notes
from kueue_fleet.cli.fleet_files import load_fleet, today
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.calendar_pools import fleet_at
from kueue_fleet.fleet_file.parse import fleet_part
from kueue_fleet.gke.prices import Prices

JOB_FIELDS: Final = ("jobs", "waits", "reclaims", "outages", "stockOuts", "steps", "begin")
"""What --what-if changes in the workload file; everything else is the stack's."""

Prepare = Callable[[Sequence[Change]], Prepared]
"""Makes the simulation with these changes."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says of every simulation."""

    delays: Delays
    until: float | None
    seed: int
    fair_sharing: bool
    prices: Prices
    as_published: bool = False


def of_stack(stack: Path, workload: Path | None, manifests: Path | None, options: Options) -> Prepare:
    """The fleet of a stack with the jobs of a workload file, and those given as Kubernetes objects.

    Raises:
        SimulationError: the workload file is none.
    """
    from kueue_fleet.simulation.fleet import prepare_fleet
    from kueue_fleet.simulation.job_problems import Sources
    from kueue_fleet.simulation.workload_file import WorkloadFile

    text = read_text(stack)
    fleet = load_fleet(stack, as_published=options.as_published, text=text)
    source = console.source_name(workload) if workload is not None else ""
    jobs = {} if workload is None else read_data(read_text(workload, "a workload file"), source)
    if isinstance(jobs, dict) and {"config", "clusters"} & set(jobs):
        raise SimulationError(
            [f"{source}: is a fleet, not a workload file; --workload takes the jobs, STACK the fleet"]
        )
    given = [] if manifests is None else read_objects(manifests)

    def prepare(changes: Sequence[Change]) -> Prepared:
        of_jobs = [change for change in changes if change.root in JOB_FIELDS]
        of_fleet = [change for change in changes if change not in of_jobs]
        sources = Sources(_changed(console.source_name(stack), of_fleet), _changed(source, of_jobs))
        file = as_model(apply_changes(jobs, of_jobs), sources.jobs, WorkloadFile)
        other = (
            fleet
            if file.begin is None
            else load_fleet(stack, as_published=options.as_published, text=text, at=file.begin)
        )
        if of_fleet:
            data = fleet_part(load_document(text, console.source_name(stack))).data
            try:
                other = parse_fleet(apply_changes(data, of_fleet), as_published=options.as_published)
            except SpecError as refused:
                raise SimulationError(f"{sources.fleet}: {problem}" for problem in refused.problems) from None
            other = fleet_at(other, file.begin or today())
        return prepare_fleet(
            other,
            file,
            options.delays,
            until=options.until,
            seed=options.seed,
            manifests=given,
            sources=sources,
            prices=options.prices,
        )

    return prepare


def of_generator(path: Path, options: Options) -> Prepare:
    """What a generator.yaml of Kueue's performance harness creates."""
    from kueue_admission.simulate.generator import generate, prepare_generated

    data = read_data(read_text(path, "a generator.yaml of Kueue's performance harness"), console.source_name(path))

    def prepare(changes: Sequence[Change]) -> Prepared:
        name = _changed(console.source_name(path), changes)
        generated = generate(apply_changes(data, changes), name, fair_sharing=options.fair_sharing)
        return prepare_generated(generated, options.delays, until=options.until, seed=options.seed)

    return prepare


def of_objects(path: Path, options: Options) -> Prepare:
    """The Kubernetes objects in a file or a folder."""
    from kueue_admission.simulate.raw import prepare_objects, read_raw

    documents = read_objects(path)

    def prepare(changes: Sequence[Change]) -> Prepared:
        raw = read_raw(apply_to_documents(documents, changes), fair_sharing=options.fair_sharing)
        if not changes:
            tell_notes(raw.notes)
        return prepare_objects(raw, options.delays, until=options.until, seed=options.seed)

    return prepare


def _changed(source: str, changes: Sequence[Change]) -> str:
    return f"{source} with --what-if" if changes else source
