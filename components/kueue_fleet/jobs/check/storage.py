"""Whether jobs can mount what they name, and whether it is in the regions of their team.

Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-setup (the annotation and
the service account).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kueue_admission.kernel.manifest import inside, maps_in
from kueue_admission.kernel.problem import Problem, Severity
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.storage import Bucket, GcsFuse, StorageEntry
from kueue_fleet.fleet_file.model.storage_places import storage_places
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.gke.google_syntax import repository_location
from kueue_fleet.gke.labels import GCS_FUSE_VOLUMES
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.queued_job import QueuedJob, job_fault, of_pod_set

_BUCKET_DRIVER: Final = "gcsfuse.csi.storage.gke.io"

_Found = tuple[Severity, str, str]
"""Severity, what is wrong, and what to do."""


def claims_in(fleet: FleetSpec, namespace: str) -> dict[str, StorageEntry]:
    """The claims of the file in a namespace, by name."""
    team = fleet.team_of.get(namespace)
    return {entry.name: entry for entry in fleet.storage if team in entry.teams}


@job_check
def check_storage_jobs(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Claims that are not there, buckets that a pod gets no hold of, and data or images in other regions."""
    queue = fleet.queue(job.queue)
    clusters = (
        [queue_cluster for queue_cluster in fleet.queue_clusters(queue) if queue_cluster in fleet.job_clusters]
        if queue
        else []
    )
    for template in job.pod_sets if queue is not None else ():
        problems = _of_pods(fleet, job.namespace, clusters, fleet.team_in(job.namespace), template.template)
        for severity, wrong, fix in dict.fromkeys(problems):
            yield of_pod_set(job, template, job_fault(wrong, fix), severity)


def _of_pods(
    fleet: FleetSpec, namespace: str, clusters: list[str], team: TeamEntry | None, template: Mapping[str, Any]
) -> Iterator[_Found]:
    spec = inside(template, "spec")
    claims, buckets = claims_in(fleet, namespace), False
    for volume in maps_in(spec.get("volumes")):
        name = inside(volume, "persistentVolumeClaim").get("claimName")
        if name is not None:
            yield from _claim(fleet, namespace, clusters, str(name))
            buckets |= name in claims and isinstance(claims[name].volume, GcsFuse)
        elif inside(volume, "csi").get("driver") == _BUCKET_DRIVER:
            buckets = True
            bucket = str(inside(volume, "csi", "volumeAttributes").get("bucketName"))
            yield from _inline(fleet, team, bucket)
    if buckets:
        yield from _fuse(team, spec, inside(template, "metadata", "annotations"))
    yield from _images(fleet, team, spec)


def _claim(fleet: FleetSpec, namespace: str, clusters: list[str], name: str) -> Iterator[_Found]:
    entry = claims_in(fleet, namespace).get(name)
    if entry is None:
        elsewhere = next((entry for entry in fleet.storage if entry.name == name), None)
        wrong = f"mounts claim {name}, which the file does not have in namespace {namespace}, so that its pods wait"
        if elsewhere is not None:
            yield "error", wrong, f"add the team of {namespace} to storage[{name}].teams"
        else:
            yield "warning", f"{wrong} unless somebody makes it", "add it to storage, or make sure that it is there"
        return
    missing_clusters = [cluster for cluster in clusters if cluster not in fleet.clusters_of(entry)]
    if missing_clusters:
        wrong = f"mounts claim {name}, which is not on {listed(missing_clusters)}, where its queue may send it"
        severity: Severity = "error" if missing_clusters == clusters else "warning"
        yield severity, wrong, f"add {listed(missing_clusters)} to storage[{name}].clusters, or use another queue"


def _inline(fleet: FleetSpec, team: TeamEntry | None, bucket: str) -> Iterator[_Found]:
    """A bucket that is mounted by its name; where one is that the file does not have is not known."""
    allowed_regions = fleet.allowed_regions(team) if team is not None else ()
    for entry in fleet.storage if allowed_regions else ():
        for place in storage_places(fleet, entry) if isinstance(entry.volume, Bucket) else ():
            where = place.location.lower()
            if place.name == bucket and where not in allowed_regions:
                yield "error", f"mounts bucket {bucket} in {where}, where its team may have no data", "mount another"


def _fuse(team: TeamEntry | None, spec: Mapping[str, Any], annotations: Mapping[str, Any]) -> Iterator[_Found]:
    if str(annotations.get(GCS_FUSE_VOLUMES)).lower() != "true":
        wrong = f"mounts a bucket without the annotation {GCS_FUSE_VOLUMES}, and GKE adds what mounts it by that"
        yield "error", wrong, f'add {GCS_FUSE_VOLUMES}: "true" to the annotations of its pods'
    account = team.service_account_name if team is not None else None
    if account is not None and spec.get("serviceAccountName") != account:
        account_name = spec.get("serviceAccountName") or "the namespace's default"
        wrong = f"mounts a bucket as service account {account_name}, which is not that of its team"
        yield "error", wrong, f"write serviceAccountName: {account}"


def _images(fleet: FleetSpec, team: TeamEntry | None, spec: Mapping[str, Any]) -> Iterator[_Found]:
    """Images of Artifact Registry say in their names where they are."""
    allowed_regions = fleet.allowed_regions(team) if team is not None else ()
    for container in (
        (*maps_in(spec.get("containers")), *maps_in(spec.get("initContainers"))) if allowed_regions else ()
    ):
        location = repository_location(str(container.get("image")))
        if location is not None and location not in allowed_regions:
            wrong = (
                f"has an image from {location}, and what belongs to its team stays in {listed(list(allowed_regions))}"
            )
            yield "warning", wrong, "use a repository there, or make sure that the image holds nothing of the team's"
