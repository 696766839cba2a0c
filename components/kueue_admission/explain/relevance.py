"""Which of a dump's workloads can matter to the answer about one of them, before any of them is read closely.

A large cluster has thousands of workloads; what holds quota in another cohort tree, or waits for it, changes nothing
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kueue_admission.api.cohort_tree import roots_of
from kueue_admission.kernel.manifest import Manifest, inside, is_object, key_of
from kueue_admission.kernel.names import QUEUE_LABEL
from kueue_admission.read.dumped_configuration import configurations_in
from kueue_admission.read.job_pod_sets import PODS_FIELD
from kueue_admission.read.manifests import is_job, owners_of
from kueue_admission.read.printed import Printed, PrintedJob, PrintedWorkload, WorkloadState


class WorkloadIndex:
    """The workloads of one dump by every name they go by: their own, and those of the jobs that own them."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self.others: list[Manifest] = []
        self.workloads: dict[str, Manifest] = {}
        self._doubles: list[Manifest] = []
        self._found: dict[str, list[str]] = {}
        for manifest in manifests:
            if manifest.get("kind") != "Workload" and not is_job(manifest):
                self.others.append(manifest)
                continue
            key = key_of(manifest)
            if key in self.workloads:
                self._doubles.append(self.workloads[key])
            self.workloads[key] = manifest

    @property
    def names(self) -> Iterable[str]:
        """Every name, with and without the namespace."""
        return dict.fromkeys(
            owner_or_name
            for key, manifest in self.workloads.items()
            for name in (key, *_owners_of_workload(manifest))
            for owner_or_name in (name, name.partition("/")[2])
        )

    def keys(self, name: str) -> list[str]:
        """The workloads that go by this name."""
        if name not in self._found:
            short = name.rpartition("/")[2]
            self._found[name] = [
                key
                for key, manifest in self.workloads.items()
                if (key.endswith(short) and name in (key, key.partition("/")[2]))
                or any(name in (owner, owner.partition("/")[2]) for owner in _owners_of_workload(manifest, short))
            ]
        return self._found[name]

    @property
    def waiting(self) -> Sequence[tuple[str, str]]:
        """LocalQueue and key of the workloads that have yet to be admitted, by priority and age."""
        every = ((PrintedWorkload.of(manifest), key) for key, manifest in self.workloads.items())
        printed_workloads = [(printed_workload, key) for printed_workload, key in every if not printed_workload.parent]
        ahead = (WorkloadState.PENDING, WorkloadState.QUOTA_RESERVED)
        return [
            (self.queue_of(key), key)
            for _, _, key in sorted(
                (-printed_workload.spec.integer("priority"), printed_workload.created or 0.0, key)
                for printed_workload, key in printed_workloads
                if printed_workload.state in ahead
                and (printed_workload.kind == "Workload" or PrintedJob(printed_workload.fields).ended_at is None)
            )
        ]

    def queue_of(self, key: str) -> str:
        """The LocalQueue that the workload names, as `namespace/name`."""
        return _queue_of(key, self.workloads[key])

    def tree(self, key: str, local_queue: str) -> set[str] | None:
        """The ClusterQueues of the cohort tree where the workload is, or would come to this LocalQueue.

        None where that is not known, where topologies let all of them share nodes, or where pods that are not ready
        block the admission of all.
        """
        roots = _roots(self.others)
        queue = self._targets().get(local_queue)
        if key in self.workloads:
            queue = PrintedWorkload.of(self.workloads[key]).cluster_queue or queue
        blocks = (inside(text, "waitForPodsReady").get("blockAdmission") for _, text in configurations_in(self.others))
        if queue not in roots or any(m.get("kind") == "Topology" for m in self.others) or any(blocks):
            return None
        return {name for name, root in roots.items() if root == roots[queue]}

    def _targets(self) -> dict[str, str]:
        """The ClusterQueue of each LocalQueue."""
        queues = [other for other in self.others if other.get("kind") == "LocalQueue"]
        return {key_of(queue): str(inside(queue, "spec").get("clusterQueue")) for queue in queues}

    def relevant(self, key: str, local_queue: str) -> list[Manifest]:
        """Every object that can matter to the workload `key`, which is here or would come to this LocalQueue.

        All of them where `tree` does not know it.
        """
        tree, targets = self.tree(key, local_queue), self._targets()
        if tree is None:
            return [*self.others, *self.workloads.values(), *self._doubles]

        def matters(key: str, manifest: Manifest) -> bool:
            printed_workload = PrintedWorkload.of(manifest)
            queue_name = printed_workload.cluster_queue or targets.get(_queue_of(key, manifest))
            return queue_name in tree and not printed_workload.is_true("Finished")

        relevant_manifests = [m for name, m in self.workloads.items() if name == key or matters(name, m)]
        return [*self.others, *relevant_manifests, *self._doubles]


def _queue_of(key: str, manifest: Manifest) -> str:
    name = inside(manifest, "spec").get("queueName")
    if manifest.get("kind") != "Workload":
        name = inside(manifest, "metadata", "labels").get(QUEUE_LABEL)
    return f"{key.partition('/')[0]}/{name}"


def _owners_of_workload(manifest: Manifest, name: str | None = None) -> list[str]:
    """`namespace/name` of the jobs that own a Workload, with `name` of those called so; of a group, its pods."""
    if manifest.get("kind") != "Workload":
        return [key_of(pod) for pod in manifest.get(PODS_FIELD, ())]
    references = inside(manifest, "metadata").get("ownerReferences")
    if name is not None:
        for one in references if isinstance(references, list) else ():
            if is_object(one) and str(one.get("name")) == name:
                break
        else:
            return []
    return [owner for kind, owner in owners_of(manifest) if kind != "Workload"]


def _roots(manifests: Iterable[Manifest]) -> dict[str, str]:
    """The topmost cohort above each ClusterQueue, or the queue itself."""
    parents: dict[str, str | None] = {}
    queues: dict[str, str | None] = {}
    for printed_object in map(Printed.of, manifests):
        if printed_object.kind == "Cohort":
            parents[printed_object.name] = printed_object.spec.text("parentName") or None
        elif printed_object.kind == "ClusterQueue":
            queues[printed_object.name] = printed_object.spec.text("cohortName") or None
    return roots_of(queues, parents)
