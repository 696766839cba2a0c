"""Kubernetes objects, as kubectl prints them, into what can be simulated or explained, and their simulation.

What is looked at, and what is left out with a note, `read.dumps` says.
Everything wrong is found at once: what the models of Kueue's API refuse, what the core cannot read, and jobs without
a LocalQueue. Of other references to nothing, and cycles of cohorts, Kueue holds only the queues that depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kueue_admission.api.check_objects import SPECS, check_objects, cycle_faults
from kueue_admission.api.conversion import as_v1beta2
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import ClusterQueue, Configuration, Objects, Workload
from kueue_admission.decide.reasons import AdmittedReason, QuotaReservedReason
from kueue_admission.kernel.form_rules import UNKNOWN_NAME
from kueue_admission.kernel.job_rules import CHECKS_EXCLUDE, JOB
from kueue_admission.kernel.manifest import Manifest, inside, is_live, key_of
from kueue_admission.kernel.names import QUEUE_LABEL, RUN_SECONDS_ANNOTATION
from kueue_admission.kernel.problem import Problem, errors_of
from kueue_admission.kernel.suggest import instead, nearest
from kueue_admission.read.dumped_configuration import dumped_configuration
from kueue_admission.read.dumps import missing_kinds, take, without_queue
from kueue_admission.read.fields import Fields
from kueue_admission.read.job_pod_sets import SEVERAL, roles_of, workload_count
from kueue_admission.read.kueue_objects import LeftOut, Parsed
from kueue_admission.read.manifests import JOBS, NAMESPACED, QUEUED, is_job, label_of, owners_of, with_place
from kueue_admission.read.printed import Printed, PrintedJob, PrintedWorkload
from kueue_admission.read.readable import notes as notes_of
from kueue_admission.read.readable import notes_of_problems, parse_readable
from kueue_admission.releases import Release
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.distributions import MOST_SECONDS, as_seconds
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.job_documents import one_for_each_job, with_names
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.runner import Arrival, prepare_cluster

_DECIDED_BY: Final[Mapping[str, str]] = {
    QuotaReservedReason.TOPOLOGY_PLACEMENT_FAILED: "Node",
    QuotaReservedReason.MISCONFIGURED: "Namespace",  # What queues are missing, a note says.
}
"""Reasons to wait, each with the kind of object that says whether they hold."""
_ADD: Final = "add it, or name another"
_UNANSWERED: Final[Mapping[str, str]] = {
    AdmittedReason.UNSATISFIED_ADMISSION_CHECKS: "nothing answers admission checks here; give a fleet and a workload "
    "file with waits"
}
"""What controllers of admission checks would decide is not among the objects."""


@dataclass(frozen=True, slots=True)
class RawInput:
    """Objects of one cluster and its workloads; `origin` is the earliest creationTimestamp, 0.0 if there is none.

    `moment` is the last time that the Workloads' status has: the cluster is what the objects say from then on. It is
    `origin` where no Workload has a status.
    """

    objects: Objects
    arrivals: tuple[Arrival, ...]
    origin: float
    moment: float
    notes: tuple[str, ...] = ()
    """What was left out, and kinds of objects that are missing."""
    not_known: Mapping[str, str] = field(default_factory=dict)
    """Kueue's reasons to wait that may not hold in the cluster, each with what is missing among the objects."""


@dataclass(frozen=True, slots=True)
class _Item:
    where: str
    kind: str
    namespace: str
    name: str
    data: Manifest

    @property
    def label(self) -> str:
        """As the core's paths begin."""
        return label_of(self.data)

    @property
    def identity(self) -> tuple[str, str]:
        """Kind, of whatever is queued Workload, and name, with the namespace where the kind has one."""
        kind = QUEUED[0] if self.kind in QUEUED else self.kind
        return kind, f"{self.namespace}/{self.name}" if self.namespace else self.name


