"""The component and the program, under Pulumi's mocks: no cloud, no engine."""

import asyncio
import json
import runpy
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from company.team_space import COST_CENTRE_LABEL, TeamSpace, TeamSpaceSpec
from pydantic import ValidationError

from kueue_admission.api import ClusterQueueSpec
from kueue_fleet import ClusterQueue

ROOT = Path(__file__).parents[1]
VISION = {"name": "vision", "costCentre": "cc-1207", "gpus": 12, "queues": ["training", "adhoc"]}


class Cloud(pulumi.runtime.Mocks):
    """Remembers what a program declares, and answers what the components read."""

    def __init__(self) -> None:
        self.made: list[pulumi.runtime.MockResourceArgs] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.made.append(args)
        cloud = {
            "email": f"{args.name}@example.iam.gserviceaccount.com",
            "endpoint": "203.0.113.1",
            "masterAuth": {"clusterCaCertificate": "Y2E="},
            "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-1.europe-west4.gke.goog"}},
            "selfLink": f"https://compute.test/{args.name}",
        }
        return f"{args.name}-id", {**args.inputs, **cloud} if args.typ.startswith("gcp:") else dict(args.inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], None]:
        return {}, None

    def of_kind(self, kind: str) -> dict[str, dict[str, Any]]:
        """Inputs of the custom resources of a kind, by Pulumi name."""
        return {a.name: a.inputs for a in self.made if a.typ.endswith(f":{kind}") and a.typ.startswith("kubernetes:")}


def declared(program: Any, config: dict[str, Any] | None = None) -> Cloud:
    """What `program` declares."""
    cloud = Cloud()

    async def run() -> None:
        pulumi.runtime.set_mocks(cloud, project="company-platform", stack="dev", preview=False)
        pulumi.runtime.set_all_config({key: json.dumps(value) for key, value in (config or {}).items()})
        await pulumi.runtime.stack.run_pulumi_func(program)

    asyncio.run(run())
    return cloud


def space(spec: dict[str, Any]) -> Cloud:
    """A space in a cluster with two queues."""

    def program() -> None:
        queues = {name: ClusterQueue(name, ClusterQueueSpec()) for name in ("training", "adhoc")}
        TeamSpace(spec["name"], TeamSpaceSpec.model_validate(spec), cluster_queues=queues)

    return declared(program)


def test_the_namespace_says_who_pays() -> None:
    (namespace,) = space(VISION).of_kind("Namespace").values()
    assert namespace["metadata"]["name"] == "vision"
    assert namespace["metadata"]["labels"][COST_CENTRE_LABEL] == "cc-1207"


def test_the_team_cannot_hold_more_gpus_than_it_pays_for() -> None:
    (quota,) = space(VISION).of_kind("ResourceQuota").values()
    assert quota["metadata"]["namespace"] == "vision"
    assert quota["spec"] == {"hard": {"requests.nvidia.com/gpu": "12"}}


def test_an_entrance_for_each_queue() -> None:
    queues = space(VISION).of_kind("LocalQueue")
    assert {
        (q["metadata"]["namespace"], q["metadata"]["name"], q["spec"]["clusterQueue"]) for q in queues.values()
    } == {
        ("vision", "training", "training"),
        ("vision", "adhoc", "adhoc"),
    }


def test_a_queue_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="there is no ClusterQueue gpu; use one of adhoc, training"):
        space({**VISION, "queues": ["gpu"]})


@pytest.mark.parametrize("change", [{"costCentre": "1207"}, {"gpus": -1}, {"queues": []}, {"gpu": 3}])
def test_a_spec_that_is_wrong(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TeamSpaceSpec.model_validate({**VISION, **change})


def test_the_program_makes_a_space_for_each_team() -> None:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]

    def program() -> None:
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")

    cloud = declared(program, config)
    assert {made.name for made in cloud.made if made.typ == "company:index:TeamSpace"} == {"vision", "robotics"}
    queues = {q["metadata"]["namespace"] + "/" + q["metadata"]["name"] for q in cloud.of_kind("LocalQueue").values()}
    assert queues == {"platform/training", "platform/adhoc", "vision/training", "vision/adhoc", "robotics/adhoc"}
