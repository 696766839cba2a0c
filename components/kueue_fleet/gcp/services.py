"""The APIs of Google Cloud that a project has enabled: a component for everything else in the project to depend on."""

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp


class ProjectServices(pulumi.ComponentResource):
    """APIs that are enabled, and stay enabled when the component is destroyed: others may use them."""

    services: "dict[str, gcp.projects.Service]"
    """By the API's name."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[str],
        apis: Sequence[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Enable `apis`, such as container.googleapis.com, in `project`."""
        super().__init__("kueue-fleet:index:ProjectServices", name, None, opts)
        self.services = {
            api: gcp.projects.Service(
                f"{name}/{api}",
                project=project,
                service=api,
                disable_on_destroy=False,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for api in apis
        }
        self.register_outputs({"apis": list(self.services)})
