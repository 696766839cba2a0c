"""A platform repository of its own: it imports the library, and declares the fleet of its stack's config."""

import pulumi

from kueue_admission.forms import SpecError
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import parse_fleet

config = pulumi.Config("kueue-fleet")
try:
    spec = parse_fleet(config.require_object("fleet"))
except SpecError as error:
    raise pulumi.RunError(str(error)) from None
fleet = Fleet(spec.name, spec)
pulumi.export("kubeconfig", fleet.kubeconfig)
