"""What fleets that several files of tests look at declare: each once in a process, and not to be changed."""

from __future__ import annotations

import json
import runpy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pulumi
import yaml
from pulumi.runtime.settings import get_root_resource

import pulumi_mocks
from company_fleet import company_data
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import parse_fleet
from pulumi_mocks import Recording

STACKS = Path(__file__).parents[2] / "stacks"


class Ran(NamedTuple):
    """What the program of the stacks declared and put out."""

    recording: Recording
    outputs: dict[str, Any]
    secrets: set[str]
    """The outputs that are secret."""


@cache
def company() -> Recording:
    """The company's fleet."""
    spec = parse_fleet(company_data())
    return pulumi_mocks.run(lambda: Fleet(spec.name, spec))


def run_stack_program(config: dict[str, Any]) -> Ran:
    """The program in stacks/ with this config, whose names are without `kueue-fleet:`."""
    outputs: dict[str, Any] = {}
    secrets: set[str] = set()

    async def collect() -> None:
        stack: Any = get_root_resource()
        for name, value in stack.outputs.items():
            output = pulumi.Output.from_input(value)
            outputs[name] = await output.future()
            if await output.is_secret():
                secrets.add(name)

    def program() -> pulumi.Output[None]:
        runpy.run_path(str(STACKS / "__main__.py"), run_name="__main__")
        return pulumi.Output.from_input(collect())

    recording = pulumi_mocks.run(program, config={f"kueue-fleet:{key}": value for key, value in config.items()})
    return Ran(recording, outputs, secrets)


def stack_config(name: str) -> dict[str, Any]:
    """The library's part of the config of a stack of this repository, as Pulumi hands it over."""
    config = yaml.safe_load((STACKS / f"Pulumi.{name}.yaml").read_text())["config"]
    own = {key.removeprefix("kueue-fleet:"): value for key, value in config.items() if key.startswith("kueue-fleet:")}
    plain: dict[str, Any] = json.loads(json.dumps(own, default=lambda day: day.isoformat()))
    return plain


@cache
def stack(name: str) -> Ran:
    """A stack of this repository."""
    return run_stack_program(stack_config(name))
