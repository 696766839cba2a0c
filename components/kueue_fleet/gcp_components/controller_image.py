"""The image of the fleet's own controller: a repository of Artifact Registry, and the image built and pushed to it.

It is built from the packages that are installed, by the Docker or BuildKit of the machine that runs `pulumi up`, and
pushed as the user that Pulumi's Google provider acts as.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pulumi
import pulumi_docker_build as docker_build
from pulumi.runtime.settings import SETTINGS

from kueue_fleet.component import Component
from kueue_fleet.fleet_file.controller_image import BuiltImage
from kueue_fleet.gcp_components.declare import declare
from kueue_fleet.gcp_components.sdk import gcp
from kueue_fleet.google.images import image_repository

PACKAGES = Path(__file__).resolve().parents[2]
"""The folder of the packages kueue_fleet and kueue_admission, from which the image is built."""
TOKEN_USER = "oauth2accesstoken"  # noqa: S105  (no secret)
"""User name with which a registry takes an access token for a password. Source:
https://cloud.google.com/artifact-registry/docs/docker/authentication#token."""


class ControllerImage(Component):
    """A repository, and the controller's image in it."""

    reference: pulumi.Output[str]
    """Registry, path, tag and digest."""
    repository: "gcp.artifactregistry.Repository"
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
        super().__init__(name, opts)
        where = built.project if project is None else project
        reference = pulumi.Output.from_input(where).apply(lambda known: replace(built, project=known).reference)
        repository = image_repository(name, built, project=where, labels=labels or {})
        [self.repository] = declare(self, [repository]).values()
        image = docker_build.Image(
            name,
            tags=[reference],
            context={"location": _from_program(PACKAGES)},
            dockerfile={"location": _from_program(PACKAGES / "kueue_fleet" / "controller" / "image" / "Dockerfile")},
            # What the Dockerfile's locked wheels are tested on. GKE taints nodes of other architectures.
            platforms=[docker_build.Platform.LINUX_AMD64],
            labels={"org.opencontainers.image.version": built.version},
            push=True,
            build_on_preview=False,
            registries=[{"address": built.registry, "username": TOKEN_USER, "password": _access_token(self)}],
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[self.repository],
                additional_secret_outputs=["registries"],
                retain_on_delete=True,
            ),
        )
        self.reference = image.ref
        self._give_out()


def _access_token(parent: pulumi.Resource) -> pulumi.Output[str]:
    """An access token of the user that the `gcp` provider acts as, as a secret; it expires within an hour."""
    client_config_output = gcp.organizations.get_client_config_output(pulumi.InvokeOptions(parent=parent))
    return pulumi.Output.secret(client_config_output.access_token)


def _from_program(path: Path) -> str:
    """The path from where Pulumi runs the program and its providers, if it is inside of the project.

    So it is the same on every machine, and another checkout does not build the image again. A program without a project
    folder, as those of the Automation API are, does not run where its providers do.
    """
    root = SETTINGS.root_directory
    if not root or not path.is_relative_to(Path(root).resolve()):
        return str(path)
    return os.path.relpath(path)
