"""Whether a cluster outside GKE takes what `pulumi up` makes there: it answers, serves kinds, grants rights.

Deterministic, no I/O: from what was read of the cluster, a finding for each of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from kueue_fleet.fleet_file.charts import RELEASES
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.objects.monitoring import POD_MONITOR_API
from kueue_fleet.objects.render import render_cluster
from kueue_fleet.preflight.findings import Finding

KUEUE_DEFINITION: Final = "workloads.kueue.x-k8s.io"
"""The CustomResourceDefinition by which Kueue is found."""
RELEASE_NAME: Final = "meta.helm.sh/release-name"
"""Annotation of what Helm made. Source: helm@v3 pkg/action/validate.go."""
RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"
"""The same, for the release's namespace."""
_REQUESTS: Final = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
_POD_MONITORS: Final = (POD_MONITOR_API, "PodMonitor")
_OF_OTHERS: Final = {
    _REQUESTS: "install the cluster autoscaler with ProvisioningRequests",
    _POD_MONITORS: "install the Prometheus Operator, or remove podMonitors",
}
"""Kinds that neither Kubernetes has nor a chart of the fleet brings, and who does."""


class Right(NamedTuple):
    """To do everything with a resource."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


ALL: Final = Right("*", "*")
"""What cluster-admin may do."""
_OF_CHARTS: Final = (
    Right("", "namespaces"),
    Right("", "secrets"),
    Right("", "configmaps"),
    Right("", "services"),
    Right("", "serviceaccounts"),
    Right("apps", "deployments"),
    Right("rbac.authorization.k8s.io", "clusterroles"),
    Right("rbac.authorization.k8s.io", "clusterrolebindings"),
    Right("rbac.authorization.k8s.io", "roles"),
    Right("rbac.authorization.k8s.io", "rolebindings"),
    Right("apiextensions.k8s.io", "customresourcedefinitions"),
    Right("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    Right("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
)
"""Source: kueue@v0.19.2 charts/kueue/templates; Helm keeps its releases in Secrets."""


@dataclass(frozen=True, slots=True)
class ClusterNeeds:
    """What a fleet asks of a cluster outside GKE."""

    cluster: str
    context: str
    """By which Pulumi reaches it."""
    kinds: tuple[tuple[str, str], ...]
    """apiVersion and kind of objects that the cluster itself has to serve."""
    groups: tuple[str, ...]
    """API groups that charts of the fleet bring."""
    release: str
    """Helm release of Kueue, as NAMESPACE/NAME."""
    takes_over: bool
    """Whether `pulumi up` takes over objects that are there."""

    @property
    def fix(self) -> str:
        """What to do where it cannot be read."""
        return f"correct context {self.context} of your kubeconfig, by which Pulumi reaches {self.cluster}"


ClusterPart = Literal["kinds of objects", "Kueue", "rights"]
"""What is asked of a cluster that answers."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a cluster outside GKE has."""

    wrong: str = ""
    """Why nothing is known; empty: it was read."""
    fix: str = ""
    version: str = ""
    """Such as v1.36.3."""
    kinds: frozenset[tuple[str, str]] = frozenset()
    """Of those that the fleet needs, the ones that it serves."""
    release: str | None = None
    """Helm release of the Kueue that is there; empty: not of Helm; None: there is none."""
    user: str = ""
    """Whom the API server takes us for; empty: it does not say."""
    denied: tuple[Right, ...] = ()
    """The rights that are needed and not there."""
    unread: Mapping[ClusterPart, str] = field(default_factory=dict)
    """What could not be read of a cluster that answers, and why."""


def plain_cluster_needs(fleet: FleetSpec) -> tuple[ClusterNeeds, ...]:
    """What `fleet` needs of each cluster outside GKE, in the order of the file."""
    return tuple(_needs(fleet, name) for name in fleet.plain_clusters)


