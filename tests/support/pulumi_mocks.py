"""A Pulumi engine in memory that records everything a program registers.

`run(program)` builds the graph; the `Recording` it returns knows each resource's inputs, which of them are secret,
parent, dependencies, provider, protection, aliases, timeouts and hooks. No process, no file, no network.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest import mock

import pulumi
from pulumi.runtime import mocks, resource, rpc
from pulumi.runtime.proto import resource_pb2, source_pb2
from pulumi.runtime.settings import SETTINGS, reset_options
from pulumi.runtime.stack import run_pulumi_func

from kueue_fleet.testing import Mocks

T = TypeVar("T")

_LOOK_AGAIN_SECONDS = 5.0
"""After how long a program that waits is asked whether something in it has failed."""
SECRET_SIGNATURE = "4dabf18193072939515e22adb298388d"
PACKAGE = "kueue-fleet:index:"
SECRET = "1b47061264138c4ac30d75fd1eb44270"


@dataclass(frozen=True)
class Recorded:
    """One registered resource."""

    urn: str
    type: str
    name: str
    custom: bool
    parent: str
    inputs: dict[str, Any]
    """As the provider would see them, secrets opened."""
    secrets: frozenset[str]
    """Dotted paths of the inputs that were sent as secrets."""
    dependencies: tuple[str, ...]
    property_dependencies: dict[str, tuple[str, ...]]
    provider: str
    """URN of the provider, without its id; empty: the default provider."""
    aliases: tuple[str, ...]
    protect: bool
    retain_on_delete: bool
    delete_before_replace: bool
    deleted_with: str
    ignore_changes: tuple[str, ...]
    replace_on_changes: tuple[str, ...]
    replace_with: tuple[str, ...]
    secret_outputs: tuple[str, ...]
    timeouts: dict[str, str]
    hooks: tuple[str, ...]
    version: str
    outputs: dict[str, Any] = field(default_factory=dict)
    """Outputs of a component, after `register_outputs`."""

    @property
    def place(self) -> str:
        """The name without that of the fleet that it is part of: `worker-a/kueue`."""
        return self.name.partition("/")[2] if self.in_fleet else self.name

    @property
    def in_fleet(self) -> bool:
        """Whether it is part of a fleet, and not the fleet itself; such names begin with the fleet's."""
        return "kueue-fleet:index:Fleet$" in self.urn and "/" in self.name

    @property
    def short(self) -> str:
        """`Type place`, for messages and goldens."""
        return f"{self.type.rsplit(':', 1)[-1]} {self.place}"


class Recording:
    """Every resource of a run, by URN."""

    def __init__(self, resources: Mapping[str, Recorded], hooks: tuple[str, ...], read: tuple[str, ...] = ()) -> None:
        self.resources = dict(sorted(resources.items()))
        self.hooks = hooks
        self.read = read
        """Ids of what was there already."""

    def __iter__(self) -> Iterator[Recorded]:
        return iter(self.resources.values())

    def __len__(self) -> int:
        return len(self.resources)

    def of_type(self, suffix: str) -> list[Recorded]:
        """Resources whose type ends with `suffix`: `ClusterQueue`, or a whole token."""
        return [r for r in self if r.type == suffix or r.type.rsplit(":", 1)[-1] == suffix]

    def one(self, type_suffix: str, name: str | None = None, *, custom: bool | None = None) -> Recorded:
        """The only resource of that type, name and nature; fails with what there is."""
        result = [
            r
            for r in self.of_type(type_suffix)
            if name in (None, r.name, r.place) and (custom is None or r.custom == custom)
        ]
        assert len(result) == 1, f"{type_suffix} {name}: found {[r.short for r in result or self]}"
        return result[0]

    def children(self, parent: Recorded) -> list[Recorded]:
        """Direct children."""
        return [r for r in self if r.parent == parent.urn]

    def waits_for(self, resource: Recorded) -> set[str]:
        """URNs of everything that must exist before `resource` and outlive it: transitively, with parents."""
        seen: set[str] = set()
        queue = [resource.urn]
        while queue:
            current = self.resources.get(queue.pop())
            if current is None:
                continue
            for urn in (*current.dependencies, current.parent, current.provider):
                if urn and urn not in seen:
                    seen.add(urn)
                    queue.append(urn)
        return seen

    def is_before(self, first: Recorded, second: Recorded) -> bool:
        """Whether `first` is made before `second`, and destroyed after it."""
        return first.urn in self.waits_for(second)

    def graph(self) -> list[dict[str, Any]]:
        """Types, names, parents and dependencies, for a golden file."""
        return [
            {
                key: value
                for key, value in {
                    "resource": r.short,
                    "parent": self._short(r.parent),
                    "depends on": sorted(self._short(urn) for urn in r.dependencies),
                    "provider": self._short(r.provider),
                    "deleted with": self._short(r.deleted_with),
                    "protect": r.protect,
                }.items()
                if value
            }
            for r in self
        ]

    def _short(self, urn: str) -> str:
        return self.resources[urn].short if urn in self.resources else urn.rsplit("::", 1)[-1]


