"""Programs in other languages, run by the real Pulumi with the component plugin and the providers in memory.

`PluginLab` is a folder like a clone, so that the relative paths of the examples lead to the plugin; what the programs
make is in its `World`, and a Python program can go on with their stack.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi import automation as auto
from pulumi.runtime.proto import provider_pb2

from forked_python import forked_python
from kueue_rehearsal.pulumi_cli import make_pulumi_home
from kueue_rehearsal.standins.executables import LANGUAGE_HOST, install_standins
from tests.engines.memory_provider import MemoryProvider, World, only_updates, plain, serve

ROOT = Path(__file__).parents[2]
STACK = "dev"
PLUGIN = Path("components") / "pulumi_plugin"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What Pulumi sends for text that is not known yet. Source: pulumi sdk v3.250 go/common/resource/plugin/rpc.go."""
KUBERNETES_SCHEMA = {
    "name": "kubernetes",
    "version": version("pulumi-kubernetes"),
    "provider": {"inputProperties": {key: {"type": "string"} for key in ("kubeconfig", "clusterIdentifier")}},
}
"""As much of the provider's schema as a program needs that makes a provider of its own."""


class PlanningProvider(MemoryProvider):
    """Says in a preview what the real providers say: that what the cloud adds is not known yet."""

    def GetSchema(self, request: Any, context: Any) -> Any:
        return provider_pb2.GetSchemaResponse(schema=json.dumps(KUBERNETES_SCHEMA))

    def Create(self, request: Any, context: Any) -> Any:
        if not request.preview:
            return super().Create(request, context)
        inputs = plain(request.properties)
        known = plain(self._outputs(request, inputs))
        planned = struct_pb2.Struct()
        planned.CopyFrom(request.properties)
        planned.update({key: UNKNOWN for key, value in known.items() if inputs.get(key) != value})
        return provider_pb2.CreateResponse(id="", properties=planned)


class PluginLab:
    """A clone in a temporary folder, with a stack backend and a Pulumi home of its own."""

    def __init__(self, folder: Path, programs: Sequence[Path], providers: str, world: World) -> None:
        self.world = world
        self.folder = folder
        self._providers = providers
        shutil.copytree(ROOT / PLUGIN, folder / PLUGIN)  # below it is the environment that its Python is in
        (folder / ".venv").symlink_to(forked_python().parents[1])
        commands = folder / "bin"
        install_standins(folder / "standins", forked_python(), present={})
        commands.mkdir()
        (folder / "standins" / LANGUAGE_HOST.executable).rename(commands / LANGUAGE_HOST.executable)
        self._path = os.pathsep.join(str(part) for part in (commands, *(p.parent for p in programs)))
        make_pulumi_home(folder / "home")
        for name in ("gcp", "kubernetes", "docker-build"):
            # The engine only looks whether they are installed; it talks to the ones in memory.
            plugin = folder / "home" / "plugins" / f"resource-{name}-v{version(f'pulumi-{name}')}"
            plugin.mkdir(parents=True)
            (plugin / f"pulumi-resource-{name}").write_text("#!/bin/sh\nexit 1\n")
            (plugin / f"pulumi-resource-{name}").chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith("PULUMI_")},
            "PATH": f"{self._path}{os.pathsep}{os.environ['PATH']}",
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.folder}",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_DEBUG_PROVIDERS": self._providers,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            # `tsc` looks at the types.
            "PULUMI_NODEJS_TRANSPILE_ONLY": "true",
            "npm_config_prefer_offline": "true",
        }

    def example(self, name: str) -> Path:
        """A copy of an example, as deep in the folder as in the repository."""
        target = self.folder / "examples" / name
        shutil.copytree(ROOT / "examples" / name, target, ignore=shutil.ignore_patterns("node_modules", "sdks"))
        return target

    def run(self, *command: str, folder: Path, fails: bool = False) -> str:
        """What a command prints, on both streams."""
        result = subprocess.run(
            command,
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert (result.returncode != 0) == fails, f"{' '.join(command)}: exit code {result.returncode}\n{result.stdout}"
        return result.stdout

    def up_python(self, program: Callable[[], None], project: str) -> list[str]:
        """Goes on with a stack from a Python program; what that had to change."""
        self.world.operations.clear()
        folder = self.folder / "python"
        folder.mkdir(exist_ok=True)
        with mock.patch.dict(os.environ, PATH=self.environment["PATH"]):
            stack = auto.select_stack(
                STACK,
                project_name=project,
                program=program,
                opts=auto.LocalWorkspaceOptions(
                    pulumi_home=str(self.folder / "home"),
                    work_dir=str(folder),
                    project_settings=auto.ProjectSettings(name=project, runtime="python"),
                    env_vars=dict(changed(self.environment)),
                ),
            )
            only_updates(stack)
            stack.up()
        return [operation.short for operation in self.world.operations]


def changed(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is not as in this process."""
    for key, value in environment.items():
        if os.environ.get(key) != value:
            yield key, value


@contextmanager
def plugin_lab(
    folder: Path, programs: Sequence[Path], provider: type[MemoryProvider] = PlanningProvider
) -> Iterator[PluginLab]:
    """A lab whose PATH has `programs`; its providers end with the block."""
    world = World()
    with serve(world, provider) as providers:
        yield PluginLab(folder, programs, providers, world)
