"""How the manager reaches a worker: a kubeconfig with the token of an account there, or with an exec plugin.

The token never leaves secret outputs: not in names, not in errors, not in what is printed.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pulumi

from kueue_admission.api.manifests import TOKEN_SECRET_TYPE, manifest
from kueue_admission.kernel import Problem, SpecError
from kueue_admission.kernel.arguments import shown
from kueue_admission.kernel.base import DnsLabel, DnsSubdomain
from kueue_admission.kernel.form_rules import NEEDED
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.component import is_judged, judge, today
from kueue_fleet.fleet_file import ServiceAccountToken
from kueue_fleet.fleet_file.check.dates import check_rotation
from kueue_fleet.fleet_file.model import addresses
from kueue_fleet.fleet_file.model.addresses import CaCertificate, Endpoint
from kueue_fleet.fleet_file.model.gcp_names import GoogleServiceAccountAddress
from kueue_fleet.fleet_file.model.kueue_installation import JOBSET_FRAMEWORK, PLUGIN, exec_config
from kueue_fleet.fleet_file.model.operators import framework_problems
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.google.answers import IN_A_TEST
from kueue_fleet.kube.new_kubeconfig import render_kubeconfig
from kueue_fleet.kueue_components.applied_objects import KubernetesObject
from kueue_fleet.kueue_components.component import (
    Component,
    OrderedObjects,
    WholeManifest,
    declare_object,
    object_labels,
)
from kueue_fleet.objects.access import google_access, token_access
from kueue_fleet.objects.cluster_profiles import PLUGIN_VOLUME
from kueue_fleet.objects.parts import ACCOUNT_KINDS, PARTS
from kueue_fleet.settings.tokens import KUBECONFIG_KEY

_USER = "multikueue-manager"
_TOKEN_IS_THERE = "jsonpath={.data.token}"  # noqa: S105 - a path, not a token


def token_kubeconfig(
    cluster_name: str,
    endpoint: str,
    ca_certificate: str | None,
    token: str,
    tls_server_name: str | None = None,
    proxy_url: str | None = None,
) -> dict[str, Any]:
    """A kubeconfig with `token` that verifies the server against `ca_certificate` (base64 PEM).

    None: the server's certificate is signed by an authority that every system trusts.

    Kueue refuses kubeconfigs that skip verification, name files or run commands. Source: kueue@v0.19.2
    pkg/controller/admissionchecks/multikueue/multikueuecluster.go (validateKubeconfig).
    """
    server = _server(endpoint, ca_certificate, tls_server_name, proxy_url)
    return render_kubeconfig(cluster_name, server, {"token": token}, user_name=_USER)


def plugin_kubeconfig(
    cluster_name: str,
    endpoint: str,
    ca_certificate: str | None,
    tls_server_name: str | None = None,
    proxy_url: str | None = None,
) -> dict[str, Any]:
    """A kubeconfig whose tokens the plugin in the folder beside the kubeconfig's gives."""
    server = _server(endpoint, ca_certificate, tls_server_name, proxy_url)
    user = {"exec": exec_config(f"../{PLUGIN_VOLUME}/{PLUGIN}")}
    return render_kubeconfig(cluster_name, server, user, user_name=_USER)


def _server(
    endpoint: str, ca_certificate: str | None, tls_server_name: str | None, proxy_url: str | None
) -> dict[str, str]:
    """The server as a kubeconfig has it."""
    beside = {
        "certificate-authority-data": ca_certificate,
        "tls-server-name": tls_server_name,
        "proxy-url": proxy_url,
    }
    return {"server": f"https://{endpoint}", **{key: value for key, value in beside.items() if value is not None}}


@dataclass(frozen=True)
class WorkerGrant:
    """What a worker grants to the manager, as `WorkerAccess` gives it out."""

    kubeconfig: pulumi.Input[str]
    """Kubeconfig of the account, JSON; secret with a token."""
    rotation: DnsLabel | None = None
    """Serial of its token; None: a plugin gives the credentials, and the manager has a ClusterProfile."""


