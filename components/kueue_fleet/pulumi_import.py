"""What Pulumi needs to take over clusters and node pools that exist, and what the first `pulumi up` changes of them.

The content of a file for `pulumi import --file`, with the names that the components give, and the difference between
what Google Cloud has and what the fleet declares, as the provider's schema sees it. The program is run without an
engine, by Pulumi's own mocks, as a preview would see it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pulumi
from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import run_pulumi_func

from kueue_admission.forms import SpecError
from kueue_admission.forms.unknown import UNKNOWN
from kueue_fleet.adopt import Adopted, AdoptedCluster, Identity, adopt_fleet
from kueue_fleet.adopt.google_cloud import cluster_state, pool_state
from kueue_fleet.fleet import Fleet
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.model.resolved_pools import system_pool_entry
from kueue_fleet.google.plan import ZERO, planned_changes, previewed
from kueue_fleet.google.property_paths import Path, render_path
from kueue_fleet.google.provider_facts import CLUSTER, NODE_POOL, Fact, load_facts

_STACK: Final = "pulumi:pulumi:Stack"
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
    urn: str
    differences: tuple[str, ...]
    """What the first `pulumi up` changes in place, as text: property, what is there -> what will be."""
    replacing: tuple[str, ...]
    """What cannot be changed in place."""


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What `pulumi import` is to take over."""

    adoptions: tuple[Adoption, ...]
    file: Mapping[str, Any]
    """Content of the file for `pulumi import --file`."""


@dataclass(frozen=True, slots=True)
class _Declared:
    type: str
    name: str
    parent: str
    inputs: Mapping[str, Any]
    ignored: tuple[str, ...]
    version: str


def take_over(clusters: Sequence[AdoptedCluster], identity: Identity) -> tuple[Adopted, ImportPlan | None]:
    """The fleet that Pulumi is to manage, and what it imports; what it would have to replace stays its owner's.

    Without a plan, the file has errors, and it is not known what would be declared.

    Raises:
        SpecError: the clusters cannot be one fleet file.
    """
    adopted = adopt_fleet(clusters, identity)
    plan, stays = _planned(adopted, clusters)
    if stays:
        adopted = adopt_fleet(clusters, replace(identity, stays=stays))
        plan, _ = _planned(adopted, clusters)
    return adopted, plan


def _planned(adopted: Adopted, clusters: Sequence[AdoptedCluster]) -> tuple[ImportPlan | None, dict[str, str]]:
    """The plan, and what of it cannot be, with the reason."""
    try:
        fleet = parse_fleet(adopted.data)
    except SpecError:
        return None, {}
    plan = import_plan(fleet, clusters)
    stays: dict[str, str] = {}
    for each in plan.adoptions:
        cluster, _, pool = each.path.partition("/")
        if each.replacing:
            # The fleet makes the system pool of a cluster that it manages, so the two go together.
            path = cluster if pool == system_pool_entry(fleet.cluster(cluster)).name else each.path
            stays.setdefault(path, f"`pulumi up` would replace {each.path} to change {', '.join(each.replacing)}")
    return plan, stays


def import_plan(fleet: FleetSpec, clusters: Sequence[AdoptedCluster]) -> ImportPlan:
    """What of `clusters` the fleet declares: every described cluster and pool that is not marked as existing.

    Raises:
        SpecError: the fleet breaks rules.
    """
    declared = _declared(fleet)
    adoptions = []
    for urn, resource in declared.items():
        found = _description(resource, clusters)
        if found is not None:
            path, state = found
            adoptions.append(_adoption(urn, path, resource, state, fleet.project))
    return ImportPlan(tuple(adoptions), {"resources": list(_entries(adoptions, declared))})


def _description(resource: _Declared, clusters: Sequence[AdoptedCluster]) -> tuple[str, dict[str, Any]] | None:
    """The path of what the resource is to be, and the properties that it has."""
    for cluster in clusters:
        if cluster.description is None:
            continue
        if resource.type == CLUSTER and resource.inputs.get("name") == cluster.name:
            return cluster.name, cluster_state(cluster.description)
        for pool in cluster.node_pools if resource.type == NODE_POOL else ():
            if (resource.inputs["cluster"], resource.inputs["name"]) == (cluster.name, pool["name"]):
                return f"{cluster.name}/{pool['name']}", pool_state(pool)
    return None


def _adoption(urn: str, path: str, resource: _Declared, state: Mapping[str, Any], project: str) -> Adoption:
    cluster, _, pool = path.partition("/")
    facts = load_facts().resources[resource.type]
    state = _with_zeros(state, facts)
    if resource.type == CLUSTER:
        # The provider leaves labels that the program does not name alone.
        labels = state.get("resourceLabels") or {}
        state["resourceLabels"] = {key: labels[key] for key in resource.inputs["resourceLabels"] if key in labels}
    inputs = _without_zeros(resource.inputs, state, facts)
    changes = planned_changes(resource.type, state, inputs, (*resource.ignored, *_SAID_ONCE[resource.type]))
    texts: dict[bool, list[str]] = {False: [], True: []}
    for at, change in sorted(changes.items(), key=lambda item: render_path(item[0])):
        texts[change.replaces].append(f"{render_path(at)} {_short(_at(state, at))} -> {_short(_at(inputs, at))}")
    id_ = f"projects/{project}/locations/{resource.inputs['location']}/clusters/{cluster}"
    id_ += f"/nodePools/{pool}" if pool else ""
    return Adoption(path, id_, urn, tuple(texts[False]), tuple(texts[True]))


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
            whole[name] = [_with_zeros(each, fact.children) for each in value if isinstance(each, dict)]
        elif isinstance(value, list):
            whole[name] = [each for each in value if isinstance(each, _SCALAR)]
    return whole


