"""The project of a fleet may be an output of the program or of another stack, not known in a preview."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pulumi
import pytest
from pulumi.runtime import rpc

import pulumi_mocks
import typed_program
from company_fleet import company_data
from kueue_admission.kernel import SpecError
from kueue_fleet import Fleet, testing
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from pulumi_mocks import Recorded, Recording
from small_fleets import WORKER, fleet, fleet_data

OF_FILE, OF_PROGRAM = "p-in-file", "p-1234"


class Project(pulumi.CustomResource):
    """A project of the same program."""

    slug: pulumi.Output[str]

    def __init__(self, name: str = "project") -> None:
        super().__init__("test:index:Project", name, {"slug": None})


class Answers(testing.Mocks):
    """What the providers answer. Of what is made from unknown inputs nothing is known, as in a real preview."""

    def __init__(self, project_id: str | None) -> None:
        super().__init__()
        self._id = project_id

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if args.typ == "test:index:Project":
            return "project", {"slug": self._id} if self._id else {}
        if args.resource_id == rpc.UNKNOWN or any(
            isinstance(value, pulumi.output.Unknown) for value in args.inputs.values()
        ):
            return args.name, {}
        return super().new_resource(args)


def company(project: str) -> FleetSpec:
    """Network, reservations, pools, accounts of teams, members, dashboards, tokens."""
    return parse_fleet(company_data() | {"project": project})


def by_profile(project: str) -> FleetSpec:
    """A network that exists in the same project, an image that is built, Google accounts of the manager."""
    subnets = {region: {"name": region} for region in ("europe-west4", "us-east4")}
    return fleet(
        project=project,
        controller={},
        network={"existing": {"name": "vpc", "subnets": subnets}},
        multiKueue={"credentials": {"type": "ClusterProfile", "pluginImage": "plugin:1"}},
    )


def existing(project: str) -> FleetSpec:
    """A worker that exists."""
    data = fleet_data(WORKER, project=project)
    data["clusters"][1]["existing"] = True
    return parse_fleet(data)


def declared(recording: Recording) -> dict[str, Any]:
    return {item.urn: item.inputs for item in recording if item.type != "test:index:Project"}


@cache
def in_file(make: Callable[[str], FleetSpec]) -> Recording:
    """What the fleet declares whose file has the project; not to be changed."""
    spec = make(OF_PROGRAM)
    secrets = {name: {"token": "hf-1234"} for team in spec.teams for name in team.secrets}
    return pulumi_mocks.run(lambda: Fleet("lab", spec, team_secrets=secrets))


@pytest.mark.parametrize("make", [company, by_profile, existing])
def test_an_output_declares_what_the_project_in_the_file_would(make: Any) -> None:
    spec = make(OF_FILE)
    secrets = {name: {"token": "hf-1234"} for team in spec.teams for name in team.secrets}

    def program() -> None:
        Fleet("lab", spec, project=Project().slug, team_secrets=secrets)

    expected = in_file(make)
    result = pulumi_mocks.run(program, outputs=Answers(OF_PROGRAM))
    assert declared(result) == declared(expected)
    assert result.read == expected.read
    project = result.one("test:index:Project")

    def comes_after(each: Recorded) -> bool:
        return each.type.startswith("kueue-fleet:") or result.is_before(project, each)

    assert [item.short for item in result if OF_PROGRAM in json.dumps(item.inputs) and not comes_after(item)] == []
    preview = pulumi_mocks.run(program, preview=True, outputs=Answers(None))
    assert preview.resources.keys() == result.resources.keys()
    assert OF_FILE not in str([(entry.inputs, entry.outputs) for entry in preview])


def test_a_text_of_the_program_takes_the_place_of_the_project_in_the_file() -> None:
    of_program = pulumi_mocks.run(lambda: Fleet("lab", by_profile(OF_FILE), project=OF_PROGRAM))
    assert declared(of_program) == declared(in_file(by_profile))


@pytest.mark.parametrize("project", ["123456789012", "p"])
def test_a_project_of_the_program_is_an_id(project: str) -> None:
    with pytest.raises(SpecError, match="project: the program gives "):
        pulumi_mocks.run(lambda: Fleet("lab", fleet(), project=project))
    with pytest.raises(pulumi.RunError, match="project: the program gives "):
        pulumi_mocks.run(lambda: Fleet("lab", fleet(), project=pulumi.Output.from_input(project)))


@pytest.mark.parametrize("preview", [False, True])
def test_project_network_subnet_and_image_may_be_outputs_that_a_preview_does_not_know(preview: bool) -> None:
    def program() -> None:
        typed_program.elsewhere(Project().slug, pulumi.Output.concat("vpc-of-", slug := Project("other").slug), slug)

    config = {"kueue-fleet:fleet": fleet_data(WORKER, controller={})}
    recording = pulumi_mocks.run(
        program, config=config, preview=preview, outputs=Answers(None if preview else OF_PROGRAM)
    )
    [deployment] = recording.of_type("Deployment")
    [container] = deployment.inputs["spec"]["template"]["spec"]["containers"]
    cluster = recording.one("gcp:container/cluster:Cluster", "batch").inputs
    seen = [cluster["project"], cluster["network"], cluster["subnetwork"], container["image"]]
    if preview:
        assert all(isinstance(item, pulumi.output.Unknown) for item in seen)
    else:
        assert seen == [OF_PROGRAM, f"vpc-of-{OF_PROGRAM}", f"vpc-of-{OF_PROGRAM}-europe-west4", OF_PROGRAM]
