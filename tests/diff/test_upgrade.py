"""What an upgrade of Kueue breaks, what is different after it, and in which order to go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet, fleet_data

from kueue_admission.releases import Release
from kueue_fleet.diff.upgrade import Upgrade, fleet_after, object_problems, upgrade_moves, upgrade_of, with_version
from kueue_fleet.fleet_file.check import check_fleet
from plain_fleets import alone


def upgraded(to: str, changes: dict[str, Any], *manifests: dict[str, Any]) -> Upgrade:
    result = upgrade_of(fleet(changes), to, manifests)
    return replace(
        result, problems=[*result.problems, *(one for item in manifests for one in object_problems(item, to))]
    )


def broken(found: Upgrade) -> list[str]:
    return [str(problem) for problem in found.problems if "never ran here" not in problem.wrong]


def test_a_gate_that_the_new_release_does_not_have_breaks() -> None:
    gates = {"kueue/configuration": {"featureGates": {"LendingLimit": True}}}
    assert broken(upgraded("0.19.2", {**gates, "kueue/version": "0.18.3"})) == [
        "kueue.configuration.featureGates[LendingLimit]: Kueue 0.19.2 has no feature gate LendingLimit; remove it, or "
        "use 0.17.1 or 0.18.3, which have it"
    ]


def test_what_is_wrong_already_is_no_news() -> None:
    spare = {"name": "spare", "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}
    changes = {"kueue/version": "0.18.3", "flavors": [*fleet_data()["flavors"], spare]}
    assert [item.rule.code for item in check_fleet(fleet(changes))].count("KF524") == 1
    assert broken(upgraded("0.19.2", changes)) == []


@pytest.mark.parametrize(
    ("version", "judged", "advice"),
    [
        (
            "0.15.1",
            "0.17.1",
            "use 0.17.1, or read the release notes of both; 0.16.0 stores objects in v1beta2: run Kueue's "
            "hack/migrate-to-v1beta2.sh after it",
        ),
        ("0.18.6", "0.18.3", "read the release notes since 0.18.3"),
    ],
)
def test_that_a_release_is_not_known_is_said_also_of_the_one_that_runs(version: str, judged: str, advice: str) -> None:
    """What is different is listed from the nearest one."""
    assert broken(upgraded("0.19.2", {"kueue/version": version})) == [
        f"kueue.version: {version}, but the rules checked here are those of {judged}; {advice}"
    ]


def test_a_cluster_that_names_its_own_version_is_upgraded_too() -> None:
    result = upgraded("0.19.2", {"clusters/1/kueue": {"version": "0.18.3"}})
    assert result.before == {"manager": "0.19.2", "worker-a": "0.18.3", "worker-b": "0.19.2"}
    assert "jobs without ready pods are evicted after 30 minutes by default: no before, yes after" in result.changes


def test_objects_in_a_version_that_goes_break() -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "a"}}
    result = upgraded("0.20.0", {}, queue)
    assert broken(result) == ["ClusterQueue a: is in v1beta1, which Kueue 0.20.0 does not serve; write it in v1beta2"]
    assert broken(upgraded("0.19.2", {"kueue/version": "0.18.3"}, queue)) == []


def test_a_definition_says_what_may_still_be_stored() -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "workloads.kueue.x-k8s.io"},
        "spec": {"group": "kueue.x-k8s.io"},
        "status": {"storedVersions": ["v1beta1", "v1beta2"]},
    }
    assert broken(upgraded("0.20.0", {}, crd)) == [
        "CustomResourceDefinition workloads.kueue.x-k8s.io: may have objects stored in v1beta1; run Kueue's "
        "hack/migrate-to-v1beta2.sh before the upgrade"
    ]


@pytest.mark.parametrize("to", ["0.19.2", "0.20.0"])
def test_workers_come_before_the_manager(to: str) -> None:
    steps = upgraded(to, {"kueue/version": "0.18.3"}).steps
    result = [
        text
        for step in steps
        for text in ("worker-a", "worker-b", "manager")
        if f"is back on {text}" in step or f"{text} admits" in step
    ]
    assert result == ["worker-a", "worker-b", "manager"]


def test_out_of_0_17_the_manager_goes_first() -> None:
    """A worker of 0.18 below a manager of 0.17 runs Jobs to an end that the manager's do not show."""
    steps = [step.split(":")[0] for step in upgraded("0.18.3", {"kueue/version": "0.17.1"}).steps]
    assert steps[1].startswith("Upgrade the manager before the workers")
    assert [step.split()[1] for step in steps if step.startswith("Set")] == [
        "clusters[manager].kueue.version",
        "clusters[worker-a].kueue.version",
        "clusters[worker-b].kueue.version",
        "kueue.version",
    ]


