"""The GPU driver installer."""

from __future__ import annotations

from typing import Any

from tests.fleet_file.builders import changed
from tests.fleet_file.pool_builders import pools_data

from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.objects import render_cluster, render_driver_installer

CUSTOM: dict[str, Any] = {"nodePools/1/accelerator": {"driverVersion": "INSTALLATION_DISABLED"}}


def test_only_where_gke_does_not_install_drivers() -> None:
    assert render_driver_installer(parse_fleet(pools_data()), "batch") == []
    spec = parse_fleet(changed(pools_data(), CUSTOM))
    (installer,) = render_driver_installer(spec, "batch")
    assert installer in render_cluster(spec, "batch")


def test_it_runs_on_nodes_with_gpus_that_have_no_driver_of_gke() -> None:
    spec = parse_fleet(changed(pools_data(), CUSTOM))
    (installer,) = render_driver_installer(spec, "batch")
    pod = installer["spec"]["template"]["spec"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    expected = {one["key"]: one["operator"] for one in terms[0]["matchExpressions"]}

    def is_for(pool: str) -> bool:
        labels = next(item.labels for item in spec.node_pools_on("batch") if item.name == pool)
        return all((key in labels) == (operator == "Exists") for key, operator in expected.items())

    assert is_for("on-demand")
    assert not is_for("spot")
    system = spec.system_pool_on("batch")
    assert system is not None
    assert "cloud.google.com/gke-accelerator" not in system.labels
    labels = installer["spec"]["template"]["metadata"]["labels"]
    assert installer["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert {"operator": "Exists"} in pod["tolerations"]
    assert [one["name"] for one in pod["initContainers"]] == ["nvidia-driver-installer", "partition-gpus"]
    mounted = {mount["name"] for one in pod["initContainers"] for mount in one["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
