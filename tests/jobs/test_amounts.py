"""Requests that miss their unit: `check --jobs` names the likely spelling."""

from __future__ import annotations

import pytest
from tests.fleet_file.builders import standalone_data
from tests.jobs.test_nodes import L4, documents

from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests

FLEET = parse_fleet(standalone_data())


def warnings(requests: dict[str, object]) -> list[str]:
    [document] = documents(nodeSelector=L4)
    container = document.data["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"] |= requests
    prefix = "j.yaml:1: Job default/j: pod set main requests "
    result = map(str, check_manifests(FLEET, [document]).warnings)
    return [text.removeprefix(prefix) for text in result if text.startswith(prefix) and "Autopilot" not in text]


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ({"memory": 64}, "64 of memory, which is 64 bytes; write 64Gi"),
        ({"memory": "16000"}, "16000 of memory, which is 16000 bytes; write 16000Mi"),
        ({"memory": "64m"}, "64m of memory, which is 0.064 bytes; write 64Mi"),
        ({"memory": "512k"}, "512k of memory, which is 512000 bytes; write a larger unit, such as Gi"),
        ({"cpu": "4m"}, "4m of cpu, which is 0.004 CPUs; write 4 if whole CPUs are meant"),
        ({"cpu": 4000}, "4000 of cpu, which is more CPUs than any machine has; write 4000m if thousandths are meant"),
    ],
)
def test_an_amount_that_cannot_be_meant(requests: dict[str, object], said: str) -> None:
    assert warnings(requests) == [said]


@pytest.mark.parametrize("requests", [{"memory": "64Mi"}, {"memory": "1Gi", "cpu": "10m"}, {"memory": 0, "cpu": 96}])
def test_usual_amounts(requests: dict[str, object]) -> None:
    assert warnings(requests) == []