def _needs(fleet: FleetSpec, cluster: str) -> ClusterNeeds:
    kinds = dict.fromkeys((item["apiVersion"], item["kind"]) for item in render_cluster(fleet, cluster))
    for check in fleet.admission_checks:
        if check.provisioning_request is not None and cluster in fleet.clusters_of(check):
            kinds[_REQUESTS] = None
    own = tuple(kind for kind in kinds if kind in _OF_OTHERS or not _of_operator(kind[0]))
    brought = (version for version, kind in kinds if _of_operator(version) and (version, kind) not in _OF_OTHERS)
    groups = tuple(dict.fromkeys(version.partition("/")[0] for version in brought))
    entry, kueue = fleet.cluster(cluster), fleet.kueue_on(cluster)
    release = f"{kueue.namespace}/{RELEASES['kueue']}"
    return ClusterNeeds(cluster, entry.context, own, groups, release, entry.upsert_existing_objects)


def _of_operator(api_version: str) -> bool:
    """Whether the API is Kueue's or another operator's; Kubernetes' own end in .k8s.io, or have no dot."""
    group = api_version.partition("/")[0] if "/" in api_version else ""
    return "." in group and (group.endswith(".x-k8s.io") or not group.endswith(".k8s.io"))


def rights(needs: ClusterNeeds, resources: dict[tuple[str, str], str]) -> tuple[Right, ...]:
    """The rights to make all of it; `resources` are the plurals of the kinds that the cluster serves."""
    own = (Right(version.partition("/")[0] if "/" in version else "", name) for (version, _), name in resources.items())
    return tuple(dict.fromkeys((*_OF_CHARTS, *own, *(Right(group, "*") for group in needs.groups))))


def plain_cluster_findings(needs: ClusterNeeds, facts: ClusterFacts) -> Iterator[Finding]:
    """A finding for each need."""
    where = f"{needs.cluster}: "
    if facts.wrong:
        yield Finding("clusters", f"{where}API server", "reachable", "?", "unknown", facts.wrong, facts.fix)
        return
    yield Finding("clusters", f"{where}API server", "reachable", facts.version, "fits")
    yield _kinds(needs, facts, f"{where}kinds of objects")
    yield _kueue(needs, facts, f"{where}Kueue")
    yield _rights(needs, facts, f"{where}rights" + (f" of {facts.user}" if facts.user else ""))


def _unread(needs: ClusterNeeds, facts: ClusterFacts, part: ClusterPart, what: str, wanted: str) -> Finding:
    return Finding("clusters", what, wanted, "?", "unknown", facts.unread[part], needs.fix)


def _kinds(needs: ClusterNeeds, facts: ClusterFacts, what: str) -> Finding:
    missing = [kind for kind in needs.kinds if kind not in facts.kinds]
    wanted, there = str(len(needs.kinds)), str(len(needs.kinds) - len(missing))
    if "kinds of objects" in facts.unread:
        return _unread(needs, facts, "kinds of objects", what, wanted)
    if not missing:
        return Finding("clusters", what, wanted, there, "fits")
    names = listed([f"{kind} of {version}" for version, kind in missing])
    fixes = dict.fromkeys(_OF_OTHERS.get(kind, f"upgrade Kubernetes, which is {facts.version}") for kind in missing)
    fix = "; ".join(fixes)
    return Finding("clusters", what, wanted, there, "ask", f"the cluster does not serve {names}", fix)


def _kueue(needs: ClusterNeeds, facts: ClusterFacts, what: str) -> Finding:
    wanted = f"none, or {needs.release}"
    if "Kueue" in facts.unread:
        return _unread(needs, facts, "Kueue", what, wanted)
    if facts.release is None:
        return Finding("clusters", what, wanted, "none", "fits")
    there = facts.release or "not of Helm"
    if facts.release == needs.release or needs.takes_over:
        return Finding("clusters", what, wanted, there, "fits")
    wrong = f"Kueue is there, and Helm takes over no objects that are not of release {needs.release}"
    fix = "set upsertExistingObjects: true on the cluster, which takes it over, or remove it"
    return Finding("clusters", what, wanted, there, "ask", wrong, fix)


def _rights(needs: ClusterNeeds, facts: ClusterFacts, what: str) -> Finding:
    wanted = "to write all that is made"
    if "rights" in facts.unread and not facts.denied:
        return _unread(needs, facts, "rights", what, wanted)
    if not facts.denied:
        return Finding("clusters", what, wanted, "all", "fits")
    fix = "let Pulumi use a context with the ClusterRole cluster-admin"
    return Finding(
        "clusters", what, wanted, "a part", "ask", f"may not write {listed(list(map(str, facts.denied)))}", fix
    )
