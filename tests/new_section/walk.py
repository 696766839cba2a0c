"""What each part of the library says of the new section; run by test_new_section.py on a copy that has it."""

import json
import sys

import pulumi
import yaml

import kueue_fleet as kf
from kueue_admission.kernel import SpecError
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.reference import reference_markdown
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.google.cost import cost_of
from kueue_fleet.google.resources import resources_on
from kueue_fleet.objects import render_fleet
from kueue_fleet.testing import Mocks

DISK = {"name": "scratch", "team": "vision", "zone": "us-central1-a", "sizeGib": 500}


def problems(data: dict[str, object]) -> list[str]:
    try:
        parse_fleet(data)
    except SpecError as refused:
        return [problem.coded for problem in refused.problems]
    return []


def declared(fleet: FleetSpec) -> list[str]:
    mocks = Mocks()
    pulumi.runtime.set_mocks(mocks, preview=False)
    pulumi.runtime.test(lambda: kf.Fleet("lab", fleet))()  # type: ignore[no-untyped-call]
    return [f"{item.typ}::{item.name}" for item in mocks.made]


with open(sys.argv[1], encoding="utf-8") as file:
    lab = yaml.safe_load(file)
old, new = parse_fleet(lab), parse_fleet({**lab, "scratchDisks": [DISK]})
wrong = {**DISK, "name": "far", "team": "visoin", "zone": "europe-west4-a"}
json.dump(
    {
        "problems": problems({**lab, "scratchDisks": [wrong, {**DISK, "sizeGib": 1}]}),
        "objects": [each for each in render_fleet(new)["gpus"] if each["kind"] == "ConfigMap"],
        "resources": [each.key for each in resources_on(new) if each.key.startswith("Disk/")],
        "cost": [line.what for line in cost_of(new, list_prices()).lines if line.name == "scratch"],
        "removed": [str(difference) for difference in compare_fleets(new, old)],
        "declared": declared(new),
        "reference": reference_markdown().count("scratchDisks"),
    },
    sys.stdout,
)
