"""A job as the checks see it, each from its manifest once, and how they say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.manifest import Manifest, inside
from kueue_admission.kernel.names import QUEUE_LABEL
from kueue_admission.kernel.problem import Problem, Rule, Severity
from kueue_admission.read.fields import Fields
from kueue_admission.read.job_pod_sets import roles_of
from kueue_admission.read.manifests import label_of
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cluster_queue_of


@dataclass(frozen=True, slots=True)
class PodSetTemplate:
    """The pods of one role of a job, as its manifest has them."""

    name: str
    count: int
    template: Mapping[str, Any]
    path: str = ""
    """Where the manifest has the template."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that was read without problems, and where it waits."""

    document: Document
    queue: str
    """Its ClusterQueue; empty, where it has none."""
    pod_sets: tuple[PodSetTemplate, ...]
    claims: Sequence[Document] = field(default=(), repr=False)
    """The objects beside the jobs by which pods claim devices."""

    @property
    def data(self) -> Mapping[str, Any]:
        """Its manifest."""
        return self.document.data

    @property
    def kind(self) -> str:
        """Such as `JobSet`."""
        return str(self.data["kind"])

    @property
    def namespace(self) -> str:
        """Where it is submitted."""
        return str(inside(self.data, "metadata").get("namespace") or "default")


def pod_set_templates(job: Mapping[str, Any]) -> list[PodSetTemplate]:
    """The pod sets of a job that was read without problems."""
    roles = roles_of(Fields(job, "", []))
    return [PodSetTemplate(role.name, role.count, role.template.data, role.template.path) for role in roles]


def queued_jobs(
    fleet: FleetSpec, manifests: Iterable[Document], claims: Sequence[Document] = ()
) -> Iterator[QueuedJob]:
    """Each job with its ClusterQueue and its pod sets."""
    queues = cluster_queue_of(fleet)
    for document in manifests:
        queue = queues.get(queue_key(document.data), "")
        yield QueuedJob(document, queue, tuple(pod_set_templates(document.data)), claims)


def queue_key(job: Manifest) -> str:
    """Namespace and name of the LocalQueue that the job names."""
    metadata = job["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{(metadata.get('labels') or {}).get(QUEUE_LABEL)}"


def job_fault(wrong: str, fix: str) -> Fault:
    """What is wrong with a pod set, by which the job is refused or waits."""
    return Fault(wrong, fix, JOB)


def of_pod_set(job: QueuedJob, pod_set: PodSetTemplate, fault: Fault, severity: Severity | None = None) -> Problem:
    """The problem that a pod set of the job has this fault."""
    problem = of_job(job.document, fault.rule, f"pod set {pod_set.name} {fault.wrong}", fault.fix, severity)
    place = fault.rule.at(f"{label_of(job.data)}.{pod_set.path}", "", "").behind(job.document.where)
    return replace(problem, line=place.line)


def of_job(job: Document, rule: Rule, wrong: str, fix: str, severity: Severity | None = None) -> Problem:
    """The problem that the job breaks a rule; `severity`: where it is not the rule's own."""
    return rule.at(label_of(job.data), wrong, fix, severity).behind(job.where)
