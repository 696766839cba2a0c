"""A fresh batch of random scenarios: the core decides as the real Kueue does."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from differential import real
from differential.__main__ import ask_twice
from differential.generate import scenario

COUNT = 60
OPEN_PERCENT = 10
"""Of long histories, so many may differ for the reasons that docs/fidelity.md calls open."""
SEED = "DIFFERENTIAL_SEED"


@pytest.mark.parametrize("fair", [False, True], ids=["classical", "fair"])
def test_a_fresh_batch(tmp_path: Path, fair: bool) -> None:
    seed = int(os.environ.get(SEED) or random.SystemRandom().randint(100, 10**6))
    print(f"{SEED}={seed}")
    cases = [scenario(seed, index, fair=fair) for index in range(COUNT)]
    with real.kueue(tmp_path, fair=fair) as cluster:
        found = ask_twice(cluster, cases)
    assert len(found.wrong) <= COUNT * OPEN_PERCENT // 100, (
        f"{SEED}={seed}: {len(found.wrong)} of {COUNT} differ\n\n" + "\n\n".join(found.wrong[:3])
    )
    assert len(found.kept) + found.chance == COUNT
    assert found.chance <= COUNT // 5, f"{SEED}={seed}: {found.chance} of {COUNT} depend on chance"
