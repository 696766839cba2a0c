"""The API servers of a rehearsal's clusters, asked with Kubernetes' own client, which takes long to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, MaxRetryError

from kueue_fleet.rehearsal.jobs.kinds import JOB_KINDS, job_name
from kueue_fleet.rehearsal.paths import RehearsalError


class ClusterClients:
    """The API servers of a rehearsal's clusters, by name, through the contexts of its kubeconfig."""

    def __init__(self, kubeconfig: Path, clusters: Sequence[str]) -> None:
        self._apis = {name: client.CustomObjectsApi(_api_client(kubeconfig, name)) for name in clusters}

    @property
    def names(self) -> list[str]:
        """The clusters, in the order given."""
        return list(self._apis)

    def create(self, cluster: str, job: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Create JOB in its namespace (default: `default`); with `dry_run` only have it checked, webhooks included.

        Raises:
            RehearsalError: the API server or one of its webhooks refused it; its own words are in the text.
        """
        group, version, plural = JOB_KINDS[job["kind"]]
        namespace = job["metadata"].get("namespace", "default")
        try:
            created = self._apis[cluster].create_namespaced_custom_object(
                group, version, namespace, plural, dict(job),
                dry_run="All" if dry_run else None, field_validation="Strict",
            )  # fmt: skip
        except ApiException as refused:
            words = _api_message(refused)
            raise RehearsalError(f"{job['kind']} {namespace}/{job_name(job)}: {cluster} refused it: {words}") from None
        except HTTPError as failed:
            raise _no_answer(cluster, failed) from None
        return cast("dict[str, Any]", created)

    def list(self, cluster: str, group: str, version: str, plural: str) -> list[dict[str, Any]]:
        """All objects of a kind in all namespaces of CLUSTER.

        Raises:
            RehearsalError: the API server does not answer, or not with a list.
        """
        try:
            answer = cast("dict[str, Any]", self._apis[cluster].list_cluster_custom_object(group, version, plural))
        except ApiException as refused:
            raise RehearsalError(f"{cluster}: its {plural} cannot be listed: {_api_message(refused)}") from None
        except HTTPError as failed:
            raise _no_answer(cluster, failed) from None
        return list(answer["items"])


def _no_answer(cluster: str, failed: HTTPError) -> RehearsalError:
    reason = failed.reason if isinstance(failed, MaxRetryError) else failed
    return RehearsalError(f"{cluster}: its API server does not answer ({reason}); run it again")


def _api_client(kubeconfig: Path, context: str) -> client.ApiClient:
    made = config.new_client_from_config(str(kubeconfig), context=context)  # type: ignore[no-untyped-call]
    return cast("client.ApiClient", made)


def _api_message(refused: ApiException) -> str:
    body = yaml.safe_load(refused.body or "") if refused.body else None
    return str(body.get("message")) if isinstance(body, dict) else f"{refused.status} {refused.reason}"
