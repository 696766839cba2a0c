"""The provider's configuration: what replaces it, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kueue_fleet.rehearsal.standins.property_values import UNKNOWN, Secret
from kueue_fleet_offline.kube_settings import check_settings, compare_settings, parse_settings


def _kubeconfig(server: str = "https://127.0.0.1:1", token: str = "t") -> str:
    return json.dumps(
        {
            "current-context": "c",
            "clusters": [
                {"name": "k", "cluster": {"server": server}},
                {"name": "other", "cluster": {"server": "https://127.0.0.1:2"}},
            ],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [
                {"name": "c", "context": {"cluster": "k", "user": "u"}},
                {"name": "d", "context": {"cluster": "other", "user": "u"}},
            ],
        }
    )


def _replacing(old: dict[str, Any], new: dict[str, Any]) -> tuple[str, ...]:
    return compare_settings(old, new).replacing


def test_another_server_replaces_the_provider() -> None:
    old, new = {"kubeconfig": _kubeconfig()}, {"kubeconfig": _kubeconfig("https://127.0.0.1:9")}
    assert _replacing(old, new) == ("kubeconfig",)


def test_another_credential_does_not() -> None:
    change = compare_settings({"kubeconfig": _kubeconfig()}, {"kubeconfig": Secret(_kubeconfig(token="u"))})
    assert change.changed == ("kubeconfig",)
    assert change.replacing == ()


def test_another_context_or_cluster_replaces_when_it_is_another_cluster() -> None:
    old = {"kubeconfig": _kubeconfig()}
    assert _replacing(old, {**old, "context": "d"}) == ("context",)
    assert _replacing(old, {**old, "cluster": "other"}) == ("cluster",)
    assert _replacing(old, {**old, "context": "c"}) == ()


def test_a_kubeconfig_that_is_not_known_yet_replaces() -> None:
    assert _replacing({"kubeconfig": _kubeconfig()}, {"kubeconfig": UNKNOWN}) == ("kubeconfig",)


def test_an_unchanged_identifier_keeps_the_provider_whatever_else_changes() -> None:
    old = {"kubeconfig": _kubeconfig(), "clusterIdentifier": "x"}
    for kubeconfig in (_kubeconfig("https://127.0.0.1:9"), UNKNOWN):
        change = compare_settings(old, {"kubeconfig": kubeconfig, "clusterIdentifier": "x"})
        assert change.changed == ("kubeconfig",)
        assert change.replacing == ()


def test_another_identifier_replaces_and_adding_one_does_not() -> None:
    with_x = {"kubeconfig": _kubeconfig(), "clusterIdentifier": "x"}
    assert _replacing(with_x, {**with_x, "clusterIdentifier": "y"}) == ("clusterIdentifier",)
    assert _replacing({"kubeconfig": _kubeconfig()}, with_x) == ()


def test_adding_an_identifier_does_not_protect_from_another_server_at_the_same_time() -> None:
    new = {"kubeconfig": _kubeconfig("https://127.0.0.1:9"), "clusterIdentifier": "x"}
    assert _replacing({"kubeconfig": _kubeconfig()}, new) == ("kubeconfig",)


def test_nothing_changed_is_nothing() -> None:
    same = {"kubeconfig": _kubeconfig()}
    assert compare_settings(same, {"kubeconfig": Secret(_kubeconfig())}).changed == ()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"renderYamlToDirectory": "x"}, "does not have it"),
        ({"helmReleaseSettings": "{}"}, "does not have it"),
        ({"enableServerSideApply": "false"}, "only has server-side apply"),
        ({"kubeconfg": "x"}, "not a setting of the kubernetes provider"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(settings: dict[str, Any], words: str) -> None:
    ((_, reason),) = check_settings(settings)
    assert words in reason


def test_settings_come_from_the_configuration_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    monkeypatch.setenv("PULUMI_K8S_ENABLE_PATCH_FORCE", "true")
    settings = parse_settings({"kubeconfig": Secret("k"), "deleteUnreachable": "false", "upsertExistingObjects": True})
    assert settings.kubeconfig == "k"
    assert not settings.delete_unreachable
    assert settings.patch_force
    assert settings.upsert
