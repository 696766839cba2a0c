"""Real control planes: what four of them share, what they do not, and what their controllers do."""

from __future__ import annotations

import base64
import socket
import ssl
import time
from collections.abc import Iterator

import psutil
import pytest

from bare_lab import BareCluster, BareLab, bare_lab, until

NAMES = ("manager", "worker-a", "worker-b", "worker-c")
# Measured alone on 2 cores: 6 s and 0.43 GiB each. The room is for a machine that does other work too.
READY_SECONDS = 60.0
MOST_BYTES_PER_CLUSTER = 0.7 * 1024**3
NAMESPACES = "/api/v1/namespaces"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareLab]:
    with bare_lab(tmp_path_factory.mktemp("planes")) as lab:
        yield lab


@pytest.fixture(scope="module")
def started(lab: BareLab) -> tuple[list[BareCluster], float]:
    begin = time.monotonic()
    return lab.clusters(*NAMES), time.monotonic() - begin


@pytest.fixture(scope="module")
def clusters(started: tuple[list[BareCluster], float]) -> list[BareCluster]:
    return started[0]


@pytest.fixture
def cluster(clusters: list[BareCluster]) -> BareCluster:
    return clusters[0]


def namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def pod_spec() -> dict[str, object]:
    return {"containers": [{"name": "c", "image": "registry.example/none:1"}]}


def ensure_default_account(cluster: BareCluster) -> None:
    until(lambda: "default" in cluster.names(f"{NAMESPACES}/default/serviceaccounts"), "the account `default`")


def test_four_control_planes_start_together(started: tuple[list[BareCluster], float]) -> None:
    clusters, seconds = started
    print(f"four API servers ready after {seconds:.1f} s")
    assert seconds < READY_SECONDS
    assert len({cluster.server for cluster in clusters}) == len(NAMES)
    assert {cluster.call("GET", "/version").body["gitVersion"] for cluster in clusters} == {"v1.36.3"}


def test_memory_of_the_control_planes(lab: BareLab, clusters: list[BareCluster]) -> None:
    rows = lab.client.processes()
    total = sum(row["rssBytes"] for row in rows)
    print(f"{total / 1024**3:.2f} GiB for {len(clusters)} control planes, etcd and the supervisor")
    assert total < MOST_BYTES_PER_CLUSTER * len(clusters)


def test_nothing_listens_off_loopback(lab: BareLab, clusters: list[BareCluster]) -> None:
    addresses = [
        connection.laddr.ip
        for row in lab.client.processes()
        for connection in psutil.Process(row["pid"]).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(addresses) >= len(clusters) + 2
    assert set(addresses) == {"127.0.0.1"}


def test_objects_stay_in_their_cluster(clusters: list[BareCluster]) -> None:
    clusters[1].create(NAMESPACES, namespace("only-here"))
    assert ["only-here" in cluster.names(NAMESPACES) for cluster in clusters] == [False, True, False, False]


@pytest.mark.parametrize("token", ["", "wrong"])
@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/readyz", "/metrics"])
def test_strangers_get_nothing(cluster: BareCluster, path: str, token: str) -> None:
    assert cluster.call("GET", path, token=token).status == 401


@pytest.mark.parametrize("name", ["127.0.0.1", "kubernetes", "kubernetes.default.svc"])
def test_the_server_is_verified_by_the_labs_authority(cluster: BareCluster, name: str) -> None:
    host, _, port = cluster.server.removeprefix("https://").partition(":")
    context = ssl.create_default_context(cadata=cluster.authority)
    with (
        socket.create_connection((host, int(port))) as plain,
        context.wrap_socket(plain, server_hostname=name) as secured,
    ):
        assert secured.version() == "TLSv1.3"


def test_a_service_account_has_its_own_rights_only(cluster: BareCluster) -> None:
    ensure_default_account(cluster)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    result = cluster.create(f"{NAMESPACES}/default/serviceaccounts/default/token", request)
    token = result["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = cluster.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, token=token)
    assert answer.body["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
    assert cluster.call("GET", "/api/v1/secrets", token=token).status == 403


def test_a_token_secret_is_filled_in(cluster: BareCluster) -> None:
    ensure_default_account(cluster)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "token-2026-11", "annotations": {"kubernetes.io/service-account.name": "default"}},
    }
    cluster.create(f"{NAMESPACES}/default/secrets", secret)
    path = f"{NAMESPACES}/default/secrets/token-2026-11"
    data = until(lambda: cluster.call("GET", path).body.get("data"), "the token in the Secret")
    assert base64.b64decode(data["ca.crt"]).decode() == cluster.authority
    token = base64.b64decode(data["token"]).decode()
    # What knows tokens reads Secrets from a watch.
    until(lambda: cluster.call("GET", "/api", token=token).status == 200, "the token to be known")


def test_mutating_admission_policies_work(cluster: BareCluster) -> None:
    policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    assert cluster.call("GET", policies).status == 200


def test_a_deployment_becomes_pods_that_wait_for_a_node(cluster: BareCluster) -> None:
    ensure_default_account(cluster)
    labels = {"app": "waits"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "waits"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        },
    }
    cluster.create("/apis/apps/v1/namespaces/default/deployments", deployment)

    def reason() -> str | None:
        pods = cluster.call("GET", f"{PODS}?labelSelector=app%3Dwaits").body["items"]
        conditions = pods[0]["status"].get("conditions", []) if pods else []
        return next((result["reason"] for result in conditions if result["type"] == "PodScheduled"), None)

    assert until(reason, "what the scheduler says of the pod") == "Unschedulable"
    cluster.call("DELETE", "/apis/apps/v1/namespaces/default/deployments/waits")
    until(
        lambda: not cluster.call("GET", f"{PODS}?labelSelector=app%3Dwaits").body["items"], "the pods to be collected"
    )


def test_aggregated_roles_are_filled(cluster: BareCluster) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rule = {"apiGroups": ["example.dev"], "resources": ["things"], "verbs": ["get"]}
    metadata = {"name": "things-view", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": [rule]}
    cluster.create(roles, role)
    until(lambda: rule in (cluster.call("GET", f"{roles}/view").body.get("rules") or []), "the rule in `view`")


def test_a_namespace_can_be_deleted(cluster: BareCluster) -> None:
    cluster.create(NAMESPACES, namespace("short-lived"))
    until(lambda: cluster.names(f"{NAMESPACES}/short-lived/configmaps"), "the root certificate in the namespace")
    cluster.call("DELETE", f"{NAMESPACES}/short-lived")
    until(lambda: "short-lived" not in cluster.names(NAMESPACES), "the namespace to go")


def test_a_cluster_made_again_under_its_name_is_empty(lab: BareLab, clusters: list[BareCluster]) -> None:
    last = clusters[-1]
    last.create(NAMESPACES, namespace("before"))
    lab.client.delete_cluster(last.name)
    again = lab.cluster(last.name)
    assert "before" not in again.names(NAMESPACES)
    assert "default" in again.names(NAMESPACES)
