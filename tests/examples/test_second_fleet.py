"""The example of a fleet in another stack's network: its program, run as Pulumi runs it."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi.runtime import mocks

import pulumi_mocks
from kueue_fleet import testing

FOLDER = Path(__file__).parents[2] / "examples" / "second-fleet"
NETWORK = "https://www.googleapis.com/compute/v1/projects/p/global/networks/dev"
SUBNET = "https://www.googleapis.com/compute/v1/projects/p/regions/us-central1/subnetworks/dev-us-central1"


class OtherStack(testing.Mocks):
    """The stack that the example refers to."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if args.typ != "pulumi:pulumi:StackReference":
            return super().new_resource(args)
        assert args.name == "organization/kueue-fleet/dev"
        outputs = {"network": NETWORK, "subnetworks": {"us-central1": SUBNET, "europe-west4": "another"}}
        return args.name, {"name": args.name, "outputs": outputs, "secretOutputNames": []}


def test_the_cluster_is_in_the_other_stacks_network_and_adds_nothing_to_it() -> None:
    stack = yaml.safe_load((FOLDER / "Pulumi.second-fleet.yaml").read_text(encoding="utf-8"))
    recording = pulumi_mocks.run(
        lambda: runpy.run_path(str(FOLDER / "__main__.py"), run_name="__main__") and None,
        config=stack["config"],
        project="second-fleet",
        outputs=OtherStack(),
    )
    cluster = recording.one("gcp:container/cluster:Cluster").inputs
    assert (cluster["network"], cluster["subnetwork"]) == (NETWORK, SUBNET)
    assert cluster["ipAllocationPolicy"]["clusterSecondaryRangeName"] == "pods"
    assert not [result.short for result in recording if result.type.startswith("gcp:compute/")]


def test_a_region_that_the_other_stack_does_not_have() -> None:
    stack = yaml.safe_load((FOLDER / "Pulumi.second-fleet.yaml").read_text(encoding="utf-8"))
    stack["config"]["kueue-fleet:fleet"]["clusters"][0]["region"] = "us-east4"
    with pytest.raises(KeyError, match="us-east4"):
        pulumi_mocks.run(
            lambda: runpy.run_path(str(FOLDER / "__main__.py"), run_name="__main__") and None,
            config=stack["config"],
            project="second-fleet",
            outputs=OtherStack(),
        )
