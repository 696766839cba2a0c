"""The seeds are programs that could be: their properties are those of the SDK, so the rules read what exists."""

from __future__ import annotations

import pytest
from tests.policies.declared import Seed
from tests.policies.seeds import SEEDS

from gcp_sdk import sdk_arguments, unknown_properties

CLOUD = [seed for seed in SEEDS if any(one.type.startswith("gcp:") for one in seed.resources)]


@pytest.mark.parametrize("seed", CLOUD, ids=[seed.rule for seed in CLOUD])
def test_properties_of_google_cloud_are_those_of_the_sdk(seed: Seed) -> None:
    for one in seed.resources:
        if one.type.startswith("gcp:"):
            assert list(unknown_properties(one.known(), sdk_arguments(one.type), one.type)) == []
