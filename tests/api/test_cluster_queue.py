"""ClusterQueue."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import group, model_problems, queue

from kueue_admission.api import ClusterQueueSpec

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "preference with stopping": (
        queue(
            flavorFungibility={
                "whenCanBorrow": "TryNextFlavor",
                "whenCanPreempt": "MayStopSearch",
                "preference": "BorrowingOverPreemption",
            }
        ),
        [
            (
                "flavorFungibility.preference: BorrowingOverPreemption is set, but whenCanBorrow is "
                "TryNextFlavor and whenCanPreempt is MayStopSearch; set both to TryNextFlavor or remove "
                "preference"
            )
        ],
    ),
    "preference with the defaults": (
        queue(flavorFungibility={"preference": "PreemptionOverBorrowing"}),
        [
            (
                "flavorFungibility.preference: PreemptionOverBorrowing is set, but whenCanBorrow is "
                "MayStopSearch and whenCanPreempt is TryNextFlavor; set both to TryNextFlavor or remove "
                "preference"
            )
        ],
    ),
    "fungibility of v1beta1": (
        queue(flavorFungibility={"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}),
        [
            'flavorFungibility.whenCanBorrow: "Borrow" was removed in Kueue\'s v1beta2; write MayStopSearch',
            'flavorFungibility.whenCanPreempt: "Preempt" was removed in Kueue\'s v1beta2; write MayStopSearch',
        ],
    ),
    "borrowing preemption without reclaim": (
        queue(preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}),
        [
            (
                "preemption.borrowWithinCohort.policy: LowerPriority, but reclaimWithinCohort is Never; set "
                "reclaimWithinCohort to LowerPriority or Any, or this policy to Never"
            )
        ],
    ),
    "unknown preemption": (
        queue(preemption={"withinClusterQueue": "Any"}),
        [
            (
                'preemption.withinClusterQueue: "Any" is not allowed; use one of Never, LowerPriority, '
                "LowerOrNewerEqualPriority"
            )
        ],
    ),
    "threshold too large": (
        queue(preemption={"borrowWithinCohort": {"maxPriorityThreshold": 2147483648}}),
        ["preemption.borrowWithinCohort.maxPriorityThreshold: 2147483648 is too large; use at most 2147483647"],
    ),
    "unknown strategy": (
        queue(queueingStrategy="FIFO"),
        ['queueingStrategy: "FIFO" is not allowed; use one of StrictFIFO, BestEffortFIFO'],
    ),
    "unknown stopPolicy": (
        queue(stopPolicy="Drain"),
        ['stopPolicy: "Drain" is not allowed; did you mean HoldAndDrain? Allowed: None, Hold, HoldAndDrain'],
    ),
    "cohort name": (
        queue(cohortName="Research Team"),
        [
            (
                'cohortName: "Research Team" has characters or a form that are not allowed; use lower-case '
                "letters, digits, hyphens and dots, with a letter or digit at both ends"
            )
        ],
    ),
    "cohort name too long": (
        queue(cohortName="c" * 254),
        [
            (
                'cohortName: "ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc..." '
                "is 254 characters long; use at most 253"
            )
        ],
    ),
    "no checks": (
        queue(admissionChecksStrategy={"admissionChecks": []}),
        ["admissionChecksStrategy.admissionChecks: no items; list at least 1"],
    ),
    "65 checks": (
        queue(admissionChecksStrategy={"admissionChecks": [{"name": f"c{i}"} for i in range(65)]}),
        ["admissionChecksStrategy.admissionChecks: 65 items; use at most 64"],
    ),
    "check twice": (
        queue(admissionChecksStrategy={"admissionChecks": [{"name": "a"}, {"name": "a"}]}),
        ["admissionChecksStrategy.admissionChecks: a is listed 2 times; list each check once"],
    ),
    "check without name": (
        queue(admissionChecksStrategy={"admissionChecks": [{"name": ""}]}),
        ['admissionChecksStrategy.admissionChecks[0].name: "" is empty; write a name'],
    ),
    "check name too long": (
        queue(admissionChecksStrategy={"admissionChecks": [{"name": "c" * 317}]}),
        [
            (
                "admissionChecksStrategy.admissionChecks[0].name: "
                '"ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc..." is 317 '
                "characters long; use at most 316"
            )
        ],
    ),
    "onFlavors of another queue": (
        queue(admissionChecksStrategy={"admissionChecks": [{"name": "a", "onFlavors": ["l44"]}]}),
        [
            (
                "admissionChecksStrategy.admissionChecks[a].onFlavors[0]: the queue has no quota on flavor l44; "
                "did you mean l4?"
            )
        ],
    ),
    "onFlavors twice": (
        queue(admissionChecksStrategy={"admissionChecks": [{"name": "a", "onFlavors": ["l4", "l4"]}]}),
        ["admissionChecksStrategy.admissionChecks[a].onFlavors[1]: l4 is listed twice; list each flavor once"],
    ),
    "cohort of v1beta1": (
        queue(cohort="c"),
        ["cohort: was removed in Kueue's v1beta2; write cohortName"],
    ),
    "admissionChecks of v1beta1": (
        queue(admissionChecks=["dws"]),
        [
            (
                "admissionChecks: was removed in Kueue's v1beta2; write admissionChecksStrategy.admissionChecks, "
                "a list of {name, onFlavors}"
            )
        ],
    ),
    "unknown field": (
        queue(preemtion={}),
        ["preemtion: is not a known field; did you mean preemption?"],
    ),
    "admissionMode": (
        queue(admissionScope={"admissionMode": "Usage"}),
        [
            (
                'admissionScope.admissionMode: "Usage" is not allowed; did you mean '
                "UsageBasedAdmissionFairSharing? Allowed: UsageBasedAdmissionFairSharing, NoAdmissionFairSharing"
            )
        ],
    ),
    "concurrent admission with two groups": (
        {
            "resourceGroups": [group(), group(("memory",), ("t4",))],
            "concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors"}},
        },
        [
            (
                "resourceGroups: 2 groups, but concurrentAdmissionPolicy needs exactly one; use one group or "
                "remove concurrentAdmissionPolicy"
            )
        ],
    ),
    "concurrent admission with 17 flavors": (
        {
            "resourceGroups": [group(flavors=tuple(f"f{i}" for i in range(17)))],
            "concurrentAdmissionPolicy": {"migration": {"mode": "TryPreferredFlavors"}},
        },
        [
            (
                "resourceGroups[0].flavors: 17 flavors, but concurrentAdmissionPolicy allows at most 16; use "
                "fewer flavors or remove concurrentAdmissionPolicy"
            )
        ],
    ),
    "concurrent admission with StrictFIFO": (
        queue(queueingStrategy="StrictFIFO", concurrentAdmissionPolicy={"migration": {"mode": "RetainFirstAdmission"}}),
        [
            (
                "queueingStrategy: StrictFIFO cannot be used with concurrentAdmissionPolicy; use BestEffortFIFO "
                "or remove concurrentAdmissionPolicy"
            )
        ],
    ),
    "constraints without migration": (
        queue(
            concurrentAdmissionPolicy={
                "migration": {"mode": "RetainFirstAdmission", "constraints": {"lastAcceptableFlavorName": "l4"}}
            }
        ),
        [
            (
                "concurrentAdmissionPolicy.migration.constraints: set, but mode is RetainFirstAdmission; set "
                "mode to TryPreferredFlavors or remove constraints"
            )
        ],
    ),
    "last acceptable flavor unknown": (
        queue(
            concurrentAdmissionPolicy={
                "migration": {"mode": "TryPreferredFlavors", "constraints": {"lastAcceptableFlavorName": "t4"}}
            }
        ),
        [
            (
                "concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName: the queue has no "
                "quota on flavor t4; use one of the flavors of the queue: l4"
            )
        ],
    ),
    "concurrent admission without mode": (
        queue(concurrentAdmissionPolicy={"migration": {}}),
        ["concurrentAdmissionPolicy.migration.mode: is missing; add mode"],
    ),
    "selector without values": (
        queue(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        [
            (
                "namespaceSelector.matchExpressions[0].values: empty, but operator In compares with it; list at "
                "least one value"
            )
        ],
    ),
    "selector with needless values": (
        queue(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
        [
            (
                "namespaceSelector.matchExpressions[0].values: b given, but operator Exists takes no values; "
                "remove values, or use operator In or NotIn"
            )
        ],
    ),
    "selector operator": (
        queue(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Equals", "values": ["b"]}]}),
        [
            (
                'namespaceSelector.matchExpressions[0].operator: "Equals" is not allowed; use one of In, NotIn, '
                "Exists, DoesNotExist"
            )
        ],
    ),
    "selector key": (
        queue(namespaceSelector={"matchLabels": {"-a": "b"}}),
        [
            (
                'namespaceSelector.matchLabels: the key "-a" has characters or a form that are not allowed; use '
                "letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            )
        ],
    ),
    "selector value": (
        queue(namespaceSelector={"matchLabels": {"a": "b c"}}),
        [
            (
                'namespaceSelector.matchLabels[a]: "b c" has characters or a form that are not allowed; use '
                "letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            )
        ],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "preference with both": queue(
        flavorFungibility={
            "whenCanBorrow": "TryNextFlavor",
            "whenCanPreempt": "TryNextFlavor",
            "preference": "BorrowingOverPreemption",
        }
    ),
    "borrowing preemption with reclaim": queue(
        preemption={
            "reclaimWithinCohort": "LowerPriority",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": -5},
        }
    ),
    "checks on flavors": queue(
        admissionChecksStrategy={"admissionChecks": [{"name": "a", "onFlavors": ["l4"]}, {"name": "b"}]}
    ),
    "concurrent admission": queue(
        concurrentAdmissionPolicy={
            "migration": {"mode": "TryPreferredFlavors", "constraints": {"lastAcceptableFlavorName": "l4"}}
        }
    ),
    "selectors": queue(
        namespaceSelector={
            "matchLabels": {"a.b/c": ""},
            "matchExpressions": [
                {"key": "a", "operator": "NotIn", "values": ["b"]},
                {"key": "a", "operator": "DoesNotExist"},
            ],
        }
    ),
    "stop policy None": queue(stopPolicy="None"),
}


@pytest.mark.parametrize(("data", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(ClusterQueueSpec, data) == expected


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(data: dict[str, Any]) -> None:
    assert model_problems(ClusterQueueSpec, data) == []
