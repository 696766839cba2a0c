"""Jobs that are submitted again and again while something happens to a rehearsal: what became of each."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kueue_admission.api.resources import WORKLOADS
from kueue_admission.cli import console
from kueue_admission.cli.tables import Column, Table
from kueue_fleet.cli.progress import line
from kueue_fleet.cli.rehearsed_jobs import JOBS_TIMEOUT_SECONDS
from kueue_fleet.diff.upgrade import LOOK_AGAIN

if TYPE_CHECKING:
    from kueue_admission.simulate.records import Record
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.fleet_simulation.recorded import Recorder
    from kueue_rehearsal.jobs.clients import ClusterClients
    from kueue_rehearsal.jobs.stream import JobStream
    from kueue_rehearsal.jobs.views import JobView
    from kueue_rehearsal.jobs.witness import Witnesses
    from kueue_rehearsal.session import Session

JOB_SECONDS: Final = 5.0
"""Between two jobs that are submitted meanwhile."""
LOOK_SECONDS: Final = 0.5
"""Between two looks at them."""
_LEFT_SECONDS: Final = 30.0
"""How long a job has quota and no nominated cluster before Kueue is made to look at it, and look again."""
_SHOWN: Final = 10
"""Jobs of which there is a row: those that waited longest."""


class Before(NamedTuple):
    """The jobs that end well while nothing happens: only these can say something about what happens then."""

    jobs: list[Mapping[str, Any]]
    longest_wait: float
    """Of them, in seconds."""


def run_before(session: Session, fleet: FleetSpec, documents: Sequence[Mapping[str, Any]], what: str) -> Before:
    """Run jobs once. Raises CommandError where none ends well before `what`."""
    from kueue_rehearsal.jobs.kinds import JOB_KINDS
    from kueue_rehearsal.jobs.views import JobState

    jobs = [document for document in documents if document["kind"] in JOB_KINDS]
    views = list(session.run_jobs(fleet, documents, JOBS_TIMEOUT_SECONDS))[-1]
    well = [job for job, view in zip(jobs, views, strict=True) if view.state is JobState.FINISHED]
    longest = max((view.waited_seconds for view in views if view.state is JobState.FINISHED), default=0.0)
    line("Jobs before", f"{len(well)} of {len(jobs)} finished; the longest wait was {longest:.0f} s")
    if not well:
        raise console.CommandError(
            f"no job ends before the {what}, so nothing can be said of it; give others by --jobs"
        )
    return Before(well, longest)


@dataclass
class Seen:
    """What is known of the jobs that are submitted meanwhile."""

    stream: JobStream
    witnesses: Witnesses
    recorder: Recorder
    not_known: str = ""
    """Why evictions and moves are not known after all."""
    left: dict[str, float] = field(default_factory=dict)
    """Jobs that Kueue did not dispatch, until their Workload was annotated, and when: docs/found-in-kueue.md, 14."""
    listed: tuple[float, Mapping[str, Sequence[Mapping[str, Any]]]] = (0.0, {})
    """The Workloads of each cluster when all of them answered last, and when they were asked, by `time.monotonic`."""
    pods: dict[str, set[str]] = field(default_factory=dict)
    """The uids of the pods of each Job, by its own, that were seen after they had started."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def see_pods(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Those that a cluster has now."""
        from kueue_admission.read.printed_pods import PrintedPod

        for pod in map(PrintedPod.of, pods):
            owner = next((owner.uid for owner in pod.owners if owner.kind == "Job"), "")
            if owner and pod.status.text("startTime"):
                self.pods.setdefault(owner, set()).add(pod.uid)

    def restarted(self, job: Mapping[str, Any]) -> int:
        """How many pods of a Job were started beyond those that it needs, each for one that was lost or failed."""
        from kueue_admission.read.printed import PrintedJob

        printed_job = PrintedJob.of(job)
        needs = printed_job.spec.integer("completions") or printed_job.spec.integer("parallelism") or 1
        with self.lock:
            return max(0, len(self.pods.get(printed_job.uid, ())) - needs)

    def records(self) -> list[Record]:
        """Of the jobs that were submitted."""
        names = {(job["metadata"]["namespace"], job["metadata"]["name"]) for job in self.stream.submitted}
        with self.lock:
            return [record for record in self.recorder.records if (record.namespace, record.name) in names]

    def wait_until_one_runs(self) -> int:
        """The number of jobs that run: a step is to begin with some. Raises CommandError where none does in 300 s."""
        deadline = time.monotonic() + JOBS_TIMEOUT_SECONDS
        while not (running := sum(record.is_running for record in self.records())):
            if self.not_known or time.monotonic() > deadline:
                raise console.CommandError(f"no job runs after {JOBS_TIMEOUT_SECONDS:.0f} s", problems=[self.not_known])
            time.sleep(LOOK_SECONDS)
        return running


