"""The `gcp` and `kubernetes` providers as the real Pulumi engine sees them, with the world in this process's memory.

`serve(world)` answers the engine's calls in-process, so that a test can see every operation in order and make some
fail. The world behaves where it matters: a name exists once, and Kueue's objects cannot be deleted while something that
is still there uses them, which on a real cluster is a delete that never ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.protobuf import empty_pb2, json_format, struct_pb2  # type: ignore[import-untyped]
from pulumi import automation as auto
from pulumi.runtime import mocks
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from kueue_fleet.testing import Mocks
from pulumi_mocks import SECRET, SECRET_SIGNATURE

Key = tuple[str, str, str, str]
"""Provider, kind, namespace and name of an object."""


@dataclass(frozen=True)
class Operation:
    """One change that the engine asked for."""

    verb: str
    type: str
    name: str
    """Pulumi name, without that of the fleet."""

    @property
    def short(self) -> str:
        """`create LocalQueue eu/team-a/gpu`."""
        return f"{self.verb} {self.type.rsplit(':', 1)[-1]} {self.name}"


@dataclass
class World:
    """What exists, and what happened to it."""

    objects: dict[Key, dict[str, Any]] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Errors to answer, once each: kind of the object, and text."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def taken_operations(self) -> list[Operation]:
        """The operations since the last call."""
        taken, self.operations = self.operations, []
        return taken


def uses(kind: str, spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and name of everything that an object of Kueue holds on to, by its `spec`."""
    if kind == "ClusterQueue":
        for group in spec.get("resourceGroups", []):
            yield from (("ResourceFlavor", flavor["name"]) for flavor in group["flavors"])
        for check in spec.get("admissionChecksStrategy", {}).get("admissionChecks", []):
            yield "AdmissionCheck", check["name"]
        if "cohortName" in spec:
            yield "Cohort", spec["cohortName"]
    elif kind == "LocalQueue":
        yield "ClusterQueue", spec["clusterQueue"]
    elif kind == "ResourceFlavor" and "topologyName" in spec:
        yield "Topology", spec["topologyName"]


class MemoryProvider(provider_pb2_grpc.ResourceProviderServicer):
    """One provider plugin; each cluster's Kubernetes provider is told apart by its configuration."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._cloud = Mocks()

    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def Attach(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version="999.0.0")

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptOutputs=False)

    def Check(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:
        old, new = plain(request.old_inputs), plain(request.news)
        paths = list(changed_paths(old, new))
        renamed = key_of(request, old) != key_of(request, new)
        kind = provider_pb2.PropertyDiff.UPDATE_REPLACE if renamed else provider_pb2.PropertyDiff.UPDATE
        some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(
            changes=some if paths else none,
            diffs=sorted({path.split(".")[0] for path in paths}),
            replaces=["metadata"] if renamed else [],
            detailedDiff={path: provider_pb2.PropertyDiff(kind=kind, inputDiff=True) for path in paths},
            hasDetailedDiff=True,
        )

    def Create(self, request: Any, context: Any) -> Any:
        inputs = plain(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(id="", properties=request.properties)
        key = key_of(request, inputs)
        with self.world.lock:
            self._fail_if_told_to(key[1], context)
            # An API is enabled, however often that is asked for.
            if key in self.world.objects and key[1] != "Service":
                context.abort(grpc.StatusCode.ALREADY_EXISTS, f"{key[1]} {key[3]} already exists")
            self.world.objects[key] = inputs
            self._note("create", request)
        return provider_pb2.CreateResponse(id="/".join(key), properties=self._outputs(request, inputs))

    def Update(self, request: Any, context: Any) -> Any:
        inputs = plain(request.news)
        if request.preview:
            return provider_pb2.UpdateResponse(properties=request.news)
        key = key_of(request, inputs)
        with self.world.lock:
            self._fail_if_told_to(key[1], context)
            self.world.objects[key] = inputs
            self._note("update", request)
        return provider_pb2.UpdateResponse(properties=self._outputs(request, inputs, "news"))

    def Read(self, request: Any, context: Any) -> Any:
        """What is there under this id, whichever stack made it; nothing for an id that is not known."""
        kind = type_of(request.urn).rsplit(":", 1)[-1]
        for key, inputs in self.world.objects.items():
            ids = {"/".join(key), "/".join(filter(None, (key[2], key[3]))), inputs.get("selfLink")}
            if key[1] == kind and request.id in ids:
                result = struct_pb2.Struct()
                result.update(inputs)
                return provider_pb2.ReadResponse(id=request.id, properties=result, inputs=result)
        return provider_pb2.ReadResponse()

    def Delete(self, request: Any, context: Any) -> Any:
        key = key_of(request, plain(request.old_inputs))
        with self.world.lock:
            for other, inputs in self.world.objects.items():
                if other[0] == key[0] and key[1:2] + key[3:] in set(uses(other[1], inputs.get("spec", {}))):
                    context.abort(
                        grpc.StatusCode.DEADLINE_EXCEEDED, f"{key[1]} {key[3]} is in use by {other[1]} {other[3]}"
                    )
            del self.world.objects[key]
            self._note("delete", request)
        return empty_pb2.Empty()

    def _note(self, verb: str, request: Any) -> None:
        self.world.operations.append(Operation(verb, type_of(request.urn), place_of(request.urn)))

    def _fail_if_told_to(self, kind: str, context: Any) -> None:
        for failure in self.world.failures:
            if failure[0] == kind:
                self.world.failures.remove(failure)
                context.abort(grpc.StatusCode.UNKNOWN, failure[1])

    def _outputs(self, request: Any, inputs: dict[str, Any], field_name: str = "properties") -> struct_pb2.Struct:
        """The inputs as they came, secrets still marked, and what the cloud adds."""
        args = mocks.MockResourceArgs(type_of(request.urn), request.urn.split("::", 3)[3], dict(inputs))
        _, state = self._cloud.new_resource(args)
        outputs = struct_pb2.Struct()
        outputs.CopyFrom(getattr(request, field_name))
        outputs.update({key: value for key, value in state.items() if inputs.get(key) != value})
        return outputs


def type_of(urn: str) -> str:
    """The resource's own type: the last in the URN's chain."""
    return urn.split("::")[2].split("$")[-1]


def place_of(urn: str) -> str:
    """The resource's Pulumi name, without that of the fleet that it is part of; with a cluster in it, from there on."""
    parts = urn.split("::", 3)[3].split("/")
    if "kueue-fleet:index:Fleet$" not in urn:
        return "/".join(parts)
    cluster = (index for index, part in enumerate(parts) if part.startswith(("manager-", "worker-", "batch")))
    return "/".join(parts[next(cluster, 1 if len(parts) > 1 else 0) :])


