"""Google's APIs on this machine, as strict as their descriptions, which come with Google's client library.

Every request is held against them: its method and path, its parameters with their types, patterns and allowed values,
its mask of fields, its body; and so is every answer. Whatever does not fit is noted in `wrong`, and answered with 400.
Reads are all that there is. What a project has is in `Project`; errors are given before answers, as many as there are.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

VERSIONS: Final = (
    ("compute", "v1"),
    ("serviceusage", "v1"),
    ("serviceusage", "v1beta1"),
    ("cloudresourcemanager", "v3"),
)
READS: Final = frozenset(
    {"cloudresourcemanager.projects.testIamPermissions", "cloudresourcemanager.projects.getIamPolicy"}
)
"""Methods with a body that change nothing."""


@cache
def description(name: str, version: str) -> dict[str, Any]:
    """The description of an API."""
    documents = resources.files("googleapiclient.discovery_cache").joinpath("documents")
    result: dict[str, Any] = json.loads(documents.joinpath(f"{name}.{version}.json").read_text(encoding="utf-8"))
    return result


class Method(NamedTuple):
    """A method of an API."""

    api: dict[str, Any]
    data: dict[str, Any]
    path: re.Pattern[str]

    @property
    def id(self) -> str:
        return str(self.data["id"])


@cache
def methods() -> list[Method]:
    """Every method of these APIs."""
    return [method for name, version in VERSIONS for method in _methods_in(description(name, version))]


def _methods_in(api: dict[str, Any]) -> Iterator[Method]:
    waiting = [api]
    while waiting:
        here = waiting.pop()
        waiting += here.get("resources", {}).values()
        for data in here.get("methods", {}).values():
            path = f"/{api['name']}/{api['servicePath']}{data['path']}"
            yield Method(api, data, _pattern(path, data.get("parameters", {})))


def _pattern(path: str, parameters: Mapping[str, Any]) -> re.Pattern[str]:
    """What a path looks like; names with slashes are told apart by their form."""
    parts = re.split(r"\{(\+?)(\w+)\}", path)
    result = re.escape(parts[0])
    for slashes, name, rest in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        form = str(parameters[name]["pattern"]).strip("^$") if slashes else "[^/]+"
        result += f"(?P<{name}>{form}){re.escape(rest)}"
    return re.compile(result)


class Failure(NamedTuple):
    """An answer that is an error."""

    status: int
    body: Any
    headers: Mapping[str, str] = {}


@dataclass
class Project:
    """What a project has, in the words of the APIs."""

    id: str = "my-project"
    number: str = "123456789012"
    apis: list[str] = field(default_factory=list)
    quotas: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Limit and usage by metric, of the project."""
    regions: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    """The same by region."""
    region_warnings: dict[str, str] = field(default_factory=dict)
    other_limits: dict[str, list[tuple[dict[str, str], int]]] = field(default_factory=dict)
    """By metric: dimensions and the limit."""
    machine_types: dict[str, list[str]] = field(default_factory=dict)
    """By zone."""
    accelerators: dict[str, list[str]] = field(default_factory=dict)
    reservations: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By zone; those of other projects have their project in `selfLink`."""
    networks: list[str] = field(default_factory=list)
    subnetworks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By region."""
    policies: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Members by role, of other projects and subnets by name."""
    permissions: list[str] = field(default_factory=list)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    """Errors by method, each given once."""
    page_size: int = 2
    """Entries in a page, however many are asked for."""
    unreachable: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """What in requests, or in answers, does not fit the descriptions."""
    calls: list[str] = field(default_factory=list)
    """The methods that were called."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of each request, in small letters."""

    @contextmanager
    def served(self) -> Iterator[dict[str, str]]:
        """The address of each API, as long as the block runs."""
        project = self

        class Handler(BaseHTTPRequestHandler):
            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                pass

        for verb in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            setattr(Handler, f"do_{verb}", lambda request: _answer(project, request))
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            host = f"http://127.0.0.1:{server.server_port}"
            yield {name: f"{host}/{name}/{description(name, version)['servicePath']}" for name, version in VERSIONS}
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _answer(project: Project, request: BaseHTTPRequestHandler) -> None:
    length = int(request.headers.get("Content-Length") or 0)
    body = json.loads(request.rfile.read(length)) if length else None
    url = urlsplit(request.path)
    project.headers.append({name.lower(): value for name, value in request.headers.items()})
    failure = _checked(project, request.command, url.path, parse_qsl(url.query, keep_blank_values=True), body)
    if isinstance(failure, Failure):
        status, answer, headers = failure
    else:
        status, answer, headers = 200, failure, {}
    text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
    request.send_response(status)
    for name, value in {"Content-Type": "application/json", **headers, "Content-Length": str(len(text))}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(text)


