"""The configurations of Kueue under which scenarios run; each needs a control plane of its own.

The real Kueue gets `configuration(setting)`; the core parses the same.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

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
    "limits": {},
    "usage": {
        "admissionFairSharing": {
            "usageHalfLifeTime": "30s",
            "usageSamplingInterval": "3s",
            "resourceWeights": {"gpu": 2.0},
        }
    },
}
SETTINGS: Final = tuple(_DECIDES)

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


def deciding(setting: str) -> Json:
    """What decides in the configuration."""
    return {"featureGates": {"UnadmittedWorkloadsObservability": True}, **_DECIDES[setting]}


def configuration(setting: str) -> Json:
    """The whole configuration."""
    return {**_RUNS, **deciding(setting)}


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
