"""A cluster of the file as Google's provider has it: for each property, the field of the file that says it.

What a cluster has by inputs of its owner, such as accounts and networks, is in `google.clusters`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kueue_admission.kernel.timestamp import timestamp_text
from kueue_fleet.fleet_file.model.clusters import FIRST_DRIVERS, STANDARD_ONLY, ClusterEntry, fields_marked
from kueue_fleet.fleet_file.model.property_rows import Row, property_at, set_at

STORAGE_ADDONS: Final = {
    "PersistentDisk": "gcePersistentDiskCsiDriverConfig",
    "Filestore": "gcpFilestoreCsiDriverConfig",
    "GcsFuse": "gcsFuseCsiDriverConfig",
    "Lustre": "lustreCsiDriverConfig",
    "MultiTierCheckpoints": "highScaleCheckpointingConfig",
}
"""Addons of a cluster by the driver's name in the fleet file."""
LATER_ADDONS: Final = {"Lustre": "LustreCsiDriver", "MultiTierCheckpoints": "HighScaleCheckpointing"}
"""Drivers that no cluster has from the beginning, with gcloud's names: asked for where they are wanted; where they no
longer are, the provider leaves them on."""
_AT_ANY_TIME: Final = {
    "recurringWindow": {
        "startTime": "2026-01-01T00:00:00Z",
        "endTime": "2026-01-02T00:00:00Z",
        "recurrence": "FREQ=DAILY",
    }
}
"""No policy, written out: where a policy is removed, the provider sends its exclusions back, and they stay."""
_ENFORCED: Final = "PROJECT_SINGLETON_POLICY_ENFORCE"


def _maintenance(cluster: ClusterEntry) -> dict[str, Any]:
    window = cluster.maintenance
    if window is None:
        return _AT_ANY_TIME
    policy: dict[str, Any] = {
        "recurringWindow": {
            "startTime": timestamp_text(window.start),
            "endTime": timestamp_text(window.end),
            "recurrence": window.recurrence,
        }
    }
    if window.exclusions:
        policy["maintenanceExclusions"] = [
            {
                "exclusionName": exclusion.name,
                "startTime": timestamp_text(exclusion.start),
                **({"endTime": timestamp_text(exclusion.end)} if exclusion.end else {}),
                "exclusionOptions": {
                    "scope": exclusion.scope,
                    **({"endTimeBehavior": exclusion.end_time_behavior} if exclusion.end_time_behavior else {}),
                },
            }
            for exclusion in window.exclusions
        ]
    return policy


def _maintenance_back(policy: Mapping[str, Any]) -> dict[str, Any] | None:
    times = {name: property_at(policy, f"recurringWindow.{name}") for name in ("startTime", "endTime", "recurrence")}
    if times["startTime"] is None:
        return None
    exclusions = property_at(policy, "maintenanceExclusions") or ()
    return {
        "start": times["startTime"],
        "end": times["endTime"],
        "recurrence": times["recurrence"],
        "exclusions": [_exclusion_back(exclusion) for exclusion in exclusions],
    }


def _exclusion_back(exclusion: Mapping[str, Any]) -> dict[str, Any]:
    fields = {
        "name": exclusion["exclusionName"],
        "start": exclusion.get("startTime"),
        "scope": property_at(exclusion, "exclusionOptions.scope") or "NO_UPGRADES",
    }
    optional = {
        "end": exclusion.get("endTime"),
        "endTimeBehavior": property_at(exclusion, "exclusionOptions.endTimeBehavior"),
    }
    return fields | {name: value for name, value in optional.items() if value}


def _addons(cluster: ClusterEntry) -> dict[str, Any] | None:
    """On or off where Standard clusters had a driver from the beginning; the newer ones where wanted."""
    always = FIRST_DRIVERS if cluster.mode == "Standard" else ()
    return {
        addon: {"enabled": driver in cluster.storage_drivers}
        for driver, addon in STORAGE_ADDONS.items()
        if driver in always or (driver in cluster.storage_drivers and driver in LATER_ADDONS)
    } or None


def _drivers(addons: Mapping[str, Any]) -> list[str]:
    return [driver for driver, addon in STORAGE_ADDONS.items() if property_at(addons, f"{addon}.enabled")]


def _on_standard(value: Callable[[ClusterEntry], Any]) -> Callable[[ClusterEntry], Any]:
    return lambda cluster: value(cluster) if cluster.mode == "Standard" else None


ROWS: Final[tuple[Row[ClusterEntry], ...]] = (
    Row("releaseChannel.channel", "releaseChannel", lambda one: one.release_channel, lambda name: name or "REGULAR"),
    Row("minMasterVersion", "minMasterVersion", lambda one: one.min_master_version, lambda version: None),
    Row("maintenancePolicy", "maintenance", _maintenance, _maintenance_back),
    Row("costManagementConfig.enabled", "costAllocation", lambda one: one.cost_allocation, bool),
    # Said even where they are off: the provider keeps what it read where a program says nothing, so that enforcement,
    # or a key, would outlive its field.
    Row(
        "databaseEncryption",
        "databaseEncryptionKey",
        lambda one: (
            {"state": "ENCRYPTED", "keyName": one.database_encryption_key}
            if one.database_encryption_key
            else {"state": "DECRYPTED"}
        ),
        lambda encryption: property_at(encryption, "keyName"),
    ),
    Row(
        "binaryAuthorization.evaluationMode",
        "binaryAuthorization",
        lambda one: _ENFORCED if one.binary_authorization else "DISABLED",
        lambda mode: mode == _ENFORCED,
    ),
    Row(
        "authenticatorGroupsConfig.securityGroup",
        "rbacSecurityGroup",
        lambda one: one.rbac_security_group,
        stays="{was} keeps its rights: revoke them with "
        '`gcloud container clusters update {name} --location {region} --security-group=""`',
    ),
    Row("addonsConfig", "storageDrivers", _addons, _drivers),
    Row(
        "addonsConfig.sliceControllerConfig.enabled",
        "sliceController",
        lambda one: one.slice_controller or None,
        bool,
        stays="GKE's slice controller stays on: turn it off with gcloud",
    ),
    Row("enableMultiNetworking", "multiNetworking", lambda one: one.multi_networking or None, bool),
    Row(
        "nodePoolDefaults.nodeConfigDefaults.gcfsConfig.enabled",
        "imageStreaming",
        _on_standard(lambda one: one.image_streaming),
        bool,
    ),
    # Zones that are not named would stay those that were.
    Row("nodeLocations", "zones", _on_standard(lambda one: list(one.node_locations) or None)),
)
"""Every property that one field of the file says."""


def cluster_fields(properties: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """The fields of the file that say these properties of a cluster of that mode."""
    fields: dict[str, Any] = {}
    absent = fields_marked(STANDARD_ONLY) if mode == "Autopilot" else ()
    for row in ROWS:
        if row.field not in absent:
            set_at(fields, row.field, row.back(property_at(properties, row.property)))
    if mode == "Autopilot" and "Lustre" in _drivers(properties.get("addonsConfig") or {}):
        fields["storageDrivers"] = ["Lustre"]
    return fields
