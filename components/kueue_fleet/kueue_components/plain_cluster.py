"""A cluster that is not of GKE, and that exists: how Pulumi connects to it, and how a manager does."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from kueue_admission.kernel.arguments import shown
from kueue_admission.kernel.base import DnsSubdomain, Text
from kueue_admission.kernel.names import PRODUCT
from kueue_admission.kernel.yaml_text import load_yaml
from kueue_fleet.component import Component
from kueue_fleet.fleet_file import ClusterEntry
from kueue_fleet.fleet_file.model.addresses import CaCertificate
from kueue_fleet.fleet_file.model.plain_clusters import KubernetesConnection
from kueue_fleet.fleet_file.rules.files import PROGRAM
from kueue_fleet.kube.new_kubeconfig import render_kubeconfig

_SCHEME = "https://"
_CONFIG = "kubernetesClusters"
"""Key of the stack's config by which a rehearsal replaces how they are reached."""


@dataclass(frozen=True)
class KubernetesCluster:
    """A cluster that is not of GKE, as a program or another stack made it; see `clusters[].kubernetes`."""

    kubeconfig: pulumi.Input[str]
    """Kubeconfig with a credential by which Pulumi reaches it, YAML or JSON; secret in the state. It names no files."""
    context: Text | None = None
    """Its context there; default: the current one."""
    server: pulumi.Input[Text] | None = None
    """Address at which the manager reaches it; default: the kubeconfig's."""
    certificate_authority_data: pulumi.Input[CaCertificate] | None = None
    """Authority of that address, PEM in base64; default: the kubeconfig's, or the cluster's own with `server`."""
    tls_server_name: pulumi.Input[DnsSubdomain] | None = None
    """Name in the server's certificate; default: the host of the address."""
    proxy_url: pulumi.Input[Text] | None = None
    """Proxy through which the manager reaches it; default: none."""


shown(KubernetesCluster.__init__)