@contextmanager
def observed(
    session: Session, fleet: FleetSpec, jobs: Sequence[Mapping[str, Any]], *, asks_again: bool = True
) -> Iterator[Seen]:
    """Submit JOBS again and again, and watch them. `asks_again`: Kueue is made to look at those that it left."""
    from kueue_fleet.fleet_simulation.recorded import Recorder
    from kueue_rehearsal.jobs.stream import JobStream
    from kueue_rehearsal.jobs.witness import Witnesses

    clients = session.clients(fleet)
    over = threading.Event()
    observation = Seen(
        JobStream(session.clients(fleet), fleet.home, jobs, JOB_SECONDS),
        Witnesses({name: clients.server(name) for name in fleet.job_clusters}),
        Recorder(fleet.home),
    )
    watching = threading.Thread(target=_look, args=(observation, clients, fleet, over, asks_again), daemon=True)
    watching.start()
    try:
        yield observation
    finally:
        observation.stream.close()
        over.set()
        watching.join()
        observation.witnesses.close()


def _look(seen: Seen, clients: ClusterClients, fleet: FleetSpec, over: threading.Event, asks_again: bool) -> None:
    """Write down what becomes of jobs, twice a second; of a cluster that cannot be asked, what it said last stays."""
    from kueue_admission.decide.errors import NotModelledError
    from kueue_rehearsal.paths import RehearsalError

    workloads: dict[str, list[Mapping[str, Any]]] = {name: [] for name in fleet.cluster_names}
    pods = dict(workloads)
    while not over.wait(LOOK_SECONDS):
        began, silent = time.monotonic(), set[str]()
        for name in fleet.cluster_names:
            try:
                objects = clients.list(name, *WORKLOADS), clients.list(name, "", "v1", "pods")
            except RehearsalError:
                silent.add(name)
            else:
                workloads[name], pods[name] = list(objects[0]), list(objects[1])
        try:
            with seen.lock:
                for name in fleet.cluster_names:
                    seen.see_pods(pods[name])
                if fleet.home not in silent:
                    seen.recorder.see(workloads, pods)
                if not silent:
                    seen.listed = began, dict(workloads)
            if asks_again and fleet.manager is not None and fleet.home not in silent:
                ask_again(seen, clients, fleet.home, workloads[fleet.home])
        except RehearsalError:
            continue
        except NotModelledError as unknown:
            seen.not_known = str(unknown)
            return


