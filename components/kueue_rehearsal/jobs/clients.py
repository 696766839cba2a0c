"""The API servers of a rehearsal's clusters, asked with Kubernetes' own client, which takes long to import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from kubernetes import config

from kueue_fleet.kube.answers import APPLY_PATCH, MERGE_PATCH, AcceptedRefusals, ApiError, Json
from kueue_fleet.kube.lists import list_of
from kueue_fleet.kube.requests import api_path, request
from kueue_rehearsal.jobs.kinds import JOB_KINDS, USED_KINDS, job_name
from kueue_rehearsal.paths import RehearsalError

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
        """Create what jobs use, or make it what DOCUMENT says.

        Raises:
            RehearsalError: the API server refused it; its own words are in the text.
        """
        path = f"{_path(*USED_KINDS[document['kind']], document)}/{document['metadata']['name']}"
        return self._write(cluster, document, "PATCH", path, {"fieldManager": "kueue-fleet-rehearse", "force": "true"})

    def merge(self, cluster: str, path: str, change: Json) -> None:
        """Change fields of what is at PATH of the API: a merge patch.

        Raises:
            RehearsalError: the API server refused it.
        """
        with _refusals(cluster, f"{path}: {cluster} refused it"):
            request(self._clients[cluster], "PATCH", path, change, {}, MERGE_PATCH)

    def delete(self, cluster: str, job: Mapping[str, Any]) -> None:
        """Delete a job that was created, and what it made; it may be gone.

        Raises:
            RehearsalError: the API server refused it.
        """
        self._ask_about(cluster, "DELETE", job, "does not delete it", dict(_BACKGROUND))

    def has(self, cluster: str, job: Mapping[str, Any]) -> bool:
        """Whether a job that was created is there.

        Raises:
            RehearsalError: the API server does not answer.
        """
        return self._ask_about(cluster, "GET", job, "does not show it")

    def _ask_about(
        self, cluster: str, method: str, job: Mapping[str, Any], refusal: str, body: Json | None = None
    ) -> bool:
        """Whether the job that the request is about was there."""
        with _refusals(cluster, f"{job_name(job)}: {cluster} {refusal}"), AcceptedRefusals(HTTPStatus.NOT_FOUND):
            request(self._clients[cluster], method, _path_of(job), body)
            return True
        return False

    def _write(self, cluster: str, body: Mapping[str, Any], method: str, path: str, params: Mapping[str, str]) -> Json:
        content = APPLY_PATCH if method == "PATCH" else "application/json"
        params = {**params, "fieldValidation": "Strict"}
        with _refusals(cluster, f"{body['kind']} {_namespace(body)}/{job_name(body)}: {cluster} refused it"):
            return request(self._clients[cluster], method, path, dict(body), params, content)

    def list(self, cluster: str, group: str, version: str, plural: str) -> list[Json]:
        """All objects of a kind in all namespaces of CLUSTER; the core's group is "".

        Raises:
            RehearsalError: the API server does not answer, or not with a list.
        """
        with _refusals(cluster, f"{cluster}: its {plural} cannot be listed"):
            return list_of(request(self._clients[cluster], "GET", f"{_api(group, version)}/{plural}"))


def _path_of(job: Mapping[str, Any]) -> str:
    kind = JOB_KINDS[job["kind"]]
    return f"{_path(kind.group, kind.version, kind.plural, job)}/{job_name(job)}"


def _api(group: str, version: str) -> str:
    return api_path(f"{group}/{version}" if group else version)


def _path(group: str, version: str, plural: str, body: Mapping[str, Any]) -> str:
    return f"{_api(group, version)}/namespaces/{_namespace(body)}/{plural}"


def _namespace(body: Mapping[str, Any]) -> str:
    return str(body["metadata"].get("namespace") or "default")


@contextmanager
def _refusals(cluster: str, what: str) -> Iterator[None]:
    """Raises RehearsalError, which begins with `what`, where a request in this block is refused or not answered."""
    try:
        yield
    except ApiError as error:
        if not error.status:
            raise RehearsalError(f"{cluster}: its API server does not answer ({error}); run it again") from None
        raise RehearsalError(f"{what}: {error.message or error}") from None
