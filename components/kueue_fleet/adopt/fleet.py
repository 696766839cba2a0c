"""One fleet file from the objects of all clusters: what they share is written once, with the clusters it is on.

The data of a fleet file in its own order, and notes on all that it leaves out or would change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.problem import SpecError
from kueue_fleet.adopt.configuration import adopt_configuration, read_configurations
from kueue_fleet.adopt.controller import adopt_controller
from kueue_fleet.adopt.drop_defaults import drop_defaults
from kueue_fleet.adopt.google_cloud import (
    cluster_fields,
    collects_metrics,
    network_fields,
    project_of,
    streams_images,
    zone_of,
)
from kueue_fleet.adopt.live_objects import Data
from kueue_fleet.adopt.multi_kueue import adopt_multi_kueue, in_naming_order
from kueue_fleet.adopt.placeholders import lower_placeholders
from kueue_fleet.adopt.plain_clusters import adopt_nodes
from kueue_fleet.adopt.platform import AdoptedCluster, Platform
from kueue_fleet.adopt.pools import leave_to_channel, node_pool_entries
from kueue_fleet.adopt.queues import (
    adopt_checks,
    adopt_cohorts,
    adopt_entries,
    adopt_flavors,
    adopt_queues,
)
from kueue_fleet.adopt.remainder import remainder_notes
from kueue_fleet.adopt.storage import add_drivers, adopt_storage
from kueue_fleet.adopt.teams import adopt_teams
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.fleet_page import PAGE_NAME
from kueue_fleet.fleet_file.parse import parse_fleet, read_with_errors
from kueue_fleet.gke.labels import NODE_POOL
from kueue_fleet.objects.monitoring import DASHBOARD_NAME, GRAFANA_NAME, POD_MONITOR_NAME

_NOT_READ: Final = (
    "of Google Cloud only node pools are read: settings of clusters, networks and Cloud Monitoring are not in the file"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What no Kubernetes object says."""

    name: str
    """Of the fleet."""
    project: str
    """Google Cloud project id; empty: every cluster is outside GKE."""
    rotate_by: date
    """Day by which new worker credentials are to be replaced."""
    today: date
    """Day on which they are made: `rotation` is its year and month."""
    default_kueue: bool = False
    """Whether Kueue's version and Configuration, where no object says them, are the defaults of a fleet file."""
    in_place: bool = False
    """Whether the fleet is to take these clusters over, and not to make others like them."""
    managed: bool = False
    """Whether Pulumi is to manage the clusters and node pools themselves too, all of which are described."""
    stays: Mapping[str, str] = field(default_factory=dict)
    """What stays its owner's all the same, and why: clusters, and node pools as CLUSTER/POOL."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """A fleet file's data, in the file's order, and what its reader should know."""

    data: Data
    notes: tuple[str, ...]


def adopt_fleet(clusters: Sequence[AdoptedCluster], identity: Identity) -> Adopted:
    """The fleet that `clusters` are.

    The cluster with MultiKueueClusters is the manager; the others are its workers, or alone: standalone.

    Raises:
        SpecError: with everything that is not known, every object that is malformed, and every disagreement that a
            fleet file cannot say.
    """
    platform = Platform(clusters)
    if identity.in_place or identity.managed:
        _check_project(platform, identity.project)
    for cluster in clusters:
        if not (cluster.region or cluster.outside_gke):
            wrong = "is not known: no Kubernetes object says where the cluster is"
            fix = f"give it (--region {cluster.name}=REGION), or what `gcloud container clusters describe` prints"
            platform.problem(f"clusters[{cluster.name}].region", wrong, f"{fix} (--description)")
        if zone := zone_of(cluster.description):
            platform.notes.append(
                f"{cluster.name} is a zonal cluster, in {zone}, and those of a fleet file are regional: `pulumi up` "
                f"finds no such cluster in {cluster.region}"
            )
    modes = _modes(platform)
    configurations = read_configurations(platform, default=identity.default_kueue)
    monitoring = _observability(platform)
    monitors = _pod_monitors(platform)
    observed = platform.objects.keys() if monitoring else monitors.keys()
    settings = adopt_configuration(platform, configurations, observed=observed, default=identity.default_kueue)
    controller = adopt_controller(platform, settings.multi_kueue.get("external", {}).get("name"))
    flavors = platform.found("ResourceFlavor").values()
    of_flavors = {(spec.get("nodeLabels") or {}).get(NODE_POOL, "") for specs in flavors for spec in specs.values()}
    pools, problems, notes = node_pool_entries(
        {cluster.name: cluster.node_pools for cluster in clusters}, platform.manager, of_flavors
    )
    platform.problems += problems
    platform.notes += notes
    _raise(platform)
    data: Data = {
        "name": identity.name,
        "project": identity.project,
        **settings.sections,
        "clusters": [
            {**_cluster(platform, cluster, modes, settings.own), **monitors.get(cluster.name, {})}
            for cluster in clusters
        ],
        "nodePools": pools,
        "flavors": adopt_flavors(platform, pools),
        "topologies": adopt_entries(platform, "Topology", placed=True),
        "cohorts": adopt_cohorts(platform),
        "clusterQueues": adopt_queues(platform),
        "admissionChecks": adopt_checks(platform),
        "priorityClasses": adopt_entries(platform, "PriorityClass"),
        "workloadPriorityClasses": adopt_entries(platform, "WorkloadPriorityClass"),
        **adopt_teams(platform),
        "controller": controller,
        **_page(platform),
        "storage": adopt_storage(platform),
        "observability": monitoring,
    }
    add_drivers(data, platform.job_clusters)
    if platform.manager is not None:
        section = adopt_multi_kueue(platform, settings.multi_kueue, identity.rotate_by, identity.today)
        data["multiKueue"] = section
        data["flavors"] = in_naming_order(platform, data["flavors"], section.get("managerFlavorName", ""))
    _raise(platform)
    if identity.in_place or identity.managed:
        _take_over(platform, data, identity)
    for pool in pools:
        platform.notes += [] if pool.get("existing") else leave_to_channel(pool)
    if not identity.managed and not all(cluster.outside_gke for cluster in clusters):
        platform.notes.append(_NOT_READ)
    empty: tuple[Any, ...] = (None, [], {}, "")
    data = drop_defaults({key: value for key, value in data.items() if key == "fleetPage" or value not in empty})
    with suppress(SpecError):
        platform.notes += lower_placeholders(data, parse_fleet(data, as_published=True))
    try:
        platform.notes += remainder_notes(platform, read_with_errors(data), configurations)
    except (SpecError, LookupError):  # What rules would refuse may name what is not there.
        platform.notes.append(
            "the file has errors, so it is not known what it leaves out or would change: correct it, and compare with "
            "`kueue-fleet render FILE --cluster NAME | kubectl --context NAME diff -f -`"
        )
    return Adopted(data, tuple(platform.notes))


def _owners(platform: Platform) -> dict[str, str]:
    """The project of each cluster that is described; "" where its description does not say it."""
    return {cluster.name: project_of(cluster.description) for cluster in platform.clusters if cluster.description}


def _check_project(platform: Platform, project: str) -> None:
    """Only workers may be in another project than the fleet."""
    for name, owner in _owners(platform).items():
        role = _role(platform, name)
        if role != "worker" and owner not in ("", project):
            wrong = f"{project}, but {name} is in {owner}, and a {role} is in the fleet's project"
            platform.problem("project", wrong, f"give --project {owner}")


def _role(platform: Platform, cluster: str) -> str:
    return "manager" if cluster == platform.manager else "worker" if platform.manager else "standalone"


def _page(platform: Platform) -> Data:
    """The page for teams, if it runs here."""
    settings = platform.settings(PAGE_NAME)
    return {} if settings is None else {"fleetPage": settings.get("page") or {}}


def _take_over(platform: Platform, data: Data, identity: Identity) -> None:
    """Mark what is there: what stays its owner's is existing, the rest is as Google Cloud has it."""
    described = {
        cluster.name: cluster.description for cluster in platform.clusters if cluster.description and identity.managed
    }
    descriptions = {name: value for name, value in described.items() if name not in identity.stays}
    stays = dict(identity.stays)
    if descriptions:
        data["network"], elsewhere = network_fields(descriptions, identity.project)
        stays |= elsewhere
        if any(collects_metrics(description) for description in descriptions.values()):
            data["observability"] = {**(data["observability"] or {}), "managedPrometheus": True}
    owners = _owners(platform)
    for cluster in data["clusters"]:
        cluster["upsertExistingObjects"] = True
        if "kubernetes" in cluster:
            continue
        if owners.get(cluster["name"], "") not in ("", identity.project):
            cluster["project"] = owners[cluster["name"]]
        is_taken_over = cluster["name"] in descriptions and cluster["name"] not in stays
        cluster |= cluster_fields(descriptions[cluster["name"]]) if is_taken_over else {"existing": True}
        if is_taken_over and cluster.get("imageStreaming") is False and streams_images(descriptions[cluster["name"]]):
            cluster["imageStreaming"] = True
            platform.notes.append(
                f"image streaming of {cluster['name']}, which some node pools have, is for all of them"
            )
    existing = [cluster["name"] for cluster in data["clusters"] if cluster.get("existing")]
    for pool in data["nodePools"]:
        on = pool.get("clusters") or platform.standard_clusters
        if any(cluster in existing or f"{cluster}/{pool['name']}" in stays for cluster in on):
            pool["existing"] = True
    platform.notes += [f"{name} stays its owner's, with existing: true: {why}" for name, why in stays.items()]


