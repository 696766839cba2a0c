from __future__ import annotations

import base64
from typing import Any

import pytest

from kueue_fleet.kube.answers import JSON_PATCH, MERGE_PATCH
from kueue_rehearsal.node_agent.services import (
    CLIENTS,
    Backend,
    ClientConfig,
    Patch,
    client_configs,
    pick_backend,
    plan_relays,
    plan_routes,
    project_clients,
    routed_services,
    target_port,
)

IDLE = "127.70.0.1"
OWN = {"ks/hook": "127.71.0.1"}
SERVICE_PATH = "/api/v1/namespaces/ks/services/hook"
_, WEBHOOKS, CRDS, APISERVICES = CLIENTS
WEBHOOK_PATH = f"{WEBHOOKS}/v"
CRD_PATH = f"{CRDS}/c"


def service(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "hook"},
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": "kueue"},
            "ports": [{"port": 443, "targetPort": 9443}],
            **spec,
        },
    }


def backend(name: str = "p", ip: str = "127.70.1.2", ready_since: float = 1.0, **labels: str) -> Backend:
    return Backend("ks", name, labels or {"app": "kueue", "extra": "1"}, ip, {"webhook-server": 9443}, ready_since)


def webhook(port: int = 443, ca: str = "") -> ClientConfig:
    return ClientConfig(WEBHOOK_PATH, (), "ks/hook", port, ca, index=2, name="w.kb.io")


def plan(services: dict[str, Any], configs: list[ClientConfig], *backends: Backend, **ca: bytes) -> list[Patch]:
    authorities = {"ks/hook": ca["hook"]} if ca else {}
    return plan_routes(services, configs, backends, IDLE, authorities, {})


def plan_relayed(services: dict[str, Any], configs: list[ClientConfig], *backends: Backend) -> list[Patch]:
    return plan_routes(services, configs, backends, IDLE, {}, OWN)


def test_a_named_service_leads_to_the_ready_pod() -> None:
    assert plan({"ks/hook": service()}, [webhook()], backend()) == [
        Patch(SERVICE_PATH, MERGE_PATCH, {"spec": {"type": "ExternalName", "externalName": "127.70.1.2"}}),
        Patch(
            WEBHOOK_PATH,
            JSON_PATCH,
            [
                {"op": "test", "path": "/webhooks/2/name", "value": "w.kb.io"},
                {"op": "add", "path": "/webhooks/2/clientConfig/service/port", "value": 9443},
            ],
        ),
    ]


def test_a_settled_cluster_needs_no_patch() -> None:
    settled = service(type="ExternalName", externalName="127.70.1.2")
    assert plan({"ks/hook": settled}, [webhook(9443)], backend()) == []


def test_without_a_ready_pod_the_service_leads_where_nothing_listens() -> None:
    patches = plan({"ks/hook": service()}, [webhook(9443)])
    assert [patch.body for patch in patches] == [{"spec": {"type": "ExternalName", "externalName": IDLE}}]


def test_what_a_helm_upgrade_wrote_anew_is_patched_again() -> None:
    upgraded = service(clusterIP="10.0.0.7")
    patches = plan({"ks/hook": upgraded}, [webhook(443)], backend())
    assert [patch.path for patch in patches] == [SERVICE_PATH, WEBHOOK_PATH]


def test_services_that_nobody_names_or_that_have_no_selector_stay() -> None:
    assert plan({"ks/other": service()}, [webhook()], backend()) == []
    assert plan({"ks/hook": service(selector=None)}, [webhook()], backend()) == []


