"""Reads what a cluster outside GKE has, by questions alone: nothing is made there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.requests import READ_SECONDS, api_path, request
from kueue_fleet.preflight.plain_clusters import (
    ALL,
    KUEUE_DEFINITION,
    RELEASE_NAME,
    RELEASE_NAMESPACE,
    ClusterFacts,
    ClusterNeeds,
    ClusterPart,
    Right,
    rights,
)

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

    from kueue_fleet.kube.answers import Json

_SAYS: Final = "the API server says: "
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def read_cluster(needs: ClusterNeeds, client: ApiClient) -> ClusterFacts:
    """What the cluster has; where it does not answer, why not."""
    try:
        return _Reader(needs, client).facts()
    except ApiError as error:
        return ClusterFacts(wrong=f"{_SAYS}{error}" if error.status else str(error), fix=needs.fix)


class _Reader:
    def __init__(self, needs: ClusterNeeds, client: ApiClient) -> None:
        self._needs, self._client = needs, client
        self._unread: dict[ClusterPart, str] = {}

    def facts(self) -> ClusterFacts:
        """Raises ApiError if the server cannot be reached, or does not say its version."""
        version = str(_get(self._client, "/version").get("gitVersion", ""))
        served: dict[tuple[str, str], str] = {}
        release: str | None = None
        denied: list[Right] = []
        with self._reading("kinds of objects"):
            served = _served(self._client, self._needs)
        with self._reading("Kueue"):
            release = _release(self._client)
        with self._reading("rights"):
            if not _may(self._client, ALL):
                denied += (right for right in rights(self._needs, served) if not _may(self._client, right))
                if "kinds of objects" in self._unread:
                    self._unread["rights"] = self._unread["kinds of objects"]
        return ClusterFacts(
            version=version,
            kinds=frozenset(served),
            release=release,
            user=_user(self._client),
            denied=tuple(denied),
            unread=self._unread,
        )

    @contextmanager
    def _reading(self, part: ClusterPart) -> Iterator[None]:
        """Note what the server refuses within it as not read."""
        try:
            yield
        except ApiError as error:
            if not error.status:
                raise
            self._unread[part] = f"{_SAYS}{error}"


def _get(client: ApiClient, path: str) -> Json:
    return request(client, "GET", path, seconds=READ_SECONDS)


def _served(client: ApiClient, needs: ClusterNeeds) -> dict[tuple[str, str], str]:
    """The plurals of the kinds that are served, of those that are needed."""
    found = {}
    for version in dict.fromkeys(version for version, _ in needs.kinds):
        try:
            listed = _get(client, api_path(version))
        except ApiError as error:
            if not error.is_not_found:
                raise
            continue
        for item in listed.get("resources") or ():
            if (version, item["kind"]) in needs.kinds and "/" not in item["name"]:
                found[version, item["kind"]] = str(item["name"])
    return found


def _release(client: ApiClient) -> str | None:
    try:
        metadata = _get(client, f"{_DEFINITIONS}/{KUEUE_DEFINITION}")["metadata"]
    except ApiError as error:
        if not error.is_not_found:
            raise
        return None
    annotations = metadata.get("annotations") or {}
    name = annotations.get(RELEASE_NAME)
    return f"{annotations.get(RELEASE_NAMESPACE)}/{name}" if name else ""


def _may(client: ApiClient, right: Right) -> bool:
    attributes = {"verb": "*", "group": right.group, "resource": right.resource}
    answer = request(client, "POST", _REVIEWS, {"spec": {"resourceAttributes": attributes}}, seconds=READ_SECONDS)
    return bool((answer.get("status") or {}).get("allowed"))


def _user(client: ApiClient) -> str:
    """Kubernetes says so since 1.28."""
    try:
        answer = request(client, "POST", _WHO, {}, seconds=READ_SECONDS)
    except ApiError:
        return ""
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username", ""))
