"""What `import` is given, sorted: each cluster's objects, who is the manager, and what is wrong or worth a note."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from kueue_admission.api.resources import DEPLOYMENT
from kueue_admission.kernel.form_rules import FORMER_NAME, MISSING, UNKNOWN_FIELD
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.problem import Problem, Rule, SpecError
from kueue_admission.kernel.yaml_text import load_yaml
from kueue_fleet.adopt.live_objects import ClusterObjects, Data, Object, sort_objects
from kueue_fleet.adopt.quotas import differences
from kueue_fleet.fleet_file.form import read_form
from kueue_fleet.fleet_file.former_names import in_present_names
from kueue_fleet.fleet_file.rules.commands import IMPORT_REFUSED
from kueue_fleet.settings.configuration import ControllerConfiguration
from kueue_fleet.settings.tokens import CONTROLLER_NAME

Specs = Mapping[str, Data]
"""cluster → spec of one and the same object there."""
_OF_RELEASES: Final = (MISSING, UNKNOWN_FIELD, FORMER_NAME)
Mode = Literal["Autopilot", "Standard"]
"""Who manages the nodes of a GKE cluster."""


@dataclass(frozen=True, slots=True)
class AdoptedCluster:
    """One existing cluster."""

    name: str
    region: str
    objects: Sequence[Object]
    """As `kubectl get -o yaml` prints them, Lists included, with the ConfigMap of Kueue's Configuration."""
    node_pools: Sequence[Object] = ()
    """As `gcloud container node-pools list --format yaml` prints them; with any, the cluster is a Standard one."""
    mode: Mode | None = None
    """Who manages its nodes; needed without node pools."""
    description: Object | None = None
    """As `gcloud container clusters describe --format yaml` prints it; needed of clusters that Pulumi takes over."""
    outside_gke: bool = False
    """Whether it is of any other Kubernetes, so that it has neither region nor mode."""


@dataclass
class Platform:
    """The clusters, and what has been found about them."""

    clusters: Sequence[AdoptedCluster]
    objects: dict[str, ClusterObjects] = field(default_factory=dict)
    """By cluster."""
    manager: str | None = None
    """The cluster with MultiKueueClusters."""
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for cluster in self.clusters:
            self.objects[cluster.name], problems = sort_objects(cluster.objects, cluster.name)
            self.problems += problems
            self.notes += [f"{cluster.name}: {note}" for note in self.objects[cluster.name].notes]
        managers = [name for name, objects in self.objects.items() if objects.of("MultiKueueCluster")]
        self.manager = managers[0] if managers else None
        if len(managers) > 1:
            self.problem("clusters", f"{' and '.join(managers)} both have MultiKueueClusters", "give one manager")
        if self.manager is None and len(self.clusters) > 1:
            self.problem(
                "clusters",
                "no cluster has a MultiKueueCluster, so none is the manager",
                "give the manager's objects too, or one cluster at a time",
            )
        if self.manager is not None and not self.job_clusters:
            self.problem("clusters", f"{self.manager} is a manager without workers", "give the workers' objects too")

    def problem(self, path: str, wrong: str, fix: str, rule: Rule = IMPORT_REFUSED) -> None:
        """Add a problem, which refuses the import."""
        self.problems.append(rule.at(path, wrong, fix))

    def yaml_in(self, config_map: Object, key: str, path: str) -> Data:
        """The map that a ConfigMap has as YAML under `key`; empty, and a problem at `path`, if there is none."""
        try:
            data = load_yaml(str((config_map.get("data") or {}).get(key, "")), path)
        except SpecError as error:
            self.problems += error.problems
            return {}
        if not isinstance(data, dict):
            self.problem(path, f"has no settings in {key}", "give it as `kubectl get -o yaml` prints it")
            return {}
        return data

    @cached_property
    def controller_settings(self) -> Data | None:
        """What the ConfigMap of the fleet's own controller says; see `settings`.

        Fields of another form than the controller's are problems. Other releases may have others, or fewer.
        """
        settings = self.settings(CONTROLLER_NAME)
        if settings is None:
            return None
        path = f"{self.manager or self.clusters[0].name}.ConfigMap {CONTROLLER_NAME}"
        wrong = [
            problem for problem in read_form(ControllerConfiguration, settings)[1] if problem.rule not in _OF_RELEASES
        ]
        self.problems += [problem.at(path) for problem in wrong]
        present: Data = in_present_names(ControllerConfiguration, settings)
        return {} if wrong else present

    def settings(self, name: str) -> Data | None:
        """What the ConfigMap of a part of the fleet says, on the manager or on the only cluster, if it is there.

        As `yaml_in`, it is empty where the ConfigMap has no settings.
        """
        home = self.manager or self.clusters[0].name
        for cluster, item in self.others("ConfigMap"):
            if cluster == home and item["metadata"]["name"] == name:
                return self.yaml_in(item, "config.yaml", f"{home}.ConfigMap {name}")
        return None

    @property
    def following(self) -> Data:
        """What the controller's settings say of quotas that follow capacity; empty: none does."""
        return (self.controller_settings or {}).get("following") or {}

    @property
    def job_clusters(self) -> list[str]:
        """The clusters that run jobs, as they were given."""
        return [name for name in self.objects if name != self.manager]

    @property
    def standard_clusters(self) -> list[str]:
        """Those of them that have node pools."""
        return [cluster.name for cluster in self.clusters if cluster.node_pools and cluster.name != self.manager]

    @property
    def of_manager(self) -> ClusterObjects:
        """The manager's objects; none without a manager."""
        return self.objects[self.manager] if self.manager is not None else ClusterObjects()

    def found(self, kind: str, clusters: Iterable[str] | None = None) -> Mapping[str, Specs]:
        """name → cluster → spec, by the order in which the names are met."""
        specs: dict[str, dict[str, Data]] = {}
        for cluster in self.objects if clusters is None else clusters:
            for name, spec in self.objects[cluster].of(kind).items():
                specs.setdefault(name, {})[cluster] = spec
        return specs

    def others(self, kind: str) -> Iterator[tuple[str, Object]]:
        """Objects of a kind that is not Kueue's, with their clusters."""
        for cluster, objects in self.objects.items():
            for item in objects.others:
                if item["kind"] == kind:
                    yield cluster, item

    def controllers(self) -> Iterator[tuple[str, Object, Data]]:
        """Deployments of Kueue and of the fleet's own controller, with their clusters and the specs of their pods."""
        for cluster, item in self.others("Deployment"):
            if item["metadata"]["name"] in (DEPLOYMENT, CONTROLLER_NAME):
                yield cluster, item, dict(inside(item, "spec", "template", "spec"))

    def where(self, specs: Specs) -> Data:
        """`clusters` of an entry, where it is not the default."""
        return {} if list(specs) == self.job_clusters else {"clusters": list(specs)}

    def same(self, kind: str, name: str, specs: Specs) -> Data:
        """The one spec, which the object has to have everywhere."""
        self.problems += differences(f"{kind} {name}", specs)
        return next(iter(specs.values()))