def _checked(project: Project, verb: str, path: str, query: list[tuple[str, str]], body: Any) -> Any:
    results = [(method, match) for method in methods() if (match := method.path.fullmatch(path))]
    results = [(method, match) for method, match in results if method.data["httpMethod"] == verb]
    if not results:
        project.wrong.append(f"{verb} {path}: there is no such method")
        return Failure(400, _error(400, "no such method"))
    method, match = results[0]
    values = {name: unquote(value) for name, value in match.groupdict().items()}
    problems = [*_wrong_parameters(method, values, query), *_wrong_body(method, body)]
    if verb != "GET" and method.id not in READS:
        problems.append("it changes something")
    project.calls.append(method.id)
    if problems:
        project.wrong += [f"{method.id}: {problem}" for problem in problems]
        return Failure(400, _error(400, "; ".join(problems)))
    if project.failures.get(method.id):
        return project.failures[method.id].pop(0)
    result = _ANSWERS[method.id](project, {**values, **dict(query)}, body)
    if not isinstance(result, Failure):
        schema = {"$ref": method.data["response"]["$ref"]}
        project.wrong += [f"answer of {method.id}: {item}" for item in _misfits(method.api, schema, result, "")]
    return result


def _wrong_parameters(method: Method, values: dict[str, str], query: list[tuple[str, str]]) -> Iterator[str]:
    known = {**method.api["parameters"], **method.data.get("parameters", {})}
    given = [*values.items(), *query]
    for name, value in given:
        parameter = known.get(name)
        if parameter is None:
            yield f"there is no parameter {name}"
            continue
        if parameter["type"] == "integer" and not re.fullmatch(r"-?\d+", value):
            yield f"{name} is not a number: {value}"
        if "enum" in parameter and value not in parameter["enum"]:
            yield f"{name} is none of {parameter['enum']}: {value}"
        if "pattern" in parameter and not re.fullmatch(parameter["pattern"].strip("^$"), value):
            yield f"{name} is not of the form {parameter['pattern']}: {value}"
        if not parameter.get("repeated") and [item for item, _ in given].count(name) > 1:
            yield f"{name} is given twice"
    names = {name for name, _ in given}
    yield from (f"{name} is missing" for name, entry in known.items() if entry.get("required") and name not in names)
    for name, value in query:
        if name == "fields":
            yield from _wrong_fields(method.api, {"$ref": method.data["response"]["$ref"]}, value)


def _wrong_fields(api: dict[str, Any], schema: dict[str, Any], mask: str) -> Iterator[str]:
    """Fields of a mask such as `items(name,quotas),nextPageToken` that answers do not have."""
    for name, inner in re.findall(r"([^,()]+)(?:\(([^()]*)\))?", mask):
        properties = _properties(api, schema)
        if name not in properties:
            yield f"fields: answers have no {name}"
        elif inner:
            of_items = properties[name].get("items", properties[name])
            yield from _wrong_fields(api, of_items, inner)


def _wrong_body(method: Method, body: Any) -> Iterator[str]:
    expected = method.data.get("request")
    if (expected is None) != (body is None):
        yield "has a body" if expected is None else "has no body"
    elif expected is not None:
        yield from _misfits(method.api, {"$ref": expected["$ref"]}, body, "body")


