"""The tables of one minor release, read from the source of Kueue's modules.

Go is read by its lines: gofmt gives them one form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

Rows = list[dict[str, str]]

GATES: Final = "pkg/features/kube_features.go"
_VALIDATION: Final = "pkg/config/validation.go"
_DEFAULTS: Final = "apis/config/v1beta2/defaults.go"
_CRDS: Final = "config/components/crd/bases"
_MODULES: Final = {
    "batch/job": "k8s.io/api",
    "jobset.x-k8s.io/jobset": "sigs.k8s.io/jobset",
    "kubeflow.org/jaxjob": "github.com/kubeflow/training-operator",
    "kubeflow.org/mpijob": "github.com/kubeflow/mpi-operator",
    "kubeflow.org/paddlejob": "github.com/kubeflow/training-operator",
    "kubeflow.org/pytorchjob": "github.com/kubeflow/training-operator",
    "kubeflow.org/tfjob": "github.com/kubeflow/training-operator",
    "kubeflow.org/xgboostjob": "github.com/kubeflow/training-operator",
    "leaderworkerset.x-k8s.io/leaderworkerset": "sigs.k8s.io/lws",
    "ray.io/raycluster": "github.com/ray-project/kuberay/ray-operator",
    "ray.io/rayjob": "github.com/ray-project/kuberay/ray-operator",
    "ray.io/rayservice": "github.com/ray-project/kuberay/ray-operator",
    "sparkoperator.k8s.io/sparkapplication": "github.com/kubeflow/spark-operator/v2",
    "trainer.kubeflow.org/trainjob": "github.com/kubeflow/trainer/v2",
    "workload.codeflare.dev/appwrapper": "github.com/project-codeflare/appwrapper",
}
"""The Go module that has the kind of each framework; kinds of Kubernetes' `apps` and `pod` need none."""


class Table(NamedTuple):
    """One file of a release."""

    keys: tuple[str, ...]
    """Columns that tell a row from the others; further ones are what is known of it."""
    sources: str
    read: Callable[[Path], Rows]


def rows(table: Table, modules: Mapping[str, Path]) -> Rows:
    """The rows of `table` in the newest of `modules`, which are those of one minor release by version, oldest first.

    `since` is the version that has the row first; empty: the oldest one that was read has it.
    """
    versions = list(modules)
    has = {version: {_key(table, row) for row in table.read(modules[version])} for version in versions}
    result = table.read(modules[versions[-1]])
    for row in result:
        first = next(version for version in versions if _key(table, row) in has[version])
        row["since"] = "" if first == versions[0] else first
    return result


def changes(table: Table, old: Rows, new: Rows) -> Iterator[str]:
    """What is different between two releases, a line for each row."""
    before, after = ({_key(table, row): row for row in item} for item in (old, new))
    for key in before.keys() - after.keys():
        yield f"{' '.join(key)}: gone"
    for key in after.keys() - before.keys():
        yield f"{' '.join(key)}: new {_known(table, after[key])}".rstrip()
    for key in before.keys() & after.keys():
        was, now = _known(table, before[key]), _known(table, after[key])
        if was != now:
            yield f"{' '.join(key)}: {was or 'nothing'} -> {now or 'nothing'}"


def _key(table: Table, row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[key] for key in table.keys)


def _known(table: Table, row: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items() if value and name not in (*table.keys, "since"))


def gates(module: Path) -> Rows:
    """The gates, as the last of their specs has them: Kueue does not emulate older versions."""
    text = (module / GATES).read_text()
    names = dict(re.findall(r"^\t(\w+) +featuregate\.Feature = \"(\w+)\"", text, re.M))
    needs = _needs(text, (module / _VALIDATION).read_text())
    result = [
        {"gate": name, "stage": "", "default": "false", "locked": "", "needs": ""} for name in ("AllAlpha", "AllBeta")
    ]
    for constant, specs in re.findall(r"^\t(\w+): \{\n((?:\t\t\{Version.*\n|\t\t//.*\n)+)\t\}", text, re.M):
        last = [line for line in specs.splitlines() if "Version:" in line][-1]
        stage, default = re.search(r"featuregate\.(\w+)", last), re.search(r"Default: (\w+)", last)
        assert stage, last
        assert default, last
        result.append(
            {
                "gate": names[constant],
                "stage": stage[1],
                "default": default[1],
                "locked": "true" if "LockToDefault: true" in last else "",
                "needs": " ".join(needs.get(names[constant], ())),
            }
        )
    missing = set(names.values()) - {row["gate"] for row in result}
    assert not missing, missing
    return sorted(result, key=lambda row: row["gate"])


