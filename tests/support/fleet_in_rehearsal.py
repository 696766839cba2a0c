"""A stack of the repository, brought up in a rehearsal for a test, with a copy of its stack file to change."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from kubernetes import client, config

from kueue_fleet.fleet_file import FleetSpec, parse_fleet_text
from kueue_fleet.fleet_file.parse import REHEARSAL_KEY
from kueue_rehearsal.jobs.clients import ClusterClients
from kueue_rehearsal.pulumi_cli import PulumiProject, PulumiResult
from kueue_rehearsal.pulumi_events import PulumiEvent
from kueue_rehearsal.session import Session
from quick_rehearsals import quick_rehearsals

ROOT = Path(__file__).parents[2]

LISTS = [
    "/api/v1/namespaces",
    "/api/v1/serviceaccounts",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/kueue.x-k8s.io/v1beta2/resourceflavors",
    "/apis/kueue.x-k8s.io/v1beta2/topologies",
    "/apis/kueue.x-k8s.io/v1beta2/cohorts",
    "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
    "/apis/kueue.x-k8s.io/v1beta2/localqueues",
    "/apis/kueue.x-k8s.io/v1beta2/admissionchecks",
    "/apis/kueue.x-k8s.io/v1beta2/provisioningrequestconfigs",
    "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters",
    "/apis/kueue.x-k8s.io/v1beta2/multikueueconfigs",
    "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses",
]
"""Lists of the API that hold what `import` reads."""


@cache
def _parsed(text: str, source: str) -> FleetSpec:
    """It is asked for at every look at a cluster, and takes up to half a second."""
    return parse_fleet_text(text, source=source)


class FleetInRehearsal:
    """A fleet that is up, or can be."""

    def __init__(self, folder: Path, session: Session) -> None:
        self.session = session
        self.stack_file = folder / "stacks" / f"Pulumi.{session.stack}.yaml"
        self.steps: list[PulumiEvent] = []
        """What the last run changed; names without that of the fleet, with which they begin."""
        self._clients: tuple[str, ClusterClients] | None = None

    @property
    def fleet(self) -> FleetSpec:
        return _parsed(self.stack_file.read_text(), str(self.stack_file))

    @property
    def clients(self) -> ClusterClients:
        """The API servers of its clusters; their connections are kept while the kubeconfig stays as it is."""
        kubeconfig = self.session.paths.kubeconfig.read_text()
        if self._clients is None or self._clients[0] != kubeconfig:
            self._clients = kubeconfig, self.session.clients(self.fleet)
        return self._clients[1]

    def run(self, begin: Callable[[PulumiProject], Any]) -> PulumiResult:
        run = begin(self.session.pulumi())
        fleet = f"{self.fleet.name}/"
        self.steps = []
        self.steps += (
            replace(event, name=event.name.removeprefix(fleet)) for event in run if event.done and event.op != "same"
        )
        result: PulumiResult = run.result
        return result

    def up(self) -> PulumiResult:
        result = self.run(lambda project: project.up())
        self.session.write_kubeconfig(self.fleet)
        return result

    def change(self, edit: Callable[[dict[str, Any]], None]) -> None:
        settings = yaml.safe_load(self.stack_file.read_text())
        edit(settings["config"]["kueue-fleet:fleet"])
        self.stack_file.write_text(yaml.safe_dump(settings, sort_keys=False))

    def simulate(self, **settings: Any) -> None:
        """The simulated cloud behaves like this from the next `up` on."""
        document = yaml.safe_load(self.stack_file.read_text())
        document["config"][REHEARSAL_KEY] = settings
        self.stack_file.write_text(yaml.safe_dump(document, sort_keys=False))

    def objects(self, cluster: str, plural: str) -> dict[str, dict[str, Any]]:
        result = self.clients.list(cluster, "kueue.x-k8s.io", "v1beta2", plural)
        return {item["metadata"]["name"]: item for item in result}

    def printed(self, cluster: str, paths: Sequence[str]) -> list[dict[str, Any]]:
        """The objects of lists of the API, as `kubectl get -o yaml` prints them: each with its kind."""
        result: Any = config.new_client_from_config(str(self.session.paths.kubeconfig), context=cluster)  # type: ignore[no-untyped-call]
        results = []
        for path in paths:
            request = result.param_serialize(method="GET", resource_path=path, auth_settings=["BearerToken"])
            listed = json.loads(result.call_api(*request).read())
            kind = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
            results += [{**kind, **item} for item in listed["items"]]
        return results

    def requests(self, cluster: str) -> list[dict[str, Any]]:
        """The ProvisioningRequests of a cluster."""
        result = self.clients.list(cluster, "autoscaling.x-k8s.io", "v1", "provisioningrequests")
        return [one for one in result if "deletionTimestamp" not in one["metadata"]]

    def nodes(self, cluster: str) -> dict[str, bool]:
        """The simulated nodes of a cluster: name -> whether it is ready."""
        return {
            node["metadata"]["name"]: any(
                one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions", ())
            )
            for node in self.clients.list(cluster, "", "v1", "nodes")
            if node["metadata"]["labels"].get("kueue-fleet.dev/simulated") == "true"
        }

    def holds(self, cluster: str) -> dict[str, Any]:
        """What jobs hold in a cluster: ProvisioningRequests, nodes, and quota of each queue that is not 0."""
        quotas = {
            (name, resource["name"]): resource["total"]
            for name, queue in self.objects(cluster, "clusterqueues").items()
            for flavor in queue["status"].get("flavorsReservation", ())
            for resource in flavor["resources"]
            if str(resource["total"]) != "0"
        }
        names = [request["metadata"]["name"] for request in self.requests(cluster)]
        return {
            key: value
            for key, value in {"requests": names, "nodes": list(self.nodes(cluster)), "quota": quotas}.items()
            if value
        }

    def why_unfinished(self, jobs: list[str], clusters: list[str]) -> str:
        """For each of these jobs, what every cluster says about its Workload and its ProvisioningRequests."""
        lines = []
        for cluster in clusters:
            for name, workload in self.objects(cluster, "workloads").items():
                if any(name.startswith(f"job-{job}-") for job in jobs):
                    checks = [f"{one['name']}:{one['state']}" for one in workload["status"].get("admissionChecks", ())]
                    lines.append(f"{cluster} {name}: {shown_conditions(workload)} {' '.join(checks)}")
            for request in self.requests(cluster):
                if any(job in request["metadata"]["name"] for job in jobs):
                    lines.append(f"{cluster} {request['metadata']['name']}: {shown_conditions(request)}")
            lines.append(f"{cluster} nodes: {self.nodes(cluster)}")
        return "\n".join(lines)

    def tokens(self, cluster: str) -> set[str]:
        """Every service account token that is kept in a Secret, as it is and in base64."""
        result = config.new_client_from_config(str(self.session.paths.kubeconfig), context=cluster)  # type: ignore[no-untyped-call]
        secrets = client.CoreV1Api(result).list_secret_for_all_namespaces().items
        encoded = {str(secret.data["token"]) for secret in secrets if secret.data and "token" in secret.data}
        return encoded | {base64.b64decode(token).decode() for token in encoded}

    def secret_keys(self, cluster: str) -> set[str]:
        """What the Secrets of a cluster have in them, by its keys."""
        result = config.new_client_from_config(str(self.session.paths.kubeconfig), context=cluster)  # type: ignore[no-untyped-call]
        return {
            key for item in client.CoreV1Api(result).list_secret_for_all_namespaces().items for key in item.data or ()
        }

    def status(self, cluster: str, token: str, verb: str, path: str) -> int:
        """How the API server of a cluster answers a request with that token and an empty body."""
        result = config.new_client_from_config(str(self.session.paths.kubeconfig), context=cluster)  # type: ignore[no-untyped-call]
        settings = result.configuration
        with urllib3.PoolManager(ca_certs=settings.ssl_ca_cert) as pool:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            body = b"{}" if verb == "POST" else None
            return pool.request(verb, f"{settings.host}{path}", headers=headers, body=body).status

    def touched(self) -> set[tuple[str, str]]:
        """(operation, name) of what the last run changed; the stack itself left out."""
        return {(step.op, step.name) for step in self.steps if step.type != "pulumi:pulumi:Stack"}


def shown_conditions(thing: dict[str, Any]) -> str:
    """An object's conditions in one line."""
    conditions = (thing.get("status") or {}).get("conditions", ())
    return " ".join(
        f"{one['type']}={one['status']}/{one['reason']}@{one['lastTransitionTime'][11:19]}" for one in conditions
    )


