"""The whole command, interrupted, killed, repeated: what it leaves behind, and whether the next one works.

`tests/rehearsal/test_interrupted_command.py` has each moment of a first run, on stand-ins for engines.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator

import psutil
import pytest
import yaml

from one_cluster import wait_until
from rehearse_command import (
    CLUSTER,
    ROOT,
    SOON_SECONDS,
    STACK,
    Command,
    Ended,
    Project,
    cluster_starts,
    fleet,
    interrupt,
    job,
    project,
)

EXAMPLE = ROOT / "examples/dws-single-cluster"


def test_two_stacks_are_rehearsed_side_by_side_and_ctrl_c_ends_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One is the example of a single cluster with DWS, whose jobs end on the nodes that they ask for."""
    example = yaml.safe_load((EXAMPLE / "Pulumi.dws-single-cluster.yaml").read_text())
    fleet = example["config"]["kueue-fleet:fleet"]
    with project(tmp_path_factory.mktemp("p"), tmp_path_factory.mktemp("s")) as result:
        result.write({**fleet, "kueue": {**fleet["kueue"], "replicas": 1}}, stack="second")
        command = result.start("--jobs", result.write_jobs(job("long", seconds=600)))
        beside = result.start("--jobs", EXAMPLE / "jobs.yaml", stack="second")
        command.until_said("Admitted solo")
        interrupt(command, result)
        ended = beside.end()
        assert ended.code == 0, ended.err
        rows = (line.split() for line in ended.out.splitlines() if line.startswith("sample-job"))
        assert {row[0]: (row[2], row[3], row[-1]) for row in rows} == {
            "sample-job": ("g-dws-test-cluster", "dws-t4", "Finished"),
            "sample-job-a100": ("g-dws-test-cluster", "dws-a100", "Finished"),
            "sample-job-2": ("g-dws-test-cluster", "dws-t4", "Finished"),
        }, ended.out
        assert [place.name for place in (result.state / "rehearsals").iterdir()] == [STACK]


NOT_WAITED_FOR = """
metadata = {"name": "aside", "namespace": "default", "annotations": {"pulumi.com/skipAwait": "true"}}
k8s.apps.v1.Deployment("aside", metadata=metadata, spec=pods("aside", "nginx:1.27"), opts=inside)
"""
CANNOT_RUN = (
    "no program on this machine stands in for image {} (there is no container engine: only gcp-auth-plugin, "
    "jobset/jobset, kuberay/operator, kueue-fleet-page, kueue-fleet/controller, kueue/kueue, kueue/kueue:0.17, "
    "kueue/kueue:0.18, kueue/kueue:0.19, lws/lws, trainer/trainer-controller-manager are run, "
    "and pods of jobs are simulated)"
)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Ended]]:
    """A rehearsal that stays, and the end of the command that brought it up and ran two jobs."""
    with project(tmp_path_factory.mktemp("p"), tmp_path_factory.mktemp("s")) as result:
        result.add_to_program(NOT_WAITED_FOR)
        completed = result.run("--jobs", result.write_jobs(job("one"), job("big", gpus=40)), how="up")
        assert completed.code == 0, completed.err
        yield result, completed


@pytest.fixture(scope="module")
def kept(first: tuple[Project, Ended]) -> Project:
    return first[0]


def test_the_command_tells_in_the_end_what_it_did_not_wait_for(first: tuple[Project, Ended]) -> None:
    _, result = first
    assert "Finished solo" in result.out
    assert "waits: solo: ExceedsMaxQuota: " in result.out
    assert f"Not run       solo: Deployment default/aside: {CANNOT_RUN.format('nginx:1.27')}\n" in result.out


def gpus(kept: Project) -> str:
    return str(kept.queue()["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"])


def change(kept: Project, gpus: int) -> Command:
    """Begin an update in place, and return in the middle of it."""
    kept.write(fleet(gpus=gpus))
    command = kept.start(how="up")
    cluster_starts(command, kept)
    return command