def _needs(features: str, validation: str) -> dict[str, list[str]]:
    """Gates that mean nothing without others, in each form in which a release says so."""
    pairs: list[tuple[str, str]] = []
    for gate, others in re.findall(r"validateFeatureGateDependency\(features\.(\w+), (.*?)\)\.\.\.", validation):
        pairs += [(gate, other) for other in re.findall(r"features\.(\w+)", others)]
    pairs += re.findall(r'"(\w+) requires (\w+) to be enabled"', validation)
    off = r"!features\.Enabled\(features\.(\w+)\) && features\.Enabled\(features\.(\w+)\)"
    pairs += [(gate, other) for other, gate in re.findall(off, validation)]
    profiles = re.search(r"TASProfilesEnabled := \[\]bool\{(.*)\}", validation)
    pairs += [
        (gate, "TopologyAwareScheduling") for gate in re.findall(r"features\.(TAS\w+)", profiles[1] if profiles else "")
    ]
    listed = re.search(r"^var defaultFeatureGateDependencies = .*?\{\n(.*?)^\}", features, re.M | re.S)
    for gate, others in re.findall(r"^\t(\w+): +\{(.*)\}", listed[1] if listed else "", re.M):
        pairs += [(gate, other) for other in others.split(", ")]
    result: dict[str, list[str]] = {}
    for gate, other in dict.fromkeys(pairs):
        result.setdefault(gate, []).append(other)
    return result


def fields(module: Path) -> Rows:
    """Every field of Kueue's objects and of its Configuration, in each version that is served."""
    result: Rows = []
    for file in sorted((module / _CRDS).glob("*.yaml")):
        crd = yaml.safe_load(file.read_text())["spec"]
        for version in crd["versions"]:
            schema = version["schema"]["openAPIV3Schema"]["properties"]
            rows = [
                row for part in ("spec", "status", "value") if part in schema for row in _schema(part, schema[part])
            ]
            result += [
                {"of": crd["names"]["kind"], "version": version["name"], "field": path, "values": values}
                for path, values in rows
            ]
    for folder in sorted((module / "apis/config").glob("v1*")):
        structs = _structs("\n".join(file.read_text() for file in sorted(folder.glob("*_types.go"))))
        result += [
            {"of": "Configuration", "version": folder.name, "field": path, "values": ""}
            for path in _of_struct("", "Configuration", structs)
        ]
    return result


