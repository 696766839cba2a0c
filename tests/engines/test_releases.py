"""An upgrade of Kueue while jobs run; `dws_stack` has a worker of another release, `all_releases` more of both."""

from __future__ import annotations

import pytest

from rehearse_command import fleet
from tests.engines.all_releases import check_audit, small_job, upgrade


def test_kueue_is_upgraded_in_place_while_jobs_run(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """On one cluster; each step of a manager and a worker is that again."""
    data = fleet()
    data["kueue"]["version"] = "0.18.3"
    upgrade(data, "0.19.2", [small_job(seconds=3)], tmp_path_factory)
    check_audit(capsys)
