"""What makes rehearsals in tests take less CPU, and changes nothing of what they show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from forked_python import forked_python
from kueue_rehearsal.pulumi_cli import ONE_CHECKPOINT, pulumi_environment


def quick_environment(*arguments: Any) -> dict[str, str]:
    """A stand-in of `pulumi_environment`."""
    return {**pulumi_environment(*arguments), **ONE_CHECKPOINT}


def quick_rehearsals(patch: pytest.MonkeyPatch) -> None:
    """For sessions in this process: one checkpoint, and what Pulumi starts in Python is forked."""
    python = forked_python()
    patch.setattr("kueue_rehearsal.session.sys", SimpleNamespace(executable=str(python)))
    patch.setattr("kueue_rehearsal.pulumi_cli.sys", SimpleNamespace(prefix=str(python.parents[1])))
    patch.setattr("kueue_rehearsal.session.pulumi_environment", quick_environment)
