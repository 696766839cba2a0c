"""Mistakes about clusters that are not of GKE."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, problems

from kueue_fleet.fleet_file import parse_fleet
from plain_fleets import SERVER, alone_data, mixed_data

CLASS = {"priorities": [{"machineFamily": "g2"}]}
MIXED: dict[str, tuple[dict[str, Any], str]] = {
    "a region": (
        {"clusters/2/region": "europe-west9"},
        "clusters[paris].region: set, but kubernetes says that the cluster is not of GKE; write location instead",
    ),
    "a mode": (
        {"clusters/2/mode": "Standard"},
        "clusters[paris].mode: set, but kubernetes says that the cluster is not of GKE; remove it",
    ),
    "a field of Standard clusters": (
        {"clusters/2/zones": ["europe-west9-a"]},
        "clusters[paris].zones: set, but kubernetes says that the cluster is not of GKE; remove it",
    ),
    "a field of new clusters": (
        {"clusters/2/binaryAuthorization": True},
        "clusters[paris].binaryAuthorization: set, but kubernetes says that the cluster is not of GKE; remove it",
    ),
    "existing": (
        {"clusters/2/existing": True},
        "clusters[paris].existing: set, but kubernetes says that the cluster is not of GKE; remove it",
    ),
    "a location of GKE": (
        {"clusters/1/location": "europe"},
        "clusters[gke].location: set, but the cluster is of GKE; remove it, and use region; or add kubernetes, if "
        "it is "
        "another one",
    ),
    "neither region nor kubernetes": (
        {"clusters/2/kubernetes": REMOVED, "clusters/2/location": REMOVED, "clusters/2/nodes": REMOVED},
        "clusters[paris].region: is missing; add a region of Google Cloud, such as region: europe-west4",
    ),
    "a server without TLS": (
        {"clusters/2/kubernetes/server": "http://k8s.example"},
        'clusters[paris].kubernetes.server: "http://k8s.example" is not the address of an API server with TLS; write '
        "https:// and the host, such as https://k8s.example.com:6443",
    ),
    "a server without a scheme": (
        {"clusters/2/kubernetes/server": "k8s.example:6443"},
        'clusters[paris].kubernetes.server: "k8s.example:6443" is not the address of an API server with TLS; write '
        "https:// and the host, such as https://k8s.example.com:6443",
    ),
    "a port that is none": (
        {"clusters/2/kubernetes/server": "https://k8s.example:70000"},
        'clusters[paris].kubernetes.server: "https://k8s.example:70000" is not the address of an API server with TLS; '
        "write https:// and the host, such as https://k8s.example.com:6443",
    ),
    "the address in the kubeconfig of kind": (
        {"clusters/2/kubernetes/server": "https://127.0.0.1:38765"},
        "warning: clusters[paris].kubernetes.server: https://127.0.0.1:38765, which leads the manager's pods to "
        "themselves or to their own cluster; write the address by which the manager reaches the worker",
    ),
    "the address in a pod of the worker": (
        {"clusters/2/kubernetes/server": "https://kubernetes.default.svc"},
        "warning: clusters[paris].kubernetes.server: https://kubernetes.default.svc, which leads the manager's pods to "
        "themselves or to their own cluster; write the address by which the manager reaches the worker",
    ),
    "half a GPU": (
        {"clusters/2/nodes/0/allocatable": {"cpu": 120, "memory": "900Gi", "nvidia.com/gpu": 7.5}},
        "clusters[paris].nodes[dgx].allocatable[nvidia.com/gpu]: 7500m is not whole; write a whole number",
    ),
    "labels of PodMonitors": (
        {"clusters/2/podMonitors": {"labels": {"release": "a b"}}},
        'clusters[paris].podMonitors.labels[release]: "a b" has characters or a form that are not allowed; use '
        "letters, digits, '-', '_' and '.', with a letter or digit at both ends",
    ),
    "the spelling of kubeconfigs": (
        {"clusters/2/kubernetes/proxy-url": "http://proxy.example:3128"},
        "clusters[paris].kubernetes.proxy-url: is not a known field; did you mean proxyUrl?",
    ),
    "a proxy that Python has no client for": (
        {"clusters/2/kubernetes/proxyUrl": "socks5://proxy.example:1080"},
        'clusters[paris].kubernetes.proxyUrl: "socks5://proxy.example:1080" is not the URL of a proxy; write '
        "http:// or "
        "https://, the host and the port",
    ),
    "a certificate that is a file": (
        {"clusters/2/kubernetes/certificateAuthorityData": "/etc/kubernetes/pki/ca.crt"},
        'clusters[paris].kubernetes.certificateAuthorityData: "/etc/kubernetes/pki/ca.crt" is not a certificate; give '
        "PEM in base64, as kubeconfigs have it",
    ),
    "a node pool": (
        {"nodePools": [{"name": "l4", "machineType": "g2-standard-8", "nodeCount": 1, "clusters": ["paris"]}]},
        "nodePools[l4].clusters[0]: paris is not of GKE, and has its nodes from its owner; describe them in "
        "clusters[paris].nodes",
    ),
    "a compute class": (
        {"flavors/0": {"name": "dgx", "computeClass": CLASS, "clusters": ["paris"]}},
        "flavors[dgx].computeClass: makes nodes by GKE's compute classes, and paris is not of GKE; write nodeLabels "
        "for "
        "paris in a flavor of its own, and leave paris out of its clusters",
    ),
    "DWS": (
        {
            "admissionChecks": [
                {"name": "dws", "provisioningRequest": {"provisioningClassName": "queued-provisioning.gke.io"}}
            ],
            "clusterQueues/0/admissionChecksStrategy": {"admissionChecks": [{"name": "dws"}]},
        },
        "admissionChecks[dws].provisioningRequest.provisioningClassName: queued-provisioning.gke.io is answered by "
        "DWS, "
        "and paris is not of GKE, so that jobs would wait there for ever; name another class, such as "
        "check-capacity.autoscaling.x-k8s.io of the cluster autoscaler, or leave paris out of its clusters",
    ),
    "data": (
        {"storage": [{"name": "data", "team": "team-a", "volume": {"type": "gcsFuse"}}]},
        "storage[data].volume: is mounted by a driver of GKE, and paris is not of GKE; remove it, or leave paris out "
        "of its clusters",
    ),
    "credentials of Google": (
        {"multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "plugin:1"}},
        "multiKueue.credentials: ClusterProfile, whose plugin gives credentials of Google, and paris is not of GKE; "
        "write "
        "type: ServiceAccountToken",
    ),
    "an account of Google": (
        {"teams/0/serviceAccount": "jobs", "teams/0/googleServiceAccount": {}},
        "warning: teams[team-a].googleServiceAccount: has no effect on paris: without Workload Identity, pods there "
        "act as no "
        "Google account; keep queues of jobs that need it to clusters of GKE",
    ),
    "no address": (
        {"clusters/2/kubernetes": {}},
        "warning: clusters[paris].kubernetes.server: is missing, and the manager reaches a worker by it; add the "
        "address, such as "
        "https://k8s.example.com:6443, unless a program gives it to Fleet",
    ),
    "more quota than nodes": (
        {"clusterQueues/0/resourceGroups/0/flavors/0/resources/0/nominalQuota": 24},
        "flavors[dgx]: queues may use 24 nvidia.com/gpu of it on paris (gpu 24), but its nodes hold 16 (nodes: dgx 2); "
        "lower nominalQuota to 16 in all, or add nodes",
    ),
    "a label that no node has": (
        {"flavors/0/nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100"}},
        "warning: flavors[dgx].nodeLabels[nvidia.com/gpu.product]: no kind of nodes of paris has the label "
        'nvidia.com/gpu.product="NVIDIA-H100" beside the others; dgx has "NVIDIA-A100-SXM4-40GB"; correct it, or '
        "add the "
        "label to nodes of paris",
    ),
    "a taint that no job tolerates": (
        {"clusters/2/nodes/0/taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
        "flavors[dgx].tolerations: nodes of dgx have the taint nvidia.com/gpu=:NoSchedule, which admitted pods need "
        "not tolerate; add a toleration, or the taint to nodeTaints so that only jobs that tolerate it come here",
    ),
    "no nodes": (
        {"clusters/2/nodes/0/count": 0},
        "clusters[paris].nodes[dgx].count: 0 is too small; use at least 1",
    ),
    "less than nothing": (
        {"clusters/2/nodes/0/allocatable/cpu": -1},
        "clusters[paris].nodes[dgx].allocatable[cpu]: -1 is negative; write 0 or more",
    ),
    "a location that no cluster has": (
        {"teams/0/allowedRegions": ["europa"]},
        "teams[team-a].allowedRegions[0]: europa is not a known region; did you mean europe?",
    ),
}
ALONE: dict[str, tuple[dict[str, Any], str]] = {
    "a project": (
        {"project": "some-project"},
        "warning: project: has no effect, since no cluster of the fleet is in Google Cloud; remove it",
    ),
    "metrics in Google Cloud": (
        {"observability": {"grafana": {"enabled": False}, "dashboard": False, "alerts": {"enabled": False}}},
        "observability.managedPrometheus: true, but no cluster of the fleet is in Google Cloud; set it to false, or "
        "remove the section",
    ),
    "a reservation": (
        {"reservations": [{"name": "r", "zone": "europe-west4-a", "machineType": "a3-highgpu-8g", "count": 1}]},
        "reservations: set, but no cluster of the fleet is in Google Cloud; remove it",
    ),
    "an image that is built": (
        {"controller": {}},
        "controller.image: is missing, but paris is not of GKE, and `pulumi up` builds images into Artifact "
        "Registry; build the image, and write its name; see docs/controller.md",
    ),
    "a page behind IAP": (
        {"controller": {"image": "r.example/c:1"}, "fleetPage": {"iap": {"host": "jobs.example.com"}}},
        "fleetPage.iap: is GKE's ingress with IAP, and paris is not of GKE; remove it: viewers then use `kubectl "
        "port-forward`, and their own token",
    ),
    "an address": (
        {"clusters/0/kubernetes/server": "https://k8s.example"},
        "warning: clusters[paris].kubernetes.server: has no effect, since no cluster of the fleet connects to a "
        "standalone; remove "
        "it; Pulumi uses context",
    ),
    "an account of Google": (
        {"teams/0/serviceAccount": "jobs", "teams/0/googleServiceAccount": {}},
        "teams[team-a].googleServiceAccount: set, but no cluster of the fleet has Workload Identity; remove it",
    ),
}


@pytest.mark.parametrize(("changes", "said"), MIXED.values(), ids=MIXED)
def test_in_a_fleet_with_gke(changes: dict[str, Any], said: str) -> None:
    assert said in problems(changed(mixed_data(), changes))


@pytest.mark.parametrize(("changes", "said"), ALONE.values(), ids=ALONE)
def test_in_a_fleet_without_gke(changes: dict[str, Any], said: str) -> None:
    assert said in problems(changed(alone_data(), changes))


def test_a_fleet_with_gke_needs_a_project() -> None:
    assert "project: is missing; add the id of your Google Cloud project" in problems(
        changed(mixed_data(), {"project": REMOVED})
    )


def test_the_fleets_are_right() -> None:
    assert [item for item in (*problems(alone_data()), *problems(mixed_data())) if "dispatch with" not in item] == []


def test_a_program_hands_such_a_fleet_to_commands() -> None:
    fleet = parse_fleet(mixed_data())
    assert parse_fleet(fleet.wire()) == fleet


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({"server": SERVER}, ["server: https://k8s.paris.example:6443"]),
        ({"server": SERVER, "proxyUrl": "http://proxy.lyon.example:3128"}, []),
        ({"server": "https://lyon.example", "context": "admin@paris"}, ["context: admin@paris"]),
        ({}, []),
    ],
)
def test_two_entries_of_one_cluster_are_named(connection: dict[str, str], said: list[str]) -> None:
    data = mixed_data()
    data["clusters"].append({"name": "lyon", "role": "worker", "kubernetes": connection})
    rest = ", which is that of paris too; write that of this cluster, or remove one of the two"
    result = [item for item in problems(data) if "too; write that" in item]
    assert result == [f"warning: clusters[lyon].kubernetes.{entry}{rest}" for entry in said]


@pytest.mark.parametrize(
    ("contexts", "said"),
    [
        ({"lyon": "paris"}, {"lyon": "paris"}),
        ({"paris": "lyon"}, {"paris": "lyon"}),
        ({"paris": "lyon", "lyon": "lyon"}, {"paris": "lyon"}),
        ({"paris": "lyon", "lyon": "paris"}, {"paris": "lyon", "lyon": "paris"}),
        ({"paris": "gke"}, {"paris": "gke"}),
        ({"paris": "paris", "lyon": "lyon"}, {}),
    ],
)
def test_the_context_of_another_cluster_is_not_this_ones(contexts: dict[str, str], said: dict[str, str]) -> None:
    data = mixed_data()
    data["clusters"].append({"name": "lyon", "role": "worker", "kubernetes": {"server": "https://lyon.example"}})
    for cluster in data["clusters"][2:]:
        cluster["kubernetes"] = {"server": cluster["kubernetes"]["server"]} | (
            {"context": contexts[cluster["name"]]} if cluster["name"] in contexts else {}
        )
    rest = "too; write that of this cluster, or remove one of the two"
    assert [item for item in problems(data) if "too; write that" in item] == [
        f"warning: clusters[{name}].kubernetes.context: {context}, which is that of {context} {rest}"
        for name, context in said.items()
    ]


def test_an_address_may_stand_in_the_certificate_in_the_place_of_a_name() -> None:
    """Source: go1.26 crypto/x509/verify.go (VerifyHostname)."""
    data = mixed_data()
    before = problems(data)
    data["clusters"][2]["kubernetes"]["tlsServerName"] = "10.0.0.1"
    assert problems(data) == before


QUOTAS = "clusterQueues/0/resourceGroups/0"
MISSPELT = {
    f"{QUOTAS}/coveredResources/0": "nvidia.com/gpus",
    f"{QUOTAS}/flavors/0/resources/0/name": "nvidia.com/gpus",
}
IGNORED = {"kueue/configuration": {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}}}


@pytest.mark.parametrize(
    ("more", "then"),
    [({}, "is never admitted"), (IGNORED, "gets any number of them, as Kueue ignores what is not covered")],
)
def test_a_quota_of_gpus_that_are_misspelt_is_found_by_what_nodes_have(more: dict[str, Any], then: str) -> None:
    assert problems(changed(alone_data(), {**MISSPELT, **more})) == [
        "warning: clusterQueues[gpu].resourceGroups: no quota for nvidia.com/gpu, which nodes of flavor dgx have, and "
        f"a job that requests it {then}; write nvidia.com/gpu for nvidia.com/gpus"
    ]


OTHERS = {
    f"{QUOTAS}/coveredResources/+": "amd.com/gpu",
    f"{QUOTAS}/flavors/0/resources/+": {"name": "amd.com/gpu", "nominalQuota": 8},
}
MADE = [{"input": "nvidia.com/gpu", "strategy": "Retain", "outputs": {"amd.com/gpu": 1}}]


def test_a_quota_of_other_devices_is_compared_with_what_nodes_have() -> None:
    wrong = "queues may use 8 amd.com/gpu of it on paris (gpu 8), but its nodes hold 0 (nodes: dgx 2)"
    fix = "lower nominalQuota to 0 in all, or add nodes that have amd.com/gpu"
    assert problems(changed(alone_data(), OTHERS)) == [f"warning: flavors[dgx]: {wrong}; {fix}"]
    made = {**OTHERS, "kueue/configuration": {"resources": {"transformations": MADE}}}
    assert problems(changed(alone_data(), made)) == []


def test_memory_of_nodes_in_bytes() -> None:
    [text, *_] = problems(changed(alone_data(), {"clusters/0/nodes/0/allocatable/memory": 900}))
    assert "nodes[dgx].allocatable[memory]: 900 of memory is counted in bytes; add a unit" in text


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("nvidia.com/gpus", "write nvidia.com/gpu for nvidia.com/gpus in allocatable"),
        ("example.com/fpga", "add nodes that have nvidia.com/gpu"),
    ],
)
def test_nodes_without_the_gpus_of_a_quota(name: str, fix: str) -> None:
    nodes = {"clusters/0/nodes/0/allocatable": {"cpu": 120, "memory": "900Gi", "ephemeral-storage": "2Ti", name: 8}}
    [text] = problems(changed(alone_data(), nodes))
    assert text.endswith(f"but its nodes hold 0 (nodes: dgx 2); lower nominalQuota to 0 in all, or {fix}")
