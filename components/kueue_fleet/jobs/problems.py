"""What is wrong with the jobs for a fleet, in the words and paths of the files that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kueue_admission.api.job_kinds import KINDS
from kueue_admission.kernel import syntax
from kueue_admission.kernel.form_rules import LISTED_TWICE, NEEDED, NOT_MODELLED, UNKNOWN_NAME
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.manifest import Manifest, inside, is_object, key_of, maps_in
from kueue_admission.kernel.names import QUEUE_LABEL
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.suggest import instead, nearest, with_article
from kueue_admission.read.dumps import NOT_READ
from kueue_admission.read.manifests import QUEUED, WITH_QUEUE, is_job, label_of
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.raw import run_seconds_of
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration
from kueue_fleet.fleet_file.model.calendar_windows import fleet_checks
from kueue_fleet.fleet_file.model.job_forms import job_name
from kueue_fleet.fleet_file.model.per_cluster import cluster_queue_of
from kueue_fleet.fleet_file.quota_windows import quota_windows
from kueue_fleet.jobs.check.nodes import nowhere
from kueue_fleet.jobs.check.team_rules import run_duration_fault, run_time_fault
from kueue_fleet.jobs.queued_job import PodSetTemplate
from kueue_fleet.jobs.workload_file import JobEntry, WorkloadFile
from kueue_fleet.settings.dispatch import DISPATCHER_NAME

_PODS: Final = {
    "Job": ("spec", "template", "spec", "containers"),
    "JobSet": ("spec", "replicatedJobs"),
    "Pod": ("spec", "containers"),
}
"""Where kinds have what runs; of the others the parser says what is missing."""
_OF_FLEET: Final = frozenset(
    {
        *("Namespace", "LimitRange", "ResourceQuota", "PriorityClass", "WorkloadPriorityClass", "LocalQueue"),
        *("ClusterQueue", "Cohort", "ResourceFlavor", "Topology", "AdmissionCheck", "ProvisioningRequestConfig"),
    }
)
"""What people write beside jobs, and a fleet has of its own."""
_WITH_JOBS: Final = (*WITH_QUEUE, "CronJob")
"""Kinds that are jobs of Kueue, or make some, if a label says so."""
_SERVED_TOO: Final = {f"ray.io/{kind}": ("ray.io/v1alpha1",) for kind in ("rayjob", "raycluster", "rayservice")}
"""Older versions of kinds, which the API server converts."""
_ALIKE: Final = 0.8
"""Likeness of a kind to the one that is meant: most of them end in Job."""
STEP_LABEL: Final = "kueue-fleet.dev/step"
"""On a job: of which step it is, for `steps` of the workload file."""

Submission = tuple[JobEntry, str, float, float | None]
"""A job: its entry, name, second of arrival, and seconds it runs."""


class Sources(NamedTuple):
    """The names of the files of the fleet and of its jobs; empty: none."""

    fleet: str
    jobs: str


UNNAMED: Final = Sources("", "")
"""Neither has a name."""


def check_jobs(
    fleet: FleetSpec,
    file: WorkloadFile,
    submissions: Sequence[Submission],
    manifests: Sequence[Document],
    sources: Sources,
) -> Iterator[Problem]:
    """Every problem that can be seen before the jobs are read as Kueue reads them."""
    yield from _behind(sources.fleet, _check_dispatcher(fleet))
    yield from _behind(sources.jobs, _check_file(fleet, file))
    yield from _behind(sources.jobs, _check_names(submissions, manifests))
    yield from check_kinds(fleet, manifests)
    yield from check_forms(manifests)
    yield from check_twice(manifests)
    yield from _behind(sources.jobs, _check_steps(file, manifests))
    if not submissions and not manifests:
        yield from _behind(sources.jobs, [JOB.at("jobs", "there are none", "add some, or give --jobs")])


def jobs_apart(documents: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """The jobs, and what people write beside them; alone that is the wrong file, and counts as jobs."""
    jobs = [document for document in documents if not _is_beside(document.data)]
    return (jobs, [document for document in documents if _is_beside(document.data)]) if jobs else (list(documents), [])


def warn_of_others(beside: Iterable[Document]) -> Iterator[Problem]:
    """What is not read of a file with jobs."""
    for where, data in beside:
        kind, wrong = data["kind"], "is not read: it is no job of Kueue"
        fix = _not_a_job(kind) if kind in _WITH_JOBS else "see yourself that it is there"
        if kind in _OF_FLEET:
            wrong, fix = "is not read: a fleet has its own", "write it there"
        yield JOB.at(label_of(data), wrong, fix, "warning").behind(where)


def _is_beside(data: Manifest) -> bool:
    """Whether it is no job, and not meant as one."""
    kind = data["kind"]
    is_other = kind in _WITH_JOBS or not nearest(kind, (*QUEUED[1:], *NOT_READ), _ALIKE)
    return is_other and not is_job(data)


def check_kinds(fleet: FleetSpec, manifests: Iterable[Document]) -> Iterator[Problem]:
    """Objects that no simulation submits, and jobs that the fleet's Kueue does not manage or dispatch."""
    enabled_frameworks = _enabled_frameworks(fleet)
    for where, data in manifests:
        kind = data["kind"]
        framework = next((name for name, job_kind in KINDS.items() if job_kind.kind == kind), "")
        version = managed_version(framework)
        if not is_job(data):
            yield JOB.at("", f"is {with_article(kind)}", _not_a_job(kind)).behind(where)
        elif framework not in enabled_frameworks:
            wrong = f"is {with_article(kind)}, which the fleet's Kueue does not manage"
            fix = f"add {framework} to kueue.configuration.integrations.frameworks"
            yield JOB.at("", wrong, fix).behind(where)
        elif "apiVersion" not in data:
            yield JOB.at(f"{label_of(data)}.apiVersion", "is missing", f"write {version}").behind(where)
        elif data["apiVersion"] not in (version, *_SERVED_TOO.get(framework, ())):
            wrong = f"is of {data['apiVersion']}, and Kueue manages those of {version} alone"
            yield JOB.at(f"{label_of(data)}.apiVersion", wrong, f"write {version}").behind(where)