def _raise(platform: Platform) -> None:
    if platform.problems:
        raise SpecError(platform.problems)


def _modes(platform: Platform) -> dict[str, str]:
    """Who manages the nodes of each cluster; a problem where nothing says it."""
    modes: dict[str, str] = {}
    for cluster in platform.clusters:
        if cluster.outside_gke:
            continue
        flavors = platform.objects[cluster.name].of("ResourceFlavor").items()
        names = [name for name, spec in flavors if NODE_POOL in (spec.get("nodeLabels") or {})]
        path = f"clusters[{cluster.name}].mode"
        pools = f"`gcloud container node-pools list --cluster {cluster.name} --format yaml` (--node-pools)"
        if cluster.node_pools and cluster.mode == "Autopilot":
            platform.problem(path, "is Autopilot, but node pools are given", "leave out one of the two")
        elif names and not cluster.node_pools and cluster.name != platform.manager:
            wrong = f"is Standard, as the node labels of {listed(names)} name a node pool, but no node pools are given"
            platform.problem(path, wrong, f"give the output of {pools}")
        elif cluster.mode is None and not cluster.node_pools:
            wrong = "is not known: no Kubernetes object says who manages the nodes"
            platform.problem(path, wrong, f"give the mode (--mode), or the output of {pools}")
        modes[cluster.name] = "Standard" if cluster.node_pools else cluster.mode or "Autopilot"
    return modes