def read_raw(
    documents: Iterable[Document],
    configuration: Configuration | None = None,
    *,
    left_out: Iterable[Problem] = (),
    fair_sharing: bool = False,
    kueue: Release | None = None,
    changed: bool = False,
) -> RawInput:
    """The objects and workloads in `documents`. Raises SimulationError with every problem.

    `left_out` is what is wrong with what was read beside them and is no object.

    `configuration` is Kueue's; None: that in `documents`. `fair_sharing`: it is on, whatever that says. `kueue` is the
    release that decides; None: that in `documents`. `changed`: the
    objects are not those with which Kueue left workloads without quota, so all of these are tried again.
    """
    problems: list[Problem] = []
    unnamed = list(left_out)
    current_documents = [Document(where, as_v1beta2(data)) for where, data in documents]
    items = list(_items(current_documents, unnamed))
    if not items:
        raise SimulationError(unnamed)
    places = {item.label: item.where for item in items}
    places |= {f"workload {item.namespace}/{item.name}": item.where for item in items if item.kind in QUEUED}
    settings = [
        data for _, data in current_documents if data["kind"] == "ConfigMap"
    ]  # Kueue's Configuration is in one.
    dump = take([*settings, *(item.data for item in items)])
    queued_dump = without_queue(dump.manifests)
    counted_manifests = {label_of(data): data for data in queued_dump.manifests}
    items_left = [
        replace(item, data=counted_manifests[item.label]) for item in items if item.label in counted_manifests
    ]
    missing_names = missing_kinds(item.data for item in items)
    dumped_settings = dumped_configuration(
        [*settings, *(item.data for item in items)], fair_sharing=fair_sharing, kueue=kueue
    )
    said = dumped_settings.notes if configuration is None else ()
    notes = (*notes_of_problems(unnamed), *missing_names.values(), *dump.left_out, *queued_dump.left_out, *said)
    stories, untimed = _stories(items)
    stated_problems, seen_keys = [], set()
    excluded = [LeftOut(item.data, untimed[item.label]) for item in items_left if item.label in untimed]
    live = {item.label: item for item in items_left if is_live(item.data)}
    for problem in errors_of(check_objects([item.data for item in items_left])):
        label = problem.path.partition("]")[0].replace("[", " ", 1)
        seen_keys.add(label)
        if (item := live.get(label)) is None:
            stated_problems.append(_with_place_of_bracket(problem, places))
        elif (
            problem.rule is CHECKS_EXCLUDE
        ):  # Kueue keeps the queue inactive, for a reason that the core does not know.
            excluded.append(LeftOut(item.data, (problem,)))
    readable_objects = None
    try:
        readable_objects = parse_readable(
            [item.data for item in items_left], configuration or dumped_settings.configuration, excluded
        )
    except ObjectError as error:
        stated_problems += [
            with_place(problem, places) for problem in error.problems if not _is_seen(problem.path, seen_keys)
        ]
    except NotModelledError as error:
        stated_problems.append(with_place(error.problem, places))
    problems += stated_problems
    if readable_objects is not None:
        gone = {id(object_left_out.manifest) for object_left_out in readable_objects.left_out}
        items_left = [item for item in items_left if id(item.data) not in gone]
        items = [item for item in items if id(item.data) not in gone]
        notes = (
            *notes,
            *notes_of(readable_objects.left_out),
            *_dangling(readable_objects, items_left, places, problems),
        )
        if not readable_objects.workloads:  # Nothing is left to simulate of what is in the hand of who gives it.
            problems += [
                with_place(problem, places)
                for object_left_out in readable_objects.left_out
                if not is_live(object_left_out.manifest)
                for problem in object_left_out.problems
            ]
    if problems or readable_objects is None:
        raise SimulationError(problems)
    times = [time for item in items if (time := Printed.of(item.data).created) is not None]
    origin = min(times, default=0.0)
    moment = max([origin, *(time for item in items_left if item.kind == "Workload" for time in _transitions(item))])
    arrivals = tuple(_arrivals(readable_objects, items_left, stories, moment))
    if changed:
        arrivals = tuple(replace(arrival, resumed=False) for arrival in arrivals)
    not_known = {reason: missing_names[kind] for reason, kind in _DECIDED_BY.items() if kind in missing_names}
    return RawInput(readable_objects.with_namespaces(), arrivals, origin, moment, notes, {**not_known, **_UNANSWERED})


