"""What is wrong with the jobs for a fleet, in the words and paths of the files that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kueue_admission.api.job_kinds import KINDS
from kueue_admission.forms import syntax
from kueue_admission.forms.manifest import inside, is_object
from kueue_admission.forms.names import QUEUE_LABEL
from kueue_admission.read.manifests import QUEUED, WITH_QUEUE, is_job, label_of
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.raw import run_seconds_of
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration
from kueue_fleet.fleet_file.model.calendar_windows import fleet_checks
from kueue_fleet.fleet_file.model.dispatch import DISPATCHER_NAME
from kueue_fleet.simulation.workload_file import JobEntry, WorkloadFile

_PODS: Final = {
    "Job": ("spec", "template", "spec", "containers"),
    "JobSet": ("spec", "replicatedJobs"),
    "Pod": ("spec", "containers"),
}
"""Where kinds have what runs; of the others the parser says what is missing."""
STEP_LABEL: Final = "kueue-fleet.dev/step"
"""On a job: of which step it is, for `steps` of the workload file."""

Submission = tuple[JobEntry, str, float, float | None]
"""A job: its entry, name, second of arrival, and seconds it runs."""

_FIELDS: Final = {
    ".spec.template.spec.containers[0].resources.requests": ".requests",
    ".spec.template.spec.nodeSelector": ".nodeSelector",
    ".metadata.labels": ".labels",
}
"""Where fields of the workload file stand in the Job that is made of them."""


class Sources(NamedTuple):
    """The names of the files of the fleet and of its jobs; empty: none."""

    fleet: str
    jobs: str


UNNAMED: Final = Sources("", "")
"""Neither has a name."""


def check_jobs(
    fleet: FleetSpec,
    file: WorkloadFile,
    submitted: Sequence[Submission],
    manifests: Sequence[Document],
    sources: Sources,
) -> Iterator[str]:
    """Every problem that can be seen before the jobs are read as Kueue reads them."""
    yield from _behind(sources.fleet, _check_dispatcher(fleet))
    yield from _behind(sources.jobs, _check_file(fleet, file))
    yield from _behind(sources.jobs, _check_names(submitted))
    yield from check_kinds(fleet, manifests)
    yield from check_forms(manifests)
    yield from _behind(sources.jobs, _check_steps(file, manifests))
    if not submitted and not manifests:
        yield from _behind(sources.jobs, ["jobs: there are none; add some, or give --jobs"])


def check_kinds(fleet: FleetSpec, manifests: Iterable[Document]) -> Iterator[str]:
    """Objects that no simulation submits, and jobs that the fleet's Kueue does not manage or dispatch."""
    enabled = kueue_configuration(fleet, fleet.home)["integrations"].get("frameworks") or ()
    for where, data in manifests:
        kind = data["kind"]
        framework = next((name for name, known in KINDS.items() if known.kind == kind), "")
        if not is_job(data):
            yield f"{where}: is {_article(kind)} {kind}; {_not_a_job(kind)}"
        elif framework not in enabled:
            yield (
                f"{where}: is {_article(kind)} {kind}, which the fleet's Kueue does not manage; "
                f"add {framework} to kueue.configuration.integrations.frameworks"
            )


def check_forms(manifests: Iterable[Document]) -> Iterator[str]:
    """Names that Kubernetes refuses, jobs without pods, which would only be refused when they are submitted, and times
    that are none."""
    for document in manifests:
        where, data = document
        kind, metadata = data["kind"], data["metadata"]
        if not is_job(data):
            continue
        name = metadata.get("name")
        if reason := syntax.job_name(str(name or f"{metadata.get('generateName')}xxxxx")):
            yield f'{where}: {kind}.metadata.name: "{name or metadata.get("generateName")}" {reason}'
        if QUEUE_LABEL not in inside(metadata, "labels"):
            yield f"{where}: {label_of(data)}.metadata.labels: has no {QUEUE_LABEL}; name a LocalQueue there"
        path = _PODS.get(kind, ("spec",))
        value: object = data
        for depth, field in enumerate(path, 1):
            value = value.get(field) if is_object(value) else None
            wanted = "list" if field == path[-1] and kind in _PODS else "map"
            if not value or not isinstance(value, list if wanted == "list" else Mapping):
                wrong = f"is not a {wanted}" if value else "is missing or empty"
                fix = "a list of them" if wanted == "list" else "its fields below it"
                yield f"{where}: {label_of(data)}.{'.'.join(path[:depth])}: {wrong}; write {fix}"
                break
        else:
            try:
                run_seconds_of(document)
            except SimulationError as refused:
                yield from refused.problems


