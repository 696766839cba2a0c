"""What Pulumi needs to take over clusters and node pools that exist, and what the first `pulumi up` changes of them.

The content of a file for `pulumi import --file`, with the names that the components give, and the difference between
what Google Cloud has and what the fleet declares, as the provider's schema sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Final

from kueue_admission.kernel import SpecError
from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.adopt import Adopted, AdoptedCluster, Identity, adopt_fleet
from kueue_fleet.adopt.google_cloud import cluster_state, pool_state
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.resolved_pools import system_pool_entry
from kueue_fleet.fleet_file.parse import read_with_errors
from kueue_fleet.google.plan import ZERO, planned_changes
from kueue_fleet.google.property_paths import Path, render_path
from kueue_fleet.google.provider_facts import Fact, load_facts
from kueue_fleet.google.resource import CloudResource, Ref, filled
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL
from kueue_fleet.google.resources import resources_on

_ACCESS: Final = ("controlPlaneEndpointsConfig", "masterAuthorizedNetworksConfig", "privateClusterConfig")
"""Properties of a cluster by which its API server is reached."""
_PRIVATE_NODES: Final = (("privateClusterConfig", "enablePrivateNodes"), ("networkConfig", "enablePrivateNodes"))
"""Whether nodes have internal addresses only: of a cluster, and of a node pool."""
_ABSENT: Final = (False, 0, "", None)
"""Values that Google's API leaves out."""
_SCALAR: Final = (str, bool, int, float)
_FORMS: Final[Mapping[str, Any]] = {"block": dict, "map": dict, "list": list, "set": list}
"""What a value is, by the kind of its property; of all others it is a scalar."""
_SAID_ONCE: Final[Mapping[str, tuple[str, ...]]] = {
    # What the provider alone knows of a cluster, and what the description of a pool does not have.
    CLUSTER: ("deletionProtection", "initialNodeCount", "minMasterVersion", "project", "removeDefaultNodePool"),
    NODE_POOL: ("cluster", "location", "nodeCount", "project", "version"),
}


@dataclass(frozen=True, slots=True)
class Adoption:
    """A cluster or a node pool that exists and that the fleet declares."""

    path: str
    """CLUSTER, or CLUSTER/POOL."""
    id: str
    """Google's."""
    resource: CloudResource
    """What the fleet declares."""
    differences: tuple[str, ...]
    """What the first `pulumi up` changes in place, as text: property, what is there -> what will be."""
    access: tuple[str, ...]
    """Those of `differences` that change who reaches the API server."""
    nodes_made_private: bool
    """Whether nodes lose their external addresses."""
    replacing: tuple[str, ...]
    """What cannot be changed in place."""


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What `pulumi import` is to take over."""

    adoptions: tuple[Adoption, ...]
    file: Mapping[str, Any]
    """Content of the file for `pulumi import --file`."""


def take_over(clusters: Sequence[AdoptedCluster], identity: Identity) -> tuple[Adopted, ImportPlan | None]:
    """The fleet that Pulumi is to manage, and what it imports; what it would have to replace stays its owner's.

    Without a plan, the file has errors, and it is not known what would be declared.

    Raises:
        SpecError: the clusters cannot be one fleet file.
    """
    adoption = adopt_fleet(clusters, identity)
    plan, stays = _planned(adoption, clusters)
    if stays:
        adoption = adopt_fleet(clusters, replace(identity, stays=stays))
        plan, _ = _planned(adoption, clusters)
    return adoption, plan


def _planned(adopted_adoption: Adopted, clusters: Sequence[AdoptedCluster]) -> tuple[ImportPlan | None, dict[str, str]]:
    """The plan, and what cannot be imported, with the reason."""
    try:
        fleet = read_with_errors(adopted_adoption.data)
        plan = import_plan(fleet, clusters)
    except (SpecError, LookupError):  # What rules would refuse may name what is not there.
        return None, {}
    stays: dict[str, str] = {}
    for adoption in plan.adoptions:
        cluster, _, pool = adoption.path.partition("/")
        if adoption.replacing:
            # The fleet makes the system pool of a cluster that it manages, so the two go together.
            path = cluster if pool == system_pool_entry(fleet.cluster(cluster)).name else adoption.path
            stays.setdefault(
                path, f"`pulumi up` would replace {adoption.path} to change {', '.join(adoption.replacing)}"
            )
    return plan, stays


def import_plan(fleet: FleetSpec, clusters: Sequence[AdoptedCluster]) -> ImportPlan:
    """What of `clusters` the fleet declares: every described cluster and pool that is not marked as existing."""
    resources = resources_on(fleet)
    by_key = {resource.key: resource for resource in resources}
    adoptions = []
    for resource in resources:
        if resource.read is None and resource.type in _SAID_ONCE:
            inputs = _known(resource.properties, by_key)
            for path, state in _description(resource.type, inputs, clusters):
                adoptions.append(_adoption(path, resource, inputs, state))
    return ImportPlan(tuple(adoptions), {"resources": list(_entries(adoptions, fleet))})


def _known(properties: Mapping[str, Any], resources: Mapping[str, CloudResource]) -> Any:
    """Properties as a preview has them: of another resource what was asked for, and not what Google adds."""

    def of_ref(ref: Ref) -> Any:
        return filled(resources[ref.resource].properties.get(ref.output, UNKNOWN), of_ref, joined)

    def joined(parts: list[Any]) -> Any:
        return UNKNOWN if any(part is UNKNOWN for part in parts) else "".join(parts)

    return filled(properties, of_ref, joined)


def _description(
    token: str, inputs: Mapping[str, Any], clusters: Sequence[AdoptedCluster]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The path of what the resource is to be, and the properties that it has."""
    for cluster in clusters:
        if cluster.description is None:
            continue
        if token == CLUSTER and inputs["name"] == cluster.name:
            yield cluster.name, cluster_state(cluster.description)
        for pool in cluster.node_pools if token == NODE_POOL else ():
            if (inputs["cluster"], inputs["name"]) == (cluster.name, pool["name"]):
                yield f"{cluster.name}/{pool['name']}", pool_state(pool)


