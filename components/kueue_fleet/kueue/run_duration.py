"""The refusal of jobs that ask DWS for longer than it grants, on one cluster."""

from kueue_fleet.kueue.component import OrderedObjects


class RunDurationPolicy(OrderedObjects):
    """A ValidatingAdmissionPolicy and its binding."""

    pulumi_type = "kueue-fleet:index:RunDurationPolicy"