def prepare_objects(
    raw: RawInput,
    delays: Delays,
    *,
    until: float | None = None,
    seed: int = 0,
    engines: dict[str, Engine] | None = None,
) -> Prepared:
    """What will happen to the workloads, up to `until` seconds after second 0; see `runner.prepare_cluster`.

    Where `until` is before the moment of the objects, the result is their state.
    """
    until = None if until is None else max(until, raw.moment - raw.origin)
    return prepare_cluster(
        raw.objects,
        raw.arrivals,
        delays,
        start=raw.origin,
        until=until,
        seed=seed,
        engines=engines,
        not_known=raw.not_known,
    )


def _items(documents: Iterable[Document], problems: list[Problem]) -> Iterator[_Item]:
    for where, data in one_for_each_job(with_names(documents, problems), problems):
        kind, metadata = str(data["kind"]), data["metadata"]
        namespace = str(metadata.get("namespace") or "default") if kind in NAMESPACED else ""
        yield _Item(where, kind, namespace, metadata["name"], data)


def named_workloads(job: Manifest, workload: Workload, name: str) -> Iterator[tuple[str, Workload]]:
    """The Workloads that Kueue makes of `job`, of which `workload` was read, with names by which people know them."""
    count = workload_count(job)
    if job["kind"] not in SEVERAL:
        yield name, workload
        return
    for number in range(count):
        uid = f"{workload.uid}-{number}"
        yield f"{name}-{number}", replace(workload, name=f"{workload.name}-{number}", uid=uid)


@dataclass(frozen=True, slots=True)
class _Story:
    """What the core does not read of a workload: the name of its job, its run time, and when it was over."""

    name: str
    run_seconds: float | None
    finished_at: float | None


def _dangling(
    fleet_objects: Parsed, items: Iterable[_Item], places: Mapping[str, str], problems: list[Problem]
) -> Iterator[str]:
    """A note on each reference to nothing that holds its own queues alone; others are added to the problems.

    Those of what is yet to be created are: jobs without a LocalQueue, and all where flavors or queues are lacking.
    """
    objects = fleet_objects.objects
    lacks_kind = not (objects.flavors and objects.cluster_queues)
    there = {item.identity for item in items if is_live(item.data)}
    for identity, problem in check_references(fleet_objects):
        if identity in there:
            yield f"{problem.path}: {problem.wrong}, and the cluster has it all the same"
        elif lacks_kind or identity[0] == QUEUED[0]:
            problems.append(with_place(problem, places))
        else:
            yield f"{with_place(problem, places)}; until then Kueue admits no job that depends on it"


def _stories(items: Iterable[_Item]) -> tuple[dict[str, _Story], dict[str, tuple[Problem, ...]]]:
    """The story of each by its label, and what is wrong with the run times of some."""
    by_key = {(item.kind, key_of(item.data)): item for item in items}
    stories, faults = {}, {}
    for item in by_key.values():
        if item.kind != "Workload" and not is_job(item.data):
            continue
        owners = owners_of(item.data) if item.kind == "Workload" else ()
        owner = next((owner for owner in owners if owner[0] in JOBS), None)
        job = by_key.get(owner) if owner else None
        problems: list[Problem] = []
        seconds = _run_seconds(item, problems)
        if seconds is None and job is not None:
            seconds = _run_seconds(job, problems)
        stories[item.label] = _Story(owner[1].partition("/")[2] if owner else item.name, seconds, _finished_at(item))
        if problems:
            faults[item.label] = tuple(problems)
    return stories, faults


def _run_seconds(item: _Item, problems: list[Problem]) -> float | None:
    """The run time on the object itself, else the longest on the pods of its jobs."""
    job = Fields(item.data, item.label, [])
    try:
        roles = roles_of(job) if is_job(item.data) else []
    except NotModelledError:
        roles = []  # `parse_objects` says so.
    places = [job, *(role.template for role in roles)]
    own: list[float] = []
    for place in places:
        text = inside(place.data, "metadata", "annotations").get(RUN_SECONDS_ANNOTATION)
        if text is None:
            continue
        seconds = as_seconds(text)
        if seconds is None:
            at = f"{place.path}.metadata.annotations[{RUN_SECONDS_ANNOTATION}]"
            wrong, fix = f"{text!r} is not a number of seconds", f"write 0 to {MOST_SECONDS:,}, in quotes"
            problems.append(JOB.at(at, wrong, fix))
            continue
        if place is job:
            return seconds
        own.append(seconds)
    return max(own, default=None)


