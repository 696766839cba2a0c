"""Pydantic's findings in plain words.

Unknown fields name the nearest known one; fields that Kueue's v1beta1 had name what replaced them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kueue_admission.forms import suggest
from kueue_admission.forms.problem import Problem, join_path
from kueue_admission.forms.schema_path import fields_of, is_model, model_at, readable, tags_of

REPLACED: Final[Mapping[str, Mapping[str, str]]] = {
    "ClusterQueueSpec": {
        "cohort": "cohortName",
        "admissionChecks": "admissionChecksStrategy.admissionChecks, a list of {name, onFlavors}",
    },
    "CohortSpec": {"parent": "parentName"},
    "ResourceFlavorSpec": {"topology": "topologyName"},
    "AdmissionCheckSpec": {"retryDelayMinutes": ""},
    "AdmissionCheckEntry": {"retryDelayMinutes": ""},
    "MultiKueueClusterSpec": {"kubeConfig": "clusterSource.kubeConfig"},
    "WaitForPodsReady": {"enable": ""},
    "FairSharingConfiguration": {"enable": ""},
    "KueueConfiguration": {"queueVisibility": ""},
    "Integrations": {"podOptions": "managedJobsNamespaceSelector of the Configuration"},
}
"""Fields of v1beta1 that are gone, by model; what replaces them, or nothing."""

HINTS: Final[Mapping[str, str]] = {
    "project": "add the id of your Google Cloud project",
    "clusters": "add a manager and its workers, or one cluster of role standalone",
    "role": "add role: manager, worker or standalone",
    "region": "add a region of Google Cloud, such as region: europe-west4",
    "nominalQuota": "add how much of the resource the queue may use",
    "coveredResources": "list the resources that the flavors below have quotas for",
    "credentials": "add credentials: {type: ServiceAccountToken, rotation: ..., rotateBy: ...}",
    "rotation": 'add a serial for the token, such as rotation: "2026-11"',
    "clusterQueue": "add the name of the ClusterQueue behind it",
}
"""What to do about a required field that is missing, where its name does not say."""
_GONE: Final = {
    "AdmissionCheckSpec": "remove it: the check's controller sets the delay",
    "AdmissionCheckEntry": "remove it: the check's controller sets the delay",
    "WaitForPodsReady": "remove it: it is on unless feature gate DisableWaitForPodsReady is",
    "FairSharingConfiguration": "remove it: the section being there turns fair sharing on",
    "KueueConfiguration": "remove it: the visibility API lists pending workloads on demand",
}
_REPLACED_VALUES: Final = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}


def errors_in(error: ValidationError) -> list[ErrorDetails]:
    """The errors of pydantic that are about the data.

    Items that cannot be read do not count as items, so a list can be reported as too short only because of them.
    """
    return [
        detail
        for detail in error.errors(include_url=False)
        if not (detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"])
    ]


def explain(error: ErrorDetails, model: type[BaseModel], data: Any) -> list[Problem]:
    """The problems that `error`, found while reading `data` as `model`, stands for."""
    kind, location, value = error["type"], error["loc"], error["input"]
    context = error.get("ctx") or {}
    path = readable(model, location, data)
    if kind == "rules":
        return [problem.at(path) for problem in context["problems"]]
    if kind == "extra_forbidden":
        return [unknown_field(path, str(location[-1]), model_at(model, location[:-1], data))]
    if kind == "missing":
        return [Problem(path, "is missing", HINTS.get(str(location[-1]), f"add {location[-1]}"))]
    if location and location[-1] == "[key]":
        wrong, fix = _wording(kind, location[-2], context, error["msg"])
        return [Problem(readable(model, location[:-2], data), f"the key {_shown(location[-2])} {wrong}", fix)]
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return [_wrong_tag(path, value, model_at(model, location, data))]
    if kind in ("too_long", "too_short"):
        most, least, count = context.get("max_length"), context.get("min_length"), len(value)
        fix = f"use at most {most}" if kind == "too_long" else f"list at least {least}"
        return [Problem(path, f"{count or 'no'} items", fix)]
    wrong, fix = _wording(kind, value, context, error["msg"])
    return [Problem(path, f"{_shown(value)} {wrong}", fix)]


def _wrong_tag(path: str, value: Any, members: Sequence[type[BaseModel]]) -> Problem:
    """The problem of a union of MEMBERS at `path` whose `type` says of none of them."""
    fields = value if isinstance(value, Mapping) else {}
    if "type" not in fields:
        for name in map(str, fields):
            if guessed(name, members[0]) == "type":
                return unknown_field(join_path(path, name), name, members[0])
    at, tags = join_path(path, "type"), ", ".join(tag for member in members for tag in tags_of(member))
    given = fields.get("type")
    if given is None:
        return Problem(at, "is missing", f"set it to one of {tags}")
    wrong, fix = _not_one_of(given, tags)
    return Problem(at, f"{_shown(given)} {wrong}", fix)


def unknown_field(path: str, name: str, model: Any) -> Problem:
    """The problem of a field that `model` does not have."""
    for base in model.__mro__ if is_model(model) else ():
        if name in REPLACED.get(base.__name__, {}):
            instead = REPLACED[base.__name__][name]
            fix = f"write {instead}" if instead else _GONE[base.__name__]
            return Problem(path, "was removed in Kueue's v1beta2", fix)
    known = sorted(fields_of(model)) if is_model(model) else []
    field, colon, value = name.partition(":")
    if colon and field in known:
        return Problem(path, "is not a known field", f"put a space after the colon: {field}: {value}")
    near = suggest.nearest(name, known)
    if near:
        return Problem(path, "is not a known field", f"did you mean {near}?")
    return Problem(
        path, "is not a known field", f"remove it, or use one of {', '.join(known)}" if known else "remove it"
    )


def respelt(name: str, model: Any) -> str | None:
    """The field that the unknown field `name` is beyond doubt: written otherwise, or as in Kueue's v1beta1."""
    fields = fields_of(model) if is_model(model) else {}
    old = [REPLACED.get(base.__name__, {}).get(name) for base in model.__mro__] if fields else []
    return next((field for field in fields if field in old or suggest.plain(field) == suggest.plain(name)), None)


