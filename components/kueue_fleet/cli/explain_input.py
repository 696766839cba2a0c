"""What `explain` looks at: clusters as they were dumped, or as a simulation leaves them at some second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kueue_fleet.cli import console
from kueue_fleet.cli.simulate import read_objects

if TYPE_CHECKING:
    # The other commands start without the admission core.
    from kueue_fleet.admission.engine import Engine
    from kueue_fleet.admission.from_kueue import Parsed
    from kueue_fleet.admission.model import Objects, Snapshot
    from kueue_fleet.simulation.records import Record
    from kueue_fleet.simulation.result import Result

_NAMED = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?)=(.+)")


class Cluster(NamedTuple):
    """One cluster's objects as they were read, and what the core makes of them.

    `names` has the keys of the workloads by every name they go by: their own, and those of the jobs that own them.
    """

    name: str
    source: str
    manifests: list[Mapping[str, Any]]
    snapshot: Snapshot
    names: dict[str, list[str]]


class Moment(NamedTuple):
    """What a simulation leaves at a second: its clusters, the one to which jobs are submitted first, and the records
    of all jobs, also of those that are finished or not there yet."""

    second: float
    clusters: list[Cluster]
    result: Result


def read_dump(text: str, now: float, *, fair_sharing: bool) -> Cluster:
    """The cluster in `[NAME=]PATH`. Raises CommandError with every problem."""
    from kueue_fleet.admission.errors import NotModelledError, ObjectError
    from kueue_fleet.admission.from_kueue import parse_objects
    from kueue_fleet.admission.model import DEFAULT_STRATEGIES, Configuration, Snapshot
    from kueue_fleet.explain.unmanaged import is_unmanaged
    from kueue_fleet.simulation.errors import SimulationError

    named = None if Path(text).exists() else _NAMED.fullmatch(text)
    name, path = (named[1], Path(named[3])) if named else ("", Path(text))
    try:
        documents = read_objects(path)
    except SimulationError as refused:
        raise console.CommandError(_list(path, list(refused.problems))) from None
    places = {_label(document.data): document.where for document in documents}
    manifests = [document.data for document in documents]
    kept = [m for m in _without_stood_for(manifests) if not is_unmanaged(m) and m.get("kind") != "LimitRange"]
    configuration = Configuration(fair_sharing=DEFAULT_STRATEGIES if fair_sharing else None)
    try:
        parsed = parse_objects(kept, configuration)
    except ObjectError as refused:
        raise console.CommandError(_list(path, [_with_place(p, places) for p in refused.problems])) from None
    except NotModelledError as refused:
        raise console.CommandError(_list(path, [_with_place(str(refused), places)])) from None
    cycles = _cycles({cohort.name: cohort.parent for cohort in parsed.objects.cohorts})
    if cycles:
        raise console.CommandError(_list(path, [_with_place(p, places) for p in cycles]))
    snapshot = Snapshot(_with_namespaces(parsed), parsed.workloads, now)
    return Cluster(name, str(path), manifests, snapshot, _names(snapshot, _owners_of_workloads(kept)))


def simulate_dump(path: Path, second: float, *, fair_sharing: bool) -> Moment:
    """The cluster in PATH after so many seconds of virtual time. Raises CommandError with every problem."""
    from kueue_fleet.admission.model import DEFAULT_STRATEGIES, Configuration
    from kueue_fleet.simulation.delays import Delays
    from kueue_fleet.simulation.errors import SimulationError
    from kueue_fleet.simulation.objects_run import simulate_objects
    from kueue_fleet.simulation.raw import read_raw

    configuration = Configuration(fair_sharing=DEFAULT_STRATEGIES if fair_sharing else None)
    engines: dict[str, Engine] = {}
    try:
        raw = read_raw(read_objects(path), configuration)
        result = simulate_objects(raw, Delays(), until=second, engines=engines)
    except SimulationError as refused:
        raise console.CommandError(_list(path, list(refused.problems))) from None
    return Moment(
        second, _as_clusters(engines, f"{path} at second {second:g}", raw.origin + second, result.records), result
    )


def simulate_stack(stack: Path, workload: Path, second: float, seed: int) -> Moment:
    """The fleet of a stack after so many seconds of its workload file. Raises CommandError with every problem."""
    from kueue_fleet.cli.fleet_files import load_fleet, read_text
    from kueue_fleet.simulation.delays import Delays
    from kueue_fleet.simulation.errors import SimulationError
    from kueue_fleet.simulation.fleet import simulate_fleet
    from kueue_fleet.simulation.workload_file import read_workload_file

    fleet = load_fleet(stack)
    engines: dict[str, Engine] = {}
    try:
        file = read_workload_file(read_text(workload), str(workload))
        result = simulate_fleet(fleet, file, Delays(), until=second, seed=seed, engines=engines)
    except SimulationError as refused:
        raise console.CommandError(_list(workload, list(refused.problems))) from None
    return Moment(
        second, _as_clusters(engines, f"{stack} with {workload} at second {second:g}", second, result.records), result
    )


def _as_clusters(engines: Mapping[str, Engine], source: str, now: float, records: Iterable[Record]) -> list[Cluster]:
    jobs = [(record.key, f"{record.namespace}/{record.name}") for record in records]
    found = []
    for name, engine in engines.items():
        snapshot = replace(engine.snapshot(), now=now)
        owners = [(key, job) for key, job in jobs if key in engine.workloads]
        found.append(Cluster(name, source, [], snapshot, _names(snapshot, owners)))
    return found


def _with_namespaces(parsed: Parsed) -> Objects:
    """Every namespace in use has at least the label with its name, as in any cluster."""
    known = dict(parsed.objects.namespaces)
    for workload in parsed.workloads:
        known.setdefault(workload.namespace, (("kubernetes.io/metadata.name", workload.namespace),))
    return replace(parsed.objects, namespaces=tuple(known.items()))


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    found = manifest.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _label(manifest: Mapping[str, Any]) -> str:
    metadata = _metadata(manifest)
    namespace, name = metadata.get("namespace"), metadata.get("name")
    if namespace is None and manifest.get("kind") in ("LocalQueue", "Workload", "Job", "JobSet"):
        namespace = "default"
    return f"{manifest.get('kind')} {namespace}/{name}" if namespace else f"{manifest.get('kind')} {name}"


def _owners(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Kind and `namespace/name` of the objects that own this one."""
    metadata = _metadata(manifest)
    namespace = metadata.get("namespace") or "default"
    references = metadata.get("ownerReferences")
    return [
        (str(owner.get("kind")), f"{namespace}/{owner.get('name')}")
        for owner in (references if isinstance(references, list) else [])
        if isinstance(owner, Mapping)
    ]


