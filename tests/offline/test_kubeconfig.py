"""Kubeconfigs: which cluster is meant, credentials from plugins, and what is refused."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from kueue_fleet_offline.kubeconfig import (
    ClusterAccess,
    KubeconfigError,
    active_cluster,
    cluster_access,
    load_kubeconfig,
)

V1BETA1 = "client.authentication.k8s.io/v1beta1"


def _config(
    server: str = "https://127.0.0.1:1", user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {"token": "secret-token"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "here"}}],
    }


def test_contents_may_be_json_or_yaml_or_a_path(tmp_path: Path) -> None:
    config = _config()
    file = tmp_path / "config"
    file.write_text(json.dumps(config), encoding="utf-8")
    yaml_text = "current-context: c\nclusters: []\n"
    assert load_kubeconfig(json.dumps(config)) == config
    assert load_kubeconfig(str(file)) == config
    assert load_kubeconfig(yaml_text) == {"current-context": "c", "clusters": []}


@pytest.mark.parametrize("text", ["/no/such/file", "a: [\n", "[]\n\n"])
def test_what_is_no_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(KubeconfigError, match="kubeconfig:"):
        load_kubeconfig(text)


def test_access_follows_the_context() -> None:
    access = cluster_access(_config(), None, None)
    assert access.server == "https://127.0.0.1:1"
    assert access.namespace == "here"
    assert access.authorization() == "Bearer secret-token"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (_config("https://35.1.2.3"), "not on this machine"),
        (_config("https://127.0.0.1.example.com"), "not on this machine"),
        (_config(user={"auth-provider": {"name": "gcp"}}), "user.auth-provider is not honoured"),
        (_config(cluster={"proxy-url": "http://p"}), "cluster.proxy-url is not honoured"),
        ({"clusters": [], "contexts": []}, "no current-context"),
        ({"current-context": "x", "contexts": []}, "no entry 'x' in contexts"),
    ],
)
def test_what_cannot_be_honoured_is_refused_without_showing_a_credential(config: dict[str, Any], words: str) -> None:
    with pytest.raises(KubeconfigError, match=words) as caught:
        cluster_access(config, None, None)
    assert "secret-token" not in str(caught.value)


def test_the_active_cluster_is_empty_when_there_is_none() -> None:
    assert active_cluster({}, None, None) == {}
    assert active_cluster(_config(), "no-such-context", None) == {}
    assert active_cluster(_config(), None, None) == {"server": "https://127.0.0.1:1"}


def _plugin(folder: Path, body: str, **settings: Any) -> ClusterAccess:
    script = folder / "auth"
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    plugin = {"apiVersion": V1BETA1, "command": str(script), "provideClusterInfo": True, **settings}
    return cluster_access(_config(user={"exec": plugin}), None, None)


def test_an_exec_plugin_is_asked_once_and_again_when_told(tmp_path: Path) -> None:
    answer = json.dumps({"apiVersion": V1BETA1, "kind": "ExecCredential", "status": {"token": "t"}})
    access = _plugin(
        tmp_path, f"echo called >> {tmp_path}/calls; echo $KUBERNETES_EXEC_INFO > {tmp_path}/info; echo '{answer}'"
    )
    assert access.authorization() == "Bearer t"
    assert access.authorization() == "Bearer t"
    assert access.authorization(renew=True) == "Bearer t"
    assert (tmp_path / "calls").read_text(encoding="utf-8").count("called") == 2
    info = json.loads((tmp_path / "info").read_text(encoding="utf-8"))
    assert info == {
        "apiVersion": V1BETA1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://127.0.0.1:1"}},
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo nobody is logged in >&2; exit 1", "nobody is logged in"),
        ("echo hello", "printed no ExecCredential"),
        ('echo \'{"apiVersion": "v9", "status": {"token": "t"}}\'', "make them equal"),
        (f'echo \'{{"apiVersion": "{V1BETA1}", "status": {{}}}}\'', "gave no token"),
    ],
)
def test_a_plugin_that_fails_is_named(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(KubeconfigError, match=words):
        _plugin(tmp_path, body).authorization()


def test_a_plugin_that_is_not_installed_is_named_with_its_hint() -> None:
    plugin = {"apiVersion": V1BETA1, "command": "no-such-plugin", "installHint": "run apt install x"}
    with pytest.raises(KubeconfigError, match="executable no-such-plugin not found; run apt install x"):
        cluster_access(_config(user={"exec": plugin}), None, None).authorization()
