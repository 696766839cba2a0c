"""The seeds are programs that could be: their properties are those of the SDK, so the rules read what exists."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

import pytest

from kueue_fleet.rehearsal.standins.gcp_schema import Schema, check_properties, load_schema
from policies.declared import Seed
from policies.seeds import SEEDS

CLOUD = [seed for seed in SEEDS if any(one.type.startswith("gcp:") for one in seed.resources)]


@cache
def schema() -> Schema:
    types = {one.type for seed in SEEDS for one in seed.resources if one.type.startswith("gcp:")}
    return load_schema(sorted(types), version("pulumi-gcp"))


@pytest.mark.parametrize("seed", CLOUD, ids=[seed.rule for seed in CLOUD])
def test_properties_of_google_cloud_are_those_of_the_sdk(seed: Seed) -> None:
    for one in seed.resources:
        if one.type.startswith("gcp:"):
            assert check_properties(schema(), schema().inputs(one.type), one.known()) == []
