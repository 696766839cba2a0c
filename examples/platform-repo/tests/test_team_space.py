"""The component and the program, under Pulumi's mocks: no cloud, no engine."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from company.team_space import COST_CENTRE_LABEL, TeamSpace, TeamSpaceSpec
from pydantic import ValidationError

import kueue_fleet as kf
from kueue_fleet.testing import Mocks

ROOT = Path(__file__).parents[1]
LOCAL_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"
VISION = {"name": "vision", "costCentre": "cc-1207", "gpus": 12, "queues": ["training", "adhoc"]}


def declared(program: Callable[[], None], config: dict[str, Any] | None = None) -> Mocks:
    """What `program` declares."""
    mocks = Mocks()
    pulumi.runtime.set_mocks(mocks, project="company-platform", stack="dev", preview=False)
    pulumi.runtime.set_all_config({key: json.dumps(value) for key, value in (config or {}).items()})
    run = pulumi.runtime.test(program)  # type: ignore[no-untyped-call]
    run()
    return mocks


def space(spec: dict[str, Any]) -> Mocks:
    """A space in a cluster with two queues."""

    def program() -> None:
        queues = {name: kf.ClusterQueue(name, kf.ClusterQueueSpec()) for name in ("training", "adhoc")}
        TeamSpace(spec["name"], TeamSpaceSpec.model_validate(spec), cluster_queues=queues)

    return declared(program)


def test_the_namespace_says_who_pays() -> None:
    (namespace,) = space(VISION).of_type("kubernetes:core/v1:Namespace").values()
    assert namespace["metadata"]["name"] == "vision"
    assert namespace["metadata"]["labels"][COST_CENTRE_LABEL] == "cc-1207"


def test_the_team_cannot_hold_more_gpus_than_it_pays_for() -> None:
    (quota,) = space(VISION).of_type("kubernetes:core/v1:ResourceQuota").values()
    assert quota["metadata"]["namespace"] == "vision"
    assert quota["spec"] == {"hard": {"requests.nvidia.com/gpu": "12"}}


def test_an_entrance_for_each_queue() -> None:
    queues = space(VISION).of_type(LOCAL_QUEUE)
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

    mocks = declared(program, config)
    assert mocks.of_type("company:index:TeamSpace").keys() == {"vision", "robotics"}
    queues = {q["metadata"]["namespace"] + "/" + q["metadata"]["name"] for q in mocks.of_type(LOCAL_QUEUE).values()}
    assert queues == {"platform/training", "platform/adhoc", "vision/training", "vision/adhoc", "robotics/adhoc"}
