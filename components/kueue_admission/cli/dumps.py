"""Clusters whose workloads can be explained: as they were printed, or as a simulation leaves them at some second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kueue_admission.api.check_objects import cycle_faults
from kueue_admission.cli import console
from kueue_admission.cli.input_files import is_there, read_objects, well_formed

if TYPE_CHECKING:
    # The other commands start without the admission core.
    from kueue_admission.decide.engine import Engine
    from kueue_admission.decide.model import Snapshot
    from kueue_admission.explain import Condition, Explanation, Links
    from kueue_admission.kernel.manifest import Manifest
    from kueue_admission.kernel.problem import Problem
    from kueue_admission.read.dispatch_report import ParsedReport
    from kueue_admission.read.kueue_objects import LeftOut, Parsed
    from kueue_admission.releases import Release
    from kueue_admission.simulate.documents import Document
    from kueue_admission.simulate.records import Record
    from kueue_admission.simulate.result import Result

_NAMED: Final = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?)=(.+)")


class Dump:
    """A cluster as its objects were printed. What matters to a workload is read when it is asked for."""

    def __init__(self, text: str, now: float, *, fair_sharing: bool, kueue: Release | None = None) -> None:
        name_match = None if is_there(text) else _NAMED.fullmatch(text)
        self.name = name_match[1] if name_match else ""
        self._path = Path(name_match[3]) if name_match else Path(text)
        self.source = console.source_name(self._path)
        self._now, self._fair_sharing, self._kueue = now, fair_sharing, kueue
        self._read()

    def _read(self) -> None:
        left_out: list[Problem] = []
        with well_formed(self._path):
            documents = read_objects(self._path, left_out=left_out)
        self._index_documents(documents, left_out)

    def _index_documents(self, documents: list[Document], left_out: Sequence[Problem] = ()) -> None:
        from kueue_admission.api.conversion import as_v1beta2
        from kueue_admission.explain.relevance import WorkloadIndex
        from kueue_admission.read.dumped_configuration import dumped_configuration
        from kueue_admission.read.dumps import missing_kinds, take
        from kueue_admission.read.printed import Printed
        from kueue_admission.read.readable import notes_of_problems
        from kueue_admission.simulate.documents import Document as Read
        from kueue_admission.simulate.job_documents import one_for_each_job, with_names

        problems = [*left_out]
        self._documents = list(with_names((Read(where, as_v1beta2(data)) for where, data in documents), problems))
        if not self._documents:
            raise console.wrong_input(self._path, problems)
        self._manifests = [document.data for document in self._documents]
        settings = [manifest for manifest in self._manifests if manifest["kind"] == "ConfigMap"]
        jobs = one_for_each_job(self._documents, [])  # `explain_unmanaged` says what is wrong with groups of pods.
        dump = take([*settings, *(document.data for document in jobs)])
        configuration = dumped_configuration(self._manifests, fair_sharing=self._fair_sharing, kueue=self._kueue)
        self._configuration = configuration.configuration
        missing_names = missing_kinds(self._manifests).values()
        cohorts = [printed for printed in map(Printed.of, self._manifests) if printed.kind == "Cohort"]
        faults = cycle_faults({cohort.name: cohort.spec.text("parentName") or None for cohort in cohorts})
        held = (f"Cohort {name}.spec.parentName: {fault}" for name, fault in faults)
        self._notes = (*notes_of_problems(problems), *missing_names, *dump.left_out, *configuration.notes, *held)
        self._index = WorkloadIndex(dump.manifests)
        self._parsed: dict[tuple[int, ...], Parsed] = {}

    @property
    def notes(self) -> Sequence[str]:
        """What was left out of all that was read so far, and what is missing."""
        from kueue_admission.read.readable import notes

        left_out_by_id = {
            id(object_left_out.manifest): object_left_out
            for readable in self._parsed.values()
            for object_left_out in readable.left_out
        }
        return (*self._notes, *notes(left_out_by_id.values()))

    @property
    def names(self) -> Iterable[str]:
        """Every name of a workload, with and without the namespace."""
        return self._index.names

    def keys(self, name: str) -> list[str]:
        """The workloads that go by this name: their own, or that of the job that owns them."""
        return self._index.keys(name)

    @property
    def waiting(self) -> Sequence[tuple[str, str]]:
        """LocalQueue and key of what has yet to be admitted, by priority and age, and of suspended jobs without one."""
        from kueue_admission.kernel.manifest import key_of
        from kueue_admission.read.dumps import is_unmanaged
        from kueue_admission.read.manifests import owners_of
        from kueue_admission.read.printed import PrintedJob

        apart = (m for m in self._manifests if is_unmanaged(m) and PrintedJob.of(m).is_suspended)
        return [*self._index.waiting, *(("", key_of(m)) for m in apart if not any(owners_of(m)))]

    def queue_of(self, key: str) -> str:
        """The LocalQueue of a workload, as `namespace/name`."""
        return self._index.queue_of(key)

    @property
    def links(self) -> Links | None:
        """What the cluster's queues refer to."""
        from kueue_admission.explain import Links

        return Links(self._index.others)

    def explain_unmanaged(self, name: str) -> Explanation | None:
        """Why Kueue has no Workload for the Job or pod group `name`, if it is here."""
        from kueue_admission.explain.unmanaged import explain_unmanaged

        return explain_unmanaged(self._manifests, name, cluster=self.name)

    def dispatch(self, key: str) -> ParsedReport | None:
        """What the fleet's own dispatcher decided about the workload `key`, which is here."""
        from kueue_admission.read.dispatch_report import dispatch_report

        return dispatch_report(self._index.workloads[key])

    def written(self, key: str) -> Condition | None:
        """What Kueue wrote last on the workload `key`, which is here."""
        from kueue_admission.explain import written_on

        workloads = self._index.workloads
        return written_on(workloads[key], workloads.values(), self._now)

    def suspended_job(self, key: str) -> str:
        """The job of the workload `key`, which is here, if it is suspended; empty if another cluster runs it."""
        from kueue_admission.kernel.manifest import key_of
        from kueue_admission.read.manifests import label_of, owners_of
        from kueue_admission.read.printed import PrintedJob, PrintedWorkload

        workload = self._index.workloads[key]
        owners = set() if PrintedWorkload.of(workload).cluster_name else set(owners_of(workload))
        jobs = (manifest for manifest in self._manifests if (manifest["kind"], key_of(manifest)) in owners)
        return next((label_of(job) for job in jobs if PrintedJob.of(job).is_suspended), "")

    def remark(self, key: str) -> str:
        """On the workload `key`, which is here: where its pods are, and a priority label of its job that does nothing.

        Empty where there is nothing to say.
        """
        from kueue_admission.explain.priority_label import priority_label_without_effect
        from kueue_admission.read.printed import PrintedWorkload, WorkloadState

        workload = PrintedWorkload.of(self._index.workloads[key])
        runs = workload.cluster_name and workload.state is WorkloadState.ADMITTED
        place = f"Its pods are on the worker cluster {workload.cluster_name}." if runs else ""
        label = priority_label_without_effect(self._index.workloads[key], self._manifests)
        return " ".join(filter(None, (place, label)))

    def snapshot(self, key: str, local_queue: str) -> Snapshot:
        """What matters to the workload `key`, which is here or would come to this LocalQueue.

        Raises CommandError with every problem of the objects that matter and are yet to be created.
        """
        from kueue_admission.decide.model import Snapshot

        readable = self._parse(key, local_queue)
        return Snapshot(readable.with_namespaces(), readable.workloads, self._now)

    def left_out(self, key: str, local_queue: str) -> Sequence[LeftOut]:
        """Of what cannot be read, that which the workload `key` itself is, or which may change what it gets."""
        from kueue_admission.explain.unread import left_out_for

        return left_out_for(self._parse(key, local_queue).left_out, self._index, key, local_queue)

    def _parse(self, key: str, local_queue: str) -> Parsed:
        from kueue_admission.decide.errors import NotModelledError, ObjectError
        from kueue_admission.read.readable import parse_readable

        relevant = self._index.relevant(key, local_queue)
        of_tree = tuple(map(id, relevant))
        try:
            readable = self._parsed.get(of_tree) or parse_readable(relevant, self._configuration)
        except ObjectError as refused:
            raise self._refused(refused.problems) from None
        except NotModelledError as refused:
            raise self._refused([refused.problem]) from None
        self._parsed[of_tree] = readable
        return readable

    def _refused(self, problems: Iterable[Problem]) -> console.CommandError:
        from kueue_admission.read.manifests import label_of, with_place

        places = {label_of(document.data): document.where for document in self._documents}
        return console.wrong_input(self._path, [with_place(problem, places) for problem in problems])


