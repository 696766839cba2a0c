"""A worker whose kubeconfig another stack has, by the real Pulumi."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir
from tests.engines.plugin_lab import PluginLab, plugin_lab

MANAGER, WORKER = "manager-europe-west4", "worker-paris"
TOKEN = "credential-of-the-owner"
KUBECONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "paris", "cluster": {"server": "https://k8s.paris.example:6443"}}],
    "users": [{"name": "owner", "user": {"token": TOKEN}}],
    "contexts": [{"name": "paris", "context": {"cluster": "paris", "user": "owner"}}],
    "current-context": "paris",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PluginLab]:
    """Both stacks are up."""
    engines = build_engines(EngineCache(engines_dir()), names=["pulumi"])
    with plugin_lab(tmp_path_factory.mktemp("lab"), [engines.binary("pulumi")]) as result:
        folder = result.example("plain-cluster") / "program"
        for item in (folder / "cluster", folder):
            result.run("pulumi", "stack", "init", "dev", folder=item)
        secret = ("config", "set", "--secret", "kubeconfig", json.dumps(KUBECONFIG))
        result.run("pulumi", *secret, folder=folder / "cluster")
        up(result, folder / "cluster")
        up(result, folder)
        yield result


def up(lab: PluginLab, folder: Path) -> None:
    lab.run("pulumi", "up", "--stack", "dev", "--yes", "--skip-preview", "--non-interactive", folder=folder)


def test_the_manager_reaches_the_cluster_of_the_other_stack(lab: PluginLab) -> None:
    [secret] = [
        result
        for (cluster, kind, _, name), result in lab.world.objects.items()
        if (cluster, kind) == (MANAGER, "Secret") and WORKER in name
    ]
    config = json.loads(base64.b64decode(secret["data"]["kubeconfig"]))
    assert config["clusters"][0]["cluster"]["server"] == "https://k8s.paris.example:6443"
    assert config["users"][0]["user"]["token"] != TOKEN


def test_queues_are_on_it_too(lab: PluginLab) -> None:
    assert {cluster for cluster, kind, *_ in lab.world.objects if kind == "ClusterQueue"} == {MANAGER, WORKER}


def test_the_credential_is_in_clear_in_neither_state(lab: PluginLab) -> None:
    states = [file.read_text() for file in lab.folder.rglob(".pulumi/stacks/**/dev.json")]
    assert len(states) == 2
    assert not any(TOKEN in state for state in states)


def test_a_second_up_changes_nothing(lab: PluginLab) -> None:
    lab.world.operations.clear()
    up(lab, lab.folder / "examples" / "plain-cluster" / "program")
    assert lab.world.operations == []
