"""The configurations of Kueue under which scenarios run; each needs a control plane of its own.

The real Kueue gets `configuration(setting)`; the core parses the same.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

LATEST: Final = "0.19"
"""The release that a fleet gets unless it says else, and that the corpus is of."""
FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
READY_TIMEOUT_SECONDS = 8

_DECIDES: Final[dict[str, Json]] = {
    "classical": {},
    "fair": {"fairSharing": {"preemptionStrategies": [FINAL, INITIAL]}},
    "fair-final": {"fairSharing": {"preemptionStrategies": [FINAL]}},
    "fair-initial": {"fairSharing": {"preemptionStrategies": [INITIAL]}},
    "pods-ready": {
        "waitForPodsReady": {
            "timeout": f"{READY_TIMEOUT_SECONDS}s",
            "recoveryTimeout": f"{READY_TIMEOUT_SECONDS}s",
            "requeuingStrategy": {"backoffBaseSeconds": 2, "backoffLimitCount": 2, "backoffMaxSeconds": 4},
        }
    },
    "topology": {},
    "preferred-nodes": {"featureGates": {"TASRespectNodeAffinityPreferred": True}},
    "balanced": {"featureGates": {"TASBalancedPlacement": True}},
    "best-fit": {"featureGates": {"TASProfileMixed": False}},
    "nodes": {},
    "nodes-again": {"featureGates": {"TASFailedNodeReplacementFailFast": False}},
    "limits": {},
    "devices": {"resources": {"deviceClassMappings": [{"name": "gpu", "deviceClassNames": ["dev-a", "dev-b"]}]}},
    "elastic": {"featureGates": {"ElasticJobsViaWorkloadSlices": True}},
    "elastic-topology": {"featureGates": {"ElasticJobsViaWorkloadSlicesWithTAS": True}},
    "variants": {"featureGates": {"ConcurrentAdmission": True}},
    "usage": {
        "admissionFairSharing": {
            "usageHalfLifeTime": "30s",
            "usageSamplingInterval": "3s",
            "resourceWeights": {"gpu": 2.0},
        }
    },
}
SETTINGS: Final = tuple(setting for setting in _DECIDES if setting != "variants")
"""Settings of scenarios that are compared cycle by cycle; for the other one see `differential.variants`."""
WITH_NODES: Final = (
    "topology", "preferred-nodes", "balanced", "best-fit", "nodes", "nodes-again", "elastic-topology",
)  # fmt: skip
"""Settings in which flavors have topologies."""

_RUNS: Final[Json] = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "health": {"healthProbeBindAddress": ":8081"},
    "metrics": {"bindAddress": ":8443"},
    "webhook": {"port": 9443},
    "leaderElection": {"leaderElect": False},
    "clientConnection": {"qps": 3000, "burst": 6000},
    "integrations": {"frameworks": ["batch/job"]},
}


def deciding(setting: str, release: str = LATEST) -> Json:
    """What decides in the configuration; finer words of why a workload waits are new in 0.19."""
    given = _DECIDES[setting]
    gates = {"UnadmittedWorkloadsObservability": True} if says_why(release) else {}
    if setting == "devices" and release == "0.17":
        gates["DynamicResourceAllocation"] = True
    return {**given, "featureGates": {**gates, **given.get("featureGates", {})}}


def says_why(release: str) -> bool:
    """Whether the objects of a release say why a workload waits."""
    return release == LATEST


def names_no_fit(release: str) -> bool:
    """Whether the log of a release says that a workload was queued again because it does not fit."""
    return release != "0.17"


def keeps_progress(release: str) -> bool:
    """Whether a release knows where a search through flavors stopped after it has written why the workload waits."""
    return release == LATEST


def configuration(setting: str, release: str = LATEST) -> Json:
    """The whole configuration."""
    return {**_RUNS, **deciding(setting, release)}


def side_by_side(setting: str) -> int:
    """So many scenarios run at once; more take proportionally longer.

    Kueue orders the LocalQueues of a queue again if penalties are pending when it takes the next head. In a cycle for
    many scenarios, and only then, they are settled before that.
    """
    return 20 if setting == "usage" else 200


def quiet_seconds(setting: str) -> float:
    """A round is over when nothing has happened for so long: longer than any delay of Kueue's own.

    The status of a ClusterQueue is written after one second, and wakes its tree one second later.
    """
    return READY_TIMEOUT_SECONDS + 3.0 if setting == "pods-ready" else 3.0