def _properties(api: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = api["schemas"][schema["$ref"]] if "$ref" in schema else schema
    return dict(result.get("properties", {}))


_PYTHON: Final[dict[str, Any]] = {
    "any": object,
    "array": list,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "string": str,
}


def _misfits(api: dict[str, Any], schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    """Where VALUE is not what SCHEMA says."""
    if "$ref" in schema:
        schema = api["schemas"][schema["$ref"]]
    kind = schema.get("type", "any")
    if not isinstance(value, _PYTHON[kind]) or (isinstance(value, bool) and kind in ("integer", "number")):
        yield f"{path}: is not {kind}: {value!r}"
    elif kind == "string" and "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value} is none of the allowed values"
    elif kind == "string" and schema.get("format") in ("int64", "uint64") and not re.fullmatch(r"-?\d+", value):
        yield f"{path}: is not a number in a string: {value}"
    elif kind == "array":
        for index, item in enumerate(value):
            yield from _misfits(api, schema["items"], item, f"{path}[{index}]")
    elif kind == "object":
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is None:
                yield f"{path}.{name}: there is no such field"
            else:
                yield from _misfits(api, inner, item, f"{path}.{name}")


def _error(code: int, message: str, reason: str = "badRequest") -> dict[str, Any]:
    errors = [{"message": message, "domain": "global", "reason": reason}]
    return {"error": {"code": code, "message": message, "errors": errors}}


def not_found(what: str) -> Failure:
    """As Compute Engine answers."""
    return Failure(404, _error(404, f"The resource '{what}' was not found", "notFound"))


def forbidden(permission: str, project: str = "my-project") -> Failure:
    """As Compute Engine answers whoever lacks a permission."""
    return Failure(403, _error(403, f"Required '{permission}' permission for 'projects/{project}'", "forbidden"))


def disabled(api: str, number: str = "123456789012") -> Failure:
    """As every API answers that is not enabled."""
    message = (
        f"{api} has not been used in project {number} before or it is disabled. Enable it by visiting "
        f"https://console.developers.google.com/apis/api/{api}/overview?project={number} then retry."
    )
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "SERVICE_DISABLED",
        "domain": "googleapis.com",
        "metadata": {"service": api, "consumer": f"projects/{number}"},
    }
    return Failure(403, {"error": {"code": 403, "message": message, "status": "PERMISSION_DENIED", "details": [info]}})


def too_many(seconds: int | None = None) -> Failure:
    """As Google answers too many requests."""
    message = "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute' of service."
    body = {"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED"}}
    return Failure(429, body, {} if seconds is None else {"Retry-After": str(seconds)})


def unavailable() -> Failure:
    """As a front end of Google's answers when what is behind it does not."""
    return Failure(503, "<html><title>Error 503 (Service Unavailable)!!1</title></html>", {"Content-Type": "text/html"})


def _paged(project: Project, query: Mapping[str, str], entries: list[Any]) -> tuple[list[Any], dict[str, str]]:
    start = int(query.get("pageToken", "0"))
    end = start + project.page_size
    return entries[start:end], {"nextPageToken": str(end)} if end < len(entries) else {}


def _quotas(quotas: Mapping[str, tuple[float, float]]) -> list[dict[str, Any]]:
    return [{"metric": name, "limit": limit, "usage": usage} for name, (limit, usage) in quotas.items()]


def _get_project(project: Project, query: Mapping[str, str], body: Any) -> Any:
    return {"quotas": _quotas(project.quotas)} if query["project"] == project.id else not_found(query["project"])


def _list_regions(project: Project, query: Mapping[str, str], body: Any) -> Any:
    regions = []
    for name, quotas in project.regions.items():
        region: dict[str, Any] = {"name": name, "quotas": _quotas(quotas)}
        if name in project.region_warnings:
            message = project.region_warnings[name]
            region = {"name": name, "quotaStatusWarning": {"code": "UNREACHABLE", "message": message}}
        regions.append(region)
    items, more = _paged(project, query, regions)
    return {"items": items, **more}


