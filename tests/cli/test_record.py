"""`kueue-fleet record` and `replay`: what they print and write, from files and from clusters."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from tests.cli.live_fleet import Fleet, serve
from tests.history.workloads import ADMITTED, ASSIGNED, EXHAUSTED, FINISHED, RESERVED, request, workload
from typer.testing import CliRunner, Result

from kueue_admission.cli.console import CommandError
from kueue_admission.history.schema import Event, Kind
from kueue_admission.history.store import Store
from kueue_fleet.cli import app

ROOT = Path(__file__).parents[2]
STACK = str(ROOT / "stacks" / "Pulumi.dws-multikueue.yaml")
JOBS = str(ROOT / "examples" / "dws-multikueue" / "recorded-jobs.csv")
MANAGER, WORKER = "manager-europe-west4", "worker-us-east4"
CLUSTERS = (MANAGER, "worker-europe-west4", WORKER, "worker-asia-southeast1")
WORKLOADS, NODES = "/apis/kueue.x-k8s.io/v1beta2/workloads", "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
REQUESTS = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"


def run(command: str, store: Path, *arguments: str, columns: str = "100") -> Result:
    return CliRunner().invoke(app, [command, STACK, "--store", str(store), *arguments], env={"COLUMNS": columns})


def refusal(done: Result) -> str:
    assert isinstance(done.exception, CommandError)
    return "\n".join(map(str, (done.exception, *done.exception.problems)))


def events(store: Path) -> list[Event]:
    return Store(str(store)).read()


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    with serve(CLUSTERS, monkeypatch, tmp_path / "kubeconfig") as fleet:
        for table in fleet.tables.values():
            table |= {WORKLOADS: [], NODES: [], NAMESPACES: [{"metadata": {"name": "kube-system", "uid": "one"}}]}
        yield fleet


def test_what_clusters_have_now_is_written_once(live: Fleet, tmp_path: Path) -> None:
    copy = workload(RESERVED, admission=ASSIGNED)
    copy["metadata"] |= {"uid": "u2", "labels": {"kueue.x-k8s.io/multikueue-origin": "m"}}
    live.tables[MANAGER][WORKLOADS] = [workload(RESERVED, admission=ASSIGNED)]
    live.tables[WORKER][WORKLOADS] = [copy]
    labels = {"cloud.google.com/gke-nodepool": "gpu"}
    node = {"metadata": {"name": "n", "uid": "n", "creationTimestamp": "2026-11-01T08:00:00Z", "labels": labels}}
    live.tables[WORKER][NODES] = [node]
    output = [run("record", tmp_path / "history", "--once").stdout for _ in range(2)]
    assert output == [f"{count} new events written to {tmp_path}/history\n" for count in (5, 0)]
    result = {(item.cluster, item.region, item.kind, item.copy) for item in events(tmp_path / "history")}
    assert result == {
        (MANAGER, "europe-west4", Kind.ARRIVED, False),
        (MANAGER, "europe-west4", Kind.RESERVED, False),
        (WORKER, "us-east4", Kind.ARRIVED, True),
        (WORKER, "us-east4", Kind.RESERVED, True),
        (WORKER, "us-east4", Kind.NODE_ADDED, False),
    }


def test_a_context_of_another_cluster_marks_nothing_as_deleted(live: Fleet, tmp_path: Path) -> None:
    live.tables[MANAGER][WORKLOADS] = [workload(RESERVED, admission=ASSIGNED)]
    assert run("record", tmp_path / "history", "--once").exit_code == 0
    before = events(tmp_path / "history")
    ours = live.tables[MANAGER]
    live.tables[MANAGER] = {**ours, WORKLOADS: [], NAMESPACES: [{"metadata": {"name": "kube-system", "uid": "two"}}]}
    for _ in range(2):
        told = refusal(run("record", tmp_path / "history", "--once"))
        assert told == (
            f"{MANAGER}: the context leads to another cluster than the one that {tmp_path}/history has of this name; "
            "correct the kubeconfig, or run without --once where it was made again"
        )
        assert events(tmp_path / "history") == before
    live.tables[MANAGER] = {**ours, WORKLOADS: []}
    assert run("record", tmp_path / "history", "--once").stdout.startswith("1 new event ")
    assert events(tmp_path / "history")[-1].kind is Kind.DELETED


def test_a_cluster_that_refuses_is_named(live: Fleet, tmp_path: Path) -> None:
    live.refused["/nodes"] = 403
    assert refusal(run("record", tmp_path / "history", "--once")).startswith(f"{MANAGER}: its Nodes cannot be read: ")


def test_stock_outs_are_recorded_where_requests_can_be_read(live: Fleet, tmp_path: Path) -> None:
    live.tables[WORKER][REQUESTS] = [request(EXHAUSTED)]
    result = run("record", tmp_path / "history", "--once")
    assert result.exit_code == 0
    assert result.stdout.startswith("1 new event ")
    [results] = events(tmp_path / "history")
    assert (results.kind, results.cluster, results.region, results.check) == (Kind.STOCK_OUT, WORKER, "us-east4", "dws")
    live.refused["/provisioningrequests"] = 403
    result = run("record", tmp_path / "history", "--once")
    assert result.exit_code == 0
    assert f"{WORKER}: its ProvisioningRequests cannot be read; stock-outs are not recorded there" in result.stderr
    live.refused["/provisioningrequests"] = 500
    told = refusal(run("record", tmp_path / "history", "--once"))
    assert told.startswith(f"{MANAGER}: its ProvisioningRequests cannot be read: ")


def test_dumps_of_several_clusters(tmp_path: Path) -> None:
    result = workload(RESERVED, ADMITTED, FINISHED, admission=ASSIGNED)
    for name in ("manager", "worker"):
        result["metadata"]["uid"] = name
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    sources = ["--from", str(tmp_path / "manager.json"), "--from", f"{WORKER}={tmp_path / 'worker.json'}"]
    assert run("record", tmp_path / "history", *sources).stdout.startswith("8 new events")
    assert {item.cluster for item in events(tmp_path / "history")} == {MANAGER, WORKER}


def test_a_csv_may_be_of_a_named_cluster(tmp_path: Path) -> None:
    run("record", tmp_path / "history", "--from", f"{WORKER}={JOBS}")
    assert {(item.cluster, item.region) for item in events(tmp_path / "history")} == {(WORKER, "us-east4")}


def test_metrics_are_rows_of_queues_and_what_they_do_not_tell_is_said(tmp_path: Path) -> None:
    metrics = str(Path(JOBS).with_name("metrics.txt"))
    result = run("record", tmp_path / "history", "--from", metrics)
    assert result.stdout.startswith("1 new event ")
    assert "metrics tell of no single job" in result.stderr
    [row] = events(tmp_path / "history")
    assert (row.cluster, row.cluster_queue) == (MANAGER, "dws")
    assert (row.counts or {})["admitted"] == 200
    assert run("record", tmp_path / "history", "--from", metrics).stdout.startswith("0 new events")
    told = refusal(run("replay", tmp_path / "history"))
    assert "has Kueue's metrics alone, which tell of no job" in told
    (tmp_path / "empty.txt").write_text("# HELP go_goroutines x\ngo_goroutines 1\n")
    told = refusal(run("record", tmp_path / "other", "--from", str(tmp_path / "empty.txt")))
    assert "has no kueue_admission_wait_time_seconds" in told


@pytest.fixture
def prometheus() -> Iterator[tuple[str, list[dict[str, str]], list[bytes]]]:
    """Its address, what it was asked, and what it answers."""
    asked: list[dict[str, str]] = []
    answers: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place, _, query = self.path.partition("?")
            asked.append({"path": place, **dict(parse_qsl(query))})
            self.send_response(200 if answers else 503)
            self.end_headers()
            self.wfile.write(answers[0] if answers else b"<html>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked, answers
        server.shutdown()
        thread.join()


def test_a_prometheus_is_asked_for_each_day_and_now(
    prometheus: tuple[str, list[dict[str, str]], list[bytes]], tmp_path: Path
) -> None:
    address, asked, answers = prometheus
    labels = {"__name__": "kueue_admission_wait_time_seconds_count", "cluster_queue": "dws"}
    result = [{"metric": labels, "values": [[1795161600, "7"], [1795248000, "9"]]}]
    answers.append(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode())
    completed = run("record", tmp_path / "history", "--from", f"{WORKER}={address}/", "--since", "30d")
    assert completed.stdout.startswith("2 new events "), completed.output
    assert "metrics tell of no single job" in completed.stderr
    rows = events(tmp_path / "history")
    assert [(row.cluster, row.region, (row.counts or {})["admitted"]) for row in rows] == [
        (WORKER, "us-east4", 7),
        (WORKER, "us-east4", 9),
    ]
    days, now = asked
    assert {days["path"], now["path"]} == {"/api/v1/query_range"}
    assert (float(days["start"]) % 86_400, days["step"], days["end"]) == (0, "86400.0", now["end"])
    assert 29 * 86_400 <= float(now["end"]) - float(days["start"]) <= 30 * 86_400
    assert now["start"] == now["end"]
    assert run("record", tmp_path / "history", "--from", address).stdout.startswith("2 new events ")
    assert len(asked) == 3, "without --since it is asked for now alone"


def test_a_prometheus_that_has_nothing_or_does_not_answer_is_named(
    prometheus: tuple[str, list[dict[str, str]], list[bytes]], tmp_path: Path
) -> None:
    address, _, answers = prometheus
    told = refusal(run("record", tmp_path / "history", "--from", address))
    assert told.startswith(f"{address}: Prometheus does not answer: 503 Service Unavailable")
    answers.append(b'{"status": "success", "data": {"resultType": "matrix", "result": []}}')
    assert "has none of Kueue's waits" in refusal(run("record", tmp_path / "history", "--from", address))
    answers[0] = b'{"status": "error", "error": "query timed out"}'
    told = refusal(run("record", tmp_path / "history", "--from", address))
    assert "does not answer as Prometheus does: query timed out" in told
    told = refusal(run("record", tmp_path / "history", "--from", f"nobody={address}"))
    assert "there is no cluster nobody" in told
    told = refusal(run("record", tmp_path / "history", "--from", "http://127.0.0.1:9"))
    assert "Connection refused" in told
    assert "add --from http://..." in refusal(run("record", tmp_path / "history", "--since", "30d"))


def test_a_file_that_is_none_of_them_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    told = refusal(run("record", tmp_path / "history", "--from", str(tmp_path / "pods.yaml")))
    assert "holds no Workloads; print them with kubectl get workloads -A -o yaml" in told


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"uid": None}, "has no uid; print it with kubectl get -o yaml"),
        ({"name": None, "creationTimestamp": None}, "Workload.metadata: has no name, creationTimestamp;"),
        ({"creationTimestamp": "yesterday"}, "creationTimestamp: yesterday is not a time after 1970"),
        ({"creationTimestamp": "0001-01-01T00:00:00Z"}, "is not a time after 1970"),
    ],
)
def test_objects_that_no_cluster_prints_so_are_refused(
    metadata: dict[str, str | None], told: str, tmp_path: Path
) -> None:
    result = workload(RESERVED, ADMITTED, admission=ASSIGNED)
    changed = {**result["metadata"], **metadata}
    result["metadata"] = {name: value for name, value in changed.items() if value is not None}
    (tmp_path / "dump.json").write_text(json.dumps(result))
    assert told in refusal(run("record", tmp_path / "history", "--from", str(tmp_path / "dump.json")))


def test_a_dump_of_a_cluster_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(json.dumps(workload(RESERVED, ADMITTED, admission=ASSIGNED)))
    told = refusal(run("record", tmp_path / "history", "--from", f"worker-us-eats4={tmp_path / 'dump.json'}"))
    assert "there is no cluster worker-us-eats4; did you mean worker-us-east4?" in told


def test_a_store_without_a_name_is_not_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["record", STACK, "--store", "", "--from", JOBS])
    assert refusal(result) == "--store: is empty; give a value"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--team", "team-vision"], "--older-than and --team: say what --prune deletes; add --prune"),
        (["--prune"], "--prune: deletes nothing without a limit"),
        (["--keep", "90d", "--once"], "--keep and --max-size: bound a store while clusters are followed"),
        (["--keep", "1h"], "--keep 1h: is less than a day; write 1d or more"),
        (["--max-size", "lots"], "--max-size lots: is not "),
        (["--max-size", "10"], "--max-size 10: is less than 16Mi"),
        (["--prune", "--older-than", "soon"], "--older-than soon: is not a valid duration"),
        (["--prune", "--team", "team-visoin"], "did you mean team-vision?"),
        (["--prune", "--team", ""], "--team: is empty; give a value, or leave the option out"),
        (["--prune", "--older-than", ""], "--older-than: is empty"),
    ],
)
def test_pruning_needs_to_know_what(arguments: list[str], told: str, tmp_path: Path) -> None:
    run("record", tmp_path, "--from", JOBS)
    assert told in refusal(run("record", tmp_path, *arguments))
    assert len(events(tmp_path)) == 950


def test_pruning_by_team_and_age(tmp_path: Path) -> None:
    run("record", tmp_path, "--from", JOBS)
    for age in ("100000d", "99999999999999999d"):
        assert run("record", tmp_path, "--prune", "--older-than", age).stdout.startswith("0 events deleted")
    assert run("record", tmp_path, "--prune", "--team", "team-vision").exit_code == 0
    assert {item.team for item in events(tmp_path)} == {"team-language"}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("history")
    run("record", result, "--from", JOBS)
    return result


def test_the_document_has_what_the_tables_show(history: Path) -> None:
    document = json.loads(run("replay", history, "--growth", "team-vision=1.5", "--seeds", "2", "-o", "json").stdout)
    (queue,) = document["queues"]
    assert (document["schemaVersion"], document["simulations"], document["changes"]) == (
        1,
        2,
        ["growth team-vision=1.5"],
    )
    assert [queue[name]["jobs"]["middle"] for name in ("recorded", "replayed")] == [190, 190]
    assert abs(queue["off"]["p90"]) < 0.1
    assert 240 < queue["then"]["jobs"]["middle"] < 270


def test_the_tables_fit_a_narrow_terminal(history: Path) -> None:
    result = CliRunner().invoke(
        app,
        ["replay", STACK, "--store", str(history), "--seeds", "1"],
        env={"COLUMNS": "60", "FORCE_COLOR": "1", "TERM": "xterm"},
    )
    assert result.exit_code == 0
    assert "p90" in result.stdout


def test_what_a_change_does_is_beside_the_replay(history: Path) -> None:
    quota = "clusterQueues[dws].resourceGroups[0].flavors[t4-dws].resources[nvidia.com/gpu].nominalQuota"
    document = json.loads(run("replay", history, "--what-if", f"{quota}=8", "--seeds", "1", "-o", "json").stdout)
    (queue,) = document["queues"]
    assert queue["then"]["p90"]["middle"] < queue["replayed"]["p90"]["middle"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--growth", "much"], "--growth much: is not a factor; write 1.2, or TEAM=1.2, at most 100"),
        (["--growth", "team-visoin=2"], "--growth team-visoin: there is no such team; did you mean team-vision?"),
        (["--queue", "gpu"], "--queue gpu: is not OLD=NAMESPACE/QUEUE; write it as gpu=vision/gpu"),
        (["--what-if", "clusterQueues[nope].stopPolicy=Hold"], "there is no nope"),
        (["--what-if", "nothing"], "is not path=value"),
        (["--from", "2027-01-01"], "has no events between --from and --to"),
    ],
)
def test_what_cannot_be_replayed_is_said(arguments: list[str], told: str, history: Path) -> None:
    assert told in refusal(run("replay", history, *arguments))


def test_a_queue_that_the_history_does_not_have_is_said(history: Path) -> None:
    result = run("replay", history, "--queue", "team-visoin/gpu=team-vision/gpu", "--seeds", "1")
    assert "--queue team-visoin/gpu: no job of this time is of it; did you mean team-vision/gpu?" in result.stderr


def test_a_replay_does_not_begin_before_the_history(history: Path) -> None:
    result = run("replay", history, "--from", "2026-01-01", "--seeds", "1")
    assert result.stdout.startswith("2026-11-09 06:00 to 2026-11-10 15:43 UTC, 1.4 days")


def test_the_fit_is_not_known_where_no_wait_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("submitted,queue,gpus,runSeconds\n2026-11-09T06:00:00Z,team-vision/gpu,1,60\n")
    run("record", tmp_path / "store", "--from", str(tmp_path / "jobs.csv"))
    result = run("replay", tmp_path / "store", "--seeds", "1")
    assert "How well the replay fits is not known" in result.stdout
    assert "0%" not in result.stdout
    assert json.loads(run("replay", tmp_path / "store", "-o", "json").stdout)["close"] is None


def test_growth_of_a_team_is_that_of_the_namespace_that_its_jobs_go_to(tmp_path: Path) -> None:
    rows = [f"2026-11-09T{hour:02}:00:00Z,account/part,1,60" for hour in range(10)]
    (tmp_path / "jobs.csv").write_text("\n".join(["submitted,queue,gpus,runSeconds", *rows, ""]))
    run("record", tmp_path / "store", "--from", str(tmp_path / "jobs.csv"))
    growth = ("--queue", "part=team-vision/gpu", "--growth", "team-vision=3")
    (queue,) = json.loads(run("replay", tmp_path / "store", *growth, "-o", "json").stdout)["queues"]
    assert queue["then"]["jobs"]["middle"] == 30


def test_a_history_whose_jobs_all_go_elsewhere_says_why(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("submitted,queue,gpus,runSeconds\n0,a/b,1,60\n")
    run("record", tmp_path, "--from", str(tmp_path / "jobs.csv"))
    told = refusal(run("replay", tmp_path))
    assert "has no job that can be replayed" in told
    assert "1 jobs of LocalQueue a/b, which is not in the fleet" in told


def test_a_folder_without_a_history(tmp_path: Path) -> None:
    assert refusal(run("replay", tmp_path)).endswith("has no history; write it with kueue-fleet record")
