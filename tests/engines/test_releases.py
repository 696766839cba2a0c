"""A manager and workers with different releases of Kueue, and an upgrade while jobs run; `all_releases` has more."""

from __future__ import annotations

import pytest

from tests.engines.all_releases import MIXED, run_dws_stack, upgrade_small_fleet


def test_a_manager_dispatches_to_workers_of_an_older_release(tmp_path_factory: pytest.TempPathFactory) -> None:
    run_dws_stack(MIXED, tmp_path_factory)


def test_kueue_is_upgraded_in_place_while_jobs_run(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    upgrade_small_fleet("0.18.3", "0.19.2", tmp_path_factory, capsys)
