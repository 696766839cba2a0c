"""Kubernetes objects as the real provider handles them: names, annotations, what replaces, what counts as equal.

Pure functions on plain data. Source: pulumi-kubernetes provider/pkg/{metadata,provider,kinds}.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from kueue_fleet.rehearsal.standins.plugin_errors import PluginError
from kueue_fleet.rehearsal.standins.property_diff import Path, Pattern, parse_pattern
from kueue_fleet.rehearsal.standins.property_values import UNKNOWN, Value

AUTONAMED: Final = "pulumi.com/autonamed"
"""Annotation: the name was made up."""
SKIP_AWAIT: Final = "pulumi.com/skipAwait"
"""Annotation: do not wait until the object is ready."""
WAIT_FOR: Final = "pulumi.com/waitFor"
"""Annotation: what to wait for."""
TIMEOUT_SECONDS: Final = "pulumi.com/timeoutSeconds"
"""Annotation: longest that the object takes to be ready."""
PATCH_FORCE: Final = "pulumi.com/patchForce"
"""Annotation: take fields over from other field managers."""
PATCH_FIELD_MANAGER: Final = "pulumi.com/patchFieldManager"
"""Annotation: name of the field manager."""
DELETION_PROPAGATION: Final = "pulumi.com/deletionPropagationPolicy"
"""Annotation: what happens to dependents of a deleted object."""
REPLACE_UNREADY: Final = "pulumi.com/replaceUnready"
"""Annotation: make a failed Job again."""
FIELD_MANAGER_PREFIX: Final = "pulumi-kubernetes"
"""How the names of field managers begin."""
READ_ONLY_METADATA: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)
"""Fields of `metadata` that the API server writes."""
UNDERSCORED: Final = {
    key.replace("-", "_"): key
    for key in (
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    )
}
"""Schema keys of a CustomResourceDefinition that Pulumi's SDKs spell with underscores."""
DASHED: Final = {dashed: underscored for underscored, dashed in UNDERSCORED.items()}
"""Property names of the SDK, by those of the API, which have dashes."""
IDENTITY: Final = ("metadata.name", "metadata.namespace")
"""Paths whose change makes another object."""
SELECTOR: Final = ("spec.selector",)
"""Path of a selector, which cannot be changed."""
JOB: Final = ("spec.completions", "spec.parallelism", "spec.selector", "spec.template")
"""Paths of a Job that cannot be changed."""
VOLUME_SOURCES: Final = tuple(
    f"spec.{source}"
    for source in re.findall(
        r"\w+",
        "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk glusterfs "
        "hostPath iscsi local nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume",
    )
)
"""Paths of a PersistentVolume that cannot be changed."""
REPLACING: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("apps/v1", "Deployment"): SELECTOR,
    ("apps/v1", "DaemonSet"): SELECTOR,
    ("apps/v1", "StatefulSet"): (
        "spec.podManagementPolicy",
        "spec.revisionHistoryLimit",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    ("batch/v1", "Job"): JOB,
    ("v1", "ConfigMap"): ("binaryData", "data"),
    ("v1", "Secret"): ("type", "stringData", "data"),
    ("v1", "Service"): ("spec.clusterIP",),
    ("v1", "ResourceQuota"): ("spec.scopes",),
    ("v1", "PersistentVolumeClaim"): ("spec",),
    ("v1", "PersistentVolume"): VOLUME_SOURCES,
    ("v1", "Pod"): ("spec",),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): ("roleRef",),
    ("storage.k8s.io/v1", "StorageClass"): ("parameters", "provisioner"),
    ("scheduling.k8s.io/v1", "PriorityClass"): (),
}
"""Properties that cannot change in place, by apiVersion and kind. Custom resources replace on their identity only."""
BUILT_IN_GROUPS: Final = frozenset({"apps", "batch", "policy", "autoscaling", "extensions"})
"""API groups of Kubernetes itself whose name has no dot."""
QUANTITY: Final = re.compile(r"([+-]?[0-9]*\.?[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?")
"""An amount as Kubernetes writes it."""
QUANTITY_PARENTS: Final = frozenset(
    {"requests", "limits", "hard", "capacity", "allocatable", "overhead", "default", "defaultRequest", "max", "min"}
)
"""Fields below which amounts are."""
DECIMAL_EXPONENTS: Final = {"": 0, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""Powers of ten, by suffix."""
BINARY_POWERS: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
"""Powers of 1024, by suffix."""


def is_built_in(api_version: str) -> bool:
    """Whether the kind is part of Kubernetes itself, not a custom resource."""
    group = api_version.rpartition("/")[0]
    return not group or group in BUILT_IN_GROUPS or group.endswith(".k8s.io")


def annotation(manifest: Mapping[str, Any], key: str) -> str:
    """The annotation's value, empty when it is absent or not known yet."""
    metadata = manifest.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(key, "") if isinstance(annotations, dict) else ""
    return value if isinstance(value, str) else ""


def is_annotated_true(manifest: Mapping[str, Any], key: str) -> bool:
    """Whether the annotation is exactly `true`."""
    return annotation(manifest, key) == "true"


def to_kubernetes_keys(value: Value) -> Value:
    """`value` with the schema keys spelled as Kubernetes does."""
    return _renamed(value, UNDERSCORED)


def to_pulumi_keys(value: Value) -> Value:
    """`value` with the schema keys spelled as Pulumi's SDKs do."""
    return _renamed(value, DASHED)


def _renamed(value: Value, names: Mapping[str, str]) -> Value:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return value


def without_read_only_metadata(manifest: dict[str, Any]) -> dict[str, Any]:
    """`manifest` without the metadata that only the server writes."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return manifest
    kept = {key: value for key, value in metadata.items() if key not in READ_ONLY_METADATA}
    return {**manifest, "metadata": kept}


def field_manager_for(inputs: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """The server-side apply manager: the annotation's, else the stored one, else a new `pulumi-kubernetes-…`."""
    if named := annotation(inputs, PATCH_FIELD_MANAGER):
        return named
    if stored := state.get("__fieldManager"):
        return str(stored)
    return f"{FIELD_MANAGER_PREFIX}-{secrets.token_hex(4)}"


def with_name(inputs: dict[str, Any], name: str, *, autonamed: bool) -> dict[str, Any]:
    """`inputs` with that name, and with the mark that the provider chose it."""
    metadata = dict(inputs.get("metadata") or {})
    metadata["name"] = name
    if autonamed:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), AUTONAMED: "true"}
    return {**inputs, "metadata": metadata}


