"""What makes rehearsals in tests take less CPU, and changes nothing of what they show."""

from __future__ import annotations

import os
import tempfile
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forked_python import forked_python
from kueue_fleet.rehearsal.engines import EngineCache, build_engines
from kueue_fleet.rehearsal.paths import engines_dir
from kueue_fleet.rehearsal.pulumi_cli import pulumi_environment

ONE_CHECKPOINT = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}
"""Pulumi writes its state once, at the end; writing all of it at every step takes most of Pulumi's CPU."""
_HELM = """#!/bin/sh
case "$1" in
    install | upgrade) exec {helm} "$@" --disable-openapi-validation ;;
    *) exec {helm} "$@" ;;
esac
"""


def use_quick_helm(environ: MutableMapping[str, str]) -> None:
    """The first helm on PATH does not fetch the OpenAPI schema, for which an API server takes 1 s of CPU.

    The API server checks every object itself.
    """
    environ["PATH"] = f"{_helm_folder()}{os.pathsep}{environ['PATH']}"


@cache
def _helm_folder() -> str:
    helm = build_engines(EngineCache(engines_dir()), names=["helm"]).binary("helm")
    folder = Path(tempfile.mkdtemp(prefix="helm-"))
    program = folder / "helm"
    program.write_text(_HELM.format(helm=helm))
    program.chmod(0o755)
    return str(folder)


def with_one_checkpoint(*arguments: Any) -> dict[str, str]:
    """A stand-in of `pulumi_environment`."""
    return {**pulumi_environment(*arguments), **ONE_CHECKPOINT}


def quick_rehearsals(patch: pytest.MonkeyPatch) -> None:
    """For sessions in this process: as said above, and what Pulumi starts is forked."""
    python = forked_python()
    patch.setattr("kueue_fleet.rehearsal.session.sys", SimpleNamespace(executable=str(python)))
    patch.setattr("kueue_fleet.rehearsal.pulumi_cli.sys", SimpleNamespace(prefix=str(python.parents[1])))
    patch.setattr("kueue_fleet.rehearsal.session.pulumi_environment", with_one_checkpoint)
    environ = {"PATH": os.environ["PATH"]}
    use_quick_helm(environ)
    patch.setenv("PATH", environ["PATH"])
