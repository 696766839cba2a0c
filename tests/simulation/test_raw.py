from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.simulation.objects import API, at, cluster, documents, job, queue

from kueue_admission.read.configuration import parse_configuration
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.distributions import constant
from kueue_admission.simulate.documents import read_documents
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.raw import prepare_objects, read_raw
from kueue_admission.simulate.records import State


def run(*objects: dict[str, Any], until: float | None = None, delays: Delays | None = None) -> dict[str, Any]:
    result = (
        prepare_objects(read_raw(documents(*objects)), delays or Delays(), until=until).run().as_json()["workloads"]
    )
    return {workload["name"]: workload for workload in result}


def local_queue(name: str, to: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": to}}


def problems_of(*objects: dict[str, Any]) -> str:
    with pytest.raises(SimulationError) as refused:
        read_raw(documents(*objects))
    return "\n".join(map(str, refused.value.problems))


def test_second_job_waits_for_the_first() -> None:
    result = run(*cluster(), job("a", 0, "100"), job("b", 10, "5"))
    assert result["a"]["admittedAt"] == 0
    assert result["a"]["finishedAt"] == 100
    assert result["b"]["arrivedAt"] == 10
    # Kueue looks at parked workloads again one second after something changed.
    assert result["b"]["admittedAt"] == 101
    assert result["b"]["flavors"] == {"main": {"cpu": "rf"}}
    assert result["b"]["state"] == "Finished"


def test_workload_without_run_time_runs_for_ever() -> None:
    result = run(*cluster(), job("a", 0), job("b", 1), until=100_000)
    assert (result["a"]["state"], result["a"]["finishedAt"]) == ("Admitted", None)
    assert (result["b"]["state"], result["b"]["reason"]) == ("Pending", "WaitingForQuota")


def test_preempted_workload_starts_over() -> None:
    preemption = {"withinClusterQueue": "LowerPriority"}
    objects = [*cluster(preemption=preemption), job("a", 0, "100"), job("b", 50, "10", **{"priority-class": "high"})]
    result = run(*objects)
    assert result["b"]["admittedAt"] == 50
    assert result["a"]["evictions"] == [{"time": 50.0, "reason": "Preempted", "preemptor": "default/b"}]
    assert result["a"]["admittedAt"] == 61
    assert result["a"]["finishedAt"] == 161


def test_eviction_keeps_quota_until_the_pods_are_gone() -> None:
    preemption = {"withinClusterQueue": "LowerPriority"}
    objects = [*cluster(preemption=preemption), job("a", 0), job("b", 50, **{"priority-class": "high"})]
    assert run(*objects, until=300, delays=Delays(stop=constant(30)))["b"]["admittedAt"] == 80


def test_decisions_are_written_one_after_the_other() -> None:
    result = run(*cluster(cpu=10), job("a", 0), job("b", 0), until=10, delays=Delays(decision=0.5))
    assert [result[name]["admittedAt"] for name in "ab"] == [0.5, 1.0]


def test_finished_workload_frees_its_quota_later() -> None:
    result = run(*cluster(), job("a", 0, "10"), job("b", 0, "10"), delays=Delays(release=constant(5)))
    assert result["a"]["finishedAt"] == 10
    assert result["b"]["admittedAt"] == 16


def test_workload_that_may_not_be_queued_still_has_its_cluster_queue() -> None:
    stopped = cluster()
    stopped[2]["spec"]["stopPolicy"] = "Hold"
    result = run(*stopped, job("a", 0, "1"))["a"]
    assert (result["clusterQueue"], result["state"], result["reason"]) == ("cq", "Pending", "Suspended")


def test_workload_with_quota_keeps_it() -> None:
    template = job("x", 0)["spec"]["template"]
    usage = {"name": "main", "count": 1, "flavors": {"cpu": "rf"}, "resourceUsage": {"cpu": "2"}}
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": at(5)}
        for kind in ("QuotaReserved", "Admitted")
    ]
    holder = {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {
            "name": "holder",
            "namespace": "default",
            "creationTimestamp": at(0),
            "annotations": {"kueue-fleet.dev/run-seconds": "30"},
        },
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": template}]},
        "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": [usage]}, "conditions": conditions},
    }
    result = run(*cluster(), holder, job("a", 10, "1"))
    assert (result["holder"]["admittedAt"], result["holder"]["finishedAt"]) == (5, 35)
    assert result["a"]["admittedAt"] == 36


