"""The fleet of the stack's config; its worker is a cluster outside GKE that another stack has."""

import pulumi

import kueue_fleet as kf

cluster = pulumi.StackReference(pulumi.Config().require("cluster"))
paris = kf.KubernetesCluster(kubeconfig=cluster.require_output("kubeconfig"))
fleet = kf.Fleet.from_config(kubernetes_clusters={"worker-paris": paris})

pulumi.export("kubeconfig", fleet.kubeconfig)
