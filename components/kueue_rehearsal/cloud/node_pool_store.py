"""The node pools and the auto-provisioning of one cluster, as they were last asked for.

They outlive the supervisor in a file in the cluster's folder, which is written whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kueue_admission.kernel.manifest import Manifest
from kueue_rehearsal.cloud.node_pools import NodePool, parse_node_pool
from kueue_rehearsal.cloud.node_sources import ResourceLimits
from kueue_rehearsal.cloud.node_templates import Place
from kueue_rehearsal.private_files import write_private


class NodePoolStore:
    """What a cluster's nodes should be like."""

    def __init__(self, path: Path, place: Place, *, autopilot: bool) -> None:
        self.autopilot = autopilot
        self._path = path
        self._place = place
        self._settings: Manifest = {}
        self.pools: dict[str, NodePool] = {}
        if path.is_file():
            content = json.loads(path.read_text())
            self._settings = content["settings"]
            for name, body in content["pools"].items():
                self.pools[name] = self._parse(name, body, content.get("ends", {}).get(name))

    @property
    def place(self) -> Place:
        """The cluster's place, with the zones that it names for its nodes."""
        zones = tuple(self._settings.get("nodeLocations") or ())
        return Place(self._place.cluster, self._place.region, zones or self._place.zones)

    @property
    def inputs(self) -> Manifest:
        """What the cluster and its pools were last asked to be."""
        return {"cluster": self._settings, "nodePools": {name: pool.body for name, pool in self.pools.items()}}

    def put_inputs(self, settings: Manifest) -> None:
        """Keeps what the cluster is asked to be, of which `nodeLocations` and `clusterAutoscaling` matter to nodes."""
        self._settings = dict(settings)
        self._write()

    def put(self, name: str, body: Manifest, ends_at: float | None = None) -> NodePool:
        """Keeps a pool, whose reservation ends then; `node_pool_rules.refusals` has found nothing wrong with it."""
        pool = self._parse(name, body, ends_at)
        self.pools[name] = pool
        self._write()
        return pool

    def remove(self, name: str) -> None:
        """Forgets a pool."""
        if self.pools.pop(name, None) is not None:
            self._write()

    @property
    def auto_provisions(self) -> bool:
        """Whether GKE makes pools for pods that fit nowhere."""
        return self.autopilot or (self._settings.get("clusterAutoscaling") or {}).get("enabled") is True

    @property
    def auto_provisioning_place(self) -> Place:
        """Where auto-provisioned nodes are."""
        scaling = self._settings.get("clusterAutoscaling") or {}
        zones = tuple(scaling.get("autoProvisioningLocations") or ())
        return Place(self._place.cluster, self._place.region, zones or self.place.zones)

    def limits(self, nodes: Mapping[str, Manifest]) -> ResourceLimits | None:
        """The cluster's resource limits, with what `nodes` use of them; None on Autopilot and where none are set."""
        limits = (self._settings.get("clusterAutoscaling") or {}).get("resourceLimits")
        if self.autopilot or not self.auto_provisions or not limits:
            return None
        return ResourceLimits.of(limits, nodes.values())

    def _parse(self, name: str, body: Manifest, ends_at: float | None) -> NodePool:
        return replace(parse_node_pool(name, body, self.place.zones), ends_at=ends_at)

    def _write(self) -> None:
        content = {
            "settings": self._settings,
            "pools": {name: pool.body for name, pool in self.pools.items()},
            "ends": {name: pool.ends_at for name, pool in self.pools.items()},
        }
        write_private(self._path, json.dumps(content, indent=1).encode())
