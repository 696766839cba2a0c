"""The prerequisites pages of the stacks are what the library says; `make golden` writes them again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fleet_file.builders import changed
from tests.preflight import projects

from kueue_fleet.fleet_file import parse_fleet, parse_fleet_text
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.preflight.page import prerequisites_page

ROOT = Path(__file__).parents[2]
STACKS = sorted((ROOT / "stacks").glob("Pulumi.*.yaml"))
PAGES = ROOT / "stacks" / "prerequisites"


@pytest.mark.parametrize("stack", STACKS, ids=lambda path: str(path.name))
def test_the_page_of_a_stack(stack: Path, request: pytest.FixtureRequest) -> None:
    text = prerequisites_page(parse_fleet_text(stack.read_text(encoding="utf-8"), stack.name), list_prices())
    page = PAGES / f"{stack.name.removeprefix('Pulumi.').removesuffix('.yaml')}.md"
    if request.config.getoption("update_snapshots"):
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text, "run: make golden"


def test_there_is_no_page_of_another_stack() -> None:
    assert len(list(PAGES.iterdir())) == len(STACKS)


def test_what_others_have_to_have_made() -> None:
    text = prerequisites_page(projects.fleet(), list_prices())
    assert "| theirs | their-project | 4 g2-standard-24 |" in text
    assert "| n1-standard-4 | us-central1-a, us-central1-b, us-central1-c |" in text
    assert "`pulumi up` enables them" in text
    existing = {
        "name": "shared",
        "project": "host-project",
        "subnets": {"us-central1": {"name": "gpus", "podRangeName": "pods"}},
    }
    key = "projects/keys-1/locations/us-central1/keyRings/r/cryptoKeys/k"
    changes = {"network/existing": existing, "enableApis": False, "clusters/0/diskEncryptionKey": key}
    text = prerequisites_page(parse_fleet(changed(projects.fleet_data(), changes)), list_prices())
    assert "Subnets of network shared of project `host-project`:\n\n| region | subnet | secondary ranges |" in text
    assert "| us-central1 | gpus | pods |" in text
    assert "`pulumi up` enables them" not in text
    assert f"| {key} | service-PROJECT_NUMBER@compute-system" in text