def name_documents(documents: Iterable[Document], left_out: list[Problem] | None = None) -> list[Document]:
    """One for each job, and each with a name: those with generateName get its numbers.

    `left_out` takes what is wrong with those that have none; without it that raises SimulationError.
    """
    problems: list[Problem] = [] if left_out is None else left_out
    named_documents = [Document(item.where, item.data) for item in _items(map(_scheduled, documents), problems)]
    if problems and left_out is None:
        raise SimulationError(problems)
    return named_documents


def _scheduled(document: Document) -> Document:
    """The Job that a CronJob makes for a LocalQueue, by the CronJob's name; anything else as it is."""
    template, metadata = inside(document.data, "spec", "jobTemplate"), inside(document.data, "metadata")
    if document.data.get("kind") != "CronJob" or QUEUE_LABEL not in inside(template, "metadata", "labels"):
        return document
    names = {key: metadata[key] for key in ("name", "namespace", "generateName") if key in metadata}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**inside(template, "metadata"), **names}}
    return Document(document.where, {**job, "spec": inside(template, "spec")})


def run_seconds_of(document: Document) -> float | None:
    """The run time that a job says; None: indefinitely. Raises SimulationError."""
    problems: list[Problem] = []
    items = list(_items([document], problems))
    seconds = _run_seconds(items[0], problems) if items else None
    if problems:
        raise SimulationError(problem.behind(document.where) for problem in problems)
    return seconds


def _finished_at(item: _Item) -> float | None:
    """When the object's status says it was over."""
    if item.kind == "Workload":
        return PrintedWorkload.of(item.data).since("Finished")
    return PrintedJob.of(item.data).ended_at


def _transitions(item: _Item) -> Iterator[float]:
    """The times in the status of a Workload."""
    printed_workload = PrintedWorkload.of(item.data)
    checks = (check.seconds("lastTransitionTime") for check in printed_workload.checks)
    yield from (
        time for time in (*map(printed_workload.changed_at, printed_workload.conditions), *checks) if time is not None
    )


def _arrivals(
    fleet_objects: Parsed, items: Iterable[_Item], stories: Mapping[str, _Story], moment: float
) -> Iterator[Arrival]:
    """Those with quota first, then those that wait as a cycle left them, then all others."""
    by_kind = {kind: [item for item in items if item.kind == kind] for kind in QUEUED}
    queued_items = [item for kind in QUEUED for item in by_kind[kind]]
    in_order = [item for item in queued_items if item.kind == "Workload" or is_job(item.data)]
    keys: set[str] = set()
    arrivals: list[Arrival] = []
    for item, workload in zip(in_order, fleet_objects.workloads, strict=True):
        story = stories[item.label]
        creation_time = workload.created if Printed.of(item.data).created is not None else moment
        name = workload.name if workload.key not in keys else f"{item.kind.lower()}-{workload.name}"
        workload = replace(workload, created=creation_time, name=name)
        keys.add(workload.key)
        at, is_resumed = max(creation_time, moment), item.kind == "Workload" and creation_time <= moment
        for name, job_workload in named_workloads(item.data, workload, story.name):
            arrivals.append(
                Arrival(job_workload, name, at, story.run_seconds, finished_at=story.finished_at, resumed=is_resumed)
            )
    yield from sorted(arrivals, key=_precedence)


def _precedence(arrival: Arrival) -> tuple[bool, bool, bool]:
    status = arrival.workload.status
    # A parent that comes before its variants would get others.
    return not arrival.workload.parent, status.admission is None, not arrival.resumed or status.evaluated is None