def _without_zeros(declared: Mapping[str, Any], state: Mapping[str, Any], facts: Mapping[str, Fact]) -> dict[str, Any]:
    """`declared` without what is false or zero where Google's API, which leaves such values out, has none."""
    kept: dict[str, Any] = {}
    for name, value in declared.items():
        there = state.get(name)
        if isinstance(value, dict) and name in facts and facts[name].kind == "block":
            inner = _without_zeros(value, there if isinstance(there, Mapping) else {}, facts[name].children)
            if inner or there is not None:
                kept[name] = inner
        elif value not in _ABSENT or there not in _ABSENT:
            kept[name] = value
    return kept


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
        return "{" + ", ".join(f"{key}: {_short(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    return "nothing" if value in ("", None) else str(value).lower() if isinstance(value, bool) else str(value)


def _entries(adoptions: Sequence[Adoption], declared: Mapping[str, _Declared]) -> Iterator[dict[str, Any]]:
    """Every component above what is imported, then that; named so that no two resources have the same name."""
    done: set[str] = set()
    for adoption in adoptions:
        above: list[str] = []
        urn = declared[adoption.urn].parent
        while urn in declared:
            above.append(urn)
            urn = declared[urn].parent
        for each in reversed(above):
            if each not in done:
                done.add(each)
                yield {**_entry(each, declared), "component": True}
        yield {**_entry(adoption.urn, declared), "id": adoption.id, "version": declared[adoption.urn].version}


def _entry(urn: str, declared: Mapping[str, _Declared]) -> dict[str, Any]:
    resource = declared[urn]
    above = {"parent": _name(declared[resource.parent])} if resource.parent in declared else {}
    return {"type": resource.type, "name": _name(resource), "logicalName": resource.name, **above}


def _name(resource: _Declared) -> str:
    return f"{resource.name} ({resource.type})"


class _GoogleCloudOnly(Fleet):
    """A fleet without what is inside its clusters, which is nearly all of it."""

    def _fill(self) -> None:
        self.contents = {}


class _Monitor(mocks.MockMonitor):
    """Keeps what is declared, by URN, and answers as a preview does: what Google adds is not known."""

    def __init__(self) -> None:
        super().__init__(_NoCalls())
        self.declared: dict[str, _Declared] = {}

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """The URN as the engine makes it: with the types of all parents."""
        types = parent.split("::")[2] if parent else _STACK
        whole = type_ if types == _STACK else f"{types}${type_}"
        return f"urn:pulumi:{pulumi.get_stack()}::{pulumi.get_project()}::{whole}::{name}"

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  (the protocol's name)
        """Keep a resource."""
        urn, inputs = self.make_urn(request.parent, request.type, request.name), _read(request.object)
        if request.type != _STACK:
            self.declared[urn] = _Declared(
                request.type,
                request.name,
                request.parent,
                inputs,
                tuple(request.ignoreChanges),
                request.version,
            )
        state = _written(_previewed(request.type, inputs))
        return resource_pb2.RegisterResourceResponse(urn=urn, id=f"{request.name}-id", object=state)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802  (the protocol's name)
        """What is there, and stays its owner's."""
        urn, inputs = self.make_urn(request.parent, request.type, request.name), _read(request.properties)
        return resource_pb2.ReadResourceResponse(urn=urn, properties=_written(_previewed(request.type, inputs)))


def _read(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Properties from the wire as plain data, secrets opened."""
    made: dict[str, Any] = _plain(rpc.deserialize_properties(struct, keep_unknowns=True))
    return made


def _plain(value: Any) -> Any:
    value = rpc.unwrap_rpc_secret(value)
    if isinstance(value, pulumi.output.Unknown):
        return UNKNOWN
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _written(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """The same the other way round."""
    struct = struct_pb2.Struct()
    struct.update(_wired(properties))
    return struct


def _wired(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _wired(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_wired(each) for each in value]
    return rpc.UNKNOWN if value is UNKNOWN else value


class _NoCalls(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        raise AssertionError("the monitor answers by itself")

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"the components call no function, but {args.token}")


def _previewed(token: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return previewed(token, inputs) if token in load_facts().resources else inputs


def _declared(fleet: FleetSpec) -> dict[str, _Declared]:
    """What the program of `stacks/` declares in Google Cloud, by URN."""
    monitor = _Monitor()

    async def main() -> None:
        quiet = logging.Logger("import", logging.CRITICAL)  # `check` says the same of the file.
        mocks.set_mocks(_NoCalls(), "kueue-fleet", "import", preview=True, logger=quiet, monitor=monitor)

        async def body() -> None:
            _GoogleCloudOnly(fleet.name, fleet)

        await run_pulumi_func(body)

    asyncio.run(main())
    return monitor.declared
