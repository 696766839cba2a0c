"""A cluster that is there, with objects in it: left to its owner, or taken over with `pulumi import`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pytest
import yaml
from kubernetes import client, config
from typer.testing import CliRunner

from fleet_in_rehearsal import LISTS, FleetInRehearsal, copied
from kueue_fleet.adopt import AdoptedCluster
from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.google.node_pools import node_pool_properties
from one_cluster import wait_until
from tests.adopt.existing_platform import NODES, described_cluster

NAME = "theirs"
GROUP = "kueue.x-k8s.io"
FLEET: dict[str, Any] = {
    "name": "guest",
    "project": "their-project",
    "deletionProtection": False,
    "kueue": {"replicas": 1},
    "clusters": [
        {
            "name": NAME,
            "role": "standalone",
            "region": "us-central1",
            "mode": "Standard",
            "existing": True,
            "upsertExistingObjects": True,
        }
    ],
    "nodePools": [{"name": "nodes", "machineType": "e2-standard-8", "nodeCount": 1, "existing": True}],
    "flavors": [{"name": "any", "nodePool": "nodes"}],
    "clusterQueues": [
        {
            "name": "main",
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory"],
                    "flavors": [
                        {
                            "name": "any",
                            "resources": [
                                {"name": "cpu", "nominalQuota": 8},
                                {"name": "memory", "nominalQuota": "8Gi"},
                            ],
                        }
                    ],
                }
            ],
        }
    ],
    "teams": [{"name": "vision", "localQueues": [{"name": "main", "clusterQueue": "main"}]}],
}


QUEUES: list[dict[str, Any]] = [
    {"kind": "ResourceFlavor", "metadata": {"name": "any"}, "spec": {}},
    {
        "kind": "ClusterQueue",
        "metadata": {"name": "main"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory"],
                    "flavors": [
                        {
                            "name": "any",
                            "resources": [
                                {"name": "cpu", "nominalQuota": "4"},
                                {"name": "memory", "nominalQuota": "4Gi"},
                            ],
                        }
                    ],
                }
            ],
        },
    },
]
RUNNING: dict[str, Any] = {
    "metadata": {"name": "runs", "labels": {"kueue.x-k8s.io/queue-name": "main"}},
    "spec": {
        "suspend": True,
        "template": {
            "metadata": {"annotations": {"kueue-fleet.dev/run-seconds": "3600"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "main",
                        "image": "train:1",
                        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
                    }
                ],
            },
        },
    },
}


def theirs(lab: FleetInRehearsal, api: Any) -> None:
    """What the owner has: Kueue without a Helm release, queues, and a job that runs."""
    engines = lab.session.engines
    place = ["--kubeconfig", str(lab.session.paths.kubeconfig), "--kube-context", NAME, "--namespace", "kueue-system"]
    install = ["install", "kueue", str(engines.asset("kueue-chart")), *place, "--create-namespace"]
    install += ["--disable-openapi-validation", "--wait"]
    subprocess.run([str(engines.binary("helm")), *install], check=True, capture_output=True)
    core: Any = client.CoreV1Api(api)
    core.delete_collection_namespaced_secret("kueue-system", label_selector="owner=helm")
    core.create_namespace({"metadata": {"name": "vision", "labels": {"owner": "them"}}})
    custom: Any = client.CustomObjectsApi(api)
    for item in QUEUES:
        plural = f"{item['kind'].lower()}s"
        custom.create_cluster_custom_object(GROUP, "v1beta2", plural, {"apiVersion": f"{GROUP}/v1beta2", **item})
    local = {"apiVersion": f"{GROUP}/v1beta2", "kind": "LocalQueue", "metadata": {"name": "main"}}
    custom.create_namespaced_custom_object(
        GROUP, "v1beta2", "vision", "localqueues", {**local, "spec": {"clusterQueue": "main"}}
    )
    client.BatchV1Api(api).create_namespaced_job("vision", cast("Any", RUNNING))


def set_active(custom: Any, *, active: bool) -> None:
    """Whether the team's Workloads may have quota."""
    place = (GROUP, "v1beta2", "vision", "workloads")
    for workload in custom.list_namespaced_custom_object(*place)["items"]:
        custom.patch_namespaced_custom_object(*place, workload["metadata"]["name"], {"spec": {"active": active}})


