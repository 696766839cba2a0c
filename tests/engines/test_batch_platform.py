"""The batch platform of four teams, its 66 jobs, and what became of each, beside what the reference platform shows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import pytest
from kubernetes import client, config

from fleet_in_rehearsal import ROOT, FleetInRehearsal, rehearsed
from job_files import jobs_in
from kueue_admission.simulate.rows import JobRow
from kueue_rehearsal.jobs.clients import ClusterClients
from kueue_rehearsal.jobs.submission import submit_jobs
from one_cluster import wait_until
from side_by_side import Told, rehearsed_rows, simulated, stories, table

STACK = "batch-platform"
CLUSTER = "batch-dev"
PATIENCE_SECONDS = 400.0
GPU = "nvidia.com/gpu"
RESERVED, ON_DEMAND, SPOT, COMPACT = "gpu-l4-reserved", "gpu-l4-ondemand", "gpu-l4-spot", "gpu-a100-compact-spot"
STEP = "kueue-fleet.dev/step"
RUN_SECONDS = {"low-priority": "60", "high-priority": "30", "compact": "5", "jobset": "5", "dws": "5"}
"""By kind of job, as simulated."""
HELD_SECONDS = "3600"
HELD = dict.fromkeys(("low-priority", "high-priority"), HELD_SECONDS)
"""In the rehearsal these run until they are let go, so that it does not matter how fast the machine is."""
RUN_SECONDS_ANNOTATION = "kueue-fleet.dev/run-seconds"
PAIRS = {"team-a": "team-a-b", "team-b": "team-a-b", "team-c": "team-c-d", "team-d": "team-c-d"}


@dataclass
class Story:
    """What became of one job."""

    name: str
    step: str
    team: str
    flavors: list[str] = field(default_factory=list)
    """Of the GPUs, one for each admission."""
    admitted: bool = False
    preempted: int = 0
    finished: bool = False
    nodes: set[str] = field(default_factory=set)
    """That its pods were on."""
    starts: set[datetime] = field(default_factory=set)
    """When its pods began to run."""

    def runs(self, at: datetime) -> bool:
        seconds = timedelta(seconds=int(RUN_SECONDS[self.step]))
        return any(start <= at < start + seconds for start in self.starts)

    def row(self) -> str:
        went = " -> ".join(self.flavors)
        return f"{self.name:<28} {self.step:<14} {went:<36} {'preempted' if self.preempted else ''}"


@dataclass
class Walk:
    """The platform while its jobs are submitted kind by kind."""

    lab: FleetInRehearsal
    stories: dict[str, Story] = field(default_factory=dict)
    at_once: dict[tuple[str, str], int] = field(default_factory=dict)
    """(kind of job, team) -> how many were admitted, before the first pod of one ended and gave its quota back."""
    begun_to_end: set[str] = field(default_factory=set)
    """Kinds of job of which a pod has ended."""
    nodes_at_first: dict[str, int] = field(default_factory=dict)
    let_go: set[str] = field(default_factory=set)
    """Kinds of job whose pods end as soon as they run."""
    submitted: dict[str, float] = field(default_factory=dict)
    """Kind of job -> when it was submitted, in seconds after the first one."""
    began: float = field(default_factory=time.monotonic)

    def submit(self, *steps: str) -> None:
        documents = [job for job in jobs_of_the_walk(RUN_SECONDS | HELD) if step_of(job) in steps]
        if not self.submitted:
            self.began = time.monotonic()
        self.submitted |= dict.fromkeys(steps, round(time.monotonic() - self.began, 1))
        for job in documents:
            metadata = self.lab.clients.create(CLUSTER, job)["metadata"]
            self.stories[metadata["name"]] = Story(metadata["name"], step_of(job), metadata["namespace"])

    def look(self) -> None:
        for workload in self.lab.objects(CLUSTER, "workloads").values():
            (owner, *_) = workload["metadata"]["ownerReferences"]
            story = self.stories[owner["name"]]
            status = workload.get("status", {})
            holds = {one["type"]: one["status"] == "True" for one in status.get("conditions", ())}
            story.finished = holds.get("Finished", False)
            evictions = (status.get("schedulingStats") or {}).get("evictions") or ()
            story.preempted = sum(one["count"] for one in evictions if one["reason"] == "Preempted")
            admitted = holds.get("Admitted", False) and not story.finished
            if "admission" in status and not holds.get("Evicted", False):
                (flavor,) = {one["flavors"][GPU] for one in status["admission"]["podSetAssignments"]}
                if story.flavors[-1:] != [flavor]:
                    story.flavors.append(flavor)
            story.admitted = admitted
        self._look_at_pods()
        for step, team in {(story.step, story.team) for story in self.stories.values()}:
            if step not in self.begun_to_end:
                now = sum(story.admitted for story in self.of(step) if story.team == team)
                self.at_once[step, team] = max(now, self.at_once.get((step, team), 0))

    def _look_at_pods(self) -> None:
        for pod in self.lab.clients.list(CLUSTER, "", "v1", "pods"):
            labels, status = pod["metadata"].get("labels", {}), pod["status"]
            if "batch.kubernetes.io/job-name" not in labels:
                continue
            story = self.stories[labels.get("jobset.sigs.k8s.io/jobset-name") or labels["batch.kubernetes.io/job-name"]]
            if "nodeName" in pod["spec"]:
                story.nodes.add(pod["spec"]["nodeName"])
            if "startTime" in status:
                story.starts.add(datetime.fromisoformat(status["startTime"]))
            if status["phase"] == "Succeeded":
                self.begun_to_end.add(story.step)
            if status["phase"] == "Running" and story.step in self.let_go:
                self.end(pod["metadata"], HELD[story.step])

    def end(self, pod: dict[str, Any], held: str) -> None:
        """Let a pod end that is held for so many seconds."""
        if pod["annotations"][RUN_SECONDS_ANNOTATION] == held:
            body = {"metadata": {"annotations": {RUN_SECONDS_ANNOTATION: "1"}}}
            try:
                self.api.patch_namespaced_pod(pod["name"], pod["namespace"], body)
            except client.ApiException as error:
                # That of a preempted job may be gone since it was listed.
                if error.status != 404:
                    raise

    def until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.look()
            if happened():
                return
            assert time.monotonic() < deadline, self.table()
            time.sleep(0.5)

    @cached_property
    def api(self) -> client.CoreV1Api:
        result = config.new_client_from_config(str(self.lab.session.paths.kubeconfig), context=CLUSTER)  # type: ignore[no-untyped-call]
        return client.CoreV1Api(result)

    def nodes(self) -> dict[str, int]:
        listed: Any = self.api.list_node(label_selector="kueue-fleet.dev/simulated=true")
        return dict(Counter(node.metadata.labels["cloud.google.com/gke-nodepool"] for node in listed.items))

    def of(self, *steps: str) -> list[Story]:
        return [story for story in self.stories.values() if story.step in steps]

    def admitted(self, step: str, teams: Iterable[str]) -> int:
        return sum(self.at_once[step, team] for team in teams)

    def running(self, step: str, team: str) -> int:
        """How many jobs of this kind of the team had running pods at once, at most."""
        here = [story for story in self.of(step) if story.team == team]
        return max(sum(other.runs(start) for other in here) for story in here for start in story.starts)

    def table(self) -> str:
        return "\n".join(story.row() for story in self.stories.values())


def jobs_of_the_walk(run_seconds: Mapping[str, str] = RUN_SECONDS) -> list[dict[str, Any]]:
    documents = jobs_in(ROOT / "examples" / STACK / "jobs.yaml")
    for job in documents:
        run_for(job, run_seconds[step_of(job)])
    return documents


def step_of(job: dict[str, Any]) -> str:
    return str(job["metadata"]["labels"][STEP])


def run_for(part: Any, seconds: str) -> None:
    if isinstance(part, dict):
        if RUN_SECONDS_ANNOTATION in part:
            part[RUN_SECONDS_ANNOTATION] = seconds
        parts: Iterable[Any] = part.values()
    else:
        parts = part if isinstance(part, list) else ()
    for item in parts:
        run_for(item, seconds)


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """The walk-through: low priority, high priority once the low ones run, and then all others."""
    settings = {"nodes": {"provisionSeconds": 0.5, "idleSeconds": 5}, "dws": {"low": 16, "high": 16}}
    with rehearsed(STACK, tmp_path_factory, **settings) as lab:
        result = Walk(lab)
        result.nodes_at_first = result.nodes()
        result.submit("low-priority")
        result.until(lambda: sum(story.admitted for story in result.stories.values()) == 14)
        result.submit("high-priority")
        result.until(lambda: sum(story.admitted for story in result.of("high-priority")) == 6)
        result.submit("compact", "jobset", "dws")
        result.let_go |= HELD.keys()
        result.until(lambda: all(story.finished for story in result.stories.values()))
        print(result.table())
        yield result


def compact_nodes(walk: Walk, team: str, number: int) -> int:
    nodes = walk.stories[f"{team}-compact-job-{number}"].nodes
    assert all(name.startswith(f"gke-{CLUSTER}-{team}-{number}-compact-") for name in nodes), nodes
    return len(nodes)


@dataclass(frozen=True)
class Row:
    """One figure of the walk-through: what the reference platform shows, what Kueue does here, and why they differ."""

    figure: str
    reference: Any
    here: Callable[[Walk], Any]
    expected: Any
    why: str = ""


TWICE = (
    "the reference gives its queues 16 GPUs on reserved nodes that have 8, so that Kueue admits jobs whose pods then "
    "find no node; here the queues have the 8 that there are"
)
PAIR_OF_TEAMS = (("team-a", "team-b"), ("team-c", "team-d"))
ROWS = [
    Row(
        "nodes before the first job",
        {"system": 6, "reserved-np": 4},
        lambda walk: walk.nodes_at_first,
        {"system": 6, "reserved-np": 4},
    ),
    Row("low-priority jobs admitted at once", 16, lambda walk: walk.admitted("low-priority", PAIRS), 14, TWICE),
    Row(
        "low-priority jobs that begin on reserved nodes",
        2,
        lambda walk: sum(story.flavors[0] == RESERVED for story in walk.of("low-priority") if story.preempted),
        2,
    ),
    Row(
        "high-priority jobs admitted at once, by pair of teams",
        [4, 4],
        lambda walk: [walk.admitted("high-priority", pair) for pair in PAIR_OF_TEAMS],
        [3, 3],
        TWICE,
    ),
    Row(
        "where preempted low-priority jobs go next",
        {SPOT},
        lambda walk: {story.flavors[1] for story in walk.of("low-priority") if story.preempted},
        {SPOT},
    ),
    Row(
        "flavors of high-priority jobs",
        {RESERVED, ON_DEMAND},
        lambda walk: {flavor for story in walk.of("high-priority") for flavor in story.flavors},
        {RESERVED, ON_DEMAND},
    ),
    Row(
        "compact jobs of a team that run at once",
        {1},
        lambda walk: {walk.running("compact", team) for team in PAIRS},
        {1},
    ),
    Row(
        "nodes that a compact job has, of a pool of its own",
        2,
        # On a machine that is very busy, a look can miss a pod and its node.
        lambda walk: max(compact_nodes(walk, team, number) for team in PAIRS for number in range(4)),
        2,
    ),
    Row(
        "flavors of JobSets",
        "of the low-priority queues",
        lambda walk: {flavor for story in walk.of("jobset") for flavor in story.flavors} <= {RESERVED, SPOT},
        True,
        "the reference only says which queue they go through; its flavors are reserved and Spot",
    ),
    Row(
        "jobs that DWS serves, and on which nodes",
        {"dws-a100", "dws-h100"},
        lambda walk: {flavor for story in walk.of("dws") for flavor in story.flavors},
        {"dws-a100", "dws-h100"},
    ),
    Row("jobs that finish", 66, lambda walk: sum(story.finished for story in walk.stories.values()), 66),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.figure for row in ROWS])
def test_each_figure_of_the_walk_through(walk: Walk, row: Row) -> None:
    result = row.here(walk)
    print(f"{row.figure} | {row.reference} | {result} | {row.why}")
    assert result == row.expected, walk.table()
    assert (row.reference != row.expected) == bool(row.why)


def test_one_low_priority_job_of_each_pair_of_teams_is_preempted_and_nobody_else(walk: Walk) -> None:
    preempted = [story for story in walk.stories.values() if story.preempted]
    assert {story.step for story in preempted} <= {"low-priority", "jobset"}, walk.table()
    low = [story for story in preempted if story.step == "low-priority"]
    assert sorted(PAIRS[story.team] for story in low) == ["team-a-b", "team-c-d"], walk.table()
    assert all(story.flavors == [RESERVED, SPOT] for story in low), walk.table()


def test_each_kind_of_job_runs_on_the_flavors_of_its_queue(walk: Walk) -> None:
    flavors = {
        "low-priority": {RESERVED, SPOT},
        "high-priority": {RESERVED, ON_DEMAND},
        "compact": {COMPACT},
        "jobset": {RESERVED, SPOT},
        "dws": {"dws-a100", "dws-h100"},
    }
    for story in walk.stories.values():
        assert story.flavors, walk.table()
        assert set(story.flavors) <= flavors[story.step], walk.table()


def test_the_simulation_says_the_same_of_each_job(walk: Walk) -> None:
    """Side by side, by kind of job and pair of teams: of two jobs that come at once, either may be the first.

    A high-priority job or a JobSet that waits gets the flavor of whichever pods end first, so that of those kinds only
    the flavors are compared.
    """
    simulation = simulated(walk.lab.fleet, jobs_of_the_walk(), None, steps=walk.submitted)
    rehearsal = [
        row
        for story in walk.stories.values()
        for row in rehearsed_rows(
            f"{story.team}/{story.name}", CLUSTER, [[flavor] for flavor in story.flavors], story.preempted
        )
    ]
    both = table(simulation, rehearsal)
    print(both)
    one, two = by_kind(walk, simulation), by_kind(walk, rehearsal)
    assert one.keys() == two.keys(), both
    for kind, result in one.items():
        if kind[0] in ("low-priority", "compact", "dws"):
            assert result == two[kind], both
        elif kind[0] == "high-priority":
            assert set(result) == set(two[kind]), both
        else:
            assert set(two[kind]) <= {((CLUSTER, (flavor,), False),) for flavor in (RESERVED, SPOT)}, both


def by_kind(walk: Walk, rows: Iterable[JobRow]) -> dict[tuple[str, str], Counter[Told]]:
    """How many jobs of each kind and pair of teams went where."""
    result: dict[tuple[str, str], Counter[Told]] = {}
    for job, told in stories(rows).items():
        team, _, name = job.partition("/")
        result.setdefault((walk.stories[name].step, PAIRS[team]), Counter())[told] += 1
    return result


def submit_again(walk: Walk, documents: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """A job, and what it uses, under a name that a job of the walk-through has too; so many pods of it end well.

    They are returned as they were while they ran: their nodes, and they with them, go soon after.
    """
    clients, jobs = walk.lab.clients, client.BatchV1Api(walk.api.api_client)
    *_, job = documents
    run_for(job, HELD_SECONDS)
    name = job["metadata"]["name"]
    jobs.delete_namespaced_job(name, "team-a", propagation_policy="Background")
    wait_until(lambda: not [item for item in clients.list(CLUSTER, "batch", "v1", "jobs") if name_of(item) == name])
    submit_jobs(clients, CLUSTER, documents)

    def running() -> list[dict[str, Any]] | None:
        result = [pod for pod in clients.list(CLUSTER, "", "v1", "pods") if pod["status"]["phase"] == "Running"]
        result = [pod for pod in result if pod["metadata"].get("labels", {}).get("job-name") == name]
        return result if len(result) == count else None

    pods = wait_until(running)
    for pod in pods:
        walk.end(pod["metadata"], HELD_SECONDS)
    wait_until(lambda: pods_that_ended_well(clients, name) == count)
    return pods


def test_a_network_is_trained_on_mnist_with_its_service_and_program(walk: Walk) -> None:
    submit_again(walk, jobs_in(ROOT / "examples" / STACK / "mnist.yaml"), 2)
    program: Any = walk.api.read_namespaced_config_map("team-a-low-priority-config-0", "team-a")
    assert "datasets.MNIST" in program.data["mnist.py"]
    service: Any = walk.api.read_namespaced_service("team-a-low-priority-svc-0", "team-a")
    assert service.spec.selector == {"job-name": "team-a-low-priority-job-0"}


def test_gemma_is_fine_tuned_with_a_token_on_nodes_of_dws(walk: Walk) -> None:
    [pod] = submit_again(walk, jobs_in(ROOT / "examples" / STACK / "finetune.yaml"), 1)
    assert pod["spec"]["serviceAccountName"] == "team-a-ksa"
    assert "dws-a100" in pod["spec"]["nodeName"]


def name_of(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["name"])


def pods_that_ended_well(clients: ClusterClients, name: str) -> int:
    """Of the job of that name."""
    [result] = [item for item in clients.list(CLUSTER, "batch", "v1", "jobs") if name_of(item) == name]
    return int(result.get("status", {}).get("succeeded", 0))


def test_the_platform_shrinks_to_what_it_was(walk: Walk) -> None:
    walk.until(lambda: walk.nodes() == walk.nodes_at_first)
