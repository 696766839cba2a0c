"""What only a whole program tells of its single components: names of others, namespaces, and cohorts in a cycle.

It is judged once, when the body of the program has ended, for each cluster as far as providers tell. What a program
does not declare may exist without it, so that each finding is a warning.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import pulumi
from pulumi.output import Unknown

from kueue_admission.api.check_objects import cycle_faults
from kueue_admission.api.selector import LabelSelector
from kueue_admission.kernel import Problem
from kueue_admission.kernel.manifest import Manifest, inside
from kueue_admission.kernel.names import NAMESPACE_NAME_LABEL
from kueue_admission.kernel.read_model import read_stored
from kueue_admission.kernel.suggest import instead
from kueue_fleet.fleet_file.rules.commands import NOT_CHECKED
from kueue_fleet.gke.labels import NODE_POOL
from kueue_fleet.in_programs import declared_pools, run_of_program

_Key = tuple[str, str]
"""Kind and name of an object; of Kueue itself, which gives a cluster the kinds, `KUEUE`."""
_KUEUE: Final = ("KueueInstall", "")


@dataclass
class _Cluster:
    """What a program declares on one cluster, and what it refers to there by name."""

    names: dict[str, set[str]] = field(default_factory=dict)
    """Of objects, by kind."""
    parents: dict[str, Any] = field(default_factory=dict)
    """Of cohorts, by name."""
    references: list[tuple[str, str, str]] = field(default_factory=list)
    """Path, kind and name."""
    pools: dict[str, str] = field(default_factory=dict)
    """Node pools that flavors name."""
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of namespaces."""
    selectors: dict[str, LabelSelector] = field(default_factory=dict)
    """Of namespaces, by the name of the ClusterQueue."""
    entrances: list[tuple[str, str, str]] = field(default_factory=list)
    """LocalQueues, with their namespace and ClusterQueue."""
    made: dict[_Key, pulumi.Resource] = field(default_factory=dict)
    """What others wait for."""
    early: list[tuple[str, _Key]] = field(default_factory=list)
    """Objects, and what they need that was not declared before."""
    is_compared: bool = False
    """Whether it is looked for under another provider."""


_REACHED_BY: Final = ("kubeconfig", "context", "cluster", "render_yaml_to_directory")
"""What of a provider says which cluster it is of."""
_CLUSTERS: "WeakKeyDictionary[Any, dict[Any, _Cluster]]" = WeakKeyDictionary()
"""By the run of a program, and the provider."""
_REACHED: "WeakKeyDictionary[Any, dict[str, str]]" = WeakKeyDictionary()
"""Name of the first provider of each cluster, by the run of a program."""


def note_object(provider: pulumi.ProviderResource | None, manifest: Manifest, *, alone: bool) -> None:
    """The program declares an object; `alone`: outside of a fleet, which judges itself."""
    kind, metadata = str(manifest["kind"]), manifest["metadata"]
    cluster, name = _cluster(provider), metadata["name"]
    if alone and provider is not None and not cluster.is_compared:
        cluster.is_compared = True
        _compare(provider)
    if isinstance(name, str):
        cluster.names.setdefault(kind, set()).add(name)
        _note_content(cluster, kind, name, manifest)
    namespace = metadata.get("namespace")
    if alone and kind == "LocalQueue" and isinstance(namespace, str) and namespace != "default":
        cluster.references.append((f"LocalQueue {name}.namespace", "Namespace", namespace))
        cluster.entrances.append((f"LocalQueue {name}", namespace, str(inside(manifest, "spec").get("clusterQueue"))))


def _compare(provider: pulumi.ProviderResource) -> None:
    """Say, as far as it is known, that another provider is of the same cluster."""
    first = _REACHED.setdefault(run_of_program(), {})

    def compare(settings: list[Any]) -> None:
        if isinstance(settings[0], Unknown):
            return
        # What a provider is not given is unknown in a preview.
        reached_by = json.dumps([None if isinstance(setting, Unknown) else setting for setting in settings])
        name, other = provider._name, first.setdefault(reached_by, provider._name)
        if other != name:
            wrong = f"is of the same cluster as Provider {other}, and names and order are not checked between the two"
            pulumi.log.warn(NOT_CHECKED.at(f"Provider {name}", wrong, "give all components of a cluster one").coded)

    pulumi.Output.all(*(provider.__dict__.get(attribute) for attribute in _REACHED_BY)).apply(
        compare, run_with_unknowns=True
    )


def _note_content(cluster: _Cluster, kind: str, name: str, manifest: Manifest) -> None:
    """What others need of the object, as far as it is known."""
    spec, labels = inside(manifest, "spec"), manifest["metadata"].get("labels") or {}
    selector, pool = spec.get("namespaceSelector"), inside(spec, "nodeLabels").get(NODE_POOL)
    if kind == "Cohort":
        cluster.parents[name] = spec.get("parentName")
    elif kind == "ResourceFlavor" and isinstance(pool, str):
        cluster.pools[name] = pool
    elif kind == "Namespace" and not is_late(labels):
        cluster.labels[name] = {NAMESPACE_NAME_LABEL: name, **labels}
    elif kind == "ClusterQueue" and selector is not None and not is_late(selector):
        cluster.selectors[name] = read_stored(LabelSelector, selector, f"ClusterQueue {name}.namespaceSelector")


