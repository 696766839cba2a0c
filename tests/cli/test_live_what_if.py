"""What `status --page` answers to another quota on a live cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.live_fleet import serve

from kueue_admission.cli.console import CommandError
from kueue_admission.simulate.errors import SimulationError
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.live_what_if import what_if
from kueue_fleet.cli.ui import what_if as asked_by_page

ROOT = Path(__file__).parents[2]
LISTED = yaml.safe_load((ROOT / "examples/plain-cluster/dump.yaml").read_text())["items"]
ASKED = {"queue": "cq", "flavor": "default", "resource": "cpu", "limit": "nominalQuota"}


def tried(amount: str, *more: Any, **asked: str) -> str:
    return what_if("lab", [*LISTED, *more], {**ASKED, **asked, "amount": amount})


def test_who_gains_is_named_with_what_it_gains() -> None:
    result = tried("5")
    assert result.startswith("nominalQuota of cq, cpu in default: 4 -> 5\n\nGain: 1 job\n")
    assert "  team-a/big: Admitted on default in 10 min -> Admitted on default\n" in result
    assert result.endswith("Nothing was changed.")


def test_who_loses_is_named_with_what_it_loses() -> None:
    result = tried("1")
    assert "Lose: 1 job\n  team-a/big: Admitted on default in 10 min -> Pending\n" in result
    assert "Gain" not in result


def test_where_nothing_changes_no_job_is_named() -> None:
    assert "No job fares differently." in tried("4.5")


@pytest.mark.parametrize(
    ("limit", "amount", "said"),
    [
        ("nominalQuota", "", "nominalQuota needs an amount"),
        ("nominalQuota", "5x", "is not a valid quantity"),
        ("nominalQuota", "-1", "is negative"),
        ("nominalQuota", "<img src=x>", "is not a valid quantity"),
        ("nominalQuota", "\x1b[31m5", "is not a valid quantity"),
        ("nominalQuota", "{a: 1}", "is not a valid quantity"),
        ("borrowingLimit", "3", "there is no queue to borrow from"),
        ("lendingLimit", "99", "more than the nominalQuota of 4"),
        ("spec", "1", "choose one of the quotas"),
        ("", "1", "choose one of the quotas"),
    ],
)
def test_what_kueue_would_not_take_is_said(limit: str, amount: str, said: str) -> None:
    with pytest.raises((CommandError, SimulationError), match=said):
        tried(amount, limit=limit)


@pytest.mark.parametrize("name", ["queue", "flavor", "resource"])
def test_a_quota_that_is_not_there_is_said(name: str) -> None:
    with pytest.raises(CommandError, match="'gone'"):
        tried("5", **{name: "gone"})


def test_a_workload_that_leads_nowhere_spoils_nothing() -> None:
    """Every member of a team can make one."""
    lost = {**LISTED[5], "metadata": {**LISTED[5]["metadata"], "name": "lost", "uid": "l"}}
    assert "Gain: 1 job" in tried("5", {**lost, "spec": {**lost["spec"], "queueName": "no-such-queue"}})


def test_the_page_asks_the_cluster_for_its_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = load_fleet(ROOT / "stacks/Pulumi.dws-multikueue.yaml")
    asked = {**ASKED, "cluster": fleet.home, "amount": "5"}
    with serve(fleet.cluster_names, monkeypatch, tmp_path / "kubeconfig") as served:
        assert asked_by_page(fleet, None, asked).startswith("Not tried: ")
        table = served.tables[fleet.home]
        for plural in ("cohorts", "admissionchecks", "topologies"):
            table[f"/apis/kueue.x-k8s.io/v1beta2/{plural}"] = []
        for path in ("/api/v1/nodes", "/api/v1/limitranges", "/apis/node.k8s.io/v1/runtimeclasses"):
            table[path] = []
        for item in LISTED:
            api = "/api/v1" if item["apiVersion"] == "v1" else f"/apis/{item['apiVersion']}"
            plain = {name: value for name, value in item.items() if name not in ("apiVersion", "kind")}
            table.setdefault(f"{api}/{item['kind'].lower()}s", []).append(plain)
        assert "Gain: 1 job" in asked_by_page(fleet, None, asked)
        assert (served.created, served.deleted) == ([], [])


def test_a_cluster_that_the_fleet_does_not_have_is_said() -> None:
    fleet = load_fleet(ROOT / "stacks/Pulumi.dws-multikueue.yaml")
    assert "has no cluster 'x'; choose one of manager" in asked_by_page(fleet, None, {**ASKED, "cluster": "x"})
