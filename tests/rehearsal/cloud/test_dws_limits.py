"""What the simulated DWS can never give out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kueue_admission.read.printed import PrintedWorkload
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.fleet_file.model.rehearsal_section import DwsSection, RehearsalSection, StockRange
from kueue_rehearsal.cloud.dws_limits import beyond_stock

STACK = Path(__file__).parents[3] / "stacks" / "Pulumi.dws-multikueue.yaml"
FLEET = parse_fleet_text(STACK.read_text(), "fleet")
CHECK = next(check.name for check in FLEET.admission_checks if check.provisioning_request is not None)


def workload(gpus: str, state: str = "Pending", check: str = CHECK, flavor: str = "t4-dws") -> dict[str, Any]:
    assigned = {
        "flavors": {"nvidia.com/gpu": flavor, "cpu": flavor},
        "resourceUsage": {"nvidia.com/gpu": gpus, "cpu": "9"},
    }
    return {
        "status": {
            "admission": {"podSetAssignments": [assigned]},
            "admissionChecks": [{"name": check, "state": state}],
        }
    }


SETTINGS = RehearsalSection(dws=DwsSection(high=4, stock={"us-east4/nvidia-tesla-t4": StockRange(low=0, high=8)}))


@pytest.mark.parametrize(
    ("cluster", "asked", "why"),
    [
        ("worker-europe-west4", workload("4"), None),
        (
            "worker-europe-west4",
            workload("5"),
            "asks for 5 nvidia-tesla-t4, and the simulated DWS never has more than 4 in europe-west4",
        ),
        ("worker-us-east4", workload("8"), None),
        ("worker-us-east4", workload("9"), "asks for 9 nvidia-tesla-t4, and the simulated DWS never has more than 8"),
        ("worker-europe-west4", workload("5", state="Ready"), None),
        ("worker-europe-west4", workload("5", check="another"), None),
        ("worker-europe-west4", workload("5", flavor="unknown"), None),
        ("worker-europe-west4", {"status": {}}, None),
    ],
)
def test_what_is_more_than_it_ever_has(cluster: str, asked: dict[str, Any], why: str | None) -> None:
    result = beyond_stock(FLEET, SETTINGS, cluster, PrintedWorkload.of(asked))
    assert (result is None) == (why is None)
    assert (result or "").startswith(why or "")


def test_pod_sets_count_together() -> None:
    asked = workload("3")
    asked["status"]["admission"]["podSetAssignments"] *= 2
    result = beyond_stock(FLEET, SETTINGS, "worker-europe-west4", PrintedWorkload.of(asked))
    assert "asks for 6 nvidia-tesla-t4" in str(result)


def test_a_flavor_has_the_gpus_of_its_node_pool() -> None:
    stack = Path(__file__).parents[3] / "stacks" / "Pulumi.prod.yaml"
    fleet = parse_fleet_text(stack.read_text(), "fleet")
    check = next(check.name for check in fleet.admission_checks if check.provisioning_request is not None)
    asked = workload("16", check=check, flavor="h100-flex")
    result = beyond_stock(
        fleet, RehearsalSection(dws=DwsSection(high=8)), fleet.worker_names[0], PrintedWorkload.of(asked)
    )
    assert str(result).startswith("asks for 16 nvidia-h100-80gb, and the simulated DWS never has more than 8")


def test_a_job_that_goes_on_to_another_flavor_is_waited_for() -> None:
    example = Path(__file__).parents[3] / "examples/fallback/fleet.yaml"
    fleet = parse_fleet_text(example.read_text(), "fleet")
    asked = workload("4", check="dws", flavor="l4-flex")
    assert beyond_stock(fleet, RehearsalSection(dws=DwsSection(high=0)), "batch", PrintedWorkload.of(asked))
    asked["status"]["admission"]["clusterQueue"] = "training"
    assert beyond_stock(fleet, RehearsalSection(dws=DwsSection(high=0)), "batch", PrintedWorkload.of(asked)) is None
