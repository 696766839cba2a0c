"""The kubeconfig of a GKE cluster, as plain data.

The kubeconfig of a MultiKueue manager, which does hold a token, is built in `kueue_fleet.kueue_components.credentials`.
"""

from collections.abc import Sequence
from typing import Any

from kueue_fleet.kube.new_kubeconfig import render_kubeconfig

PUBLIC_DOMAIN = ".gke.goog"
"""Domain of the control planes' DNS names."""


def server_ca(endpoint: str, ca_certificate: str) -> str | None:
    """The authority that signs the certificate shown at `endpoint`; None: one that every system trusts.

    A control plane's DNS name ends at Google's front end, whose certificate is a public one; the cluster's own
    authority would refuse it. Source: https://cloud.google.com/kubernetes-engine/docs/how-to/api-server-authentication.
    """
    host = endpoint.partition(":")[0]
    return None if host.endswith(PUBLIC_DOMAIN) else ca_certificate


def cluster_kubeconfig(name: str, endpoint: str, ca_certificate: str | None) -> dict[str, Any]:
    """A kubeconfig with one context, `name`, which is also current.

    `endpoint` is what GKE reports: a host, or host:port, without a scheme; `ca_certificate` is base64 PEM, or None for
    a server with a public certificate. Source:
    https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl.
    """
    authority = {} if ca_certificate is None else {"certificate-authority-data": ca_certificate}
    kubeconfig = render_kubeconfig(name, {"server": f"https://{endpoint}", **authority}, {"exec": _exec_credential()})
    return {**kubeconfig, "preferences": {}}


def merge_kubeconfigs(kubeconfigs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One kubeconfig with every context of `kubeconfigs`; the first one's context is current.

    Names are kept, so they must be unique, as cluster names of a fleet are.
    """
    merged_config: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for kubeconfig in kubeconfigs:
        for section in ("clusters", "users", "contexts"):
            merged_config[section].extend(kubeconfig[section])
    merged_config["current-context"] = kubeconfigs[0]["current-context"] if kubeconfigs else ""
    merged_config["preferences"] = {}
    return merged_config


def _exec_credential() -> dict[str, Any]:
    return {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "installHint": "Install gke-gcloud-auth-plugin: https://cloud.google.com/kubernetes-engine/docs/how-to/"
        "cluster-access-for-kubectl#install_plugin",
        "provideClusterInfo": True,
        "interactiveMode": "IfAvailable",
    }
