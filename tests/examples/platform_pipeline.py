"""The pipeline of the platform repository, read as GitHub reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2] / "examples" / "platform-repo"
WORKFLOW = REPOSITORY / ".github" / "workflows" / "fleet.yaml"
ELSEWHERE = {
    "Install": "takes other packages from PyPI; that kueue-fleet comes from the clone is tested by itself",
    "Test the component and the rules": "a page shows the same command, and tests/docs/test_pages.py runs it there",
    "Preflight": "needs credentials of Google Cloud; tests/preflight runs the command against a fake API",
    "Up": "needs a Google Cloud project and a Pulumi backend",
    "Judge the state": "needs the state that Up leaves",
    "Preview": "needs Pulumi: tests/engines/test_platform_pipeline.py runs it",
}
"""Steps that the plain tests do not run, and why."""


@dataclass(frozen=True)
class Step:
    """A step that runs a command."""

    job: str
    name: str
    run: str
    environment: dict[str, str]
    """Of the workflow and of the step; expressions of GitHub are as they stand."""


def workflow() -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text())
    return read


def steps() -> list[Step]:
    """Every step with a command, in order."""
    read = workflow()
    return [
        Step(job, step["name"], step["run"], {**read["env"], **step.get("env", {})})
        for job, content in read["jobs"].items()
        for step in content["steps"]
        if "run" in step
    ]


def step(name: str) -> Step:
    return next(item for item in steps() if item.name == name)