def test_workload_parked_with_its_shape_has_the_reason_of_its_shape() -> None:
    result = run(*cluster(), job("a", 0), job("b", 10), job("c", 10), until=20)
    assert [result[name]["reason"] for name in "abc"] == ["Admitted", "WaitingForQuota", "WaitingForQuota"]


def test_stop_at_a_second() -> None:
    result = run(*cluster(), job("a", 0, "100"), job("late", 59), until=50)
    assert result["a"]["state"] == "Admitted"
    assert "late" not in result


def test_strict_queue_with_a_blocked_head_comes_to_an_end() -> None:
    result = run(*cluster(queueingStrategy="StrictFIFO"), job("huge", 0, "1", cpu="3"), job("small", 1, "1", cpu="1"))
    assert result["huge"]["reason"] == "ExceedsMaxQuota"
    assert result["small"]["state"] == "Pending"


def test_job_is_not_counted_besides_its_workload() -> None:
    a = job("a", 0, "10")
    workload = {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {
            "name": "job-a-12345",
            "namespace": "default",
            "creationTimestamp": at(3),
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "1"}],
        },
        "spec": {
            "queueName": "lq",
            "podSets": [{"name": "main", "count": 1, "template": a["spec"]["template"]}],
        },
    }
    result = run(*cluster(), a, workload)
    assert list(result) == ["a"]
    assert (result["a"]["arrivedAt"], result["a"]["admittedAt"], result["a"]["finishedAt"]) == (3, 3, 13)


def test_job_and_workload_of_one_name_are_two() -> None:
    a = job("a", 0, "10", cpu="1")
    workload = {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": a["spec"]["template"]}]},
    }
    raw = read_raw(documents(*cluster(), a, workload))
    assert sorted(arrival.name for arrival in raw.arrivals) == ["a", "a"]
    assert len({arrival.workload.key for arrival in raw.arrivals}) == 2


def test_admission_check_is_answered_by_nobody() -> None:
    check = {"apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": "ac"}, "spec": {"controllerName": "x/y"}}
    result = run(*cluster(admissionChecksStrategy={"admissionChecks": [{"name": "ac"}]}), check, job("a", 0, "1"))
    assert (result["a"]["state"], result["a"]["reason"]) == ("QuotaReserved", "UnsatisfiedAdmissionChecks")


def test_what_the_api_server_refuses_does_not_keep_others_waiting() -> None:
    """As the real Kueue: the slices of one have more pods than it has, so that its Admission places none."""
    case = Path(__file__).parents[1] / "explain" / "cases" / "slices-larger-than-the-pod-set.yaml"
    result = run(*yaml.safe_load(case.read_text())["objects"])
    assert {name: workload["state"] for name, workload in result.items()} == {"few": "Pending", "rest": "Admitted"}


def test_generated_names_are_numbered() -> None:
    items = [job("a", 0, "1"), job("b", 1, "1")]
    for item in items:
        del item["metadata"]["name"]
        item["metadata"]["generateName"] = "train-"
    assert sorted(run(*cluster(), *items)) == ["train-1", "train-2"]


def test_everything_wrong_is_said_at_once() -> None:
    jobs = [job("neg", 0, "-5"), job("word", 0, "soon"), job("q", 0, "1", cpu="two"), job("large", 0, "1e20")]
    for item in jobs:
        del item["metadata"]["creationTimestamp"]
    text = problems_of(*cluster(), *jobs)
    assert "test.yaml:4: Job default/neg.metadata.annotations[kueue-fleet.dev/run-seconds]: '-5' is not" in text
    assert "test.yaml:5: Job default/word" in text
    assert "test.yaml:6: Job default/q" in text
    assert "test.yaml:7: Job default/large.metadata.annotations[kueue-fleet.dev/run-seconds]: '1e20' is not" in text


def test_references_to_nothing() -> None:
    queueless = job("a", 0, **{"queue-name": "gone"})
    del queueless["metadata"]["creationTimestamp"]
    text = problems_of(*cluster()[1:], queueless)
    assert "test.yaml:0: ClusterQueue cq.spec.resourceGroups.flavors: there is no ResourceFlavor rf" in text
    assert "test.yaml:3: workload default/a: there is no LocalQueue default/gone" in text