def _cluster(
    platform: Platform, cluster: AdoptedCluster, modes: Mapping[str, str], configurations: Mapping[str, Data]
) -> Data:
    own = configurations[cluster.name]
    entries_by_name = {
        cluster_data["name"]: cluster_data.get("file") or {} for cluster_data in platform.following.get("clusters", ())
    }
    return {
        # What only Google Cloud says otherwise.
        **entries_by_name.get(cluster.name, {}),
        "name": cluster.name,
        "role": _role(platform, cluster.name),
        **(
            _outside(platform, cluster)
            if cluster.outside_gke
            else {"region": cluster.region, "mode": modes[cluster.name]}
        ),
        **({"multiNetworking": True} if any(map(_has_own_networks, cluster.node_pools)) else {}),
        **({"kueue": own} if own else {}),
    }


def _outside(platform: Platform, cluster: AdoptedCluster) -> Data:
    objects = platform.objects[cluster.name]
    nodes = (item for item in objects.others if item["kind"] == "Node")
    return {"kubernetes": {}, "nodes": adopt_nodes(nodes, objects.of("ResourceFlavor"))}


def _has_own_networks(pool: Mapping[str, Any]) -> bool:
    """Whether the nodes of a printed pool have networks beside their own, which only some clusters take."""
    return bool((pool.get("networkConfig") or {}).get("additionalNodeNetworkConfigs"))


def _pod_monitors(platform: Platform) -> dict[str, Data]:
    """The field of clusters where a Prometheus Operator reads Kueue's metrics as in a fleet."""
    accounts = {cluster for cluster, item in platform.others("ServiceAccount") if _name(item) == POD_MONITOR_NAME}
    labels = {
        cluster: dict(inside(item, "metadata", "labels"))
        for cluster, item in platform.others("PodMonitor")
        if _name(item) == "kueue" and cluster in accounts
    }
    return {cluster: {"podMonitors": {"labels": entry} if entry else {}} for cluster, entry in labels.items()}


def _name(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["name"])


def _observability(platform: Platform) -> Data:
    """The part of the fleet's monitoring that is in the clusters; Cloud Monitoring's is not read."""
    has_monitor = any(_name(item) == "kueue" for _, item in platform.others("PodMonitoring"))
    maps = [item["metadata"] for _, item in platform.others("ConfigMap")]
    boards = [metadata for metadata in maps if metadata["name"] == DASHBOARD_NAME]
    if not has_monitor and not boards:
        return {}
    section: Data = {"managedPrometheus": has_monitor, "dashboard": False, "alerts": {"enabled": False}}
    if not boards:
        return {**section, "grafana": {"enabled": False}}
    namespace = boards[0].get("namespace")
    accounts = [item["metadata"] for _, item in platform.others("ServiceAccount")]
    own = has_monitor and any(
        (account.get("namespace"), account["name"]) == (namespace, GRAFANA_NAME) for account in accounts
    )
    return {**section, "grafana": {"namespace": namespace, **({} if own else {"existing": True})}}
