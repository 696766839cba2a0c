"""The controller's image, which a fleet builds and pushes where nobody gives one."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime.settings import SETTINGS

import kueue_fleet
import pulumi_mocks
from kueue_fleet import Fleet
from kueue_fleet.gcp_components import controller_image
from pulumi_mocks import Recording
from small_fleets import fleet

IMAGE = "docker-build:index:Image"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
PACKAGES = Path(kueue_fleet.__file__).parents[1]


def declared(section: dict[str, Any], **arguments: Any) -> Recording:
    spec = fleet(controller=section)
    return pulumi_mocks.run(lambda: Fleet(spec.name, spec, **arguments))


@pytest.fixture(scope="module")
def built() -> Recording:
    return declared({})


def container(recording: Recording) -> str:
    [deployment] = recording.of_type("kubernetes:apps/v1:Deployment")
    return str(deployment.inputs["spec"]["template"]["spec"]["containers"][0]["image"])


def test_it_is_built_pushed_and_run_by_its_digest(built: Recording) -> None:
    recording = built
    repository, image = recording.one(REPOSITORY), recording.one(IMAGE)
    path = f"europe-west4-docker.pkg.dev/lab-project/{repository.inputs['repositoryId']}/controller"
    tag = f"{path}:{version('kueue-fleet')}"
    assert image.inputs["tags"] == [tag]
    assert image.inputs["platforms"] == ["linux/amd64"]
    assert (image.inputs["push"], image.inputs["buildOnPreview"]) == (True, False)
    assert Path(image.inputs["context"]["location"]).resolve() == PACKAGES
    assert (
        Path(image.inputs["dockerfile"]["location"]).resolve() == PACKAGES / "kueue_fleet/controller/image/Dockerfile"
    )
    assert container(recording) == f"{tag}@sha256:{'0' * 64}"
    [deployment] = recording.of_type("kubernetes:apps/v1:Deployment")
    api = recording.one("gcp:projects/service:Service", "apis/artifactregistry.googleapis.com")
    assert recording.is_before(api, repository)
    assert recording.is_before(repository, image)
    assert recording.is_before(image, deployment)
    assert image.version == version("pulumi-docker-build")


def test_the_users_token_is_a_secret_of_inputs_and_outputs(built: Recording) -> None:
    image = built.one(IMAGE)
    [login] = image.inputs["registries"]
    assert login == {
        "address": "europe-west4-docker.pkg.dev",
        "username": "oauth2accesstoken",
        "password": "mock-access-token",
    }
    assert any(path.startswith("registries") for path in image.secrets)
    assert "registries" in image.secret_outputs


def test_an_image_that_pods_may_still_run_stays_and_old_ones_go(built: Recording) -> None:
    assert built.one(IMAGE).retain_on_delete
    policies = {item["action"]: item for item in built.one(REPOSITORY).inputs["cleanupPolicies"]}
    assert policies["KEEP"]["mostRecentVersions"] == {"keepCount": 10}
    assert policies["DELETE"]["condition"] == {"tagState": "UNTAGGED", "olderThan": "7776000s"}
    assert built.one(REPOSITORY).inputs["vulnerabilityScanningConfig"] == {"enablementConfig": "INHERITED"}


@pytest.mark.parametrize(
    ("section", "arguments"),
    [
        ({"image": "example.com/controller:1"}, {}),
        ({}, {"controller_image": "example.com/controller:1"}),
        ({"image": "example.com/other:1"}, {"controller_image": "example.com/controller:1"}),
    ],
)
def test_nothing_is_built_where_the_file_or_the_program_gives_one(
    section: dict[str, Any], arguments: dict[str, Any]
) -> None:
    recording = declared(section, **arguments)
    assert not recording.of_type(IMAGE)
    assert not recording.of_type(REPOSITORY)
    assert container(recording) == "example.com/controller:1"


def test_a_fleet_without_a_controller_builds_none() -> None:
    spec = fleet()
    assert not pulumi_mocks.run(lambda: Fleet(spec.name, spec)).of_type(IMAGE)


def test_paths_are_the_same_in_every_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi runs program and providers in the folder of the program, and the state has the path."""
    program = tmp_path / "stacks"
    program.mkdir()
    monkeypatch.chdir(program)
    monkeypatch.setattr(SETTINGS, "root_directory", str(tmp_path))
    assert controller_image._from_program(tmp_path / "components/kueue_fleet") == "../components/kueue_fleet"
    assert controller_image._from_program(PACKAGES) == str(PACKAGES), "installed outside of the project"
    monkeypatch.setattr(SETTINGS, "root_directory", None)
    assert controller_image._from_program(program) == str(program), "a program without a project folder"


def test_a_program_can_name_another_image_by_an_output() -> None:
    spec = fleet(controller={})

    def program() -> None:
        Fleet(spec.name, spec, controller_image=pulumi.Output.from_input("example.com/own@sha256:1"))

    assert container(pulumi_mocks.run(program)) == "example.com/own@sha256:1"
