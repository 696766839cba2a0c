"""The refusal of jobs that ask DWS for longer than it grants, on one cluster.

In: objects that `spec.run_duration_policy` rendered. Out: the same, in order.
"""

from kueue_fleet.kueue.component import OrderedObjects


class RunDurationPolicy(OrderedObjects):
    """A ValidatingAdmissionPolicy and its binding."""

    pulumi_type = "kueue-fleet:index:RunDurationPolicy"
