"""Every public component, declared as the engine asks the plugin for it."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertiesError

import kueue_fleet
import pulumi_mocks
from kueue_admission.api.manifests import manifest
from kueue_fleet.fleet_file import kueue_helm_values, parse_fleet
from kueue_fleet.objects import render_worker_access
from kueue_fleet.objects.controller import render_controller
from kueue_fleet.objects.monitoring import render_managed_monitoring
from kueue_fleet.objects.run_duration_policy import render_run_duration_policy
from kueue_fleet.plugin.package import components, package_schema
from kueue_fleet.plugin.provider import FleetPlugin
from small_fleets import MANAGER, WORKER, fleet, fleet_data

PROJECT = {"project": "lab-project"}
IN_NETWORK = {**PROJECT, "network": "net", "subnetwork": "subnet"}
QUOTAS = [{"name": "l4", "resources": [{"name": "cpu", "nominalQuota": 4.0}]}]
"""As the engine sends them: numbers are floats."""
DISPATCH = {"dispatcher": "External", "external": {"name": "kueue-fleet.dev/dispatcher"}}
CONTROLLED = fleet(
    WORKER, multiKueue=fleet_data()["multiKueue"] | DISPATCH, controller={"image": "example.com/controller:1"}
)
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "drivers", "namespace": "kube-system"}}


def cluster(role: str, **more: Any) -> dict[str, Any]:
    return {"name": role, "role": role, "region": "europe-west4", **more}


INPUTS: dict[str, dict[str, Any]] = {
    "AcceleratorNetworks": {
        **PROJECT,
        "pools": [{"name": "h100", "machineType": "a3-highgpu-8g", "nodeCount": 2.0, "acceleratorNetworks": {}}],
        "clusterSpec": cluster("worker", mode="Standard", zones=["europe-west4-b"], multiNetworking=True),
    },
    "AdmissionCheck": {"spec": {"controllerName": "lab.dev/residency"}},
    "AdmissionController": {
        "objects": render_controller(CONTROLLED, MANAGER),
        "kubeconfigs": {WORKER: "{}"},
    },
    "ClusterQueue": {"spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": QUOTAS}]}},
    "Cohort": {"spec": {"parentName": "all"}},
    "ComputeClasses": {"objects": [manifest("cloud.google.com/v1", "ComputeClass", "l4", spec={"priorities": []})]},
    "Dashboards": {**PROJECT, "spec": {}, "fleet": "lab", "jobClusters": [WORKER]},
    "Fleet": {"spec": fleet_data(WORKER)},
    "GpuDirect": {"objects": [DAEMON_SET]},
    "GpuDrivers": {"spec": DAEMON_SET},
    "GrafanaDashboard": {"objects": [manifest("v1", "ConfigMap", "board", "monitoring", data={"board.json": "{}"})]},
    "GrafanaIdentity": {**PROJECT, "fleet": "lab"},
    "GrafanaInstall": {**PROJECT, "account": "reader@lab-project.iam.gserviceaccount.com"},
    "JobSetInstall": {"spec": {}, "deletionProtection": False},
    "KueueInstall": {"spec": {}, "values": kueue_helm_values(fleet(), WORKER)},
    "LocalQueue": {"spec": {"clusterQueue": "gpu"}, "namespace": "team-a"},
    "ManagedMonitoring": {"objects": render_managed_monitoring(fleet(observability={}), WORKER)},
    "ManagerCluster": {**IN_NETWORK, "spec": cluster("manager")},
    "MemberAccess": {**PROJECT, "fleet": "lab", "members": ["group:team-a@example.com"]},
    "MultiKueue": {"spec": fleet_data(WORKER), "kubeconfigs": {WORKER: '{"clusters": [{}]}'}},
    "Namespaces": {"spec": ["team-a", "team-b"]},
    "Network": {**PROJECT, "regions": ["europe-west4", "us-east4"]},
    "NvidiaDraDriverInstall": {"values": {"resources": {"gpus": {"enabled": True}}}},
    "NodeNetworks": {"objects": [manifest("networking.gke.io/v1", "Network", "vpc1", spec={"type": "Device"})]},
    "NodeIdentity": {**PROJECT, "clusterName": "eu"},
    "ProjectServices": {**PROJECT, "apis": ["container.googleapis.com"]},
    "NodePool": {
        **PROJECT,
        "spec": {"name": "l4", "machineType": "g2-standard-24", "nodeCount": 2.0},
        "clusterSpec": cluster("worker", mode="Standard"),
        "cluster": "worker",
        "serviceAccount": "gke-nodes@lab-project.iam.gserviceaccount.com",
    },
    "PlainCluster": {"spec": {"name": "paris", "role": "worker", "kubernetes": {"server": "https://k8s.example"}}},
    "PriorityClass": {"spec": {"value": 1000.0}},
    "ProvisioningRequestCheck": {
        "spec": {"name": "dws", "provisioningRequest": {"provisioningClassName": "queued-provisioning.gke.io"}}
    },
    "ReservedCapacity": {
        **PROJECT,
        "reservations": [{"name": "l4", "zone": "us-east4-a", "machineType": "g2-standard-24", "count": 2.0}],
    },
    "ResourceFlavor": {"spec": {"nodeLabels": {"a": "b"}}, "objectName": "l4"},
    "RunDurationPolicy": {"objects": render_run_duration_policy(fleet(), WORKER)},
    "StandaloneCluster": {**IN_NETWORK, "spec": cluster("standalone"), "labels": {"a": "b"}},
    "Team": {"spec": {"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}},
    "TeamIdentity": {
        **PROJECT,
        "fleet": "lab",
        "team": "team-a",
        "roles": ["roles/storage.objectUser"],
        "kubernetesAccounts": [["team-a", "job"]],
    },
    "TeamStorage": {
        **PROJECT,
        "spec": fleet_data(
            WORKER,
            teams=[{"name": "team-a", "googleServiceAccount": {}}],
            storage=[{"name": "data", "teams": ["team-a"], "volume": {"type": "gcsFuse"}}],
        ),
        "network": "projects/lab-project/global/networks/lab",
    },
    "TeamVolumes": {
        "objects": [manifest("v1", "PersistentVolume", "team-a-data", spec={"capacity": {"storage": "1Ti"}})]
    },
    "Topology": {"spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}},
    "WorkerAccess": {
        "objects": render_worker_access(fleet(), WORKER),
        "clusterName": WORKER,
        "endpoint": "gke.test",
    },
    "WorkerCluster": {**IN_NETWORK, "spec": cluster("worker"), "access": {"kubernetesTokens": True}},
    "WorkloadPriorityClass": {"spec": {"value": 10.0}},
}
"""For each component, what a program in another language may give it."""


def construct(token: str, inputs: dict[str, Any]) -> tuple[pulumi_mocks.Recording, dict[str, Any]]:
    """What the component declares, and what it gives out."""
    state: dict[str, Any] = {}

    def program() -> pulumi.Output[None]:
        result = FleetPlugin().construct("it", token, inputs)
        return pulumi.Output.all(urn=result.urn, **result.state).apply(state.update)

    return pulumi_mocks.run(program), state


def test_each_component_is_tried() -> None:
    assert set(INPUTS) == set(components())


@pytest.mark.parametrize("name", INPUTS)
def test_a_component_is_declared_and_gives_out_what_the_schema_says(name: str) -> None:
    token = f"kueue-fleet:index:{name}"
    recording, state = construct(token, INPUTS[name])
    component = recording.one(token, "it")
    assert recording.children(component), "it declares something"
    assert state.pop("urn") == component.urn
    promised = set(package_schema()["resources"][token]["properties"])
    # A certificate authority is given out only where it is not a public one, a link only to a dashboard, and a serial
    # only of a token that the component makes.
    assert promised - set(state) <= {"caCertificate", "dashboardUrl", "rotation"}
    assert set(state) <= promised


def test_a_fleet_is_the_same_as_from_python() -> None:
    recording, state = construct("kueue-fleet:index:Fleet", {"spec": fleet_data(WORKER)})
    directly = pulumi_mocks.run(lambda: kueue_fleet.Fleet("it", parse_fleet(fleet_data(WORKER))) and None)
    assert recording.graph() == directly.graph()
    assert {result.urn: result.inputs for result in recording} == {objects.urn: objects.inputs for objects in directly}
    assert set(state["endpoints"]) == {MANAGER, WORKER}


@pytest.mark.parametrize(
    ("token", "inputs", "says"),
    [
        ("kueue-fleet:index:Fleets", {}, "is not a component of kueue-fleet"),
        ("kueue-fleet:index:LocalQueue", {"spec": {"clusterQueue": "gpu"}}, "no namespace is given; give namespace"),
        ("kueue-fleet:index:Fleet", {"spec": fleet_data(WORKER), "charts": {}}, "is not a known field"),
        ("kueue-fleet:index:ManagerCluster", INPUTS["WorkerCluster"], "needs role manager, but it has worker"),
    ],
)
def test_what_the_library_refuses_is_told_at_the_component(token: str, inputs: dict[str, Any], says: str) -> None:
    with pytest.raises(InputPropertiesError) as raised:
        construct(token, inputs)
    assert says in str(raised.value.errors)
