"""Reading one of many workloads that are alike gives what reading each of them gives."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kueue_fleet.admission.errors import NotModelledError, ObjectError
from kueue_fleet.admission.model import Configuration
from kueue_fleet.admission.reading.objects import Parsed, parse_objects
from kueue_fleet.explain import alike
from kueue_fleet.explain.alike import PlainObject, Readable, parse_alike
from kueue_fleet.explain.block_yaml import NotSimpleError
from kueue_fleet.explain.dump_text import cut

KUEUE = "kueue.x-k8s.io/v1beta2"
TIMES = ("2026-11-20T08:00:00Z", "2026-11-20T08:00:07Z", "2026-11-20T09:30:00+01:00")
UIDS = ("0000000a-aaaa-4000-8000-00000000beef", "a1", "")

times = st.sampled_from(TIMES)
condition = st.fixed_dictionaries(
    {
        "lastTransitionTime": times,
        "status": st.sampled_from(["True", "False"]),
        "type": st.sampled_from(["QuotaReserved", "Admitted", "Evicted", "PodsReady", "Requeued", "Preempted"]),
        "reason": st.sampled_from(["Preempted", "WaitForRecovery"]),
    },
    optional={"message": st.sampled_from(["", "couldn't assign flavors to pod set main: " * 3])},
)
check = st.fixed_dictionaries(
    {"name": st.sampled_from(["dws", "zone"]), "state": st.sampled_from(["Ready", "Pending"])},
    optional={"lastTransitionTime": times, "retryCount": st.integers(0, 1)},
)
admission = st.fixed_dictionaries(
    {
        "clusterQueue": st.sampled_from(["cq", "cq-2"]),
        "podSetAssignments": st.just(
            [{"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "4"}}]
        ),
    }
)
status = st.fixed_dictionaries(
    {"conditions": st.lists(condition, max_size=3, unique_by=lambda item: item["type"])},
    optional={
        "admission": admission,
        "admissionChecks": st.lists(check, max_size=2),
        "requeueState": st.fixed_dictionaries({"count": st.integers(0, 1), "requeueAt": times}),
    },
)


@st.composite
def workloads(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A few kinds of workloads, and several of each with names and times of their own."""
    kinds = draw(st.lists(status, min_size=1, max_size=3))
    made = []
    for number in range(draw(st.integers(2, 8))):
        one = copy.deepcopy(draw(st.sampled_from(kinds)))
        for item in (*one["conditions"], *one.get("admissionChecks", ())):
            if "lastTransitionTime" in item:
                item["lastTransitionTime"] = draw(times)
        made.append(
            workload(f"{draw(st.sampled_from(['w', 'true-', '12-']))}{number}", one, draw(st.sampled_from(UIDS)))
        )
        made[-1]["metadata"]["creationTimestamp"] = draw(times)
    return made


def workload(name: str, state: Mapping[str, Any], uid: str = "a1") -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "4"}}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-job", "uid": uid}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {
            "creationTimestamp": TIMES[0],
            "labels": {"kueue.x-k8s.io/job-uid": uid, "team": "a"},
            "name": name,
            "namespace": "team-a",
            "ownerReferences": [owner],
            "uid": uid,
        },
        "spec": {
            "podSets": [{"count": 1, "name": "main", "template": {"spec": {"containers": [container]}}}],
            "priority": 3,
            "queueName": "gpus",
        },
        "status": dict(state),
    }


def held(name: str, *, time: str = TIMES[0], uid: str = "a1") -> dict[str, Any]:
    conditions = [{"lastTransitionTime": time, "status": "True", "type": "QuotaReserved"}]
    return workload(name, {"admission": {"clusterQueue": "cq"}, "conditions": conditions}, uid)


def as_text(objects: Sequence[Mapping[str, Any]]) -> list[Readable]:
    """Through the text of a dump."""
    return list(cut(yaml.safe_dump({"apiVersion": "v1", "items": list(objects), "kind": "List"})))


def as_data(objects: Sequence[Mapping[str, Any]]) -> list[Readable]:
    return [PlainObject(each) for each in objects]


def outcome(parsed: Any) -> Any:
    """What came of it: workloads by name, or the problems."""
    try:
        found: Parsed = parsed()
    except (ObjectError, NotModelledError) as refused:
        return str(refused)
    return found.objects, sorted(found.workloads, key=lambda each: each.key)


class TestSameAsReadingAll:
    @settings(max_examples=60, deadline=None)
    @given(workloads())
    def test_of_data(self, objects: list[dict[str, Any]]) -> None:
        before = copy.deepcopy(objects)
        agree(objects, as_data(objects))
        assert objects == before

    @settings(max_examples=60, deadline=None)
    @given(workloads())
    def test_of_text(self, objects: list[dict[str, Any]]) -> None:
        agree(objects, as_text(objects))

    @pytest.mark.parametrize("way", [as_data, as_text], ids=["data", "text"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda one: one["metadata"].update(creationTimestamp="yesterday"),
            lambda one: one["metadata"].update(name=12),
            lambda one: one["metadata"].update(name="w0"),
            lambda one: one["metadata"].update(uid=""),
            lambda one: one["metadata"].pop("uid"),
            lambda one: one["metadata"].pop("namespace"),
            lambda one: one["metadata"].update(labels=["a"]),
            lambda one: one["spec"].update(priority="high"),
            lambda one: one["status"]["conditions"][0].update(lastTransitionTime="soon"),
            lambda one: one["status"]["conditions"][0].update(lastTransitionTime=""),
            lambda one: one["status"].update(conditions=["x"]),
            lambda one: one["status"].update(unhealthyNodes=[{"name": "n"}]),
        ],
    )
    def test_of_one_that_is_not_as_it_seems(self, change: Any, way: Any) -> None:
        objects = [held(f"w{number}") for number in range(4)]
        change(objects[2])
        try:
            readables = way(objects)
        except NotSimpleError:
            assert way is as_text
            return
        agree(objects, readables)

    @pytest.mark.parametrize("way", [as_data, as_text], ids=["data", "text"])
    def test_every_problem_is_told(self, way: Any) -> None:
        objects = [held(f"w{number}") for number in range(3)]
        for each in objects:
            each["spec"]["priority"] = "high"
        with pytest.raises(ObjectError) as refused:
            parse_alike(way(objects), Configuration())
        assert len(refused.value.problems) == 3


class TestOneIsRead:
    @pytest.mark.parametrize("way", [as_data, as_text], ids=["data", "text"])
    def test_of_many_that_are_alike(self, way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[str] = []

        def counted(manifests: Any, configuration: Configuration) -> Parsed:
            given = list(manifests)
            read.extend(each["metadata"]["name"] for each in given)
            return parse_objects(given, configuration)

        monkeypatch.setattr(alike, "parse_objects", counted)
        objects = [held(f"w{n}", time=TIMES[n % 2], uid=f"a{n}") for n in range(50)]
        parsed = parse_alike(way(objects), Configuration())
        assert len(parsed.workloads) == 50
        assert len(read) == 2, "the first one, and the same with marks"


def agree(objects: Sequence[Mapping[str, Any]], readables: Sequence[Readable]) -> None:
    assert outcome(lambda: parse_alike(readables, Configuration())) == outcome(lambda: parse_objects(objects))
