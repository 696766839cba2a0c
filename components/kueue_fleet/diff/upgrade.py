"""What an upgrade of Kueue does to a fleet: what breaks, what is different by default, and the order of the steps.

Source: the tables of `kueue_admission.releases`, read from kueue@v0.19.2 and other releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

from kueue_admission.api.configuration import overlay
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.names import KUEUE_GROUP
from kueue_admission.kernel.problem import Problem, SpecError
from kueue_admission.kernel.versions import numbers_of
from kueue_admission.read.dumped_configuration import version_in
from kueue_admission.releases import Release, nearest
from kueue_fleet.fleet_file.check import check_fleet
from kueue_fleet.fleet_file.check.releases import BY_ANNOTATION
from kueue_fleet.fleet_file.in_words import in_words, listed
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.installations import ClusterKueue
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.parse import parse_fleet
from kueue_fleet.fleet_file.rules.teams import OLDER_RELEASE, OTHER_DUMP, OTHER_KUEUE, RELEASE_API, RELEASE_SKEW

_Key = TypeVar("_Key")
_CRDS = "apiextensions.k8s.io"
LOOK_AGAIN = "kueue-fleet.dev/look-again"
"""An annotation of Workloads, whose change makes Kueue look at them."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What an upgrade does, from the file and from the objects of a cluster."""

    before: Mapping[str, str]
    """The version on each cluster."""
    to: str
    problems: Sequence[Problem]
    """What the file has and the new release does not take, or does not have; see `object_problems` too."""
    changes: Sequence[str]
    """What is different by default."""
    steps: Sequence[str]
    """What to do, in order."""


@dataclass(frozen=True, slots=True)
class Move:
    """One cluster, or what is left of the fleet, that gets another release."""

    cluster: str
    """Of the whole fleet, the one where jobs are submitted."""
    by_label: bool = False
    """Whether it ties Jobs to their Workloads by a label until all clusters have the release."""
    whole_fleet: bool = False
    """Whether the file has one version from then on."""


def upgrade_of(fleet: FleetSpec, to: str, manifests: Sequence[Mapping[str, Any]] = ()) -> Upgrade:
    """The upgrade of every cluster of `fleet` to the version `to`; `manifests` are objects of its clusters."""
    after = nearest(to)
    before = {cluster.name: fleet.kueue_on(cluster.name).version for cluster in fleet.clusters}
    upgraded_fleet, moves = with_version(fleet, to), upgrade_moves(fleet, to)
    known_problems = check_fleet(fleet)
    # What is different is listed as if it were the release whose rules are checked.
    problems = [problem for problem in known_problems if problem.rule == OTHER_KUEUE]
    problems += [problem for problem in check_fleet(upgraded_fleet) if problem not in known_problems]
    problems += _older(before, to)
    problems += _between(fleet, to, moves)
    problems += _other_release(before, manifests)
    changes = dict.fromkeys(change for name in before for change in _changes(fleet, upgraded_fleet, name))
    steps = _steps(fleet, to, moves, goes_out=bool(_api_losses(before, after)))
    return Upgrade(before, to, problems, list(changes), list(steps))


def _is_older(version: str, than: str) -> bool:
    return numbers_of(version) < numbers_of(than)


def _older(before: Mapping[str, str], to: str) -> Iterator[Problem]:
    if newer := [name for name, version in before.items() if _is_older(to, version)]:
        wrong = f"{to} is older than {listed(list(dict.fromkeys(before[name] for name in newer)))} on {listed(newer)}"
        fix = (
            "go back only if you have to, and rehearse it first: what the newer release wrote is read by the older one"
        )
        yield OLDER_RELEASE.at("kueue.version", wrong, fix)


def _between(fleet: FleetSpec, to: str, moves: Sequence[Move]) -> Iterator[Problem]:
    """Releases that meet between two steps, and do not go together."""
    data, problems = fleet.wire(), dict[Problem, None]()
    for number in range(1, len(moves)):
        try:
            parse_fleet(fleet_after(data, to, moves[:number]))
        except SpecError as refused:
            problems.update(dict.fromkeys(problem for problem in refused.problems if problem.rule == RELEASE_SKEW))
    return iter(problems)


