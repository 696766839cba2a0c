"""A platform repository of its own: it imports the library, and declares the fleet of its stack's config."""

import pulumi

import kueue_fleet as kf

fleet = kf.Fleet.from_config()
pulumi.export("kubeconfig", fleet.kubeconfig)