shown(WorkerGrant.__init__)


class WorkerAccess(Component):
    """What a worker grants to the manager: ServiceAccount, ClusterRole, binding, and a token of the account."""

    takes = ACCOUNT_KINDS

    kubeconfig: pulumi.Output[str]
    """Kubeconfig of the account, JSON; secret with a token."""
    rotation: str | None
    """Serial of its token; None: there is none, or `objects` were given."""

    def __init__(
        self,
        name: str,
        objects: Sequence[WholeManifest] | None = None,
        *,
        cluster_name: DnsSubdomain,
        endpoint: pulumi.Input[Endpoint],
        ca_certificate: pulumi.Input[CaCertificate | None],
        credentials: ServiceAccountToken | None = None,
        google_account: "pulumi.Input[GoogleServiceAccountAddress] | None" = None,
        namespaces: Sequence[DnsLabel] = (),
        frameworks: Sequence[str] = ("batch/job", JOBSET_FRAMEWORK),
        kueue_namespace: DnsLabel = "kueue-system",
        own_authority: bool = False,
        tls_server_name: "pulumi.Input[DnsSubdomain | None]" = None,
        proxy_url: "pulumi.Input[str | None]" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the grant.

        `endpoint` is the address of the worker's API server without a scheme, as the manager reaches it;
        `ca_certificate` is base64 PEM, or None where the server's certificate is a public one. `credentials` make a
        token of an account on the worker, or `google_account` is the address of the account that the manager acts as,
        whose credentials a plugin gives. It may write in `namespaces`, where jobs are, the kinds of `frameworks`, those
        of the manager's Kueue. A new rotation serial renames the token Secret: the new token is there, and with the
        manager, before the old one goes. `kueue_namespace` is where the account is. With `own_authority` and no
        `ca_certificate`, the certificate is signed by the cluster's own authority, which is beside the token;
        `tls_server_name` is the name in it, by default the endpoint's host; `proxy_url` is the proxy through which the
        manager connects, by default none.

        A fleet gives its `objects` instead, what `objects.render_worker_access` returns for the worker.

        Raises:
            SpecError: not one of the three says who gets access, Kueue has no such framework, the token would never
                be renewed, or `objects` has several Secrets for a service account's token.
        """
        if [objects, credentials, google_account].count(None) != 2:
            wrong = "credentials, google_account and objects say who gets access"
            raise SpecError([COMPONENT.at(f"WorkerAccess {name}", wrong, "give exactly one of them")])
        where = f"WorkerAccess {name}"
        if credentials is not None and credentials.rotate_by is None:
            wrong, fix = "is missing, but no controller renews the token", "add the day by which to renew it"
            raise SpecError([NEEDED.at(f"{where}.credentials.rotateBy", wrong, fix)])
        due = credentials.rotate_by if credentials else None
        judge(
            (
                *self._others(f"{name}.objects", objects or ()),
                *_without_namespaces(where, namespaces or objects),
                *framework_problems(f"{where}.frameworks", frameworks),
                *(check_rotation(f"{where}.credentials.rotateBy", due, today()) if due else ()),
            ),
            opts,
        )
        authority = pulumi.Output.from_input(ca_certificate)
        if not is_judged(opts):
            authority = authority.apply(partial(_known_authority, where))
        self.rotation = credentials.rotation if credentials else None
        self._cluster_name = cluster_name
        if credentials is not None:
            objects = token_access(credentials, kueue_namespace, namespaces, frameworks)
        elif objects is None:
            objects = google_access(google_account, namespaces, frameworks)
        super().__init__(name, opts)
        grants = [item for item in objects if item["kind"] != "Secret"]
        secrets = [item for item in objects if item["kind"] == "Secret"]
        if len(secrets) > 1 or any(secret.get("type") != TOKEN_SECRET_TYPE for secret in secrets):
            wrong = f"{len(secrets)} Secrets were given"
            raise SpecError([COMPONENT.at(f"{where}.objects", wrong, f"give one of type {TOKEN_SECRET_TYPE}, or none")])
        declared_objects: list[KubernetesObject] = []
        for label, item in zip(object_labels(grants), grants, strict=True):
            declared_objects.append(declare_object(self, f"{name}/{label}", item, depends_on=declared_objects[-1:]))
        if not secrets:
            self.kubeconfig = pulumi.Output.all(endpoint, authority, tls_server_name, proxy_url).apply(
                lambda parts: json.dumps(plugin_kubeconfig(cluster_name, *parts), sort_keys=True)
            )
            self._give_out()
            return
        secret = declare_object(
            self, f"{name}/token", secrets[0], depends_on=declared_objects, wait_for=_TOKEN_IS_THERE
        )
        data = secret.output("data")
        token = data.apply(lambda data: _token(cluster_name, data))
        if own_authority:
            beside = pulumi.Output.unsecret(data.apply(lambda data: (data or {}).get("ca.crt")))
            authority = pulumi.Output.all(authority, beside).apply(lambda parts: parts[0] or parts[1])
        self.kubeconfig = pulumi.Output.secret(
            pulumi.Output.all(endpoint, authority, token, tls_server_name, proxy_url).apply(
                lambda parts: json.dumps(token_kubeconfig(cluster_name, *parts), sort_keys=True)
            )
        )
        # The token is in the state of its Secret.
        self._give_out("kubeconfig")


class ClusterProfiles(OrderedObjects):
    """The definition of ClusterProfiles."""

    part = PARTS["cluster-profiles"]


class KueuePlugin(Component):
    """The plugin in Kueue's pods on the manager, and the Google account that they act as."""

    def __init__(self, name: str, patches: Sequence[Manifest], *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the patches; they are what `objects.cluster_profiles.kueue_patches` returns."""
        super().__init__(name, opts)
        resources: list[pulumi.Resource] = []
        for patch in patches:
            resources = [declare_object(self, f"{name}/{patch['kind']}", patch, depends_on=resources, patch=True)]
        self._give_out()


def kubeconfig_secret(
    parent: Component,
    name: str,
    secret: str,
    namespace: str,
    kubeconfig: pulumi.Input[str],
    *,
    depends_on: Sequence[pulumi.Resource] = (),
) -> KubernetesObject:
    """The Secret on the manager that holds a worker's kubeconfig.

    `kubeconfig` is what is in it at first: its token is renewed there, so later changes of it are left alone. To begin
    again, give the Secret a new name.
    """
    encoded_config = pulumi.Output.secret(kubeconfig).apply(lambda text: base64.b64encode(text.encode()).decode())
    return declare_object(
        parent,
        name,
        manifest("v1", "Secret", secret, namespace, type="Opaque", data={KUBECONFIG_KEY: encoded_config}),
        depends_on=depends_on,
        ignore_changes=["data"],
    )


def _without_namespaces(where: str, given: Sequence[object] | None) -> Iterator[Problem]:
    if not given:
        wrong = "has no effect on jobs, since the manager may make them in no namespace"
        yield NO_EFFECT.at(where, wrong, "give namespaces=[...]")


def _known_authority(where: str, text: str | None) -> str | None:
    """TEXT, which is what kubeconfigs have, or None. Raises RunError, from within Pulumi."""
    if text is not None and (fault := addresses.ca_certificate(text)):
        raise pulumi.RunError(fault.rule.at(f"{where}.ca_certificate", fault.wrong, fault.fix).coded)
    return text


def _token(cluster_name: str, data: Mapping[str, str] | None) -> str:
    encoded_token = (data or {}).get("token")
    if not encoded_token:
        raise RuntimeError(
            f"worker {cluster_name}: Kubernetes has put no token into the account's Secret; look at the ServiceAccount "
            f"with kubectl describe, then run pulumi up again; {IN_A_TEST}"
        )
    return base64.b64decode(encoded_token).decode()
