"""The configuration of the `kubernetes` provider: which settings there are, and what they mean here.

Source: the provider's schema (pulumi_kubernetes.Provider) and Configure in the real provider. Settings whose
behaviour the stand-in does not have are refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Final

from kueue_fleet.rehearsal.standins.property_diff import Differ, render_path
from kueue_fleet.rehearsal.standins.property_values import UNKNOWN, Value, has_unknown, reveal
from kueue_fleet_offline.kubeconfig import active_cluster, load_kubeconfig

HONOURED: Final = frozenset(
    {
        "cluster",
        "clusterIdentifier",
        "context",
        "deleteUnreachable",
        "enableConfigMapMutable",
        "enablePatchForce",
        "enableSecretMutable",
        "enableServerSideApply",
        "kubeconfig",
        "namespace",
        "skipUpdateUnreachable",
        "upsertExistingObjects",
    }
)
"""Settings of the provider that mean the same here."""
WITHOUT_EFFECT: Final = frozenset(
    {
        "enableReplaceCRD",
        "kubeClientSettings",
        "suppressDeprecationWarnings",
        "suppressHelmHookWarnings",
        "version",
        "pluginDownloadURL",
        "pluginChecksums",
    }
)
"""Taken and not needed: they tune or silence what the stand-in does not do in the first place."""
UNSUPPORTED: Final = frozenset({"renderYamlToDirectory", "helmReleaseSettings", "strictMode", "rejectUnknownResources"})
"""Settings of the provider that are refused."""
CLUSTER_SETTINGS: Final = ("kubeconfig", "context", "cluster")
"""Settings whose change means another cluster."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The provider's settings after defaults and environment variables."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    namespace: str = ""
    delete_unreachable: bool = False
    skip_update_unreachable: bool = False
    config_map_mutable: bool = False
    secret_mutable: bool = False
    patch_force: bool = False
    upsert: bool = False


def is_true(value: Value) -> bool:
    """Whether a setting is on: SDKs send booleans as the text `true`."""
    return value is True or value == "true"


def check_settings(news: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Property and reason of every setting that cannot be honoured."""
    failures = check_names(news, HONOURED | WITHOUT_EFFECT, UNSUPPORTED, "a setting of the kubernetes provider")
    if reveal(news.get("enableServerSideApply", True)) in (False, "false"):
        failures.append(("enableServerSideApply", "enableServerSideApply: the stand-in only has server-side apply"))
    return failures


def check_names(given: Mapping[str, Value], known: Set[str], unsupported: Set[str], what: str) -> list[tuple[str, str]]:
    """Name and reason of everything given that is unsupported and set, or neither known nor unsupported."""
    failures = []
    for key, value in given.items():
        if key in unsupported and reveal(value):
            failures.append((key, f"{key}: the stand-in of the kubernetes provider does not have it; leave it out"))
        elif key not in known | unsupported:
            failures.append((key, f"{key}: is not {what}; check the spelling"))
    return failures


def parse_settings(given: Mapping[str, Value]) -> Settings:
    """The settings of a Configure call, completed from the real provider's environment variables."""
    values = reveal(dict(given))

    def enabled(key: str, variable: str) -> bool:
        return is_true(values[key]) if key in values else os.environ.get(variable) == "true"

    return Settings(
        kubeconfig=kubeconfig_text(values.get("kubeconfig")),
        context=str(values.get("context") or ""),
        cluster=str(values.get("cluster") or ""),
        namespace=str(values.get("namespace") or ""),
        delete_unreachable=enabled("deleteUnreachable", "PULUMI_K8S_DELETE_UNREACHABLE"),
        skip_update_unreachable=enabled("skipUpdateUnreachable", "PULUMI_K8S_SKIP_UPDATE_UNREACHABLE"),
        config_map_mutable=enabled("enableConfigMapMutable", "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE"),
        secret_mutable=enabled("enableSecretMutable", "PULUMI_K8S_ENABLE_SECRET_MUTABLE"),
        patch_force=enabled("enablePatchForce", "PULUMI_K8S_ENABLE_PATCH_FORCE"),
        upsert=enabled("upsertExistingObjects", "PULUMI_K8S_UPSERT_EXISTING_OBJECTS"),
    )


def kubeconfig_text(value: Value) -> str:
    """The kubeconfig as text; SDKs may also send it as an object."""
    if isinstance(value, dict):
        import json

        return json.dumps(value)
    return str(value or "")


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """Which settings differ, and which of them replace the provider and with it every resource it made."""

    changed: tuple[str, ...]
    replacing: tuple[str, ...]


def _active(values: Mapping[str, Any]) -> dict[str, Any]:
    text = kubeconfig_text(values.get("kubeconfig"))
    return active_cluster(load_kubeconfig(text), values.get("context"), values.get("cluster")) if text else {}


def compare_settings(olds: Mapping[str, Value], news: Mapping[str, Value]) -> SettingsChange:
    """What changed between two configurations.

    The provider is replaced when its active cluster changes, or when that cannot be known yet. With an unchanged
    `clusterIdentifier` nothing replaces it; a changed one does; adding or removing it does neither.
    Source: DiffConfig in pulumi-kubernetes provider/pkg/provider/provider.go.
    """
    old, new = reveal(dict(olds)), reveal(dict(news))
    differ = Differ()
    differ.compare(old, new)
    changed = tuple(sorted({render_path(path[:1]) for path in differ.changes}))
    if not changed:
        return SettingsChange((), ())
    before, after = old.get("clusterIdentifier"), new.get("clusterIdentifier")
    if before is not None and before == after and after is not UNKNOWN:
        return SettingsChange(changed, ())
    replacing = ["clusterIdentifier"] if before is not None and after is not None and before != after else []
    unknown = [key for key in CLUSTER_SETTINGS if has_unknown(new.get(key))]
    if unknown:
        return SettingsChange(changed, (*replacing, unknown[0]))
    if _active(old) != _active(new):
        replacing += [key for key in CLUSTER_SETTINGS if key in changed]
    return SettingsChange(changed, tuple(replacing))