def test_the_authority_of_a_certificate_made_here_is_written_once() -> None:
    settled = service(type="ExternalName", externalName="127.70.1.2")
    text = base64.b64encode(b"PEM").decode()
    patches = plan({"ks/hook": settled}, [webhook(9443, ca="b2xk")], backend(), hook=b"PEM")
    assert patches[0].body[1] == {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": text}
    assert plan({"ks/hook": settled}, [webhook(9443, ca=text)], backend(), hook=b"PEM") == []


def test_conversions_and_aggregated_apis_are_patched_in_their_own_place() -> None:
    crd = ClientConfig(CRD_PATH, CLIENTS[CRDS], "ks/hook", 443)
    api = ClientConfig(f"{APISERVICES}/a", CLIENTS[APISERVICES], "ks/hook", 443)
    settled = service(type="ExternalName", externalName="127.70.1.2")
    assert [patch.body for patch in plan({"ks/hook": settled}, [crd, api], backend())] == [
        {"spec": {"conversion": {"webhook": {"clientConfig": {"service": {"port": 9443}}}}}},
        {"spec": {"service": {"port": 9443}}},
    ]


def test_the_pod_that_has_been_ready_for_longest_serves() -> None:
    old, new = backend("a", "127.70.1.1", 5.0), backend("b", "127.70.1.2", 1.0)
    assert pick_backend("ks", {"app": "kueue"}, [old, new]) is new
    assert pick_backend("ks", {"app": "kueue"}, [old, backend("c", ready_since=0.0, app="other")]) is old
    assert pick_backend("other", {"app": "kueue"}, [old]) is None


@pytest.mark.parametrize(
    ("ports", "port", "expected"),
    [
        ([{"port": 443, "targetPort": 9443}], 443, 9443),
        ([{"port": 443}], 443, 443),
        ([{"port": 443, "targetPort": "webhook-server"}], 443, 9443),
        ([{"port": 443, "targetPort": "unknown"}], 443, None),
        ([{"port": 443, "targetPort": 9443}], 9443, 9443),
        ([], 443, None),
    ],
)
def test_target_port(ports: list[dict[str, Any]], port: int, expected: int | None) -> None:
    assert target_port({"spec": {"ports": ports}}, port, backend()) == expected


def test_a_port_name_waits_for_a_pod() -> None:
    assert target_port({"spec": {"ports": [{"port": 443, "targetPort": "webhook-server"}]}}, 443, None) is None


def test_every_place_that_names_a_service_is_found() -> None:
    reference = {"namespace": "ks", "name": "hook"}
    hooks = {
        "webhooks": [
            {"name": "url", "clientConfig": {"url": "https://x"}, "rules": ["big"]},
            {"name": "svc", "clientConfig": {"service": reference, "caBundle": "Q0E="}},
        ]
    }
    conversion = {"webhook": {"clientConfig": {"service": {**reference, "port": 9443}}}}
    objects: dict[str, dict[str, Any]] = {
        WEBHOOKS: {"v": hooks},
        CRDS: {
            "c": {"spec": {"conversion": conversion, "versions": ["big"]}},
            "plain": {"spec": {"conversion": {"strategy": "None"}}},
        },
        APISERVICES: {"a": {"spec": {"service": reference}}, "local": {"spec": {}}},
    }
    kept = {
        path: {name: project_clients(item, CLIENTS[path]) for name, item in items.items()}
        for path, items in objects.items()
    }
    assert "big" not in str(kept)
    result = client_configs(kept)
    assert result == [
        ClientConfig(WEBHOOK_PATH, (), "ks/hook", 443, "Q0E=", index=1, name="svc"),
        ClientConfig(CRD_PATH, CLIENTS[CRDS], "ks/hook", 9443),
        ClientConfig(f"{APISERVICES}/a", CLIENTS[APISERVICES], "ks/hook", 443),
    ]


def test_a_relayed_service_leads_to_its_own_address_and_no_client_configuration_is_changed() -> None:
    services, configs = {"ks/hook": service()}, [webhook()]
    assert plan_relayed(services, configs, backend()) == [
        Patch(SERVICE_PATH, MERGE_PATCH, {"spec": {"type": "ExternalName", "externalName": "127.71.0.1"}})
    ]
    assert plan_relays(services, configs, [backend()], OWN) == {("127.71.0.1", 443): ("127.70.1.2", 9443)}


def test_a_rollout_changes_only_where_a_relay_leads() -> None:
    settled = {"ks/hook": service(type="ExternalName", externalName="127.71.0.1")}
    assert plan_relayed(settled, [webhook()], backend(ip="127.70.9.9")) == []
    assert plan_relays(settled, [webhook()], [backend(ip="127.70.9.9")], OWN) == {
        ("127.71.0.1", 443): ("127.70.9.9", 9443)
    }


def test_without_a_ready_pod_nothing_is_relayed() -> None:
    assert plan_relays({"ks/hook": service()}, [webhook()], [], OWN) == {}


def test_only_services_with_pods_that_somebody_names_are_routed() -> None:
    services = {"ks/hook": service(), "ks/headless": service(selector=None), "ks/other": service()}
    headless = ClientConfig(CRD_PATH, CLIENTS[CRDS], "ks/headless", 443)
    absent = ClientConfig(CRD_PATH, CLIENTS[CRDS], "ks/absent", 443)
    assert routed_services(services, [webhook(), webhook(), headless, absent]) == ["ks/hook"]
