"""Kueue's Configuration of every cluster, as the fleet file has it: what is the same for all, and what is not.

The section `kueue`, the Configuration of single clusters, and what the section `multiKueue` takes from the manager's.
Defaults that the fleet has anyway are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from itertools import product
from typing import Any, Final, NamedTuple

from kueue_admission.api.configuration import KueueConfiguration
from kueue_admission.api.manifests import TEAM_LABEL
from kueue_admission.api.old_configuration import CONFIGURATION_API, POD_OPTIONS, configuration_as_v1beta2
from kueue_admission.api.resources import DEPLOYMENT
from kueue_admission.kernel import syntax
from kueue_admission.kernel.names import REGIONS_LABEL
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.dumped_configuration import CONFIGURATION_KEY, VERSION_LABELS, version_in
from kueue_admission.releases import DEFAULT_VERSION, nearest
from kueue_fleet.adopt.live_objects import Data, Object
from kueue_fleet.adopt.platform import Platform
from kueue_fleet.fleet_file.form import read_form
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.clusters import ALL_AT_ONCE, INCREMENTAL
from kueue_fleet.fleet_file.model.kueue_installation import (
    CLUSTER_PROFILE_GATE,
    JOBSET_FRAMEWORK,
    default_configuration,
    managed_jobs,
)
from kueue_fleet.fleet_file.model.kueue_pods import PodResources
from kueue_fleet.fleet_file.rules.commands import IMPORT_DIFFERENCE
from kueue_fleet.objects.controller import JOBS_ROLE_NAME
from kueue_fleet.objects.teams import MEMBERS_ROLE
from kueue_fleet.settings.dispatch import DISPATCHER_NAME

# What Kueue's chart adds where its values say nothing about it.
_CHART_CERTIFICATES: Final = {
    "enable": True,
    "webhookServiceName": "kueue-webhook-service",
    "webhookSecretName": "kueue-webhook-server-cert",
}
_OR_DEFAULT: Final = ", or take the defaults of a fleet file (--default-kueue)"
_OF_SECTION: Final = ("gcInterval", "origin", "workerLostTimeout")


class KueueSettings(NamedTuple):
    """What the Configurations come to."""

    sections: Data
    """Sections `kueue` and `jobSet`, without the fleet's defaults."""
    own: Mapping[str, Data]
    """The section `kueue` of single clusters: version and Configuration, as far as they are not those of all."""
    multi_kueue: Data
    """Fields of the section `multiKueue`."""


def read_configurations(platform: Platform, *, default: bool) -> dict[str, Object]:
    """Each cluster's Configuration. One that is missing is a problem, unless it is to be the `default`."""
    configurations_by_cluster: dict[str, Object] = {}
    for cluster, objects in platform.objects.items():
        path = f"{cluster}.kueue.configuration"
        items = [item for item in objects.others if is_configuration(item)]
        if len(items) > 1:
            wrong = f"there are {len(items)} Configurations of Kueue"
            platform.problem(path, wrong, "give that of the Kueue that runs there")
        elif items:
            configurations_by_cluster[cluster] = _read(platform, items[0], path)
        elif not default:
            unknown = "which jobs Kueue manages"
            if cluster == platform.manager:
                unknown += " and who dispatches them"
            platform.problem(
                path,
                f"is not known: Kueue's Configuration is not among the objects, and only it says {unknown}",
                f"add the ConfigMap kueue-manager-config of Kueue's namespace to them{_OR_DEFAULT}",
            )
    return configurations_by_cluster


def is_configuration(item: Object) -> bool:
    """Whether an object is the ConfigMap that holds Kueue's Configuration."""
    return item["kind"] == "ConfigMap" and CONFIGURATION_KEY in (item.get("data") or {})


def _read(platform: Platform, item: Object, path: str) -> Object:
    data = platform.yaml_in(item, CONFIGURATION_KEY, path)
    data, ignored_fields = configuration_as_v1beta2(data)
    if ignored_fields:
        lost = f"{listed(ignored_fields)} left out: Kueue passes over what v1beta1 has there"
        instead = "; managedJobsNamespaceSelector says which pods it manages" if POD_OPTIONS in ignored_fields else ""
        platform.notes.append(f"{path}: {lost}{instead}")
    if data and data.get("apiVersion") != CONFIGURATION_API:
        wrong = f"is {data.get('apiVersion')}, not {CONFIGURATION_API}"
        platform.problem(path, wrong, f"write it as {CONFIGURATION_API}")
    if data.get("internalCertManagement") == _CHART_CERTIFICATES:
        del data["internalCertManagement"]
    fields = {key: value for key, value in data.items() if key not in ("apiVersion", "kind")}
    _, problems = read_form(KueueConfiguration, fields)
    platform.problems += [problem.at(path) for problem in problems]
    return {} if problems else data


