"""Scenario files in short form, as raw Kueue objects.

A scenario has queues, cohorts, flavors and workloads in a line each; quotas are `nominal/borrowingLimit/lendingLimit`,
`-` for a limit that is not set, times are seconds before or after the scenario's moment 0. What is not in the short
form is given under the field names of Kueue.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
ZERO = EPOCH.timestamp()
FOLDER = Path(__file__).parent / "scenarios"
KUEUE = "kueue.x-k8s.io/"


@cache
def read_document(name: str) -> Json:
    """One scenario file as it stands; not to be changed."""
    document: Json = yaml.load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return document


def load_scenarios(name: str) -> list[Json]:
    """The cases of one scenario file; common parts of the file are filled in."""
    document = read_document(name)
    common = document.get("common", {})
    cases = []
    for case in document["cases"]:
        merged = {**common, **case}
        for part in ("flavors", "cohorts", "queues", "localQueues", "namespaces"):
            if part in common and part in case:
                merged[part] = {**common[part], **case[part]}
        for part in ("queues", "cohorts"):
            if f"without_{part}" in case:
                merged[part] = {k: v for k, v in merged.get(part, {}).items() if k not in case[f"without_{part}"]}
        merged["source"] = document["source"]
        if "nodeSets" in document:
            merged["nodes"] = document["nodeSets"][merged["nodes"]]
        cases.append(merged)
    return cases


def ids(cases: list[Json]) -> list[str]:
    return [case["name"] for case in cases]


def time_text(seconds: float) -> str:
    return (EPOCH + timedelta(seconds=seconds)).isoformat()


def _groups(groups: list[Json]) -> list[Json]:
    result = []
    for group in groups:
        flavors = []
        covered: list[str] = []
        for flavor, quotas in group.items():
            resources = []
            for resource, text in quotas.items():
                nominal, borrow, lend = (*str(text).split("/"), "-", "-")[:3]
                quota: Json = {"name": resource, "nominalQuota": nominal}
                if borrow != "-":
                    quota["borrowingLimit"] = borrow
                if lend != "-":
                    quota["lendingLimit"] = lend
                resources.append(quota)
                if resource not in covered:
                    covered.append(resource)
            flavors.append({"name": flavor, "resources": resources})
        if covered:  # Kueue's API has no group without a resource.
            result.append({"coveredResources": covered, "flavors": flavors})
    return result


def queue(name: str, short: Json) -> Json:
    spec: Json = {"namespaceSelector": {}, "resourceGroups": _groups(short.get("groups", []))}
    spec.update({k: v for k, v in short.items() if k not in ("groups", "weight", "checks", "terminating")})
    if "weight" in short:
        spec["fairSharing"] = {"weight": str(short["weight"])}
    if "checks" in short:
        spec["admissionChecksStrategy"] = {
            "admissionChecks": [{"name": check, "onFlavors": flavors} for check, flavors in short["checks"].items()]
        }
    metadata: Json = {"name": name}
    if short.get("terminating"):
        metadata["deletionTimestamp"] = time_text(0)
    return {"kind": "ClusterQueue", "metadata": metadata, "spec": spec}


def cohort(name: str, short: Json) -> Json:
    spec: Json = {"resourceGroups": _groups(short.get("groups", []))}
    if short.get("parent"):
        spec["parentName"] = short["parent"]
    if "weight" in short:
        spec["fairSharing"] = {"weight": str(short["weight"])}
    return {"kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def flavor(name: str, short: Json | None) -> Json:
    return {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": dict(short or {})}


def limit_range(key: str, items: list[Json]) -> Json:
    namespace, _, name = key.rpartition("/")
    metadata = {"name": name, "namespace": namespace or "default"}
    return {"kind": "LimitRange", "metadata": metadata, "spec": {"limits": items}}


def claim_template(key: str, devices: Json) -> Json:
    """A ResourceClaimTemplate that asks for some devices of each DeviceClass, `[COUNT, EXPRESSION]` for chosen ones."""
    namespace, _, name = key.rpartition("/")
    requests = []
    for number, (device, given) in enumerate(devices.items()):
        count, *chosen = given if isinstance(given, list) else [given]
        exactly = {"deviceClassName": device, "count": count}
        if chosen:
            exactly["selectors"] = [{"cel": {"expression": text}} for text in chosen]
        requests.append({"name": f"r{number}", "exactly": exactly})
    metadata = {"name": name, "namespace": namespace or "default"}
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def runtime_class(name: str, overhead: Json) -> Json:
    return {"kind": "RuntimeClass", "metadata": {"name": name}, "handler": "h", "overhead": {"podFixed": overhead}}


def pod_set(name: str, short: Json) -> Json:
    pod = dict(short.get("pod", {}))
    if "requests" in short:
        pod["containers"] = [{"name": "c", "resources": {"requests": short["requests"]}}]
    template = {"spec": pod}
    result: Json = {"name": name, "count": short.get("count", 1), "template": template}
    if "min" in short:
        result["minCount"] = short["min"]
    if "topologyRequest" in short:
        result["topologyRequest"] = short["topologyRequest"]
    return result


def node(name: str, short: Json) -> Json:
    spec = {key: short[key] for key in ("taints", "unschedulable") if key in short}
    ready = {"type": "Ready", "status": "True" if short.get("ready", True) else "False"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": short["labels"]},
        "spec": spec,
        "status": {"allocatable": short["allocatable"], "conditions": [ready]},
    }


def admission(short: Json) -> Json:
    assignments = []
    for name, given in short["podSets"].items():
        flavors, usage = {}, {}
        for resource, text in given.get("flavors", {}).items():
            chosen, _, amount = str(text).partition(" ")
            flavors[resource] = chosen
            usage[resource] = amount
        one: Json = {"name": name, "flavors": flavors, "resourceUsage": usage, "count": given.get("count", 1)}
        if "topologyAssignment" in given:
            one["topologyAssignment"] = given["topologyAssignment"]
        if "delayed" in given:
            one["delayedTopologyRequest"] = given["delayed"]
        assignments.append(one)
    return {"clusterQueue": short["queue"], "podSetAssignments": assignments}


def workload(key: str, short: Json) -> Json:
    namespace, _, name = key.rpartition("/")
    metadata: Json = {"name": name, "namespace": namespace or "default", "uid": short.get("uid", key)}
    metadata["creationTimestamp"] = time_text(short.get("created", -1_000_000))
    for part in ("labels", "annotations"):
        if part in short:
            metadata[part] = short[part]
    if "elastic" in short:
        metadata["annotations"] = {f"{KUEUE}elastic-job": "true"}
    if "replaces" in short:
        before = f"{metadata['namespace']}/{short['replaces']}"
        metadata["annotations"] = {f"{KUEUE}elastic-job": "true", f"{KUEUE}workload-slice-replacement-for": before}
    spec: Json = {"podSets": [pod_set(name, given) for name, given in short["podSets"].items()]}
    spec["queueName"] = short.get("queue", "")
    spec["priority"] = short.get("priority", 0)
    for part in ("active", "preemptionGates", "maximumExecutionTimeSeconds"):
        if part in short:
            spec[part] = short[part]
    status: Json = {}
    conditions = []
    for kind, condition in short.get("conditions", {}).items():
        state, reason, at = condition
        conditions.append(
            {"type": kind, "status": state, "reason": reason, "lastTransitionTime": time_text(at), "message": ""}
        )
    if "reserved" in short:
        status["admission"] = admission(short["reserved"])
    status["conditions"] = conditions
    for part in ("admissionChecks", "reclaimablePods", "requeueState"):
        if part in short:
            status[part] = short[part]
    return {"kind": "Workload", "metadata": metadata, "spec": spec, "status": status}


def manifests(case: Json) -> list[Json]:
    """All of a scenario's objects."""
    result = [flavor(name, short) for name, short in case.get("flavors", {}).items()]
    result += [cohort(name, short or {}) for name, short in case.get("cohorts", {}).items()]
    result += [queue(name, short) for name, short in case.get("queues", {}).items()]
    for key, target in case.get("localQueues", {}).items():
        namespace, _, name = key.rpartition("/")
        result.append(
            {
                "kind": "LocalQueue",
                "metadata": {"name": name, "namespace": namespace or "default"},
                "spec": {"clusterQueue": target},
            }
        )
    result += [
        {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        for name, labels in case.get("namespaces", {}).items()
    ]
    result += [
        {
            "kind": "AdmissionCheck",
            "metadata": {"name": name},
            "spec": {"controllerName": controller},
        }
        for name, controller in case.get("checks", {}).items()
    ]
    result += [
        {"kind": "Topology", "metadata": {"name": name}, "spec": {"levels": [{"nodeLabel": level} for level in levels]}}
        for name, levels in case.get("topologies", {}).items()
    ]
    result += [node(name, short) for name, short in case.get("nodes", {}).items()]
    result += [{"kind": "Pod", **pod} for pod in case.get("pods", ())]
    result += [limit_range(name, items) for name, items in case.get("limitRanges", {}).items()]
    result += [runtime_class(name, overhead) for name, overhead in case.get("runtimeClasses", {}).items()]
    result += case.get("devices", ())
    result += [claim_template(name, devices) for name, devices in case.get("claimTemplates", {}).items()]
    result += [workload(key, short) for key, short in case.get("workloads", {}).items()]
    return result
