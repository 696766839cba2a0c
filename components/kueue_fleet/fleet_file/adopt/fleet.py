"""One fleet file from the objects of all clusters: what they share is written once, with the clusters it is on.

In: each cluster's objects, and what objects do not say (the fleet's name, its project, where clusters are). Out: the
data of a fleet file in its own order, and notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from kueue_fleet.fleet_file.adopt.objects import ClusterObjects, Object, sort_objects
from kueue_fleet.fleet_file.adopt.pools import node_pool_entries
from kueue_fleet.fleet_file.adopt.quotas import differences, merge_cohort, merge_queue
from kueue_fleet.fleet_file.adopt.tidy import tidy
from kueue_fleet.kueue_api.admission_checks import MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER
from kueue_fleet.kueue_api.manifests import POD_SECURITY_LABEL, TEAM_LABEL
from kueue_fleet.kueue_api.problem import Problem, SpecError

Data = dict[str, Any]
"""A part of a fleet file as plain data."""
Specs = Mapping[str, Data]
"""cluster → spec of one and the same object there."""

_DEFAULT_NAMES: Final = {"admissionCheckName": "multikueue", "configName": "multikueue"}


@dataclass(frozen=True, slots=True)
class AdoptedCluster:
    """One existing cluster."""

    name: str
    region: str
    objects: Sequence[Object]
    """As `kubectl get -o yaml` prints them, Lists included."""
    node_pools: Sequence[Object] = ()
    """As `gcloud container node-pools list --format yaml` prints them; with any, the cluster is a Standard one."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What no Kubernetes object says."""

    name: str
    """Of the fleet."""
    project: str
    """Google Cloud project id."""
    rotate_by: date
    """Day by which new worker credentials are to be replaced."""
    today: date
    """Day on which they are made: `rotation` is its year and month."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """A fleet file's data, in the file's order, and what its reader should know."""

    data: Data
    notes: tuple[str, ...]


def adopt_fleet(clusters: Sequence[AdoptedCluster], identity: Identity) -> Adopted:
    """The fleet that `clusters` are.

    The cluster with MultiKueueClusters is the manager; the others are its workers, or alone: standalone.

    Raises:
        SpecError: with every object that is malformed, and every disagreement that a fleet file cannot say.
    """
    return _Adoption(clusters, identity).run()


class _Adoption:
    def __init__(self, clusters: Sequence[AdoptedCluster], identity: Identity) -> None:
        self._identity = identity
        self._clusters = clusters
        self._problems: list[Problem] = []
        self._notes: list[str] = []
        self._objects: dict[str, ClusterObjects] = {}
        for cluster in clusters:
            self._objects[cluster.name], problems = sort_objects(cluster.objects, cluster.name)
            self._problems += problems
        managers = [name for name, found in self._objects.items() if found.of("MultiKueueCluster")]
        self._manager = managers[0] if managers else None
        self._job_clusters = [name for name in self._objects if name != self._manager]
        if len(managers) > 1:
            self._problem("clusters", f"{' and '.join(managers)} both have MultiKueueClusters", "give one manager")
        if self._manager is None and len(clusters) > 1:
            self._problem(
                "clusters",
                "no cluster has a MultiKueueCluster, so none is the manager",
                "give the manager's objects too, or one cluster at a time",
            )
        if self._manager is not None and not self._job_clusters:
            self._problem("clusters", f"{self._manager} is a manager without workers", "give the workers' objects too")

    def _problem(self, path: str, wrong: str, fix: str) -> None:
        self._problems.append(Problem(path, wrong, fix))

    def run(self) -> Adopted:
        self._raise()
        data: Data = {"name": self._identity.name, "project": self._identity.project}
        data["clusters"] = [self._cluster(cluster) for cluster in self._clusters]
        sections: dict[str, Callable[[], list[Data]]] = {
            "nodePools": self._node_pools,
            "flavors": lambda: self._placed("ResourceFlavor"),
            "topologies": lambda: self._placed("Topology"),
            "cohorts": self._cohorts,
            "clusterQueues": self._queues,
            "admissionChecks": self._checks,
            "priorityClasses": lambda: self._everywhere("PriorityClass"),
            "workloadPriorityClasses": lambda: self._everywhere("WorkloadPriorityClass"),
        }
        for section, make in sections.items():
            data[section] = make()
        data["teams"], data["localQueues"] = self._tenants()
        if self._manager is not None:
            data["multiKueue"] = self._multi_kueue(self._objects[self._manager])
            if data["multiKueue"]["credentials"]["type"] == "ClusterProfile":
                data["kueue"] = {"configuration": {"featureGates": {"MultiKueueClusterProfile": True}}}
        self._note_what_is_left()
        self._raise()
        return Adopted(tidy({key: value for key, value in data.items() if value}), tuple(self._notes))

    def _raise(self) -> None:
        if self._problems:
            raise SpecError(self._problems)

    def _cluster(self, cluster: AdoptedCluster) -> Data:
        role = "manager" if cluster.name == self._manager else "worker" if self._manager else "standalone"
        entry = {"name": cluster.name, "role": role, "region": cluster.region}
        return {**entry, "mode": "Standard"} if cluster.node_pools else entry

    def _node_pools(self) -> list[Data]:
        pools, problems, notes = node_pool_entries(
            {cluster.name: cluster.node_pools for cluster in self._clusters if cluster.name in self._job_clusters}
        )
        self._problems += problems
        self._notes += notes
        return pools

    def _found(self, kind: str, clusters: Iterable[str]) -> Mapping[str, Specs]:
        """name → cluster → spec, by the order in which the names are met."""
        found: dict[str, dict[str, Data]] = {}
        for cluster in clusters:
            for name, spec in self._objects[cluster].of(kind).items():
                found.setdefault(name, {})[cluster] = spec
        return found

    def _where(self, specs: Specs) -> Data:
        """`clusters`, where it is not the default."""
        return {} if list(specs) == self._job_clusters else {"clusters": list(specs)}

    def _same(self, kind: str, name: str, specs: Specs) -> Data:
        """The one spec, which the object has to have everywhere."""
        self._problems += differences(f"{kind} {name}", specs)
        return next(iter(specs.values()))

    def _placed(self, kind: str) -> list[Data]:
        """Entries that say on which clusters they are; the manager's own flavor is made of itself."""
        found = self._found(kind, self._objects)
        return [
            {"name": name, **self._where(specs), **self._same(kind, name, specs)}
            for name, specs in found.items()
            if set(specs) != {self._manager}
        ]

    def _everywhere(self, kind: str) -> list[Data]:
        entries = []
        for name, specs in self._found(kind, self._objects).items():
            entries.append({"name": name, **self._same(kind, name, specs)})
            missing = [cluster for cluster in self._objects if cluster not in specs]
            if missing:
                self._notes.append(f"{kind} {name} will be made on {', '.join(missing)} too")
        return entries

    def _cohorts(self) -> list[Data]:
        entries = []
        for name, specs in self._found("Cohort", self._job_clusters).items():
            entry, problems = merge_cohort(name, specs)
            self._problems += problems
            entries.append(entry)
        declared = {entry["name"] for entry in entries}
        for specs in self._found("ClusterQueue", self._job_clusters).values():
            for spec in specs.values():
                cohort = spec.get("cohortName")
                if cohort and cohort not in declared:
                    declared.add(cohort)
                    entries.append({"name": cohort})
                    self._notes.append(f"Cohort {cohort} was there by name only; it becomes an object")
        return entries

    def _queues(self) -> list[Data]:
        entries = []
        for name, specs in self._found("ClusterQueue", self._job_clusters).items():
            flavors = {cluster: set(self._objects[cluster].of("ResourceFlavor")) for cluster in specs}
            entry, problems = merge_queue(name, specs, flavors)
            self._problems += problems
            where = self._where(specs)
            entries.append({"name": name, **where, **entry})
        if self._manager is not None:
            self._manager_queues(entries)
        return entries

    def _manager_queues(self, entries: list[Data]) -> None:
        by_name = {entry["name"]: entry for entry in entries}
        for name, spec in self._objects[self._manager or ""].of("ClusterQueue").items():
            if name not in by_name:
                self._problem(
                    f"{self._manager}.ClusterQueue {name}",
                    "is on the manager and on no worker, so its jobs can go nowhere",
                    "leave it out, or give the worker that has it",
                )
                continue
            by_name[name]["manager"] = {"resourceGroups": spec.get("resourceGroups", [])}

    def _checks(self) -> list[Data]:
        entries = []
        configs = self._found("ProvisioningRequestConfig", self._objects)
        for name, specs in self._found("AdmissionCheck", self._objects).items():
            spec = self._same("AdmissionCheck", name, specs)
            if spec.get("controllerName") == MULTIKUEUE_CONTROLLER:
                continue
            entry: Data = {"name": name, **self._where(specs)}
            if spec.get("controllerName") != PROVISIONING_CONTROLLER:
                entries.append({**entry, **spec})
                continue
            config = (spec.get("parameters") or {}).get("name", "")
            found = configs.get(config)
            if found is None:
                self._problem(
                    f"AdmissionCheck {name}.spec.parameters.name",
                    f"there is no ProvisioningRequestConfig {config or '(none named)'}",
                    "give it too, or leave the check out",
                )
                continue
            request = self._same("ProvisioningRequestConfig", config, found)
            named = {} if config == name else {"configName": config}
            entries.append({**entry, "provisioningRequest": {**named, **request}})
        return entries

    def _tenants(self) -> tuple[list[Data], list[Data]]:
        """Teams are the namespaces that say so; other LocalQueues stand alone."""
        queues: dict[tuple[str, str], Data] = {}
        for cluster, found in self._objects.items():
            for key, spec in found.local_queues.items():
                if key in queues and queues[key] != spec:
                    path = f"{cluster}.LocalQueue {'/'.join(key)}"
                    self._problem(path, f"{spec}, but {queues[key]} elsewhere", "make them the same on every cluster")
                queues.setdefault(key, spec)
        teams: dict[str, dict[str, None]] = {}
        for found in self._objects.values():
            for namespace, labels in found.namespaces.items():
                if TEAM_LABEL in labels:
                    teams.setdefault(labels[TEAM_LABEL], {})[namespace] = None
        entries = []
        for team, namespaces in teams.items():
            of_namespaces = [
                {name: spec for (where, name), spec in queues.items() if where == namespace} for namespace in namespaces
            ]
            shared = [
                name
                for name in of_namespaces[0]
                if all(each.get(name) == of_namespaces[0][name] for each in of_namespaces)
            ]
            entry: Data = {"name": team}
            entry |= self._pod_security(next(iter(namespaces)))
            if list(namespaces) != [team]:
                entry["namespaces"] = list(namespaces)
            if shared:
                entry["localQueues"] = [{"name": name, **of_namespaces[0][name]} for name in shared]
            entries.append(entry)
            for namespace in namespaces:
                for name in shared:
                    queues.pop((namespace, name))
        alone = [{"namespace": namespace, "name": name, **spec} for (namespace, name), spec in queues.items()]
        return entries, alone

    def _pod_security(self, namespace: str) -> Data:
        """The Pod Security Standard of a namespace; without the label, Kubernetes enforces none."""
        labels = next(found.namespaces[namespace] for found in self._objects.values() if namespace in found.namespaces)
        level = labels.get(POD_SECURITY_LABEL, "privileged")
        return {} if level == "baseline" else {"podSecurity": level}

    def _multi_kueue(self, manager: ClusterObjects) -> Data:
        section: Data = {}
        workers = list(manager.of("MultiKueueCluster"))
        for name in workers:
            if name not in self._job_clusters:
                self._problem(
                    f"{self._manager}.MultiKueueCluster {name}",
                    f"no cluster of that name is given; there are {', '.join(self._job_clusters)}",
                    "give that worker's objects, under the MultiKueueCluster's name",
                )
        checks = {
            name: (spec.get("parameters") or {}).get("name", "")
            for name, spec in manager.of("AdmissionCheck").items()
            if spec.get("controllerName") == MULTIKUEUE_CONTROLLER
        }
        configs = {name: spec.get("clusters", []) for name, spec in manager.of("MultiKueueConfig").items()}
        widest = max(checks, key=lambda name: len(configs.get(checks[name], ())), default=None)
        if widest is not None:
            for field, value in (("admissionCheckName", widest), ("configName", checks[widest])):
                if value != _DEFAULT_NAMES[field]:
                    section[field] = value
            ordered = configs.get(checks[widest], [])
            if ordered != self._job_clusters and set(ordered) == set(self._job_clusters):
                section["workers"] = ordered
        flavors = [name for name in manager.of("ResourceFlavor") if name not in self._worker_flavors()]
        if len(flavors) == 1 and flavors != ["multikueue"]:
            section["managerFlavorName"] = flavors[0]
        sources = [spec.get("clusterSource", {}) for spec in manager.of("MultiKueueCluster").values()]
        if all("clusterProfileRef" in source for source in sources):
            section["credentials"] = {"type": "ClusterProfile"}
        else:
            section["credentials"] = {
                "type": "ServiceAccountToken",
                "rotation": f"{self._identity.today:%Y-%m}",
                "rotateBy": self._identity.rotate_by.isoformat(),
            }
            self._notes.append("worker credentials are made anew; the Secrets of today are no longer used")
        return section

    def _worker_flavors(self) -> set[str]:
        return {name for cluster in self._job_clusters for name in self._objects[cluster].of("ResourceFlavor")}

    def _note_what_is_left(self) -> None:
        left: dict[str, int] = {}
        for found in self._objects.values():
            for kind, number in found.left.items():
                left[kind] = left.get(kind, 0) + number
        if left:
            listed = ", ".join(f"{number} {kind}" for kind, number in sorted(left.items()))
            self._notes.append(f"left out, as a fleet file has no place for them: {listed}")
