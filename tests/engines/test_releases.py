"""A manager and workers with different releases of Kueue; `all_releases` has more."""

from __future__ import annotations

import pytest

from tests.engines.all_releases import MIXED, run_dws_stack


def test_a_manager_dispatches_to_workers_of_an_older_release(tmp_path_factory: pytest.TempPathFactory) -> None:
    run_dws_stack(MIXED, tmp_path_factory)