def test_a_changed_stack_is_an_update_in_place(kept: Project) -> None:
    pids = {row["name"]: row["pid"] for row in kept.client().processes()}
    kept.write(fleet(gpus=5))
    result = kept.run("--jobs", kept.write_jobs(job("one")), how="up")
    assert result.code == 0, result.err
    assert "1 update" in result.out
    assert "Finished solo" in result.out
    assert f"export KUBECONFIG={kept.paths().kubeconfig}" in result.out
    assert gpus(kept) == "5"
    assert {row["name"]: row["pid"] for row in kept.client().processes()} == pids


def test_ctrl_c_of_an_update_leaves_the_kept_clusters_running(kept: Project) -> None:
    pid = kept.client().health()["pid"]
    ended, seconds = change(kept, 6).interrupt()
    assert (ended.code, ended.err) == (130, "error: interrupted; the kept rehearsal of tiny is still there\n")
    assert seconds < SOON_SECONDS
    assert kept.client().health() | {"pid": pid, "status": "ok", "keep": True} == kept.client().health()
    # A Pulumi that does not end in time is killed, and leaves a lock that the next command takes away.
    assert [lock for lock in kept.locks() if psutil.pid_exists(json.loads(lock.read_text())["pid"])] == []
    assert kept.queue()["metadata"]["name"] == "queue"


def test_a_killed_update_is_made_good_by_the_next_command_which_takes_locks_of_the_dead_away(kept: Project) -> None:
    change(kept, 7).kill()
    folder = kept.paths().pulumi_backend / ".pulumi" / "locks" / "organization" / "kueue-fleet" / STACK
    (folder / "c0ffee.json").write_text(json.dumps({"pid": 999999999, "username": "me", "hostname": "here"}))
    result = kept.run()
    assert result.code == 0, result.err
    assert gpus(kept) == "7"
    assert kept.client().health()["status"] == "ok"
    assert kept.locks() == []


def test_another_command_is_told_to_wait_while_one_works(kept: Project) -> None:
    command = change(kept, 8)
    command.process.send_signal(signal.SIGSTOP)
    for how in ("down", "up", "run"):
        refused = kept.run(how=how)
        assert refused.code == 1
        assert refused.err == "error: another command is using the rehearsal of tiny; wait for it to end\n"
    command.process.send_signal(signal.SIGCONT)
    assert command.end().code == 0
    assert gpus(kept) == "8"


def test_jobs_that_are_refused_say_why_and_none_is_submitted(kept: Project) -> None:
    wrong = job("typo")
    wrong["spec"]["completion"] = 2
    jobs = kept.write_jobs(job("fine"), job("lost", namespace="nowhere"), wrong)
    refused = kept.run("--jobs", jobs)
    assert refused.code == 1
    lines = refused.err.splitlines()
    assert lines[0] == 'error: Job nowhere/lost-: solo refused it: namespaces "nowhere" not found'
    assert lines[1].startswith("  Job team-a/typo-: solo refused it: ")
    assert 'unknown field "spec.completion"' in lines[1]
    assert lines[2:] == [
        "  no job has been submitted; correct these and run it again",
        "  the kept rehearsal of tiny is still there",
    ]
    assert not any(item["metadata"]["name"].startswith("fine-") for item in kept.jobs())


def test_a_drill_says_what_became_of_its_jobs_and_deletes_them(kept: Project) -> None:
    jobs = kept.write_jobs(job("drilled", seconds=6))
    result = kept.run("--fault", "kueue-restarted", "--jobs", jobs, "--output", "json", how="drill")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert document["problems"] == []
    assert document["wellAfterSeconds"] > 0
    assert {(row["state"], *row["ranOn"], row["runs"]) for row in document["jobs"]} == {("Finished", CLUSTER, 1)}
    wait_until(lambda: not any(item["metadata"]["name"].startswith("drilled-") for item in kept.jobs()))


def test_a_kept_rehearsal_goes_on_after_the_machine_was_switched_off(kept: Project) -> None:
    psutil.Process(kept.client().health()["pid"]).send_signal(signal.SIGKILL)
    kept.assert_gone()
    kept.write(fleet(gpus=9))
    result = kept.run(how="up")
    assert result.code == 0, result.err
    assert "1 update" in result.out
    assert gpus(kept) == "9"


