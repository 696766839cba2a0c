"""The repository of Artifact Registry that the image of the fleet's own controller is pushed to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file.controller_image import BuiltImage
from kueue_fleet.google.resource import CloudResource
from kueue_fleet.google.resource_types import IMAGE_REPOSITORY

UNTAGGED_SECONDS = 90 * 86400
"""How long an image stays that has lost its tag to a newer one; a rollback of the Deployment may ask for it."""
KEPT_VERSIONS = 10
"""The newest ones, which stay whatever their age."""


def image_repository(name: str, built_image: BuiltImage, *, project: Any, labels: Mapping[str, str]) -> CloudResource:
    """The repository, with its cleanup policies."""
    properties = {
        "project": project,
        "location": built_image.location,
        "repositoryId": built_image.repository,
        "format": "DOCKER",
        "description": "Image of the fleet's own controller",
        "labels": {"managed-by": PRODUCT, **labels},
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
    }
    return CloudResource(IMAGE_REPOSITORY, name, properties)