def ask_again(seen: Seen, clients: ClusterClients, home: str, workloads: Sequence[Mapping[str, Any]]) -> None:
    """Make Kueue look at jobs that it left, by a change of their Workloads."""
    from kueue_admission.read.printed import PrintedWorkload

    for workload in map(PrintedWorkload.of, workloads):
        since, now = workload.since("QuotaReserved"), time.time()
        is_sent = bool(workload.cluster_name or workload.status.data.get("nominatedClusterNames"))
        is_over = workload.is_true("Admitted") or workload.is_true("Finished")
        if since is not None and now - seen.left.get(workload.key, since) > _LEFT_SECONDS and not (is_sent or is_over):
            path = f"/apis/{'/'.join(WORKLOADS[:2])}/namespaces/{workload.namespace}/{WORKLOADS[2]}/{workload.name}"
            clients.merge(home, path, {"metadata": {"annotations": {LOOK_AGAIN: f"{now:.0f}"}}})
            seen.left[workload.key] = now


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a job."""

    name: str
    state: str
    waited: float
    """Seconds until its first pods might start; of a kind without Jobs, until it was admitted."""
    places: Sequence[str]
    evictions: Sequence[str]
    runs: int
    """How often it ran; 0: not known."""
    wrong: Sequence[str]
    is_finished: bool
    restarted: int = 0
    """Pods that were started again in the same run, as those of lost nodes were; at least, as short ones may not be
    seen."""

    @classmethod
    def of(cls, view: JobView, seen: Seen, fleet: FleetSpec) -> Row:
        """Of the job in `view`."""
        from kueue_admission.read.printed import Printed, PrintedJob
        from kueue_rehearsal.jobs.views import JobState

        key = view.namespace, view.name
        runs = seen.witnesses.runs_of(*key)
        record = next((record for record in seen.records() if (record.namespace, record.name) == key), None)
        evictions = [eviction.reason for eviction in record.evictions] if record else []
        cluster_names = [run.cluster or fleet.home for run in record.runs] if record else []
        times = max(Counter(item["metadata"]["name"] for _, item in runs).values(), default=0)
        starts = [at for _, item in runs if (at := PrintedJob.of(item).status.seconds("startTime")) is not None]
        creation_time = {Printed.of(job).key: Printed.of(job).created for job in seen.stream.submitted}.get(
            "/".join(key)
        )
        wait_seconds = (
            view.waited_seconds if creation_time is None or not starts else max(0.0, min(starts) - creation_time)
        )
        places = list(dict.fromkeys([cluster for cluster, _ in runs] or cluster_names))
        wrong = []
        if view.state is not JobState.FINISHED:
            wrong.append(f"{view.name}: is {view.state}, not finished")
        if times > 1 + len(evictions):
            wrong.append(f"{view.name}: was started {times} times")
        is_finished = view.state is JobState.FINISHED
        restart_count = sum(seen.restarted(item) for _, item in runs)
        return cls(
            view.name, str(view.state), wait_seconds, places, evictions, times, wrong, is_finished, restart_count
        )

    def to_dict(self) -> dict[str, Any]:
        """Its fields, as in a JSON document; `runs` is null where it is not known."""
        return {
            "name": self.name,
            "state": self.state,
            "waitedSeconds": round(self.waited, 1),
            "ranOn": list(self.places),
            "evictions": list(self.evictions),
            "runs": self.runs or None,
            "podsStartedAgain": self.restarted,
        }


def show_rows(rows: Sequence[Row]) -> None:
    """A table of those that were evicted or moved, or waited longest."""
    table = Table(
        Column("job"),
        Column("waited", right=True),
        Column("ran on"),
        Column("evicted", leave_out=1),
        Column("ran", right=True),
        Column("pods again", right=True, leave_out=1),
        Column("state"),
    )

    def tells(row: Row) -> bool:
        return bool(row.wrong or row.evictions or len(row.places) > 1 or row.restarted)

    ordered_rows = sorted(rows, key=lambda row: (not tells(row), -row.waited))
    for row in ordered_rows[:_SHOWN]:
        ran = str(row.runs or "not known")
        places = ", then ".join(row.places) or "-"
        eviction_text, again = ", ".join(row.evictions) or "-", str(row.restarted or "-")
        table.add(row.name, f"{row.waited:.0f} s", places, eviction_text, ran, again, row.state)
    console.line()
    console.show(table)
    if len(rows) > _SHOWN:
        console.line(f"and {len(rows) - _SHOWN} more, which waited no longer")


def report(rows: Sequence[Row], seen: Seen) -> bool:
    """What became of the jobs that were submitted while Kueue was upgraded, and whether that is well."""
    show_rows(rows)
    console.line()
    count, move_count = (sum(bool(row.evictions) for row in rows), sum(len(row.places) > 1 for row in rows))
    line(
        "Jobs",
        f"{len(rows)} submitted while Kueue was upgraded; {count} evicted, {move_count} moved to another cluster",
    )
    if seen.not_known:
        line("", f"evictions are not known: {seen.not_known}")
    if seen.left:
        line("Left", f"{console.count(len(seen.left), 'job')} got quota while no worker was connected, and went on")
        line("", "when the Workload was annotated: docs/found-in-kueue.md, 14")
    line("Refused", f"{len(seen.stream.refusals)} times, and taken later" if seen.stream.refusals else "no job")
    for text in dict.fromkeys(seen.stream.refusals):
        console.paragraph(text)
    wrong = [text for row in rows for text in row.wrong]
    wrong += [f"ran twice at one time: {overlap}" for overlap in seen.witnesses.overlaps()]
    unknown = sum(not row.runs for row in rows)
    ran = f"how often {console.count(unknown, 'job')} ran is not known" if unknown else "each ran once"
    line("Audit", "; ".join(wrong) or f"every job finished, and {ran}")
    return not wrong