def key_of(request: Any, inputs: Mapping[str, Any]) -> Key:
    """What the object is in the world: clusters are told apart by the cluster's part of the Pulumi name."""
    resource_type = type_of(request.urn)
    package, kind = resource_type.split(":")[0], resource_type.rsplit(":", 1)[-1]
    metadata = inputs.get("metadata", inputs)
    cluster = place_of(request.urn).split("/")[0] if package == "kubernetes" else package
    place = metadata.get("namespace") or metadata.get("role") or metadata.get("region") or ""
    named = (metadata[item] for item in ("name", "accountId", "member", "service") if item in metadata)
    name = next(named, request.urn.split("::", 3)[3])  # as the provider names what has none
    return (cluster, kind, place, str(name))


def plain(properties: Any) -> dict[str, Any]:
    """Properties as data, with secrets opened."""
    opened = _open(json_format.MessageToDict(properties))
    assert isinstance(opened, dict)
    return opened


def _open(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(SECRET_SIGNATURE) == SECRET:
            return _open(value["value"])
        return {key: _open(part) for key, part in value.items() if key != "__defaults"}
    return [_open(item) for item in value] if isinstance(value, list) else value


def changed_paths(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Paths, in Pulumi's spelling, at which the two differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from changed_paths(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from changed_paths(before, after, f"{path}[{index}]")
    elif old != new:
        yield path


def only_updates(stack: auto.Stack) -> None:
    """It reads neither outputs nor history after an update, for which it runs `pulumi` three times."""
    vars(stack).update(outputs=dict, info=lambda *arguments: object())


@contextmanager
def serve(world: World, provider: type[MemoryProvider] = MemoryProvider) -> Iterator[str]:
    """Serve both providers on loopback; the value is for the engine's PULUMI_DEBUG_PROVIDERS."""
    server = grpc.server(ThreadPoolExecutor(max_workers=32))
    add: Callable[[Any, Any], None] = provider_pb2_grpc.add_ResourceProviderServicer_to_server
    add(provider(world), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"gcp:{port},kubernetes:{port}"
    finally:
        server.stop(grace=None).wait()