def test_an_update_that_fails_half_way_shows_each_cause_once_and_the_next_one_mends_the_cluster(kept: Project) -> None:
    more = fleet(gpus=8)
    more["teams"] += [{**more["teams"][0], "name": f"team-{name}"} for name in "bcde"]
    kept.write(more)
    command = kept.start(how="up")
    cluster_starts(command, kept)
    kept.client().kill(CLUSTER, "kube-apiserver")
    ended = command.end()
    assert ended.code == 1
    print(ended.err)
    log = kept.paths().root / "pulumi-up.log"
    assert ended.err.startswith("error: pulumi up failed:\n")
    assert ended.err.endswith(f"(its whole output is in {log})\n  the kept rehearsal of tiny is still there\n")
    lines = ended.err.splitlines()
    assert len(lines) == len(set(lines)) < 12
    assert log.is_file()
    result = kept.run()
    assert result.code == 0, result.err
    assert gpus(kept) == "8"


OWN_FLEET = """
import kueue_fleet as kf

spec = kf.parse_fleet({fleet!r})
kf.Fleet(spec.name, spec)
"""


def test_a_program_with_another_fleet_than_its_file_is_an_error(kept: Project) -> None:
    kept.write(fleet(gpus=9))
    declared = fleet(gpus=9)
    declared["clusterQueues"][0]["stopPolicy"] = "Hold"
    kept.write_program(OWN_FLEET.format(fleet=declared))
    result = kept.run(how="up")
    assert result.code == 1
    assert 'clusterQueues[queue].stopPolicy: is "None", but in the program\'s Fleet tiny "Hold"' in result.err


def test_a_program_without_a_fleet_in_its_file_is_rehearsed(kept: Project) -> None:
    kept.write(None)
    kept.write_program(OWN_FLEET.format(fleet=fleet(gpus=10)))
    result = kept.run("--jobs", kept.write_jobs(job("own")), how="up")
    assert result.code == 0, result.err
    assert "Finished solo" in result.out
    assert gpus(kept) == "10"


OTHERS_IMAGES = """
metadata = {"name": "web", "namespace": "default"}
k8s.apps.v1.Deployment("web", metadata=metadata, spec=pods("web", "nginx:1.27"), opts=inside)
k8s.helm.v3.Release("shop", name="shop", namespace="default", chart=config.require("shop"), opts=inside)
"""
SHOP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: till}
spec:
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec: {containers: [{name: till, image: "httpd:2.4"}]}
"""


def test_images_that_nobody_here_can_run_end_it_within_seconds(kept: Project) -> None:
    chart = kept.folder / "shop"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: shop, version: 0.1.0}")
    (chart / "templates" / "till.yaml").write_text(SHOP)
    kept.add_to_program(OTHERS_IMAGES)
    kept.write(fleet(gpus=10), **{"kueue-fleet:shop": str(chart)})
    command = kept.start(how="up")
    events = kept.paths().root / "pulumi-up.events.json"
    command.until(lambda: events.is_file() and "/v3:Release::shop" in events.read_text(), "helm installs the shop")
    began = time.monotonic()
    ended = command.end()
    assert time.monotonic() - began < SOON_SECONDS
    assert ended.code == 1
    lines = ended.err.splitlines()
    assert sorted(line.removeprefix("error: ").lstrip() for line in lines[:-2]) == [
        f"solo: Deployment default/till: {CANNOT_RUN.format('httpd:2.4')}; leave Helm release default/shop out of the "
        "stack, or set its skipAwait",
        f"solo: Deployment default/web: {CANNOT_RUN.format('nginx:1.27')}; leave it out of the stack, or give it the "
        'annotation pulumi.com/skipAwait: "true"',
    ]
    assert lines[-2:] == [
        "  pulumi up was ended: these pods will never become ready",
        "  the kept rehearsal of tiny is still there",
    ]


def test_down_ends_a_hung_supervisor_and_says_so_once(kept: Project) -> None:
    psutil.Process(kept.client().health()["pid"]).send_signal(signal.SIGSTOP)
    result = kept.run(how="down")
    assert (result.code, result.out) == (0, "The rehearsal of tiny was removed: its processes, clusters and state.\n")
    kept.assert_gone()
    assert not kept.paths().root.exists()
    again = kept.run(how="down")
    assert (again.code, again.out) == (0, "There is no rehearsal of tiny; nothing to do.\n")
