"""Rules about secrets: they are not stored in plain text, and are encrypted in Pulumi's state.

A policy cannot see whether Pulumi treats a value as secret, a remediation can; so what is in clear in the state is
repaired rather than refused.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml
from pulumi_policy import Severity
from pulumi_policy.secret import Secret

from kueue_fleet.kueue_api import Problem
from kueue_fleet_policies.pods import containers, metadata, pod_specs
from kueue_fleet_policies.resource import CLUSTER, HELM_RELEASE, KUBERNETES, KUBERNETES_PROVIDER, NODE_POOL, Resource
from kueue_fleet_policies.rule import REMEDIATE, ResourceRule, Settings
from kueue_fleet_policies.values import at, entries, items

CONFIG_MAP: Final = "kubernetes:core/v1:ConfigMap"
"""Pulumi type of a ConfigMap."""
SECRET: Final = "kubernetes:core/v1:Secret"  # noqa: S105  (a type token)
"""Pulumi type of a Secret."""

_WORDS: Final = r"password|passwd|passphrase|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?"
_NAMES_A_SECRET: Final = re.compile(
    rf"((^|[_.-])(?i:{_WORDS}|secret|pass)|(?<=[a-z0-9])(?=[A-Z])(?i:{_WORDS}|secret))$"
)
_NAMES_ONE_IN_METADATA: Final = re.compile(rf"(^|[_.-])({_WORDS})$", re.IGNORECASE)
"""Annotations that end in `secret` name a Secret, or hold its checksum."""
_LOOKS_SECRET: Final = re.compile(
    r"-----BEGIN (RSA |EC |OPENSSH |ENCRYPTED )?PRIVATE KEY-----"
    r"|\bgh[pousr]_[A-Za-z0-9]{36}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_-]{35}\b"
    r"|\bxox[abprs]-[0-9A-Za-z-]{10,}"
    r"|\bya29\.[0-9A-Za-z_-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
)
_REFERENCE: Final = re.compile(
    r"^(/|\$\(|\$\{|projects/|https?://[^@]*$|sm://|true$|false$|\d{1,3}$|\s*$)", re.IGNORECASE
)
_WORDS_OF_A_NAME: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")
_CLIENTS: Final = frozenset(
    {
        "access", "api", "auth", "bearer", "bot", "client", "deploy", "github", "gitlab", "hf", "hub", "id",
        "join", "npm", "oauth", "pat", "private", "pypi", "refresh", "registry", "secret", "service", "session",
        "slack", "user", "vault", "wandb", "web", "webhook",
    }
)  # fmt: skip
"""What stands before `token` in the name of a credential; language models have tokens too, such as EOS_TOKEN."""
_MACHINE_MADE: Final = re.compile(r"^(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_./+=:-]{12,}$")
"""How a token looks that a machine made: letters and digits."""
_CREDENTIALS: Final = ("token", "password", "client-key-data")
_MOVE_IT: Final = "put it in a Secret, or in Secret Manager, and remove it here; then replace it, since it was exposed"


def is_secret(name: str, value: Any, names: re.Pattern[str] = _NAMES_A_SECRET) -> bool:
    """Whether a value is a secret, by how it is called or by how it looks."""
    if not isinstance(value, str) or not value:
        return False
    if _LOOKS_SECRET.search(value):
        return True
    if names.search(name) is None or _REFERENCE.match(value) is not None:
        return False
    *before, last = [word.lower() for word in _WORDS_OF_A_NAME.findall(name)] or [""]
    of_a_client = not before or before[-1] in _CLIENTS
    return last != "token" or of_a_client or _MACHINE_MADE.match(value) is not None


def _in_config_map(config_map: Resource, _: Settings) -> Iterator[Problem]:
    for section in ("data", "binaryData"):
        for key, value in entries(config_map.get(section)).items():
            if is_secret(key, _decoded(value) if section == "binaryData" else value):
                yield Problem(f"{section}[{key}]", "is a secret, and ConfigMaps are not protected", _MOVE_IT)


def _decoded(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (TypeError, ValueError):
        return value


def _in_environment(workload: Resource, _: Settings) -> Iterator[Problem]:
    for path, spec in pod_specs(workload):
        for where, container in containers(path, spec):
            for index, variable in enumerate(items(container.get("env"))):
                name, value = at(variable, "name"), at(variable, "value")
                if isinstance(name, str) and is_secret(name, value):
                    yield Problem(
                        f"{where}.env[{index}].value", f"of {name} is a secret, in clear in the object", _MOVE_IT
                    )
            for key in ("command", "args"):
                for index, text in enumerate(items(container.get(key))):
                    if isinstance(text, str) and (_LOOKS_SECRET.search(text) or _is_secret_flag(text)):
                        yield Problem(f"{where}.{key}[{index}]", "holds a secret, in clear in the object", _MOVE_IT)


def _is_secret_flag(text: str) -> bool:
    name, given, value = text.partition("=")
    return bool(given) and name.startswith("-") and is_secret(name.lstrip("-"), value)


def _in_metadata(resource: Resource, _: Settings) -> Iterator[Problem]:
    for path in ("nodeConfig.metadata", "nodeConfig.labels", "nodeConfig.resourceLabels", "resourceLabels"):
        for key, value in entries(resource.get(path)).items():
            if is_secret(key, value):
                yield Problem(f"{path}[{key}]", "is a secret, and every pod of a node may read it", _MOVE_IT)


def _in_annotations(resource: Resource, _: Settings) -> Iterator[Problem]:
    for where, described in metadata(resource):
        for path in ("annotations", "labels"):
            for key, value in entries(described.get(path)).items():
                if is_secret(key.rsplit("/", 1)[-1], value, _NAMES_ONE_IN_METADATA):
                    yield Problem(f"{where}.{path}[{key}]", "is a secret, in clear in the object", _MOVE_IT)


def _static_credentials(provider: Resource, _: Settings) -> Iterator[Problem]:
    for index, user in enumerate(items(_kubeconfig(provider.get("kubeconfig")).get("users"))):
        for key in _CREDENTIALS:
            if at(user, f"user.{key}"):
                yield Problem(
                    f"kubeconfig.users[{index}].user.{key}",
                    "is a credential that does not expire, in Pulumi's state",
                    "use exec with gke-gcloud-auth-plugin, which fetches a short-lived one",
                )


def _kubeconfig(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip().startswith("{") else yaml.safe_load(value)
        except (ValueError, yaml.YAMLError):
            return {}
    return value if isinstance(value, Mapping) else {}


def _encrypt_secret(props: dict[str, Any]) -> None:
    for section in ("data", "stringData"):
        values = props.get(section)
        if isinstance(values, dict) and any(not isinstance(value, Secret) for value in values.values()):
            props[section] = Secret({key: _opened(value) for key, value in values.items()})


def _encrypt_values(props: dict[str, Any]) -> None:
    if isinstance(props.get("values"), dict):
        props["values"] = _with_secrets("", props["values"])


def _with_secrets(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_secrets(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_secrets(name, item) for item in value]
    return Secret(value) if is_secret(name, value) else value


def _opened(value: Any) -> Any:
    return value.value if isinstance(value, Secret) else value


_SECRETS: Final = "https://kubernetes.io/docs/concepts/security/secrets-good-practices/"
_STATE: Final = "https://www.pulumi.com/docs/iac/concepts/secrets/"
_GROUP: Final = "Secrets"

RULES: Final = (
    ResourceRule(
        name="secret-not-in-config-map",
        asks="ConfigMaps must not hold secrets.",
        severity=Severity.CRITICAL,
        source=_SECRETS,
        group=_GROUP,
        types=(CONFIG_MAP,),
        check=_in_config_map,
    ),
    ResourceRule(
        name="secret-not-in-environment",
        asks="Containers must not have secrets in their environment or arguments.",
        severity=Severity.CRITICAL,
        source=_SECRETS,
        group=_GROUP,
        types=(KUBERNETES,),
        check=_in_environment,
    ),
    ResourceRule(
        name="secret-not-in-node-metadata",
        asks="Metadata and labels of nodes must not hold secrets.",
        severity=Severity.CRITICAL,
        source="https://cloud.google.com/compute/docs/metadata/overview",
        group=_GROUP,
        types=(NODE_POOL, CLUSTER),
        check=_in_metadata,
    ),
    ResourceRule(
        name="secret-not-in-annotations",
        asks="Annotations and labels must not hold secrets.",
        severity=Severity.CRITICAL,
        source=_SECRETS,
        group=_GROUP,
        types=(KUBERNETES,),
        check=_in_annotations,
    ),
    ResourceRule(
        name="secret-not-in-kubeconfig",
        asks="Kubeconfigs of providers must not hold credentials.",
        severity=Severity.HIGH,
        source="https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl",
        group=_GROUP,
        types=(KUBERNETES_PROVIDER,),
        check=_static_credentials,
    ),
    ResourceRule(
        name="secret-encrypted-in-state",
        asks="The data of a Secret must be encrypted in Pulumi's state.",
        level=REMEDIATE,
        severity=Severity.HIGH,
        source=_STATE,
        group=_GROUP,
        types=(SECRET,),
        remedy=_encrypt_secret,
    ),
    ResourceRule(
        name="secret-chart-values-encrypted",
        asks="Passwords among the values of a chart must be encrypted in Pulumi's state.",
        level=REMEDIATE,
        severity=Severity.HIGH,
        source=_STATE,
        group=_GROUP,
        types=(HELM_RELEASE,),
        remedy=_encrypt_values,
    ),
)
"""The rules of this module."""