def becomes(fleet: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """A change of the stack's fleet to this one."""

    def change(stack: dict[str, Any]) -> None:
        stack.clear()
        stack.update(fleet)

    return change


def in_google_cloud(lab: FleetInRehearsal) -> AdoptedCluster:
    """The cluster and its pool as gcloud made them, and what gcloud says of them."""
    project, region = FLEET["project"], "us-central1"
    spec = parse_fleet({**FLEET, "clusters": [{**FLEET["clusters"][0], "existing": False}], "nodePools": POOLS})
    printed = described_cluster(spec, NAME)
    description: Any = printed.description
    network = description["networkConfig"]
    result = {
        "network": network["network"],
        "subnetwork": network["subnetwork"],
        "datapathProvider": "ADVANCED_DATAPATH",
        "ipAllocationPolicy": {"clusterSecondaryRangeName": "pods"},
        "privateClusterConfig": {"enablePrivateNodes": True},
        "controlPlaneEndpointsConfig": {
            "dnsEndpointConfig": {"allowExternalTraffic": True},
            "ipEndpointsConfig": {"enabled": False},
        },
        "releaseChannel": {"channel": "RAPID"},
        "resourceLabels": {"owner": "ml"},
        "initialNodeCount": 3,
    }
    lab.session.client.put_cluster(NAME, project=project, location=region, autopilot=False)
    lab.session.client.put_inputs(NAME, result)
    nodes = node_pool_properties(
        spec.node_pools_on(NAME)[0],
        service_account=NODES,
        disk_encryption_key=None,
        image_streaming=True,
        labels={},
    )
    place = {"project": project, "location": region, "cluster": NAME}
    lab.session.client.put_node_pool(NAME, "nodes", {**nodes, **place})
    # A fleet's own pool for Kueue is not there.
    pools = [pool for pool in description["nodePools"] if pool["name"] == "nodes"]
    return replace(printed, description={**description, "nodePools": pools}, node_pools=pools)


POOLS = [{"name": "nodes", "machineType": "e2-standard-8", "nodeCount": 1}]


def test_pulumi_takes_a_platform_over_with_jobs_running_and_replaces_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("platform")
    with copied("dev", tmp_path_factory) as lab, lab.session.exclusive(), lab.session.running(keep=False):
        lab.session.stand_ins()
        lab.session.write_settings()
        described = in_google_cloud(lab)
        lab.change(becomes(FLEET))
        lab.session.write_kubeconfig(lab.fleet)
        created_objects: Any = config.new_client_from_config(str(lab.session.paths.kubeconfig), context=NAME)  # type: ignore[no-untyped-call]
        theirs(lab, created_objects)
        core: Any = client.CoreV1Api(created_objects)
        batch: Any = client.BatchV1Api(created_objects)
        wait_until(lambda: batch.read_namespaced_job("runs", "vision").status.active)
        [pod] = core.list_namespaced_pod("vision").items
        queue = lab.objects(NAME, "clusterqueues")["main"]["metadata"]["uid"]  # settled: applied above

        objects = lab.printed(NAME, [*LISTS, "/api/v1/namespaces/kueue-system/configmaps"])
        (folder / "objects.json").write_text(json.dumps({"kind": "List", "items": objects}, default=str))
        (folder / "gke.yaml").write_text(yaml.safe_dump(described.description))
        result = CliRunner().invoke(
            app,
            ["import", f"{NAME}={folder / 'objects.json'}", f"--description={NAME}={folder / 'gke.yaml'}",
             "--name=guest", "--project=their-project", "--default-kueue",
             f"--pulumi-import={folder / 'import.json'}", f"--output={folder / 'fleet.yaml'}"],
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        imported = yaml.safe_load((folder / "fleet.yaml").read_text())
        assert "existing" not in imported["clusters"][0]
        assert "existing" not in imported["nodePools"][0]
        lab.change(becomes(imported))
        options = (f"--file={folder / 'import.json'}", "--generate-code=false", "--skip-preview")
        lab.run(lambda project: project._start("import", *options))
        assert {(step.op, step.name) for step in lab.steps if step.type.startswith("gcp:")} == {
            ("import", NAME),
            ("import", f"{NAME}/nodes"),
        }
        lab.up()
        of_google = {(step.op, step.name) for step in lab.steps if step.type.startswith("gcp:container")}
        assert of_google == {("update", NAME), ("update", f"{NAME}/nodes"), ("create", f"{NAME}/system")}
        assert {step.op for step in lab.steps} <= {"update", "create"}, lab.touched()
        assert [item.metadata.uid for item in core.list_namespaced_pod("vision").items] == [pod.metadata.uid]
        assert batch.read_namespaced_job("runs", "vision").status.active == 1
        assert lab.objects(NAME, "clusterqueues")["main"]["metadata"]["uid"] == queue  # settled: `up` has ended
        assert lab.up().unchanged, lab.touched()


def test_what_exists_is_taken_over_with_jobs_running_and_the_cluster_stays(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with copied("dev", tmp_path_factory) as lab, lab.session.exclusive(), lab.session.running(keep=False):
        lab.session.stand_ins()
        lab.change(becomes(FLEET))
        lab.session.write_settings()
        assert lab.session.make_existing_clusters(lab.fleet) == [NAME]
        lab.session.write_kubeconfig(lab.fleet)
        created_objects: Any = config.new_client_from_config(str(lab.session.paths.kubeconfig), context=NAME)  # type: ignore[no-untyped-call]
        theirs(lab, created_objects)
        core: Any = client.CoreV1Api(created_objects)
        batch: Any = client.BatchV1Api(created_objects)
        wait_until(lambda: batch.read_namespaced_job("runs", "vision").status.active)
        before = core.read_namespace("vision").metadata
        queue = lab.objects(NAME, "clusterqueues")["main"]["metadata"]["uid"]  # settled: applied above
        [pod] = core.list_namespaced_pod("vision").items
        lab.up()
        of_google = [(step.op, step.name) for step in lab.steps if step.type.startswith(("gcp:con", "gcp:comp"))]
        assert of_google == [("read", NAME)]
        assert {step.op for step in lab.steps} == {"read", "create"}
        after = core.read_namespace("vision").metadata
        assert after.uid == before.uid
        assert after.labels.items() > before.labels.items()
        main = lab.objects(NAME, "clusterqueues")["main"]  # settled: `up` has ended
        assert main["metadata"]["uid"] == queue
        assert main["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] == "8"
        assert [item.metadata.uid for item in core.list_namespaced_pod("vision").items] == [pod.metadata.uid]
        assert lab.up().unchanged, lab.touched()
        custom: Any = client.CustomObjectsApi(created_objects)
        queue_of_theirs = (GROUP, "v1beta2", "clusterqueues", "main")

        def is_deleted() -> bool:
            return "deletionTimestamp" in custom.get_cluster_custom_object(*queue_of_theirs)["metadata"]

        # It waits for jobs that have quota, as docs/tasks/existing-clusters.md says, and somebody ends it.
        with lab.session.pulumi().destroy():
            wait_until(is_deleted)
        assert batch.read_namespaced_job("runs", "vision").status.active == 1
        lab.session.pulumi().recover()
        kubeconfig = str(lab.session.paths.kubeconfig)
        told = CliRunner().invoke(app, ["status", str(lab.stack_file), "--kubeconfig", kubeconfig, "-o", "json"])
        assert "it waits for jobs with quota, vision/runs: " in json.loads(told.stdout)["queues"][0]["reason"]
        # HoldAndDrain would not evict it: its LocalQueue is gone.
        set_active(custom, active=False)
        wait_until(lambda: "main" not in lab.objects(NAME, "clusterqueues"))
        # The fleet is to stay after all.
        lab.run(lambda project: project._start("up", "--refresh", "--skip-preview"))
        assert {step.op for step in lab.steps} <= {"refresh", "create", "update", "read", "same"}, lab.touched()
        set_active(custom, active=True)
        wait_until(lambda: batch.read_namespaced_job("runs", "vision").status.active)
        with ThreadPoolExecutor(1) as pool:
            destroyed = pool.submit(lab.run, lambda project: project.destroy())
            wait_until(is_deleted)
            set_active(custom, active=False)
            destroyed.result()
        assert [cluster["name"] for cluster in lab.session.client.clusters()] == [NAME]
        apis = client.ApisApi(created_objects)
        # The API server takes a group away a moment after the last of its kinds.
        wait_until(lambda: GROUP not in {group.name for group in apis.get_api_versions().groups})
