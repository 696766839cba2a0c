"""Raw Kubernetes objects, simulated."""

from __future__ import annotations

from kueue_fleet.admission.engine import Engine
from kueue_fleet.simulation.clock import Watch
from kueue_fleet.simulation.delays import Delays
from kueue_fleet.simulation.raw import RawInput
from kueue_fleet.simulation.result import Result
from kueue_fleet.simulation.runner import simulate_cluster


def simulate_objects(
    raw: RawInput,
    delays: Delays,
    *,
    until: float | None = None,
    seed: int = 0,
    engines: dict[str, Engine] | None = None,
    watch: Watch | None = None,
) -> Result:
    """What happens to the workloads, up to `until` seconds after second 0; see `runner.simulate_cluster`."""
    return simulate_cluster(
        raw.objects, raw.arrivals, delays, start=raw.origin, until=until, seed=seed, engines=engines, watch=watch
    )
