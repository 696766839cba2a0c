"""Raw Kubernetes objects, simulated."""

from __future__ import annotations

from kueue_fleet.admission.engine import Engine
from kueue_fleet.simulation.delays import Delays
from kueue_fleet.simulation.prepared import Prepared
from kueue_fleet.simulation.raw import RawInput
from kueue_fleet.simulation.runner import prepare_cluster


def prepare_objects(
    raw: RawInput,
    delays: Delays,
    *,
    until: float | None = None,
    seed: int = 0,
    engines: dict[str, Engine] | None = None,
) -> Prepared:
    """What will happen to the workloads, up to `until` seconds after second 0; see `runner.prepare_cluster`."""
    return prepare_cluster(raw.objects, raw.arrivals, delays, start=raw.origin, until=until, seed=seed, engines=engines)
