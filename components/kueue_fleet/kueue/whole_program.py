"""What only a whole program tells of its single components: names of others, namespaces, and cohorts in a cycle.

It is judged once, when the body of the program has ended, for each cluster as far as providers tell. What a program
does not declare may exist without it, so that each finding is a warning.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import pulumi

from kueue_admission.forms import Problem
from kueue_admission.forms.manifest import Manifest, inside
from kueue_admission.forms.suggest import instead
from kueue_fleet.fleet_file.rules.commands import NOT_CHECKED
from kueue_fleet.in_programs import run_of_program


@dataclass
class _Cluster:
    """What a program declares on one cluster, and what it refers to there by name."""

    names: dict[str, set[str]] = field(default_factory=dict)
    """Of objects, by kind."""
    parents: dict[str, Any] = field(default_factory=dict)
    """Of cohorts, by name."""
    references: list[tuple[str, str, str]] = field(default_factory=list)
    """Path, kind and name."""


_CLUSTERS: "WeakKeyDictionary[Any, dict[Any, _Cluster]]" = WeakKeyDictionary()
"""By the run of a program, and the provider."""


def note_object(provider: pulumi.ProviderResource | None, manifest: Manifest, *, alone: bool) -> None:
    """The program declares an object; `alone`: outside of a fleet, which judges itself."""
    kind, metadata = str(manifest["kind"]), manifest["metadata"]
    cluster, name = _cluster(provider), metadata["name"]
    if isinstance(name, str):
        cluster.names.setdefault(kind, set()).add(name)
        if kind == "Cohort":
            cluster.parents[name] = inside(manifest, "spec").get("parentName")
    namespace = metadata.get("namespace")
    if alone and kind == "LocalQueue" and isinstance(namespace, str) and namespace != "default":
        cluster.references.append((f"LocalQueue {name}.namespace", "Namespace", namespace))


def note_reference(provider: pulumi.ProviderResource | None, path: str, kind: str, name: str) -> None:
    """The program names an object, and does not say by its component that it declares it."""
    _cluster(provider).references.append((path, kind, name))


def _cluster(provider: pulumi.ProviderResource | None) -> _Cluster:
    run = run_of_program()
    if run not in _CLUSTERS:
        _CLUSTERS[run] = {}
        _judge_at_the_end(_CLUSTERS[run])
    return _CLUSTERS[run].setdefault(provider, _Cluster())


def _judge_at_the_end(clusters: Mapping[Any, _Cluster]) -> None:
    """Pulumi runs the body of a program in one step of its event loop; a unit test may have no loop."""

    def judge_all() -> None:
        for cluster in clusters.values():
            for problem in dict.fromkeys([*_missing(cluster), *_cycles(cluster.parents)]):
                pulumi.log.warn(problem.coded)

    try:
        asyncio.get_running_loop().call_soon(judge_all)
    except RuntimeError:
        return


def _missing(cluster: _Cluster) -> Iterator[Problem]:
    for path, kind, name in cluster.references:
        known = cluster.names.get(kind, set())
        # A cohort is there as soon as a queue or another cohort names it.
        if known and name not in known and kind != "Cohort":
            wrong = f"this program declares no {kind} {name}"
            yield NOT_CHECKED.at(path, wrong, instead(name, sorted(known), f"{kind}s"))


def _cycles(parents: Mapping[str, Any]) -> Iterator[Problem]:
    """Kueue admits nothing in queues below a cycle (kueue@v0.19.2 pkg/cache/hierarchy/cycle.go)."""
    for first in parents:
        line = [first]
        while isinstance(above := parents.get(line[-1]), str) and above not in line:
            line.append(above)
        if above == first == min(line):
            wrong = f"{' < '.join([*line, first])} is a cycle, and no queue below it admits a job"
            yield NOT_CHECKED.at(f"Cohort {first}.parentName", wrong, "take one parentName out of it")