def _adoption(path: str, resource: CloudResource, choices: Mapping[str, Any], state: Mapping[str, Any]) -> Adoption:
    cluster, _, pool = path.partition("/")
    facts = load_facts().resources[resource.type]
    state = _with_zeros(state, facts)
    if resource.type == CLUSTER:
        # The provider leaves labels that the program does not name alone.
        labels = state.get("resourceLabels") or {}
        state["resourceLabels"] = {key: labels[key] for key in choices["resourceLabels"] if key in labels}
    elif taints := (state.get("nodeConfig") or {}).get("taints"):
        # So are taints, of which GKE adds some.
        named = {taint["key"] for taint in choices["nodeConfig"].get("taints") or ()}
        state["nodeConfig"]["taints"] = [taint for taint in taints if taint["key"] in named]
    inputs = _without_zeros(choices, state, facts)
    changes = planned_changes(resource.type, state, inputs, (*resource.ignore_changes, *_SAID_ONCE[resource.type]))
    texts: dict[bool, list[str]] = {False: [], True: []}
    access: list[str] = []
    made_private = False
    for at, change in sorted(changes.items(), key=lambda item: render_path(item[0])):
        before, after = _short(_at(state, at)), _short(_at(inputs, at))
        if before == after:
            # Only the provider's default is new, which is what Google has where it says nothing.
            continue
        texts[change.replaces].append(f"{render_path(at)} {before} -> {after}")
        if at in _PRIVATE_NODES:
            made_private = True
        elif resource.type == CLUSTER and at[0] in _ACCESS:
            access.append(texts[change.replaces][-1])
    id_ = f"projects/{choices['project']}/locations/{choices['location']}/clusters/{cluster}"
    id_ += f"/nodePools/{pool}" if pool else ""
    return Adoption(path, id_, resource, tuple(texts[False]), tuple(access), made_private, tuple(texts[True]))


def _with_zeros(state: Mapping[str, Any], facts: Mapping[str, Fact]) -> dict[str, Any]:
    """`state` with the false and zero that Google's API leaves out, in the blocks that it has.

    Without what has another form than the provider gives it, which cannot be compared.
    """
    whole = dict(state)
    for name, fact in facts.items():
        value: Any = whole.get(name)
        if value is None:
            if fact.kind in ZERO:
                whole[name] = ZERO[fact.kind]
        elif not isinstance(value, _FORMS.get(fact.kind, _SCALAR)):
            del whole[name]
        elif fact.kind == "block":
            whole[name] = _with_zeros(value, fact.children)
        elif fact.of_blocks and fact.kind != "map":
            whole[name] = [_with_zeros(item, fact.children) for item in value if isinstance(item, dict)]
        elif isinstance(value, list):
            whole[name] = [item for item in value if isinstance(item, _SCALAR)]
    return whole


def _without_zeros(
    declared_values: Mapping[str, Any], state: Mapping[str, Any], facts: Mapping[str, Fact]
) -> dict[str, Any]:
    """`declared_values` without what is false or zero where Google's API, which leaves such values out, has none."""
    kept_values: dict[str, Any] = {}
    for name, value in declared_values.items():
        there = state.get(name)
        if isinstance(value, dict) and name in facts and facts[name].kind == "block":
            inner = _without_zeros(value, there if isinstance(there, Mapping) else {}, facts[name].children)
            if inner or there is not None:
                kept_values[name] = inner
        elif value not in _ABSENT or there not in _ABSENT or value == there:
            kept_values[name] = value
    return kept_values


def _at(value: Any, path: Path) -> Any:
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part] if part < len(value) else None
        else:
            return None
    return value


def _short(value: Any) -> str:
    if value is UNKNOWN:
        return "what the fleet makes"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return "nothing" if value in ("", None) else str(value).lower() if isinstance(value, bool) else str(value)


def _entries(adoptions: Sequence[Adoption], fleet: FleetSpec) -> Iterator[dict[str, Any]]:
    """Every component above what is imported, then that; named so that no two resources have the same name."""
    done: set[str] = set()
    for adoption in adoptions:
        above: dict[str, str] = {}
        for type_, name in _components(adoption, fleet):
            entry = _entry(type_, name, above)
            above = {"parent": entry["name"]}
            if entry["name"] not in done:
                done.add(entry["name"])
                yield {**entry, "component": True}
        resource = adoption.resource
        yield {**_entry(resource.type, resource.name, above), "id": adoption.id, "version": version("pulumi-gcp")}


def _components(adoption: Adoption, fleet: FleetSpec) -> Iterator[tuple[str, str]]:
    """The types and names of the components around a cluster or a node pool, the outermost first."""
    cluster, _, pool = adoption.path.partition("/")
    yield "kueue-fleet:index:Fleet", fleet.name
    yield f"kueue-fleet:index:{fleet.cluster(cluster).role.capitalize()}Cluster", f"{fleet.name}/{cluster}"
    if pool:
        yield "kueue-fleet:index:NodePool", adoption.resource.name


def _entry(type_: str, name: str, above: Mapping[str, str]) -> dict[str, Any]:
    return {"type": type_, "name": f"{name} ({type_})", "logicalName": name, **above}
