"""The section `multiKueue`, from the manager's objects and its Configuration."""

from __future__ import annotations

from datetime import date
from typing import Final

from kueue_admission.api.resources import DEPLOYMENT
from kueue_admission.kernel.manifest import maps_in
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER
from kueue_fleet.adopt.live_objects import Data
from kueue_fleet.adopt.platform import Platform
from kueue_fleet.adopt.queues import dispatched_queues
from kueue_fleet.fleet_file.model.clusters import MultiKueueArgs, ServiceAccountToken
from kueue_fleet.fleet_file.model.kueue_installation import PLUGIN
from kueue_fleet.fleet_file.worker_tokens import ACCOUNT_NAME, ROTATE_BY_ANNOTATION
from kueue_fleet.settings.tokens import CONTROLLER_NAME

_DEFAULT_FLAVOR: Final = str(MultiKueueArgs.model_fields["manager_flavor_name"].default)


def _managers_flavor(platform: Platform) -> str | None:
    """The flavor that the manager's quotas of dispatched queues are on, or that gives several of them their names.

    One without labels is preferred.
    """
    on_manager = platform.of_manager.of("ClusterQueue")
    used_flavors = dict.fromkeys(
        flavor["name"]
        for name in dispatched_queues(platform)
        for group in on_manager[name].get("resourceGroups") or ()
        for flavor in group["flavors"]
    )
    elsewhere = platform.found("ResourceFlavor", platform.job_clusters)
    flavors = platform.of_manager.of("ResourceFlavor")
    candidates = [name for name in used_flavors if name in flavors] or [
        name for name in flavors if name not in elsewhere
    ]
    if _DEFAULT_FLAVOR in candidates:
        return _DEFAULT_FLAVOR
    return min(
        candidates,
        key=lambda name: (
            name in elsewhere,
            bool(flavors[name]),
            -sum(other.startswith(f"{name}-") for other in candidates),
        ),
        default=None,
    )


def adopt_multi_kueue(platform: Platform, settings: Data, rotate_by: date, today: date) -> Data:
    """The section; `settings` are its fields from the manager's Configuration."""
    section: Data = dict(settings)
    manager = platform.of_manager
    for name in manager.of("MultiKueueCluster"):
        if name not in platform.job_clusters:
            platform.problem(
                f"{platform.manager}.MultiKueueCluster {name}",
                f"no cluster of that name is given; there are {', '.join(platform.job_clusters)}",
                "give that worker's objects, under the MultiKueueCluster's name",
            )
    checks = {
        name: str((spec.get("parameters") or {}).get("name", ""))
        for name, spec in manager.of("AdmissionCheck").items()
        if spec.get("controllerName") == MULTIKUEUE_CONTROLLER
    }
    configs = {name: list(spec.get("clusters") or ()) for name, spec in manager.of("MultiKueueConfig").items()}
    widest = max(checks, key=lambda name: len(configs.get(checks[name], ())), default=None)
    if widest is not None:
        section |= {"admissionCheckName": widest, "configName": checks[widest]}
        workers = configs.get(checks[widest], [])
        if workers and workers != platform.job_clusters and set(workers) <= set(platform.job_clusters):
            section["workers"] = workers
    flavor = _managers_flavor(platform)
    if flavor is not None:
        section["managerFlavorName"] = flavor
    dispatched_names, on_workers = dispatched_queues(platform), platform.found("ClusterQueue", platform.job_clusters)
    if set(dispatched_names) != set(on_workers):
        section["queues"] = dispatched_names
    # What only sums of quotas say, where the controller makes them.
    section_told = platform.following.get("multiKueue") or {}
    section |= {
        field: section_told[field] for field in ("headroomPercent", "formerManagerFlavorNames") if field in section_told
    }
    section["credentials"] = _credentials(platform, rotate_by, today)
    return section


def in_naming_order(platform: Platform, flavors: list[Data], name: str) -> list[Data]:
    """`flavors`, beginning with those that flavors of the manager are named after: `NAME-FLAVOR`.

    The fleet names each after the first flavor, in the order of the file, of the queues that share it.
    """
    flavor_names = tuple(platform.of_manager.of("ResourceFlavor"))

    def follows(flavor: Data) -> bool:
        begin = f"{name}-{flavor['name']}"
        return not any(suffix == begin or suffix.startswith(f"{begin}-") for suffix in flavor_names)

    return sorted(flavors, key=follows)


def _credentials(platform: Platform, rotate_by: date, today: date) -> Data:
    connections = platform.of_manager.of("MultiKueueCluster")
    sources = [spec.get("clusterSource") or {} for spec in connections.values()]
    if sources and all("clusterProfileRef" in source for source in sources):
        return {"type": "ClusterProfile", "pluginImage": _plugin_image(platform)}
    token = {"type": "ServiceAccountToken", **_lifetime(platform)}
    known_tokens = _tokens(platform)
    if len(known_tokens) == 1:
        [(rotation, day)] = known_tokens
        return {**token, "rotation": rotation, **({} if day == CONTROLLER_NAME else {"rotateBy": day})}
    serials = {_serial(name, spec.get("clusterSource") or {}) for name, spec in connections.items()}
    if len(serials) == 1 and "" not in serials:
        # First tokens that were replaced are gone from the workers.
        return {**token, "rotation": serials.pop(), "rotateBy": rotate_by.isoformat()}
    platform.notes.append("new worker credentials are created; the present Secrets are no longer used")
    return {**token, "rotation": f"{today:%Y-%m}", "rotateBy": rotate_by.isoformat()}


def _plugin_image(platform: Platform) -> str:
    """The image that the manager's controllers take the plugin from; a problem where none of them is given."""
    for cluster, _, pod in platform.controllers():
        for container in maps_in(pod.get("initContainers")):
            if cluster == platform.manager and PLUGIN in str([container.get("command"), container.get("args")]):
                return str(container.get("image"))
    platform.problem(
        "multiKueue.credentials.pluginImage",
        f"is not known: no Deployment whose pods have {PLUGIN} is among the objects",
        f"add the Deployment {DEPLOYMENT} of the manager to them",
    )
    return ""


def _lifetime(platform: Platform) -> Data:
    """The field `lifetime`, where the controller that renews tokens says another than the default."""
    lifetime = (platform.controller_settings or {}).get("tokenLifetime")
    default = str(ServiceAccountToken.model_fields["lifetime"].default)
    return {} if lifetime in (None, default) else {"lifetime": lifetime}


def _serial(worker: str, source: Data) -> str:
    """The serial in the name of a worker's Secret on the manager, if a fleet has named it; else empty."""
    location = str((source.get("kubeConfig") or {}).get("location", ""))
    return location.removeprefix(f"{worker}-") if location.startswith(f"{worker}-") else ""


def _tokens(platform: Platform) -> set[tuple[str, str]]:
    """Serial and day of the tokens that a fleet has made on the workers."""
    tokens = set()
    for cluster, item in platform.others("Secret"):
        name = str(item["metadata"]["name"])
        day = (item["metadata"].get("annotations") or {}).get(ROTATE_BY_ANNOTATION)
        if cluster != platform.manager and day is not None and name.startswith(f"{ACCOUNT_NAME}-"):
            tokens.add((name.removeprefix(f"{ACCOUNT_NAME}-"), str(day)))
    return tokens