def adopt_configuration(
    platform: Platform, configurations: Mapping[str, Object], *, observed: Set[str], default: bool
) -> KueueSettings:
    """The sections that give the clusters these Configurations.

    `observed`: the clusters whose metrics are read; `default`: whether what is not known is to be the default.
    """
    namespace = _one(platform, "namespace", {c: conf.get("namespace") for c, conf in configurations.items()})
    versions = {
        name: version_there
        for name, object_fields in platform.objects.items()
        if (version_there := version_in(object_fields.others))
    }
    # What most clusters have is the fleet's.
    version = Counter(versions.values()).most_common(1)[0][0] if versions else None
    if version is None and configurations and not default:
        platform.problem(
            "kueue.version",
            f"is not known: the ConfigMap with Kueue's Configuration has no label {' or '.join(VERSION_LABELS)}, "
            "and Kueue's Deployment is not among the objects",
            f"add the Deployment {DEPLOYMENT} to them{_OR_DEFAULT}",
        )
    job_sets = _has_job_sets(platform, configurations)
    dispatches = (platform.controller_settings or {}).get("dispatches")
    multi_kueue = _take_section({"multiKueue": {"dispatcherName": DISPATCHER_NAME}}) if dispatches else {}
    every: dict[str, Data] = {cluster: {} for cluster in platform.objects}
    for cluster, configuration in configurations.items():
        plain = dict(configuration)
        if cluster == platform.manager:
            multi_kueue = _take_section(plain)
        _take_managed_jobs(platform, plain)
        _take_flavor_limits(platform, cluster, plain)
        here = versions.get(cluster) or version
        release = nearest(here if here and syntax.version(here) is None else DEFAULT_VERSION)
        base = default_configuration(
            namespace or "kueue-system", release, observed=cluster in observed, job_sets=job_sets
        )
        every[cluster] = _beyond(plain, base)
    shared_fields = {
        key: value
        for key, value in next(iter(every.values())).items()
        if all(other.get(key) == value for other in every.values())
    }
    kueue = {
        "version": version,
        "namespace": namespace,
        "replicas": _replicas(platform, configurations),
        "priorityClassName": _priority_class(platform),
        "resources": _resources(platform),
        "configuration": shared_fields,
    }
    return KueueSettings(
        {
            "kueue": {name: value for name, value in kueue.items() if value},
            **({} if job_sets else {"jobSet": {"enabled": False}}),
        },
        {
            cluster: {
                **({"version": versions[cluster]} if versions.get(cluster, version) != version else {}),
                **({"configuration": own} if (own := _without(value, shared_fields)) else {}),
            }
            for cluster, value in every.items()
        },
        multi_kueue,
    )


def _priority_class(platform: Platform) -> str | None:
    """The priority class of Kueue's and the fleet's own controller; None where their Deployments are not given."""
    pods = (pod for _, _, pod in platform.controllers())
    return next((str(pod["priorityClassName"]) for pod in pods if "priorityClassName" in pod), None)


def _replicas(platform: Platform, configurations: Mapping[str, Object]) -> int | None:
    """Pods of Kueue on each cluster; one where they elect no leader; None where their Deployments are not given."""
    if any(
        (configuration.get("leaderElection") or {}).get("leaderElect") is False
        for configuration in configurations.values()
    ):
        return 1
    replicas = {
        cluster: (item.get("spec") or {}).get("replicas", 1)
        for cluster, item, _ in platform.controllers()
        if item["metadata"]["name"] == DEPLOYMENT
    }
    count: int | None = _one(platform, "replicas", replicas)
    return count


def _resources(platform: Platform) -> Data:
    """Requests and limits of Kueue's container, the largest of all clusters, where they are more than the fleet's.

    A request that is left out is the limit (Kubernetes' defaults of containers).
    """
    defaults = PodResources().container_resources()
    resources: dict[str, Data] = {}
    for kind, name in product(("requests", "limits"), ("cpu", "memory")):
        amounts = {
            cluster: item
            for cluster, container_data in _containers(platform)
            if (item := _amount(container_data, kind, name))
        }
        most = max(amounts.values(), default=None)
        if len(set(amounts.values())) > 1:
            amounts_text = listed([f"{amount} on {cluster}" for cluster, amount in amounts.items()])
            platform.notes.append(f"kueue.resources.{kind}.{name}: {amounts_text}; {most} is that of all")
        if most is not None and most > Quantity(defaults[kind][name]):
            resources.setdefault(kind, {})[name] = str(most)
    return resources


def _containers(platform: Platform) -> Iterator[tuple[str, Data]]:
    """Each cluster, and `resources` of Kueue's container in it."""
    for cluster, item, pod in platform.controllers():
        if item["metadata"]["name"] == DEPLOYMENT:
            yield from ((cluster, dict(container.get("resources") or {})) for container in pod.get("containers") or ())


def _amount(resources: Data, kind: str, name: str) -> Quantity | None:
    amount = (resources.get(kind) or {}).get(name) or (resources.get("limits") or {}).get(name)
    return None if amount is None else Quantity(str(amount))


