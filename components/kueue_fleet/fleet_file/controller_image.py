"""Where the image of the fleet's own controller is: the one that the file names, or one that `pulumi up` builds.

Known before there is a registry, so that the objects, `render` and the policies say the same as `pulumi up`. Building
and pushing is the job of `gcp.controller_image`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file.model.fleet import FleetSpec


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """A repository of Artifact Registry in the fleet's project, and the controller's image in it."""

    project: str
    location: str
    """The region of the cluster that runs the controller."""
    repository: str
    """Id of the repository: the fleet's name."""
    version: str
    """The image's tag: the version of this library, whose code is in the image."""

    @property
    def registry(self) -> str:
        """Host name of the registry."""
        return f"{self.location}-docker.pkg.dev"

    @property
    def reference(self) -> str:
        """Registry, path and tag. `example.com:my-project` is the folder `example.com/my-project` there.

        Source: https://cloud.google.com/artifact-registry/docs/docker/names.
        """
        return f"{self.registry}/{self.project.replace(':', '/')}/{self.repository}/controller:{self.version}"


def built_image(fleet: FleetSpec) -> BuiltImage | None:
    """What `pulumi up` builds; None: the fleet has no controller, or its file names the image."""
    section, cluster = fleet.controller, fleet.controller_cluster
    if section is None or section.image is not None or cluster is None:
        return None
    from importlib.metadata import version  # It takes long, and few commands come here.

    return BuiltImage(fleet.project, fleet.cluster(cluster).region, fleet.name, version(PRODUCT))


def controller_image(fleet: FleetSpec) -> str | None:
    """The image of the fleet's own controller, with a tag or a digest; None: it has no controller."""
    image_build = built_image(fleet)
    if image_build is not None:
        return image_build.reference
    return fleet.controller.image if fleet.controller else None
