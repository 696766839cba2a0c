"""Reads for `import` what a cluster has of a fleet, through the context of its name: what the command's help dumps.

Secrets are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kueue_admission.api.resources import DEPLOYMENT
from kueue_admission.cli import console
from kueue_admission.kernel.names import KUEUE_GROUP
from kueue_fleet.cli.contexts import connect
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.lists import list_of
from kueue_fleet.kube.requests import READ_SECONDS, api_path, request
from kueue_fleet.objects.monitoring import DASHBOARD_NAME
from kueue_fleet.settings.tokens import CONTROLLER_NAME

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        *("namespaces", "serviceaccounts", "resourcequotas", "limitranges"),
        *("persistentvolumes", "persistentvolumeclaims", "nodes"),
    ),
    KUEUE_GROUP: (
        *("resourceflavors", "topologies", "cohorts", "clusterqueues", "localqueues", "admissionchecks"),
        *("provisioningrequestconfigs", "multikueueclusters", "multikueueconfigs", "workloadpriorityclasses"),
    ),
    "scheduling.k8s.io": ("priorityclasses",),
    "rbac.authorization.k8s.io": ("roles", "rolebindings"),
    "admissionregistration.k8s.io": ("validatingadmissionpolicies",),
    "resource.k8s.io": ("resourceclaimtemplates",),
    "monitoring.coreos.com": ("podmonitors",),
    "monitoring.googleapis.com": ("podmonitorings",),
    "cloud.google.com": ("computeclasses",),
}
"""What is read whole, by API group, in the version that the server prefers, as far as it is served."""
_BY_NAME: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("v1", "ConfigMap"): ("kueue-manager-config", CONTROLLER_NAME, DASHBOARD_NAME),
    ("apps/v1", "Deployment"): (DEPLOYMENT, CONTROLLER_NAME),
}
"""What is read by its names in all namespaces."""
_PAGE: Final = 500


def read_live(cluster: str, kubeconfig: Path | None = None) -> list[Mapping[str, Any]]:
    """The objects of a cluster. Raises CommandError: there is no context of its name, or it does not answer."""
    client = connect("import", cluster, kubeconfig)
    try:
        return list(_objects(client))
    except ApiError as error:
        raise console.CommandError(
            f"{cluster}: the API server says: {error}; give a context that may list all of it, or CLUSTER=PATH"
            if error.status
            else f"{cluster}: {error}"
        ) from None


def _objects(client: ApiClient) -> Iterator[Json]:
    for group, plurals in _KINDS.items():
        version = _preferred(client, group) if group else "v1"
        if version is None:
            continue
        path = api_path(version)
        served = {item["name"]: item["kind"] for item in _get(client, path).get("resources") or ()}
        for plural in plurals:
            if plural in served:
                yield from _list(client, f"{path}/{plural}", version, served[plural])
    for (version, kind), names in _BY_NAME.items():
        for name in names:
            yield from _list(client, f"{api_path(version)}/{kind.lower()}s", version, kind, f"metadata.name={name}")


def _preferred(client: ApiClient, group: str) -> str | None:
    """The group's version, as objects have it; None: the group is not served."""
    try:
        return str(_get(client, f"/apis/{group}")["preferredVersion"]["groupVersion"])
    except ApiError as error:
        if error.is_not_found:
            return None
        raise


def _list(client: ApiClient, path: str, version: str, kind: str, field: str = "") -> Iterator[Json]:
    """All objects of a kind; those of a list do not say themselves what they are."""
    token = ""
    while True:
        params = {"limit": str(_PAGE), **({"continue": token} if token else {})}
        params |= {"fieldSelector": field} if field else {}
        answer = _get(client, path, params)
        yield from ({**item, "apiVersion": version, "kind": kind} for item in list_of(answer))
        token = str((answer.get("metadata") or {}).get("continue") or "")
        if not token:
            return


def _get(client: ApiClient, path: str, params: Mapping[str, str] | None = None) -> Json:
    return request(client, "GET", path, params=params, seconds=READ_SECONDS)
