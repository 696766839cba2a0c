"""`kubernetes:helm.sh/v3:Release`: check, diff and life of a Helm release, by the real `helm`.

Inputs and outputs are those of the real provider (provider/pkg/provider/helm_release.go), among them `checksum` of
the rendered chart and `resourceNames`. Options that the stand-in does not have are refused by name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kueue_fleet.rehearsal.standins.autonaming import generated_name
from kueue_fleet.rehearsal.standins.gke_auth import STATE_VARIABLE
from kueue_fleet.rehearsal.standins.plugin_errors import InitializationError, PluginError
from kueue_fleet.rehearsal.standins.property_diff import Differ, parse_pattern
from kueue_fleet.rehearsal.standins.property_values import Asset, Secret, Value, has_unknown, reveal, with_secrets_of
from kueue_fleet_offline.helm_command import HelmCommand, HelmError
from kueue_fleet_offline.kube_objects import parse_object_id
from kueue_fleet_offline.kube_settings import check_names

DEFAULT_TIMEOUT_SECONDS: Final = 300
"""Longest that a release takes to be ready, where it does not say itself."""
REPLACING: Final = (parse_pattern("name"), parse_pattern("namespace"))
"""Properties whose change makes a new release."""
HONOURED: Final = frozenset(
    re.findall(
        r"\w+",
        "atomic chart checksum cleanupOnFail compat createNamespace dependencyUpdate description devel disableCRDHooks "
        "disableOpenapiValidation disableWebhooks forceUpdate maxHistory name namespace renderSubchartNotes replace "
        "repositoryOpts resetValues resourceNames reuseValues skipAwait skipCrds takeOwnership timeout valueYamlFiles "
        "values version waitForJobs",
    )
)
"""Properties that mean the same here as with the real provider."""
UNSUPPORTED: Final = frozenset(
    ["allowNullValues", "keyring", "lint", "manifest", "postrender", "recreatePods", "verify"]
)
"""Properties that are refused."""
UNSUPPORTED_REPOSITORY: Final = ("caFile", "certFile", "keyFile", "password", "username")
"""Properties of `repositoryOpts` that are refused."""
COMMON_FLAGS: Final = {
    "dependencyUpdate": "--dependency-update",
    "devel": "--devel",
    "renderSubchartNotes": "--render-subchart-notes",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "atomic": "--atomic",
    "skipCrds": "--skip-crds",
    "takeOwnership": "--take-ownership",
}
"""Flags of helm by property, for install and upgrade."""
INSTALL_FLAGS: Final = {
    "createNamespace": "--create-namespace",
    "replace": "--replace",
    "disableWebhooks": "--no-hooks",
}
"""Flags of `helm install` by property."""
UPGRADE_FLAGS: Final = {
    "disableCRDHooks": "--no-hooks",
    "forceUpdate": "--force",
    "resetValues": "--reset-values",
    "reuseValues": "--reuse-values",
    "cleanupOnFail": "--cleanup-on-fail",
}
"""Flags of `helm upgrade` by property."""
TEMPLATE_CACHE: Final = "helm-templates"
"""Folder of rendered charts, below the state folder."""


def check_options(inputs: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Property and reason of every option that the stand-in cannot honour, or that a Release does not have."""
    failures = check_names(inputs, HONOURED, UNSUPPORTED, "a property of a Helm release")
    repository = reveal(inputs.get("repositoryOpts") or {})
    if isinstance(repository, dict):
        unsupported = [f"repositoryOpts.{key}" for key in UNSUPPORTED_REPOSITORY if repository.get(key)]
        failures += [(key, f"{key}: the stand-in does not have it; leave it out") for key in unsupported]
    return failures


def resource_names(manifest: str) -> dict[str, list[str]]:
    """The rendered objects by kind, as the real provider lists them: `Deployment.apps/apps/v1: [ns/name]`."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, set[str]] = {}
    for document in yaml.load_all(manifest, Loader=loader):
        if not isinstance(document, dict) or not document.get("kind"):
            continue
        api_version, metadata = document.get("apiVersion", ""), document.get("metadata") or {}
        group = api_version.rpartition("/")[0]
        key = f"{document['kind']}{f'.{group}' if group else ''}/{api_version}"
        name = str(metadata.get("name", ""))
        found.setdefault(key, set()).add(f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name)
    return {key: sorted(names) for key, names in sorted(found.items())}


def merged_values(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The values given to helm: the value files in order, and over them `values`."""
    merged: dict[str, Any] = {}
    for asset in inputs.get("valueYamlFiles") or []:
        merged = _merge(merged, _asset_values(asset))
    return _merge(merged, inputs.get("values") or {})


