"""What DWS can give out in a cluster's region now: the simulated stock, less what nodes have of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.gke.gpu_sharing import accelerators_of_node
from kueue_fleet.gke.labels import FLEX_START, RESIZE_REQUEST, accelerator_of
from kueue_fleet.gke.machines import accelerators
from kueue_rehearsal.cloud.dws_decisions import stock
from kueue_rehearsal.cloud.pod_needs import amounts


class RegionStock:
    """The stock of one region. `started_at` in seconds since the epoch: the stock's changes count from there."""

    def __init__(self, region: str, settings: Callable[[], RehearsalSection], started_at: float) -> None:
        self._region = region
        self._settings = settings
        self._started_at = started_at

    def available(self, nodes: Iterable[Manifest], now: float) -> dict[str, int]:
        """GPUs and TPU chips of each kind that can be given out beside those of `nodes`; may be less than none."""
        elapsed_seconds, settings = now - self._started_at, self._settings()
        stock_left = {name: stock(settings, self._region, name, elapsed_seconds) for name in accelerators()}
        for node in nodes:
            labels = node["metadata"].get("labels") or {}
            kind = accelerator_of(labels)
            if kind is not None and (RESIZE_REQUEST in labels or labels.get(FLEX_START) == "true"):
                stock_left[kind] -= accelerators_of_node(amounts(node["status"]["allocatable"]), labels)
        return stock_left
