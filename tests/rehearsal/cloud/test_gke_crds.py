from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.objects.gpu_direct import render_node_networks
from kueue_fleet.objects.monitoring import render_managed_monitoring, render_pod_monitors
from kueue_rehearsal.cloud.gke_crds import DEFINITIONS
from kueue_rehearsal.cloud.pod_monitor_crd import POD_MONITORS


def unknown_fields(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """Fields that the API server would drop."""
    if isinstance(value, list):
        return [one for item in value for one in unknown_fields(item, schema["items"], f"{path}[]")]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    if "additionalProperties" in schema:
        return []
    result = []
    for key, item in value.items():
        if key not in schema.get("properties", {}):
            result.append(f"{path}.{key}")
        else:
            result += unknown_fields(item, schema["properties"][key], f"{path}.{key}")
    return result


def schema_of(kind: str) -> dict[str, Any]:
    (result,) = (one for one in DEFINITIONS if one["spec"]["names"]["kind"] == kind)
    spec: dict[str, Any] = result["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


@pytest.mark.parametrize("mode", ["Autopilot", "Standard"])
def test_what_the_fleet_renders_is_kept_whole(mode: str) -> None:
    clusters = [{"name": "one", "role": "standalone", "region": "us-east4", "mode": mode}]
    fleet = parse_fleet({"name": "f", "project": "my-project", "clusters": clusters, "observability": {}})
    (monitoring,) = (one for one in render_managed_monitoring(fleet, "one") if one["kind"] == "PodMonitoring")
    assert unknown_fields(monitoring["spec"], schema_of("PodMonitoring")) == []
    assert unknown_fields({"selektor": {}}, schema_of("PodMonitoring")) == [".selektor"]


def test_networks_of_nodes_are_kept_whole() -> None:
    clusters = [
        {"name": "one", "role": "standalone", "region": "us-east4", "mode": "Standard", "multiNetworking": True}
    ]
    pool = {"name": "h100", "machineType": "a3-highgpu-8g", "nodeCount": 1, "acceleratorNetworks": {}}
    fleet = parse_fleet({"name": "f", "project": "my-project", "clusters": clusters, "nodePools": [pool]})
    objects = render_node_networks(fleet, "one")
    assert [field for item in objects for field in unknown_fields(item["spec"], schema_of(item["kind"]))] == []
    assert len(objects) == 8


def test_names_are_as_the_api_server_wants_them() -> None:
    for definition in DEFINITIONS:
        spec = definition["spec"]
        assert definition["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"


def test_pod_monitors_are_kept_whole() -> None:
    clusters = [{"name": "one", "role": "standalone", "kubernetes": {}, "podMonitors": {}}]
    fleet = parse_fleet({"name": "f", "clusters": clusters})
    (monitor,) = (one for one in render_pod_monitors(fleet, "one") if one["kind"] == "PodMonitor")
    schema = POD_MONITORS["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert unknown_fields(monitor["spec"], schema) == []
