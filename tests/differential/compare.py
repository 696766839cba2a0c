"""Two answers to one scenario: equal or not, and the banner of a mismatch."""

from __future__ import annotations

import json
from typing import Any

from differential.replay import agree, replay
from differential.steps import next_event

Json = dict[str, Any]


def mismatch(case: Json, answer: Json) -> str | None:
    """None if the core answers as Kueue did; else what differs, to read."""
    ours = replay(case, answer)["rounds"]
    theirs = answer["rounds"]
    if len(ours) == len(theirs) and all(agree(case, *pair) for pair in zip(ours, theirs, strict=True)):
        return None
    standing: dict[str, str] = {}
    done = 0
    for number, (mine, right) in enumerate(zip(ours, theirs, strict=False)):
        event, done = (["start"], 0) if number == 0 else next_event(case, standing, done)
        if not agree(case, mine, right):
            return _banner(case, number, event, standing, mine, right)
        for name, state in right["changes"].items():
            standing[name] = state
            if not state:
                del standing[name]
    return f"scenario {case['name']}: {len(ours)} rounds of ours, {len(theirs)} of Kueue's"


def _banner(case: Json, number: int, event: Any, standing: Json, mine: Json, right: Json) -> str:
    lines = [f"scenario {case['name']}, round {number}: {json.dumps(event)}"]
    for name in sorted({*mine["changes"], *right["changes"]}):
        ours, theirs = mine["changes"].get(name, "unchanged"), right["changes"].get(name, "unchanged")
        if ours != theirs:
            lines += [
                f"  {name} was   {standing.get(name, 'not there')!r}",
                f"    core  {ours!r}",
                f"    Kueue {theirs!r}",
            ]
    if mine["order"] != right["order"]:
        lines += [f"  order, core  {mine['order']}", f"  order, Kueue {right['order']}"]
    lines.append(f"  scenario: {json.dumps(case, separators=(',', ':'))}")
    return "\n".join(lines)