def test_a_gate_that_the_file_sets_does_not_change_by_itself() -> None:
    old = {"kueue/version": "0.18.3"}
    gate = "feature gate QuotaCheckStrategy is on by default"
    assert gate in upgraded("0.19.2", old).changes
    written = {**old, "kueue/configuration": {"featureGates": {"QuotaCheckStrategy": False}}}
    assert gate not in upgraded("0.19.2", written).changes


OLD = {"kueue/version": "0.18.3"}


def test_a_gate_that_is_new_and_on_is_a_default_that_changes() -> None:
    text = "feature gate FlavorFungibilityPreserveScanProgress is new and on by default"
    assert text in upgraded("0.19.2", OLD).changes


def test_the_configuration_that_the_chart_writes_is_compared() -> None:
    assert "Configuration clientConnection.qps: 300, before 50" in upgraded("0.19.2", OLD).changes
    own = {**OLD, "kueue/configuration": {"clientConnection": {"qps": 70, "burst": 100}}}
    assert not [text for text in upgraded("0.19.2", own).changes if "clientConnection" in text]


def test_what_kueue_sets_where_the_configuration_says_nothing_is_compared() -> None:
    text = "Configuration waitForPodsReady.timeout: 30m by default, before not set"
    assert text in upgraded("0.19.2", OLD).changes
    written = {**OLD, "kueue/configuration": {"waitForPodsReady": {"timeout": "5m"}}}
    assert text not in upgraded("0.19.2", written).changes


def test_permissions_that_the_chart_takes_away_are_named() -> None:
    changes = upgraded("0.19.2", {"kueue/version": "0.17.1"}).changes
    assert (
        "Kueue may get list watch kueue.x-k8s.io/cohorts, before create delete get list patch update watch" in changes
    )
    assert "Kueue may do nothing with events, before create patch update watch" in changes
    assert "Kueue may create patch update watch events.k8s.io/events, before nothing" in changes


def test_no_release_from_0_17_on_has_other_webhooks() -> None:
    assert not [text for text in upgraded("0.20.0", {"kueue/version": "0.17.1"}).changes if "webhook" in text]


def test_webhooks_that_come_go_or_fail_otherwise_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    part = "mutating webhook"
    tables = {
        "0.18": [(part, "mjob.kb.io", "Fail"), (part, "mold.kb.io", "Fail")],
        "0.19": [(part, "mjob.kb.io", "Ignore"), (part, "mnew.kb.io", "Fail")],
    }

    def table(of: Release, name: str) -> list[dict[str, str]]:
        if name != "chart":
            return real(of, name)
        return [dict(zip(("part", "name", "value"), row, strict=True)) for row in tables[of.minor]]

    real = Release.table
    monkeypatch.setattr(Release, "table", table)
    assert [text for text in upgraded("0.19.2", OLD).changes if "webhook" in text] == [
        "mutating webhook mjob.kb.io of the chart: Ignore, before Fail",
        "mutating webhook mnew.kb.io of the chart: Fail, before not there",
        "mutating webhook mold.kb.io of the chart: not there, before Fail",
    ]


def test_an_upgrade_to_the_same_version_changes_nothing() -> None:
    assert upgraded("0.19.2", {}).changes == []
    assert upgraded("0.19.2", {}).steps == ["Nothing: every cluster has 0.19.2."]