class RecordingMonitor(mocks.MockMonitor):
    """pulumi's mock monitor, with real URNs and a memory."""

    def __init__(self, outputs: mocks.Mocks) -> None:
        super().__init__(outputs)
        self.recorded: dict[str, Recorded] = {}
        self.hooks: list[str] = []
        self.read: list[str] = []

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """The URN as the engine makes it: the types of all ancestors, not only of the parent."""
        chain = parent.split("::")[2] if parent else ""
        if chain and chain != "pulumi:pulumi:Stack":
            type_ = f"{chain}${type_}"
        return f"urn:pulumi:{pulumi.get_stack()}::{pulumi.get_project()}::{type_}::{name}"

    def RegisterResource(self, request: Any) -> Any:
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        assert urn not in self.recorded, f"registered twice: {urn}"
        above = self.recorded.get(request.parent)
        if above is not None and above.type.startswith(PACKAGE):
            # By this prefix the engine finds what is in a component that is called otherwise now.
            assert request.name.startswith(above.name), f"would be made again by a rename: {urn}"
        inputs, secrets = _open_secrets(rpc.deserialize_properties(request.object, keep_unknowns=True))
        self.recorded[urn] = _recorded(request, urn, inputs, frozenset(secrets))
        args = mocks.MockResourceArgs(request.type, request.name, inputs, request.provider, custom=request.custom)
        id_, state = self.mocks.new_resource(args)
        assert id_ is not None
        self.resources[urn] = mocks.MockMonitor.ResourceRegistration(urn, id_, state)
        return resource_pb2.RegisterResourceResponse(
            urn=urn, id=id_, object=_at_once(rpc.serialize_properties(state, {}))
        )

    def ReadResource(self, request: Any) -> Any:
        """What is there already; of it, only the id is known."""
        inputs, _ = _open_secrets(rpc.deserialize_properties(request.properties, keep_unknowns=True))
        args = mocks.MockResourceArgs(request.type, request.name, inputs, request.provider, request.id, custom=True)
        id_, state = self.mocks.new_resource(args)
        urn = self.make_urn(request.parent, request.type, request.name)
        assert urn not in self.recorded, f"registered twice: {urn}"
        self.read.append(request.id)
        assert id_ is not None
        self.resources[urn] = mocks.MockMonitor.ResourceRegistration(urn, id_, state)
        return resource_pb2.ReadResourceResponse(urn=urn, properties=_at_once(rpc.serialize_properties(state, {})))

    def Invoke(self, request: Any) -> Any:
        """A function of a provider; this thread has no loop either."""
        arguments = rpc.deserialize_properties(request.args, keep_unknowns=True)
        answer, _ = self.mocks.call(mocks.MockCallArgs(token=request.tok, args=arguments, provider=request.provider))
        return resource_pb2.ResourceInvokeResponse(**{"return": _at_once(rpc.serialize_properties(answer, {}))})

    def RegisterResourceOutputs(self, request: Any) -> Any:
        if request.urn in self.recorded:
            outputs, _ = _open_secrets(rpc.deserialize_properties(request.outputs, keep_unknowns=True))
            self.recorded[request.urn].outputs.update(outputs)
        return super().RegisterResourceOutputs(request)  # type: ignore[no-untyped-call]

    def RegisterErrorHook(self, request: Any) -> Any:
        assert request.name not in self.hooks, f"hook registered twice: {request.name}"
        self.hooks.append(request.name)
        return super().RegisterErrorHook(request)  # type: ignore[no-untyped-call]


class _Loop(asyncio.SelectorEventLoop):
    """Answers are in memory: a thread for each takes longer than they do."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        answer = self.create_future()
        try:
            answer.set_result(func(*args))
        except Exception as error:
            answer.set_exception(error)
        return answer


@contextmanager
def _garbage_at_the_end() -> Iterator[None]:
    """All that a program makes leads to all else and goes together: Python need not look through it meanwhile.

    It goes at once, since every loop that ends looks through the tasks of all that are still there.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect(1)