class PlainCluster(Component):
    """A cluster that is not of GKE: the provider of everything in it, and its address for the manager."""

    pulumi_type = "kueue-fleet:index:PlainCluster"

    cluster_name: str
    """Its name in the fleet."""
    role: str
    """What it is in the fleet: manager, worker or standalone."""
    identifier: pulumi.Output[str]
    """Its address for the manager, or its name where there is none."""
    endpoint: pulumi.Output[str]
    """Address of the API server for the manager, without a scheme; empty: none is known."""
    ca_certificate: pulumi.Output[str | None]
    """Certificate authority of the API server, base64 PEM; None: the cluster's own."""
    tls_server_name: pulumi.Output[str | None]
    """Name in the server's certificate; None: the host of the address."""
    proxy_url: pulumi.Output[str | None]
    """Proxy through which the manager reaches it; None: there is none."""
    kubeconfig: pulumi.Output[str]
    """Kubeconfig of the program with one context, named like the cluster, JSON, secret; empty where it gives none."""
    provider: kubernetes.Provider
    """Provider for everything in this cluster and for nothing outside it."""

    def __init__(
        self,
        name: str,
        spec: ClusterEntry,
        given: KubernetesCluster | None = None,
        *,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Connect to the cluster of that entry; without `given`, by its context of the kubeconfig that kubectl uses."""
        super().__init__(name, opts)
        connection, context = spec.kubernetes or KubernetesConnection(), spec.context
        if (instead := (pulumi.Config(PRODUCT).get_object(_CONFIG) or {}).get(spec.name)) is not None:
            connection, context, given = KubernetesConnection(server=instead["server"]), instead["context"], None
        self.cluster_name, self.role = spec.name, spec.role
        known_config: pulumi.Output[dict[str, Any]] = pulumi.Output.from_input({})
        if given is not None:
            context_name = given.context or connection.context
            known_config = pulumi.Output.secret(given.kubeconfig).apply(
                lambda text: _single_context(spec.name, text, context_name)
            )
        own = pulumi.Output.unsecret(
            known_config.apply(lambda config: dict(config["clusters"][0]["cluster"]) if config else {})
        )
        more = given or KubernetesCluster("")
        server = connection.server or more.server
        address = pulumi.Output.all(server, own).apply(lambda parts: parts[0] or parts[1].get("server") or "")
        self.endpoint = address.apply(lambda text: text.removeprefix(_SCHEME).rstrip("/"))
        self.identifier = self.endpoint.apply(lambda text: text or spec.name)
        authority = connection.certificate_authority_data or more.certificate_authority_data
        self.ca_certificate = _of(own, authority, "certificate-authority-data", own_address=server is None)
        host = connection.tls_server_name or more.tls_server_name
        self.tls_server_name = _of(own, host, "tls-server-name", own_address=server is None)
        proxy = connection.proxy_url or more.proxy_url
        self.proxy_url = _of(own, proxy, "proxy-url", own_address=server is None)
        self.kubeconfig = pulumi.Output.secret(
            known_config.apply(lambda config: json.dumps(config, sort_keys=True) if config else "")
        )
        self.provider = kubernetes.Provider(
            name,
            kubeconfig=self.kubeconfig if given is not None else None,
            context=None if given is not None else context,
            # A new credential or address is the same cluster.
            cluster_identifier=spec.name,
            enable_secret_mutable=True,
            upsert_existing_objects=spec.upsert_existing_objects or None,
            enable_patch_force=spec.upsert_existing_objects or None,
            opts=pulumi.ResourceOptions(parent=self),
        )
        # The kubeconfig is in the state of the provider.
        self._give_out("kubeconfig")


def _of(
    own: pulumi.Output[dict[str, Any]], said: pulumi.Input[str] | None, field: str, *, own_address: bool
) -> pulumi.Output[str | None]:
    """What is said, else what the kubeconfig has beside its address, where that is the one that counts."""
    value: pulumi.Output[str | None] = pulumi.Output.all(said, own).apply(
        lambda parts: parts[0] or (parts[1].get(field) if own_address else None)
    )
    return value


def _single_context(name: str, text: str, context: str | None) -> dict[str, Any]:
    """The kubeconfig with one context alone, called NAME. Raises RunError, from within Pulumi."""
    where = f"kubernetes_clusters[{name}].kubeconfig"
    try:
        config = load_yaml(text, where)
    except ValueError:
        config = None
    if not isinstance(config, Mapping) or not isinstance(config.get("contexts"), list):
        raise pulumi.RunError(PROGRAM.at(where, "the program gives no kubeconfig", "give YAML or JSON of one").coded)
    wanted_context = context or config.get("current-context")
    context_entry = _named(config, "context", wanted_context)
    if context_entry is None:
        wrong = f"has no context {wanted_context}" if wanted_context else "has no current context"
        raise pulumi.RunError(PROGRAM.at(where, wrong, "give context=..., one of its contexts").coded)
    cluster, user = (_named(config, kind, context_entry.get(kind)) for kind in ("cluster", "user"))
    if cluster is None or user is None:
        wrong = f"its context {wanted_context} names a cluster or a user that is not there"
        raise pulumi.RunError(PROGRAM.at(where, wrong, "give a whole kubeconfig").coded)
    files = [
        key
        for key in (*cluster, *user)
        if key in ("certificate-authority", "client-certificate", "client-key", "tokenFile")
    ]
    if files:
        wrong = f"names a file in {files[0]}, which is not where Pulumi runs next"
        raise pulumi.RunError(PROGRAM.at(where, wrong, "write it with `kubectl config view --flatten --minify`").coded)
    return render_kubeconfig(name, cluster, user)


def _named(config: Mapping[str, Any], kind: str, name: object) -> Mapping[str, Any] | None:
    for item in config.get(f"{kind}s") or ():
        if isinstance(item, Mapping) and item.get("name") == name and isinstance(item.get(kind), Mapping):
            named_item: Mapping[str, Any] = item[kind]
            return named_item
    return None