def _owners_of_workloads(manifests: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Key of each Workload with the `namespace/name` of each of its owners."""
    return [
        (f"{_metadata(manifest).get('namespace') or 'default'}/{_metadata(manifest).get('name')}", owner)
        for manifest in manifests
        if manifest.get("kind") == "Workload"
        for _, owner in _owners(manifest)
    ]


def _without_stood_for(manifests: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Without Jobs and JobSets for which there is a Workload, and Jobs that belong to a JobSet."""
    stood_for = {owner for m in manifests if m.get("kind") == "Workload" for owner in _owners(m)}

    def is_kept(manifest: Mapping[str, Any]) -> bool:
        kind, metadata = str(manifest.get("kind")), _metadata(manifest)
        if kind not in ("Job", "JobSet"):
            return True
        key = f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
        return (kind, key) not in stood_for and all(owner != "JobSet" for owner, _ in _owners(manifest))

    return [manifest for manifest in manifests if is_kept(manifest)]


def _names(snapshot: Snapshot, owners: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Keys of workloads by their own names and those of their owners, with and without the namespace."""
    names: dict[str, dict[str, None]] = {}
    for target, key in (*((workload.key, workload.key) for workload in snapshot.workloads), *owners):
        for name in (key, key.partition("/")[2]):
            names.setdefault(name, {})[target] = None
    return {name: list(targets) for name, targets in names.items()}


def _cycles(parents: Mapping[str, str | None]) -> list[str]:
    found: dict[frozenset[str], str] = {}
    for name in parents:
        walk: list[str] = []
        current: str | None = name
        while current is not None and current not in walk:
            walk.append(current)
            current = parents.get(current)
        if current is not None:
            cycle = walk[walk.index(current) :]
            text = f"Cohort {current}.spec.parentName: is in a cycle ({' -> '.join([*cycle, current])})"
            found.setdefault(frozenset(cycle), f"{text}; give one of them another parent")
    return list(found.values())


def _with_place(problem: str, places: Mapping[str, str]) -> str:
    """The problem with file and line in front, if it begins with an object that has a place."""
    label = max((label for label in places if problem.startswith(label)), key=len, default=None)
    return problem if label is None else f"{places[label]}: {problem}"


def _list(path: Path, problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0] if str(path) in problems[0] else f"{path}: {problems[0]}"
    shown = [f"  {problem}" for problem in problems[:20]]
    more = [f"  and {len(problems) - 20} more"] if len(problems) > 20 else []
    return "\n".join([f"{path} has {console.count(len(problems), 'error')}:", *shown, *more])
