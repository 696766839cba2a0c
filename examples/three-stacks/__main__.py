"""The platform of one environment: the stack says which."""

import pulumi
from company.environments import fleet_of
from company.gpu_platform import GpuPlatform, with_owner

spec = fleet_of(pulumi.get_stack(), pulumi.Config().require("project"))
platform = GpuPlatform("gpus", spec, pulumi.ResourceOptions(transforms=[with_owner]))

pulumi.export("kubeconfig", platform.fleet.kubeconfig)
pulumi.export("queues", platform.fleet.queues)
pulumi.export("results", platform.results.url)
