"""The rules of Kueue's Configuration, from pkg/config/validation.go."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import model_problems

from kueue_admission.api.configuration import KueueConfiguration
from kueue_admission.releases import release
from kueue_fleet.fleet_file.check.kueue_configuration import configuration_problems

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "deviceClassMappings without their parts": (
        {
            "resources": {
                "deviceClassMappings": [
                    {"name": "nvidia.com/gpu", "deviceClassNames": "gpu.nvidia.com"},
                    {},
                    {"name": "a.example/b", "deviceClassNames": 1},
                    {"name": "a.example/c", "deviceClassNames": [{}]},
                ]
            }
        },
        [
            "resources.deviceClassMappings[0].deviceClassNames: is not a list; list the DeviceClasses that count as "
            "the resource",
            "resources.deviceClassMappings[1].name: is missing; write the resource that queues have quota for",
            "resources.deviceClassMappings[1].deviceClassNames: is missing or empty; list the DeviceClasses that "
            "count as the resource",
            "resources.deviceClassMappings[2].deviceClassNames: is not a list; list the DeviceClasses that count as "
            "the resource",
            'resources.deviceClassMappings[3].deviceClassNames[0]: "{}" has characters or a form that are not '
            "allowed; use letters, digits, '-', '_' and '.', with a letter or digit at both ends",
        ],
    ),
    "deviceClassMappings twice": (
        {
            "resources": {
                "deviceClassMappings": [
                    {"name": "example.com/a", "deviceClassNames": ["x"]},
                    {"name": "example.com/a", "deviceClassNames": ["x"]},
                    {"name": "a gpu", "deviceClassNames": [f"c{number}" for number in range(9)]},
                ]
            }
        },
        [
            "resources.deviceClassMappings[1].name: example.com/a is listed twice; list each resource once",
            "resources.deviceClassMappings[1].deviceClassNames[0]: x counts as example.com/a already; keep one of the "
            "two",
            'resources.deviceClassMappings[2].name: "a gpu" has characters or a form that are not allowed; use '
            "letters, digits, '-', '_' and '.', with a letter or digit at both ends",
            "resources.deviceClassMappings[2].deviceClassNames: 9 classes; write at most 8",
        ],
    ),
    "deviceClassMappings too many": (
        {
            "resources": {
                "deviceClassMappings": [
                    {"name": f"r{number}", "deviceClassNames": [f"c{number}"]} for number in range(17)
                ]
            }
        },
        ["resources.deviceClassMappings: 17 mappings; write at most 16"],
    ),
    "waitForPodsReady negative timeout": (
        {"waitForPodsReady": {"timeout": "-5m"}},
        ["waitForPodsReady.timeout: -5m is negative; write 0 or more"],
    ),
    "waitForPodsReady of seconds": (
        {"waitForPodsReady": {"timeout": "30s"}},
        [
            "waitForPodsReady.timeout: 30s, after which Kueue evicts a job, and a node that GKE has yet to make takes "
            "minutes; write 10m or more"
        ],
    ),
    "waitForPodsReady negative recoveryTimeout": (
        {"waitForPodsReady": {"recoveryTimeout": "-1s"}},
        ["waitForPodsReady.recoveryTimeout: -1s is negative; write 0 or more"],
    ),
    "waitForPodsReady timestamp": (
        {"waitForPodsReady": {"requeuingStrategy": {"timestamp": "Evicted"}}},
        ["waitForPodsReady.requeuingStrategy.timestamp: Evicted is not allowed; did you mean Eviction?"],
    ),
    "waitForPodsReady negative backoff": (
        {
            "waitForPodsReady": {
                "requeuingStrategy": {"backoffLimitCount": -1, "backoffBaseSeconds": -2, "backoffMaxSeconds": -3}
            }
        },
        [
            "waitForPodsReady.requeuingStrategy.backoffLimitCount: -1 is negative; write 0 or more",
            "waitForPodsReady.requeuingStrategy.backoffBaseSeconds: -2 is negative; write 0 or more",
            "waitForPodsReady.requeuingStrategy.backoffMaxSeconds: -3 is negative; write 0 or more",
        ],
    ),
    "waitForPodsReady enable of v1beta1": (
        {"waitForPodsReady": {"enable": True}},
        [
            (
                "waitForPodsReady.enable: was removed in Kueue's v1beta2; remove it: it is on unless feature "
                "gate DisableWaitForPodsReady is"
            )
        ],
    ),
    "timeout without unit": (
        {"waitForPodsReady": {"timeout": 300}},
        ["waitForPodsReady.timeout: 300 has no unit; write 300s for seconds or 300m for minutes"],
    ),
    "timeout in words": (
        {"waitForPodsReady": {"timeout": "5 minutes"}},
        [
            'waitForPodsReady.timeout: "5 minutes" is not a valid duration; write numbers with units, such as 90s, 30m '
            "or 1h30m"
        ],
    ),
    "unknown framework": (
        {"integrations": {"frameworks": ["batch/jobs"]}},
        ["integrations.frameworks[0]: batch/jobs is not a framework of Kueue; did you mean batch/job?"],
    ),
    "framework twice": (
        {"integrations": {"frameworks": ["pod", "pod"]}},
        ["integrations.frameworks[1]: pod is listed twice; list each framework once"],
    ),
    "external framework form": (
        {"integrations": {"externalFrameworks": ["Foo"]}},
        [
            (
                "integrations.externalFrameworks[0]: Foo is not of the form Kind.version.group; write it so, as "
                "in Foo.v1.example.com"
            )
        ],
    ),
    "external framework twice": (
        {"integrations": {"externalFrameworks": ["Foo.v1.example.com", "Foo.v1.example.com"]}},
        ["integrations.externalFrameworks[1]: Foo.v1.example.com is listed twice; list each kind once"],
    ),
    "podOptions of v1beta1": (
        {"integrations": {"podOptions": {}}},
        [
            (
                "integrations.podOptions: was removed in Kueue's v1beta2; write managedJobsNamespaceSelector of "
                "the Configuration"
            )
        ],
    ),
    "queueVisibility of v1beta1": (
        {"queueVisibility": {}},
        [
            "queueVisibility: was removed in Kueue's v1beta2; remove it: the visibility API lists pending workloads "
            "on demand"
        ],
    ),
    "fairSharing enable of v1beta1": (
        {"fairSharing": {"enable": True, "preemptionStrategies": ["LessThanInitialShare"]}},
        [
            (
                "fairSharing.enable: was removed in Kueue's v1beta2; remove it: the section being there turns "
                "fair sharing on"
            )
        ],
    ),
    "fairSharing without strategies": (
        {"fairSharing": {}},
        [
            (
                "fairSharing.preemptionStrategies: is missing; write [LessThanOrEqualToFinalShare] or "
                "[LessThanInitialShare] or [LessThanOrEqualToFinalShare, LessThanInitialShare]"
            )
        ],
    ),
    "fairSharing in the wrong order": (
        {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare", "LessThanOrEqualToFinalShare"]}},
        [
            (
                "fairSharing.preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare] is not "
                "allowed; write [LessThanOrEqualToFinalShare] or [LessThanInitialShare] or "
                "[LessThanOrEqualToFinalShare, LessThanInitialShare]"
            )
        ],
    ),
    "negative half life": (
        {"admissionFairSharing": {"usageHalfLifeTime": "-1h"}},
        ["admissionFairSharing.usageHalfLifeTime: -1h is negative; write 0 or more"],
    ),
    "negative sampling": (
        {"admissionFairSharing": {"usageSamplingInterval": "-1s"}},
        ["admissionFairSharing.usageSamplingInterval: -1s is negative; write 0 or more"],
    ),
    "negative resource weight": (
        {"admissionFairSharing": {"resourceWeights": {"cpu": -0.5}}},
        ["admissionFairSharing.resourceWeights[cpu]: -0.5 is negative; write 0 or more"],
    ),
    "multiKueue negative gcInterval": (
        {"multiKueue": {"gcInterval": "-1m"}},
        ["multiKueue.gcInterval: -1m is negative; write 0 or more"],
    ),
    "multiKueue negative workerLostTimeout": (
        {"multiKueue": {"workerLostTimeout": "-1m"}},
        ["multiKueue.workerLostTimeout: -1m is negative; write 0 or more"],
    ),
    "multiKueue origin": (
        {"multiKueue": {"origin": "-"}},
        [
            (
                "multiKueue.origin: \"-\" has characters or a form that are not allowed; use letters, digits, '-', "
                "'_' and '.', with a letter or digit at both ends"
            )
        ],
    ),
    "multiKueue external framework form": (
        {"multiKueue": {"externalFrameworks": [{"name": "Foo.v1"}]}},
        [
            (
                "multiKueue.externalFrameworks[Foo.v1].name: Foo.v1 is not of the form Kind.version.group; write "
                "it so, as in Foo.v1.example.com"
            )
        ],
    ),
    "multiKueue external framework twice": (
        {"multiKueue": {"externalFrameworks": [{"name": "Foo.v1.a.b"}, {"name": "Foo.v1.a.b"}]}},
        ["multiKueue.externalFrameworks[Foo.v1.a.b].name: Foo.v1.a.b is listed twice; list each kind once"],
    ),
    "multiKueue external framework built in": (
        {"multiKueue": {"externalFrameworks": [{"name": "Job.v1.batch"}]}},
        ["multiKueue.externalFrameworks[Job.v1.batch].name: Kueue dispatches Job.v1.batch by itself; remove it"],
    ),
    "step size without incremental": (
        {"multiKueue": {"incrementalDispatcherConfig": {"stepSize": 3}}},
        [
            (
                "multiKueue.incrementalDispatcherConfig: set, but dispatcherName is not set; set it to "
                "kueue.x-k8s.io/multikueue-dispatcher-incremental"
            )
        ],
    ),
    "step size 0": (
        {
            "multiKueue": {
                "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-incremental",
                "incrementalDispatcherConfig": {"stepSize": 0},
            }
        },
        ["multiKueue.incrementalDispatcherConfig.stepSize: 0 is less than 1; write 1 or more"],
    ),
    "quota check strategy": (
        {"resources": {"quotaCheckStrategy": "Ignore"}},
        ["resources.quotaCheckStrategy: Ignore is not allowed; did you mean IgnoreUndeclared?"],
    ),
    "prefixes with IgnoreUndeclared": (
        {"resources": {"quotaCheckStrategy": "IgnoreUndeclared", "excludeResourcePrefixes": ["example.com"]}},
        [
            (
                "resources.excludeResourcePrefixes: example.com given, but quotaCheckStrategy is "
                "IgnoreUndeclared; remove one of the two"
            )
        ],
    ),
    "transformation strategy": (
        {"resources": {"transformations": [{"input": "a", "strategy": "Keep"}]}},
        ["resources.transformations[0].strategy: Keep is not allowed; use one of the values: Retain, Replace"],
    ),
    "transformation of what is left out": (
        {
            "resources": {
                "excludeResourcePrefixes": ["example.com/v"],
                "transformations": [
                    {"input": "example.com/vgpu", "outputs": {"example.com/gpu": 1}},
                    {"input": "cpu", "multiplyBy": "example.com/vgpu"},
                ],
            }
        },
        [
            (
                f"resources.transformations[{index}].{field}: example.com/vgpu {lost}, since "
                "resources.excludeResourcePrefixes leaves it out first; exclude a longer prefix, or remove the "
                "transformation"
            )
            for index, field, lost in ((0, "input", "counts as nothing"), (1, "multiplyBy", "multiplies nothing"))
        ],
    ),
    "transformation twice": (
        {"resources": {"transformations": [{"input": "a"}, {"input": "a"}]}},
        ["resources.transformations[1].input: a is transformed twice; write one entry for each input"],
    ),
    "selector matches kube-system": (
        {
            "managedJobsNamespaceSelector": {
                "matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kueue-system"]}
                ]
            }
        },
        [
            (
                "managedJobsNamespaceSelector: matches kube-system, where Kueue must not manage jobs; add a "
                "matchExpression: kubernetes.io/metadata.name NotIn [kube-system, kueue-system]"
            )
        ],
    ),
    "selector matches Kueue's namespace": (
        {"managedJobsNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kueue-system"}}},
        [
            (
                "managedJobsNamespaceSelector: matches kueue-system, where Kueue must not manage jobs; add a "
                "matchExpression: kubernetes.io/metadata.name NotIn [kube-system, kueue-system]"
            )
        ],
    ),
    "empty selector": (
        {"managedJobsNamespaceSelector": {}},
        [
            (
                "managedJobsNamespaceSelector: matches kube-system, where Kueue must not manage jobs; add a "
                "matchExpression: kubernetes.io/metadata.name NotIn [kube-system, kueue-system]"
            ),
            (
                "managedJobsNamespaceSelector: matches kueue-system, where Kueue must not manage jobs; add a "
                "matchExpression: kubernetes.io/metadata.name NotIn [kube-system, kueue-system]"
            ),
        ],
    ),
    "broken selector": (
        {"managedJobsNamespaceSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn"}]}},
        [
            (
                "managedJobsNamespaceSelector.matchExpressions[0].values: empty, but operator NotIn compares "
                "with it; list at least one value"
            )
        ],
    ),
    "negative retention": (
        {"objectRetentionPolicies": {"workloads": {"afterFinished": "-1h", "afterDeactivatedByKueue": "-2h"}}},
        [
            "objectRetentionPolicies.workloads.afterFinished: -1h is negative; write 0 or more",
            "objectRetentionPolicies.workloads.afterDeactivatedByKueue: -2h is negative; write 0 or more",
        ],
    ),
    "unknown gate": (
        {"featureGates": {"MultiKueueBatch": True}},
        ["featureGates[MultiKueueBatch]: Kueue 0.19.2 has no feature gate MultiKueueBatch; did you mean MultiKueue?"],
    ),
    "misspelt gate": (
        {"featureGates": {"ConcurentAdmission": True}},
        [
            (
                "featureGates[ConcurentAdmission]: Kueue 0.19.2 has no feature gate ConcurentAdmission; did you "
                "mean ConcurrentAdmission?"
            )
        ],
    ),
    "locked gate": (
        {"featureGates": {"HierarchicalCohorts": False}},
        ["featureGates[HierarchicalCohorts]: HierarchicalCohorts is locked to true in Kueue 0.19.2; remove it"],
    ),
    "gate without the gate it needs": (
        {"featureGates": {"UnadmittedWorkloadsExplicitStatus": True}},
        [
            (
                "featureGates[UnadmittedWorkloadsExplicitStatus]: UnadmittedWorkloadsExplicitStatus is on, but "
                "needs UnadmittedWorkloadsObservability, which is off; set UnadmittedWorkloadsObservability to "
                "true or UnadmittedWorkloadsExplicitStatus to false"
            )
        ],
    ),
    "gate needed by others": (
        {"featureGates": {"KueueDRAIntegration": False}},
        [
            (
                "featureGates[KueueDRAIntegration]: KueueDRAIntegrationExtendedResource is on, but needs "
                "KueueDRAIntegration, which is off; set KueueDRAIntegration to true or "
                "KueueDRAIntegrationExtendedResource to false"
            ),
            (
                "featureGates[KueueDRAIntegration]: KueueDRAIntegrationPartitionableDevices is on, but needs "
                "KueueDRAIntegration, which is off; set KueueDRAIntegration to true or "
                "KueueDRAIntegrationPartitionableDevices to false"
            ),
        ],
    ),
    "gate as text": (
        {"featureGates": {"PriorityBoost": "true"}},
        [
            (
                'featureGates[PriorityBoost]: "true" is given where true or false is needed; write true or '
                "false, without quotes"
            )
        ],
    ),
    "a section that is passed on, but is not a map": (
        {"tls": "VersionTLS12"},
        ["tls: \"VersionTLS12\" is given where a map is needed; write its fields as 'name: value', one on each line"],
    ),
    "unknown section": (
        {"integration": {}},
        ["integration: is not a known field; did you mean integrations?"],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "device class mappings, one class in two that count different things": {
        "resources": {
            "deviceClassMappings": [
                {"name": "gpu.memory", "deviceClassNames": ["mig"], "sources": [{"counter": {"name": "memory"}}]},
                {"name": "gpu.compute", "deviceClassNames": ["mig"], "sources": [{"counter": {"name": "compute"}}]},
            ]
        }
    },
    "nothing": {},
    "waitForPodsReady": {
        "waitForPodsReady": {
            "timeout": "0s",
            "recoveryTimeout": "0s",
            "blockAdmission": True,
            "requeuingStrategy": {
                "timestamp": "Creation",
                "backoffLimitCount": 0,
                "backoffBaseSeconds": 0,
                "backoffMaxSeconds": 0,
            },
        }
    },
    "waitForPodsReady off, so not checked": {
        "featureGates": {"DisableWaitForPodsReady": True},
        "waitForPodsReady": {"timeout": "-5m"},
    },
    "every framework": {
        "integrations": {
            "frameworks": ["batch/job", "pod"],
            "externalFrameworks": ["Foo.v1.example.com"],
            "labelKeysToCopy": ["team"],
        }
    },
    "both strategies": {
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    },
    "one strategy": {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}},
    "admission fair sharing": {
        "admissionFairSharing": {
            "usageHalfLifeTime": "168h",
            "usageSamplingInterval": "0s",
            "resourceWeights": {"cpu": 0, "memory": 0.5},
        }
    },
    "multiKueue": {
        "multiKueue": {
            "gcInterval": "0s",
            "origin": "",
            "workerLostTimeout": "0s",
            "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-incremental",
            "incrementalDispatcherConfig": {"stepSize": 1},
            "externalFrameworks": [{"name": "Foo.v1.example.com"}, {"name": "RayJob.v1.ray.io"}],
        }
    },
    "resources": {
        "resources": {
            "quotaCheckStrategy": "BlockUndeclared",
            "excludeResourcePrefixes": ["a"],
            "transformations": [
                {
                    "input": "nvidia.com/mig-1g.5gb",
                    "strategy": "Replace",
                    "multiplyBy": "b",
                    "outputs": {"example.com/gpu-memory": "5Gi"},
                },
                {"input": "b"},
            ],
        }
    },
    "selector": {
        "managedJobsNamespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kueue-system"]}
            ]
        }
    },
    "retention": {"objectRetentionPolicies": {"workloads": {"afterFinished": "0s", "afterDeactivatedByKueue": "24h"}}},
    "TLS": {
        "tls": {
            "minVersion": "VersionTLS12",
            "cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
            "curvePreferences": [29, 4588],
        }
    },
    "visibility": {"visibilityServer": {"bindAddress": "::", "bindPort": 8082}},
    "labels": {
        "metrics": {
            "customLabels": [
                *({"name": f"l{i}"} for i in range(6)),
                {
                    "name": "w",
                    "sourceKind": "Workload",
                    "sourceAnnotationKey": "example.com/x",
                    "trackedValues": [str(i) for i in range(12)],
                },
            ]
        }
    },
    "gates": {
        "featureGates": {
            "PriorityBoost": True,
            "HierarchicalCohorts": True,
            "UnadmittedWorkloadsExplicitStatus": True,
            "UnadmittedWorkloadsObservability": True,
        }
    },
    "the rest": {
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "leaseDuration": "15s"},
        "health": {"healthProbeBindAddress": ":8081"},
        "controller": {"groupKindConcurrency": {"Job.batch": 5}, "cacheSyncTimeout": 120000000000},
        "clientConnection": {"qps": 300, "burst": 500},
        "manageJobsWithoutQueueName": True,
        "pprofBindAddress": "",
    },
}


def found(data: dict[str, Any], version: str = "0.19.2") -> list[str]:
    """Problems of reading a Configuration, or else of its rules."""
    unreadable = model_problems(KueueConfiguration, data)
    if unreadable:
        return unreadable
    configuration = KueueConfiguration.model_validate(data, by_alias=True, by_name=False)
    return [str(problem) for problem in configuration_problems(configuration, "kueue-system", release(version))]


@pytest.mark.parametrize(("data", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert found(data) == expected


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(data: dict[str, Any]) -> None:
    assert found(data) == []


def test_unknown_gate_of_another_version_is_a_warning() -> None:
    configuration = KueueConfiguration(feature_gates={"NewInTwentyOne": True})
    (problem,) = configuration_problems(configuration, "kueue-system", release("0.20.0"))
    assert problem.severity == "warning"
