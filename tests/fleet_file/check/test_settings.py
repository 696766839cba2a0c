"""Kueue's Configuration on each cluster."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems

BROKEN_SELECTOR = {"matchExpressions": [{"key": "a", "operator": "In"}]}
BROKEN = (
    "managedJobsNamespaceSelector.matchExpressions[0].values: empty, but operator In compares with it; list at least "
    "one value"
)
REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a Trainer whose jobs Kueue cannot start": (
        {"operators": {"trainer": {"version": "2.1.0"}}},
        [
            "warning: operators.trainer.version: 2.1.0, whose TrainJobs Kueue 0.19.2 on manager admits and cannot "
            "start: they stay suspended; use 2.2.0 or a newer one"
        ],
    ),
    "usage that does not count": (
        {
            "kueue/configuration": {"admissionFairSharing": {"usageSamplingInterval": "5m"}},
            "clusterQueues/0/admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
        },
        [
            "warning: kueue.configuration.admissionFairSharing: has no effect, since usageHalfLifeTime is 0s, the "
            "default, with which past usage does not count; set usageHalfLifeTime, such as 168h"
        ],
    ),
    "namespace": (
        {"kueue/configuration": {"namespace": "kueue"}},
        [
            (
                "kueue.configuration.namespace: kueue, but kueue.namespace is kueue-system; remove it here: "
                "kueue.namespace sets it"
            )
        ],
    ),
    "dispatcher in the Configuration": (
        {"kueue/configuration": {"multiKueue": {"dispatcherName": "example.com/d"}}},
        [
            (
                "kueue.configuration.multiKueue.dispatcherName: is set here, but belongs to the fleet's "
                "multiKueue section; set multiKueue.dispatcher"
            )
        ],
    ),
    "origin in a cluster's Configuration": (
        {"clusters/0/kueue": {"configuration": {"multiKueue": {"origin": "x"}}}},
        [
            (
                "clusters[manager].kueue.configuration.multiKueue.origin: is set here, but belongs to the "
                "fleet's multiKueue section; set multiKueue.origin"
            )
        ],
    ),
    "broken selector of the fleet": (
        {"kueue/configuration": {"managedJobsNamespaceSelector": BROKEN_SELECTOR}},
        [f"kueue.configuration.{BROKEN}"],
    ),
    "broken selector of a cluster": (
        {"clusters/1/kueue": {"configuration": {"managedJobsNamespaceSelector": BROKEN_SELECTOR}}},
        [f"clusters[worker-a].kueue.configuration.{BROKEN}"],
    ),
    "rule of the Configuration": (
        {
            "kueue/configuration": {
                "fairSharing": {"preemptionStrategies": ["LessThanInitialShare", "LessThanOrEqualToFinalShare"]}
            }
        },
        [
            (
                "kueue.configuration.fairSharing.preemptionStrategies: [LessThanInitialShare, "
                "LessThanOrEqualToFinalShare] is not allowed; write [LessThanOrEqualToFinalShare] or "
                "[LessThanInitialShare] or [LessThanOrEqualToFinalShare, LessThanInitialShare]"
            )
        ],
    ),
    "rule of a cluster's Configuration": (
        {
            "clusters/1/kueue": {
                "configuration": {"integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "batch/jobs"]}}
            }
        },
        [
            (
                "clusters[worker-a].kueue.configuration.integrations.frameworks[2]: batch/jobs is not a framework "
                "of Kueue; did you mean batch/job?"
            )
        ],
    ),
    "MultiKueue off": (
        {"clusters/0/kueue": {"configuration": {"featureGates": {"MultiKueue": False}}}},
        [
            (
                "multiKueue: feature gate MultiKueue is off on manager, so nothing is dispatched; remove the "
                "override of the gate"
            )
        ],
    ),
    "ClusterProfile without gate": (
        {
            "multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"},
            "clusters/0/kueue": {"configuration": {"featureGates": {"MultiKueueClusterProfile": False}}},
        },
        [
            (
                "multiKueue.credentials.type: ClusterProfile, but feature gate MultiKueueClusterProfile is off "
                "on manager; remove the override of the gate, or use ServiceAccountToken"
            )
        ],
    ),
    "plugin of one's own": (
        {"kueue/configuration": {"multiKueue": {"clusterProfile": {"accessProviders": [{"name": "mine"}]}}}},
        [
            (
                "kueue.configuration.multiKueue.clusterProfile: is set here, but belongs to the fleet's multiKueue "
                "section; set multiKueue.credentials"
            )
        ],
    ),
    "no plugin": (
        {"multiKueue/credentials": {"type": "ClusterProfile"}},
        ["multiKueue.credentials.pluginImage: is missing; add pluginImage"],
    ),
    "topologies off": (
        {
            "kueue/configuration": {
                "featureGates": {
                    "TopologyAwareScheduling": False,
                    "TASProfileMixed": False,
                    "TASHandleOverlappingFlavors": False,
                    "TASFailedNodeReplacement": False,
                    "TASFailedNodeReplacementFailFast": False,
                    "TASReplaceNodeOnPodTermination": False,
                    "TASReplaceNodeOnNodeTaints": False,
                    "TASMultiLayerTopology": False,
                    "TASRecomputeAssignmentWithinSchedulingCycle": False,
                }
            },
            "flavors/0/topologyName": "rack",
            "topologies": [{"name": "rack", "levels": [{"nodeLabel": "example.com/rack"}]}],
        },
        [
            (
                "topologies[rack]: feature gate TopologyAwareScheduling is off on worker-a, worker-b, where the "
                "topology exists; remove the override of the gate, or the topology"
            )
        ],
    ),
    "JobSet not managed": (
        {"kueue/configuration": {"integrations": {"frameworks": ["batch/job"]}}},
        [
            (
                "warning: jobSet: is installed, but Kueue on manager, worker-a, worker-b does not manage it; add "
                "jobset.x-k8s.io/jobset to integrations.frameworks, or set jobSet.enabled to false"
            )
        ],
    ),
    "worker misses a framework": (
        {
            "clusters/0/kueue": {
                "configuration": {
                    "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "ray.io/rayjob"]}
                }
            },
            "operators/installedElsewhere": ["ray.io/rayjob"],
        },
        [
            (
                "warning: clusters[worker-a].kueue.configuration.integrations.frameworks: ray.io/rayjob is "
                "missing, but the manager dispatches jobs of this kind; add ray.io/rayjob"
            ),
            (
                "warning: clusters[worker-b].kueue.configuration.integrations.frameworks: ray.io/rayjob is "
                "missing, but the manager dispatches jobs of this kind; add ray.io/rayjob"
            ),
        ],
    ),
    "weight without fair sharing": (
        {"clusterQueues/0/fairSharing": {"weight": 2}},
        [
            (
                "warning: clusterQueues[vision].fairSharing.weight: 2 has no effect, since fair sharing is off; "
                "add kueue.configuration.fairSharing, or remove it"
            )
        ],
    ),
    "borrowWithinCohort with fair sharing": (
        {
            "kueue/configuration": {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}},
            "clusterQueues/0/preemption": {
                "reclaimWithinCohort": "Any",
                "borrowWithinCohort": {"policy": "LowerPriority"},
            },
        },
        [
            (
                "warning: clusterQueues[vision].preemption.borrowWithinCohort: is not meant for fair sharing, "
                "which is on; remove it, or kueue.configuration.fairSharing"
            )
        ],
    ),
    "admissionScope without effect": (
        {"clusterQueues/0/admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}},
        [
            (
                "warning: clusterQueues[vision].admissionScope: UsageBasedAdmissionFairSharing has no effect, "
                "since admission fair sharing is off; add kueue.configuration.admissionFairSharing, or remove it"
            )
        ],
    ),
    "weight of a LocalQueue whose ClusterQueue does not count usage": (
        {
            "kueue/configuration": {"admissionFairSharing": {"usageHalfLifeTime": "168h"}},
            "teams/0/localQueues/0/fairSharing": {"weight": 2},
        },
        [
            (
                "warning: teams[team-vision].localQueues[main].fairSharing.weight: 2 has no effect, since vision does "
                "not order its LocalQueues by usage; set admissionScope of vision and "
                "kueue.configuration.admissionFairSharing, or remove it"
            )
        ],
    ),
    "quota for a resource that is left out": (
        {"kueue/configuration": {"resources": {"excludeResourcePrefixes": ["nvidia.com/"]}}},
        [
            f"warning: clusterQueues[{name}].resourceGroups[0].coveredResources: the quota for nvidia.com/gpu has no "
            "effect, since resources.excludeResourcePrefixes leaves it out; remove the quota, or the prefix"
            for name in ("vision", "language")
        ],
    ),
    "concurrentAdmissionPolicy without effect": (
        {"clusterQueues/1/concurrentAdmissionPolicy": {"migration": {"mode": "RetainFirstAdmission"}}},
        [
            (
                "warning: clusterQueues[language].concurrentAdmissionPolicy: has no effect, since feature gate "
                "ConcurrentAdmission is off; set kueue.configuration.featureGates.ConcurrentAdmission to true, "
                "or remove it"
            )
        ],
    ),
    "kinds of jobs without their operators": (
        {
            "jobSet": {"enabled": False},
            "kueue/configuration": {
                "integrations": {"frameworks": ["jobset.x-k8s.io/jobset", "ray.io/rayjob", "kubeflow.org/mpijob"]}
            },
        },
        [
            f"warning: kueue.configuration.integrations.frameworks: {framework}: the fleet does not install its "
            f"operator, and Kueue does nothing with {kind}s without it; {fix}"
            f"add {framework} to operators.installedElsewhere if it is in the clusters"
            for framework, kind, fix in (
                ("jobset.x-k8s.io/jobset", "JobSet", "set jobSet.enabled to true, or "),
                ("ray.io/rayjob", "RayJob", "add operators.kubeRay: {}, or "),
                ("kubeflow.org/mpijob", "MPIJob", ""),
            )
        ],
    ),
    "an operator of kinds that Kueue does not manage": (
        {
            "operators": {"leaderWorkerSet": {}},
            "kueue/configuration": {"integrations": {"frameworks": ["jobset.x-k8s.io/jobset"]}},
        },
        [
            "warning: operators.leaderWorkerSet: is installed, but Kueue on manager, worker-a, worker-b does not "
            "manage it; add leaderworkerset.x-k8s.io/leaderworkerset to integrations.frameworks, or remove the operator"
        ],
    ),
    "Trainer without JobSet": (
        {"operators": {"trainer": {}}, "jobSet": {"enabled": False}},
        [
            "operators.trainer: makes JobSets, and the fleet does not install JobSet; set jobSet.enabled to true, or "
            "add jobset.x-k8s.io/jobset to operators.installedElsewhere"
        ],
    ),
    "installedElsewhere": (
        {"operators": {"kubeRay": {}, "installedElsewhere": ["ray.io/rayjob", "kubeflow.org/mpijobs"]}},
        [
            "operators.installedElsewhere[0]: ray.io/rayjob has its operator from the fleet; remove it",
            "operators.installedElsewhere[1]: kubeflow.org/mpijobs is not a framework of Kueue; did you mean "
            "kubeflow.org/mpijob?",
        ],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "Configuration of one cluster": {"clusters/1/kueue": {"configuration": {"waitForPodsReady": {"timeout": "2h"}}}},
    "fair sharing": {
        "kueue/configuration": {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}},
        "clusterQueues/0/fairSharing": {"weight": 2},
        "cohorts/0/fairSharing": {"weight": "500m"},
    },
    "ClusterProfile": {"multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}},
    "usage": {
        "kueue/configuration": {"admissionFairSharing": {"usageHalfLifeTime": "168h"}},
        "clusterQueues/0/admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
    },
    "operators elsewhere": {
        "operators": {"kubeRay": {}, "installedElsewhere": ["kubeflow.org/mpijob"]},
        "kueue/configuration": {
            "integrations": {"frameworks": ["jobset.x-k8s.io/jobset", "ray.io/rayjob", "kubeflow.org/mpijob", "pod"]}
        },
    },
    "a new Trainer": {"operators": {"trainer": {"version": "2.2.0"}}},
    "Trainer with another JobSet": {
        "operators": {"trainer": {}, "installedElsewhere": ["jobset.x-k8s.io/jobset"]},
        "jobSet": {"enabled": False},
    },
    "no JobSet": {"jobSet": {"enabled": False}, "kueue/configuration": {"integrations": {"frameworks": ["batch/job"]}}},
    "gate of the fleet, overridden": {
        "kueue/configuration": {"featureGates": {"ConcurrentAdmission": False}},
        "clusters/1/kueue": {"configuration": {"featureGates": {"ConcurrentAdmission": True}}},
        "clusterQueues/1/concurrentAdmissionPolicy": {"migration": {"mode": "RetainFirstAdmission"}},
    },
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changes: dict[str, Any]) -> None:
    assert problems(changed(fleet_data(), changes)) == []
