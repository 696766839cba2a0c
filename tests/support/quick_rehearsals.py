"""What makes rehearsals in tests take less CPU, and changes nothing of what they show."""

from __future__ import annotations

import os
import shlex
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forked_python import forked_python
from kueue_fleet.rehearsal.engines import EngineCache, find_engines
from kueue_fleet.rehearsal.paths import HELM_VARIABLE, engines_dir
from kueue_fleet.rehearsal.pulumi_cli import ONE_CHECKPOINT, pulumi_environment


def quick_environment(*arguments: Any) -> dict[str, str]:
    """A stand-in of `pulumi_environment`."""
    return {**pulumi_environment(*arguments), **ONE_CHECKPOINT, HELM_VARIABLE: str(copied_helm())}


@cache
def copied_helm() -> Path:
    """A helm that installs as `copied_helm` says, alone in its folder; it is there until these tests end."""
    python, helm = forked_python(), find_engines(EngineCache(engines_dir())).binary("helm")
    program = python.parents[1] / "helm" / "helm"
    program.parent.mkdir()
    install = shlex.join([str(python), "-u", str(Path(__file__).with_name("copied_helm.py")), str(helm)])
    program.write_text(
        f'#!/bin/sh\ncase "$1 $3" in "install "*/*-chart) exec {install} "$@";; esac\nexec {helm} "$@"\n'
    )
    program.chmod(0o755)
    return program


def path_with_copied_helm() -> str:
    """A PATH for commands that find `copied_helm` as their helm."""
    return f"{copied_helm().parent}{os.pathsep}{os.environ['PATH']}"


def quick_rehearsals(patch: pytest.MonkeyPatch) -> None:
    """For sessions in this process: one checkpoint, charts that are copied, and what Pulumi starts is forked."""
    python = forked_python()
    patch.setattr("kueue_fleet.rehearsal.session.sys", SimpleNamespace(executable=str(python)))
    patch.setattr("kueue_fleet.rehearsal.pulumi_cli.sys", SimpleNamespace(prefix=str(python.parents[1])))
    patch.setattr("kueue_fleet.rehearsal.session.pulumi_environment", quick_environment)