def _not_a_job(kind: str) -> str:
    if kind in WITH_QUEUE:
        return f"as a job it needs the label {QUEUE_LABEL}, and no uid"
    known = ", ".join(QUEUED[1:])
    return f"give jobs only, the fleet has the rest; kinds of jobs are {known}"


def _article(kind: str) -> str:
    return "an" if kind[:1] in "AEIOU" or kind.startswith("MPI") else "a"


def as_in_files(
    problems: Iterable[str], submitted: Iterable[Submission], manifests: Iterable[Document], sources: Sources
) -> Iterator[str]:
    """The problems that were found in the Jobs, with the paths of the files that they come from."""
    entries = {f"{entry.namespace}/{name}": entry.name for entry, name, _, _ in submitted}
    places = {f"{data['metadata'].get('namespace') or 'default'}/{data['metadata']['name']}": where
              for where, data in manifests}  # fmt: skip
    for problem in problems:
        kind, _, rest = problem.partition(" ")
        key = rest[: min((rest.find(end) for end in ".:( " if end in rest), default=len(rest))]
        if kind not in (*QUEUED, "workload") or key not in {*entries, *places}:
            yield problem
        elif key not in entries:
            yield f"{places[key]}: {problem}"
        else:
            text = rest.removeprefix(key)
            if "there is no LocalQueue" in text:
                text = f".queue{text[text.index(':') :]}"
            for longer, shorter in _FIELDS.items():
                text = text.replace(longer, shorter, 1)
            yield from _behind(sources.jobs, [f"jobs[{entries[key]}]{text}"])


def _behind(source: str, problems: Iterable[str]) -> Iterator[str]:
    return (f"{source}: {problem}" if source else problem for problem in problems)


def _check_steps(file: WorkloadFile, manifests: Iterable[Document]) -> Iterator[str]:
    steps = {str(inside(data, "metadata", "labels").get(STEP_LABEL)) for _, data in manifests}
    for name in file.steps:
        if name not in steps:
            yield f"steps.{name}: no job has the label {STEP_LABEL} with this value; remove it, or label the jobs"


def _check_dispatcher(fleet: FleetSpec) -> Iterator[str]:
    settings = fleet.multi_kueue
    if settings is not None and settings.dispatcher == "External":
        if settings.dispatcher_name != DISPATCHER_NAME:
            yield (
                f"multiKueue.external.name: what {settings.dispatcher_name} decides is not modelled; "
                f"use {DISPATCHER_NAME}, AllAtOnce or Incremental"
            )
        elif fleet.admission_controller is None:
            yield f"multiKueue.external.name: {DISPATCHER_NAME} needs admissionController; add that section"


def _check_file(fleet: FleetSpec, file: WorkloadFile) -> Iterator[str]:
    known = {
        "cluster": list(fleet.cluster_names),
        "flavor": [flavor.name for flavor in fleet.flavors],
        "check": [check.name for check in fleet.admission_checks],
    }
    for index, wait in enumerate(file.waits):
        yield from _unknown(f"waits[{index}]", {name: getattr(wait, name) for name in known}, known)
    for index, reclaim in enumerate(file.reclaims):
        yield from _unknown(f"reclaims[{index}]", {"cluster": reclaim.cluster, "flavor": reclaim.flavor}, known)
    for index, out in enumerate(file.stock_outs):
        yield from _unknown(f"stockOuts[{index}]", {"cluster": out.cluster, "flavor": out.flavor}, known)
    for index, outage in enumerate(file.outages):
        yield from _unknown(f"outages[{index}]", {"cluster": outage.cluster}, {"cluster": fleet.worker_names})
    classes = {item.name for item in fleet.workload_priority_classes}
    for job in file.jobs:
        if job.priority_class is not None and job.priority_class not in classes:
            yield (
                f"jobs[{job.name}].priorityClass: there is no WorkloadPriorityClass {job.priority_class}; "
                "add it, or name another"
            )
    if file.begin is None and any(check.calendar for check in fleet_checks(fleet)):
        yield "begin: not set, but an admission check has calendar windows; write what time second 0 is"


def _unknown(path: str, given: Mapping[str, str | None], known: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, value in given.items():
        if value is not None and value not in known[name]:
            found = ", ".join(sorted(known[name])) or "none"
            yield f"{path}.{name}: the fleet has no {name} {value}; it has {found}"


def _check_names(submitted: Iterable[Submission]) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for entry, name, _, _ in submitted:
        if (entry.namespace, name) in seen:
            yield f"jobs[{entry.name}].name: {entry.namespace}/{name} is listed twice; name it differently"
        seen.add((entry.namespace, name))
