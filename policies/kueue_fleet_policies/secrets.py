"""Rules about secrets: they are not stored in plain text, and are encrypted in Pulumi's state.

A policy cannot see whether Pulumi treats a value as secret, a remediation can; so what is in clear in the state is
repaired rather than refused.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from pulumi_policy.secret import Secret

from kueue_admission.kernel.problem import join_path
from kueue_admission.kernel.yaml_text import load_yaml
from kueue_fleet_policies.pods import containers, metadata, pod_specs
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import at, entries, items, objects_in

_WORDS: Final = r"[a-z]*passw(?:or)?d|passphrase|(?:auth)?token|(?:api|access|private)[_-]?key|credentials?"


def _ends_in(words: str) -> re.Pattern[str]:
    """Matches names that end in one of these words, `old` or a number after it."""
    begins = r"(?:^|[_.-]|(?<=[a-z0-9])(?=[A-Z]))"
    return re.compile(rf"{begins}(?P<word>(?i:{words}))(?:[_.-]?\d+|[_.-](?i:old|new|previous))?$")


_NAMES_A_SECRET: Final = _ends_in(rf"{_WORDS}|secret[_-]?key|secret|pass|pwd")
_NAMES_ONE_IN_TEXT: Final = _ends_in(_WORDS)
"""In annotations and files, what ends in `secret` names a Secret."""
_LOOKS_SECRET: Final = re.compile(
    r"-----BEGIN (RSA |EC |OPENSSH |ENCRYPTED )?PRIVATE KEY-----"
    r"|\bgh[pousr]_[A-Za-z0-9]{36}"
    r"|\bgithub_pat_[A-Za-z0-9_]{22}"
    r"|\bglpat-[A-Za-z0-9_-]{20}"
    r"|\bhf_[A-Za-z0-9]{30}"
    r"|\bsk-[A-Za-z0-9_-]*[A-Za-z0-9]{20}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_-]{35}\b"
    r"|\bxox[abprs]-[0-9A-Za-z-]{10,}"
    r"|\bya29\.[0-9A-Za-z_-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|://[^\s/:@]*:[^\s/@$<{%*][^\s/@]*@"
)
_REFERENCE: Final = re.compile(
    r"(/|\$|\{\{|projects/|[a-z][a-z0-9+.-]*://[^@]*$|<[^<>]*>$|(?-i:\[[A-Z_]+\])$"
    r"|(true|false|yes|no|none|null|empty)$|\d{1,3}$|\s*$)",
    re.IGNORECASE,
)
"""How values look that are not secrets: paths, references, tokens of language models, switches, small numbers."""
_WORDS_OF_A_NAME: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")
_ORDINARY: Final = {
    "token": frozenset(
        {
            "added", "begin", "bos", "class", "cls", "context", "decoder", "default", "end", "eos", "eot", "first",
            "image", "input", "last", "mask", "max", "min", "new", "next", "num", "output", "pad", "per", "placeholder",
            "prompt", "sep", "special", "start", "stop", "text", "think", "tool", "unk", "video", "vision",
        }
    ),
    "secret": frozenset({"cert", "pull", "tls"}),
    "pass": frozenset({"backward", "forward", "multi", "num", "single"}),
}  # fmt: skip
"""What stands before a word that then means something else: of language models, names of Secrets, passes over data."""
_MACHINE_MADE: Final = re.compile(r"[A-Za-z0-9_./+=:-]*?(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{8}")
"""How a token looks that a machine made: letters and digits mixed."""
_RAY_ENVIRONMENT: Final = "spec.runtimeEnvYAML"
"""Environment of a RayJob, as a text of YAML."""
_VARIABLES: Final = ("environmentVariables", "buildEnvironmentVariables", "envVariables")
"""Where Cloud Functions and App Engine have environments."""
_CREDENTIALS: Final = ("token", "password", "client-key-data")
_METADATA: Final = (
    *("nodeConfig.metadata", "nodeConfig.labels", "nodeConfig.resourceLabels", "resourceLabels"),
    *("metadata", "labels", "preservedState.metadata"),
)
"""Of clusters and node pools, and of machines of Compute Engine."""
_READ_BY_ALL: Final = "is a secret, and every pod or process of the machine may read it"
_MOVE_IT: Final = "put it in a Secret, or in Secret Manager, and remove it here; then replace it, since it was exposed"


def is_secret(name: str, value: Any, names: re.Pattern[str] = _NAMES_A_SECRET) -> bool:
    """Whether a value is a secret, by how it is called or by how it looks."""
    if not isinstance(value, str) or not value:
        return False
    if _LOOKS_SECRET.search(value):
        return True
    match = names.search(name)
    if match is None or _REFERENCE.match(value):
        return False
    word = match["word"].lower()
    before = _WORDS_OF_A_NAME.findall(name[: match.start("word")])[-1:]
    if not before or before[0].lower() not in _ORDINARY.get(word, ()):
        return True
    return word == "token" and _MACHINE_MADE.match(value) is not None


def _in_config_map(config_map: Resource, _: Settings) -> Iterator[Breach]:
    for section in ("data", "binaryData"):
        for key, value in entries(config_map.get(section)).items():
            text = _decoded(value) if section == "binaryData" else value
            if is_secret(key, text) or _holds_secret(text):
                yield Breach(f"{section}[{key}]", "is or holds a secret, and ConfigMaps are not protected", _MOVE_IT)


def _holds_secret(text: Any) -> bool:
    """Whether a text of YAML or JSON sets something that is called as a secret is."""
    return isinstance(text, str) and any(
        is_secret(_called(fields, key), value, _NAMES_ONE_IN_TEXT)
        for _, fields in objects_in(_parsed(text))
        for key, value in fields.items()
    )


def _called(found: Mapping[str, Any], key: str) -> str:
    """What an entry is called: by its key, or, if that is `value`, by the `name` beside it, as in a container's env."""
    return str(found.get("name", key) if key == "value" else key)