class Listed(Dump):
    """A cluster as its API server listed its objects."""

    def __init__(self, name: str, manifests: Iterable[Manifest], now: float, *, fair_sharing: bool) -> None:
        from kueue_admission.simulate.documents import Document

        self.name = self.source = name
        self._path = Path(name)
        self._now, self._fair_sharing, self._kueue = now, fair_sharing, None
        self._index_documents([Document(name, manifest) for manifest in manifests])


class Simulated:
    """A cluster as a simulation leaves it.

    `jobs` has the `namespace/name` of the job of each workload, `reports` what the fleet's own dispatcher decided.
    """

    def __init__(
        self, name: str, source: str, snapshot: Snapshot, jobs: Mapping[str, str], reports: Mapping[str, ParsedReport]
    ) -> None:
        self.name = name
        self._reports = reports
        self.source = source
        self._snapshot = snapshot
        self._queues = {w.key: w.local_queue for w in snapshot.workloads}
        self._names: dict[str, dict[str, None]] = {}
        for key in self._queues:
            for full in (key, jobs.get(key, key)):
                for item in (full, full.partition("/")[2]):
                    self._names.setdefault(item, {})[key] = None

    @property
    def names(self) -> Iterable[str]:
        """See `Dump`."""
        return self._names

    def keys(self, name: str) -> list[str]:
        """See `Dump`."""
        return list(self._names.get(name, ()))

    @property
    def waiting(self) -> Sequence[tuple[str, str]]:
        """See `Dump`: a simulation has only what Kueue manages."""
        jobs = (workload for workload in self._snapshot.workloads if not workload.parent)
        waiting = [w for w in jobs if w.status.admitted_at is None and not w.status.finished]
        return [(w.local_queue, w.key) for w in sorted(waiting, key=lambda w: (-w.priority, w.created, w.key))]

    def queue_of(self, key: str) -> str:
        """See `Dump`."""
        return self._queues[key]

    def snapshot(self, key: str, local_queue: str) -> Snapshot:
        """See `Dump`: all there is."""
        return self._snapshot

    def left_out(self, key: str, local_queue: str) -> Sequence[LeftOut]:
        """See `Dump`: all was read."""
        return ()

    def dispatch(self, key: str) -> ParsedReport | None:
        """See `Dump`."""
        return self._reports.get(key)

    @property
    def links(self) -> Links | None:
        """See `Dump`: in a simulation every check is active."""
        return None

    def written(self, key: str) -> Condition | None:
        """See `Dump`: no Kueue wrote anything."""
        return None

    def suspended_job(self, key: str) -> str:
        """See `Dump`: what is admitted runs."""
        return ""

    def remark(self, key: str) -> str:
        """See `Dump`: each follows its label."""
        return ""

    def explain_unmanaged(self, name: str) -> Explanation | None:
        """See `Dump`: a simulation has only what Kueue manages."""
        return None


