from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.simulation.objects import cluster, job
from tests.simulation.test_quota_times import data as windows_data
from typer.testing import CliRunner

from command_line import call
from kueue_admission.cli.console import CommandError
from kueue_admission.cli.simulate_report import report_page
from kueue_admission.simulate.records import Record
from kueue_admission.simulate.result import Result
from kueue_fleet.cli import app

ROOT = Path(__file__).parents[2]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    preemption = {"withinClusterQueue": "LowerPriority"}
    jobs = [job("a", 0, "100"), job("b", 10, "20", **{"priority-class": "high"}), job("c", 11, "7", cpu="1")]
    (tmp_path / "queues.yaml").write_text(yaml.safe_dump_all(cluster(preemption=preemption)))
    (tmp_path / "jobs.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": jobs}))
    return tmp_path


def test_json_of_a_folder(dump: Path) -> None:
    result = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--output", "json"])
    assert result.exit_code == 0, result.output
    results = json.loads(result.stdout)
    assert results["schemaVersion"] == 1
    assert [(w["name"], w["state"], w["admittedAt"]) for w in results["workloads"]] == [
        ("a", "Finished", 31.0),
        ("b", "Finished", 10.0),
        ("c", "Finished", 132.0),
    ]


def test_table(dump: Path) -> None:
    result = CliRunner().invoke(app, ["simulate", "objects", str(dump)])
    assert result.exit_code == 0, result.output
    assert "default/a" in result.stdout
    assert "mean wait" in result.stdout


def test_two_hash_seeds_give_the_same_text(dump: Path) -> None:
    start = "from kueue_fleet.cli import main; main()"
    arguments = ["simulate", "objects", str(dump), "--output", "json"]
    other = subprocess.run(
        [sys.executable, "-c", start, *arguments],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT / "components")},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert other == call(*arguments).stdout, "this process has a random seed"


def test_bad_input_is_one_message(tmp_path: Path) -> None:
    file = tmp_path / "garbage.yaml"
    file.write_text("- nothing here\n" * 1000)
    result = CliRunner().invoke(app, ["simulate", "objects", str(file)])
    assert result.exit_code == 1
    assert "garbage.yaml:1: is a list of 1000" in str(result.exception)
    assert result.stdout == ""


def test_nothing_to_simulate() -> None:
    result = CliRunner().invoke(app, ["simulate"])
    assert "Commands:" in result.output
    assert result.exit_code == 2


def test_stack_and_workload_of_the_example() -> None:
    stack, workload = ROOT / "stacks/Pulumi.dws-multikueue.yaml", ROOT / "examples/dws-multikueue/workload.yaml"
    result = CliRunner().invoke(
        app, ["simulate", "fleet", str(stack), "-w", str(workload), "--seed", "7", "-o", "json"]
    )
    assert result.exit_code == 0, result.output
    results = json.loads(result.stdout)
    assert results["seed"] == 7
    assert {workload["state"] for workload in results["workloads"]} == {"Finished"}
    assert len({workload["cluster"] for workload in results["workloads"]}) > 1


@pytest.mark.parametrize(("options", "said"), [(["--begin", "2026-12-01T00:30:00"], None), ([], "second 0 is now, ")])
def test_jobs_need_no_workload_file_where_quotas_have_windows(
    options: list[str], said: str | None, tmp_path: Path
) -> None:
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(windows_data()))
    metadata = {"name": "large", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}}
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    annotations = {"kueue-fleet.dev/run-seconds": "60"}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"parallelism": 6, "template": template},
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    given = ["simulate", "fleet", str(tmp_path / "fleet.yaml"), "--jobs", str(tmp_path / "job.yaml"), "-o", "json"]
    result = CliRunner().invoke(app, [*given, *options])
    assert result.exit_code == 0, result.output
    if said is None:
        [workload] = json.loads(result.stdout)["workloads"]
        assert workload["quotaReservedAt"] == pytest.approx(1800, abs=3)
    else:
        assert said in result.stderr