def _enabled_frameworks(fleet: FleetSpec) -> Sequence[str]:
    return kueue_configuration(fleet, fleet.home)["integrations"].get("frameworks") or ()


def unread_kinds(fleet: FleetSpec) -> set[str]:
    """The kinds that the fleet's Kueue manages, and of whose pods nothing is known here."""
    return {KINDS[name].kind for name in _enabled_frameworks(fleet) if name in KINDS}.intersection(NOT_READ)


def managed_version(framework: str) -> str:
    """The `apiVersion` of the jobs of a framework; empty where it is not known."""
    job_kind = KINDS.get(framework)
    return "" if job_kind is None else f"{job_kind.group}/{job_kind.version}".removeprefix("/")


def _named_in_vain(value: object, path: str = "") -> Iterator[str]:
    """Where a job names a LocalQueue and Kueue does not look: in annotations, and on the templates of its pods."""
    for name, part in value.items() if is_object(value) else ():
        if name in ("labels", "annotations") and QUEUE_LABEL in inside(part):
            yield f"{path}{name}"
        yield from _named_in_vain(part, f"{path}{name}.")
    for item in maps_in(value):
        yield from _named_in_vain(item, path)


def check_forms(manifests: Iterable[Document]) -> Iterator[Problem]:
    """Names that Kubernetes refuses, jobs without pods, which would only be refused when they are submitted, and
    malformed times."""
    for document in manifests:
        where, data = document
        kind, metadata = data["kind"], data["metadata"]
        if not is_job(data):
            continue
        name = metadata.get("name")
        if fault := job_name(str(name or f"{metadata.get('generateName')}xxxxx")):
            wrong = f'"{name or metadata.get("generateName")}" {fault.wrong}'
            yield fault.rule.at(f"{kind}.metadata.name", wrong, fault.fix).behind(where)
        for field in ("labels", "annotations"):
            for key in inside(metadata, field):
                if fault := syntax.label_key(str(key)):
                    path = f"{label_of(data)}.metadata.{field}"
                    yield fault.rule.at(path, f'"{key}" {fault.wrong}', fault.fix).behind(where)
        if QUEUE_LABEL not in inside(metadata, "labels"):
            path = f"{label_of(data)}.metadata.labels"
            there = next(_named_in_vain(data), "")
            fix = f"move it there from {there}" if there else "name a LocalQueue there"
            yield JOB.at(path, f"has no {QUEUE_LABEL}", fix).behind(where)
        steps = _PODS.get(kind, ("spec",))
        value: object = data
        for depth, field in enumerate(steps, 1):
            value = value.get(field) if is_object(value) else None
            form_name = "list" if field == steps[-1] and kind in _PODS else "map"
            if not value or not isinstance(value, list if form_name == "list" else Mapping):
                wrong = f"is not a {form_name}" if value else "is missing or empty"
                fix = "a list of them" if form_name == "list" else "its fields below it"
                yield JOB.at(f"{label_of(data)}.{'.'.join(steps[:depth])}", wrong, f"write {fix}").behind(where)
                break
        else:
            try:
                run_seconds_of(document)
            except SimulationError as refused:
                yield from refused.problems


