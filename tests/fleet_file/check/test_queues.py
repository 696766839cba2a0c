"""ClusterQueues against what is on their clusters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import (
    COVERED,
    FIRST_QUOTA,
    REMOVED,
    Data,
    changed,
    flavor_quotas,
    fleet_data,
    group,
    manager_quotas,
    problems,
    quota,
)


def devices(name: str) -> Data:
    """A resource group of flavor l4 with devices of that name in the place of GPUs."""
    result = {"coveredResources": COVERED, "flavors": [flavor_quotas("l4", 8)]}
    return changed(result, {"coveredResources/0": name, "flavors/0/resources/0/name": name})


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "what becomes of a resource": (
        {
            "kueue/configuration": {
                "resources": {
                    "transformations": [{"input": "nvidia.com/gpu", "outputs": {"example.com/credits": "10"}}]
                }
            }
        },
        [
            f"warning: clusterQueues[{name}].resourceGroups: no quota for example.com/credits, which Kueue makes of "
            "nvidia.com/gpu, and a job that requests it is never admitted; cover example.com/credits too, or remove "
            "the transformation"
            for name in ("vision", "language")
        ],
    ),
    "unknown cluster": (
        {"clusterQueues/1/clusters": ["worker-a", "worker-bb"]},
        ["clusterQueues[language].clusters[1]: there is no cluster worker-bb; did you mean worker-b?"],
    ),
    "unknown flavor": (
        {"clusterQueues/1/resourceGroups/0/flavors/0/name": "l44"},
        ["clusterQueues[language].resourceGroups[0].flavors[l44].name: there is no flavor l44; did you mean l4?"],
    ),
    "no flavor on a cluster": (
        {"clusterQueues/1/resourceGroups/0/flavors/0/name": "t4"},
        [
            (
                "clusterQueues[language].resourceGroups[0].flavors: t4 does not exist on worker-a, where the "
                "queue does; add worker-a to the clusters of a flavor, or leave it out of the queue's"
            )
        ],
    ),
    "none of two flavors on a cluster": (
        {"flavors/0/clusters": ["worker-b"]},
        [
            (
                "clusterQueues[vision].resourceGroups[0].flavors: none of l4, t4 exists on worker-a, where the "
                "queue does; add worker-a to the clusters of a flavor, or leave it out of the queue's"
            ),
            (
                "clusterQueues[language].resourceGroups[0].flavors: l4 does not exist on worker-a, where the "
                "queue does; add worker-a to the clusters of a flavor, or leave it out of the queue's"
            ),
        ],
    ),
    "a resource that no pod can request": (
        {
            "clusterQueues/1/resourceGroups/0": devices("gpu"),
            "clusterQueues/0/resourceGroups/0": devices("hugepages-2Mi"),
            "admissionChecks": REMOVED,
            "clusterQueues/0/admissionChecksStrategy": REMOVED,
            "flavors/1": REMOVED,
        },
        [
            "warning: clusterQueues[language].resourceGroups[0].coveredResources[0]: the quota for gpu has no effect, "
            "since no pod can request a resource without a domain but Kubernetes' own; did you mean nvidia.com/gpu?"
        ],
    ),
    "a flavor on no cluster of the queue": (
        {"clusterQueues/0/clusters": ["worker-a"]},
        [
            "warning: clusterQueues[vision].resourceGroups[0].flavors[t4]: has no effect, since the flavor is on "
            "worker-b only; add clusters of the queue to the flavor, or remove it here"
        ],
    ),
    "last acceptable flavor not on a cluster": (
        {
            "kueue/configuration": {"featureGates": {"ConcurrentAdmission": True}},
            "clusterQueues/0/queueingStrategy": "BestEffortFIFO",
            "clusterQueues/0/concurrentAdmissionPolicy": {
                "migration": {"mode": "TryPreferredFlavors", "constraints": {"lastAcceptableFlavorName": "t4"}}
            },
        },
        [
            (
                "clusterQueues[vision].concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName: "
                "t4 does not exist on worker-a, where the queue does, and Kueue refuses the queue there; "
                "name a flavor that is on each cluster of the queue, or add the clusters to the flavor"
            )
        ],
    ),
    "unknown check": (
        {"clusterQueues/0/admissionChecksStrategy/admissionChecks/0/name": "dwss"},
        [
            (
                "clusterQueues[vision].admissionChecksStrategy.admissionChecks[dwss]: there is no check dwss; "
                "did you mean dws?"
            ),
            (
                "warning: admissionChecks[dws]: no queue uses this check; name it in a queue's "
                "admissionChecksStrategy, or remove it"
            ),
        ],
    ),
    "check not there": (
        {"admissionChecks/0/clusters": ["worker-a"]},
        [
            (
                "clusterQueues[vision].admissionChecksStrategy.admissionChecks[dws]: check dws does not exist on "
                "worker-b, where the queue does; add worker-b to admissionChecks[dws].clusters, or leave "
                "worker-b out of the queue's"
            )
        ],
    ),
    "MultiKueue check by hand": (
        {"clusterQueues/0/admissionChecksStrategy/admissionChecks/+": {"name": "multikueue"}},
        [
            (
                "clusterQueues[vision].admissionChecksStrategy.admissionChecks[multikueue]: multikueue is the "
                "MultiKueue check, which the fleet adds to the manager's queues itself; remove it here, and list "
                "dispatched queues in multiKueue.queues"
            )
        ],
    ),
    "ProvisioningRequest on the manager": (
        {"admissionChecks/0/clusters": ["manager", "worker-a", "worker-b"]},
        [
            (
                "clusterQueues[vision].admissionChecksStrategy.admissionChecks[dws]: check dws asks for a "
                "ProvisioningRequest on manager, which dispatches this queue, and Kueue allows no queue both "
                "MultiKueue and a ProvisioningRequest; leave manager out of admissionChecks[dws].clusters: the "
                "workers ask for the capacity"
            )
        ],
    ),
    "on no cluster": (
        {
            "clusters": [{"name": "manager", "role": "manager", "region": "us-east4"}],
            "flavors/1/clusters": REMOVED,
            "multiKueue": REMOVED,
            "clusterQueues/1": REMOVED,
            "teams/1": REMOVED,
        },
        [
            "warning: clusters: there is a manager but no worker, so no job can run; add clusters of role worker",
            (
                "warning: clusterQueues[vision].cohortName: vision is alone in cohort research, so there is "
                "no queue to borrow from; put another queue in it, or remove cohortName"
            ),
            "clusterQueues[vision]: is on no cluster, since no cluster runs jobs; add clusters of role worker",
        ],
    ),
    "manager by hand": (
        {"clusterQueues/0/clusters": ["manager", "worker-b"]},
        [
            (
                "clusterQueues[vision].resourceGroups[0].flavors: none of l4, t4 exists on manager, where the "
                "queue does; add manager to the clusters of a flavor, or leave it out of the queue's"
            ),
            (
                "clusterQueues[vision].clusters[0]: manager dispatches this queue, and its copy there is "
                "derived; remove manager here"
            ),
        ],
    ),
    "manager quotas, not dispatched": (
        {"clusterQueues/0/manager": manager_quotas(), "multiKueue/queues": ["language"]},
        [
            (
                "clusterQueues[vision].manager: quotas for the manager are set, but the queue is not dispatched; "
                "add the queue to multiKueue.queues, or remove manager"
            )
        ],
    ),
    "perCluster unknown cluster": (
        {f"{FIRST_QUOTA}/perCluster": {"worker-c": {"nominalQuota": 2}}},
        [
            (
                "clusterQueues[vision].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].perCluster[worker-"
                "c]: there is no cluster worker-c; did you mean worker-b?"
            )
        ],
    ),
    "perCluster manager": (
        {f"{FIRST_QUOTA}/perCluster": {"manager": {"nominalQuota": 2}}},
        [
            (
                "clusterQueues[vision].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].perCluster[manager"
                "]: manager is the manager, whose amounts are the sum of the workers'; remove it, or write the "
                "manager's quotas under manager.resourceGroups"
            )
        ],
    ),
    "perCluster where the queue is not": (
        {"clusterQueues/0/clusters": ["worker-b"], f"{FIRST_QUOTA}/perCluster": {"worker-a": {"nominalQuota": 2}}},
        [
            (
                "clusterQueues[vision].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].perCluster[worker-"
                "a]: the queue is not on worker-a; remove it, or add worker-a to the queue's clusters"
            )
        ],
    ),
    "perCluster where the flavor is not": (
        {"clusterQueues/0/resourceGroups/0/flavors/1/resources/0/perCluster": {"worker-a": {"nominalQuota": 2}}},
        [
            (
                "clusterQueues[vision].resourceGroups[0].flavors[t4].resources[nvidia.com/gpu].perCluster[worker-"
                "a]: flavor t4 does not exist on worker-a; remove it, or add worker-a to flavors[t4].clusters"
            )
        ],
    ),
    "perCluster negative": (
        {f"{FIRST_QUOTA}/perCluster": {"worker-a": {"nominalQuota": -2}}},
        [
            (
                "clusterQueues[vision].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].perCluster[worker-"
                "a].nominalQuota: -2 is negative; write 0 or a positive amount"
            )
        ],
    ),
    "perCluster lends too much": (
        {f"{FIRST_QUOTA}/lendingLimit": 3, f"{FIRST_QUOTA}/perCluster": {"worker-a": {"nominalQuota": 2}}},
        [
            (
                "clusterQueues[vision].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].perCluster[worker-"
                "a].lendingLimit: 3 is more than the nominalQuota of 2; lower lendingLimit or remove it, which "
                "lends everything"
            )
        ],
    ),
    "perCluster limit without cohort": (
        {
            "clusterQueues/0/cohortName": REMOVED,
            "clusterQueues/1/cohortName": REMOVED,
            "cohorts": REMOVED,
            f"{FIRST_QUOTA}/perCluster": {"worker-a": {"borrowingLimit": 2}},
        },
        [
            (
                "clusterQueues[vision].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].perCluster[worker-"
                "a].borrowingLimit: 2 is set, but cohortName is not, so there is no queue to borrow from; set "
                "cohortName or remove borrowingLimit"
            )
        ],
    ),
    "no quotas": (
        {"clusterQueues/1/resourceGroups": []},
        ["warning: clusterQueues[language].resourceGroups: empty, so no job can ever be admitted; add quotas"],
    ),
    "GPU misspelt": (
        {"clusterQueues/1/resourceGroups": [devices("nvidia.com/gpus")]},
        [
            "warning: clusterQueues[language].resourceGroups: no quota for nvidia.com/gpu, which nodes of flavor l4 "
            "have, and a job that requests it is never admitted; write nvidia.com/gpu for nvidia.com/gpus"
        ],
    ),
    "memory in bytes": (
        {f"{FIRST_QUOTA[:-1]}2/nominalQuota": 300, f"{FIRST_QUOTA[:-1]}3/nominalQuota": "300m"},
        [
            "warning: clusterQueues[vision].resourceGroups[0].flavors[l4].resources[memory].nominalQuota: 300 of "
            "memory is counted in bytes; add a unit, such as Gi",
            "warning: clusterQueues[vision].resourceGroups[0].flavors[l4].resources[ephemeral-storage].nominalQuota: "
            "300m of ephemeral-storage is counted in bytes; add a unit, such as Gi",
        ],
    ),
    "memory in thousands of bytes": (
        {f"{FIRST_QUOTA[:-1]}2/nominalQuota": 7000},
        [
            "warning: clusterQueues[vision].resourceGroups[0].flavors[l4].resources[memory].nominalQuota: 7000 of "
            "memory is counted in bytes; add a unit, such as Gi",
        ],
    ),
    "other devices": (
        {"clusterQueues/1/resourceGroups": [devices("a.b/c")]},
        [
            "warning: clusterQueues[language].resourceGroups: no quota for nvidia.com/gpu, which nodes of flavor l4 "
            "have, and a job that requests it is never admitted; cover nvidia.com/gpu too"
        ],
    ),
    "GPU only": (
        {
            "clusterQueues/1/resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu"],
                    "flavors": [{"name": "l4", "resources": [quota("nvidia.com/gpu", 8)]}],
                }
            ]
        },
        [
            (
                "warning: clusterQueues[language].resourceGroups: no quota for cpu, memory, ephemeral-storage, "
                "and a job that requests it is never admitted (Autopilot adds requests for it to every pod); "
                "cover cpu, memory, ephemeral-storage too"
            )
        ],
    ),
}

IGNORE = {"kueue/configuration": {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}}}
NOT_COUNTED = (
    "warning: clusterQueues[language].resourceGroups: no quota for nvidia.com/gpu, which nodes of flavor l4 have, and "
    "a job that requests it gets any number of them, as Kueue ignores what is not covered; "
)
UNDISPATCHED = (
    "warning: kueue.configuration.resources.quotaCheckStrategy: IgnoreUndeclared, so that manager admits a job of "
    "queue language that requests nothing that its queue covers, such as nvidia.com/gpu, without a worker, and it "
    "never runs (policies of teams refuse such jobs"
)
COVER = "cover pods, of which each pod requests one, or cpu and memory"

REFUSED |= {
    "GPUs misspelt, the rest ignored": (
        {**IGNORE, "clusterQueues/1/resourceGroups": [group(["nvidia.com/gpus"])]},
        [
            f"{UNDISPATCHED}); {COVER}".replace("nvidia.com/gpu,", "nvidia.com/gpus,"),
            f"{NOT_COUNTED}write nvidia.com/gpu for nvidia.com/gpus",
        ],
    ),
    "a queue of GPU nodes that covers CPUs alone, the rest ignored": (
        {**IGNORE, "clusterQueues/1/resourceGroups": [group()]},
        [f"{NOT_COUNTED}cover nvidia.com/gpu too"],
    ),
    "IgnoreUndeclared where the gate is off": (
        {
            **IGNORE,
            "kueue/version": "0.18.3",
            "clusterQueues/1/resourceGroups": [group(["nvidia.com/gpu"])],
            "multiKueue/workerLostTimeout": "168h",
        },
        [
            "warning: kueue.configuration.resources.quotaCheckStrategy: IgnoreUndeclared has no effect, since the "
            "feature gate QuotaCheckStrategy of Kueue 0.18.3 is off; set featureGates.QuotaCheckStrategy to true, or "
            "cover what jobs request",
            "warning: clusterQueues[language].resourceGroups: no quota for cpu, memory, ephemeral-storage, and a job "
            "that requests it is never admitted (Autopilot adds requests for it to every pod); cover cpu, memory, "
            "ephemeral-storage too",
        ],
    ),
    "a queue of GPUs alone under a manager, the rest ignored": (
        {**IGNORE, "clusterQueues/1/resourceGroups": [group(["nvidia.com/gpu"])]},
        [f"{UNDISPATCHED}); {COVER}"],
    ),
    "a LocalQueue of no team, the rest ignored": (
        {
            **IGNORE,
            "clusterQueues/1/resourceGroups": [group(["nvidia.com/gpu"])],
            "localQueues/0/clusterQueue": "language",
        },
        [f"{UNDISPATCHED}, but nothing does in default/trial); {COVER}"],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "check for a flavor that is elsewhere": {"admissionChecks/0/clusters": ["worker-b"]},
    "queue of one worker": {"clusterQueues/0/clusters": ["worker-b"]},
    "amounts per cluster": {
        f"{FIRST_QUOTA}/perCluster": {
            "worker-a": {"nominalQuota": 2, "borrowingLimit": 1, "lendingLimit": 2},
            "worker-b": {},
        }
    },
    "GPU only, the rest excluded": {
        "kueue/configuration": {"resources": {"excludeResourcePrefixes": ["cpu", "memory", "ephemeral-storage"]}},
        **{
            f"clusterQueues/{number}/resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu"],
                    "flavors": [{"name": name, "resources": [quota("nvidia.com/gpu", 2)]} for name in names],
                }
            ]
            for number, names in ((0, ("l4", "t4")), (1, ("l4",)))
        },
    },
    "no GPU": {"clusterQueues/1/resourceGroups": [group()]},
    "GPU under another name": {
        "kueue/configuration": {"resources": {"deviceClassMappings": [{"name": "a/gpu", "deviceClassNames": ["gpu"]}]}},
        "clusterQueues/1/resourceGroups": [devices("a/gpu")],
    },
    "no ephemeral storage on Standard": {
        "clusters/1/mode": "Standard",
        "clusters/1/existing": True,
        "clusters/2/mode": "Standard",
        "clusters/2/existing": True,
        "clusters/0/mode": "Standard",
        "clusterQueues/1/resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu", "cpu", "memory"],
                "flavors": [
                    {"name": "l4", "resources": [quota("nvidia.com/gpu", 8), quota("cpu", 8), quota("memory", "8Gi")]}
                ],
            }
        ],
    },
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changes: dict[str, Any]) -> None:
    assert problems(changed(fleet_data(), changes)) == []


def test_flavors_of_two_groups_agree_on_their_labels() -> None:
    changes = {
        "flavors/0/nodeLabels": {"cloud.google.com/machine-family": "g2"},
        "flavors/+": {"name": "plain", "nodeLabels": {"cloud.google.com/machine-family": "e2"}},
        "clusterQueues/1/resourceGroups": [group(COVERED[:1]), group(COVERED[1:], ["plain"])],
    }
    assert [text for text in problems(changed(fleet_data(), changes)) if "at random" in text] == [
        "warning: clusterQueues[language].resourceGroups: flavors l4 and plain have different values of the node label "
        "cloud.google.com/machine-family, g2 and e2, and Kueue gives a pod that asks for nvidia.com/gpu and cpu one of "
        "them at random; cover these resources in one group, or give the label to one of the flavors only"
    ]