def moved(to: str, changes: dict[str, Any]) -> list[str]:
    return [move.cluster for move in upgrade_moves(fleet(changes), to)]


def test_clusters_that_have_the_release_are_left_alone() -> None:
    """As after an upgrade that was broken off."""
    assert moved("0.19.2", {"clusters/1/kueue": {"version": "0.18.3"}}) == ["worker-a"]
    assert moved("0.19.2", {**OLD, "clusters/1/kueue": {"version": "0.19.2"}}) == ["worker-b", "manager"]


def test_the_way_back_begins_with_the_manager() -> None:
    result = upgraded("0.18.3", {})
    assert moved("0.18.3", {}) == ["manager", "worker-a", "worker-b"]
    assert result.steps[1].startswith("Change the manager before the workers")
    assert any("0.18.3 is older than 0.19.2 on manager, worker-a and worker-b; " in text for text in broken(result))


def test_releases_that_do_not_go_together_between_two_steps_are_named() -> None:
    assert any("a manager of 0.17.1 copies them there" in text for text in broken(upgraded("0.17.1", {})))
    assert broken(upgraded("0.19.2", {"kueue/version": "0.17.1"})) == []


@pytest.mark.parametrize(("image", "named"), [("v0.17.1", True), ("v0.18.3", False)])
def test_a_dump_of_another_release_than_the_files_is_named(image: str, named: bool) -> None:
    pod = {"containers": [{"name": "manager", "image": f"registry.k8s.io/kueue/kueue:{image}"}]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager"},
        "spec": {"template": {"spec": pod}},
    }
    result = broken(upgraded("0.19.2", OLD, deployment))
    assert ["kueue.version: 0.18.3, but the Kueue of --objects is 0.17.1; " in text for text in result] == [
        True
    ] * named


@pytest.mark.parametrize(
    ("dispatch", "said"),
    [({}, True), ({"dispatcher": "Incremental"}, False)],
)
def test_jobs_that_kueues_dispatcher_left_are_looked_at_after_it(dispatch: dict[str, Any], said: bool) -> None:
    """The others nominate workers whether they are connected or not, upon which Kueue tries again."""
    steps = upgraded("0.19.2", {**OLD, **{f"multiKueue/{name}": value for name, value in dispatch.items()}}).steps
    assert ("kubectl annotate workloads" in steps[-1]) == said


def test_the_files_of_each_step_name_the_release_cluster_by_cluster() -> None:
    data = changed(fleet_data(), OLD)
    moves = upgrade_moves(fleet(OLD), "0.19.2")
    assert [move.cluster for move in moves] == ["worker-a", "worker-b", "manager"]
    named = [fleet_after(data, "0.19.2", moves[:number]) for number in range(len(moves) + 1)]
    assert [
        [item.get("kueue", {}).get("version", result["kueue"]["version"]) for item in result["clusters"]]
        for result in named
    ] == [
        ["0.18.3", "0.18.3", "0.18.3"],
        ["0.18.3", "0.19.2", "0.18.3"],
        ["0.18.3", "0.19.2", "0.19.2"],
        ["0.19.2", "0.19.2", "0.19.2"],
    ]
    assert not any("version" in entry.get("kueue", {}) for entry in named[-1]["clusters"])


def test_out_of_0_17_the_manager_ties_jobs_by_a_label_until_all_have_the_release() -> None:
    old = {"kueue/version": "0.17.1"}
    moves = upgrade_moves(fleet(old), "0.19.2")
    first, *_, last = [
        fleet_after(changed(fleet_data(), old), "0.19.2", moves[: item + 1]) for item in range(len(moves))
    ]
    gates = {"featureGates": {"WorkloadIdentifierAnnotations": False}}
    assert first["clusters"][0]["kueue"] == {"version": "0.19.2", "configuration": gates}
    assert last == {**changed(fleet_data(), old), "kueue": {"version": "0.19.2"}}


def test_a_fleet_without_a_project_is_upgraded() -> None:
    assert with_version(alone(), "0.19.1").kueue.version == "0.19.1"