def _decoded(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (TypeError, ValueError):
        return value


def _in_environment(workload: Resource, _: Settings) -> Iterator[Breach]:
    pods = [part for path, spec in pod_specs(workload) for part in containers(path, spec)]
    of_google = workload.type.startswith("gcp:")
    for where, container in objects_in(workload.props) if of_google else pods:
        for variables in ("env", "envs"):
            for index, variable in enumerate(items(container.get(variables))):
                name, value = at(variable, "name"), at(variable, "value")
                if isinstance(name, str) and is_secret(name, value):
                    path = join_path(where, f"{variables}[{index}].value")
                    yield Breach(path, f"of {name} is a secret, in clear in the object", _MOVE_IT)
        for variables in _VARIABLES if of_google else ():
            for name, value in entries(container.get(variables)).items():
                if is_secret(name, value):
                    yield Breach(
                        join_path(where, f"{variables}[{name}]"), "is a secret, in clear in the object", _MOVE_IT
                    )
        for key in ("command", "commands", "args"):
            given = _given(container.get(key))
            for index in sorted({index for index, name, value in given if is_secret(name, value)}):
                yield Breach(join_path(where, f"{key}[{index}]"), "holds a secret, in clear in the object", _MOVE_IT)
    if _holds_secret(workload.get(_RAY_ENVIRONMENT)):
        yield Breach(_RAY_ENVIRONMENT, "holds a secret, in clear in the object", _MOVE_IT)


def _given(arguments: Any) -> Iterator[tuple[int, str, str]]:
    """Index, name and value of what a command line sets, by `--name=value`, `--name value` or `NAME=value`.

    Each argument is there as a whole too, without a name. Code may assign too, so a name in lower case without dashes
    counts only where the assignment is the whole argument, as in `--set auth.password=value`.
    """
    texts = [text if isinstance(text, str) else "" for text in (arguments if isinstance(arguments, list) else [])]
    yield from ((index, "", text) for index, text in enumerate(texts))
    words = [(index, word) for index, text in enumerate(texts) for word in text.split() or [""]]
    for (index, word), (place, following) in pairwise([*words, (0, "")]):
        name, assigned, value = word.partition("=")
        if assigned and (name.startswith("-") or name.isupper() or word == texts[index]):
            yield index, name.lstrip("-"), value.strip("\"'")
        elif word.startswith("-") and not following.startswith("-"):
            yield place, word.lstrip("-"), following.strip("\"'")


def _in_metadata(resource: Resource, _: Settings) -> Iterator[Breach]:
    for path in _METADATA:
        for key, value in entries(resource.get(path)).items():
            if is_secret(key, value):
                yield Breach(f"{path}[{key}]", _READ_BY_ALL, _MOVE_IT)
    for path, name in (("value", resource.get("key")), ("metadataStartupScript", "")):
        if is_secret(str(name), resource.get(path)):
            yield Breach(path, _READ_BY_ALL, _MOVE_IT)


def _in_annotations(resource: Resource, _: Settings) -> Iterator[Breach]:
    for where, described in metadata(resource):
        for path in ("annotations", "labels"):
            for key, value in entries(described.get(path)).items():
                if not key.startswith("checksum/") and is_secret(key.rsplit("/", 1)[-1], value, _NAMES_ONE_IN_TEXT):
                    yield Breach(f"{where}.{path}[{key}]", "is a secret, in clear in the object", _MOVE_IT)


def _static_credentials(provider: Resource, _: Settings) -> Iterator[Breach]:
    for index, user in enumerate(items(at(_parsed(provider.get("kubeconfig")), "users"))):
        for key in _CREDENTIALS:
            if at(user, f"user.{key}"):
                yield Breach(
                    f"kubeconfig.users[{index}].user.{key}",
                    "is a credential that does not expire, in Pulumi's state",
                    "use exec with gke-gcloud-auth-plugin, which fetches a short-lived one",
                )


def _parsed(text: Any) -> Any:
    """What a text of JSON or YAML says; other values as they are, and None for other texts."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text) if text.lstrip().startswith("{") else load_yaml(text, "")
    except (ValueError, RecursionError):
        return None


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
        return {key: _with_secrets(_called(value, key), item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_secrets(name, item) for item in value]
    return Secret(value) if is_secret(name, value) else value


def _opened(value: Any) -> Any:
    return value.value if isinstance(value, Secret) else value


RULES: Final = rules_of(
    "Secrets",
    {
        "secret-not-in-config-map": _in_config_map,
        "secret-not-in-environment": _in_environment,
        "secret-not-in-node-metadata": _in_metadata,
        "secret-not-in-annotations": _in_annotations,
        "secret-not-in-kubeconfig": _static_credentials,
    },
    remedies={
        "secret-encrypted-in-state": _encrypt_secret,
        "secret-chart-values-encrypted": _encrypt_values,
    },
)
"""The rules of this module."""