def _schema(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The path of each field, with the values that it may have; what Kubernetes defines is not looked into."""
    if schema.get("type") == "array":
        path, schema = f"{path}[]", schema["items"]
    yield path, " ".join(str(item) for item in schema.get("enum", ()))
    inner = schema.get("properties", {})
    if path.endswith((".template", ".conditions[]")) or {"matchExpressions", "matchLabels"} <= set(inner):
        return
    for name in sorted(inner):
        yield from _schema(f"{path}.{name}", inner[name])


def _structs(text: str) -> dict[str, list[tuple[str, str]]]:
    """The fields of each struct: name in JSON, none for an embedded one, and type."""
    result = {}
    for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S):
        tagged = re.findall(r"^\t(?:\w+ +)?(\S+) +`json:\"([\w-]*)[\",]", body, re.M)
        result[name] = [(json, kind) for kind, json in tagged]
    return result


def _of_struct(above: str, struct: str, structs: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[str]:
    for name, kind in structs[struct]:
        inner = kind.removeprefix("*").removeprefix("[]").removeprefix("*")
        path = f"{above}.{name}" if above and name else above or name
        path += "[]" if name and kind.removeprefix("*").startswith("[]") else ""
        if name:
            yield path
        if inner in structs:
            yield from _of_struct(path, inner, structs)


def defaults(module: Path) -> Rows:
    """What Kueue sets in its Configuration where that says nothing, and in sections where they are there.

    What only Go can say, such as a selector, or depends on another field, is left out.
    """
    text = (module / _DEFAULTS).read_text()
    constants = dict(re.findall(r"^\t(\w+)\s+(?:\w+\s+)?= (.+)$", text, re.M))
    body = text[text.index("func SetDefaults_Configuration") :]
    body = re.sub(r"^\tif [^\n]*(?:ptr\.Deref|\*cfg).*?^\t\}$", "", body, flags=re.M | re.S)
    # A statement that has several lines, on one.
    body = re.sub(r"(?:(?<=[(,])|(?<=Duration{)|(?<=Selector{))\n\t+", "", re.sub(r",\n\t+(?=[)}])", "", body))
    result = {}
    for field, value in re.findall(r"^\t+cfg\.([\w.]+) = (.+)$", body, re.M):
        path = ".".join(
            re.sub(r"^([A-Z]+(?=[A-Z][a-z]|$)|[A-Z])", lambda m: m[0].lower(), item) for item in field.split(".")
        )
        result[path] = _default(value, constants)
    return [{"field": path, "value": result[path]} for path in sorted(result) if not re.search(r"[(&]", result[path])]


def _default(value: str, constants: Mapping[str, str]) -> str:
    """A value in Go, such as `cmp.Or(cfg.Webhook.Port, new(DefaultWebhookPort))`, as a Configuration has it."""
    around = (
        r"cmp\.Or\((?:ptr\.Deref\(.*?\)|cfg\.[\w.]+), ?(.*)\)",
        r"(?:new|ptr\.To(?:\[\w+\])?|int32)\((.*)\)",
        r"&?metav1\.Duration\{Duration: (.*)\}",
        r"\[\]string\{(.*)\}",
        r'"(.*)"',
    )
    for _ in range(10):
        inner = next(
            (result[1] for item in around if (result := re.fullmatch(item, value))), constants.get(value, value)
        )
        if inner == value:
            break
        value = inner
    section = re.fullmatch(r"&[\w.]+\{(.*)\}", value)
    if section is not None:
        return f"{{{section[1]}}}"
    length = re.fullmatch(r"(?:(\d+) ?\* ?)?time\.(Second|Minute|Hour)", value)
    return value.removesuffix(".0") if length is None else f"{length[1] or 1}{length[2][0].lower()}"


def frameworks(module: Path) -> Rows:
    """The kinds of job that the release integrates, with the version of the API that it was built with."""
    versions = dict(re.findall(r"^\t(\S+) (v\S+)", (module / "go.mod").read_text(), re.M))
    result = []
    for file in sorted((module / "pkg/controller/jobs").rglob("*_controller.go")):
        name = re.search(r"^\tFrameworkName +(?:= )?= *\"(.*)\"", file.read_text(), re.M)
        if name is None:
            continue
        of = _MODULES.get(name[1], "")
        adapter = any(file.parent.glob("*multikueue*.go"))
        result.append(
            {
                "framework": name[1],
                "multikueue": "true" if adapter else "",
                "module": of,
                "version": versions[of] if of else "",
            }
        )
    return sorted(result, key=lambda row: row["framework"])


def chart(module: Path) -> Rows:
    """The chart's values, and what Kueue may do and is asked in a cluster."""
    values = _values(module)
    del values["managerConfig"]
    result = [{"part": "value", "name": name, "value": value} for name, value in _flat("", values)]
    allowed: dict[str, set[str]] = {}
    for document in yaml.safe_load_all((module / "config/components/rbac/role.yaml").read_text()):
        for rule in document["rules"]:
            for resource in (f"{group}/{item}" for group in rule.get("apiGroups", ()) for item in rule["resources"]):
                allowed.setdefault(resource, set()).update(rule["verbs"])
    result += [
        {"part": "permission", "name": name, "value": " ".join(sorted(allowed[name]))} for name in sorted(allowed)
    ]
    for document in yaml.safe_load_all((module / "config/components/webhook/manifests.yaml").read_text()):
        kind = document["kind"].removesuffix("WebhookConfiguration").lower()
        result += [
            {"part": f"{kind} webhook", "name": entry["name"], "value": entry["failurePolicy"]}
            for entry in sorted(document["webhooks"], key=lambda entry: str(entry["name"]))
        ]
    return result


def configuration(module: Path) -> str:
    """The Configuration that the chart has where its values say nothing."""
    given = yaml.safe_load(_values(module)["managerConfig"]["controllerManagerConfigYaml"])
    written: str = yaml.safe_dump(given, sort_keys=False, width=1000)
    return written


def _values(module: Path) -> Any:
    return yaml.safe_load((module / "charts/kueue/values.yaml").read_text())


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, entry in value.items():
            yield from _flat(f"{path}.{name}" if path else name, entry)
    elif isinstance(value, list):
        yield path, " ".join(str(item) for item in value)
    else:
        yield path, "" if value in (None, {}) else str(value).lower() if isinstance(value, bool) else str(value)


TABLES: Final = {
    "gates": Table(("gate",), f"{GATES}, {_VALIDATION}", gates),
    "fields": Table(("of", "version", "field"), f"{_CRDS}, apis/config", fields),
    "frameworks": Table(("framework",), "pkg/controller/jobs, go.mod", frameworks),
    "defaults": Table(("field",), _DEFAULTS, defaults),
    "chart": Table(("part", "name"), "charts/kueue/values.yaml, config/components/{rbac,webhook}", chart),
}
"""By the name of the file."""
