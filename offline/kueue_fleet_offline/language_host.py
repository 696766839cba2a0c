"""Stand-in for `pulumi-language-python`: runs Python programs and Python plugins for the engine.

What only serves code generation, packing, templates and installing of dependencies is refused (gRPC: unimplemented, or
by name).
Source: pulumi sdk v3.250 go/common/resource/plugin/langruntime_plugin.go for what is called when.
"""

# ruff: noqa: N802  (the names are the protocol's)

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final

import grpc  # type: ignore[import-untyped]
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from kueue_rehearsal.standins.plugin_errors import PluginError
from kueue_rehearsal.standins.plugin_server import fail, serve, standin_version
from kueue_rehearsal.standins.property_values import parse_struct

RUNNER: Final = Path(__file__).with_name("program_runner.py")
"""Script that runs a program."""
ALREADY_REPORTED: Final = 32
"""Exit code of a program whose error the user has seen."""
TOOLCHAINS_WITH_OWN_FOLDER: Final = frozenset({"uv", "poetry"})
"""Toolchains that keep their virtual environment in `.venv` of the program, where nothing else is said."""
PLUGIN_FILE: Final = "pulumi-plugin.json"
"""File of a Python package that names a Pulumi plugin."""
READ_BYTES: Final = 65536
"""How much of a program's output is read at once."""


def project_python(options: Mapping[str, Any], root_directory: str) -> str:
    """The interpreter of the project: of `virtualenv` when the project names one, else the rehearsal's own.

    Raises PluginError when the named folder has none, and for options that the stand-in does not have.
    """
    if options.get("typechecker"):
        raise PluginError("Pulumi.yaml: runtime.options.typechecker: the stand-in runs none; remove it")
    virtualenv = options.get("virtualenv")
    if not virtualenv and options.get("toolchain") in TOOLCHAINS_WITH_OWN_FOLDER:
        virtualenv = ".venv"
    if not virtualenv:
        return sys.executable
    folder = Path(root_directory, str(virtualenv))
    python = folder / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise PluginError(f"Pulumi.yaml: runtime.options.virtualenv: no Python in {folder}; create or correct it")
    return str(python)


def site_packages_of(python: str) -> list[Path]:
    """The folders with that interpreter's packages; of the rehearsal's own without starting it."""
    if python == sys.executable:
        return [Path(entry) for entry in sys.path if entry.endswith("site-packages")]
    return sorted(Path(python).parent.parent.glob("lib/python*/site-packages"))