def with_namespace(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """`manifest` in that namespace; empty takes the namespace away."""
    metadata = {key: value for key, value in (manifest.get("metadata") or {}).items() if key != "namespace"}
    if namespace:
        metadata["namespace"] = namespace
    return {**manifest, "metadata": metadata}


def object_id(manifest: Mapping[str, Any]) -> str:
    """Pulumi's id of the object: `namespace/name`, or `name` without a namespace."""
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def parse_object_id(resource_id: str) -> tuple[str, str]:
    """Namespace (empty when there is none) and name of an id."""
    namespace, separator, name = resource_id.partition("/")
    return (namespace, name) if separator else ("", namespace)


def kind_of_token(token: str) -> tuple[str, str]:
    """apiVersion and kind of a type token such as `kubernetes:apps/v1:Deployment`.

    Raises PluginError for a token that is not a Kubernetes kind's.
    """
    package, _, rest = token.partition(":")
    module, _, kind = rest.rpartition(":")
    group, separator, version = module.partition("/")
    if is_patch(token):
        kind = kind.removesuffix("Patch")
    if package != "kubernetes" or not separator or not kind:
        raise PluginError(f"{token}: not a Kubernetes kind (kubernetes:<group>/<version>:<Kind>); use one of them")
    return (version if group == "core" else f"{group}/{version}"), kind


def is_patch(token: str) -> bool:
    """Whether the type is that of a patch: fields of an object of Kubernetes itself that something else makes."""
    _, _, rest = token.partition(":")
    module, _, kind = rest.rpartition(":")
    group = module.partition("/")[0]
    return kind.endswith("Patch") and is_built_in(module if group != "core" else "v1")


def is_patch_urn(urn: str) -> bool:
    """Whether a resource with this URN is a patch."""
    return is_patch(urn.split("::")[2].rpartition("$")[2])


def pruned(live: Value, shape: Value) -> Value:
    """`live` reduced to what `shape` has: the fields that were asked for, with their live values.

    Elements of a list beyond those asked for are kept, so that they count as a difference.
    """
    if isinstance(live, dict) and isinstance(shape, dict):
        return {key: pruned(live[key], shape[key]) for key in shape if key in live}
    if isinstance(live, list) and isinstance(shape, list):
        return [pruned(item, shape[index]) if index < len(shape) else item for index, item in enumerate(live)]
    return live


def with_string_data_encoded(manifest: dict[str, Any]) -> dict[str, Any]:
    """A Secret with its `stringData` moved into `data`, as the API server stores it; others unchanged."""
    if manifest.get("apiVersion") != "v1" or manifest.get("kind") != "Secret" or "stringData" not in manifest:
        return manifest
    moved = {key: value for key, value in manifest.items() if key != "stringData"}
    given = manifest["stringData"]
    if not isinstance(given, dict):
        moved["data"] = given
        return moved
    encoded = {key: _encoded(value) for key, value in given.items()}
    moved["data"] = {**(manifest.get("data") or {}), **encoded}
    return moved


def _encoded(value: Value) -> Value:
    return value if value is UNKNOWN else base64.b64encode(str(value).encode()).decode()


def replacing_patterns(
    inputs: Mapping[str, Any], *, config_map_mutable: bool, secret_mutable: bool
) -> tuple[Pattern, ...]:
    """What cannot change in place for this object.

    A ConfigMap or Secret may be changed in place when the provider says so, unless it is `immutable`.
    """
    api_version, kind = inputs.get("apiVersion", ""), inputs.get("kind", "")
    fields = REPLACING.get((api_version, kind), ())
    mutable = (kind == "ConfigMap" and config_map_mutable) or (kind == "Secret" and secret_mutable)
    if api_version == "v1" and mutable and inputs.get("immutable") is not True:
        fields = ("type",) if kind == "Secret" else ()
    return tuple(parse_pattern(text) for text in (*IDENTITY, *fields))


def parse_quantity(text: Any) -> Fraction | None:
    """The exact number of a Kubernetes quantity, None when `text` is none."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    found = QUANTITY.fullmatch(str(text))
    if not found:
        return None
    number, suffix = Fraction(found[1]), found[2] or ""
    if suffix in BINARY_POWERS:
        return number * Fraction(1024 ** BINARY_POWERS[suffix])
    exponent = DECIMAL_EXPONENTS.get(suffix)
    power = int(suffix[1:]) if exponent is None else exponent
    return number * (Fraction(10**power) if power >= 0 else Fraction(1, 10**-power))


def same_for_server(path: Path, old: Value, new: Value) -> bool:
    """Whether a built-in kind's server stores both values as the same: quantities, and empty for absent.

    Source: the real provider normalises built-in kinds through their Go types before it compares them.
    """
    if old is None or new is None:
        given = new if old is None else old
        return given in ({}, [], "") and path != ("metadata", "namespace")
    if len(path) >= 2 and path[-2] in QUANTITY_PARENTS:
        old_number, new_number = parse_quantity(old), parse_quantity(new)
        return old_number is not None and old_number == new_number
    return False


def owned_by_create(managed_fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries that a create or a client-side apply left, which server-side apply takes over."""
    names = (FIELD_MANAGER_PREFIX, "kubectl", "before-first-apply")
    return [
        entry
        for entry in managed_fields
        if entry.get("operation") == "Update"
        and not entry.get("subresource")
        and entry.get("manager", "").startswith(names)
    ]


def taken_over(managed_fields: list[dict[str, Any]], field_manager: str) -> list[dict[str, Any]] | None:
    """The managed fields after `field_manager` has taken over what a create left; None when nothing changes.

    Without it, a field that is removed from the program would stay on the object, as its creator still holds it.
    """
    moving = owned_by_create(managed_fields)
    if not moving:
        return None
    mine: dict[str, Any] = {}
    kept = []
    for entry in managed_fields:
        is_mine = entry.get("manager") == field_manager and entry.get("operation") == "Apply"
        if is_mine and not entry.get("subresource"):
            mine = entry
        elif entry not in moving:
            kept.append(entry)
    owned = mine.get("fieldsV1", {})
    for entry in moving:
        owned = _merged(owned, entry.get("fieldsV1", {}))
    latest = mine or moving[0]
    return [*kept, {**latest, "manager": field_manager, "operation": "Apply", "fieldsV1": owned}]


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for key, value in second.items():
        merged[key] = _merged(merged[key], value) if key in merged else value
    return merged


def parse_wait_for(text: str) -> list[str]:
    """The expressions of a `pulumi.com/waitFor` annotation: one, or a JSON array of them.

    Raises PluginError when there is none, or one has neither prefix.
    """
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    values = parsed if isinstance(parsed, list) and all(isinstance(item, str) for item in parsed) else [text]
    if not values:
        raise PluginError(f"{WAIT_FOR}: at least one condition must be specified; name one or remove the annotation")
    for value in values:
        if not value.startswith(("jsonpath=", "condition=")):
            raise PluginError(f'{WAIT_FOR}: expected a "jsonpath=" or "condition=" prefix, got "{value}"; add it')
    return values
