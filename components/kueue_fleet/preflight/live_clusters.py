"""Reads what a cluster outside GKE has, by questions alone: nothing is made there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.requests import READ_SECONDS, request
from kueue_fleet.preflight.plain_clusters import (
    ALL,
    KUEUE_DEFINITION,
    RELEASE_NAME,
    RELEASE_NAMESPACE,
    ClusterFacts,
    ClusterNeeds,
    Right,
    rights,
)

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

    from kueue_fleet.kube.answers import Json

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def read_cluster(needs: ClusterNeeds, client: ApiClient) -> ClusterFacts:
    """What the cluster has; where it does not answer, why not."""
    try:
        version = str(_get(client, "/version").get("gitVersion", ""))
        served = _served(client, needs)
        wanted = (ALL,) if _may(client, ALL) else rights(needs, served)
        return ClusterFacts(
            version=version,
            kinds=frozenset(served),
            release=_release(client),
            user=_user(client),
            denied=tuple(right for right in wanted if right != ALL and not _may(client, right)),
        )
    except ApiError as error:
        return ClusterFacts(wrong=f"the API server says: {error}" if error.status else str(error), fix=needs.fix)


def _get(client: ApiClient, path: str) -> Json:
    return request(client, "GET", path, seconds=READ_SECONDS)


def _served(client: ApiClient, needs: ClusterNeeds) -> dict[tuple[str, str], str]:
    """The plurals of the kinds that are served, of those that are needed."""
    found = {}
    for version in dict.fromkeys(version for version, _ in needs.kinds):
        try:
            listed = _get(client, f"/apis/{version}" if "/" in version else f"/api/{version}")
        except ApiError as error:
            if not error.is_not_found:
                raise
            continue
        for each in listed.get("resources") or ():
            if (version, each["kind"]) in needs.kinds and "/" not in each["name"]:
                found[version, each["kind"]] = str(each["name"])
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
