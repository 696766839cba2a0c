"""The API servers of a rehearsal's clusters, asked with Kubernetes' own client, which takes long to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kubernetes import config

from kueue_fleet.kube.answers import APPLY_PATCH, ApiError, Json
from kueue_fleet.kube.requests import request
from kueue_fleet.rehearsal.jobs.kinds import JOB_KINDS, USED_KINDS, job_name
from kueue_fleet.rehearsal.paths import RehearsalError


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

    def create(self, cluster: str, job: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        """Create JOB in its namespace (default: `default`); with `dry_run` only have it checked, webhooks included.

        Raises:
            RehearsalError: the API server or one of its webhooks refused it; its own words are in the text.
        """
        group, version, plural = JOB_KINDS[job["kind"]]
        return self._write(cluster, "POST", f"/apis/{group}/{version}", plural, job, dry_run, {})

    def apply(self, cluster: str, used: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        """Create what jobs use, or make it what USED says; with `dry_run` only have it checked.

        Raises:
            RehearsalError: the API server refused it; its own words are in the text.
        """
        _, version, plural = USED_KINDS[used["kind"]]
        place = f"{plural}/{used['metadata']['name']}"
        params = {"fieldManager": "kueue-fleet-rehearse", "force": "true"}
        return self._write(cluster, "PATCH", f"/api/{version}", place, used, dry_run, params, APPLY_PATCH)

    def _write(
        self,
        cluster: str,
        method: str,
        api: str,
        place: str,
        body: Mapping[str, Any],
        dry_run: bool,
        params: Mapping[str, str],
        content: str = "application/json",
    ) -> Json:
        namespace = body["metadata"].get("namespace", "default")
        path = f"{api}/namespaces/{namespace}/{place}"
        params = {**params, "fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        try:
            return request(self._clients[cluster], method, path, dict(body), params, content)
        except ApiError as error:
            what = f"{body['kind']} {namespace}/{job_name(body)}: {cluster} refused it"
            raise _failure(cluster, what, error) from None

    def list(self, cluster: str, group: str, version: str, plural: str) -> list[Json]:
        """All objects of a kind in all namespaces of CLUSTER; the core's group is "".

        Raises:
            RehearsalError: the API server does not answer, or not with a list.
        """
        path = f"/apis/{group}/{version}/{plural}" if group else f"/api/{version}/{plural}"
        try:
            return list(request(self._clients[cluster], "GET", path)["items"])
        except ApiError as error:
            raise _failure(cluster, f"{cluster}: its {plural} cannot be listed", error) from None


def _failure(cluster: str, what: str, error: ApiError) -> RehearsalError:
    if not error.status:
        return RehearsalError(f"{cluster}: its API server does not answer ({error}); run it again")
    return RehearsalError(f"{what}: {error.message or error}")
