"""The fleet that the files of this folder share; it ends with the last of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controller_lab import ControllerLab, controller_lab
from two_regions import data


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerLab]:
    """A manager and two workers with real Kueue; tests start the controller."""
    with controller_lab(tmp_path_factory.mktemp("lab"), data()) as result:
        yield result
