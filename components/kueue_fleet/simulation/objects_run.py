"""Raw Kubernetes objects, simulated."""

from __future__ import annotations

from kueue_fleet.admission.engine import Engine
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
) -> Result:
    """What happens to the workloads, up to `until` seconds after second 0, or until nothing more does.

    `engines` as in `runner.simulate_cluster`.
    """
    end = None if until is None else raw.origin + until
    records = simulate_cluster(
        raw.objects, raw.arrivals, delays, start=raw.origin, until=end, seed=seed, engines=engines
    )
    return Result(tuple(records), raw.origin, until, seed)
