"""Pulumi components on Google Cloud: the network, the identities, the capacity and the clusters of a fleet.

Nothing here knows what runs inside a cluster. Annotations name the classes of pulumi-gcp in quotes: the SDK imports a
part of itself when one of its classes is looked up, and `pulumi_gcp.compute` alone takes a second.
"""
