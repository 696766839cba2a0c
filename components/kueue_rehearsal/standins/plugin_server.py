"""What every plugin process does: serve gRPC on loopback, tell the engine the port, log to the engine, end with it.

And what every provider answers alike.

A plugin ends on SIGINT or SIGTERM (how the engine stops it) and when its parent is gone, so that a killed `pulumi`
leaves nothing behind.
"""

from __future__ import annotations

# ruff: noqa: N802  (the names are the protocol's)
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn, TypeVar

import grpc  # type: ignore[import-untyped]
from google.protobuf import empty_pb2, struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
)

from kueue_fleet.google.property_paths import Change, Path, render_path
from kueue_rehearsal.standins.plugin_errors import PluginError

MAX_THREADS: Final = 64
"""Upper limit of requests served at once; threads are made as they are needed."""
PARENT_CHECK_SECONDS: Final = 1.0
"""How often a plugin looks whether Pulumi is still there."""
STOP_SECONDS: Final = 3.0
"""For requests to end and tidy up, once they are asked to; the engine kills a plugin after 5 s."""
CHANNEL_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
)
"""Options of gRPC that Pulumi's messages need."""

P = TypeVar("P")
Q = TypeVar("Q")
A = TypeVar("A")


def standin_version(version: str) -> str:
    """The version a stand-in reports: that of the SDK it serves, marked as not the real plugin's."""
    return f"{version}+standin"


def check_response(inputs: struct_pb2.Struct, failures: Iterable[tuple[str, str]]) -> provider_pb2.CheckResponse:
    """The answer to Check: the inputs, and each property that is refused with the reason."""
    check_failures = [provider_pb2.CheckFailure(property=key, reason=reason) for key, reason in failures]
    return provider_pb2.CheckResponse(inputs=inputs, failures=check_failures)


def diff_response(changes: Mapping[Path, Change], *, delete_first: bool) -> provider_pb2.DiffResponse:
    """The answer to Diff; with `delete_first`, a resource that is replaced is deleted before the new one is made."""
    replaces = sorted(render_path(path) for path, change in changes.items() if change.replaces)
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if changes else provider_pb2.DiffResponse.DIFF_NONE,
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and delete_first,
        detailedDiff={
            render_path(path): provider_pb2.PropertyDiff(kind=provider_pb2.PropertyDiff.Kind.ValueType(int(change)))
            for path, change in changes.items()
        },
        hasDetailedDiff=True,
        diffs=sorted({render_path(path[:1]) for path in changes}),
    )


def serve(add_to_server: Callable[[grpc.Server], None], on_stop: Callable[[], None]) -> int:
    """Serves until the engine or its death ends it; returns the exit code.

    The port is printed as the first line of standard output, which is how the engine learns it.
    """
    parent = os.getppid()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    server = grpc.server(ThreadPoolExecutor(max_workers=MAX_THREADS), options=CHANNEL_OPTIONS)
    add_to_server(server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    while not stop.wait(PARENT_CHECK_SECONDS):
        if os.getppid() != parent:
            break
    on_stop()
    server.stop(grace=STOP_SECONDS).wait(STOP_SECONDS)
    sys.stdout.flush()
    # Requests that wait for a cluster would keep the interpreter alive until they time out.
    os._exit(0)


class EngineLog:
    """The engine's log: what is written here is shown beside the resource it is about."""

    def __init__(self, engine_address: str | None) -> None:
        self._stub: engine_pb2_grpc.EngineStub | None = None
        self._address = engine_address

    def attach(self, engine_address: str) -> None:
        """Uses another engine from now on."""
        self._address, self._stub = engine_address, None

    def status(self, urn: str, message: str) -> None:
        """Shows `message` while the operation runs, and not afterwards."""
        self._log(engine_pb2.INFO, urn, message, ephemeral=True)

    def warning(self, urn: str, message: str) -> None:
        """Warns the user."""
        self._log(engine_pb2.WARNING, urn, message, ephemeral=False)

    def _log(self, severity: Any, urn: str, message: str, *, ephemeral: bool) -> None:
        if not self._address:
            return
        if self._stub is None:
            channel = grpc.insecure_channel(self._address, options=CHANNEL_OPTIONS)
            self._stub = engine_pb2_grpc.EngineStub(channel)
        request = engine_pb2.LogRequest(severity=severity, message=message, urn=urn, ephemeral=ephemeral)
        try:
            self._stub.Log(request, timeout=5)
        except grpc.RpcError as error:
            print(f"the engine took no log message ({error.code()}): {message}", file=sys.stderr, flush=True)


class StandInProvider(provider_pb2_grpc.ResourceProviderServicer):
    """The part of the provider protocol that has nothing to do with resources."""

    def __init__(self, version: str, log: EngineLog) -> None:
        self._version = version
        self._log = log
        self._stop = threading.Event()

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        """Answers what the provider understands."""
        self._log.attach(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, supports_autonaming_configuration=True)

    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Uses another engine's log."""
        self._log.attach(request.address)
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """The version served, marked as a stand-in's."""
        return plugin_pb2.PluginInfo(version=standin_version(self._version))

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Ends every wait."""
        self.cancel()
        return empty_pb2.Empty()

    def cancel(self) -> None:
        """Ends every wait; also for the end of the process."""
        self._stop.set()


def serve_provider(provider_class: type[StandInProvider], version: str, arguments: list[str]) -> int:
    """Serves a provider for the engine whose address is the last argument; returns the exit code."""
    provider = provider_class(version, EngineLog(arguments[-1] if arguments else None))

    def add(server: grpc.Server) -> None:
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)

    return serve(add, provider.cancel)


def refusing(method: Callable[[P, Q, grpc.ServicerContext], A]) -> Callable[[P, Q, grpc.ServicerContext], A]:
    """A method of a plugin whose PluginErrors end the request: the user reads their text."""

    @functools.wraps(method)
    def answer(plugin: P, request: Q, context: grpc.ServicerContext) -> A:
        try:
            return method(plugin, request, context)
        except PluginError as error:
            fail(context, error)

    return answer


def fail(context: grpc.ServicerContext, error: PluginError) -> NoReturn:
    """Ends the request with `error`."""
    context.abort(grpc.StatusCode.UNKNOWN, str(error))
    raise AssertionError("abort returned")