def test_pods_that_select_what_no_node_has_stay_pending(tmp_path: Path) -> None:
    job = yaml.safe_load((ROOT / "examples/data/finetune.yaml").read_text())
    job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "l4"
    pod: dict[str, Any] = {"restartPolicy": "Never", "nodeSelector": {"disk": "ssd"}}
    requests = {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}
    resources = {"requests": requests, "limits": {"nvidia.com/gpu": 1}}
    pod["containers"] = [{"name": "main", "image": "busybox", "resources": resources}]
    metadata = {"annotations": {"kueue-fleet.dev/run-seconds": "60"}}
    job["spec"] = {"suspend": True, "template": {"metadata": metadata, "spec": pod}}
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    options = ["--jobs", str(file), "--until", "300", "--output", "json"]
    result = CliRunner().invoke(app, ["simulate", "fleet", str(ROOT / "examples/data/fleet.yaml"), *options])
    assert result.exit_code == 0, result.output
    assert (
        "pod set main selects disk=ssd, and node pool l4 of batch does not have it, so that Kueue admits it and its "
        "pods do not run; select what its nodes have, or label the pool"
    ) in result.stderr
    [workload] = json.loads(result.stdout)["workloads"]
    assert (workload["state"], workload["finishedAt"]) == (
        "Admitted",
        None,
    )
    del pod["nodeSelector"]
    file.write_text(yaml.safe_dump(job))
    result = CliRunner().invoke(app, ["simulate", "fleet", str(ROOT / "examples/data/fleet.yaml"), *options])
    assert (json.loads(result.stdout)["workloads"][0]["state"], result.stderr) == ("Finished", "")


def test_what_if_shows_the_difference(dump: Path) -> None:
    quota = "ClusterQueue[cq].spec.resourceGroups[0].flavors[rf].resources[cpu].nominalQuota=8"
    result = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--what-if", quota, "-o", "json"])
    assert result.exit_code == 0, result.output
    results = json.loads(result.stdout)
    assert results["whatIf"] == [quota]
    assert {d["name"]: d["after"]["admittedAt"] for d in results["differences"]} == {"a": 0.0, "c": 11.0}
    display = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--what-if", quota])
    assert "2 workloads of 3 fare differently." in display.stdout


def test_what_if_tries_again_what_a_cycle_left_without_quota() -> None:
    """As Kueue does when a ClusterQueue changes."""
    dump = str(ROOT / "examples/plain-cluster/dump.yaml")
    quota = "ClusterQueue[cq].spec.resourceGroups[0].flavors[default].resources[cpu].nominalQuota=5"
    result = CliRunner().invoke(app, ["simulate", "objects", dump, "--what-if", quota, "-o", "json"])
    [big] = json.loads(result.stdout)["differences"]
    assert (big["before"]["admittedAt"], big["after"]["admittedAt"]) == (602, 3)


def test_what_if_on_a_stack_and_its_jobs() -> None:
    stack, workload = ROOT / "stacks/Pulumi.dws-multikueue.yaml", ROOT / "examples/dws-multikueue/workload.yaml"
    quota = "clusterQueues[dws].resourceGroups[0].flavors[t4-dws].resources[nvidia.com/gpu].nominalQuota"
    command = [
        "simulate",
        "fleet",
        str(stack),
        "-w",
        str(workload),
        "-o",
        "json",
        "--what-if",
        "jobs[deadline].start=60",
    ]
    result = CliRunner().invoke(app, [*command, "--what-if", f"{quota}=6"])
    assert result.exit_code == 0, result.output
    after = {results["name"]: results for results in json.loads(result.stdout)["after"]["workloads"]}
    assert after["deadline"]["arrivedAt"] == 60
    from_stdin = ["simulate", "fleet", "-", *command[3:], "--what-if", f"{quota}=6"]
    piped = CliRunner().invoke(app, from_stdin, input=stack.read_text())
    assert json.loads(piped.stdout)["after"] == json.loads(result.stdout)["after"]
    refused = CliRunner().invoke(app, [*command, "--what-if", f"{quota}=lots"])
    assert refused.exit_code == 1
    assert "nominalQuota" in str(refused.exception)