def project_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of its own with the repository's program, and no stack yet."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "stacks").mkdir()
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    project["main"] = str(ROOT / "stacks")
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    return folder


@contextmanager
def copied(stack: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetInRehearsal]:
    """STACK in a project of its own, with a state folder of its own, and one replica of Kueue; nothing is up yet.

    A second replica takes 3.6 s of CPU in each cluster. `test_controller_deployed` is about two.
    """
    folder = project_folder(tmp_path_factory)
    shutil.copy(ROOT / "stacks" / f"Pulumi.{stack}.yaml", folder / "stacks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path_factory.mktemp("s")))
        quick_rehearsals(patch)
        session = Session.for_stack(stack, folder)
        session.prepare_engines(print)
        fleet = FleetInRehearsal(folder, session)
        fleet.change(lambda data: data.setdefault("kueue", {}).update(replicas=1))
        yield fleet


@contextmanager
def rehearsed(stack: str, tmp_path_factory: pytest.TempPathFactory, **settings: Any) -> Iterator[FleetInRehearsal]:
    """STACK, up until the end of the context; `settings` are those of the simulated cloud, the stack's own if none."""
    with copied(stack, tmp_path_factory) as fleet, fleet.session.exclusive(), fleet.session.running(keep=False):
        fleet.session.stand_ins()
        if settings:
            fleet.simulate(**settings)
        fleet.up()
        yield fleet
