"""What strangers wrote is shown escaped, in every command: terminals, CI logs and readers must not be misled by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.in_process import Command, Ended
from tests.status.test_fleet_status import connection, queue, workload
from tests.status.test_fleet_status import request as dws_request

from kueue_admission.kernel.printable import printable
from kueue_fleet.cli import COMMANDS, live_fleet
from kueue_fleet.status import ClusterObjects

ROOT = Path(__file__).parents[2]
FLEET = str(ROOT / "stacks/Pulumi.dws-multikueue.yaml")
LOAD = str(ROOT / "examples/dws-multikueue/workload.yaml")

HOSTILE = "x\x1b[31m\x9b2J\u202e\u200b\u2028[bold][/us-east4-a]\r\n::error::forged\x7f"
SHOWN = r"x\x1b[31m\x9b2J\u202e\u200b\u2028[bold][/us-east4-a]\r\n::error::forged\x7f"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (HOSTILE, SHOWN),
        ("plain text, größe, 東京", "plain text, größe, 東京"),
        ("a\u00a0b\tc", r"a\xa0b\tc"),
        ("\ud800", r"\ud800"),
        ("", ""),
    ],
)
def test_each_character_that_does_not_print(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> Command:
    folder = tmp_path_factory.mktemp("e")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KUEUE_FLEET_STATE_DIR", str(folder / "s"))
    write("fleet.yaml", hostile_fleet())
    write("queues.yaml", queues(), pending())
    write("jobs.yaml", {"jobs": [{"name": HOSTILE, "queue": "gpu", HOSTILE: 1}]})
    write("controller.yaml", {HOSTILE: HOSTILE})
    cell = HOSTILE.replace("\r\n", "").replace("\u2028", "")
    Path("prices.csv").write_text(f"of,regions,onDemand,spot,flexStart\na,b,{cell},,\n")
    Path("Pulumi.yaml").write_text("{name: p, runtime: python}")
    write("Pulumi.hostile.yaml", {"config": {"kueue-fleet:fleet": hostile_fleet()}})
    return Command(monkeypatch, capsys)


def write(file: str, *documents: object) -> None:
    Path(file).write_text(yaml.safe_dump_all(documents))


def hostile_fleet() -> dict[str, object]:
    return {
        "name": HOSTILE,
        "project": "my-project",
        "clusters": [{"name": "solo", "role": "standalone", "region": HOSTILE}],
        "flavors": [{"name": "l4", "nodeLabels": {HOSTILE: HOSTILE}}],
        HOSTILE: 1,
    }


def queues() -> dict[str, object]:
    spec = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": HOSTILE, "resources": []}]}]}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": HOSTILE}, "spec": spec}


def pending() -> dict[str, object]:
    waits = {"type": "QuotaReserved", "status": "False", "reason": HOSTILE, "message": HOSTILE}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default", "uid": "u", "creationTimestamp": "2026-11-21T00:00:00Z"},
        "spec": {
            "queueName": HOSTILE,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}],
        },
        "status": {"conditions": [{**waits, "lastTransitionTime": "2026-11-21T00:00:00Z"}]},
    }


IMPORT = [
    *("--name", "x", "--project", "my-project", "--region", "us-central1"),
    "--mode",
    "Autopilot",
    "--default-kueue",
]
CALLS = {
    "init": [["init", HOSTILE, "--project", "my-project", "--yes"], ["init", "x", "--project", HOSTILE, "--yes"]],
    "check": [
        ["check", "fleet.yaml"],
        ["check", "fleet.yaml", "-o", "json"],
        ["check", HOSTILE],
        ["check", f"--{HOSTILE}"],
    ],
    "schema": [["schema", HOSTILE]],
    "render": [["render", "fleet.yaml"], ["render", FLEET, "-c", HOSTILE]],
    "rehearse": [
        ["rehearse", "run", "hostile"],
        ["rehearse", "up", HOSTILE],
        ["rehearse", "reclaim-spot", HOSTILE, "hostile"],
    ],
    "simulate": [
        ["simulate", "fleet", FLEET, "-w", "jobs.yaml"],
        ["simulate", "fleet", "fleet.yaml", "-w", LOAD],
        ["simulate", "objects", "queues.yaml"],
        ["simulate", "fleet", FLEET, "-w", LOAD, "--what-if", f"clusterQueues[{HOSTILE}].cohort=1"],
        ["simulate", "fleet", FLEET, "-w", LOAD, "--max-wait", f"{HOSTILE}=3", "--until", "1"],
    ],
    "explain": [
        ["explain", "w", "--objects", "queues.yaml"],
        ["explain", HOSTILE, "--objects", "queues.yaml"],
        ["explain", "w", "--objects", "queues.yaml", "-o", "json"],
    ],
    "controller": [["controller", "--config", "controller.yaml", "--workers", HOSTILE]],
    "import": [["import", "a=queues.yaml", *IMPORT], ["import", f"{HOSTILE}=queues.yaml", *IMPORT]],
    "diff": [["diff", "fleet.yaml", FLEET]],
    "cost": [
        ["cost", "fleet.yaml"],
        ["cost", FLEET, "--prices", "prices.csv"],
        ["cost", FLEET, "--prices", HOSTILE],
        ["cost", FLEET, "--store", HOSTILE],
    ],
    "upgrade": [
        ["upgrade", "fleet.yaml", "--to", "0.19.2"],
        ["upgrade", FLEET, "--to", HOSTILE],
        ["upgrade", FLEET, "--to", "0.20.0", "--objects", HOSTILE],
        ["upgrade", FLEET, "--to", "0.20.0", "--jobs", HOSTILE],
    ],
    "preflight": [["preflight", "fleet.yaml"]],
    "status": [["status", "fleet.yaml"], *[["status", FLEET, name, HOSTILE] for name in ("--kubeconfig", "--store")]],
    "top": [["top", "fleet.yaml"], *[["top", FLEET, name, HOSTILE] for name in ("--kubeconfig", "--store")]],
    "describe": [["describe", HOSTILE], ["describe", "x", "--kubeconfig", HOSTILE], ["describe", "x", "-n", HOSTILE]],
    "logs": [["logs", HOSTILE], ["logs", "x", "--kubeconfig", HOSTILE]],
    "exec": [["exec", HOSTILE, "ls"], ["exec", "x", "ls", "--kubeconfig", HOSTILE]],
    "cancel": [["cancel", HOSTILE], ["cancel", "x", "--kubeconfig", HOSTILE, "--yes"]],
    "when": [
        ["when", "fleet.yaml", "--job", "x"], ["when", FLEET, "--job", HOSTILE], ["when", FLEET, "-f", HOSTILE],
        ["when", FLEET, "--job", "x", "--run-time", HOSTILE],
    ],
    "record": [
        ["record", "fleet.yaml", "--store", "x"], ["record", FLEET, "--store", f"s3://{HOSTILE}"],
        ["record", FLEET, "--store", "x", "--from", HOSTILE],
        ["record", FLEET, "--store", "x", "--from", f"c={HOSTILE}"],
    ],
    "evidence": [
        ["evidence", FLEET, "--store", HOSTILE, "--from", "2026-11-01", "--to", "2026-12-01", "--team", HOSTILE],
        ["evidence", "fleet.yaml", "--store", "x", "--from", "2026-11-01", "--to", "2026-12-01"],
    ],
    "replay": [
        ["replay", FLEET, "--store", HOSTILE],
        ["replay", FLEET, "--store", "x", "--growth", HOSTILE], ["replay", FLEET, "--store", "x", "--queue", HOSTILE],
    ],
    "plan": [
        ["plan", FLEET, "--store", "x", "--may-change", HOSTILE],
        ["plan", FLEET, "--store", HOSTILE, "--may-change", f"{HOSTILE}=0..1"],
        ["plan", FLEET, "--store", "x", "--may-change", "name=0..1", "--growth", HOSTILE],
    ],
    "submit": [
        ["submit", "--fleet", "fleet.yaml", "-q", "x", "--image", "i"],
        ["submit", "--fleet", FLEET, "-q", HOSTILE, "--image", HOSTILE],
        ["submit", "--fleet", FLEET, "-q", "gpu", "--image", HOSTILE, "--env", HOSTILE],
        ["submit", "--fleet", FLEET, "-q", "gpu", "--image", "i", "--env", f"{HOSTILE}=x", "--mount", f"{HOSTILE}:/x"],
        ["submit", "--fleet", FLEET, "-q", "gpu", "--image", "i", "--time", HOSTILE],
        ["submit", "--fleet", FLEET, "-f", HOSTILE],
    ],
    "rotate": [
        ["rotate", "fleet.yaml"], ["rotate", FLEET, "--kubeconfig", HOSTILE], ["rotate", FLEET, "--worker", HOSTILE],
    ],
}  # fmt: skip


def test_every_command_is_tried() -> None:
    assert set(CALLS) == set(COMMANDS)


@pytest.mark.parametrize(
    "call", [call for calls in CALLS.values() for call in calls], ids=lambda call: printable(" ".join(call))
)
def test_nothing_of_it_acts(command: Command, call: list[str]) -> None:
    ended = command(call)
    assert_harmless(ended)
    assert "x\\x1b[31m" in ended.out + ended.err or "x\\u001b[31m" in ended.out


def assert_harmless(ended: Ended) -> None:
    for line in (ended.out + ended.err).split("\n"):
        assert line.isprintable()
        assert not line.lstrip().startswith("::")
    assert "Traceback" not in ended.err


def test_what_clusters_say(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def lists(_: str, cluster: str, role: str, *__: object) -> ClusterObjects:
        if role == "manager":
            links = [connection("worker-us-east4", active=False)]
            links[0]["status"]["conditions"][0]["message"] = HOSTILE
            waits = workload("a", QuotaReserved=(False, HOSTILE, HOSTILE))
            return ClusterObjects(role, {"workloads": [waits], "multikueueclusters": links})
        stopped = queue(used="5", borrowed="1")
        stopped["status"]["conditions"] = [{"type": "Active", "status": "False", "message": HOSTILE}]
        waiting = dws_request("req", "2026-11-21T11:00:00Z", Failed=(True, "x", HOSTILE))
        return ClusterObjects(role, {"clusterqueues": [stopped], "provisioningrequests": [waiting]}, HOSTILE)

    monkeypatch.setattr(live_fleet, "_read", lists)
    ended = command(["status", FLEET])
    assert_harmless(ended)
    assert ended.out.count(SHOWN) > 5
    as_json = command(["status", FLEET, "-o", "json"])
    assert_harmless(as_json)
    assert json.loads(as_json.out)["pending"][0]["reason"] == HOSTILE
    for options in ([], ["-o", "json"]):
        ended = command(["status", "--usage", FLEET, *options])
        assert_harmless(ended)
        assert SHOWN in ended.out or "x\\u001b[31m" in ended.out


def test_a_hostile_label_is_refused_and_shown_escaped(command: Command) -> None:
    label = {"metadata": {"name": "f"}, "spec": {"nodeLabels": {"a": "b\u202ec"}}}
    write("flavors.yaml", {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", **label})
    ended = command(["import", "a=flavors.yaml", *IMPORT])
    assert_harmless(ended)
    assert ended.out == ""
    assert "b\\u202ec" in ended.err
