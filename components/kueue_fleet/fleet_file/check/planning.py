"""What `plan` may change: values that the file has, at one of the levels, each in one entry.

A number may have a unit behind it, which stays, as in the quantities of nominalQuota. Source:
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel.form_rules import FaultError
from kueue_admission.kernel.model_problems import problems_in
from kueue_admission.kernel.problem import Problem, errors_of
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.planning import PlanLimits
from kueue_fleet.fleet_file.rules.teams import PLAN_LIMIT


@entry_check("plan")
def _plan(scope: Scope, section: PlanLimits) -> Iterator[Problem]:
    """Each entry of `plan.mayChange`."""
    from kueue_fleet.fleet_file.knobs import knob_of  # Few fleets have the section.

    data = scope.fleet.wire() if scope.data is None else scope.data
    first_index: dict[str, int] = {}
    for number, entry in enumerate(section.may_change):
        path = f"plan.mayChange[{number}]"
        if errors_of([*problems_in(entry, path)]):
            continue  # Said where the entry is read.
        try:
            knob = knob_of(entry, data)
        except FaultError as wrong:
            yield PLAN_LIMIT.at(path, wrong.fault.wrong, wrong.fault.fix)
            continue
        for place in knob.places:
            if first_index.setdefault(place.path, number) != number:
                other = f"{place.path} is in plan.mayChange[{first_index[place.path]}] too"
                yield PLAN_LIMIT.at(path, other, "keep it in one of them")
