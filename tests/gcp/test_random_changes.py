"""One field of a random fleet that changes or goes: `diff` says what is made again or stays, and the update settles."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.fleet_files import fleet_files
from tests.gcp.test_second_plan import declared

from drawn import examples
from google_cloud import created, planned, updated
from kueue_admission.kernel import SpecError
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from pulumi_mocks import Recorded

SECTIONS: Final = (
    "clusters",
    "nodePools",
    "network",
    "reservations",
    "futureReservations",
    "commitments",
    "labels",
    "deletionProtection",
    "observability",
)
"""Those that are about Google Cloud."""
SAID_ONCE: Final = {"initialNodeCount"}
"""What is asked for when a resource is made, and means nothing later."""
MADE_AGAIN: Final = ("made again", "is another cluster", "`pulumi up` fails")

Path = tuple[str | int, ...]


def fields(data: dict[str, Any]) -> list[Path]:
    """The paths of all fields in these sections, without those that say which entries there are and whose."""

    def inside(value: Any, path: Path) -> Iterator[Path]:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str) and (path or not isinstance(item, list)) and key not in ("name", "existing"):
                yield (*path, key)
            if isinstance(item, dict | list):
                yield from inside(item, (*path, key))

    return [path for path in inside(data, ()) if path[0] in SECTIONS]


def altered(data: dict[str, Any], other: dict[str, Any], path: Path) -> dict[str, Any]:
    """`data` with the field of `other` at that path; without it, where there is none or the same."""
    changed = copy.deepcopy(data)
    *parents, last = path
    target: Any = changed
    source: Any = other
    for key in parents:
        target = target[key]
        here = key in source if isinstance(source, dict) else isinstance(source, list) and len(source) > int(key)
        source = source[key] if here else None
    value = source.get(last) if isinstance(source, dict) else None
    if value in (None, target[last]):
        del target[last]
    else:
        target[last] = value
    return changed


def parsed(data: dict[str, Any]) -> FleetSpec | None:
    try:
        return parse_fleet(data)
    except SpecError:
        return None


def by_place(spec: FleetSpec) -> dict[tuple[str, str], Recorded]:
    return {(item.type, item.place): item for item in declared(spec) if item.type.startswith("gcp:")}


@settings(max_examples=examples(20), deadline=None, phases=[Phase.explicit, Phase.generate], derandomize=True)
@given(st.data(), fleet_files(), fleet_files())
def test_a_change_of_one_field_is_said_and_settles(draw: st.DataObject, data: dict[str, Any], other: Any) -> None:
    before = parse_fleet(data)
    old = by_place(before)
    for path in draw.draw(st.permutations(fields(data)))[:8]:
        after = parsed(altered(data, other, path))
        if after is not None and after != before:
            new = by_place(after)
            compare(path, before, after, [(old[key], new[key]) for key in old if key in new])
            compare(path, after, before, [(new[key], old[key]) for key in old if key in new])


def compare(path: Path, before: FleetSpec, after: FleetSpec, both: list[tuple[Recorded, Recorded]]) -> None:
    output = [item.text for item in compare_fleets(before, after) if item.area == "consequences"]
    replaced, kept = [], []
    for old, new in both:
        state = created(old.type, old.inputs)
        plan = planned(new, state)
        if any(change.endswith("REPLACE") for change in plan.values()):
            replaced.append(new.short)
        else:
            assert planned(new, updated(new.type, state, new.inputs)) == {}, path
            if not plan and _asked(old) != _asked(new):
                kept.append(new.short)
    again = [text for text in output if any(words in text for words in MADE_AGAIN)]
    assert again or not replaced, (path, replaced, output)
    assert output or not kept, (path, kept)
    assert replaced or not any("made again" in text for text in output), (path, output)


def _asked(resource: Recorded) -> dict[str, Any]:
    return {name: value for name, value in resource.inputs.items() if name not in SAID_ONCE}
