"""How the manager reaches a worker: a kubeconfig with the token of an account there, or with an exec plugin.

The token never leaves secret outputs: not in names, not in errors, not in what is printed.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from kueue_admission.api import Manifest
from kueue_admission.api.manifests import TOKEN_SECRET_TYPE, manifest
from kueue_fleet.fleet_file.model.kueue_installation import PLUGIN, exec_config
from kueue_fleet.fleet_file.worker_tokens import KUBECONFIG_KEY
from kueue_fleet.kube.kubeconfig import render_kubeconfig
from kueue_fleet.kueue.applied_objects import KubernetesObject
from kueue_fleet.kueue.component import Component, OrderedObjects, declare_object, object_labels
from kueue_fleet.objects.cluster_profiles import PLUGIN_VOLUME

_TOKEN_IS_THERE = "jsonpath={.data.token}"  # noqa: S105 - a path, not a token


def token_kubeconfig(cluster_name: str, endpoint: str, ca_certificate: str | None, token: str) -> dict[str, Any]:
    """A kubeconfig with `token` that verifies the server against `ca_certificate` (base64 PEM).

    None: the server's certificate is signed by an authority that every system trusts.

    Kueue refuses kubeconfigs that skip verification, name files or run commands. Source: kueue@v0.19.2
    pkg/controller/admissionchecks/multikueue/multikueuecluster.go (validateKubeconfig).
    """
    return _kubeconfig(cluster_name, endpoint, ca_certificate, {"token": token})


def plugin_kubeconfig(cluster_name: str, endpoint: str, ca_certificate: str | None) -> dict[str, Any]:
    """A kubeconfig whose tokens the plugin in the folder beside the kubeconfig's gives."""
    return _kubeconfig(cluster_name, endpoint, ca_certificate, {"exec": exec_config(f"../{PLUGIN_VOLUME}/{PLUGIN}")})


def _kubeconfig(name: str, endpoint: str, ca_certificate: str | None, user: Mapping[str, Any]) -> dict[str, Any]:
    authority = {} if ca_certificate is None else {"certificate-authority-data": ca_certificate}
    cluster = {"server": f"https://{endpoint}", **authority}
    return render_kubeconfig(name, cluster, user, user_name="multikueue-manager")


class WorkerAccess(Component):
    """What a worker grants to the manager: ServiceAccount, ClusterRole, binding, and a token of the account."""

    pulumi_type = "kueue-fleet:index:WorkerAccess"

    kubeconfig: pulumi.Output[str]
    """Kubeconfig of the account, JSON; secret with a token."""

    def __init__(
        self,
        name: str,
        objects: Sequence[Manifest],
        *,
        cluster_name: str,
        endpoint: pulumi.Input[str],
        ca_certificate: pulumi.Input[str | None],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the grant.

        `objects` are what `objects.render_worker_access` returns for the worker; `endpoint` is the address of its API
        server without a scheme, as the manager reaches it; `ca_certificate` is base64 PEM, or None where the
        server's certificate is a public one. Without a token Secret among the objects, they grant rights to a Google
        account, whose credentials a plugin gives. A new rotation serial renames the token Secret: the new token is
        there, and with the manager, before the old one goes.

        Raises:
            ValueError: `objects` has several Secrets for a service account's token.
        """
        super().__init__(name, opts)
        grants = [each for each in objects if each["kind"] != "Secret"]
        secrets = [each for each in objects if each.get("type") == TOKEN_SECRET_TYPE]
        if len(secrets) > 1:
            raise ValueError(f"worker {cluster_name}: {len(secrets)} token Secrets were given; give one, or none")
        declared: list[KubernetesObject] = []
        for label, each in zip(object_labels(grants), grants, strict=True):
            declared.append(declare_object(self, f"{name}/{label}", each, depends_on=declared[-1:]))
        if not secrets:
            self.kubeconfig = pulumi.Output.all(endpoint, ca_certificate).apply(
                lambda parts: json.dumps(plugin_kubeconfig(cluster_name, *parts), sort_keys=True)
            )
            self.register_outputs({})
            return
        secret = declare_object(self, f"{name}/token", secrets[0], depends_on=declared, wait_for=_TOKEN_IS_THERE)
        token = secret.output("data").apply(lambda data: _token(cluster_name, data))
        self.kubeconfig = pulumi.Output.secret(
            pulumi.Output.all(endpoint, ca_certificate, token).apply(
                lambda parts: json.dumps(token_kubeconfig(cluster_name, *parts), sort_keys=True)
            )
        )
        self.register_outputs({})


class ClusterProfiles(OrderedObjects):
    """The definition of ClusterProfiles."""

    pulumi_type = "kueue-fleet:index:ClusterProfiles"


class KueuePlugin(Component):
    """The plugin in Kueue's pods on the manager, and the Google account that they act as."""

    pulumi_type = "kueue-fleet:index:KueuePlugin"

    def __init__(self, name: str, patches: Sequence[Manifest], *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the patches; they are what `objects.cluster_profiles.kueue_patches` returns."""
        super().__init__(name, opts)
        made: list[pulumi.Resource] = []
        for each in patches:
            made = [declare_object(self, f"{name}/{each['kind']}", each, depends_on=made, patch=True)]
        self.register_outputs({})


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
    encoded = pulumi.Output.secret(kubeconfig).apply(lambda text: base64.b64encode(text.encode()).decode())
    return declare_object(
        parent,
        name,
        manifest("v1", "Secret", secret, namespace, type="Opaque", data={KUBECONFIG_KEY: encoded}),
        depends_on=depends_on,
        ignore_changes=["data"],
    )


def _token(cluster_name: str, data: Mapping[str, str] | None) -> str:
    encoded = (data or {}).get("token")
    if not encoded:
        raise RuntimeError(
            f"worker {cluster_name}: Kubernetes has put no token into the account's Secret; look at the ServiceAccount "
            "with kubectl describe, then run pulumi up again"
        )
    return base64.b64decode(encoded).decode()