def test_cycle_of_cohorts() -> None:
    cohorts = [
        {"apiVersion": API, "kind": "Cohort", "metadata": {"name": name}, "spec": {"parentName": parent}}
        for name, parent in (("a", "b"), ("b", "a"))
    ]
    objects = (*cluster(), queue("far", cohortName="a"), local_queue("far", "far"))
    [note] = [note for note in read_raw(documents(*objects, *cohorts)).notes if "a cycle" in note]
    assert "Cohort a.spec.parentName: the cohorts form a cycle, a -> b -> a, and Kueue admits nothing in that" in note
    result = run(*objects, *cohorts, job("held", 0, "1", **{"queue-name": "far"}), job("other", 0, "1"))
    assert {name: workload["state"] for name, workload in result.items()} == {"held": "Pending", "other": "Finished"}


@pytest.mark.parametrize(
    ("flavor", "to", "spec", "said"),
    [
        ("gone", "far", {}, "ClusterQueue far.spec.resourceGroups.flavors: there is no ResourceFlavor gone; "),
        ("rf", "gone", {}, "LocalQueue default/far.spec.clusterQueue: there is no ClusterQueue gone; "),
        ("rf", "far", {"admissionChecks": [{"name": "gone"}]}, "there is no AdmissionCheck gone; "),
    ],
)
def test_a_queue_that_names_nothing_holds_its_own_jobs_alone(
    flavor: str, to: str, spec: dict[str, Any], said: str
) -> None:
    """Kueue keeps it inactive; so will it what is yet to be created."""
    far = queue("far")
    far["spec"] |= {"admissionChecksStrategy": spec} if spec else {}
    far["spec"]["resourceGroups"][0]["flavors"][0]["name"] = flavor
    held = job("held", 0, "1", **{"queue-name": "far"})
    del held["metadata"]["creationTimestamp"]
    objects = [*cluster(), far, local_queue("far", to), held, job("other", 0, "1")]
    assert any(said in note for note in read_raw(documents(*objects)).notes)
    result = run(*objects)
    assert {name: workload["state"] for name, workload in result.items()} == {"held": "Pending", "other": "Finished"}


def test_a_list_may_name_the_kind_of_its_items_once_and_lists_may_be_in_lists() -> None:
    typed = {"apiVersion": API, "kind": "WorkloadList", "items": [{"metadata": {"name": "a"}}]}
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [typed]})
    [document] = read_documents(text, "x.yaml")
    assert (document.where, document.data["kind"], document.data["apiVersion"]) == (
        "x.yaml:1: items[0].items[0]",
        "Workload",
        API,
    )


def test_unknown_field_is_refused() -> None:
    assert "nominalQota" in problems_of(*cluster(nominalQota=3))


@pytest.mark.parametrize(
    ("text", "source", "said"),
    [
        ("a: b: c", "x.yaml", "x.yaml:1"),
        ("\n".join(["garbage garbage"] * 10_000), "x.yaml", "x.yaml:1: is the text 'garbage"),
        ("foo: bar\n" * 1_000_000, "x.yaml", "the word kind is not in it"),
        ("{", "x.json", "x.json:1: is not readable as JSON"),
        ("- 1\n- 2", "x.yaml", "is a list of 2"),
        ("kind: List\nitems: [3]", "x.yaml", "items[0]: is 3"),
        ("foo: 1\n---\nbar: 2", "x.yaml", "x.yaml:3: has no kind"),
        (
            "jobs: [{name: a}]\nwaits: []",
            "x.yaml",
            "x.yaml:1: is a workload file, not a Kubernetes object; give it to simul",
        ),
        (
            "name: a\nclusters: [{name: b}]",
            "x.yaml",
            "x.yaml:1: is a fleet, not a Kubernetes object; give a file with jobs",
        ),
        (
            '{"kind": "Job", "spec": ' + "9" * 5000 + "}",
            "x.json",
            "x.json: has a number of thousands of digits",
        ),
        ("kind: " + "[" * 1_000_000, "x.yaml", "x.yaml:1: "),
        ("Name:         train\nKind:  Workload\n", "x.txt", "x.txt:1: is text of kubectl for people: 'Name:"),
        ("NAMESPACE  NAME  QUEUE\na  b  c\n", "x.txt", "print the objects with kubectl get KIND -A -o yaml"),
        ("No resources found\n", "x.yaml", "is text of kubectl for people"),
        ("apiVersion: v1\nitems:\n- kind: Job\n  metadata: {name: a}\n", "x.yaml", "x.yaml:1: is cut off"),
        (
            "kind: A\nmetadata: {name: a}\nkind: B\n",
            "x.yaml",
            "x.yaml:3: kind is written twice in the same map, first in ",
        ),
        ("a: 1\napiVersion: v1\napiVersion: v1\n", "x.yaml", "put a row with --- before it"),
        (
            "kind: A\n\u00a0 flavors:\n\u00a0 - {name: a, b: c}\n",
            "x.yaml",
            "x.yaml:3: a no-break space is used for inden",
        ),
        ("```yaml\nkind: A\n```\n", "x.md", "x.md:1: a fence of Markdown is left"),
    ],
)
def test_text_that_holds_no_objects(text: str, source: str, said: str) -> None:
    with pytest.raises(SimulationError) as refused:
        read_documents(text, source)
    assert said in str(refused.value)
    assert len(refused.value.problems) < 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("".join(f"key{n}: kind\n" for n in range(1000)) * 1000, "x.yaml:201: has more than 200 fields from line 1 on"),
        ("kind: List\nitems:\n" + "- word\n" * 1_000_000, "x.yaml:3: is the text 'word', not a Kubernetes object"),
        ("kind: Job\nmetadata: {}\n" + "---\nkind: 1\n" * 500_000, "x.yaml:4: has no metadata"),
        ("kind: nothing\n" + "# garbage\n" * 1_000_000, "x.yaml:1: has no metadata"),
    ],
)
def test_a_million_lines_are_refused_at_once(text: str, said: str) -> None:
    began = time.process_time()
    with pytest.raises(SimulationError) as refused:
        read_documents(text, "x.yaml")
    assert [str(problem)[: len(said)] for problem in refused.value.problems] == [said]
    assert time.process_time() - began < 5


