from __future__ import annotations

import pytest

from kueue_fleet.kube.api import permission

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


@pytest.mark.parametrize(
    ("method", "path", "params", "needed"),
    [
        ("GET", "/api/v1/namespaces", {"limit": "500"}, ("list", "namespaces")),
        ("GET", "/api/v1/namespaces", {"watch": "1"}, ("watch", "namespaces")),
        ("GET", "/api/v1/namespaces/team", {}, ("get", "namespaces")),
        ("GET", f"{KUEUE}/workloads", {"watch": "1"}, ("watch", "workloads.kueue.x-k8s.io")),
        ("GET", f"{KUEUE}/namespaces/team/workloads", {}, ("list", "workloads.kueue.x-k8s.io")),
        ("PATCH", f"{KUEUE}/namespaces/team/workloads/a/status", {}, ("patch", "workloads.kueue.x-k8s.io/status")),
        ("PATCH", f"{KUEUE}/admissionchecks/a/status", {}, ("patch", "admissionchecks.kueue.x-k8s.io/status")),
        ("POST", "/api/v1/namespaces/team/events", {}, ("create", "events")),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/s/leases/l", {}, ("update", "leases.coordination.k8s.io")),
        ("GET", "/healthz", {}, ("get", "/healthz")),
    ],
)
def test_the_permission_that_a_request_needs(
    method: str, path: str, params: dict[str, str], needed: tuple[str, str]
) -> None:
    assert permission(method, path, params) == needed
