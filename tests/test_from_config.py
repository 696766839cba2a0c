"""`Fleet.from_config`: the fleet of the stack's config, and how a program ends where that is not one."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

import kueue_fleet as kf
import pulumi_mocks
from small_fleets import WORKER, fleet_data

CONFIG = "kueue-fleet:fleet"


def test_it_declares_the_fleet_of_the_config() -> None:
    recording = pulumi_mocks.run(kf.Fleet.from_config, config={CONFIG: fleet_data(WORKER)})
    assert recording.one("kueue-fleet:index:Fleet").name == "lab"


def test_what_the_program_gives_comes_first() -> None:
    def program() -> None:
        kf.Fleet.from_config("ours", project="other-project-1")

    recording = pulumi_mocks.run(program, config={CONFIG: fleet_data(WORKER)})
    assert recording.one("kueue-fleet:index:Fleet").name == "ours"
    assert {result.inputs["project"] for result in recording.of_type("gcp:container/cluster:Cluster")} == {
        "other-project-1"
    }


def test_every_problem_is_there_with_its_code() -> None:
    data: dict[str, Any] = fleet_data(WORKER)
    data["clusters"][1]["region"] = "moon-west1"
    data["clusterQueues"][0]["cohort"] = "vision"
    with pytest.raises(pulumi.RunError) as raised:
        pulumi_mocks.run(kf.Fleet.from_config, config={CONFIG: data})
    [first, *problems] = str(raised.value).splitlines()
    assert first == "the fleet in kueue-fleet:fleet cannot be used:"
    assert len(problems) == 2
    assert all(problem.endswith("]") and " [KF" in problem for problem in problems)


def test_a_config_without_a_fleet_says_what_to_write() -> None:
    output = (
        "kueue-fleet:fleet: is missing; write the fleet below config: and kueue-fleet:fleet: of Pulumi.test.yaml, as "
        "kueue-fleet init does"
    )
    with pytest.raises(pulumi.RunError, match=f"^{output} .KF504.$"):
        pulumi_mocks.run(kf.Fleet.from_config)
