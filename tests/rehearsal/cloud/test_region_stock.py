from __future__ import annotations

from typing import Any

from kueue_fleet.fleet_file.model.rehearsal_section import DwsSection, RehearsalSection, StockRange
from kueue_rehearsal.cloud.region_stock import RegionStock

SETTINGS = RehearsalSection(dws=DwsSection(low=8, stock={"us-east4/nvidia-l4": StockRange(low=4, high=4)}))


def node(gpus: int, **labels: str) -> dict[str, Any]:
    named = {f"cloud.google.com/{key.replace('_', '-')}": value for key, value in labels.items()}
    named["cloud.google.com/gke-accelerator"] = "nvidia-l4"
    return {"metadata": {"labels": named}, "status": {"allocatable": {"nvidia.com/gpu": str(gpus)}}}


def test_what_dws_has_given_out_is_not_there_and_other_nodes_are_nothing_of_its() -> None:
    stock = RegionStock("us-east4", lambda: SETTINGS, 0.0)
    bound = node(2)
    bound["metadata"]["labels"]["autoscaling.gke.io/provisioning-request"] = "r"
    left = stock.available([bound, node(1, gke_flex_start="true"), node(8), node(8, gke_spot="true")], 5.0)
    assert left["nvidia-l4"] == 1
    assert left["nvidia-tesla-t4"] == 8


def test_settings_count_as_they_are_now() -> None:
    now = [SETTINGS]
    stock = RegionStock("us-east4", lambda: now[0], 0.0)
    assert stock.available([], 0.0)["nvidia-l4"] == 4
    now[0] = RehearsalSection(dws=DwsSection(high=0))
    assert set(stock.available([], 0.0).values()) == {0}


def test_shares_of_a_gpu_that_dws_gave_out_are_one_gpu() -> None:
    stock = RegionStock("us-east4", lambda: SETTINGS, 0.0)
    shares = {"gke_gpu_sharing_strategy": "time-sharing", "gke_max_shared_clients_per_gpu": "4"}
    assert stock.available([node(8, gke_flex_start="true", **shares)], 5.0)["nvidia-l4"] == 2