def check_references(fleet_objects: Parsed) -> Iterator[tuple[tuple[str, str], Problem]]:
    """References to nothing, and cohorts that are their own ancestors, each with kind and name of what has it.

    Of the jobs of a LocalQueue that is not there, which count as Workloads, it is the first.
    """
    objects = fleet_objects.objects
    topologies = {topology.name for topology in objects.topologies}
    for flavor in objects.flavors:
        if flavor.topology is not None and flavor.topology not in topologies:
            yield _missing("ResourceFlavor", flavor.name, "spec.topologyName", "Topology", flavor.topology)
    for queue in objects.cluster_queues:
        yield from _queue_references(queue, objects)
    queues = {queue.name for queue in objects.cluster_queues}
    for local_queue in objects.local_queues:
        if local_queue.cluster_queue not in queues:
            missing_queue = local_queue.cluster_queue
            yield _missing("LocalQueue", local_queue.key, "spec.clusterQueue", "ClusterQueue", missing_queue)
    local = {queue.key for queue in objects.local_queues}
    asking: dict[str, list[str]] = {}
    for workload in fleet_objects.workloads:
        asking.setdefault(workload.local_queue, []).append(workload.key)
    for key, workloads in asking.items():
        if key not in local:
            more = f" (and {len(workloads) - 1} more workloads)" if len(workloads) > 1 else ""
            namespace, _, name = key.partition("/")
            here = [queue_key.partition("/")[2] for queue_key in local if queue_key.startswith(f"{namespace}/")]
            near = nearest(namespace, {queue_key.partition("/")[0] for queue_key in sorted(local)})
            owners = sorted(queue_key.partition("/")[0] for queue_key in local if queue_key.endswith(f"/{name}"))
            other = f"submit it in {owners[0]}, which has {name}, or add it here" if owners else _ADD
            elsewhere = f"did you mean the namespace {near}?" if near else other
            fix = instead(name, sorted(here), f"LocalQueues of {namespace}") if here else elsewhere
            path, wrong = f"workload {workloads[0]}{more}", f"there is no LocalQueue {key}"
            yield (QUEUED[0], workloads[0]), UNKNOWN_NAME.at(path, wrong, fix)
    for name, fault in cycle_faults({cohort.name: cohort.parent for cohort in objects.cohorts}):
        yield ("Cohort", name), fault.rule.at(f"Cohort {name}.spec.parentName", fault.wrong, fault.fix)


def _queue_references(queue: ClusterQueue, objects: Objects) -> Iterator[tuple[tuple[str, str], Problem]]:
    flavors = {flavor.name for flavor in objects.flavors}
    checks = {check.name for check in objects.checks}
    for group in queue.groups:
        for quotas in group.flavors:
            if quotas.flavor not in flavors:
                field = "spec.resourceGroups.flavors"
                yield _missing("ClusterQueue", queue.name, field, "ResourceFlavor", quotas.flavor)
    for check in queue.checks:
        if check.name not in checks:
            field = "spec.admissionChecksStrategy.admissionChecks"
            yield _missing("ClusterQueue", queue.name, field, "AdmissionCheck", check.name)


def _missing(kind: str, name: str, field: str, missing_kind: str, missing_name: str) -> tuple[tuple[str, str], Problem]:
    wrong = f"there is no {missing_kind} {missing_name}"
    return (kind, name), UNKNOWN_NAME.at(f"{kind} {name}.{field}", wrong, _ADD)


def _with_place_of_bracket(problem: Problem, places: Mapping[str, str]) -> Problem:
    """The same for paths that begin with `Kind[name]`."""
    kind, _, rest = problem.path.partition("[")
    name = rest.partition("]")[0]
    for label in (f"{kind} {name}", *(label for label in places if label.startswith(f"{kind} "))):
        if label in places and label.rpartition("/")[2].rpartition(" ")[2] == name:
            return problem.behind(places[label])
    return problem


def _is_seen(path: str, seen_keys: set[str]) -> bool:
    """Whether those models already had something to say about the object."""
    kind = path.partition(" ")[0]
    return kind in SPECS and any(
        f"{path}.".startswith(f"{label}.") or f"/{label.partition(' ')[2]}." in path for label in seen_keys
    )
