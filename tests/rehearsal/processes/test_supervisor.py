"""The supervisor as a process of its own: what it promises, and what becomes of its children."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.rehearsal.conftest import SupervisorStarter

from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.processes.supervisor import main
from kueue_rehearsal.processes.supervisor_client import (
    RunningSupervisor,
    SupervisorClient,
    SupervisorError,
    SupervisorGoneError,
    start_supervisor,
)
from process_ends import gone

DEADLINE_SECONDS = 30.0
WORKER: dict[str, Any] = {"project": "p", "location": "us-east4", "autopilot": True}


def until(condition: Callable[[], object], what: str = "") -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what or "waited in vain"
        time.sleep(0.01)


def pids(client: SupervisorClient) -> dict[str, int]:
    return {f"{row['cluster']}/{row['name']}": row["pid"] for row in client.processes()}


def state_of(client: SupervisorClient, cluster: str, process: str) -> dict[str, Any]:
    result: dict[str, Any] = client.get_cluster(cluster)["processes"][process]
    return result


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSupervisor]:
    """One with the cluster `worker`, for tests that ask and change nothing."""
    starter = SupervisorStarter(tmp_path_factory.mktemp("asked"))
    running = starter()
    running.client.put_cluster("worker", **WORKER)
    yield running
    starter.end()


# What it is to its owner.


def test_only_the_owner_may_talk_to_it(asked: RunningSupervisor) -> None:
    paths = asked.paths
    assert stat.S_IMODE(paths.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(paths.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(paths.admin_token.stat().st_mode) == 0o600
    assert paths.lock.read_text().strip() == str(asked.process.pid)


def test_nothing_listens_off_loopback(asked: RunningSupervisor) -> None:
    listening = [
        connection.laddr.ip
        for pid in pids(asked.client).values()
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 2
    assert all(address.startswith("127.") for address in listening)


def test_a_second_supervisor_is_refused_and_the_first_stays(
    asked: RunningSupervisor, supervisor_starter: SupervisorStarter
) -> None:
    runs = rf"a rehearsal runs here already \(process {asked.process.pid}\); run `rehearse down`"
    with pytest.raises(RehearsalError, match=runs):
        start_supervisor(asked.paths, services="none", environ=supervisor_starter.environ)
    assert asked.client.health()["status"] == "ok"


def test_what_a_killed_supervisor_left_is_no_obstacle(supervisor_starter: SupervisorStarter) -> None:
    first = supervisor_starter()
    first.client.put_cluster("worker", **WORKER)
    first.process.kill()
    first.process.wait()
    assert supervisor_starter.paths.socket.exists()
    second = supervisor_starter()
    assert second.client.health()["pid"] == second.process.pid


def test_all_children_die_when_it_is_killed(supervisor_starter: SupervisorStarter) -> None:
    running = supervisor_starter(services="tests.rehearsal.fake_services:working")
    running.client.put_cluster("worker", **WORKER)
    until(lambda: "worker/sleeper" in pids(running.client))
    children = [pid for name, pid in pids(running.client).items() if name != "None/supervisor"]
    assert len(children) == 6
    running.process.kill()
    running.process.wait()
    until(lambda: all(map(gone, children)), "children have outlived a killed supervisor")


PARENT = """
import sys, time
from pathlib import Path
from kueue_rehearsal.paths import RehearsalPaths
from kueue_rehearsal.processes.supervisor_client import start_supervisor
running = start_supervisor(RehearsalPaths(Path(sys.argv[1])), services="none")
running.client.put_cluster("worker", project="p", location="l", autopilot=False)
if sys.argv[2] == "keep":
    running.client.keep()