Cluster = Dump | Simulated
"""A cluster whose workloads can be looked up, and explained on a snapshot."""


class Moment(NamedTuple):
    """What a simulation leaves at a second: its clusters, the one to which jobs are submitted first, and the records
    of all jobs, also of those that are finished or not there yet."""

    second: float
    clusters: Sequence[Cluster]
    result: Result


def tell_notes(notes: Iterable[str]) -> None:
    """Say on stderr which objects were left out, and what is missing among them."""
    for note in notes:
        console.warning(note)


def simulate_dump(path: Path, second: float, *, fair_sharing: bool, kueue: Release | None) -> Moment:
    """The cluster in PATH after so many seconds of virtual time. Raises CommandError with every problem."""
    from kueue_admission.cli import simulate_ends
    from kueue_admission.simulate.delays import Delays
    from kueue_admission.simulate.raw import prepare_objects, read_raw

    engines: dict[str, Engine] = {}
    with well_formed(path):
        left_out: list[Problem] = []
        documents = read_objects(path, left_out=left_out)
        raw = read_raw(documents, left_out=left_out, fair_sharing=fair_sharing, kueue=kueue)
        tell_notes(raw.notes)
        result = prepare_objects(raw, Delays(), until=second, engines=engines).run()
    simulate_ends.tell([result])
    return Moment(
        second,
        as_clusters(
            engines,
            f"{console.source_name(path)} at second {second:g}",
            max(raw.origin + second, raw.moment),
            result.records,
            {},
        ),
        result,
    )


def as_clusters(
    engines: Mapping[str, Engine],
    source: str,
    now: float,
    records: Iterable[Record],
    reports: Mapping[str, Mapping[str, ParsedReport]],
) -> list[Cluster]:
    """The clusters of these engines, as they are at NOW; `reports` are those of the fleet's own dispatcher."""
    jobs = {record.key: f"{record.namespace}/{record.name}" for record in records}
    return [
        Simulated(name, source, replace(engine.snapshot(), now=now), jobs, reports.get(name, {}))
        for name, engine in engines.items()
    ]
