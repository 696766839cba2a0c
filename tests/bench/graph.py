"""Prints the seconds it takes to import the library and register a fleet of many clusters with a mock engine.

`fleet COUNT` measures that with COUNT workers, `bare` its peer: the same number of resources without any component,
which is what Pulumi's SDK itself costs. Run each in a process of its own, as the imports count. Both look for garbage
as seldom as the program in stacks/ does; with a last argument `often`, as often as Python does by itself.
"""

from __future__ import annotations

import gc
import json
import sys
import time


def measure_fleet(workers: int) -> int:
    """Register the whole fleet; returns the number of its resources."""
    import pulumi_mocks
    from kueue_fleet import Fleet
    from kueue_fleet.fleet_file import parse_fleet
    from tests.bench.large_fleet import large_fleet

    spec = parse_fleet(large_fleet(workers))
    return len(pulumi_mocks.run(lambda: Fleet(spec.name, spec), stack_traces=True).resources)


def measure_bare(count: int) -> int:
    """Register COUNT resources with the SDK alone."""
    import pulumi

    import pulumi_mocks

    def program() -> None:
        for number in range(count):
            pulumi.CustomResource("kubernetes:core/v1:ConfigMap", f"r{number}", {"data": {"key": "value"}})

    return len(pulumi_mocks.run(program, stack_traces=True).resources)


def main() -> None:
    """Measure what the first argument names."""
    if "often" not in sys.argv:
        gc.set_threshold(50_000)  # As in stacks/__main__.py.
    began = time.perf_counter()
    resources = (measure_fleet if sys.argv[1] == "fleet" else measure_bare)(int(sys.argv[2]))
    wall = time.perf_counter() - began
    print(json.dumps({"resources": resources, "wallSeconds": wall, "cpuSeconds": time.process_time()}))


main()
