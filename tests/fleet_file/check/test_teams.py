"""Teams, namespaces and LocalQueues."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, fleet_data, problems

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a template of which no job can be made": (
        {
            "teams/0/jobTemplates": [
                {
                    "name": "t",
                    "image": "busybox:",
                    "cpu": "-1",
                    "memory": "1GB",
                    "time": "0",
                    "env": {"A B": "x"},
                    "mounts": {"data": "claim", "/": "gs://Data"},
                }
            ]
        },
        [
            "teams[team-vision].jobTemplates[t].image: 'busybox:' is not the name of an image, and no node can pull "
            "it; correct it",
            "teams[team-vision].jobTemplates[t].cpu: is -1; write 0 or more",
            "teams[team-vision].jobTemplates[t].memory: \"1GB\" ends in 'B', which is not a suffix of a quantity; "
            "write 1G",
            "teams[team-vision].jobTemplates[t].env.A B: is not a name of a variable; write letters, digits and _ only",
            "teams[team-vision].jobTemplates[t].mounts.data: is not an absolute path; begin it with /",
            "teams[team-vision].jobTemplates[t].mounts./: is not a path where a container can have it; write another "
            "one",
            'teams[team-vision].jobTemplates[t].mounts./: "Data" is not the name of a bucket; write 3 to 63 lower-case '
            "letters, digits, - and _, without gs://",
            "teams[team-vision].jobTemplates[t].time: 0 is too short; write a second or more",
        ],
    ),
    "a resource without a name": (
        {"teams/0/resourceQuota": {"count/": 3}},
        ['teams[team-vision].resourceQuota[count/]: "count/" has nothing after the slash; write a name there'],
    ),
    "unknown queue": (
        {"teams/0/localQueues/0/clusterQueue": "vison"},
        ["teams[team-vision].localQueues[main].clusterQueue: there is no queue vison; did you mean vision?"],
    ),
    "unknown queue of a LocalQueue": (
        {"localQueues/0/clusterQueue": "vison"},
        ["localQueues[trial].clusterQueue: there is no queue vison; did you mean vision?"],
    ),
    "LocalQueue twice in a team": (
        {"teams/0/localQueues/+": {"name": "main", "clusterQueue": "language"}},
        [
            (
                "teams[team-vision].localQueues[1].name: main in namespace team-vision is already declared at "
                "teams[team-vision].localQueues[0]; give it another name, or remove one of the two"
            )
        ],
    ),
    "LocalQueue twice": (
        {"localQueues/+": {"namespace": "team-vision", "name": "main", "clusterQueue": "vision"}},
        [
            (
                "localQueues[main].name: main in namespace team-vision is already declared at "
                "teams[team-vision].localQueues[main]; give it another name, or remove one of the two"
            )
        ],
    ),
    "LimitRange without an amount": (
        {"teams/0/limitRange": {"default": {}}},
        ["teams[team-vision].limitRange: has no amount; set default, defaultRequest, max or min, or remove it"],
    ),
    "LimitRange with amounts that Kubernetes does not take": (
        {
            "teams/0/limitRange": {
                "default": {"pods": 1, "hugepages-2Mi": "2Mi"},
                "min": {"cpu": -1, "example.com/f": 0.5},
            }
        },
        [
            "teams[team-vision].limitRange.min[cpu]: -1 is negative; write 0 or more",
            (
                "teams[team-vision].limitRange.min[example.com/f]: 500m is not a whole number, and example.com/f is "
                "counted in whole units; write 0 or 1"
            ),
            (
                "teams[team-vision].limitRange.default[pods]: pods is not a resource of containers; use one of the "
                "resources: cpu, memory, ephemeral-storage"
            ),
        ],
    ),
    "LimitRange out of order": (
        {
            "teams/0/limitRange": {
                "min": {"cpu": 4, "memory": "1Gi"},
                "defaultRequest": {"cpu": 3, "memory": "2Gi"},
                "default": {"cpu": 2, "memory": "2Gi"},
                "max": {"cpu": 1, "memory": "2Gi"},
            }
        },
        [
            (
                f"teams[team-vision].limitRange.{low}[cpu]: {less} is more than {high}, {more}; "
                "write a smaller one, or both"
            )
            for low, less, high, more in (
                ("min", 4, "defaultRequest", 3),
                ("min", 4, "default", 2),
                ("min", 4, "max", 1),
                ("defaultRequest", 3, "default", 2),
                ("defaultRequest", 3, "max", 1),
                ("default", 2, "max", 1),
            )
        ],
    ),
    "LimitRange with GPUs whose request is not the limit": (
        {
            "teams/0/limitRange": {
                "defaultRequest": {"nvidia.com/gpu": 1, "cpu": 1},
                "max": {"nvidia.com/gpu": 8, "cpu": 8},
            }
        },
        [
            (
                "warning: teams[team-vision].limitRange.max[nvidia.com/gpu]: 8 is also what each container gets that "
                "asks for none; add default: {nvidia.com/gpu: 0}"
            ),
            (
                "teams[team-vision].limitRange.defaultRequest[nvidia.com/gpu]: 1 is less than the limit, 8, and "
                "nvidia.com/gpu is requested as its limit is; write 8, or remove it"
            ),
        ],
    ),
    "namespace of two teams": (
        {"teams/1/namespaces": ["team-vision"], "teams/1/localQueues/0/name": "other"},
        [
            (
                "teams[team-language].namespaces[0]: team-vision is already a namespace of team team-vision; "
                "give each namespace to one team"
            )
        ],
    ),
    "namespace twice": (
        {"teams/0/namespaces": ["a", "a"]},
        ["teams[team-vision].namespaces[1]: a is listed twice; list each namespace once"],
    ),
    "system namespace": (
        {"teams/0/namespaces": ["kube-system"]},
        ["teams[team-vision].namespaces[0]: kube-system is the namespace of Kubernetes; use another namespace"],
    ),
    "Kueue's namespace": (
        {"localQueues/0/namespace": "kueue-system"},
        ["localQueues[trial].namespace: kueue-system is the namespace of Kueue; use another namespace"],
    ),
    "JobSet's namespace": (
        {"teams/0/name": "jobset-system"},
        ["teams[jobset-system]: jobset-system is the namespace of JobSet; use another namespace"],
    ),
    "no LocalQueue": (
        {"teams/1/localQueues": []},
        [
            (
                "warning: clusterQueues[language]: no LocalQueue leads to this queue, so no job can be submitted "
                "to it; add a LocalQueue to a team or to localQueues"
            )
        ],
    ),
    "no selector": (
        {"clusterQueues/1/namespaceSelector": REMOVED},
        [
            (
                "clusterQueues[language].namespaceSelector: is missing, which matches no namespace, so no job is "
                "ever admitted; write {} to take jobs of every namespace"
            )
        ],
    ),
    "selector misses": (
        {"clusterQueues/1/namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team-vision"}}},
        [
            (
                "clusterQueues[language].namespaceSelector: matches no namespace that has a LocalQueue of the queue: "
                "team-language has kueue-fleet.dev/team=team-language; widen clusterQueues[language].namespaceSelector"
            )
        ],
    ),
    "selector of a label that no namespace has": (
        {"clusterQueues/1/namespaceSelector": {"matchLabels": {"example.com/gpu": "yes"}}},
        [
            "clusterQueues[language].namespaceSelector: matches no namespace that has a LocalQueue of the queue: "
            "team-language has kueue-fleet.dev/team=team-language; add example.com/gpu: yes to "
            "namespaceLabels[team-language], or widen clusterQueues[language].namespaceSelector"
        ],
    ),
    "selector by half of a key": (
        {"clusterQueues/1/namespaceSelector": {"matchLabels": {"team": "team-language"}}},
        [
            "clusterQueues[language].namespaceSelector: matches no namespace that has a LocalQueue of the queue: "
            "team-language has kueue-fleet.dev/team=team-language; write kueue-fleet.dev/team: team-language"
        ],
    ),
    "selector of a label that a cluster of somebody else may have": (
        {
            "clusters/1/existing": True,
            "clusterQueues/1/namespaceSelector": {"matchLabels": {"example.com/gpu": "yes"}},
        },
        [
            "warning: clusterQueues[language].namespaceSelector: matches no namespace that has a LocalQueue of the "
            "queue: team-language has kueue-fleet.dev/team=team-language, as far as this file says their labels; add "
            "example.com/gpu: yes to namespaceLabels[team-language], or widen clusterQueues[language].namespaceSelector"
        ],
    ),
    "selector of one namespace of two": (
        {
            "teams/1/namespaces": ["dev", "prod"],
            "namespaceLabels": {"prod": {"stage": "prod"}},
            "clusterQueues/1/namespaceSelector": {"matchLabels": {"stage": "prod"}},
        },
        [
            "teams[team-language].localQueues[main].clusterQueue: queue language takes no jobs of namespace dev: its "
            "namespaceSelector does not match; add stage: prod to namespaceLabels[dev], or widen "
            "clusterQueues[language].namespaceSelector, or use another queue"
        ],
    ),
    "namespaces that Kueue leaves alone": (
        {
            "namespaceLabels": {"team-vision": {"kueue": "on"}, "default": {"kueue": "on"}},
            "kueue": {"configuration": {"managedJobsNamespaceSelector": {"matchLabels": {"kueue": "on"}}}},
        },
        [
            "warning: kueue.configuration.managedJobsNamespaceSelector: does not match namespaces with LocalQueues, "
            "team-language has kueue-fleet.dev/team=team-language, and Kueue leaves all jobs there alone, even those "
            "that name a queue; add kueue: on to namespaceLabels[team-language], or widen "
            "kueue.configuration.managedJobsNamespaceSelector"
        ],
    ),
    "labels that are given": (
        {
            "namespaceLabels": {
                "team-vision": {"kueue-fleet.dev/team": "vision", "pod-security.kubernetes.io/enforce": "privileged"},
                "team-visio": {"a": "b"},
            }
        },
        [
            "namespaceLabels[team-vision][kueue-fleet.dev/team]: is set, but teams gives it; remove it",
            "namespaceLabels[team-vision][pod-security.kubernetes.io/enforce]: is set, but podSecurity of the team "
            "gives it; remove it",
            "warning: namespaceLabels[team-visio]: no team and no LocalQueue has this namespace, so the fleet does not "
            "make it; did you mean team-vision?",
        ],
    ),
    "selector of another team": (
        {
            "clusterQueues/1/namespaceSelector": {
                "matchExpressions": [{"key": "kueue-fleet.dev/team", "operator": "In", "values": ["team-vision"]}]
            }
        },
        [
            (
                "clusterQueues[language].namespaceSelector: matches no namespace that has a LocalQueue of the queue: "
                "team-language has kueue-fleet.dev/team=team-language; widen clusterQueues[language].namespaceSelector"
            )
        ],
    ),
    "negative weight": (
        {"localQueues/0/fairSharing": {"weight": "-1"}},
        ["localQueues[trial].fairSharing.weight: -1 is negative; write 0 or a positive number"],
    ),
    "negative weight in a team": (
        {"teams/0/localQueues/0/fairSharing": {"weight": "-1"}},
        ["teams[team-vision].localQueues[main].fairSharing.weight: -1 is negative; write 0 or a positive number"],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "two namespaces": {"teams/0/namespaces": ["vision-dev", "vision-prod"]},
    "LocalQueue in a team's namespace": {
        "localQueues/+": {"namespace": "team-vision", "name": "extra", "clusterQueue": "vision"}
    },
    "selector of the team": {
        "clusterQueues/1/namespaceSelector": {"matchLabels": {"kueue-fleet.dev/team": "team-language"}}
    },
    "selector of a label that the file gives": {
        "clusterQueues/1/namespaceSelector": {"matchLabels": {"example.com/gpu": "yes"}},
        "namespaceLabels": {"team-language": {"example.com/gpu": "yes"}},
    },
    "selector of a label of default": {
        "localQueues/+": {"namespace": "default", "name": "language", "clusterQueue": "language"},
        "teams/1": REMOVED,
        "clusterQueues/1/namespaceSelector": {
            "matchExpressions": [{"key": "gpu", "operator": "In", "values": ["yes"]}]
        },
        "namespaceLabels": {"default": {"gpu": "yes"}},
    },
    "JobSet's namespace without JobSet": {"jobSet": {"enabled": False}, "teams/0/name": "jobset-system"},
    "weight": {
        "localQueues/0/fairSharing": {"weight": "2"},
        "clusterQueues/0/admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
        "kueue/configuration": {"admissionFairSharing": {"usageHalfLifeTime": "168h"}},
    },
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changes: dict[str, Any]) -> None:
    assert problems(changed(fleet_data(), changes)) == []
