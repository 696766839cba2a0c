"""Kueue's own metrics, read as managed Prometheus reads them: what the dashboards ask for is there."""

from __future__ import annotations

import base64
import re
import ssl
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from kueue_admission.history.metrics import is_metrics, judge_counted, read_metrics
from kueue_admission.history.schema import Event
from kueue_admission.kernel.problem import SpecError
from kueue_admission.read.goals import Goal, Standing
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.objects.monitoring import render_managed_monitoring
from one_cluster import OneCluster, Refused, job, wait_until
from promql import METRICS
from small_fleets import WORKER, fleet_data

PLURALS = {
    "ServiceAccount": "/api/v1/namespaces/kueue-system/serviceaccounts",
    "Secret": "/api/v1/namespaces/kueue-system/secrets",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/kueue-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/kueue-system/rolebindings",
    "PodMonitoring": "/apis/monitoring.googleapis.com/v1/namespaces/kueue-system/podmonitorings",
}
OBJECTS = {
    manifest["kind"]: manifest
    for manifest in render_managed_monitoring(
        parse_fleet(fleet_data(WORKER, observability={"managedPrometheus": True})), WORKER
    )
}


def scrape(address: str, endpoint: dict[str, Any], token: str | None) -> str:
    """The metrics as text. Raises Refused with the HTTP status."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{endpoint['scheme']}://{address}{endpoint['path']}", headers=headers)
    assert endpoint["tls"] == {"insecureSkipVerify": True}
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            raise Refused(str(error.code)) from None


@pytest.fixture(scope="module")
def address(kueue_cluster: OneCluster) -> str:
    """Where the PodMonitoring finds Kueue."""
    for kind, manifest in OBJECTS.items():
        kueue_cluster.ensure(PLURALS[kind], manifest)
    spec = OBJECTS["PodMonitoring"]["spec"]
    selector = ",".join(f"{key}%3D{value}" for key, value in spec["selector"]["matchLabels"].items())
    (pod,) = kueue_cluster.items(f"/api/v1/namespaces/kueue-system/pods?labelSelector={selector}")
    ports = {port["name"]: port["containerPort"] for port in pod["spec"]["containers"][0]["ports"]}
    return f"{pod['status']['podIP']}:{ports[spec['endpoints'][0]['port']]}"


def test_the_collectors_token_opens_kueues_metrics_and_nothing_does_without(
    kueue_cluster: OneCluster, address: str
) -> None:
    endpoint = OBJECTS["PodMonitoring"]["spec"]["endpoints"][0]
    with pytest.raises(Refused, match=r"401|403"):
        scrape(address, endpoint, None)
    expected = endpoint["authorization"]["credentials"]["secret"]
    secret = wait_until(lambda: kueue_cluster.get(f"{PLURALS['Secret']}/{expected['name']}").get("data"))
    token = base64.b64decode(secret[expected["key"]]).decode()

    def served() -> dict[str, set[str]]:
        """The labels of each metric."""
        try:
            text = scrape(address, endpoint, token)
        except Refused as error:
            # Kueue keeps the answer of an API server that did not know the token or its rights yet, for half a minute.
            raise AssertionError(str(error)) from None
        lines = re.finditer(r"^((?:multi)?kueue_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? ", text, re.MULTILINE)
        names = {line[1]: set(re.findall(r'(\w+)="', line[2] or "")) - {"le"} for line in lines}
        assert {"kueue_build_info", "kueue_cluster_queue_status", "kueue_pending_workloads"} <= names.keys()
        return names

    for name, labels in wait_until(served).items():
        assert labels == set(METRICS[name]["labels"]), name

    # What `record` makes of them, once a job was admitted.
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "main", "image": "train:1", "resources": {"requests": requests}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    kueue_cluster.create("/apis/batch/v1/namespaces/default/jobs", job("counted", "on-demand", template))

    def counted() -> Event:
        text = scrape(address, endpoint, token)
        assert is_metrics(text)
        try:
            [row] = [item for item in read_metrics(text, "metrics", time.time()) if item.cluster_queue == "on-demand"]
        except (SpecError, ValueError) as none:
            raise AssertionError(str(none)) from None
        return row

    row = wait_until(counted)
    counts = dict(row.counts or {})
    assert counts["admitted"] >= 1  # settled: it only grows
    assert counts["waitedAtMost10240"] == counts["admitted"]  # settled: of the same text
    assert 0 < counts["countedSeconds"] < 86_400  # settled: of the same text
    goal = Goal("clusterQueues[on-demand]", "wait", 10_240, "on-demand", quantile=0.5)
    judged = wait_until(lambda: j if (j := judge_counted(goal, [counted()])).standing is Standing.MET else None)
    assert judged.found is not None  # settled: of the same text

    # The same token is for nothing else.
    with pytest.raises(Refused, match=r"^403"):
        kueue_cluster.request("GET", PLURALS["Secret"], token=token)