def _asset_values(asset: Value) -> dict[str, Any]:
    import yaml

    if not isinstance(asset, Asset) or asset.uri is not None:
        raise PluginError("valueYamlFiles: the stand-in takes file and string assets only; use one of them")
    text = asset.text if asset.text is not None else Path(asset.path or "").read_text(encoding="utf-8")
    loaded = yaml.safe_load(text) or {}
    if not isinstance(loaded, dict):
        raise PluginError(f"valueYamlFiles: {asset.path or 'the text'} is not a YAML object; correct it")
    return loaded


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def old_inputs(state: Mapping[str, Value]) -> dict[str, Value]:
    """The inputs kept in a stored state; empty for one that has none (an import)."""
    stored = state.get("__inputs")
    inputs = stored.value if isinstance(stored, Secret) else stored
    return dict(inputs) if isinstance(inputs, dict) else {}


@dataclass(frozen=True, slots=True)
class HelmReleases:
    """The Helm releases of one cluster. `stop` cancels every helm that runs."""

    kubeconfig: Mapping[str, Any]
    context: str
    cluster: str
    default_namespace: str
    stop: threading.Event

    def _helm(self, *, needs_cluster: bool = True) -> HelmCommand:
        return HelmCommand(self.kubeconfig if needs_cluster else None, self.context, self.cluster, self.stop)

    def check(
        self, news: dict[str, Value], olds: dict[str, Value], urn_name: str, random_seed: bytes
    ) -> tuple[dict[str, Value], list[tuple[str, str]]]:
        """The inputs, completed by name, namespace, timeout and what the chart contains; and what is wrong."""
        failures = check_options(news)
        inputs = dict(news)
        if not inputs.get("name"):
            inputs["name"] = olds.get("name") or generated_name(urn_name, random_seed)
        if not inputs.get("namespace"):
            inputs["namespace"] = self.default_namespace
        if not reveal(inputs.get("skipAwait")) and "timeout" not in inputs:
            inputs["timeout"] = DEFAULT_TIMEOUT_SECONDS
        if failures or has_unknown(inputs):
            return inputs, failures
        try:
            rendered = self._rendered(reveal(inputs))
        except HelmError as error:
            return inputs, [("chart", f"{error}; check the chart name and repository configuration.")]
        return with_secrets_of({**inputs, **rendered}, news), []

    def _rendered(self, inputs: dict[str, Any]) -> dict[str, Any]:
        flags = self._chart_flags(inputs)
        if not inputs.get("skipCrds"):
            flags.append("--include-crds")
        arguments = ["template", inputs["name"], *flags, "--namespace", inputs["namespace"]]
        values = merged_values(inputs)
        cache = _template_cache(inputs["chart"], arguments, values)
        if cache is not None and cache.is_file():
            cached: dict[str, Any] = json.loads(cache.read_text(encoding="utf-8"))
            return cached
        manifest = self._helm(needs_cluster=False).run(arguments, values)
        rendered = {
            "checksum": hashlib.sha256(manifest.encode()).hexdigest(),
            "resourceNames": resource_names(manifest),
        }
        if cache is not None:
            cache.parent.mkdir(parents=True, exist_ok=True)
            written = cache.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            written.write_text(json.dumps(rendered), encoding="utf-8")
            written.replace(cache)
        return rendered

    def _chart_flags(self, inputs: Mapping[str, Any]) -> list[str]:
        flags = [str(inputs["chart"])]
        if version := inputs.get("version"):
            flags += ["--version", str(version)]
        if repository := (inputs.get("repositoryOpts") or {}).get("repo"):
            flags += ["--repo", repository]
        return flags

    def diff(self, state: dict[str, Value], news: dict[str, Value]) -> Differ:
        """What changed between the stored and the new inputs."""
        differ = Differ(REPLACING)
        differ.compare(_comparable(old_inputs(state)), _comparable(news))
        return differ

    def preview(self, inputs: dict[str, Value]) -> dict[str, Value]:
        """What is known before helm has run: the inputs."""
        return {**inputs, "__inputs": Secret(dict(inputs))}

    def create(self, inputs: dict[str, Value], requested_seconds: float) -> tuple[str, dict[str, Value]]:
        """Installs the release. Raises InitializationError when it was installed but did not become ready."""
        plain = reveal(inputs)
        arguments = ["install", plain["name"], *self._flags(plain, INSTALL_FLAGS, requested_seconds)]
        return f"{plain['namespace']}/{plain['name']}", self._changed(arguments, inputs, plain)

    def update(self, inputs: dict[str, Value], requested_seconds: float) -> dict[str, Value]:
        """Upgrades the release to the new inputs. Raises InitializationError when it did not become ready."""
        plain = reveal(inputs)
        flags = self._flags(plain, UPGRADE_FLAGS, requested_seconds)
        # helm keeps ten revisions by default; the real provider keeps all unless told otherwise.
        arguments = ["upgrade", plain["name"], *flags, "--history-max", str(plain.get("maxHistory") or 0)]
        return self._changed(arguments, inputs, plain)

    def _flags(self, plain: Mapping[str, Any], own_flags: dict[str, str], requested_seconds: float) -> list[str]:
        flags = [*self._chart_flags(plain), "--namespace", plain["namespace"]]
        seconds = int(plain.get("timeout") or requested_seconds or DEFAULT_TIMEOUT_SECONDS)
        flags += ["--timeout", f"{seconds}s"]
        if not plain.get("skipAwait"):
            flags.append("--wait")
            if plain.get("waitForJobs"):
                flags.append("--wait-for-jobs")
        if description := plain.get("description"):
            flags += ["--description", str(description)]
        return flags + [flag for key, flag in (COMMON_FLAGS | own_flags).items() if plain.get(key)]

    def _changed(self, arguments: list[str], inputs: dict[str, Value], plain: dict[str, Any]) -> dict[str, Value]:
        try:
            self._helm().run(arguments, merged_values(plain))
        except HelmError as error:
            status = self._status(plain["name"], plain["namespace"])
            if status is None:
                raise
            release_id = f"{plain['namespace']}/{plain['name']}"
            message = (
                f'Helm release "{release_id}" was created, but failed to initialize completely (status '
                f"{status['status']}). Use Helm CLI to investigate.: {error}"
            )
            raise InitializationError(message, release_id, self._state(inputs, status)) from error
        status = self._status(plain["name"], plain["namespace"])
        if status is None:
            raise HelmError(f"release {plain['name']} is gone right after helm {arguments[0]}; run again")
        return self._state(inputs, status)

    def _status(self, name: str, namespace: str) -> dict[str, Any] | None:
        try:
            output = self._helm().run(["get", "metadata", name, "--namespace", namespace, "--output", "json"])
        except HelmError as error:
            if "release: not found" in str(error):
                return None
            raise
        metadata = json.loads(output)
        return {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "revision": int(metadata["revision"]),
            "status": metadata["status"],
            "chart": metadata["chart"],
            "version": metadata["version"],
            "appVersion": metadata.get("appVersion", ""),
        }

    def _state(self, inputs: dict[str, Value], status: Mapping[str, Any]) -> dict[str, Value]:
        outputs = {**inputs, "version": status["version"], "status": dict(status)}
        return {**with_secrets_of(outputs, inputs), "__inputs": Secret(dict(inputs))}

    def read(self, resource_id: str, state: dict[str, Value]) -> tuple[dict[str, Value], dict[str, Value]] | None:
        """State and inputs of the live release; None when it is gone. An import has chart, version and values."""
        plain = reveal(state)
        of_id = parse_object_id(resource_id)
        namespace = plain.get("namespace") or of_id[0] or self.default_namespace
        name = plain.get("name") or of_id[1]
        status = self._status(name, namespace)
        if status is None:
            return None
        inputs = old_inputs(state)
        values = json.loads(self._helm().run(["get", "values", name, "--namespace", namespace, "--output", "json"]))
        if inputs:
            if values is not None and values != merged_values(reveal(inputs)):
                inputs = with_secrets_of({**inputs, "values": values, "valueYamlFiles": None}, inputs)
        else:
            inputs = {"name": name, "namespace": namespace, "chart": status["chart"], "version": status["version"]}
            inputs.update({"values": Secret(values or {}), "timeout": DEFAULT_TIMEOUT_SECONDS})
        return self._state(inputs, status), inputs

    def delete(self, state: dict[str, Value], requested_seconds: float) -> None:
        """Uninstalls the release, waiting for its objects unless it was made with skipAwait; gone already is fine."""
        plain = reveal(state)
        arguments = ["uninstall", plain["name"], "--namespace", plain["namespace"], "--ignore-not-found"]
        if plain.get("atomic") or not plain.get("skipAwait"):
            seconds = int(plain.get("timeout") or requested_seconds or DEFAULT_TIMEOUT_SECONDS)
            arguments += ["--wait", "--timeout", f"{seconds}s"]
        self._helm().run(arguments)


def _comparable(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Plain inputs without options that are off, which mean the same as absent."""
    plain: dict[str, Value] = reveal(dict(inputs))
    return {key: value for key, value in plain.items() if value is not False and value is not None}


def _template_cache(chart: str, arguments: list[str], values: Mapping[str, Any]) -> Path | None:
    """Where the rendering of a chart on disk is kept for the rehearsal; None for a chart that is fetched.

    A fleet renders the same chart for every cluster, in the preview and again in the update.
    """
    state = os.environ.get(STATE_VARIABLE)
    folder = Path(chart)
    if not state or not folder.is_dir():
        return None
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stamps = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    key = hashlib.sha256(json.dumps([stamps, arguments, values], sort_keys=True).encode()).hexdigest()
    return Path(state, TEMPLATE_CACHE, f"{key}.json")
