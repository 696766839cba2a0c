"""Fleets to break: plain data that is right, and a way to change single places of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from kueue_admission.kernel import SpecError
from kueue_admission.kernel.messages import errors_in, explain
from kueue_fleet.fleet_file import FleetSpec, check_fleet, parse_fleet

Data = dict[str, Any]

REMOVED: Final = object()
"""As a value in `changed`: take the field or item out."""


def quota(name: str, nominal: object, **limits: object) -> Data:
    """One resource quota, limits in the file's spelling."""
    return {"name": name, "nominalQuota": nominal, **limits}


def flavor_quotas(name: str, gpus: object = 4, **limits: object) -> Data:
    """Quotas on one flavor for everything a GPU pod on Autopilot asks for."""
    return {
        "name": name,
        "resources": [
            quota("nvidia.com/gpu", gpus, **limits),
            quota("cpu", 64),
            quota("memory", "256Gi"),
            quota("ephemeral-storage", "400Gi"),
        ],
    }


COVERED: Final = ["nvidia.com/gpu", "cpu", "memory", "ephemeral-storage"]


FIRST_QUOTA: Final = "clusterQueues/0/resourceGroups/0/flavors/0/resources/0"
"""Path of the first quota of the first queue of `fleet_data`."""


def manager_quotas(
    flavor: str = "multikueue", gpu: int = 14, cpu: int = 192, mem: str = "768Gi", eph: str = "1200Gi"
) -> Data:
    """`manager` of a queue, by default with what both workers have together."""
    amounts = zip(COVERED, (gpu, cpu, mem, eph), strict=True)
    flavors = [{"name": flavor, "resources": [quota(name, amount) for name, amount in amounts]}]
    return {"resourceGroups": [{"coveredResources": list(COVERED), "flavors": flavors}]}


def group(resources: Sequence[str] = ("cpu",), flavors: Sequence[str] = ("l4",), **limits: object) -> Data:
    """A resource group with a quota of 4 for everything."""
    return {
        "coveredResources": list(resources),
        "flavors": [{"name": name, "resources": [quota(item, 4, **limits) for item in resources]} for name in flavors],
    }


def queue(**fields: Any) -> Data:
    """`spec` of a ClusterQueue with one group."""
    return {"resourceGroups": [group()], **fields}


def fleet_data() -> Data:
    """A manager and two workers without any problem: worker-a has flavor l4, worker-b has l4 and t4."""
    return {
        "name": "test-fleet",
        "project": "my-project",
        "clusters": [
            {"name": "manager", "role": "manager", "region": "europe-west4", "mode": "Standard"},
            {"name": "worker-a", "role": "worker", "region": "us-east4"},
            {"name": "worker-b", "role": "worker", "region": "europe-west4"},
        ],
        "flavors": [
            {"name": "l4", "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}},
            {
                "name": "t4",
                "clusters": ["worker-b"],
                "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
            },
        ],
        "cohorts": [{"name": "research"}],
        "clusterQueues": [
            {
                "name": "vision",
                "cohortName": "research",
                "namespaceSelector": {},
                "resourceGroups": [
                    {"coveredResources": list(COVERED), "flavors": [flavor_quotas("l4"), flavor_quotas("t4", 2)]}
                ],
                "admissionChecksStrategy": {"admissionChecks": [{"name": "dws", "onFlavors": ["t4"]}]},
            },
            {
                "name": "language",
                "cohortName": "research",
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": list(COVERED), "flavors": [flavor_quotas("l4", 8)]}],
            },
        ],
        "admissionChecks": [
            {"name": "dws", "provisioningRequest": {"provisioningClassName": "queued-provisioning.gke.io"}}
        ],
        "priorityClasses": [{"name": "batch", "value": 1000}],
        "workloadPriorityClasses": [{"name": "urgent", "value": 100}],
        "teams": [
            {"name": "team-vision", "localQueues": [{"name": "main", "clusterQueue": "vision"}]},
            {"name": "team-language", "localQueues": [{"name": "main", "clusterQueue": "language"}]},
        ],
        "localQueues": [{"namespace": "default", "name": "trial", "clusterQueue": "vision"}],
        "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"}},
    }


def standalone_data() -> Data:
    """One cluster that runs its own jobs, without any problem."""
    return {
        "name": "single",
        "project": "my-project",
        "clusters": [{"name": "only", "role": "standalone", "region": "us-central1"}],
        "flavors": [{"name": "l4", "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}],
        "clusterQueues": [
            {
                "name": "gpu",
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": list(COVERED), "flavors": [flavor_quotas("l4")]}],
            }
        ],
        "localQueues": [{"namespace": "default", "name": "gpu", "clusterQueue": "gpu"}],
    }


def changed(data: Data, changes: Mapping[str, Any]) -> Data:
    """A copy of `data` with each path (`clusters/0/role`) set to its value; `+` as last step appends to a list."""
    result = copy.deepcopy(data)
    for path, value in changes.items():
        *steps, last = path.split("/")
        here: Any = result
        for step in steps:
            here = here[int(step)] if isinstance(here, list) else here.setdefault(step, {})
        if isinstance(here, list) and last == "+":
            here.append(value)
        elif isinstance(here, list) and value is REMOVED:
            del here[int(last)]
        elif isinstance(here, list):
            here[int(last)] = value
        elif value is REMOVED:
            del here[last]
        else:
            here[last] = value
    return result


def fleet(changes: Mapping[str, Any] | None = None) -> FleetSpec:
    """The fleet of `fleet_data`, changed."""
    return parse_fleet(changed(fleet_data(), changes or {}))


def problems(data: Any) -> list[str]:
    """As `all_problems`, without the warning that every fleet of several workers has by Kueue's own dispatchers."""
    return [text for text in all_problems(data) if not text.startswith("warning: multiKueue.dispatcher: a pod set of")]


def all_problems(data: Any) -> list[str]:
    """Everything that parsing and checking `data` says, each as one line; warnings begin with `warning: `."""
    try:
        result = check_fleet(parse_fleet(data))
    except SpecError as error:
        result = list(error.problems)
    return [str(problem) if problem.severity == "error" else f"warning: {problem}" for problem in result]


def model_problems(model: type[BaseModel], data: Any) -> list[str]:
    """What building `model` from `data` says, each as one line."""
    try:
        model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        return [str(problem) for detail in errors_in(error) for problem in explain(detail, model, data)]
    return []
