"""The APIs of Google Cloud that a project has enabled: a component for everything else in the project to depend on."""

from collections.abc import Mapping, Sequence

import pulumi

from kueue_fleet.component import Component
from kueue_fleet.fleet_file.model.gcp_names import ApiName, ProjectId
from kueue_fleet.gcp_components.declare import declare
from kueue_fleet.gcp_components.sdk import gcp
from kueue_fleet.google.services import services


class ProjectServices(Component):
    """APIs that are enabled, and stay enabled when the component is destroyed: others may use them."""

    apis: list[str]
    """The APIs of `project`."""
    services: "dict[str, gcp.projects.Service]"
    """By the API's name."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[ProjectId],
        apis: Sequence[ApiName],
        elsewhere: Mapping[ProjectId, Sequence[ApiName]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Enable `apis`, such as container.googleapis.com, in `project`, and `elsewhere` those of other projects."""
        super().__init__(name, opts)
        resources = declare(self, services(name, project=project, apis=apis, elsewhere=elsewhere))
        self.apis = list(apis)
        # Those of other projects come after them.
        self.services = dict(zip(apis, resources.values(), strict=False))
        self._give_out()
