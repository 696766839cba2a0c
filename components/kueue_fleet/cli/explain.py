"""`explain`: why a workload is pending, from objects of live clusters, without touching the clusters."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kueue_fleet.cli import console
from kueue_fleet.cli.simulate import Output, read_objects
from kueue_fleet.spec.suggest import instead

if TYPE_CHECKING:
    # The other commands start without the admission core.
    from kueue_fleet.admission.from_kueue import Parsed
    from kueue_fleet.admission.model import Objects, Snapshot
    from kueue_fleet.explain import Explanation

_NAMED = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?)=(.+)")


class Cluster(NamedTuple):
    """One cluster's objects as they were read, and what the core makes of them.

    `names` has the keys of the workloads by every name they go by: their own, and those of the jobs that own them.
    """

    name: str
    path: Path
    manifests: list[Mapping[str, Any]]
    snapshot: Snapshot
    names: dict[str, list[str]]


def register(app: typer.Typer) -> None:
    """Add the command of this module to APP."""
    app.command()(explain)


def explain(
    workload: Annotated[
        str, typer.Argument(metavar="WORKLOAD", help="namespace/name, or the name, of a Workload or of its Job.")
    ],
    objects: Annotated[
        list[str],
        typer.Option(
            "--objects",
            metavar="[CLUSTER=]PATH",
            help="A YAML or JSON file of Kubernetes objects, a folder of such files, or `-`. For MultiKueue once for "
            "each cluster, with its name: every cluster is explained.",
        ),
    ],
    fair_sharing: Annotated[bool, typer.Option("--fair-sharing", help="Kueue's global fair sharing is on.")] = False,
    at: Annotated[
        datetime | None,
        typer.Option(
            "--at", help="When the objects were printed, in UTC; decides which back-offs run.", show_default="now"
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="`json` prints one document, version 1.")] = (
        Output.text
    ),
) -> None:
    """Say why a workload is pending: one reason, the numbers, what would change it, and the next step.

    Every change that is listed was tried: Kueue's rules were applied again with it made. Nothing on a cluster changes.

    Examples:

        kubectl get -o yaml resourceflavors,cohorts,clusterqueues,localqueues,admissionchecks,topologies,workloads,\
namespaces,nodes -A > dump.yaml

        kueue-fleet explain team-a/train-1 --objects dump.yaml

        kueue-fleet explain team-a/train-1 --objects manager=m.yaml --objects us-east4=e.yaml --output json
    """
    from kueue_fleet.admission.errors import AdmissionError
    from kueue_fleet.explain import render_json, render_text

    now = time.time() if at is None else at.replace(tzinfo=UTC).timestamp()
    clusters = [_read(text, now, fair_sharing=fair_sharing) for text in objects]
    try:
        found = _explain(clusters, workload)
    except AdmissionError as refused:
        raise console.CommandError(str(refused)) from None
    if output is Output.json:
        typer.echo(json.dumps(render_json(found), indent=2))
    else:
        typer.echo(f"\n{'-' * 80}\n\n".join(render_text(explanation) for explanation in found), nl=False)


def _read(text: str, now: float, *, fair_sharing: bool) -> Cluster:
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
    return Cluster(name, path, manifests, snapshot, _names(snapshot, kept))


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


def _names(snapshot: Snapshot, manifests: list[Mapping[str, Any]]) -> dict[str, list[str]]:
    names: dict[str, dict[str, None]] = {}

    def add(key: str, target: str) -> None:
        for name in (key, key.partition("/")[2]):
            names.setdefault(name, {})[target] = None

    for workload in snapshot.workloads:
        add(workload.key, workload.key)
    for manifest in manifests:
        if manifest.get("kind") == "Workload":
            metadata = _metadata(manifest)
            target = f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
            for _, owner in _owners(manifest):
                add(owner, target)
    return {name: list(targets) for name, targets in names.items()}


def _explain(clusters: list[Cluster], wanted: str) -> list[Explanation]:
    from kueue_fleet.explain import explain as explain_on
    from kueue_fleet.explain import explain_elsewhere
    from kueue_fleet.explain.unmanaged import explain_unmanaged

    home = next((cluster for cluster in clusters if wanted in cluster.names), None)
    if home is None:
        for cluster in clusters:
            unmanaged = explain_unmanaged(cluster.manifests, wanted, cluster=cluster.name)
            if unmanaged is not None:
                return [unmanaged]
        known = [name for cluster in clusters for name in cluster.names if ("/" in name) == ("/" in wanted)]
        paths = ", ".join(str(cluster.path) for cluster in clusters)
        raise console.CommandError(f"{paths}: there is no workload {wanted}; {instead(wanted, known, 'workloads')}")
    targets = home.names[wanted]
    if len(targets) > 1:
        raise console.CommandError(
            f"{home.path}: {wanted} may be {', '.join(targets[:8])}; name one with its namespace", exit_code=2
        )
    key = targets[0]
    workload = next(w for w in home.snapshot.workloads if w.key == key)
    return [
        explain_on(cluster.snapshot, key, cluster=cluster.name)
        if any(w.key == key for w in cluster.snapshot.workloads)
        else explain_elsewhere(cluster.snapshot, workload, cluster=cluster.name)
        for cluster in clusters
    ]


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
