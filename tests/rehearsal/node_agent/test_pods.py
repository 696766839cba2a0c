from __future__ import annotations

from typing import Any

import pytest

from kueue_rehearsal.node_agent.pods import (
    HostFacts,
    PodError,
    Source,
    environment,
    environment_sources,
    expand,
    field_value,
    image_repository,
    port_number,
    resource_value,
    rewrite_paths,
    unsupported,
)

FACTS = HostFacts(pod_ip="127.70.1.2", host_ip="127.70.0.1", node_name="system-0")


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {
        "name": "p",
        "namespace": "team",
        "uid": "u1",
        "labels": {"app": "x", "quote": 'a"b'},
        "annotations": {"note": "hello"},
    }
    return {"metadata": metadata, "spec": {"containers": list(containers), "serviceAccountName": "sa", **spec}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)-$(B)", "1-2"),
        ("$$(A)", "$(A)"),
        ("$(MISSING)", "$(MISSING)"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
    ],
)
def test_references_are_expanded_as_a_kubelet_does(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


def test_environment_takes_env_from_first_and_lets_env_override_and_refer_to_it() -> None:
    container = {
        "name": "c",
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "cm"}}, {"secretRef": {"name": "s", "optional": True}}],
        "env": [
            {"name": "P_LEVEL", "value": "debug"},
            {"name": "JOINED", "value": "$(P_LEVEL)/$(P_OTHER)"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}},
            {"name": "MAYBE", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "nope", "optional": True}}},
        ],
    }
    sources = environment_sources(container)
    assert sources == {Source("configmaps", "cm"), Source("secrets", "s"), Source("secrets", "s2")}
    data = {
        Source("configmaps", "cm"): {"LEVEL": b"info", "OTHER": b"o"},
        Source("secrets", "s"): None,
        Source("secrets", "s2"): {"k": b"v"},
    }
    assert environment(pod(container), container, FACTS, data) == {
        "P_LEVEL": "debug",
        "P_OTHER": "o",
        "JOINED": "debug/o",
        "IP": "127.70.1.2",
        "KEY": "v",
    }


def test_a_missing_source_that_is_not_optional_stops_the_container() -> None:
    container = {"name": "c", "env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "k"}}}]}
    with pytest.raises(PodError, match='secret "gone" not found') as caught:
        environment(pod(container), container, FACTS, {Source("secrets", "gone"): None})
    assert caught.value.reason == "CreateContainerConfigError"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "team"),
        ("spec.nodeName", "system-0"),
        ("status.hostIP", "127.70.0.1"),
        ("metadata.labels['app']", "x"),
        ("metadata.labels['absent']", ""),
        ("metadata.annotations", 'note="hello"'),
        ("metadata.labels", 'app="x"\nquote="a\\"b"'),
    ],
)
def test_downward_api(path: str, expected: str) -> None:
    assert field_value(pod(), path, FACTS) == expected


def test_downward_api_refuses_unknown_fields() -> None:
    with pytest.raises(PodError, match=r"spec\.hostname: not a field of the downward API"):
        field_value(pod(), "spec.hostname", FACTS)


@pytest.mark.parametrize(("divisor", "expected"), [(None, "1"), ("1m", "250"), ("0", "1")])
def test_resource_fields_are_rounded_up_to_the_divisor(divisor: str | None, expected: str) -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "250m"}}}
    reference = {"resource": "requests.cpu", "divisor": divisor}
    assert resource_value(pod(container), container, reference) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--config=/config.yaml", "--config=/host/config"),
        ("/config.yaml", "/host/config"),
        ("--a=/certs/tls.crt,/certs/tls.key", "--a=/host/certs/tls.crt,/host/certs/tls.key"),
        ("/visibility-other/x", "/visibility-other/x"),
        ("/visibility", "/host/v"),
        ("/certs/inner/file", "/host/inner/file"),
        ("x/certs", "x/certs"),
        ("https://host/certs", "https://host/certs"),
    ],
)
def test_container_paths_are_moved_only_where_they_are_whole_paths(text: str, expected: str) -> None:
    places = {
        "/config.yaml": "/host/config",
        "/certs": "/host/certs",
        "/certs/inner": "/host/inner",
        "/visibility/": "/host/v",
    }
    assert rewrite_paths(text, places) == expected


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("registry.k8s.io/kueue/kueue:v0.19.2", "registry.k8s.io/kueue/kueue"),
        ("localhost:5000/kueue/kueue", "localhost:5000/kueue/kueue"),
        ("kueue/kueue@sha256:abc", "kueue/kueue"),
        ("a/b:tag@sha256:abc", "a/b"),
        ("busybox", "busybox"),
    ],
)
def test_image_repository(image: str, repository: str) -> None:
    assert image_repository(image) == repository


def test_everything_that_cannot_be_done_is_named_at_once() -> None:
    asked = pod(
        {
            "name": "c",
            "livenessProbe": {"exec": {"command": ["true"]}},
            "readinessProbe": {"grpc": {"port": 1}},
            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
            "volumeMounts": [{"mountPath": "/x", "name": "v", "subPathExpr": "$(A)"}],
        },
        volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "ok", "emptyDir": {}}],
        initContainers=[{"name": "side", "restartPolicy": "Always"}],
    )
    assert unsupported(asked) == [
        "spec.initContainers[side].restartPolicy: sidecar containers are not run here",
        "spec.volumes[v].hostPath: this node has only configMap, downwardAPI, emptyDir, projected, secret",
        "spec.containers[c].livenessProbe.exec: only httpGet and tcpSocket probes work on this node",
        "spec.containers[c].readinessProbe.grpc: only httpGet and tcpSocket probes work on this node",
        "spec.containers[c].lifecycle: hooks are not run on this node",
        "spec.containers[c].volumeMounts[/x].subPathExpr: use subPath on this node",
    ]


def test_ports_by_number_and_name() -> None:
    container = {"name": "c", "ports": [{"name": "health", "containerPort": 8081}]}
    assert port_number(container, "health") == 8081
    assert port_number(container, 99) == 99
    with pytest.raises(PodError, match="container c has no port named other"):
        port_number(container, "other")
