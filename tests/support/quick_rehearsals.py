"""What makes rehearsals in tests take less CPU, and changes nothing of what they show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from forked_python import forked_python
from kueue_fleet.rehearsal.pulumi_cli import pulumi_environment

ONE_CHECKPOINT = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}
"""Pulumi writes its state once, at the end; writing all of it at every step takes most of Pulumi's CPU."""


def with_one_checkpoint(*arguments: Any) -> dict[str, str]:
    """A stand-in of `pulumi_environment`."""
    return {**pulumi_environment(*arguments), **ONE_CHECKPOINT}


def quick_rehearsals(patch: pytest.MonkeyPatch) -> None:
    """Sessions in this process have Pulumi write one checkpoint, and what it starts is forked."""
    python = forked_python()
    patch.setattr("kueue_fleet.rehearsal.session.sys", SimpleNamespace(executable=str(python)))
    patch.setattr("kueue_fleet.rehearsal.pulumi_cli.sys", SimpleNamespace(prefix=str(python.parents[1])))
    patch.setattr("kueue_fleet.rehearsal.session.pulumi_environment", with_one_checkpoint)
