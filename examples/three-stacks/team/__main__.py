"""A team's own stack: one more entrance to the platform's queue, for jobs at night, in the team's namespace."""

import pulumi
import pulumi_kubernetes as kubernetes

import kueue_fleet as kf

platform = pulumi.StackReference(pulumi.Config().require("platform"))
cluster = kubernetes.Provider("gpus", kubeconfig=platform.require_output("kubeconfig"))
there = pulumi.ResourceOptions(provider=cluster)
shared = kf.ClusterQueue.get("shared", opts=there)
nightly = kf.LocalQueue("nightly", namespace="speech", cluster_queue=shared, opts=there)
pulumi.export("queue", nightly.name)
