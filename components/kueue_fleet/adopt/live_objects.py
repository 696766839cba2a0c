"""Kueue's objects as the fleet file has them: sorted by kind, in v1beta2, without what the server added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kueue_admission.api import PriorityClassFields, WorkloadPriorityClassFields
from kueue_admission.api.check_objects import SPECS, SYSTEM_PRIORITIES
from kueue_admission.api.conversion import is_former, spec_as_v1beta2
from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.manifest import is_live
from kueue_admission.kernel.names import KUEUE_API, KUEUE_GROUP
from kueue_admission.kernel.problem import Problem, SpecError
from kueue_admission.kernel.read_model import read_stored
from kueue_fleet.fleet_file.form import read_form
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.kueue_pods import KUEUE_PRIORITY_CLASS
from kueue_fleet.fleet_file.rules.commands import IMPORT_FORM

Data = dict[str, Any]
"""A part of a fleet file as plain data."""
Object = Mapping[str, Any]
"""An object of Kubernetes, or what gcloud prints of something, as plain data."""
Key = tuple[str, str, str, str]
"""API group, kind, namespace and name of an object."""

MODELS: Final[Mapping[str, type[SpecModel]]] = {
    **SPECS,
    "PriorityClass": PriorityClassFields,
    "WorkloadPriorityClass": WorkloadPriorityClassFields,
}
"""What a fleet file has entries for, by kind: the model of the spec, of priority classes that of their fields."""
_FIX: Final = "give what `kubectl get -o yaml` prints"
# Kubernetes' own classes, and the one that a fleet makes along with Kueue.
_SYSTEM_PRIORITIES: Final = (SYSTEM_PRIORITIES, KUEUE_PRIORITY_CLASS)


@dataclass(slots=True)
class ClusterObjects:
    """The objects of a cluster that have a place in a fleet file."""

    specs: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """kind → name → spec (of priority classes: their fields)."""
    local_queues: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """(namespace, name) → spec."""
    namespaces: dict[str, Object] = field(default_factory=dict)
    """name → labels."""
    others: list[Object] = field(default_factory=list)
    """Objects of other kinds, as they were given."""
    given: dict[Key, Object] = field(default_factory=dict)
    """Every object, as it was given."""
    notes: list[str] = field(default_factory=list)
    """What a live object has that cannot be read, and is left out."""

    def content(self, key: Key) -> Object:
        """An object that was given, its spec as Kueue 0.19 has it."""
        group, kind, namespace, name = key
        item = self.given[key]
        if group != KUEUE_GROUP:
            return item
        spec = self.local_queues[namespace, name] if kind == "LocalQueue" else self.of(kind)[name]
        return {**item, **(spec if kind == "WorkloadPriorityClass" else {"spec": spec})}

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        """The objects of a kind."""
        return self.specs.get(kind, {})


def key_of(item: Object) -> Key:
    """What an object is known by."""
    metadata = item["metadata"]
    group = str(item.get("apiVersion", "")).rpartition("/")[0]
    kind, namespace = str(item["kind"]), str(metadata.get("namespace") or "")
    if group == KUEUE_GROUP and kind in MODELS:
        # kubectl puts a LocalQueue into `default` where its file names no namespace; the other kinds are in none.
        namespace = (namespace or "default") if kind == "LocalQueue" else ""
    return group, kind, namespace, str(metadata["name"])


def sort_objects(objects: Iterable[Object], where: str) -> tuple[ClusterObjects, list[Problem]]:
    """The objects of one cluster by kind, and what is wrong with them; `where` begins the problems' paths."""
    cluster_objects = ClusterObjects()
    problems: list[Problem] = []
    for number, item in enumerate(_flat(objects)):
        if malformed := _malformed(item, number):
            cluster_objects.notes.append(malformed)
            continue
        wrong = list(_take(cluster_objects, item))
        problems += [problem.at(where) for problem in wrong]
        if not wrong:
            cluster_objects.given[key_of(item)] = item
    return cluster_objects, problems