def _other_release(before: Mapping[str, str], manifests: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """The objects are those of a Kueue that the file does not name."""
    version = version_in(manifests)
    if version is not None and version not in before.values():
        wrong = f"{listed(list(dict.fromkeys(before.values())))}, but the Kueue of --objects is {version}"
        yield OTHER_DUMP.at("kueue.version", wrong, "write what runs, or print the cluster again")


def with_version(fleet: FleetSpec, to: str) -> FleetSpec:
    """The fleet with `to` on every cluster."""
    clusters = tuple(
        cluster.model_copy(update={"kueue": ClusterKueue(configuration=cluster.kueue.configuration)})
        for cluster in fleet.clusters
    )
    kueue = fleet.kueue.model_copy(update={"version": to})
    # No copy of the fleet: that would keep what was worked out of the old one.
    fields = {name: getattr(fleet, name) for name in fleet.model_fields_set}
    return FleetSpec(**{**fields, "clusters": clusters, "kueue": kueue})


def _api_losses(before: Mapping[str, str], after: Release) -> list[str]:
    """Versions of Kueue's API that are served now and no longer after it."""
    now = [api for version in before.values() for api in nearest(version).served]
    return [api for api in dict.fromkeys(now) if api not in after.served]


def object_problems(item: Mapping[str, Any], to: str) -> Iterator[Problem]:
    """The API version of an object, or of those that etcd may hold by their definition, that `to` does not serve."""
    after, path = nearest(to), f"{item.get('kind')} {inside(item, 'metadata').get('name')}"
    group, _, api = str(item.get("apiVersion", "")).partition("/")
    if group == KUEUE_GROUP and api not in after.served:
        wrong = f"is in {api}, which Kueue {after.version} does not serve"
        yield RELEASE_API.at(path, wrong, f"write it in {after.served[-1]}")
    elif group == _CRDS and inside(item, "spec").get("group") == KUEUE_GROUP:
        stored_versions = inside(item, "status").get("storedVersions")
        gone = (
            [str(stored_version) for stored_version in stored_versions if stored_version not in after.served]
            if isinstance(stored_versions, list)
            else []
        )
        if gone:
            fix = "run Kueue's hack/migrate-to-v1beta2.sh before the upgrade"
            yield RELEASE_API.at(path, f"may have objects stored in {listed(gone)}", fix)


def _changes(fleet: FleetSpec, fleet_spec: FleetSpec, cluster: str) -> Iterator[str]:
    """What Kueue does otherwise on a cluster by default."""
    before, after = fleet.kueue_on(cluster).release, fleet_spec.kueue_on(cluster).release
    if before == after:
        return
    configurations = (fleet.kueue.configuration, *(cluster.kueue.configuration for cluster in fleet.clusters))
    written_gates = {name for configuration in configurations for name in configuration.feature_gates or {}}
    for name, gate in after.gates.items():
        was = before.gates.get(name)
        if name not in written_gates and gate.on is not (was is not None and was.on):
            yield f"feature gate {name} is {'' if was else 'new and '}{'on' if gate.on else 'off'} by default"
    for behaviour, answer in after.behaviours.items():
        former_answer = before.behaviours.get(behaviour)
        if {former_answer, answer} == {"yes", "no"}:
            yield f"{behaviour}: {former_answer} before, {answer} after"
    built_versions = {row["framework"]: row["version"] for row in before.table("frameworks")}
    for row in after.table("frameworks"):
        if row["framework"] in fleet.operators.frameworks and row["version"] != built_versions.get(row["framework"]):
            yield f"{row['framework']}: built with {row['version']}, before {built_versions.get(row['framework'])}"
    old, new = (dict(_flat("", kueue_configuration(of, cluster))) for of in (fleet, fleet_spec))
    for path, former_value, value in _different(old, new):
        yield f"Configuration {path}: {value or 'not written'}, before {former_value or 'not written'}"
    defaults = (
        {row["field"]: row["value"] for row in release_facts.table("defaults")} for release_facts in (before, after)
    )
    for path, former_value, value in _different(*defaults):
        # A section by itself says nothing; its fields do.
        if value != "{}" and not any(f"{added_path}.".startswith(f"{path}.") for added_path in new):
            yield f"Configuration {path}: {value or 'not set'} by default, before {former_value or 'not set'}"
    yield from _chart_changes(before, after)


def _chart_changes(before: Release, after: Release) -> Iterator[str]:
    tables = (
        {(row["part"], row["name"]): row["value"] for row in release_facts.table("chart")}
        for release_facts in (before, after)
    )
    for (part, name), was, value in _different(*tables):
        if part == "permission":
            yield f"Kueue may {value or 'do nothing with'} {name.removeprefix('/')}, before {was or 'nothing'}"
        elif part != "value" or not (_is_elsewhere(name) or (value == "false" and not was)):
            yield f"{part} {name} of the chart: {value or 'not there'}, before {was or 'not there'}"


def _is_elsewhere(value: str) -> bool:
    """Whether a value of the chart is about images, which the version says, or a page that no fleet has."""
    return ".image." in value or value.startswith("kueueViz.")


def _different(before: Mapping[_Key, str], after: Mapping[_Key, str]) -> Iterator[tuple[_Key, str, str]]:
    """What is different: key, value before and after, empty where there is none."""
    for key in dict.fromkeys((*after, *before)):
        values = before.get(key, ""), after.get(key, "")
        if values[0] != values[1]:
            yield key, *values


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(f"{path}.{name}" if path else name, item)
    else:
        yield path, in_words(value)


def upgrade_moves(fleet: FleetSpec, to: str) -> list[Move]:
    """In which order the clusters get the release that they do not have yet; empty where all have it.

    A worker has to know all that the manager writes there: up, the workers go first, and back, the manager does.
    """
    home, manager = fleet.home, fleet.manager
    behind = [name for name in fleet.cluster_names if fleet.kueue_on(name).version != to]
    if not behind:
        return []
    by_label = (
        manager is not None
        and BY_ANNOTATION in nearest(to).gates
        and BY_ANNOTATION not in fleet.kueue_on(manager.name).release.gates
    )
    ordered_clusters = [*fleet.worker_names, home]
    if _is_older(to, fleet.kueue_on(home).version):
        ordered_clusters = [home, *fleet.worker_names]
    *others, last = [name for name in ordered_clusters if name in behind] or [home]
    first = [Move(home, by_label=True)] if by_label else []
    return [*first, *map(Move, others), Move(last, whole_fleet=True)]


def fleet_after(data: Mapping[str, Any], to: str, moves: Sequence[Move]) -> dict[str, Any]:
    """A fleet's file, as plain data, after the first of its moves."""
    data_after: dict[str, Any] = deepcopy(dict(data))
    if moves and moves[-1].whole_fleet:
        data_after["kueue"] = {**(data_after.get("kueue") or {}), "version": to}
    for cluster in data_after["clusters"]:
        own = dict(cluster.get("kueue") or {})
        move = next((move for move in moves if move.cluster == cluster["name"]), None)
        if moves and moves[-1].whole_fleet:
            own.pop("version", None)
        elif move is not None:
            gates = {"featureGates": {BY_ANNOTATION: False}} if move.by_label else {}
            own |= {"version": to, "configuration": overlay(own.get("configuration") or {}, gates)}
        if own or "kueue" in cluster:
            cluster["kueue"] = own
    return data_after


def _steps(fleet: FleetSpec, to: str, moves: Sequence[Move], *, goes_out: bool) -> Iterator[str]:
    if not moves:
        yield f"Nothing: every cluster has {to}."
        return
    gate, by_label = f"featureGates.{BY_ANNOTATION}", moves[0].by_label
    yield f"Read the release notes of every minor release up to {to}, and write what the problems above say."
    if by_label:
        yield f"Upgrade the manager before the workers, with {gate} false: 0.17 ties a Job to its Workload by a label."
    elif len(moves) > 1 and fleet.home in (moves[0].cluster, moves[-1].cluster):
        order = "manager before the workers" if moves[0].cluster == fleet.home else "workers before the manager"
        yield f"Change the {order}: a worker has to know all that the manager writes there."
    if goes_out:
        yield "Write manifests and clients in v1beta2, and run Kueue's hack/migrate-to-v1beta2.sh on every cluster."
    for move in moves:
        change, there = f"Set clusters[{move.cluster}].kueue.version to {to}", "there"
        if move.whole_fleet:
            change = f"Set kueue.version to {to}, remove those of the clusters{' and that gate' if by_label else ''}"
            there = f"on {move.cluster}"
        elif move.by_label:
            change += f" and its configuration.{gate} to false"
        stops = "no job is admitted" if move.cluster == fleet.home else f"{move.cluster} admits no job"
        yield f"{change}, and run pulumi up: until Kueue is back {there}, {stops}; running jobs continue."
    if fleet.multi_kueue is not None and fleet.multi_kueue.dispatcher == "AllAtOnce":
        command = f"kubectl annotate workloads --all -A --overwrite {LOOK_AGAIN}=$(date +%s)"
        yield f"Let Kueue look at jobs that it left meanwhile (docs/found-in-kueue.md, 14): {command} on {fleet.home}."
