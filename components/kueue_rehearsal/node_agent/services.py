"""How the API server reaches the webhooks of pods that are processes on loopback addresses.

kube-apiserver refuses loopback addresses in EndpointSlices, and no kube-proxy runs here. So a Service that a webhook,
a CRD's conversion or an APIService names is turned into one of type ExternalName whose name is the pod's address,
which kube-apiserver dials with the port of the client configuration; it still checks the certificate against the
Service's own DNS name (k8s.io/kube-aggregator pkg/apiserver/resolvers.go). Where the agent may listen on that port,
the Service gets an address of its own, and connections to it are relayed to the pod. Where it may not (ports below
1024), the port in the client configuration is set to the target port instead. A helm upgrade that writes the objects
again is answered by the same patches; Helm compares manifests with manifests, so none of this is a difference to it.

`plan_*` do no I/O; `ServiceRoutes` watches, patches and relays.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final

from kueue_fleet.kube.answers import JSON_PATCH, MERGE_PATCH, ApiError, Json
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi, Watched
from kueue_rehearsal.node_agent.addresses import ClaimedAddress, can_listen, claim_address
from kueue_rehearsal.node_agent.relay import Endpoint, Relays

log = logging.getLogger(__name__)

_DEFAULT_PORT = 443
_RETRY_SECONDS = 1.0
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"

CLIENTS: Final[Mapping[str, tuple[str, ...]]] = {
    f"{_ADMISSION}/mutatingwebhookconfigurations": (),
    f"{_ADMISSION}/validatingwebhookconfigurations": (),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": ("spec", "conversion", "webhook", "clientConfig"),
    "/apis/apiregistration.k8s.io/v1/apiservices": ("spec",),
}
"""The objects that name a Service, by the path of their collection: in which fields; empty: in each of its webhooks."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A ready pod of this node."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    ip: str
    port_names: Mapping[str, int]
    ready_since: float


@dataclass(frozen=True, slots=True)
class Patch:
    """One request to the API server."""

    path: str
    content_type: str
    body: Any


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """One place where a Service is named as the address of a server."""

    resource: str
    """The object's API path."""
    fields: tuple[str, ...]
    """Where in the object it is; empty for one of a list of webhooks."""
    service: str
    """namespace/name."""
    port: int
    ca_bundle: str = ""
    index: int = 0
    name: str = ""
    """Of webhooks only: the webhook's name, checked by the patch so that a concurrent edit of the list is not
    overwritten."""


def project_service(service: Json) -> Json:
    """The fields of a Service that matter here."""
    spec = service["spec"]
    kept_fields = {key: spec[key] for key in ("type", "externalName", "selector", "ports") if key in spec}
    return {"metadata": {"name": service["metadata"]["name"]}, "spec": kept_fields}


def project_clients(item: Json, fields: tuple[str, ...]) -> Json:
    """The client configurations in an object, one below `fields` or those of its webhooks. A CRD's schemas are
    megabytes."""
    if fields:
        clients = [reduce(lambda part, field: part.get(field) or {}, fields, item)]
    else:
        clients = [{"name": hook["name"], **hook["clientConfig"]} for hook in item.get("webhooks") or ()]
    return {"clients": [{key: one[key] for key in ("name", "service", "caBundle") if key in one} for one in clients]}


def client_configs(collections: Mapping[str, Mapping[str, Json]]) -> list[ClientConfig]:
    """All places that name a Service, in what `project_clients` has left of the objects of each of CLIENTS."""
    return [
        ClientConfig(
            resource=f"{path}/{name}",
            fields=CLIENTS[path],
            service=f"{service['namespace']}/{service['name']}",
            port=service.get("port") or _DEFAULT_PORT,
            ca_bundle=client.get("caBundle") or "",
            index=index,
            name=client.get("name", ""),
        )
        for path, items in collections.items()
        for name, item in items.items()
        for index, client in enumerate(item["clients"])
        if (service := client.get("service"))
    ]


