"""Jobs as people write them, and others who wish no good: `check --jobs` and `simulate` say the same of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.simulation.fleets import calendar_data, dispatched_data

from command_line import call

EXAMPLES = Path(__file__).parents[2] / "examples"
LAB = EXAMPLES / "lab/fleet.yaml"
STANDARD = """
name: lab
project: my-project
clusters: [{ name: gpus, role: standalone, region: us-central1, zones: [us-central1-a], mode: Standard }]
"""


def job(name: object = "one", **metadata: Any) -> dict[str, Any]:
    amounts = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "nvidia.com/gpu": "1"}
    container = {
        "name": "c",
        "image": "busybox",
        "resources": {"requests": amounts, "limits": {"nvidia.com/gpu": "1"}},
    }
    selector = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    pods = {"restartPolicy": "Never", "nodeSelector": selector, "containers": [container]}
    labels = {"kueue.x-k8s.io/queue-name": "gpu", **metadata.pop("labels", {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "vision", "labels": labels, **metadata},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "template": {"metadata": {"annotations": {"kueue-fleet.dev/run-seconds": "60"}}, "spec": pods},
        },
    }


def said_of(folder: Path, *jobs: dict[str, Any] | str, fleet: Path = LAB) -> list[str]:
    file = folder / "jobs.yaml"
    file.write_text("\n---\n".join(item if isinstance(item, str) else json.dumps(item) for item in jobs))
    result = call("check", fleet, "--jobs", file)
    assert "Traceback" not in result.stderr
    return [line.replace(str(file), "jobs.yaml") for line in result.stderr.splitlines()]


def changed(data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**{key: value for key, value in data.items() if fields.get(key, value) is not None}, **fields}


def test_a_name_that_is_there_twice_is_refused_as_the_api_server_does(tmp_path: Path) -> None:
    assert said_of(tmp_path, job(), job()) == [
        "error: jobs.yaml:3: Job vision/one.metadata.name: is listed twice, first at jobs.yaml:1, and the API server "
        "refuses the second; name it differently, or write generateName instead of name [KF512]"
    ]
    result = call("simulate", "fleet", LAB, "--jobs", tmp_path / "jobs.yaml")
    assert result.returncode == 1
    assert "is listed twice" in result.stderr
    other = job()
    other["metadata"] = {**other["metadata"], "generateName": "one-"}
    del other["metadata"]["name"]
    assert said_of(tmp_path, other, other, job("one-1")) == []


def test_one_job_hides_nothing_of_the_others(tmp_path: Path) -> None:
    large, half = job("large"), job("half", annotations={"kueue.x-k8s.io/job-min-parallelism": "half"})
    large["spec"]["parallelism"] = large["spec"]["completions"] = 20
    output = said_of(
        tmp_path,
        half,
        large,
        job("no-class", labels={"kueue.x-k8s.io/priority-class": "urgent"}),
        job("no-queue", labels={"kueue.x-k8s.io/queue-name": "gup"}),
        job("other-queue", labels={"kueue.x-k8s.io/queue-name": "gup"}),
        job("Upper"),
        changed(job("old"), apiVersion="batch/v1beta1"),
        job("right"),
    )
    parts = [
        ("Job.metadata.name", '"Upper" has characters'),
        ("Job vision/old.apiVersion", "is of batch/v1beta1"),
        ("Job vision/half.metadata.annotations", "is 'half'"),
        ("Job vision/no-class.metadata.labels", "not known: there is no WorkloadPriorityClass 'urgent'"),
        ("Job vision/no-class.metadata.labels", "urgent is not a priority class for team vision"),
        ("workload vision/no-queue (and 1 more workloads)", "there is no LocalQueue vision/gup; did you mean gpu?"),
        ("Job vision/large", "never starts: ExceedsMaxQuota"),
    ]
    for path, text in parts:
        assert [line for line in output if path in line and text in line], (path, output)
    assert len(output) == len(parts), output


BESIDE = {"Namespace": "a fleet has its own", "LimitRange": "a fleet has its own", "CronJob": "it is no job of Kueue"}


@pytest.mark.parametrize("command", ["check", "simulate", "when", "submit"])
def test_what_stands_beside_a_job_is_passed_over(tmp_path: Path, command: str) -> None:
    file, dump, right = tmp_path / "jobs.yaml", tmp_path / "dump.yaml", job()
    right["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"].pop("ephemeral-storage")
    beside = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": "vision"}} for kind in BESIDE]
    used = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "vision"}}
    file.write_text("\n---\n".join(map(json.dumps, [*beside, used, right])))
    dump.write_text("{apiVersion: v1, kind: List, items: []}")
    arguments: dict[str, list[str | Path]] = {
        "check": ["check", LAB, "--jobs", file],
        "simulate": ["simulate", "fleet", LAB, "--jobs", file],
        "when": ["when", LAB, "-f", file, "--objects", dump, "--seeds", "1"],
        "submit": ["submit", "--fleet", LAB, "-f", file, "--dry-run"],
    }
    result = call(*arguments[command])
    assert result.returncode == 0, result.stderr
    for kind, why in BESIDE.items():
        why = "is not submitted; create it yourself" if command == "submit" else f"is not read: {why}"
        assert f"{kind} vision/x: {why}" in result.stderr
    assert ("ConfigMap vision/x: is not submitted" in result.stderr) == (command == "submit")


def test_what_is_no_object_hides_no_job(tmp_path: Path) -> None:
    large, unnamed = job("large"), job(None)
    large["spec"]["parallelism"] = large["spec"]["completions"] = 20
    said = said_of(tmp_path, "- a list", unnamed, large)
    parts = ("is a list of 1", "Job.metadata.name: is missing", "Job vision/large: never starts")
    assert [any(part in line for line in said) for part in parts] == [True] * 3, said


def test_a_mistake_has_the_line_of_its_field(tmp_path: Path) -> None:
    wrong = job("wrong", labels={"kueue.x-k8s.io/priority-class": "urgent"})
    wrong["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1 GPU"
    alone = job("alone")
    alone["spec"]["template"]["spec"]["nodeSelector"] = {"a": "b"}
    documents = [yaml.safe_dump(job("right")), yaml.safe_dump({"kind": "List", "items": [wrong, alone]})]
    file = tmp_path / "jobs.yaml"
    file.write_text("---\n".join(documents))
    lines = file.read_text().splitlines()
    fields = {"limits.nvidia.com/gpu": "nvidia.com/gpu: 1 GPU", "priority-class": "priority-class: urgent"}
    said = said_of(tmp_path, file.read_text())
    for path, text in fields.items():
        number = next(number for number, line in enumerate(lines, 1) if text in line)
        assert any(f"jobs.yaml:{number}: items[0]: Job vision/wrong" in line and path in line for line in said), said
    number = max(number for number, line in enumerate(lines, 1) if "template:" in line)
    assert any(f"jobs.yaml:{number}: items[1]: Job vision/alone: pod set main" in line for line in said), said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: List\napiVersion: v1\nitems:", "items: is missing or empty; write a list of objects"),
        ("kind: List\napiVersion: v1\nitems: [null, yes]", "items[0]: is null, not a Kubernetes object"),
        ("kind: List\napiVersion: v1\nitems: [null, yes]", "items[1]: is true, not a Kubernetes object"),
        (json.dumps(changed(job(), kind="job")), "is a job; did you mean Job?"),
        (json.dumps(changed(job(), kind="Jobs")), "is a Jobs; did you mean Job?"),
        (json.dumps(job()).replace('"apiVersion": "batch/v1", ', ""), "apiVersion: is missing; write batch/v1"),
        (yaml.safe_dump(job()).replace("name: one", "name: y"), "name: is true, not text; put it in quotes"),
        (
            yaml.safe_dump(job()).replace("name: one", "name: {{ .Release.Name }}-one"),
            "a template is not filled in: name: {{ .Release.Name }}-one; fill it in, or put it in quotes",
        ),
        (
            yaml.safe_dump(job()).replace("image: busybox", "image: busybox\n        env: [{name: DEBUG, value: no}]"),
            "env[0].value: is true or false, and Kubernetes takes text; put it in quotes",
        ),
        (
            json.dumps(job(labels={"ku\u0435ue.x-k8s.io/queue-name": "gpu"})),
            '"ku\u0435ue.x-k8s.io/queue-name" has a prefix that has the character U+0435 (cyrillic small letter ie)',
        ),
        (
            json.dumps(job(labels={"kueue.x-k8s.io/queue-name": "g\u0440u"})),
            "did you mean gpu, without the character U+0440 (cyrillic small letter er)?",
        ),
        (json.dumps(changed(job(), metadata={**job()["metadata"], "namespace": "visoin"})), "the namespace vision?"),
    ],
)
def test_what_is_written_wrongly_is_named_with_a_way_out(tmp_path: Path, text: str, said: str) -> None:
    result = said_of(tmp_path, text)
    assert [line for line in result if said in line], result


def test_a_job_that_others_refuse_is_simulated_with_a_warning(tmp_path: Path) -> None:
    refused = job(annotations={"kueue.x-k8s.io/job-min-parallelism": "2", "kueue.x-k8s.io/elastic-job": "true"})
    refused["spec"]["parallelism"] = refused["spec"]["completions"] = 4
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text(json.dumps(refused))
    result = call("simulate", "fleet", LAB, "--jobs", jobs)
    assert "and Kueue refuses both together (the simulation may run it); keep one of the two" in result.stderr
    older = tmp_path / "older.yaml"
    older.write_text(LAB.read_text() + "kueue: { version: 0.17.1 }\n")
    assert said_of(tmp_path, refused, fleet=older) == []  # The gate is off there, and the annotation says nothing.


def test_pods_that_choose_nodes_of_another_flavor_do_not_run(tmp_path: Path) -> None:
    """kueue@v0.19.2 flavorassigner.go flavorSelector: only labels that the flavor itself has count."""
    amounts = {"nvidia.com/gpu": 2, "cpu": 8, "memory": "20Gi", "ephemeral-storage": "40Gi"}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    group = {
        "coveredResources": list(amounts),
        "flavors": [{"name": name, "resources": resources} for name in ("parts", "shared")],
    }
    data = {
        **yaml.safe_load(STANDARD),
        "nodePools": [
            {
                "name": "parts",
                "machineType": "a2-highgpu-1g",
                "nodeCount": 2,
                "accelerator": {"partitionSize": "1g.5gb"},
            },
            {
                "name": "shared",
                "machineType": "g2-standard-8",
                "nodeCount": 2,
                "accelerator": {"sharing": {"strategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}},
            },
        ],
        "flavors": [{"name": "parts", "nodePool": "parts"}, {"name": "shared", "nodePool": "shared"}],
        "clusterQueues": [{"name": "q", "namespaceSelector": {}, "resourceGroups": [group]}],
        "teams": [{"name": "vision", "localQueues": [{"name": "gpu", "clusterQueue": "q"}]}],
    }
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(json.dumps(data))
    shared = job()
    strategy = {"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}
    shared["spec"]["template"]["spec"]["nodeSelector"] = strategy
    result = [line for line in said_of(tmp_path, shared, fleet=fleet) if "Job vision/one" in line]
    assert "Kueue may give it flavor parts all the same, and its pods do not run" in result[-1]
    assert "let its pods select cloud.google.com/gke-accelerator: nvidia-l4 too" in result[-1]
    assert result[0].startswith("warning: ")  # Where others have the quota of that flavor, it gets another.
    shared["spec"]["template"]["spec"]["nodeSelector"] = {
        **strategy,
        "cloud.google.com/gke-accelerator": "nvidia-l4",
    }
    assert not [line for line in said_of(tmp_path, shared, fleet=fleet) if "Job vision/one" in line]


def test_a_simulation_before_a_calendar_reservation_begins_says_so(tmp_path: Path) -> None:
    """`check --jobs` looks at the time when it is open, so that both have to name it."""
    fleet, jobs = tmp_path / "fleet.yaml", tmp_path / "jobs.yaml"
    data = calendar_data(start="2026-12-10T00:00:00Z", open_by_hand=False)
    data["clusterQueues"][0]["resourceGroups"][0]["flavors"].pop()
    data["teams"] = [{"name": "vision", "localQueues": [{"name": "gpu", "clusterQueue": "q"}]}]
    fleet.write_text(json.dumps(data))
    one = job()
    one["spec"]["template"]["spec"] |= {"nodeSelector": {}}
    one["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"].pop("ephemeral-storage")
    jobs.write_text(json.dumps(one))
    warning = "its flavors have no quota; give --begin 2026-12-10T00:00:00 for a time when it is open"
    result = call("simulate", "fleet", fleet, "--jobs", jobs, "--begin", "2026-12-09T00:00:00")
    assert warning in result.stderr
    result = call("simulate", "fleet", fleet, "--jobs", jobs, "--begin", "2026-12-10T00:00:00")
    assert (warning in result.stderr, "Finished" in result.stdout) == (False, True)


def test_a_queue_on_the_manager_is_not_known_to_run_its_jobs(tmp_path: Path) -> None:
    data = dispatched_data()
    data["flavors"].append({"name": "own", "clusters": ["manager"], "nodeLabels": {"kind": "own"}})
    resources = [{"name": name, "nominalQuota": 8} for name in ("nvidia.com/gpu", "cpu")]
    group = {"coveredResources": ["nvidia.com/gpu", "cpu"], "flavors": [{"name": "own", "resources": resources}]}
    data["clusterQueues"].append(
        {"name": "own", "clusters": ["manager"], "namespaceSelector": {}, "resourceGroups": [group]}
    )
    data["teams"] = [{"name": "vision", "localQueues": [{"name": "gpu", "clusterQueue": "own"}]}]
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(json.dumps(data))
    one = job()
    one["spec"]["template"]["spec"]["nodeSelector"] = {}
    amounts = {"cpu": "1", "nvidia.com/gpu": "1"}
    one["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    output = "\n".join(said_of(tmp_path, one, fleet=fleet))
    assert "manager is the manager, where Kueue runs the queue's jobs, but no answer here knows its nodes" in output
    assert "whether it starts is not known: queue own admits it on manager, a manager" in output


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "name: vision",
            "name: 007",
            'teams[0].name: 7 is given where text is needed; put it in quotes: "007" [KF507]',
        ),
        (
            "name: shared",
            "name: 1.10",
            '[0].name: 1.1 is given where text is needed; put it in quotes: "1.10"',
        ),
        (
            "nominalQuota: 16 ",
            "nominalQuota: 016 ",
            ": 016 is 14 to Pulumi and kubectl, which read it as octal; write",
        ),
        ("us-central1", "us\u2011central1", "as it has the character U+2011 (non-breaking hyphen); write one such as"),
        ("region: us", "region:\u00a0us", "put a space after the colon: region: us-central1"),
        (
            "my-project",
            "{{ .Values.project }}",
            "a template is not filled in: project: {{ .Values.project }}; fill",
        ),
    ],
)
def test_what_looks_right_in_a_fleet_file_is_named_as_it_is_written(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(LAB.read_text().replace(old, new))
    assert said in call("check", fleet).stderr
