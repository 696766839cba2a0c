"""ClusterQueues and LocalQueues.

Queues that are Active when they are done, unless they are stopped on purpose or wait for a controller that is not part
of the fleet.
"""

from functools import partial

import pulumi

from kueue_fleet.kueue.component import ObjectComponent, manifest_of
from kueue_fleet.kueue_api import ClusterQueueSpec, LocalQueueSpec, Manifest
from kueue_fleet.kueue_api.manifests import cluster_queue_manifest, local_queue_manifest


class ClusterQueue(ObjectComponent):
    """Quotas, and how jobs wait, borrow and preempt for them."""

    pulumi_type = "kueue-fleet:index:ClusterQueue"
    kind = "ClusterQueue"

    expect_active: bool
    """Whether the queue was waited for."""

    def __init__(
        self,
        name: str,
        spec: ClusterQueueSpec | Manifest,
        *,
        object_name: str | None = None,
        expect_active: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the queue.

        Give its flavors, checks and cohort in `opts.depends_on`: the queue is Active only with them, and they can be
        deleted only after it. Set `expect_active` to false where a check is answered by a controller that is installed
        later; a stopped queue is never waited for.
        """
        manifest = manifest_of(self.kind, spec, object_name or name, ClusterQueueSpec, cluster_queue_manifest)
        self.expect_active = expect_active and manifest["spec"]["stopPolicy"] == "None"
        self._declare(name, manifest, opts, expect_active=self.expect_active)


class LocalQueue(ObjectComponent):
    """Where a namespace's jobs enter a ClusterQueue."""

    pulumi_type = "kueue-fleet:index:LocalQueue"
    kind = "LocalQueue"

    def __init__(
        self,
        name: str,
        spec: LocalQueueSpec | Manifest,
        *,
        namespace: str | None = None,
        object_name: str | None = None,
        cluster_queue: ClusterQueue | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the queue.

        A model needs `namespace`; a manifest has its own. With `cluster_queue`, the LocalQueue is made after that queue
        and deleted before it, and is waited for if that queue is. Another ClusterQueue replaces the LocalQueue: running
        jobs continue, and waiting ones move to it.

        Raises:
            ValueError: a model without a namespace.
        """
        manifest = manifest_of(self.kind, spec, object_name or name, LocalQueueSpec, partial(_local_queue, namespace))
        stopped = manifest["spec"]["stopPolicy"] != "None"
        self._declare(
            name,
            manifest,
            opts,
            depends_on=[cluster_queue] if cluster_queue else [],
            expect_active=cluster_queue is not None and cluster_queue.expect_active and not stopped,
            replace_on_changes=["spec.clusterQueue"],
        )


def _local_queue(namespace: str | None, name: str, spec: LocalQueueSpec) -> Manifest:
    if namespace is None:
        raise ValueError(f"LocalQueue {name}: no namespace; give namespace=...")
    return local_queue_manifest(namespace, name, spec)
