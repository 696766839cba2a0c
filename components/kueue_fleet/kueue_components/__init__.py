"""Pulumi components for what is inside a cluster: Kueue, JobSet, and Kueue's objects.

They take models and manifests of `kueue_admission.api`, and the provider of a cluster by `opts`. Each can be used alone
on any Kubernetes cluster, or together by `kueue_fleet.fleet`. Nothing here knows Google Cloud.
"""