def guessed(name: str, model: Any) -> str | None:
    """The field that the unknown field `name` may have been meant for."""
    return suggest.nearest(name, fields_of(model)) if is_model(model) else None


def _shown(value: Any) -> str:
    """The offending value, short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = str(value) if len(str(value)) <= 80 else f"{str(value)[:77]}..."
    return f'"{text}"' if isinstance(value, str) else text


def _wording(kind: str, value: Any, context: Mapping[str, Any], message: str) -> tuple[str, str]:
    if value is None:
        return "is given where a value is needed", "write a value, or remove the line"
    if kind in ("syntax", "quantity", "duration"):
        return _split(str(context.get("reason", message)))
    if kind == "literal_error":
        return _not_one_of(value, str(context["expected"]))
    if kind in _TYPES:
        return _wrong_type(kind, value)
    if kind == "string_too_short" and not value:
        return "is empty", "write a value"
    if kind in _LIMITS:
        template, fix = _LIMITS[kind]
        return template, fix.format(**context)
    return f"is refused ({message})", "correct it"


def _split(reason: str) -> tuple[str, str]:
    wrong, _, fix = reason.partition("; ")
    return wrong, fix or "write fewer digits"


def _not_one_of(value: Any, expected: str) -> tuple[str, str]:
    allowed = [item.strip().strip("'") for item in expected.replace(" or ", ", ").split(",")]
    if isinstance(value, str) and _REPLACED_VALUES.get(value) in allowed:
        return "was removed in Kueue's v1beta2", f"write {_REPLACED_VALUES[value]}"
    near = suggest.nearest(value, allowed) if isinstance(value, str) else None
    listed = ", ".join(allowed)
    return "is not allowed", f"did you mean {near}? Allowed: {listed}" if near else f"use one of {listed}"


_TYPES: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "dict_type": "a map",
    "mapping_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "date_type": "a date",
    "date_parsing": "a date",
    "date_from_datetime_parsing": "a date",
    "date_from_datetime_inexact": "a date",
    "invalid_key": "text as key",
}

_LIMITS: Final = {
    "string_too_long": ("is too long", "use at most {max_length} characters"),
    "string_too_short": ("is too short", "use at least {min_length} characters"),
    "greater_than_equal": ("is too small", "use at least {ge}"),
    "less_than_equal": ("is too large", "use at most {le}"),
    "greater_than": ("is too small", "use more than {gt}"),
    "less_than": ("is too large", "use less than {lt}"),
}


def _wrong_type(kind: str, value: Any) -> tuple[str, str]:
    wanted = _TYPES[kind]
    wrong = f"is given where {wanted} is needed"
    if wanted == "text" and isinstance(value, (int, float)):
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        return wrong, f'put it in quotes: "{shown}"'
    if wanted == "a whole number" and isinstance(value, str) and value.lstrip("+-").isdigit():
        return wrong, f"remove the quotes: {value}"
    if wanted == "true or false":
        return wrong, "write true or false, without quotes"
    if wanted == "a list":
        return wrong, "write each item on its own line, beginning with '- '"
    if wanted == "a map":
        return wrong, "write its fields as 'name: value', one on each line"
    if wanted == "a date":
        return wrong, "write it as year-month-day, such as 2027-02-01"
    return wrong, f"write {wanted}"
