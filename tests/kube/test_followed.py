"""A list that a watch keeps up to date, on an API server that answers from tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.live_fleet import Fleet, serve

from kueue_fleet.cli.contexts import connect
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.live_fleet import FleetReader
from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.followed import FollowedList

PATH = "/apis/kueue.x-k8s.io/v1beta2/workloads"


def item(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", "managedFields": [{}]}, **more}


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    with serve(["home"], monkeypatch, tmp_path / "kubeconfig") as result:
        result.tables["home"][PATH] = [item("a"), item("b")]
        yield result
        result.end_watches()


@pytest.fixture
def followed(fleet: Fleet) -> FollowedList[dict[str, Any]]:
    return FollowedList(connect("ui", "home", None), PATH, lambda each: each)


def until(found: Callable[[], object], wanted: object) -> None:
    """Wait until the first is as wanted."""
    end = time.monotonic() + 20
    while (last := found()) != wanted:
        assert time.monotonic() < end, last
        time.sleep(0.02)


def names(followed: FollowedList[dict[str, Any]]) -> list[str]:
    return sorted(item["metadata"]["name"] for item in followed.objects())


def test_a_change_comes_without_another_list(fleet: Fleet, followed: FollowedList[dict[str, Any]]) -> None:
    assert names(followed) == ["a", "b"]
    until(lambda: len(fleet.watched(PATH)), 1)
    fleet.change("home", PATH, "ADDED", item("c"))
    fleet.change("home", PATH, "MODIFIED", item("a", status="new"))
    fleet.change("home", PATH, "DELETED", item("b"))
    until(lambda: names(followed), ["a", "c"])
    assert [entry.get("status") for entry in followed.objects() if entry["metadata"]["name"] == "a"] == ["new"]
    assert fleet.listed[PATH] == 1
    assert not any("managedFields" in each["metadata"] for each in followed.objects())


def test_pages_are_one_list(
    fleet: Fleet, followed: FollowedList[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kueue_fleet.kube.followed._PAGE", "2")
    fleet.tables["home"][PATH] = [item(name) for name in "abcde"]
    assert names(followed) == list("abcde")
    assert fleet.listed[PATH] == 3


def test_after_the_end_of_a_watch_it_is_listed_again(fleet: Fleet, followed: FollowedList[dict[str, Any]]) -> None:
    followed.objects()
    until(lambda: len(fleet.watched(PATH)), 1)
    fleet.tables["home"][PATH].append(item("c"))
    fleet.end_watches()
    until(lambda: names(followed), ["a", "b", "c"])


@pytest.mark.parametrize("told", [{"code": 410, "reason": "Expired"}, {"code": 500}])
def test_a_watch_that_ends_with_an_error_is_begun_again(
    fleet: Fleet, followed: FollowedList[dict[str, Any]], told: dict[str, Any]
) -> None:
    followed.objects()
    until(lambda: len(fleet.watched(PATH)), 1)
    fleet.tables["home"][PATH].append(item("c"))
    fleet.change("home", PATH, "ERROR", told)
    until(lambda: names(followed), ["a", "b", "c"])


def test_who_may_list_and_not_watch_has_it_listed_each_time(
    fleet: Fleet, followed: FollowedList[dict[str, Any]]
) -> None:
    fleet.refused["watch"] = 403
    followed.objects()
    fleet.tables["home"][PATH].append(item("c"))
    until(lambda: names(followed), ["a", "b", "c"])


def test_a_list_that_is_refused_is_said(fleet: Fleet, followed: FollowedList[dict[str, Any]]) -> None:
    fleet.refused["/workloads"] = 403
    with pytest.raises(ApiError, match="no /workloads"):
        followed.objects()


def test_a_page_lists_workloads_once_and_then_follows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = load_fleet(Path(__file__).parents[2] / "stacks" / "Pulumi.dws-multikueue.yaml")
    with serve(stack.cluster_names, monkeypatch, tmp_path / "kubeconfig") as fleet:
        for tables in fleet.tables.values():
            for kind in ("clusterqueues", "workloads", "multikueueclusters"):
                tables[PATH.replace("workloads", kind)] = []
        reader = FleetReader("ui", stack, None, 20.0, again=True)
        reader.look()
        until(lambda: len(fleet.watched(PATH)), len(stack.cluster_names))
        fleet.change(stack.home, PATH, "ADDED", item("a"))
        until(lambda: [entry.name for entry in reader.look()[stack.home].workloads], ["a"])
        assert fleet.listed[PATH] == len(stack.cluster_names)
        fleet.refused["/clusterqueues"] = 503
        assert reader.look()[stack.home].unreachable.startswith("clusterqueues: 503")
        del fleet.refused["/clusterqueues"]
        assert reader.look()[stack.home].unreachable == ""
        assert fleet.listed[PATH] == 2 * len(stack.cluster_names)
        fleet.end_watches()