def check_twice(manifests: Iterable[Document]) -> Iterator[Problem]:
    """Jobs of one kind, namespace and name: the API server has the first alone."""
    first: dict[tuple[str, str], str] = {}
    for where, data in manifests:
        key = data["kind"], key_of(data)
        if is_job(data) and first.setdefault(key, where) is not where:
            wrong = f"is listed twice, first at {first[key]}, and the API server refuses the second"
            fix = "name it differently, or write generateName instead of name"
            yield LISTED_TWICE.at(f"{label_of(data)}.metadata.name", wrong, fix).behind(where)


def _not_a_job(kind: str) -> str:
    if kind in WITH_QUEUE:
        return f"as a job it needs the label {QUEUE_LABEL}, and no uid"
    if kind == "CronJob":
        return f"give the Job of its spec.jobTemplate, which needs the label {QUEUE_LABEL} there"
    if near := nearest(kind, QUEUED[1:], _ALIKE):
        return f"did you mean {near}?"
    kind_names = ", ".join(QUEUED[1:])
    return f"give jobs only, the fleet has the rest; kinds of jobs are {kind_names}"


def as_in_files(
    problems: Iterable[Problem], entries: Iterable[JobEntry], manifests: Iterable[Document], sources: Sources
) -> Iterator[Problem]:
    """The problems that were found in the jobs, with the paths of the files that they come from."""
    queues = {f"{entry.namespace}/{entry.job_name(1)}": f"jobs[{entry.name}].queue" for entry in entries}
    places = {f"{data['metadata'].get('namespace') or 'default'}/{data['metadata']['name']}": where
              for where, data in manifests}  # fmt: skip
    for problem in problems:
        kind, _, rest = problem.path.partition(" ")
        key = rest[: min((rest.find(end) for end in ".( " if end in rest), default=len(rest))]
        if problem.path.startswith("jobs["):
            yield from _behind(sources.jobs, [problem])
        elif kind == "workload" and key in queues:
            yield from _behind(sources.jobs, [replace(problem, path=queues[key])])
        elif kind in (*QUEUED, "workload") and key in places:
            yield problem.behind(places[key])
        else:
            yield problem