def test_report_opens_without_a_network(dump: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--html", str(report)])
    assert result.exit_code == 0, result.output
    page = report.read_text()
    assert "default-src 'none'" in page
    assert "//" not in re.sub(
        r"^ *// .*$|; // .*$", "", page.replace("http://www.w3.org/2000/svg", ""), flags=re.MULTILINE
    )
    assert len(page) < 60_000
    data = page.split('id="data">')[1].split("</script>")[0]
    assert [results["name"] for results in json.loads(data)["sections"]] == [""]
    assert [path.name for path in tmp_path.glob("*.html")] == ["report.html"]


def test_report_of_a_what_if_has_both(dump: Path, tmp_path: Path) -> None:
    report, quota = tmp_path / "report.html", "ClusterQueue[cq].spec.stopPolicy=Hold"
    completed = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--html", str(report), "--what-if", quota])
    assert completed.exit_code == 0, completed.output
    data = report.read_text().split('id="data">')[1].split("</script>")[0]
    assert [result["name"] for result in json.loads(data)["sections"]] == ["Before", "After"]


def test_names_cannot_become_markup() -> None:
    bad = "</script><script>alert(1)</script>"
    page = report_page("<b>title", {"File": "<i>{{data}}"}, [("", Result((Record("ns/x", "ns", bad, 0.0),)))])
    assert "<script>alert" not in page
    assert "&lt;b&gt;title" in page
    assert "&lt;i&gt;{{data}}" in page


def test_what_is_wrong_as_published_is_seen_to_happen() -> None:
    folder = ROOT / "examples/batch-platform"
    command = ["simulate", "fleet", str(folder / "with-defects.yaml"), "--jobs", str(folder / "jobs.yaml")]
    command += ["-w", str(folder / "workload.yaml"), "--until", "12", "-o", "json"]
    assert CliRunner().invoke(app, command).exit_code == 1
    result = CliRunner().invoke(app, [*command, "--as-published"])
    assert result.exit_code == 0, result.output
    results = [one for one in json.loads(result.stdout)["workloads"] if one["state"] == "Admitted"]
    runs = [(one["message"], one["runs"][-1]) for one in results]
    stuck = [why for why, run in runs if run["flavors"] == ["gpu-l4-reserved"] and run["startedAt"] is None]
    assert stuck == ["its pods do not all fit on node pool reserved-np (4 of 4 nodes in use)"] * 2


def test_report_says_of_what_it_is(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["simulate", "fleet", STACK, "-w", WORKLOAD, "--seed", "7", "--html", str(report)])
    assert result.exit_code == 0, result.output
    about = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", report.read_text()))
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", about.pop("Date"))
    assert about == {"Fleet": "dws-multikueue", "File": STACK, "Jobs": WORKLOAD, "Seed": "7"}


def test_a_report_is_written_into_a_pipe_which_stays_one(dump: Path, tmp_path: Path) -> None:
    """As root, a report that replaced /dev/null made it a file for every program of the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(pipe.read_text)
        completed = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--html", str(pipe)])
        assert "</html>" in reading.result(60)
    assert completed.exit_code == 0, completed.output
    assert pipe.is_fifo()


def test_report_is_refused_before_anything_runs(dump: Path, tmp_path: Path) -> None:
    for path, output in ((tmp_path / "gone/r.html", "there is no folder"), (dump, "is a folder")):
        result = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--html", str(path)])
        assert result.exit_code == 1
        assert output in str(result.exception)
        assert result.stdout == ""


STACK, WORKLOAD = str(ROOT / "stacks/Pulumi.dws-multikueue.yaml"), str(ROOT / "examples/dws-multikueue/workload.yaml")
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"- kind: nothing\n" * MILLION, "{file}:1: is a list"),
        (b"kind: nothing\n" * MILLION, "{file}:2: kind is written twice"),
        (b"garbage\n" * MILLION, "{file}:"),
        (b"kind garbage {[}\n" * MILLION, "{file}:"),
        ("jobs: [\u00e9]\n".encode("latin-1"), "{file}: is not UTF-8 text (byte 7)"),
        (b"jobs: \x00\n", "{file}:1: is not readable as YAML"),
        (b"[" * 5000, "{file}"),
        (b"", "{file}: "),
        (b"a: 1\na: 2\n", "{file}:2: a is written twice"),
    ],
)
def test_garbage_is_one_message_with_its_file(content: bytes, said: str, tmp_path: Path) -> None:
    file, report = tmp_path / "input.yaml", tmp_path / "report.html"
    file.write_bytes(content)
    for arguments in (["objects", str(file)], ["fleet", STACK, "--workload", str(file)]):
        result = CliRunner().invoke(app, ["simulate", *arguments, "--html", str(report)])
        assert result.exit_code == 1
        assert isinstance(result.exception, CommandError)
        assert said.format(file=file) in str(result.exception)
        assert len(str(result.exception).splitlines()) <= 22
        assert result.stdout == ""
        assert not report.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--until", "nan"], "--until nan: is not a number of seconds"),
        (["--until", "inf"], "--until inf: is not a number of seconds"),
        (["--until", "-1"], "--until -1: is not a number of seconds"),
        (["--until", "1e10"], "--until 1e+10: is not a number of seconds; write 0 to 1,000,000,000"),
        (["--delay", "write=1e308"], "--delay write: '1e308' is negative, or more than 1,000,000,000 seconds"),
        (["--what-if", "clusterQueues[gone].stopPolicy=Hold"], "--what-if clusterQueues[gone].stopPolicy: there is no"),
        (["--what-if", "jobs[gone].start=1"], "--what-if jobs[gone].start: there is no"),
        (["--what-if", "stopPolicy"], "is not path=value"),
        (["--delay", "relase=1"], "--delay 'relase=1': is not name=seconds"),
        (["--workload", "/proc/self/mem"], "/proc/self/mem: cannot be read: Input/output error"),
        (["--workload", str(ROOT)], "is a folder; give a workload file"),
        (["--workload", "gone.yaml"], "gone.yaml: no such file; give a workload file"),
    ],
)
def test_arguments_that_lead_nowhere_are_named(arguments: list[str], said: str) -> None:
    jobs = [] if "--workload" in arguments else ["--workload", WORKLOAD]
    result = CliRunner().invoke(app, ["simulate", "fleet", STACK, *jobs, *arguments])
    assert result.exit_code in (1, 2)
    assert said in str(result.exception)
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("runSeconds: -5", "jobs[a].runSeconds: -5 is negative"),
        ("runSeconds: .nan", "jobs[a].runSeconds"),
        ("runSeconds: 1.0e+300", "jobs[a].runSeconds: 1e+300 is negative, or more than 1,000,000,000 seconds"),
        (f"runSeconds: {'9' * 400}", "999... is negative, or more than 1,000,000,000 seconds"),
        ("interval: exponential(1e10)", 'jobs[a].interval: "exponential(1e10)" is negative, or more than'),
        ("interval: uniform(1_0, 20)", "has an argument that is not a number"),
        ("count: 2000000000", "jobs[a].count"),
        ("pods: 0", "jobs[a].pods"),
        ("requests: {cpu: two}", 'jobs[a].requests[cpu]: "two" is not a valid quantity'),
        ("requests: {cpu: null}", "jobs[a].requests[cpu]: "),
        ("requests: {cpu: 1.0e+400}", "jobs[a].requests[cpu]: inf is not a valid quantity"),
        ("requests: {nvidia.com/gpu: true}", "jobs[a].requests[nvidia.com/gpu]: true is not a valid quantity"),
        ("queue: gone", "jobs.yaml:4: jobs[a].queue: there is no LocalQueue"),
        ("namespace: gone", "there is no LocalQueue"),
        ("priorityClass: gone", "jobs.yaml:4: jobs[a].priorityClass: there is no WorkloadPriorityClass gone"),
        ("notAField: 1", "jobs.yaml:4: jobs[a].notAField: is not a known field"),
    ],
)
def test_jobs_that_cannot_be_are_named(fields: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    given = {"name": "a", "namespace": "team-vision", "queue": "gpu", "requests": {"cpu": 1}}
    file.write_text(yaml.safe_dump({"jobs": [given | yaml.safe_load(fields)]}))
    result = CliRunner().invoke(app, ["simulate", "fleet", STACK, "--workload", str(file)])
    assert result.exit_code == 1
    assert said in str(result.exception)
    assert result.stdout == ""


def test_a_job_with_concurrent_admission_moves_to_the_better_flavor(tmp_path: Path) -> None:
    data = yaml.safe_load((ROOT / "examples/fallback/fleet.yaml").read_text())
    [queue] = data["clusterQueues"]
    del queue["fallback"], data["controller"]
    queue["concurrentAdmissionPolicy"] = {"migration": {"mode": "TryPreferredFlavors"}}
    data["kueue"] = {"configuration": {"featureGates": {"ConcurrentAdmission": True}}}
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(yaml.safe_dump(data))
    result = call("simulate", "fleet", fleet, "--workload", ROOT / "examples/fallback/stock-out.yaml", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert {item["state"] for item in json.loads(result.stdout)["workloads"]} == {"Finished"}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"cpu": "1 core"}, "Job team-vision/bad.spec.template.spec.containers[0].resources"),
        ({"queue-name": "gone"}, "left out: jobs.yaml:1: workload team-vision/bad: there is no LocalQueue"),
    ],
    ids=["quantity", "queue"],
)
def test_one_job_that_cannot_be_read_ends_no_simulation_of_a_fleet(
    bad: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = [job("good", 0, "60", cpu="1", **{"queue-name": "gpu"}), job("bad", 0, "60", **{"queue-name": "gpu", **bad})]
    for item in jobs:
        item["metadata"]["namespace"] = "team-vision"
    Path("jobs.yaml").write_text(yaml.safe_dump_all([jobs[1], jobs[0], {"just": "text"}]))
    result = CliRunner().invoke(app, ["simulate", "fleet", STACK, "--jobs", "jobs.yaml"])
    assert (result.exit_code, "team-vision/good" in result.stdout, "/bad " in result.stdout) == (1, True, False)
    assert said in result.stderr
    assert "has no kind, but just" in result.stderr
    assert "a start of theirs may be too early" in result.stderr