def _say_nothing(*_: object, **__: object) -> None:
    pass


def run(
    program: Callable[[], Any],
    *,
    config: Mapping[str, Any] | None = None,
    preview: bool = False,
    project: str = "kueue-fleet",
    stack: str = "test",
    outputs: mocks.Mocks | None = None,
    stack_traces: bool = False,
) -> Recording:
    """Run `program` as Pulumi would and return what it registered; an Output that it returns is awaited.

    `stack_traces`: the SDK makes one of each resource too, which takes two fifths of the time; none is recorded. Nor
    are debug messages, and requests need no thread: an eighth of the rest.

    `outputs` says what the providers answer; by default `Mocks`.

    Raises whatever the program raises, also from inside an `apply`.
    """
    monitor = RecordingMonitor(outputs or Mocks())

    async def main() -> None:
        reset_options()
        pulumi.runtime.set_mocks(Mocks(), project=project, stack=stack, preview=preview, monitor=monitor)
        values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in (config or {}).items()}
        pulumi.runtime.set_all_config(values)
        SETTINGS.rpc_manager.clear()
        SETTINGS.outputs.clear()

        async def body() -> None:
            await pulumi.Output.from_input(program()).future()
            # Pulumi itself waits for one output at a time and looks at all of them each time, which is slow for many.
            # One that follows from what failed is never done: Pulumi then raises what failed.
            while pending := [output for output in SETTINGS.outputs if not output.done()]:
                if SETTINGS.rpc_manager.unhandled_exception is not None:
                    return
                await asyncio.wait(pending, timeout=_LOOK_AGAIN_SECONDS)

        await run_pulumi_func(body)

    traced = resource._get_stack_trace if stack_traces else source_pb2.StackTrace
    with (
        _garbage_at_the_end(),
        asyncio.Runner(loop_factory=_Loop) as runner,
        mock.patch.object(resource, "_get_stack_trace", traced),
        mock.patch.object(pulumi.log, "debug", _say_nothing),
    ):
        runner.run(main())
    return Recording(monitor.recorded, tuple(monitor.hooks), tuple(monitor.read))


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """What `coroutine` returns; it is given plain data and so has nothing to wait for, and this thread has no loop."""
    try:
        coroutine.send(None)
    except StopIteration as completed:
        result: T = completed.value
        return result
    raise AssertionError("plain data had to be waited for")


def _recorded(request: Any, urn: str, inputs: dict[str, Any], secrets: frozenset[str]) -> Recorded:
    timeouts = request.customTimeouts
    return Recorded(
        urn=urn,
        type=request.type,
        name=request.name,
        custom=request.custom,
        parent="" if "::pulumi:pulumi:Stack::" in request.parent else request.parent,
        inputs=inputs,
        secrets=secrets,
        dependencies=tuple(sorted(request.dependencies)),
        property_dependencies={key: tuple(sorted(value.urns)) for key, value in request.propertyDependencies.items()},
        provider=request.provider.rpartition("::")[0],
        aliases=tuple(alias.spec.type or alias.urn for alias in request.aliases),
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        delete_before_replace=request.deleteBeforeReplace,
        deleted_with=request.deletedWith,
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        replace_with=tuple(request.replace_with),
        secret_outputs=tuple(request.additionalSecretOutputs),
        timeouts={key: getattr(timeouts, key) for key in ("create", "update", "delete") if getattr(timeouts, key)},
        hooks=tuple(request.hooks.on_error),
        version=request.version,
    )


def _open_secrets(value: Any, path: str = "") -> tuple[Any, set[str]]:
    """`value` with secrets replaced by what they hold, and the dotted paths where they were."""
    if isinstance(value, Mapping):
        if value.get(SECRET_SIGNATURE) == SECRET:
            opened, inner = _open_secrets(value["value"], path)
            return opened, {path, *inner}
        parts = {key: _open_secrets(part, f"{path}.{key}" if path else key) for key, part in value.items()}
        return {key: part for key, (part, _) in parts.items()}, {s for _, results in parts.values() for s in results}
    if isinstance(value, list):
        items = [_open_secrets(item, f"{path}[{index}]") for index, item in enumerate(value)]
        return [item for item, _ in items], {s for _, result in items for s in result}
    return value, set()