def required_plugins(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """What the installed Pulumi SDKs say of their resource plugins: name, version, server."""
    result = []
    for folder in folders:
        for path in sorted(folder.glob(f"*/{PLUGIN_FILE}")):
            described = json.loads(path.read_text(encoding="utf-8"))
            if described.get("resource") and described.get("name"):
                result.append(described)
    return result


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """The language protocol for Python."""

    def __init__(self, version: str, engine_address: str) -> None:
        self._version = version
        self._engine_address = engine_address
        self._children: set[subprocess.Popen[Any]] = set()
        self._lock = threading.Lock()

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        """Learns where the engine is."""
        self._engine_address = request.engine_address or self._engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """The SDK's version, marked as a stand-in's."""
        return plugin_pb2.PluginInfo(version=standin_version(self._version))

    def About(self, request: language_pb2.AboutRequest, context: grpc.ServicerContext) -> language_pb2.AboutResponse:
        """Which Python runs the programs."""
        numbers = ".".join(str(part) for part in sys.version_info[:3])
        return language_pb2.AboutResponse(
            executable=sys.executable, version=numbers, metadata={"host": "kueue-fleet stand-in"}
        )

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Asks the running programs to end."""
        self.cancel()
        return empty_pb2.Empty()

    def cancel(self) -> None:
        """Asks every child to end."""
        with self._lock:
            children = list(self._children)
        for child in children:
            child.send_signal(signal.SIGTERM)

    def _python(self, info: language_pb2.ProgramInfo, context: grpc.ServicerContext) -> str:
        try:
            return project_python(parse_struct(info.options), info.root_directory)
        except PluginError as error:
            fail(context, error)

    def GetRequiredPackages(
        self, request: language_pb2.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPackagesResponse:
        """The provider plugins of every Pulumi SDK that is installed for the project."""
        folders = site_packages_of(self._python(request.info, context))
        packages = [
            plugin_pb2.PackageDependency(
                name=plugin["name"],
                kind="resource",
                version=plugin.get("version", ""),
                server=plugin.get("server", ""),
            )
            for plugin in required_plugins(folders)
        ]
        return language_pb2.GetRequiredPackagesResponse(packages=packages)

    def GetProgramDependencies(
        self, request: language_pb2.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        """The distributions installed for the project; all of them, as the environment does not say who asked."""
        folders = [str(folder) for folder in site_packages_of(self._python(request.info, context))]
        names = {item.metadata["Name"]: item.version for item in importlib.metadata.distributions(path=folders)}
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[language_pb2.DependencyInfo(name=name, version=names[name]) for name in sorted(names)]
        )

    def InstallDependencies(
        self, request: language_pb2.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        """The project's environment is used as it is; one that is not there is an error."""
        python = self._python(request.info, context)
        note = f"stand-in language host: {python} is used as it is, nothing is installed\n"
        yield language_pb2.InstallDependenciesResponse(stdout=note.encode())

    def RuntimeOptionsPrompts(
        self, request: language_pb2.RuntimeOptionsRequest, context: grpc.ServicerContext
    ) -> language_pb2.RuntimeOptionsResponse:
        """Nothing to ask."""
        return language_pb2.RuntimeOptionsResponse()

    def Run(self, request: language_pb2.RunRequest, context: grpc.ServicerContext) -> language_pb2.RunResponse:
        """Runs the program to its end."""
        if request.attach_debugger:
            fail(context, PluginError("--attach-debugger: the stand-in language host has no debugger; leave it out"))
        engine = request.args[0] if request.args else self._engine_address
        command = [self._python(request.info, context), "-u", str(RUNNER)]
        command += ["--monitor", request.monitor_address, "--engine", engine, "--project", request.project]
        command += ["--stack", request.stack, "--organization", request.organization or "organization"]
        command += ["--root-directory", request.info.root_directory, "--pwd", request.info.program_directory]
        command += ["--parallel", str(request.parallel), *(["--dry-run"] if request.dryRun else [])]
        command.append(request.info.entry_point or ".")
        environment = dict(os.environ)
        environment["PULUMI_CONFIG"] = json.dumps(dict(request.config))
        environment["PULUMI_CONFIG_SECRET_KEYS"] = json.dumps(list(request.configSecretKeys))
        with self._started(command, environment, request.info.program_directory) as child:
            code = child.wait()
            self._forget(child)
        if code == 0:
            return language_pb2.RunResponse()
        if code == ALREADY_REPORTED:
            return language_pb2.RunResponse(bail=True)
        how = f"was ended by signal {-code}" if code < 0 else f"exited with non-zero exit code: {code}"
        return language_pb2.RunResponse(error=f"Program {how}")

    def _started(
        self, command: Sequence[str], environment: Mapping[str, str], folder: str, *, piped: bool = False
    ) -> subprocess.Popen[bytes]:
        stream = subprocess.PIPE if piped else None
        child = subprocess.Popen(
            command, env=environment, cwd=folder or None, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
        )
        with self._lock:
            self._children.add(child)
        return child

    def _forget(self, child: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._children.discard(child)

    def RunPlugin(
        self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        """Runs a plugin written in Python (a policy pack, or a component provider) and passes its output on."""
        python, folder = self._python(request.info, context), request.info.program_directory
        if request.kind == "analyzer":
            command = [python, "-u", "-m", "pulumi.policy", *request.args, folder]
        elif Path(folder, "__main__.py").is_file():
            command = [python, "-u", folder, *request.args]
        else:
            fail(context, PluginError(f"{folder}: no __main__.py; the stand-in runs plugins that have one"))
        environment = dict(item.split("=", 1) for item in request.env) if request.env else dict(os.environ)
        child = self._started(command, environment, request.pwd, piped=True)
        context.add_callback(lambda: child.send_signal(signal.SIGTERM) if child.poll() is None else None)
        yield from _relayed(child)
        self._forget(child)


def _relayed(child: subprocess.Popen[bytes]) -> Iterator[language_pb2.RunPluginResponse]:
    """The child's output as it comes, and at last its exit code."""
    messages: SimpleQueue[language_pb2.RunPluginResponse | None] = SimpleQueue()

    def relay(stream: IO[bytes], response: Callable[[bytes], language_pb2.RunPluginResponse]) -> None:
        while chunk := os.read(stream.fileno(), READ_BYTES):
            messages.put(response(chunk))
        messages.put(None)

    assert child.stdout is not None
    assert child.stderr is not None
    streams = (
        (child.stdout, lambda chunk: language_pb2.RunPluginResponse(stdout=chunk)),
        (child.stderr, lambda chunk: language_pb2.RunPluginResponse(stderr=chunk)),
    )
    for arguments in streams:
        threading.Thread(target=relay, args=arguments, daemon=True).start()
    for _ in streams:
        while (message := messages.get()) is not None:
            yield message
    yield language_pb2.RunPluginResponse(exitcode=child.wait())


def main(version: str, arguments: list[str]) -> int:
    """Serves the language host for the engine whose address is the last argument."""
    host = LanguageHost(version, arguments[-1] if arguments else "")

    def add(server: grpc.Server) -> None:
        language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)

    return serve(add, host.cancel)
