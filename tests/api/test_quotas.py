"""Resource groups, quotas and weights."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import group, model_problems, queue, quota

from kueue_admission.api import ClusterQueueSpec
from kueue_admission.api.quotas import LimitRules, ResourceQuota, check_quota

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "negative nominalQuota": (
        {
            "resourceGroups": [
                {"coveredResources": ["cpu"], "flavors": [{"name": "l4", "resources": [quota("cpu", "-1")]}]}
            ]
        },
        ["resourceGroups[0].flavors[l4].resources[cpu].nominalQuota: -1 is negative; write 0 or a positive amount"],
    ),
    "negative borrowingLimit": (
        {"cohortName": "c", "resourceGroups": [group(borrowingLimit=-1)]},
        ["resourceGroups[0].flavors[l4].resources[cpu].borrowingLimit: -1 is negative; write 0 or a positive amount"],
    ),
    "negative lendingLimit": (
        {"cohortName": "c", "resourceGroups": [group(lendingLimit=-1)]},
        ["resourceGroups[0].flavors[l4].resources[cpu].lendingLimit: -1 is negative; write 0 or a positive amount"],
    ),
    "borrowingLimit without cohort": (
        {"resourceGroups": [group(borrowingLimit=1)]},
        [
            (
                "resourceGroups[0].flavors[l4].resources[cpu].borrowingLimit: 1 is set, but cohortName is not, "
                "so there is no queue to borrow from; set cohortName or remove borrowingLimit"
            )
        ],
    ),
    "lendingLimit without cohort": (
        {"resourceGroups": [group(lendingLimit=1)]},
        [
            (
                "resourceGroups[0].flavors[l4].resources[cpu].lendingLimit: 1 is set, but cohortName is not, so "
                "there is no queue to lend to; set cohortName or remove lendingLimit"
            )
        ],
    ),
    "lendingLimit above nominalQuota": (
        {"cohortName": "c", "resourceGroups": [group(lendingLimit="4.5")]},
        [
            (
                "resourceGroups[0].flavors[l4].resources[cpu].lendingLimit: 4500m is more than the nominalQuota "
                "of 4; lower lendingLimit or remove it, which lends everything"
            )
        ],
    ),
    "resource in two groups": (
        {"resourceGroups": [group(), group(flavors=("t4",))]},
        [
            (
                "resourceGroups[1].coveredResources[0]: cpu is already covered by "
                "resourceGroups[0].coveredResources[0]; cover each resource once"
            )
        ],
    ),
    "resource twice in a group": (
        {
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "cpu"],
                    "flavors": [{"name": "l4", "resources": [quota("cpu", 1), quota("cpu", 1)]}],
                }
            ]
        },
        [
            (
                "resourceGroups[0].coveredResources[1]: cpu is already covered by "
                "resourceGroups[0].coveredResources[0]; cover each resource once"
            )
        ],
    ),
    "flavor in two groups": (
        {"resourceGroups": [group(), group(("memory",))]},
        [
            (
                "resourceGroups[1].flavors[l4].name: flavor l4 already has quotas at "
                "resourceGroups[0].flavors[l4]; give each flavor its quotas in one place"
            )
        ],
    ),
    "flavor twice in a group": (
        {"resourceGroups": [group(flavors=("l4", "l4"))]},
        [
            (
                "resourceGroups[0].flavors[1].name: flavor l4 already has quotas at "
                "resourceGroups[0].flavors[0]; give each flavor its quotas in one place"
            )
        ],
    ),
    "resources in another order": (
        {
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory"],
                    "flavors": [{"name": "l4", "resources": [quota("memory", 1), quota("cpu", 1)]}],
                }
            ]
        },
        [
            (
                "resourceGroups[0].flavors[l4].resources: order is memory, cpu, but coveredResources has cpu, "
                "memory; put both in the same order"
            )
        ],
    ),
    "resource without quota": (
        {
            "resourceGroups": [
                {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "l4", "resources": [quota("cpu", 1)]}]}
            ]
        },
        [
            (
                "resourceGroups[0].flavors[l4].resources: no quota for memory, which coveredResources lists; add "
                "a quota for memory"
            )
        ],
    ),
    "quota for an uncovered resource": (
        {
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "l4", "resources": [quota("cpu", 1), quota("memory", 1)]}],
                }
            ]
        },
        [
            (
                "resourceGroups[0].flavors[l4].resources[memory]: quota for memory, which coveredResources does "
                "not list; add memory to coveredResources or remove the quota"
            )
        ],
    ),
    "quota twice": (
        {
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory"],
                    "flavors": [{"name": "l4", "resources": [quota("cpu", 1), quota("cpu", 1)]}],
                }
            ]
        },
        [
            "resourceGroups[0].flavors[l4].resources: cpu has more than one quota; give each resource one quota",
            (
                "resourceGroups[0].flavors[l4].resources: no quota for memory, which coveredResources lists; add "
                "a quota for memory"
            ),
        ],
    ),
    "resource name no label key": (
        {"resourceGroups": [group(("nvidia.com/",))]},
        [
            ('resourceGroups[0].coveredResources[0]: "nvidia.com/" has nothing after the slash; write a name there'),
            (
                'resourceGroups[0].flavors[l4].resources[nvidia.com/].name: "nvidia.com/" has nothing after the '
                "slash; write a name there"
            ),
        ],
    ),
    "no resources": (
        {"resourceGroups": [{"coveredResources": [], "flavors": [{"name": "l4", "resources": [quota("cpu", 1)]}]}]},
        ["resourceGroups[0].coveredResources: no items; list at least 1"],
    ),
    "no flavors": (
        {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": []}]},
        ["resourceGroups[0].flavors: no items; list at least 1"],
    ),
    "flavor without resources": (
        {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "l4", "resources": []}]}]},
        ["resourceGroups[0].flavors[l4].resources: no items; list at least 1"],
    ),
    "17 groups": (
        {"resourceGroups": [group((f"r{i}",), (f"f{i}",)) for i in range(17)]},
        ["resourceGroups: 17 items; use at most 16"],
    ),
    "65 flavors in a group": (
        {"resourceGroups": [group(flavors=tuple(f"f{i}" for i in range(65)))]},
        ["resourceGroups[0].flavors: 65 items; use at most 64"],
    ),
    "65 resources in a group": (
        {"resourceGroups": [group(tuple(f"r{i}" for i in range(65)))]},
        [
            "resourceGroups[0].coveredResources: 65 items; use at most 64",
            "resourceGroups[0].flavors[l4].resources: 65 items; use at most 64",
        ],
    ),
    "257 flavors": (
        {
            "resourceGroups": [
                *(group((f"r{g}",), tuple(f"f{g}-{i}" for i in range(64))) for g in range(4)),
                group(("last",), ("last",)),
            ]
        },
        ["resourceGroups: 257 flavors in all groups together, at most 256 are allowed; use fewer flavors"],
    ),
    "257 resources": (
        {
            "resourceGroups": [
                *(group(tuple(f"r{g}-{i}" for i in range(64)), (f"f{g}",)) for g in range(4)),
                group(("last",), ("last",)),
            ]
        },
        [
            (
                "resourceGroups: 257 covered resources in all groups together, at most 256 are allowed; use "
                "fewer covered resources"
            )
        ],
    ),
    "520 pairs in a group": (
        {"resourceGroups": [group(tuple(f"r{i}" for i in range(52)), tuple(f"f{i}" for i in range(10)))]},
        ["resourceGroups[0]: 520 pairs of flavor and resource, at most 512 are allowed; split the group"],
    ),
    "flavor name": (
        {"resourceGroups": [group(flavors=("L4_gpu",))]},
        [
            (
                'resourceGroups[0].flavors[L4_gpu].name: "L4_gpu" has characters or a form that are not allowed; '
                "use lower-case letters, digits, hyphens and dots, with a letter or digit at both ends"
            )
        ],
    ),
    "negative weight": (
        queue(fairSharing={"weight": -1}),
        ["fairSharing.weight: -1 is negative; write 0 or a positive number"],
    ),
    "weight lost in the arithmetic": (
        queue(fairSharing={"weight": "1n"}),
        ["fairSharing.weight: 1n is too small to count with; write 0 or a number above 1n"],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "limits with a cohort": {"cohortName": "c", "resourceGroups": [group(borrowingLimit=0, lendingLimit=4)]},
    "weight 0": queue(fairSharing={"weight": 0}),
    "weight 2n": queue(fairSharing={"weight": "2n"}),
    "16 groups": {"resourceGroups": [group((f"r{i}",), (f"f{i}",)) for i in range(16)]},
    "512 pairs in a group": {
        "resourceGroups": [group(tuple(f"r{i}" for i in range(64)), tuple(f"f{i}" for i in range(8)))]
    },
    "256 flavors": {"resourceGroups": [group((f"r{g}",), tuple(f"f{g}-{i}" for i in range(64))) for g in range(4)]},
    "nothing": {},
}


@pytest.mark.parametrize(("data", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(ClusterQueueSpec, data) == expected


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(data: dict[str, Any]) -> None:
    assert model_problems(ClusterQueueSpec, data) == []


@pytest.mark.parametrize(
    ("resource", "amount", "said"),
    [
        ("nvidia.com/gpu", "1500m", "1500m of nvidia.com/gpu is 2 to Kueue, which rounds up; write 1 or 2"),
        (
            "example.com/gpu-memory",
            "10Gi",
            "10Gi is 10737418240 of example.com/gpu-memory; write 10, "
            "unless example.com/gpu-memory is counted in bytes",
        ),
    ],
)
def test_devices_in_other_units_are_warned_of(resource: str, amount: str, said: str) -> None:
    """Kueue takes them."""
    queue_of = ClusterQueueSpec.model_validate({})
    given = ResourceQuota.model_validate({"name": resource, "nominalQuota": amount})
    [result] = check_quota(given, LimitRules(queue_of, "cohortName"), "r")
    assert (str(result), result.severity) == (f"r.nominalQuota: {said}", "warning")
