"""Jobs whose requests Autopilot raises."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import standalone_data
from tests.jobs.test_nodes import documents

from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests

ACCELERATOR = "cloud.google.com/gke-accelerator"


def raised(accelerator: str, said: str = "which Kueue counts", **requests: Any) -> list[str]:
    [job] = documents(nodeSelector={ACCELERATOR: accelerator})
    [container] = job.data["spec"]["template"]["spec"]["containers"]
    for amounts in container["resources"].values():
        amounts |= requests
    result = check_manifests(parse_fleet(standalone_data()), [Document(job.where, job.data)])
    return [item.wrong for item in result.warnings if said in item.wrong]


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ({"cpu": "50m", "memory": "100Mi"}, "50m cpu, 100Mi memory for each pod, and Autopilot on only makes it 500m"),
        ({"cpu": "50m"}, "50m cpu for each pod, and Autopilot on only makes it 500m cpu, which"),
    ],
)
def test_a_pod_below_the_least_of_its_gpu(requests: dict[str, str], said: str) -> None:
    [wrong] = raised("nvidia-tesla-t4", **requests)
    assert f"pod set main requests {said}" in wrong


@pytest.mark.parametrize(
    ("accelerator", "cpu"),
    [("nvidia-tesla-t4", "500m"), ("nvidia-l4", "50m")],
    ids=["enough", "its least is not known"],
)
def test_a_pod_of_which_nothing_is_said(accelerator: str, cpu: str) -> None:
    assert raised(accelerator, cpu=cpu) == []


@pytest.mark.parametrize(
    ("accelerator", "requests", "said"),
    [
        ("nvidia-tesla-a100", {"cpu": "12"}, "requests 12 cpu with 1 nvidia-tesla-a100 for each pod, and Autopilot"),
        ("nvidia-l4", {"nvidia.com/gpu": "3"}, "requests 3 nvidia.com/gpu for each pod, and no machine with nvidia-l4"),
        ("nvidia-tesla-t4", {"nvidia.com/gpu": "3"}, "no machine with nvidia-tesla-t4 has that many"),
    ],
)
def test_a_pod_beyond_all_machines_with_its_gpus(accelerator: str, requests: dict[str, str], said: str) -> None:
    assert len(raised(accelerator, said, **requests)) == 1


@pytest.mark.parametrize(
    ("accelerator", "requests"),
    [
        ("nvidia-tesla-a100", {"cpu": "11"}),
        ("nvidia-l4", {"cpu": "31", "nvidia.com/gpu": "1"}),
        ("nvidia-tesla-t4", {"cpu": "40", "nvidia.com/gpu": "4"}),
        ("nvidia-new", {"cpu": "999", "nvidia.com/gpu": "3"}),
    ],
)
def test_a_pod_that_a_machine_may_hold(accelerator: str, requests: dict[str, str]) -> None:
    assert raised(accelerator, "for each pod, and", **requests) == []