def is_late(value: Any) -> bool:
    """Whether something in it is known later."""
    if isinstance(value, Mapping):
        return any(map(is_late, value.values()))
    return any(map(is_late, value)) if isinstance(value, list) else isinstance(value, pulumi.Output)


def note_reference(provider: pulumi.ProviderResource | None, path: str, kind: str, name: str) -> None:
    """The program names an object, and does not say by its component that it declares it."""
    _cluster(provider).references.append((path, kind, name))


def needed_there(
    provider: pulumi.ProviderResource | None, manifest: Manifest, *, of_kueue: bool
) -> list[pulumi.Resource]:
    """What has to be on the cluster before the object, of what the program declares: its namespace, and Kueue."""
    cluster, namespace = _cluster(provider), manifest["metadata"].get("namespace")
    needs = [_KUEUE] if of_kueue else []
    needs += [("Namespace", namespace)] if isinstance(namespace, str) else []
    where = f"{manifest['kind']} {manifest['metadata']['name']}"
    cluster.early += [(where, key) for key in needs if key not in cluster.made]
    return [cluster.made[key] for key in needs if key in cluster.made]


def note_made(provider: pulumi.ProviderResource | None, made: pulumi.Resource, manifest: Manifest | None) -> None:
    """A resource that others wait for: a Namespace, or, without a manifest, the release of Kueue."""
    if manifest is None:
        _cluster(provider).made[_KUEUE] = made
    elif manifest["kind"] == "Namespace":
        _cluster(provider).made["Namespace", str(manifest["metadata"]["name"])] = made


def _cluster(provider: pulumi.ProviderResource | None) -> _Cluster:
    run = run_of_program()
    if run not in _CLUSTERS:
        _CLUSTERS[run] = {}
        _judge_at_the_end(_CLUSTERS[run], declared_pools())
    return _CLUSTERS[run].setdefault(provider, _Cluster())


def _judge_at_the_end(clusters: Mapping[Any, _Cluster], pools: Set[str]) -> None:
    """Pulumi runs the body of a program in one step of its event loop; a unit test may have no loop."""

    def judge_all() -> None:
        for cluster in clusters.values():
            of_names = (*_missing(cluster), *_too_early(cluster), *_without_pool(cluster, pools))
            for problem in dict.fromkeys([*of_names, *_unselected(cluster), *_cycles(cluster.parents)]):
                pulumi.log.warn(problem.coded)

    try:
        asyncio.get_running_loop().call_soon(judge_all)
    except RuntimeError:
        return


def _missing(cluster: _Cluster) -> Iterator[Problem]:
    for path, kind, name in cluster.references:
        known_names = cluster.names.get(kind, set())
        # A cohort is there as soon as a queue or another cohort names it.
        if known_names and name not in known_names and kind != "Cohort":
            wrong = f"this program declares no {kind} {name}"
            yield NOT_CHECKED.at(path, wrong, instead(name, sorted(known_names), f"{kind}s"))


def _without_pool(cluster: _Cluster, pools: Set[str]) -> Iterator[Problem]:
    for flavor, pool in cluster.pools.items() if pools else ():
        if pool not in pools:
            path = f"ResourceFlavor {flavor}.nodeLabels[{NODE_POOL}]"
            yield NOT_CHECKED.at(path, f"this program declares no pool {pool}", instead(pool, sorted(pools), "pools"))


def _unselected(cluster: _Cluster) -> Iterator[Problem]:
    for where, namespace, queue in cluster.entrances:
        labels, selector = cluster.labels.get(namespace), cluster.selectors.get(queue)
        if labels is not None and selector is not None and not selector.matches(labels):
            wrong = f"the namespaceSelector of ClusterQueue {queue} does not match the labels of {namespace}"
            yield NOT_CHECKED.at(where, f"{wrong}, so no job is ever admitted", "change one of them")


def _too_early(cluster: _Cluster) -> Iterator[Problem]:
    for where, key in cluster.early:
        if key in cluster.made:
            wrong = f"{' '.join(filter(None, key))} is declared after it, so that Pulumi may make this one first"
            yield NOT_CHECKED.at(where, wrong, "declare it before")


def _cycles(parents: Mapping[str, Any]) -> Iterator[Problem]:
    """Kueue admits nothing in queues below a cycle (kueue@v0.19.2 pkg/cache/hierarchy/cycle.go)."""
    for name, fault in cycle_faults(
        {name: above if isinstance(above, str) else None for name, above in sorted(parents.items())}
    ):
        yield NOT_CHECKED.at(f"Cohort {name}.parentName", fault.wrong, fault.fix)