def _aggregated(kind: str, scope: str) -> Callable[[Project, Mapping[str, str], Any], Any]:
    def answer(project: Project, query: Mapping[str, str], body: Any) -> Any:
        expected = re.findall(r'\(name = "([^"]+)"\)', query.get("filter", ""))
        if "filter" in query and " OR ".join(f'(name = "{name}")' for name in expected) != query["filter"]:
            return Failure(400, _error(400, f"Invalid value for field 'filter': '{query['filter']}'", "invalid"))
        result = []
        for place, names in getattr(project, _FIELDS[kind]).items():
            of = [item if isinstance(item, dict) else {"name": item, "zone": place} for item in names]
            results = [each for each in of if not expected or each["name"] in expected]
            results = [entry for entry in results if _project_of(entry, project.id) == query["project"]]
            warning = {"code": "NO_RESULTS_ON_PAGE", "message": f"There are no results for scope '{scope}/{place}'."}
            result.append((f"{scope}/{place}", {kind: results} if results else {"warning": warning}))
        items, more = _paged(project, query, result)
        unreachable = {"unreachables": project.unreachable} if project.unreachable else {}
        return {"items": dict(items), **more, **unreachable}

    return answer


_FIELDS: Final = {
    "machineTypes": "machine_types",
    "acceleratorTypes": "accelerators",
    "reservations": "reservations",
    "subnetworks": "subnetworks",
}


def _project_of(resource: Mapping[str, Any], otherwise: str) -> str:
    result = re.search(r"/projects/([^/]+)/", str(resource.get("selfLink", "")))
    return result[1] if result else otherwise


def _get_network(project: Project, query: Mapping[str, str], body: Any) -> Any:
    name = query["network"]
    missing = not_found(f"projects/{project.id}/global/networks/{name}")
    return {"name": name} if name in project.networks else missing


def _list_services(project: Project, query: Mapping[str, str], body: Any) -> Any:
    names = [{"name": f"projects/{project.number}/services/{api}"} for api in project.apis]
    services, more = _paged(project, query, names)
    return {"services": services, **more}


def _list_limits(project: Project, query: Mapping[str, str], body: Any) -> Any:
    parent = f"projects/{project.number}/services/compute.googleapis.com"
    result = []
    for metric, buckets in project.other_limits.items():
        dimensions = {name for results, _ in buckets for name in results}
        unit = "/".join(["1", "{project}", *(f"{{{name}}}" for name in sorted(dimensions & {"region", "zone"}))])
        limit = {
            "name": f"{parent}/consumerQuotaMetrics/{metric}/limits/x",
            "unit": unit,
            "metric": f"compute.googleapis.com/{metric}",
            "quotaBuckets": [
                {"effectiveLimit": str(value), "defaultLimit": "0", **({"dimensions": found} if found else {})}
                for found, value in buckets
            ],
        }
        result.append({"metric": f"compute.googleapis.com/{metric}", "consumerQuotaLimits": [limit]})
    metrics, more = _paged(project, query, result)
    return {"metrics": metrics, **more}


def _test_permissions(project: Project, query: Mapping[str, str], body: Any) -> Any:
    asked = body["permissions"]
    if len(asked) > 100:
        return Failure(400, _error(400, "The number of permissions must be at most 100", "badRequest"))
    held = [name for name in asked if name in project.permissions]
    return {"permissions": held} if held else {}


def _get_number(project: Project, query: Mapping[str, str], body: Any) -> Any:
    return {"name": f"projects/{project.number}"}


def _get_policy(project: Project, query: Mapping[str, str], body: Any) -> Any:
    granted = project.policies.get(query["resource"].removeprefix("projects/"), {})
    return {"bindings": [{"role": role, "members": members} for role, members in granted.items()]}


_ANSWERS: Final[dict[str, Callable[[Project, Mapping[str, str], Any], Any]]] = {
    "compute.projects.get": _get_project,
    "compute.regions.list": _list_regions,
    "compute.machineTypes.aggregatedList": _aggregated("machineTypes", "zones"),
    "compute.acceleratorTypes.aggregatedList": _aggregated("acceleratorTypes", "zones"),
    "compute.reservations.aggregatedList": _aggregated("reservations", "zones"),
    "compute.subnetworks.aggregatedList": _aggregated("subnetworks", "regions"),
    "compute.networks.get": _get_network,
    "serviceusage.services.list": _list_services,
    "serviceusage.services.consumerQuotaMetrics.list": _list_limits,
    "cloudresourcemanager.projects.testIamPermissions": _test_permissions,
    "cloudresourcemanager.projects.get": _get_number,
    "cloudresourcemanager.projects.getIamPolicy": _get_policy,
    "compute.subnetworks.getIamPolicy": _get_policy,
}