def pick_backend(namespace: str, selector: Mapping[str, str], backends: Sequence[Backend]) -> Backend | None:
    """The ready pod that a Service leads to: of those that match, the one that has been ready for longest."""
    matching = [
        backend
        for backend in backends
        if backend.namespace == namespace and all(backend.labels.get(key) == value for key, value in selector.items())
    ]
    return min(matching, key=lambda backend: (backend.ready_since, backend.name), default=None)


def target_port(service: Json, port: int, backend: Backend | None) -> int | None:
    """The port to dial for `port` of the Service, or None while a named port is not known yet.

    A port that the Service does not declare, but that is one of its target ports, has been patched before and stays.
    """
    ports = service["spec"].get("ports") or []
    for declared in ports:
        if declared["port"] == port:
            target = declared.get("targetPort", port)
            if isinstance(target, int):
                return target
            return backend.port_names.get(target) if backend else None
    return port if ports else None


def plan_relays(
    services: Mapping[str, Json],
    configs: Sequence[ClientConfig],
    backends: Sequence[Backend],
    addresses: Mapping[str, str],
) -> dict[Endpoint, Endpoint]:
    """Where to listen for the API server, and what to hand on to; `addresses` has the Services' own ones.

    A Service without a ready pod is not listened for: its callers are refused, as by kube-proxy.
    """
    relays: dict[Endpoint, Endpoint] = {}
    for config in configs:
        service = services.get(config.service)
        if service is None or config.service not in addresses:
            continue
        backend = pick_backend(config.service.partition("/")[0], service["spec"]["selector"], backends)
        port = target_port(service, config.port, backend)
        if backend is not None and port is not None:
            relays[addresses[config.service], config.port] = (backend.ip, port)
    return relays


def routed_services(services: Mapping[str, Json], configs: Sequence[ClientConfig]) -> list[str]:
    """namespace/name of the Services that have pods and are named by a client configuration."""
    service_names = dict.fromkeys(config.service for config in configs)
    return [name for name in service_names if name in services and services[name]["spec"].get("selector")]


def plan_routes(
    services: Mapping[str, Json],
    configs: Sequence[ClientConfig],
    backends: Sequence[Backend],
    idle_ip: str,
    authorities: Mapping[str, bytes],
    addresses: Mapping[str, str],
) -> list[Patch]:
    """The patches that make every named Service lead to its pod, or to `idle_ip`, where nothing listens, while none
    is ready.

    A Service in `addresses` leads to its own address, with all ports as they are. `authorities` has the PEM
    certificates to trust for the Services whose certificate this agent made. Nothing is patched that is right already,
    so the plan of a settled cluster is empty.
    """
    patches: list[Patch] = []
    routed_names: set[str] = set()
    for config in configs:
        service = services.get(config.service)
        if service is None or not service["spec"].get("selector"):
            continue
        namespace, _, name = config.service.partition("/")
        backend = pick_backend(namespace, service["spec"]["selector"], backends)
        if config.service not in routed_names:
            routed_names.add(config.service)
            address = addresses.get(config.service) or (backend.ip if backend else idle_ip)
            wanted_spec = {"type": "ExternalName", "externalName": address}
            if any(service["spec"].get(key) != value for key, value in wanted_spec.items()):
                path = f"/api/v1/namespaces/{namespace}/services/{name}"
                patches.append(Patch(path, MERGE_PATCH, {"spec": wanted_spec}))
        port = target_port(service, config.port, backend)
        ca_bundle = base64.b64encode(authorities[config.service]).decode() if config.service in authorities else None
        changed_port = port if port is not None and port != config.port and config.service not in addresses else None
        changed_ca = ca_bundle if ca_bundle is not None and ca_bundle != config.ca_bundle else None
        if changed_port is not None or changed_ca is not None:
            patches.append(_client_config_patch(config, changed_port, changed_ca))
    return patches