def _behind(source: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    return (problem.behind(source) if source else problem for problem in problems)


def _check_steps(file: WorkloadFile, manifests: Iterable[Document]) -> Iterator[Problem]:
    steps = {str(inside(data, "metadata", "labels").get(STEP_LABEL)) for _, data in manifests}
    for name in file.steps:
        if name not in steps:
            wrong = f"no job has the label {STEP_LABEL} with this value"
            yield UNKNOWN_NAME.at(f"steps.{name}", wrong, "remove it, or label the jobs")


def _check_dispatcher(fleet: FleetSpec) -> Iterator[Problem]:
    settings = fleet.multi_kueue
    if settings is not None and settings.dispatcher == "External":
        if settings.dispatcher_name != DISPATCHER_NAME:
            wrong = f"what {settings.dispatcher_name} decides is not modelled"
            yield NOT_MODELLED.at("multiKueue.external.name", wrong, f"use {DISPATCHER_NAME}, AllAtOnce or Incremental")
        elif fleet.controller is None:
            wrong = f"{DISPATCHER_NAME} needs the section controller"
            yield NEEDED.at("multiKueue.external.name", wrong, "add that section")


def _check_file(fleet: FleetSpec, file: WorkloadFile) -> Iterator[Problem]:
    known_names = {
        "cluster": list(fleet.cluster_names),
        "flavor": [flavor.name for flavor in fleet.flavors],
        "check": [check.name for check in fleet.admission_checks],
    }
    for index, wait in enumerate(file.waits):
        yield from _unknown(f"waits[{index}]", {name: getattr(wait, name) for name in known_names}, known_names)
    for index, reclaim in enumerate(file.reclaims):
        yield from _unknown(f"reclaims[{index}]", {"cluster": reclaim.cluster, "flavor": reclaim.flavor}, known_names)
    for index, out in enumerate(file.stock_outs):
        yield from _unknown(f"stockOuts[{index}]", {"cluster": out.cluster, "flavor": out.flavor}, known_names)
    for index, outage in enumerate(file.outages):
        yield from _unknown(f"outages[{index}]", {"cluster": outage.cluster}, {"cluster": fleet.worker_names})
    classes = {item.name for item in fleet.workload_priority_classes}
    for job in file.jobs:
        if job.priority_class is not None and job.priority_class not in classes:
            wrong = f"there is no WorkloadPriorityClass {job.priority_class}"
            fix = instead(job.priority_class, sorted(classes), "WorkloadPriorityClasses")
            yield UNKNOWN_NAME.at(f"jobs[{job.name}].priorityClass", wrong, fix)
        yield from _check_entry(fleet, job)
    if file.begin is None and any(check.windows for check in fleet_checks(fleet)):
        yield NEEDED.at("begin", "not set, but an admission check has windows", "write what time second 0 is")
    elif file.begin is None and quota_windows(fleet):
        yield NEEDED.at("begin", "not set, but quotas have windows", "write what time second 0 is")


def _check_entry(fleet: FleetSpec, job: JobEntry) -> Iterator[Problem]:
    """Labels that no node has, and run times that DWS refuses: such a job would be admitted here, and run."""
    name = cluster_queue_of(fleet).get(f"{job.namespace}/{job.queue}", "")
    if (queue := fleet.queue(name)) is None:
        return  # Said where the job is read.
    container = {"resources": {"requests": {resource: str(amount) for resource, amount in job.requests.items()}}}
    pods = PodSetTemplate("main", job.pods, {"spec": {"nodeSelector": job.node_selector, "containers": [container]}})
    if job.node_selector and (fault := nowhere(fleet, queue, pods)) is not None:
        yield fault.rule.at(f"jobs[{job.name}].nodeSelector", fault.wrong, fault.fix)
    if (fault := run_duration_fault(fleet, name, job.max_run_seconds)) is not None:
        yield fault.rule.at(f"jobs[{job.name}].maxRunSeconds", fault.wrong, fault.fix)


def warn_of_run_times(fleet: FleetSpec, entries: Iterable[JobEntry]) -> Iterator[Problem]:
    """Jobs of the workload file that run longer than the nodes live that DWS makes for them."""
    queues = cluster_queue_of(fleet)
    for entry in entries:
        name, runs = queues.get(f"{entry.namespace}/{entry.queue}", ""), entry.run_seconds
        times = {"runSeconds": (max(runs.numbers), min(runs.numbers))} if runs is not None else {}
        if entry.max_run_seconds is not None:
            times["maxRunSeconds"] = (float(entry.max_run_seconds),) * 2
        for field, (most, least) in times.items():
            if (fault := run_time_fault(fleet, name, most, may=least < most)) is not None:
                yield fault.rule.at(f"jobs[{entry.name}].{field}", fault.wrong, fault.fix, "warning")


def _unknown(
    path: str, names_by_kind: Mapping[str, str | None], known_names: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    for name, value in names_by_kind.items():
        if value is not None and value not in known_names[name]:
            names_known = ", ".join(sorted(known_names[name])) or "none"
            yield UNKNOWN_NAME.at(f"{path}.{name}", f"the fleet has no {name} {value}", f"it has {names_known}")


def _check_names(submissions: Iterable[Submission], manifests: Iterable[Document]) -> Iterator[Problem]:
    job_keys = {key_of(data) for _, data in manifests if data["kind"] == "Job"}
    for entry, name, _, _ in submissions:
        key = f"{entry.namespace}/{name}"
        if key in job_keys:
            yield LISTED_TWICE.at(f"jobs[{entry.name}].name", f"{key} is listed twice", "name it differently")
        job_keys.add(key)