def _has_job_sets(platform: Platform, configurations: Mapping[str, Object]) -> bool:
    """Whether JobSet is installed: whether the fleet's own roles name it; without such roles, whether Kueue does."""
    roles = [item for _, item in platform.others("Role") if item["metadata"]["name"] == MEMBERS_ROLE]
    for cluster, item in platform.others("ClusterRole"):
        if cluster == platform.manager and item["metadata"]["name"] == JOBS_ROLE_NAME:
            roles.append(item)
    if roles:
        groups = [group for item in roles for rule in item.get("rules") or () for group in rule.get("apiGroups") or ()]
        return JOBSET_FRAMEWORK.partition("/")[0] in groups
    frameworks = [(conf.get("integrations") or {}).get("frameworks") or () for conf in configurations.values()]
    return not frameworks or any(JOBSET_FRAMEWORK in names for names in frameworks)


def _one(platform: Platform, what: str, values: Mapping[str, Any]) -> Any:
    """The one value that all clusters have; several are a problem."""
    values_there = {cluster: value for cluster, value in values.items() if value is not None}
    if len(set(values_there.values())) > 1:
        values_text = ", ".join(f"{value} on {cluster}" for cluster, value in values_there.items())
        platform.problem(
            f"kueue.{what}",
            f"{values_text}, but a fleet has one",
            "make it the same, or import the clusters one at a time",
            IMPORT_DIFFERENCE,
        )
    return next(iter(values_there.values()), None)


def _take_section(configuration: Data) -> Data:
    """Fields of `multiKueue` that the file has in its own section, taken out of the manager's Configuration."""
    own = dict(configuration.get("multiKueue") or {})
    section: Data = {name: own.pop(name) for name in _OF_SECTION if name in own}
    dispatcher = own.pop("dispatcherName", ALL_AT_ONCE)
    incremental = own.pop("incrementalDispatcherConfig", None)
    if dispatcher == INCREMENTAL:
        section["dispatcher"] = "Incremental"
        if incremental:
            section["incremental"] = dict(incremental)
    elif dispatcher != ALL_AT_ONCE:
        section |= {"dispatcher": "External", "external": {"name": dispatcher}}
    if own.pop("clusterProfile", None) is not None:
        # What the plugin is called there is the fleet's own matter.
        _without_gate(configuration, CLUSTER_PROFILE_GATE)
    configuration["multiKueue"] = own
    if not own:
        del configuration["multiKueue"]
    if dispatcher == DISPATCHER_NAME:
        _take_dispatcher(configuration)
    return section


def _take_managed_jobs(platform: Platform, configuration: Data) -> None:
    """What the fleet adds for its teams."""
    clusters = platform.objects.values()
    of_teams = {name for objects in clusters for name, labels in objects.namespaces.items() if TEAM_LABEL in labels}
    added_fields = managed_jobs(of_teams, {name for objects in clusters for name, _ in objects.local_queues})
    for name, value in added_fields.items():
        if configuration.get(name) == value:
            del configuration[name]


def _take_flavor_limits(platform: Platform, cluster: str, configuration: Data) -> None:
    """What the fleet adds where its own controller limits the flavors that jobs may have."""
    settings = platform.controller_settings or {}
    budgets = ((settings.get("budgets") or {}).get("teams") or {}).values()
    falls_back = not set(settings.get("fallback") or ()).isdisjoint(platform.objects[cluster].of("ClusterQueue"))
    if falls_back or any(budget.get("enforce") == "interruptibleOnly" for budget in budgets):
        _without_gate(configuration, "ConcurrentAdmission")


def _take_dispatcher(configuration: Data) -> None:
    """What the fleet adds for its own dispatcher."""
    integrations = configuration.get("integrations") or {}
    copied_labels = [label for label in integrations.get("labelKeysToCopy", ()) if label != REGIONS_LABEL]
    rest = {key: value for key, value in integrations.items() if key != "labelKeysToCopy"}
    configuration["integrations"] = {**rest, **({"labelKeysToCopy": copied_labels} if copied_labels else {})}
    _without_gate(configuration, "WorkloadRequestUseMergePatch")


def _without_gate(configuration: Data, gate: str) -> None:
    gates = configuration.get("featureGates") or {}
    configuration["featureGates"] = {name: on for name, on in gates.items() if name != gate}


def _without(value: Mapping[str, Any], shared_fields: Mapping[str, Any]) -> Data:
    return {key: item for key, item in value.items() if key not in shared_fields}


def _beyond(value: Mapping[str, Any], base: Mapping[str, Any]) -> Data:
    """What of `value` is not in `base`."""
    rest: Data = {}
    for key, item in value.items():
        if key in base and isinstance(item, Mapping) and isinstance(base[key], Mapping):
            below = _beyond(item, base[key])
            if below:
                rest[key] = below
        elif key not in base or item != base[key]:
            rest[key] = item
    return rest
