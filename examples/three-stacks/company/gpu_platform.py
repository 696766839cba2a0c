"""The company's component: a fleet, and the bucket in which its jobs leave their results."""

from typing import Any, cast

import pulumi
import pulumi_gcp as gcp

import kueue_fleet as kf


class GpuPlatform(pulumi.ComponentResource):
    """A fleet, and the bucket of its results."""

    fleet: kf.Fleet
    """The fleet."""
    results: gcp.storage.Bucket
    """Its bucket."""

    def __init__(self, name: str, spec: kf.FleetSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare both; their Pulumi names begin with `name`, so that an alias of this component renames them too."""
        super().__init__("company:index:GpuPlatform", name, None, opts)
        inside = pulumi.ResourceOptions(parent=self)
        self.fleet = kf.Fleet(f"{name}-fleet", spec, opts=inside)
        self.results = gcp.storage.Bucket(
            f"{name}-results",
            project=spec.project,
            location=spec.clusters[0].region,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            opts=inside,
        )
        self.register_outputs({"results": self.results.url})


def with_owner(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """A transform: every namespace says who answers for it, which a fleet does not know."""
    if args.type_ != "kubernetes:core/v1:Namespace":
        return None
    metadata = cast("dict[str, Any]", args.props["metadata"])
    annotations = {**metadata.get("annotations", {}), "company.example/owner": "gpu-platform"}
    return pulumi.ResourceTransformResult(
        {**args.props, "metadata": {**metadata, "annotations": annotations}}, args.opts
    )
