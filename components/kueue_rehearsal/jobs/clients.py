"""The API servers of a rehearsal's clusters, asked with Kubernetes' own client, which takes long to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubernetes import config

from kueue_fleet.kube.answers import APPLY_PATCH, ApiError, Json
from kueue_fleet.kube.lists import list_of
from kueue_fleet.kube.requests import api_path, request
from kueue_rehearsal.jobs.kinds import JOB_KINDS, USED_KINDS, job_name
from kueue_rehearsal.paths import RehearsalError

_NOT_FOUND: Final = 404
_BACKGROUND: Final = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}


@dataclass(frozen=True, slots=True)
class AdministratorAccess:
    """An API server, and what an administrator asks it with."""

    server: str
    """Its address."""
    ca_file: Path
    token: str = field(repr=False)


class ClusterClients:
    """The API servers of a rehearsal's clusters, by name, through the contexts of its kubeconfig."""

    def __init__(self, kubeconfig: Path, clusters: Sequence[str]) -> None:
        self._clients: dict[str, Any] = {
            name: config.new_client_from_config(str(kubeconfig), context=name)  # type: ignore[no-untyped-call]
            for name in clusters
        }

    @property
    def names(self) -> list[str]:
        """The clusters, in the order given."""
        return list(self._clients)

    def client(self, cluster: str) -> Any:
        """The client of an API server."""
        return self._clients[cluster]

    def server(self, cluster: str) -> AdministratorAccess:
        """Where the API server of CLUSTER is, and how it is asked."""
        configuration = self._clients[cluster].configuration
        token = configuration.auth_settings()["BearerToken"]["value"].removeprefix("Bearer ")
        return AdministratorAccess(configuration.host, Path(configuration.ssl_ca_cert), token)

    def create(self, cluster: str, job: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        """Create JOB in its namespace (default: `default`); with `dry_run` only have it checked, webhooks included.

        Raises:
            RehearsalError: the API server or one of its webhooks refused it; its own words are in the text.
        """
        kind = JOB_KINDS[job["kind"]]
        params = {"dryRun": "All"} if dry_run else {}
        return self._write(cluster, job, "POST", _path(kind.group, kind.version, kind.plural, job), params)

    def apply(self, cluster: str, document: Mapping[str, Any]) -> Json:
        """Create what jobs use, or make it what USED says.

        Raises:
            RehearsalError: the API server refused it; its own words are in the text.
        """
        path = f"{_path(*USED_KINDS[document['kind']], document)}/{document['metadata']['name']}"
        return self._write(cluster, document, "PATCH", path, {"fieldManager": "kueue-fleet-rehearse", "force": "true"})

    def annotate(self, cluster: str, path: str, annotations: Mapping[str, str]) -> None:
        """Add annotations to what is at PATH of the API.

        Raises:
            RehearsalError: the API server refused it.
        """
        self.merge(cluster, path, {"metadata": {"annotations": dict(annotations)}})

    def merge(self, cluster: str, path: str, change: Json) -> None:
        """Change fields of what is at PATH of the API: a merge patch.

        Raises:
            RehearsalError: the API server refused it.
        """
        try:
            request(self._clients[cluster], "PATCH", path, change, {}, "application/merge-patch+json")
        except ApiError as error:
            raise _failure(cluster, f"{path}: {cluster} refused it", error) from None

    def delete(self, cluster: str, job: Mapping[str, Any]) -> None:
        """Delete a job that was created, and what it made; it may be gone.

        Raises:
            RehearsalError: the API server refused it.
        """
        try:
            request(self._clients[cluster], "DELETE", _path_of(job), dict(_BACKGROUND))
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise _failure(cluster, f"{job_name(job)}: {cluster} does not delete it", error) from None

    def has(self, cluster: str, job: Mapping[str, Any]) -> bool:
        """Whether a job that was created is there.

        Raises:
            RehearsalError: the API server does not answer.
        """
        try:
            request(self._clients[cluster], "GET", _path_of(job))
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return False
            raise _failure(cluster, f"{job_name(job)}: {cluster} does not show it", error) from None
        return True

    def _write(self, cluster: str, body: Mapping[str, Any], method: str, path: str, params: Mapping[str, str]) -> Json:
        content = APPLY_PATCH if method == "PATCH" else "application/json"
        params = {**params, "fieldValidation": "Strict"}
        try:
            return request(self._clients[cluster], method, path, dict(body), params, content)
        except ApiError as error:
            what = f"{body['kind']} {_namespace(body)}/{job_name(body)}: {cluster} refused it"
            raise _failure(cluster, what, error) from None

    def list(self, cluster: str, group: str, version: str, plural: str) -> list[Json]:
        """All objects of a kind in all namespaces of CLUSTER; the core's group is "".

        Raises:
            RehearsalError: the API server does not answer, or not with a list.
        """
        try:
            return list_of(request(self._clients[cluster], "GET", f"{_api(group, version)}/{plural}"))
        except ApiError as error:
            raise _failure(cluster, f"{cluster}: its {plural} cannot be listed", error) from None


def _path_of(job: Mapping[str, Any]) -> str:
    kind = JOB_KINDS[job["kind"]]
    return f"{_path(kind.group, kind.version, kind.plural, job)}/{job_name(job)}"


def _api(group: str, version: str) -> str:
    return api_path(f"{group}/{version}" if group else version)


def _path(group: str, version: str, plural: str, body: Mapping[str, Any]) -> str:
    return f"{_api(group, version)}/namespaces/{_namespace(body)}/{plural}"


def _namespace(body: Mapping[str, Any]) -> str:
    return str(body["metadata"].get("namespace") or "default")


def _failure(cluster: str, what: str, error: ApiError) -> RehearsalError:
    if not error.status:
        return RehearsalError(f"{cluster}: its API server does not answer ({error}); run it again")
    return RehearsalError(f"{what}: {error.message or error}")
