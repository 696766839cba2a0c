"""What really happened to jobs is recorded once, though the recorder is away in between; and a replay of that fits.

The controller records the same, though another one leads in between.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import yaml
from pyarrow import dataset

from controller_lab import MANAGER, ControllerLab, job, python_path
from kueue_admission.history.jobs import past_of
from kueue_admission.history.schema import Kind
from kueue_admission.history.store import Store
from kueue_rehearsal.kubeconfig import write_kubeconfig
from one_cluster import Json, condition, wait_until
from two_regions import EU, REGIONS, US, data

ENVIRONMENT = {**os.environ, "PYTHONPATH": python_path()}
NAMES = [f"recorded-{number}" for number in range(12)]


def kubeconfig(lab: ControllerLab, folder: Path) -> Path:
    """A context for each cluster."""
    merged: Json = {}
    for name in (MANAGER, EU, US):
        one = yaml.safe_load((lab.clusters[name].folder / "kubeconfig").read_text())
        user = f"of-{name}"
        one["users"][0]["name"] = one["contexts"][0]["context"]["user"] = user
        for part in ("clusters", "users", "contexts"):
            merged.setdefault(part, []).extend(one[part])
    write_kubeconfig(folder / "kubeconfig", {**one, **merged})
    return folder / "kubeconfig"


def manager_group(group: Json) -> Json:
    """The quotas of both workers as they were: the manager of the lab keeps them when those of the workers change."""
    [flavor] = group["flavors"]
    both = [{**item, "nominalQuota": 2 * item["nominalQuota"]} for item in flavor["resources"]]
    return {**group, "flavors": [{"name": "multikueue", "resources": both}]}


def command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-c", "from kueue_fleet.cli import main; main()", *arguments, "--store", str(folder / "h")]


def follow(folder: Path) -> subprocess.Popen[bytes]:
    options = ("--kubeconfig", str(folder / "kubeconfig"), "--every", "1")
    return subprocess.Popen(command(folder, "record", str(folder / "fleet.yaml"), *options), env=ENVIRONMENT)


def end(recorder: subprocess.Popen[bytes]) -> None:
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait(30) == 0


def rows(folder: Path) -> list[Json]:
    """Every row of every file."""
    table = dataset.dataset(folder / "h" / "events", partitioning="hive").to_table()
    result: list[Json] = table.to_pylist()
    return result


def test_jobs_are_recorded_once_and_their_replay_fits(lab: ControllerLab, tmp_path: Path) -> None:
    for replica in lab.replicas:
        replica.stop()
    lab.clear()
    for worker in lab.workers:
        lab.set_gpus(worker, 1)
    lab.start_controller("history")
    fleet = data()
    for queue in fleet["clusterQueues"]:
        if queue["name"] == "gpu":
            queue["manager"] = {"resourceGroups": [manager_group(queue["resourceGroups"][0])]}
            queue["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 1
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(fleet))
    kubeconfig(lab, tmp_path)

    first = follow(tmp_path)
    for name in NAMES:
        lab.submit(job(name, seconds=4))
    wait_until(
        lambda: any(row["kind"] == Kind.ENDED for row in rows(tmp_path)) if (tmp_path / "h/events").exists() else None
    )
    end(first)
    seen = {row["key"] for row in rows(tmp_path)}
    wait_until(
        lambda: sum(condition(lab.workload(name) or {}, "Finished") == "True" for name in NAMES) > len(NAMES) // 2
    )
    second = follow(tmp_path)
    wait_until(lambda: all(condition(lab.workload(name) or {}, "Finished") == "True" for name in NAMES))
    wait_until(lambda: sum(row["kind"] == Kind.ENDED and not row["copy"] for row in rows(tmp_path)) == len(NAMES))
    end(second)

    results = rows(tmp_path)
    assert max(Counter(row["key"] for row in results).values()) == 1
    assert seen < {row["key"] for row in results}
    own = [row for row in results if not row["copy"] and row["job"].startswith("Job/recorded-")]
    item = Counter((row["job"], row["kind"]) for row in own if row["kind"] != Kind.NOMINATED)
    kinds = (Kind.ARRIVED, Kind.RESERVED, Kind.ENDED)
    assert {(f"Job/{name}", str(kind)): 1 for name in NAMES for kind in kinds}.items() <= dict(item).items()
    # On a busy machine a copy ends before the manager's Kueue has looked at its admission, and never writes it.
    output = {
        f"Job/{name}": condition(lab.workload(name) or {}, "Admitted") for name in NAMES
    }  # settled: all have ended
    admitted = {job: int(status == "True") for job, status in output.items()}
    assert {job: item[job, str(Kind.ADMITTED)] for job in admitted} == admitted
    past = past_of(Store(str(tmp_path / "h")).read()).jobs
    ran = {each.arrival.job: len(each.runs) for each in past}
    # Without an admission on the manager only the copy tells of the run, which is gone where nobody recorded meanwhile.
    copies = Counter((row["workload"], row["kind"]) for row in results if row["copy"])
    name_of = {row["job"]: row["workload"] for row in own}
    told = {job: copies[name_of[job], str(Kind.ADMITTED)] and copies[name_of[job], str(Kind.ENDED)] for job in admitted}
    assert {job: ran[job] for job in admitted} == {job: int(bool(admitted[job] or told[job])) for job in admitted}
    assert {row["worker"] for row in own if row["kind"] == Kind.ADMITTED} == {EU, US}
    assert {row["region"] for row in results if row["copy"]} == set(REGIONS.values())

    result = subprocess.run(
        command(tmp_path, "replay", str(tmp_path / "fleet.yaml"), "-o", "json"),
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    [queue] = json.loads(result.stdout)["queues"]
    runs = sorted((run for entry in past for run in entry.runs), key=lambda run: run.admitted)
    lasted = [run.until(run.admitted) or 0.0 for run in runs]
    without_pauses = sorted(
        sum(seconds for other, seconds in zip(runs[:number], lasted, strict=False) if other.cluster == run.cluster)
        for number, run in enumerate(runs)
    )
    for name, share in (("p50", 0.5), ("p90", 0.9)):
        was, found_again = (queue[side][name]["middle"] for side in ("recorded", "replayed"))
        least = without_pauses[math.ceil(share * len(runs)) - 1]
        # A busy machine pauses between two runs, for longer than the replay knows of; a place makes a run's difference.
        assert min(was, least) - max(lasted) <= found_again <= max(was, least) + max(lasted)


def written(lab: ControllerLab) -> list[Json]:
    """Every row of every file that controllers wrote."""
    try:
        table = dataset.dataset(lab.history / "events", partitioning="hive").to_table()
    except FileNotFoundError as gone:
        raise AssertionError(str(gone)) from None  # There is none yet, or the files of a day have just become one.
    result: list[Json] = table.to_pylist()
    return [row for row in result if row["job"].startswith("Job/kept-") or row["copy"]]


def begun_and_ended(found: list[Json]) -> Counter[tuple[str, str]]:
    """How often each job of the manager is said to have come, and to be over."""
    kinds = (Kind.ARRIVED, Kind.ENDED, Kind.DELETED)
    return Counter((row["job"], row["kind"]) for row in found if not row["copy"] and row["kind"] in kinds)


def test_controllers_record_once_what_happened_before_between_and_after_them(lab: ControllerLab) -> None:
    for replica in lab.replicas:
        replica.stop()
    lab.clear()
    section = {"history": {"volumeClaim": "history", "every": "1s"}}
    first = lab.start_controller("writes", **section)
    names = ["kept-0", "kept-1", "kept-2"]
    for name in names[:2]:
        lab.submit(job(name, seconds=1))
    wait_until(lambda: ("Job/kept-0", str(Kind.ENDED)) in begun_and_ended(written(lab)))
    first.stop()
    lab.submit(job(names[2], seconds=1))
    wait_until(lambda: lab.workload(names[2]))
    second = lab.start_controller("goes-on", **section)
    once = Counter((f"Job/{name}", str(kind)) for name in names for kind in (Kind.ARRIVED, Kind.ENDED))
    wait_until(lambda: begun_and_ended(written(lab)).keys() == once.keys())
    second.stop()
    result = written(lab)
    assert begun_and_ended(result) == once
    assert max(Counter(row["key"] for row in result).values()) == 1
