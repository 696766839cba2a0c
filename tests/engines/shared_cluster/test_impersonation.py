"""A kubeconfig that impersonates a member has the rights of that member, and of nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kueue_fleet.kube.client import KubeApi
from kueue_fleet.kube.command_client import CommandClient
from kueue_fleet.kube.requests import request
from one_cluster import OneCluster

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
MEMBER = "mia@example.com"
ADA = {
    "as": MEMBER,
    "as-uid": "u-1",
    "as-groups": ["trainers", "readers"],
    "as-user-extra": {"acme.com/Cost": ["a", "b"], "50%": ["c"]},
}


def kubeconfig(cluster: OneCluster, folder: Path, **user: Any) -> Path:
    """The administrator's kubeconfig, with these fields for its user."""
    config = yaml.safe_load((cluster.folder / "kubeconfig").read_text())
    [entry] = config["users"]
    entry["user"] |= user
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def review() -> dict[str, Any]:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}


def identity(answer: Any) -> Any:
    """Who a request was made by; groups besides those that every user has."""
    user = answer["status"]["userInfo"]
    groups = sorted(set(user["groups"]) - {"system:authenticated"})
    return user["username"], user.get("uid"), groups, user.get("extra")


WHO = (MEMBER, "u-1", ["readers", "trainers"], {"acme.com/cost": ["a", "b"], "50%": ["c"]})
"""The API server has the keys of extra fields in small letters."""


def test_commands_are_whom_the_kubeconfig_impersonates(bare_cluster: OneCluster, tmp_path: Path) -> None:
    client = CommandClient(kubeconfig(bare_cluster, tmp_path, **ADA))
    assert identity(request(client, "POST", REVIEWS, review())) == WHO


async def test_the_controllers_client_is_whom_the_kubeconfig_impersonates(
    bare_cluster: OneCluster, tmp_path: Path
) -> None:
    api = KubeApi(kubeconfig(bare_cluster, tmp_path, **ADA))
    try:
        assert identity(await api.create(REVIEWS, review())) == WHO
    finally:
        await api.close()