def _malformed(item: Object, number: int) -> str:
    """Why an object is left out that no API server has, by its name or the form of its fields; else empty."""
    kind, metadata = item.get("kind"), item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(kind, str) or not isinstance(metadata, Mapping) or not isinstance(name, str) or not name:
        what = kind if isinstance(kind, str) else "object"
        return f"{what} at place {number} left out: is not a Kubernetes object with a kind and a name; {_FIX}"
    fields = [field for field, form in _FORMS.items() if not form(item.get(field))]
    fields += [f"metadata.{field}" for field in ("labels", "annotations") if not _is_text_map(metadata.get(field))]
    wrong = f"has {listed(fields)} of another form than Kubernetes gives it; {_FIX}"
    return f"{kind} {name} left out: {wrong}" if fields else ""


def _flat(objects: Iterable[Object]) -> Iterator[Object]:
    for item in objects:
        if str(item.get("kind", "")).endswith("List") and isinstance(item.get("items"), list):
            yield from _flat(item["items"])
        else:
            yield item


def _take(cluster_objects: ClusterObjects, item: Object) -> Iterator[Problem]:
    kind, metadata, name = item["kind"], item["metadata"], item["metadata"]["name"]
    group = str(item.get("apiVersion", "")).rpartition("/")[0]
    key = key_of(item)
    known_object = cluster_objects.given.get(key)
    if known_object is not None and (known_object != item or kind in MODELS):
        subject = f"{kind} {key[2]}/{name}" if key[2] else f"{kind} {name}"
        yield IMPORT_FORM.at(subject, "is given twice", "give the objects of one cluster only, each once")
    elif known_object is not None:
        return
    elif kind == "Namespace" and not group:
        cluster_objects.namespaces[name] = dict(metadata.get("labels") or {})
    elif kind == "PriorityClass" and group == "scheduling.k8s.io":
        if not name.startswith(_SYSTEM_PRIORITIES):
            yield from _add(cluster_objects, kind, name, top_level(item))
    elif group != KUEUE_GROUP or kind not in MODELS:
        cluster_objects.others.append(item)
    elif item["apiVersion"] != KUEUE_API and not is_former(item):
        yield IMPORT_FORM.at(f"{kind} {name}.apiVersion", f"{item['apiVersion']} is not known", "give v1beta2 objects")
    else:
        spec = top_level(item) if kind == "WorkloadPriorityClass" else _clean(item.get("spec") or {})
        spec = spec_as_v1beta2(kind, spec) if is_former(item) else spec
        yield from _add(cluster_objects, kind, name, spec, key[2] if kind == "LocalQueue" else None, live=is_live(item))


def _add(
    cluster_objects: ClusterObjects,
    kind: str,
    name: str,
    spec: dict[str, Any],
    namespace: str | None = None,
    *,
    live: bool = True,
) -> Iterator[Problem]:
    """Of what a cluster has, fields that are not known, and objects that cannot be read, are left out."""
    _, wrong = read_form(MODELS[kind], spec)
    wrong = [problem.at(f"{kind} {name}{'.spec' if kind in SPECS else ''}") for problem in wrong]
    if wrong and live:
        cluster_objects.notes += [f"{problem.path} left out: {problem.wrong}" for problem in wrong]
        try:
            spec = read_stored(MODELS[kind], spec).wire()
        except SpecError:
            return
    elif wrong:
        yield from wrong
        return
    if namespace is not None:
        cluster_objects.local_queues[namespace, name] = spec
    else:
        cluster_objects.specs.setdefault(kind, {})[name] = spec


def _is_text_map(value: Any) -> bool:
    return value is None or (isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()))


def _is_map(value: Any) -> bool:
    return value is None or isinstance(value, Mapping)


def _is_list_of_maps(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(item, Mapping) for item in value))


_FORMS: Final = {"data": _is_text_map, "spec": _is_map, "rules": _is_list_of_maps, "subjects": _is_list_of_maps}


def top_level(item: Object) -> dict[str, Any]:
    """The fields of an object that has no spec."""
    return {key: value for key, value in item.items() if key not in ("apiVersion", "kind", "metadata", "status")}


def _clean(value: Any) -> Any:
    """Without nulls, which a server writes for what is not there."""
    if isinstance(value, Mapping):
        return {key: _clean(item) for key, item in value.items() if item is not None}
    return [_clean(item) for item in value] if isinstance(value, list) else value
