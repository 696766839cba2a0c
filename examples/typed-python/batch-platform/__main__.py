"""The Pulumi program: the fleet that fleet.py describes."""

import pulumi
from fleet import spec

import kueue_fleet as kf

fleet = kf.Fleet(spec.name, spec)
pulumi.export("kubeconfig", fleet.kubeconfig)