def _client_config_patch(config: ClientConfig, port: int | None, ca_bundle: str | None) -> Patch:
    if config.fields:
        body: Json = {}
        if port is not None:
            body["service"] = {"port": port}
        if ca_bundle is not None:
            body["caBundle"] = ca_bundle
        for field in reversed(config.fields):
            body = {field: body}
        return Patch(config.resource, MERGE_PATCH, body)
    base = f"/webhooks/{config.index}"
    steps: list[Json] = [{"op": "test", "path": f"{base}/name", "value": config.name}]
    if port is not None:
        steps.append({"op": "add", "path": f"{base}/clientConfig/service/port", "value": port})
    if ca_bundle is not None:
        steps.append({"op": "add", "path": f"{base}/clientConfig/caBundle", "value": ca_bundle})
    return Patch(config.resource, JSON_PATCH, steps)


class ServiceRoutes:
    """Keeps the routes right: watches Services and whatever names them, and patches when they or the ready pods
    change."""

    def __init__(self, api: ControlPlaneApi, idle_ip: str, backends: Callable[[], Sequence[Backend]]) -> None:
        self.authorities: dict[str, bytes] = {}
        """namespace/name of a Service → PEM of the authority of the certificate that this agent made for it."""
        self._api = api
        self._idle_ip = idle_ip
        self._backends = backends
        self._changed = asyncio.Event()
        self._relayed = can_listen(idle_ip, _DEFAULT_PORT)
        self._relays = Relays()
        self._addresses: dict[str, ClaimedAddress] = {}

        def watched(path: str, project: Callable[[Json], Json], page: int = 200) -> Watched:
            return Watched(api, path, project=project, on_change=lambda *_: self._changed.set(), page=page)

        self._services = watched("/api/v1/services", project_service)
        # One page of ten definitions is a few megabytes of JSON while it is read.
        self._clients = {
            path: watched(
                path,
                partial(project_clients, fields=fields),
                page=10 if path.endswith("customresourcedefinitions") else 200,
            )
            for path, fields in CLIENTS.items()
        }

    def changed(self) -> None:
        """To be called when a pod has become ready or has ceased to be."""
        self._changed.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        watches = (self._services, *self._clients.values())
        try:
            async with asyncio.TaskGroup() as group:
                for watch in watches:
                    group.create_task(watch.run())
                group.create_task(self._route_forever(watches))
        finally:
            await self._relays.close()
            for address in self._addresses.values():
                address.release()

    async def _route_forever(self, watches: Sequence[Watched]) -> None:
        for watch in watches:
            await watch.synced.wait()
        while True:
            await self._changed.wait()
            self._changed.clear()
            configs = client_configs({path: watch.objects for path, watch in self._clients.items()})
            self._claim_addresses(configs)
            patches = plan_routes(
                self._services.objects, configs, self._backends(), self._idle_ip, self.authorities, self._own_addresses
            )
            failed_patches = [patch for patch in patches if not await self._apply(patch)]
            if failed_patches or not await self._relay(configs):
                await asyncio.sleep(_RETRY_SECONDS)
                self._changed.set()

    async def _apply(self, patch: Patch) -> bool:
        try:
            await self._api.patch(patch.path, patch.body, patch.content_type)
        except ApiError as error:
            if error.is_not_found:
                return True
            log.info("route %s: %s; trying again", patch.path, error)
            return False
        return True

    def _claim_addresses(self, configs: Sequence[ClientConfig]) -> None:
        if not self._relayed:
            return
        for service in routed_services(self._services.objects, configs):
            if service not in self._addresses:
                self._addresses[service] = claim_address(f"{self._idle_ip}/{service}")

    @property
    def _own_addresses(self) -> dict[str, str]:
        return {service: address.ip for service, address in self._addresses.items()}

    async def _relay(self, configs: Sequence[ClientConfig]) -> bool:
        relays = plan_relays(self._services.objects, configs, self._backends(), self._own_addresses)
        try:
            await self._relays.keep(relays)
        except OSError as error:
            log.info("relay: %s; trying again", error)
            return False
        return True