def test_documents_know_their_line() -> None:
    text = "kind: A\n---\n---\nkind: List\nitems:\n- kind: B\n- kind: C\n"
    assert [document.where for document in read_documents(text, "x.yaml")] == [
        "x.yaml:1",
        "x.yaml:4: items[0]",
        "x.yaml:4: items[1]",
    ]


def test_local_queues_take_turns_by_their_usage() -> None:
    """Ten jobs of `lq` come before one of `other`, which waits for one of them and not for ten; and the run ends."""
    scope = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
    given = cluster(**scope)
    given.append({**given[2], "metadata": {"name": "other", "namespace": "default"}})
    given += [job(f"j{number}", number, "60") for number in range(10)]
    given.append(job("last", 20, "60", **{"queue-name": "other"}))
    started = {}
    for on in (True, False):
        settings = {"admissionFairSharing": {"usageHalfLifeTime": "1h", "usageSamplingInterval": "1m"}} if on else {}
        result = prepare_objects(read_raw(documents(*given), parse_configuration(settings)), Delays()).run()
        assert {item.state for item in result.records} == {State.FINISHED}
        admitted = {entry.name: entry.first_admitted_at or 0.0 for entry in result.records}
        started[on] = admitted["last"] - admitted["j0"]
    assert started[True] < 80 < 590 < started[False]


class TestSeveralJsonDocuments:
    """What `jq -c '.items[]'` prints, or several calls of `kubectl get -o json`."""

    @pytest.mark.parametrize("source", ["dump.json", "dump.jsonl", "<stdin>"])
    def test_one_after_another(self, source: str) -> None:
        text = '{"kind": "A"}\n\n{"kind": "List", "items": [\n{"kind": "B"}]}\n{"kind": "C"}\n'
        result = read_documents(text, source)
        assert [(item.data["kind"], str(item.where).split(":")[1].split()[0]) for item in result] == [
            ("A", "1"),
            ("B", "3"),
            ("C", "5"),
        ]

    def test_what_is_wrong_has_its_line(self) -> None:
        with pytest.raises(SimulationError) as refused:
            read_documents('{"kind": "A"}\n{"kind": }\n', "dump.json")
        assert str(refused.value.problems[0]).startswith("dump.json:2: is not readable as JSON")


def test_a_quota_of_devices_in_bytes_or_parts_is_read() -> None:
    """Kueue takes it: devices that are counted in bytes are in use, and parts are rounded up."""
    resources = [{"name": "example.com/gpu-memory", "nominalQuota": "40Gi"}, {"name": "g/pu", "nominalQuota": "1500m"}]
    covered = [item["name"] for item in resources]
    spec = {"resourceGroups": [{"coveredResources": covered, "flavors": [{"name": "rf", "resources": resources}]}]}
    asking = job("j", 0, "1")
    asked = {"example.com/gpu-memory": "10Gi", "g/pu": "2"}
    asking["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}
    [quota, _] = read_raw(documents(*cluster(**spec), asking)).objects.cluster_queues[0].groups[0].flavors[0].quotas
    assert quota[1].nominal == 40 << 30
    assert run(*cluster(**spec), asking)["j"]["state"] == "Finished"
