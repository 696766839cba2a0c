"""A stack of an earlier release is updated in place: what it has is found again, and nothing of Google's is replaced.

`fleet_of_2026_11_21.json` is what `stacks/Pulumi.staging.yaml` declared at commit 3ffb130.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime import mocks

import google_cloud
import pulumi_mocks
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import parse_fleet
from pulumi_mocks import Recorded, RecordingMonitor

EARLIER: dict[str, Any] = json.loads(Path(__file__).with_name("fleet_of_2026_11_21.json").read_text(encoding="utf-8"))


class FormerNames(RecordingMonitor):
    """Knows also the URNs by which the engine looks for a resource in the state: its aliases, its parents' aliases."""

    def __init__(self, urns: dict[str, set[str]], outputs: mocks.Mocks) -> None:
        super().__init__(outputs)
        self.urns = urns

    def RegisterResource(self, request: Any) -> Any:
        answer = super().RegisterResource(request)
        specs = [alias.spec for alias in request.aliases]
        own = {(request.name, request.type), *((s.name or request.name, s.type or request.type) for s in specs)}
        self.urns[answer.urn] = {
            self.make_urn(parent, type_, _inherited(name, request.parent, parent))
            for parent in self.urns.get(request.parent, {request.parent})
            for name, type_ in own
        }
        return answer


def _inherited(name: str, parent: str, former: str) -> str:
    """The name of a child below its parent's former URN: it begins with the parent's name, if it does now."""
    begins, began = (urn.rpartition("::")[2] for urn in (parent, former))
    return began + name.removeprefix(begins) if name.startswith(begins) else name


@pytest.fixture(scope="module")
def now() -> dict[str, Recorded]:
    """What today's program declares, by all URNs that it is looked for."""
    spec = parse_fleet(EARLIER["fleet"])
    urns: dict[str, set[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pulumi_mocks, "RecordingMonitor", partial(FormerNames, urns))
        declared = google_cloud.run(lambda: Fleet(spec.name, spec))
    return {urn: resource for resource in declared for urn in urns[resource.urn]}


def test_everything_is_found_again(now: dict[str, Recorded]) -> None:
    assert [urn for urn in EARLIER["resources"] if urn not in now] == []


def test_nothing_of_google_cloud_is_replaced(now: dict[str, Recorded]) -> None:
    replaced: dict[str, str] = {}
    for urn, inputs in EARLIER["resources"].items():
        if urn in now and (token := now[urn].type).startswith("gcp:"):
            plan = google_cloud.planned(now[urn], google_cloud.created(token, inputs))
            replaced |= {f"{now[urn].short}.{path}": change for path, change in plan.items() if "REPLACE" in change}
    assert replaced == {}