print(*(row["pid"] for row in running.client.processes()), flush=True)
time.sleep(600)
"""


def start_parent(starter: SupervisorStarter, mode: str) -> tuple[subprocess.Popen[str], list[int]]:
    argv = [sys.executable, "-c", PARENT, str(starter.paths.root), mode]
    parent = subprocess.Popen(argv, env=starter.environ, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    result = [int(word) for word in parent.stdout.readline().split()]
    assert len(result) == 6
    return parent, result


def test_it_ends_when_its_parent_is_killed(supervisor_starter: SupervisorStarter) -> None:
    parent, processes = start_parent(supervisor_starter, "end")
    with parent:
        parent.kill()
    until(lambda: all(map(gone, processes)), "processes have outlived the parent")
    paths = supervisor_starter.paths
    assert not paths.socket.exists()
    assert not paths.pki.exists()
    assert not paths.clusters_file.exists()
    assert (paths.cluster("worker") / "kube-apiserver.log").exists(), "the logs tell what happened"


def test_a_kept_one_survives_its_parent(supervisor_starter: SupervisorStarter) -> None:
    parent, processes = start_parent(supervisor_starter, "keep")
    with parent:
        parent.kill()
    client = SupervisorClient(supervisor_starter.paths.socket)
    assert client.get_cluster("worker")["state"] == "running"
    assert not any(map(gone, processes))
    client.shutdown()
    until(lambda: all(map(gone, processes)), "processes have outlived the shutdown")
    assert sorted(path.name for path in supervisor_starter.paths.root.iterdir()) == [
        "supervisor.lock",
        "supervisor.log",
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(supervisor_starter: SupervisorStarter, number: signal.Signals) -> None:
    running = supervisor_starter()
    running.client.put_cluster("worker", **WORKER)
    processes = list(pids(running.client).values())
    running.process.send_signal(number)
    assert running.process.wait(DEADLINE_SECONDS) == 0
    assert all(map(gone, processes))
    assert not supervisor_starter.paths.pki.exists()


def test_leaving_it_takes_no_promise_from_stop(supervisor_starter: SupervisorStarter) -> None:
    running = supervisor_starter()
    running.leave()
    time.sleep(0.3)
    assert running.client.health()["keep"] is True
    running.stop()
    assert running.process.returncode == 0


def test_a_file_as_standard_input_is_refused(supervisor_starter: SupervisorStarter) -> None:
    argv = [
        sys.executable,
        "-m",
        "kueue_rehearsal.processes.supervisor",
        "--state",
        str(supervisor_starter.paths.root),
    ]
    result = subprocess.run(
        [*argv, "--services", "none"],
        env=supervisor_starter.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert result.returncode == 1
    assert "standard input is a file" in result.stderr
    assert "--keep" in result.stderr


# Clusters.


def test_put_makes_a_cluster_and_is_idempotent(asked: RunningSupervisor) -> None:
    client = asked.client
    result = client.put_cluster("worker", **WORKER)
    assert result["endpoint"].startswith("127.0.0.1:")
    assert result["version"] == "1.36.3-gke.0"
    assert result["dnsEndpoint"] == result["endpoint"]
    assert result["selfLink"] == "https://container.googleapis.com/v1/projects/p/locations/us-east4/clusters/worker"
    before = pids(client)
    assert client.put_cluster("worker", **WORKER) == result
    assert pids(client) == before
    assert [cluster["state"] for cluster in client.clusters()] == ["running"]


def test_clusters_start_side_by_side_and_once_each(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter().client
    names = ["one", "two", "one", "two"]
    with ThreadPoolExecutor() as pool:
        result = list(pool.map(lambda name: client.put_cluster(name, **WORKER), names))
    assert result[0] == result[2]
    assert result[1] == result[3]
    assert result[0]["endpoint"] != result[1]["endpoint"]
    assert len(pids(client)) == 2 + 2 * 4


def test_another_cluster_of_the_same_name_is_a_conflict(asked: RunningSupervisor) -> None:
    client = asked.client
    with pytest.raises(
        SupervisorError, match=r"location is 'us-east4', requested is 'us-west1'.*delete it first"
    ) as error:
        client.put_cluster("worker", **{**WORKER, "location": "us-west1"})
    assert error.value.status == 409
    assert client.get_cluster("worker")["location"] == "us-east4"


@pytest.mark.parametrize("name", ["Worker", "1worker", "worker-", "w" * 41, "a/b"])
def test_names_that_gke_would_refuse(asked: RunningSupervisor, name: str) -> None:
    with pytest.raises(SupervisorError, match="not a GKE cluster name; use up to 40") as error:
        asked.client.put_cluster(name, **WORKER)
    assert error.value.status == 400


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({**WORKER, "project": None}, "project: must be a text"),
        ({**WORKER, "location": None}, "location: must be a text"),
        ({**WORKER, "autopilot": "yes"}, "autopilot: must be true or false, is 'yes'"),
    ],
)
def test_wrong_parameters(asked: RunningSupervisor, body: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SupervisorError, match=sentence) as error:
        asked.client.put_cluster("another", **body)
    assert error.value.status == 400


def test_what_does_not_exist_is_a_404(asked: RunningSupervisor) -> None:
    client = asked.client
    for ask in (client.get_cluster, client.delete_cluster):
        with pytest.raises(SupervisorError, match="cluster nobody: does not exist in this rehearsal") as error:
            ask("nobody")
        assert error.value.status == 404
    with pytest.raises(SupervisorError, match="GET /nonsense: Not Found"):
        client._request("GET", "/nonsense")
    with pytest.raises(SupervisorError, match="process nobody: is not running; these are: etcd"):
        client.kill(None, "nobody")


def test_delete_leaves_nothing_of_the_cluster(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter().client
    client.put_cluster("worker", **WORKER)
    client.put_cluster("worker-b", **WORKER)
    mine = [pid for name, pid in pids(client).items() if name.startswith("worker/")]
    client.delete_cluster("worker")
    assert all(map(gone, mine))
    assert not supervisor_starter.paths.cluster("worker").exists()
    assert supervisor_starter.engines.deleted_ranges() == [("/clusters/worker/", "/clusters/worker0")]
    assert [cluster["name"] for cluster in client.clusters()] == ["worker-b"]
    assert client.put_cluster("worker", **{**WORKER, "location": "us-west1"})["location"] == "us-west1"


# Faults.


def test_a_controller_that_dies_is_started_again(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter().client
    client.put_cluster("worker", **WORKER)
    killed = client.kill("worker", "kube-controller-manager")
    until(lambda: state_of(client, "worker", "kube-controller-manager")["restarts"] == 1)
    until(lambda: state_of(client, "worker", "kube-controller-manager")["state"] == "running")
    assert state_of(client, "worker", "kube-controller-manager")["pid"] != killed
    log = supervisor_starter.paths.supervisor_log.read_text()
    assert "worker: kube-controller-manager was killed by SIGKILL; it is started again in 1 s" in log


def test_a_dead_api_server_is_reported_and_mended_on_its_port_by_the_next_put(
    supervisor_starter: SupervisorStarter,
) -> None:
    client = supervisor_starter().client
    result = client.put_cluster("worker", **WORKER)
    client.kill("worker", "kube-apiserver")
    until(lambda: client.get_cluster("worker")["state"] == "failed")
    assert "its API server was killed by SIGKILL; see" in client.get_cluster("worker")["message"]
    assert client.health()["failedClusters"] == ["worker"]
    time.sleep(1.5)
    assert "worker/kube-apiserver" not in pids(client), "it was started again without a word"
    assert client.put_cluster("worker", **WORKER) == result
    assert client.get_cluster("worker")["state"] == "running"


def test_a_dead_etcd_is_reported_and_mended_by_the_next_put(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter().client
    client.put_cluster("worker", **WORKER)
    client.kill(None, "etcd")
    until(lambda: client.health()["status"] == "failed")
    assert "etcd has died" in client.health()["message"]
    client.put_cluster("worker", **WORKER)
    assert client.health()["status"] == "ok"
    assert "None/etcd" in pids(client)


def test_an_unknown_signal_is_refused(asked: RunningSupervisor) -> None:
    with pytest.raises(SupervisorError, match="'SIGNONSENSE' is not a signal; use a name such as SIGKILL"):
        asked.client.kill(None, "etcd", "SIGNONSENSE")


def test_a_cluster_that_cannot_start_leaves_only_its_logs(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter().client
    supervisor_starter.engines.misbehaves("kube-apiserver", "exit unknown flag: --nonsense")
    with pytest.raises(
        SupervisorError, match=r"its API server ended with exit code 1 \(unknown flag: --nonsense\); see"
    ):
        client.put_cluster("worker", **WORKER)
    assert client.clusters() == []
    assert set(pids(client)) == {"None/supervisor", "None/etcd"}
    assert (supervisor_starter.paths.cluster("worker") / "kube-apiserver.log").exists()
    supervisor_starter.engines.misbehaves("kube-apiserver", "")
    client.put_cluster("worker", **WORKER)


def test_a_port_lost_in_the_last_moment_is_replaced(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter().client
    supervisor_starter.engines.misbehaves("kube-apiserver", "once taken")
    result = client.put_cluster("worker", **WORKER)
    log = (supervisor_starter.paths.cluster("worker") / "kube-apiserver.log").read_text()
    assert "address already in use" in log
    assert result["endpoint"].rpartition(":")[2] not in log.split("address already in use")[0]


def test_ports_lost_again_and_again_are_an_error(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter().client
    supervisor_starter.engines.misbehaves("kube-apiserver", "taken")
    with pytest.raises(SupervisorError, match="was taken by another program while it started; try again"):
        client.put_cluster("worker", **WORKER)
    assert client.clusters() == []


def test_an_etcd_that_cannot_start(supervisor_starter: SupervisorStarter) -> None:
    supervisor_starter.engines.misbehaves("etcd", "exit bad data dir")
    with pytest.raises(RehearsalError, match=r"etcd ended with exit code 1 \(bad data dir\); see .*etcd\.log"):
        supervisor_starter()
    assert not supervisor_starter.paths.pki.exists()


def test_shutdown_does_not_wait_for_a_cluster_that_starts(supervisor_starter: SupervisorStarter) -> None:
    running = supervisor_starter()
    supervisor_starter.engines.misbehaves("kube-apiserver", "slow 600")
    with ThreadPoolExecutor() as pool:
        put = pool.submit(running.client.put_cluster, "worker", **WORKER)
        until(lambda: "worker/kube-apiserver" in pids(running.client))
        processes = list(pids(running.client).values())
        running.stop()
        assert isinstance(put.exception(DEADLINE_SECONDS), RehearsalError)
    assert all(map(gone, processes))


def test_missing_engines_are_named_with_the_command_that_builds_them(supervisor_starter: SupervisorStarter) -> None:
    (supervisor_starter.engines.folder / "kube-scheduler").unlink()
    with pytest.raises(RehearsalError, match=r"kube-scheduler: not found .*python -m kueue_rehearsal\.engines"):
        supervisor_starter()


# Starting again.


def restarted(starter: SupervisorStarter, first: RunningSupervisor) -> SupervisorClient:
    first.client.keep()
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(DEADLINE_SECONDS) == 0
    return starter(keep=True).client


def test_a_kept_rehearsal_that_was_ended_goes_on_as_it_was(supervisor_starter: SupervisorStarter) -> None:
    first = supervisor_starter()
    result = [first.client.put_cluster(name, **WORKER) for name in ("one", "two")]
    token = supervisor_starter.paths.admin_token.read_text()
    client = restarted(supervisor_starter, first)
    until(lambda: all(cluster["state"] == "running" for cluster in client.clusters()))
    assert [client.put_cluster(name, **WORKER) for name in ("one", "two")] == result
    assert supervisor_starter.paths.admin_token.read_text() == token
    assert supervisor_starter.engines.deleted_ranges() == []


def test_a_port_that_was_taken_meanwhile_is_named(supervisor_starter: SupervisorStarter) -> None:
    first = supervisor_starter()
    port = int(first.client.put_cluster("worker", **WORKER)["endpoint"].rpartition(":")[2])
    first.client.keep()
    first.process.send_signal(signal.SIGTERM)
    first.process.wait(DEADLINE_SECONDS)
    with socket.create_server(("127.0.0.1", port)):
        client = supervisor_starter(keep=True).client
        until(lambda: client.get_cluster("worker")["state"] == "failed")
        message = client.get_cluster("worker")["message"]
    assert f"port {port} of the API server of cluster worker is taken by another program; end that program" in message
    assert client.put_cluster("worker", **WORKER)["endpoint"] == f"127.0.0.1:{port}"


def test_a_kept_rehearsal_that_cannot_be_opened_is_not_removed(supervisor_starter: SupervisorStarter) -> None:
    first = supervisor_starter()
    result = first.client.put_cluster("worker", **WORKER)
    restarted(supervisor_starter, first).keep()
    second = SupervisorClient(supervisor_starter.paths.socket).health()["pid"]
    os.kill(second, signal.SIGTERM)
    until(lambda: gone(second))
    supervisor_starter.engines.misbehaves("etcd", "once exit not now")
    with pytest.raises(RehearsalError, match="not now"):
        supervisor_starter()
    client = supervisor_starter().client
    assert client.put_cluster("worker", **WORKER) == result


def test_a_damaged_record_is_one_sentence(supervisor_starter: SupervisorStarter) -> None:
    supervisor_starter.paths.root.mkdir(mode=0o700)
    supervisor_starter.paths.clusters_file.write_text('{"format": 1, "clusters": 3}')
    with pytest.raises(
        RehearsalError, match=r"clusters\.json: the record of the rehearsal cannot be read .*rehearse down"
    ):
        supervisor_starter()


# Services.


def test_services_prepare_run_and_own_their_processes(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter(services="tests.rehearsal.fake_services:working").client
    result = client.put_cluster("worker", **WORKER)
    folder = supervisor_starter.paths.cluster("worker")
    assert (folder / "prepared.txt").read_text() == f"https://{result['endpoint']} True"
    until(lambda: "worker/sleeper" in pids(client))
    assert client.get_cluster("worker")["services"] == {"Worker": "running"}
    sleeper = pids(client)["worker/sleeper"]
    client.put_inputs("worker", {"nodeLocations": ["europe-west4-a"]})
    assert client.inputs("worker")["cluster"] == {"nodeLocations": ["europe-west4-a"]}
    client.put_reservation("europe-west4-a", "mine", {"specificReservation": {"count": 4}})
    pool = client.put_node_pool("worker", "l4", {"size": 3})
    assert pool == {"name": "l4", "size": 3, "reservations": ["mine"]}
    client.delete_reservation("europe-west4-a", "mine")
    assert client.put_node_pool("worker", "l4", {})["reservations"] == []
    assert client.reclaim_spot("worker", 2, "l4") == ["l4-0", "l4-1"]
    assert client.refused_pods() == [{"cluster": "worker", "kind": "Deployment", "name": "web"}]
    assert client.late_pods() == ["worker: shop/web: container main waits"]
    client.delete_node_pool("worker", "l4")
    assert (folder / "deleted-l4").exists()
    client.delete_cluster("worker")
    assert gone(sleeper)


def test_a_service_that_ends_is_loud(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter(services="tests.rehearsal.fake_services:failing").client
    client.put_cluster("worker", **WORKER)
    until(lambda: "running" not in client.get_cluster("worker")["services"].values())
    assert client.get_cluster("worker")["services"] == {
        "Crashing": "failed: ValueError: out of luck",
        "Returning": "failed: it returned",
    }
    log = supervisor_starter.paths.supervisor_log.read_text()
    assert "worker: service Crashing has failed" in log
    assert "Traceback" in log
    assert "worker: service Returning has returned" in log


def test_a_cluster_that_cannot_be_prepared_is_not_up(supervisor_starter: SupervisorStarter) -> None:
    client = supervisor_starter(services="tests.rehearsal.fake_services:unprepared").client
    with pytest.raises(SupervisorError, match="LookupError: no such thing"):
        client.put_cluster("worker", **WORKER)
    assert client.clusters() == []


def test_node_pools_without_a_service_for_them(asked: RunningSupervisor) -> None:
    client = asked.client
    client.put_inputs("worker", {})
    assert client.refused_pods() == []
    with pytest.raises(SupervisorError, match="cluster worker: its nodes are not simulated here") as error:
        client.put_node_pool("worker", "l4", {})
    assert error.value.status == 400


@pytest.mark.parametrize("services", ["nowhere:x", "kueue_fleet:nothing"])
def test_services_that_are_not_there(supervisor_starter: SupervisorStarter, services: str) -> None:
    with pytest.raises(RehearsalError, match=f"--services {services}: .*give it as module:function"):
        supervisor_starter(services=services)


# Numbers, and the state left behind.


def test_processes_are_listed_with_what_they_use(asked: RunningSupervisor) -> None:
    client = asked.client
    rows = client.processes()
    assert [(row["cluster"], row["name"]) for row in rows] == [
        (None, "supervisor"),
        (None, "etcd"),
        ("worker", "kube-apiserver"),
        ("worker", "kube-controller-manager"),
        ("worker", "kube-scheduler"),
        ("worker", "kwok"),
    ]
    assert all(row["cpuSeconds"] >= 0 for row in rows)
    # A program that has just been started is still being read from the disk.
    until(lambda: all(row["rssBytes"] > 1_000_000 for row in client.processes()))


@pytest.mark.parametrize("keep_logs", [True, False])
def test_shutdown_removes_all_state(supervisor_starter: SupervisorStarter, keep_logs: bool) -> None:
    running = supervisor_starter()
    running.client.put_cluster("worker", **WORKER)
    running.stop(keep_logs=keep_logs)
    left = {str(path.relative_to(running.paths.root)) for path in running.paths.root.rglob("*") if path.is_file()}
    programs = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
    logs = {f"clusters/worker/{name}.log" for name in programs} | {"etcd/etcd.log"}
    assert left == {"supervisor.lock", "supervisor.log"} | (logs if keep_logs else set())
    with pytest.raises(SupervisorGoneError):
        running.client.health()


def test_no_secret_is_logged(supervisor_starter: SupervisorStarter) -> None:
    running = supervisor_starter(services="tests.rehearsal.fake_services:failing")
    running.client.put_cluster("worker", **WORKER)
    token = running.paths.admin_token.read_text()
    running.stop(keep_logs=True)
    logs = list(running.paths.root.rglob("*.log"))
    assert len(logs) >= 5
    assert not any(token in path.read_text() for path in logs)


def test_the_command_says_why_it_does_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path / ("d" * 100)
    assert main(["--state", str(deep), "--keep"]) == 1
    assert "cannot continue: " in capsys.readouterr().err
    assert not deep.exists()


def test_descriptors_of_the_supervisor_are_not_inherited(asked: RunningSupervisor) -> None:
    lock = os.stat(asked.paths.lock)

    def is_lock(path: Path) -> bool:
        try:
            return os.path.samestat(path.stat(), lock)
        except FileNotFoundError:
            # Closed meanwhile.
            return False

    for name, pid in pids(asked.client).items():
        held = [path for path in Path(f"/proc/{pid}/fd").iterdir() if is_lock(path)]
        assert len(held) == (1 if name == "None/supervisor" else 0), name
