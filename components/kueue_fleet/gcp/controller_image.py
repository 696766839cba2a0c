"""The image of the fleet's own controller: a repository of Artifact Registry, and the image built and pushed to it.

It is built from the package that is installed, by the Docker or BuildKit of the machine that runs `pulumi up`, and
pushed as the user that Pulumi's Google provider acts as.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pulumi
from pulumi.runtime.settings import SETTINGS

from kueue_fleet.fleet_file.controller_image import BuiltImage
from kueue_fleet.gcp.resources import ArtifactRegistryRepository, DockerBuildImage, access_token

PACKAGE = Path(__file__).resolve().parents[1]
"""The package kueue_fleet, from which the image is built."""
PLATFORM = "linux/amd64"
"""What the Dockerfile's locked wheels are tested on. GKE taints nodes of other architectures."""
TOKEN_USER = "oauth2accesstoken"  # noqa: S105  (no secret)
"""User name with which a registry takes an access token for a password. Source:
https://cloud.google.com/artifact-registry/docs/docker/authentication#token."""
UNTAGGED_SECONDS = 90 * 86400
"""How long an image stays that has lost its tag to a newer one; a rollback of the Deployment may ask for it."""
KEPT_VERSIONS = 10
"""The newest ones, which stay whatever their age."""


class ControllerImage(pulumi.ComponentResource):
    """A repository, and the controller's image in it."""

    reference: pulumi.Output[str]
    """Registry, path, tag and digest."""
    repository: ArtifactRegistryRepository
    """The repository."""

    def __init__(
        self,
        name: str,
        built: BuiltImage,
        *,
        project: pulumi.Input[str] | None = None,
        labels: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the repository with its cleanup policies, and the image, which a preview does not build.

        `project` takes the place of the one in `built`; `labels` are Google Cloud labels. The access token is a secret
        of the state and expires within an hour; a new one does not change the image. An image that is replaced or
        deleted stays in the registry until its cleanup policies, or the end of the repository, remove it: pods may
        still run it.
        """
        super().__init__("kueue-fleet:index:ControllerImage", name, None, opts)
        where = built.project if project is None else project
        reference = pulumi.Output.from_input(where).apply(lambda known: replace(built, project=known).reference)
        self.repository = ArtifactRegistryRepository(
            name,
            {
                "project": where,
                "location": built.location,
                "repositoryId": built.repository,
                "format": "DOCKER",
                "description": "Image of the fleet's own controller",
                "labels": {"managed-by": "kueue-fleet", **(labels or {})},
                # As the project has it: scanning costs by the image.
                "vulnerabilityScanningConfig": {"enablementConfig": "INHERITED"},
                "cleanupPolicies": [
                    {"id": "keep-newest", "action": "KEEP", "mostRecentVersions": {"keepCount": KEPT_VERSIONS}},
                    {
                        "id": "delete-untagged",
                        "action": "DELETE",
                        "condition": {"tagState": "UNTAGGED", "olderThan": f"{UNTAGGED_SECONDS}s"},
                    },
                ],
            },
            pulumi.ResourceOptions(parent=self),
        )
        image = DockerBuildImage(
            name,
            {
                "tags": [reference],
                "context": {"location": _from_program(PACKAGE)},
                "dockerfile": {"location": _from_program(PACKAGE / "controller" / "image" / "Dockerfile")},
                "platforms": [PLATFORM],
                "labels": {"org.opencontainers.image.version": built.version},
                "push": True,
                "buildOnPreview": False,
                "registries": [
                    {"address": built.registry, "username": TOKEN_USER, "password": access_token(self)},
                ],
            },
            pulumi.ResourceOptions(
                parent=self,
                depends_on=[self.repository],
                additional_secret_outputs=["registries"],
                retain_on_delete=True,
            ),
        )
        self.reference = image.output("ref")
        self.register_outputs({"reference": self.reference})


def _from_program(path: Path) -> str:
    """The path from where Pulumi runs the program and its providers, if it is inside of the project.

    So it is the same on every machine, and another checkout does not build the image again. A program without a project
    folder, as those of the Automation API are, does not run where its providers do.
    """
    root = SETTINGS.root_directory
    if not root or not path.is_relative_to(Path(root).resolve()):
        return str(path)
    return os.path.relpath(path)
