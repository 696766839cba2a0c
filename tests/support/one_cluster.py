"""One cluster of a rehearsal for the tests in tests/engines: the supervisor with its real engines, a plain client."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from api_server import api_server
from installed_chart import installed
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.rehearsal_section import DwsSection, NodesSection, RehearsalSection, StockRange
from kueue_rehearsal.control_planes.cluster_services import cluster_services
from kueue_rehearsal.control_planes.control_plane import ClusterAccess, ClusterService
from kueue_rehearsal.engines import EngineCache, Engines, find_engines
from kueue_rehearsal.kubeconfig import rehearsal_kubeconfig, write_kubeconfig
from kueue_rehearsal.paths import RehearsalPaths, engines_dir
from kueue_rehearsal.processes.supervisor_client import RunningSupervisor, start_supervisor

PATIENCE_SECONDS = 90.0
"""How long anything may take on a machine that does other work too."""

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
TEMPLATES = "/api/v1/namespaces/default/podtemplates"
REQUESTS = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests"
Json = dict[str, Any]
Seen = TypeVar("Seen")


def services(access: ClusterAccess) -> tuple[ClusterService, ...]:
    """The services of the test cluster: a simulated cloud that is fast and has four L4, no B200 and plenty else.

    Jobs leave the kind of GPU to Kueue's flavors, as on a Standard cluster.
    """
    return cluster_services(
        access,
        lambda: RehearsalSection(
            nodes=NodesSection(provision_seconds=0.5, idle_seconds=5.0),
            dws=DwsSection(
                low=8,
                stock={"nvidia-l4": StockRange(low=4, high=4), "nvidia-b200": StockRange(low=0, high=0)},
                least_wait_seconds=0.5,
                most_wait_seconds=1.0,
                idle_seconds=2.0,
            ),
        ),
        warden=False,
    )


class Refused(Exception):  # noqa: N818 (not a failure: what the test wants to see)
    """The API server said no."""


@dataclass(eq=False)
class OneCluster:
    """A running cluster. Requests are made as its administrator unless `token` says otherwise."""

    name: str
    supervisor: RunningSupervisor
    engines: Engines
    server: str
    folder: Path
    token: str = field(repr=False)
    ca_file: Path = field(repr=False)
    kueue: str = "kueue"
    """The engine whose chart is installed as Kueue's."""

    @cached_property
    def _authority(self) -> str:
        return self.ca_file.read_text()

    def moved(self, server: str) -> None:
        """The cluster has another address from now on."""
        self.server = server
        vars(self).pop("_api_server", None)

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "", token: str = "", user: str = ""
    ) -> Json:
        # A cluster that is made again under its name has another address.
        status, text = api_server(self.server, self._authority).request(
            method, path, body, token=token or self.token, content_type=content_type or "application/json", user=user
        )
        if status >= 400:
            raise Refused(f"{status} {json.loads(text)['message'] if text.startswith('{') else text}")
        answer: Json = json.loads(text)
        return answer

    def get(self, path: str) -> Json:
        return self.request("GET", path)

    def find(self, path: str) -> Json | None:
        try:
            return self.get(path)
        except Refused as error:
            if str(error).startswith("404"):
                return None
            raise

    def items(self, path: str) -> list[Json]:
        result: list[Json] = self.get(path).get("items") or []
        return result

    def create(self, path: str, body: Manifest) -> Json:
        return self.request("POST", path, body)

    def ensure(self, path: str, body: Manifest) -> None:
        """Creates the object unless it is there."""
        if self.find(f"{path}/{body['metadata']['name']}") is None:
            self.create(path, body)

    def delete(self, path: str) -> None:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        self.request("DELETE", path, body)

    def helm_install(self, chart: str, *settings: str, release: str = "") -> None:
        """The chart by helm, as the components install it: with --wait, in its own namespace; see `installed_chart`.

        The OpenAPI schema is not fetched, for which the API server takes 1 s of CPU: it checks every object itself.
        """
        namespace = f"{chart}-system"
        engine = chart
        if chart == "kueue" and self.kueue != chart:
            engine = self.kueue
            tag = self.engines.programs[engine].version
            settings = (*settings, "--set", f"controllerManager.manager.image.tag={tag}")

        def install() -> None:
            self.helm(
                "upgrade", "--install", release or chart, str(self.engines.asset(f"{engine}-chart")),
                "--namespace", namespace, "--create-namespace", "--disable-openapi-validation",
                "--wait", "--timeout", f"{2 * PATIENCE_SECONDS:.0f}s", *settings,
            )  # fmt: skip

        if self.find(f"/api/v1/namespaces/{namespace}") is not None:
            install()
        elif installed(self, self.supervisor.paths, engine, [release, *settings], install):
            wait_until(lambda: pods_run(self, namespace))

    def helm(self, *arguments: str) -> str:
        """Runs helm against the cluster; raises with its words when it fails."""
        kubeconfig = self.folder / "kubeconfig"
        home = {name: str(self.folder / "helm") for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        result = subprocess.run(
            [self.engines.binary("helm"), *arguments],
            env={**os.environ, **home, "KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def processes(self) -> list[Json]:
        return self.supervisor.client.processes()


def own_taints(node: Json) -> list[Json]:
    """A node's taints but for Kubernetes' own: a node is ready a moment before its taint not-ready is taken away."""
    return [taint for taint in node["spec"].get("taints", ()) if not taint["key"].startswith("node.kubernetes.io/")]


def pods_run(cluster: OneCluster, namespace: str) -> bool:
    """Whether the pods of all Deployments of a namespace are ready, and there are no others."""
    pods = cluster.items(f"/api/v1/namespaces/{namespace}/pods")
    expected = sum(
        one["spec"]["replicas"] for one in cluster.items(f"/apis/apps/v1/namespaces/{namespace}/deployments")
    )
    return len(pods) == expected and all(condition(pod, "Ready") == "True" for pod in pods)


def wait_until(look: Callable[[], Seen | None], seconds: float = PATIENCE_SECONDS, pause: float = 0.1) -> Seen:
    """Looks until there is something to see, again after `pause` seconds; less often the longer it waits.

    `look` may fail with AssertionError meanwhile; the last one is raised.
    """
    began = time.monotonic()
    last: AssertionError | None = None
    while (waited := time.monotonic() - began) < seconds:
        try:
            seen = look()
            if seen:
                return seen
        except AssertionError as error:
            last = error
        time.sleep(max(pause, min(waited / 20, 0.5)))
    if last is not None:
        raise last
    raise AssertionError(f"nothing was seen in {seconds:.0f} s")


@contextmanager
def one_cluster(
    folder: Path, name: str = "worker", location: str = "europe-west4", kueue: str = "kueue"
) -> Iterator[OneCluster]:
    """Starts a supervisor in `folder` and one Autopilot cluster in it; stops both at the end."""
    tests, paths = str(Path(__file__).parent), RehearsalPaths(folder)
    with start_supervisor(
        paths, services="one_cluster:services", environ={**os.environ, "PYTHONPATH": tests}
    ) as supervisor:
        cluster = supervisor.client.put_cluster(name, project="project", location=location, autopilot=True)
        token = paths.admin_token.read_text().strip()
        write_kubeconfig(folder / "kubeconfig", rehearsal_kubeconfig([cluster], token, name))
        ca_file = folder / "test-ca.crt"
        ca_file.write_bytes(base64.b64decode(cluster["caCertificate"]))
        engines = find_engines(EngineCache(engines_dir()))
        yield OneCluster(name, supervisor, engines, f"https://{cluster['endpoint']}", folder, token, ca_file, kueue)


def standard_cluster(lab: OneCluster, name: str = "standard", location: str = "us-east4") -> OneCluster:
    """A Standard cluster beside another one, under the same supervisor; it goes with it."""
    result = lab.supervisor.client.put_cluster(name, project="project", location=location, autopilot=False)
    folder = lab.folder / f"{name}-helm"
    folder.mkdir(exist_ok=True)
    write_kubeconfig(folder / "kubeconfig", rehearsal_kubeconfig([result], lab.token, name))
    return OneCluster(
        name, lab.supervisor, lab.engines, f"https://{result['endpoint']}", folder, lab.token, lab.ca_file
    )


def install_kueue(cluster: OneCluster, *values: str, name: str = "kueue") -> None:
    """Kueue by its chart."""
    cluster.helm_install("kueue", *(part for value in values for part in ("--set", value)), release=name)


def install_jobset(cluster: OneCluster) -> None:
    """JobSet by its chart."""
    cluster.helm_install("jobset")


def kueue_object(kind: str, name: str, spec: Json, namespace: str | None = None) -> Json:
    """An object of Kueue's API."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def queue_spec(flavor: str, gpus: int, *checks: str) -> Json:
    """A ClusterQueue of one flavor with plenty of CPU and memory."""
    quotas = {"cpu": "1000", "memory": "4000Gi", "nvidia.com/gpu": str(gpus)}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in quotas.items()]
    spec: Json = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": list(quotas), "flavors": [{"name": flavor, "resources": resources}]}],
    }
    if checks:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": check} for check in checks]}
    return spec


def ensure_queues(cluster: OneCluster) -> None:
    """A flavor of L4s, one queue that uses nodes made on demand, and one that asks DWS for them."""
    cluster.ensure(
        f"{KUEUE}/resourceflavors",
        kueue_object("ResourceFlavor", "l4", {"nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}),
    )
    cluster.ensure(
        f"{KUEUE}/provisioningrequestconfigs",
        kueue_object(
            "ProvisioningRequestConfig",
            "dws",
            {
                "provisioningClassName": "queued-provisioning.gke.io",
                "managedResources": ["nvidia.com/gpu"],
                "podSetUpdates": {
                    "nodeSelector": [
                        {
                            "key": "autoscaling.gke.io/provisioning-request",
                            "valueFromProvisioningClassDetail": "ResizeRequestName",
                        }
                    ]
                },
            },
        ),
    )
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "dws"}
    check = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters}
    cluster.ensure(f"{KUEUE}/admissionchecks", kueue_object("AdmissionCheck", "dws", check))
    for name, checks in (("on-demand", ()), ("queued", ("dws",))):
        cluster.ensure(f"{KUEUE}/clusterqueues", kueue_object("ClusterQueue", name, queue_spec("l4", 8, *checks)))
        queue = kueue_object("LocalQueue", name, {"clusterQueue": name}, "default")
        cluster.ensure(f"{KUEUE}/namespaces/default/localqueues", queue)
        wait_until(partial(_is_active, cluster, name))


def _is_active(cluster: OneCluster, queue: str) -> bool:
    return condition(cluster.get(f"{KUEUE}/clusterqueues/{queue}"), "Active") == "True"


def pod_template(gpus: int = 1, annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    """A pod that asks for GPUs."""
    resources = {"requests": {"cpu": "1", "memory": "2Gi"}, **({"limits": {"nvidia.com/gpu": gpus}} if gpus else {})}
    return {
        "metadata": {"annotations": annotations or {}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "train:1", "resources": resources}],
            **spec,
        },
    }


def plain_job(name: str, template: Json, pods: int = 1) -> Json:
    """A Job that no queue holds back."""
    body = job(name, "none", template, pods)
    del body["metadata"]["labels"], body["spec"]["suspend"]
    return body


def ask(cluster: OneCluster, name: str, count: int, accelerator: str = "nvidia-l4", **parameters: str) -> None:
    """A ProvisioningRequest for `count` pods with one GPU each."""
    template = pod_template(nodeSelector={"cloud.google.com/gke-accelerator": accelerator})
    cluster.create(
        TEMPLATES, {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}, "template": template}
    )
    cluster.create(
        REQUESTS,
        {
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": {"name": name},
            "spec": {
                "provisioningClassName": "queued-provisioning.gke.io",
                "podSets": [{"podTemplateRef": {"name": name}, "count": count}],
                "parameters": parameters,
            },
        },
    )


def reason(cluster: OneCluster, name: str, kind: str, status: str = "True") -> str | None:
    """The reason of a ProvisioningRequest's condition, where it has this status."""
    item = cluster.get(f"{REQUESTS}/{name}")
    for one in (item.get("status") or {}).get("conditions") or ():
        if one["type"] == kind and one["status"] == status:
            return str(one["reason"])
    return None


def details(cluster: OneCluster, name: str) -> dict[str, str]:
    """status.provisioningClassDetails of a ProvisioningRequest."""
    result: dict[str, str] = cluster.get(f"{REQUESTS}/{name}")["status"]["provisioningClassDetails"]
    return result


def job(name: str, queue: str, template: Json, pods: int = 1, annotations: dict[str, str] | None = None) -> Json:
    """A Job for a LocalQueue of the namespace default."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": queue},
            "annotations": annotations or {},
        },
        "spec": {
            "suspend": True,
            "backoffLimit": 0,
            "parallelism": pods,
            "completions": pods,
            "template": template,
        },
    }


def condition(item: Json, kind: str) -> str | None:
    """The status of a condition."""
    for one in (item.get("status") or {}).get("conditions") or ():
        if one["type"] == kind:
            return str(one["status"])
    return None


def end_of(cluster: OneCluster, name: str) -> str:
    """Waits for the end of a Job in namespace default: `Complete` or `Failed`."""

    def ended() -> str | None:
        result = cluster.get(f"{JOBS}/{name}")
        return next((kind for kind in ("Complete", "Failed") if condition(result, kind) == "True"), None)

    return wait_until(ended)


def pods_of(cluster: OneCluster, name: str) -> list[Json]:
    """The pods of a Job in namespace default."""
    return cluster.items(f"{PODS}?labelSelector=batch.kubernetes.io/job-name%3D{name}")
