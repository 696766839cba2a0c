"""A stack on the real Pulumi engine, with the providers in this process's memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

from pulumi import automation as auto

from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir
from kueue_rehearsal.pulumi_cli import ONE_CHECKPOINT, make_pulumi_home
from tests.engines.memory_provider import Operation, World, only_updates, serve


class Engine:
    """A stack of an inline program, on the real engine and the providers in memory."""

    def __init__(self, folder: Path, world: World, providers: str, pulumi_command: Path) -> None:
        self.world = world
        self.output: list[str] = []
        self._folder = folder
        self._environment = {
            "PULUMI_DEBUG_PROVIDERS": providers,
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            **ONE_CHECKPOINT,
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PATH": f"{pulumi_command.parent}{os.pathsep}{os.environ['PATH']}",
        }

    @property
    def state_file(self) -> Path:
        return self._folder / ".pulumi" / "stacks" / "kueue-fleet" / "test.json"

    @cached_property
    def stack(self) -> auto.Stack:
        result = auto.create_or_select_stack(
            "test",
            project_name="kueue-fleet",
            program=lambda: None,
            opts=auto.LocalWorkspaceOptions(
                pulumi_home=str(make_pulumi_home(self._folder / "home")),
                work_dir=str(self._folder),
                project_settings=auto.ProjectSettings(
                    name="kueue-fleet", runtime="python", backend=auto.ProjectBackend(url=f"file://{self._folder}")
                ),
                env_vars=self._environment,
            ),
        )
        only_updates(result)
        return result

    def up(self, program: Callable[[], Any]) -> list[Operation]:
        """Bring the program up; the operations on resources, in the order they were done."""
        self.stack.up(program=program, on_output=self.output.append)
        return self.world.taken_operations()

    def destroy(self) -> list[Operation]:
        self.stack.destroy(on_output=self.output.append)
        return self.world.taken_operations()


@contextmanager
def pulumi_in_memory(folder: Path) -> Iterator[Engine]:
    """An empty stack, its files in `folder`."""
    command = build_engines(EngineCache(engines_dir()), names=["pulumi"]).binary("pulumi")
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    world = World()
    with mock.patch.dict(os.environ, PATH=path), serve(world) as providers:
        yield Engine(folder, world, providers, command)
