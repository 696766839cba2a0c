"""The fleet's own controller on the manager.

In: the objects of `render_controller`, and a kubeconfig for each worker. Out: a Deployment that is ready.
What it may read on a worker is a `WorkerAccess` with the objects of `render_controller_worker_access`.
"""

import base64
from collections.abc import Mapping, Sequence

import pulumi

from kueue_fleet.kueue.applied_objects import KubernetesObject
from kueue_fleet.kueue.component import declare_object, object_labels
from kueue_fleet.kueue_api import Manifest
from kueue_fleet.kueue_api.manifests import manifest
from kueue_fleet.objects.controller import WORKERS_SECRET


class AdmissionController(pulumi.ComponentResource):
    """Dispatcher, admission checks and watchdog: one Deployment, with all that it needs."""

    objects: dict[str, KubernetesObject]
    """The objects by kind; where there are several of a kind, the others by kind, namespace and name."""
    workers: KubernetesObject
    """The Secret with the workers' kubeconfigs."""

    def __init__(
        self,
        name: str,
        objects: Sequence[Manifest],
        *,
        kubeconfigs: Mapping[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the objects, each after the one before it, and the Secret before the Deployment.

        `kubeconfigs` gives each worker's kubeconfig, as `WorkerAccess.kubeconfig` has it. The provider in `opts` is the
        manager's.

        Raises:
            ValueError: there is no Deployment among the objects.
        """
        super().__init__("kueue-fleet:index:AdmissionController", name, None, opts)
        deployments = [made for made in objects if made["kind"] == "Deployment"]
        if len(deployments) != 1:
            raise ValueError(
                f"AdmissionController {name}: {len(deployments)} Deployments were given; pass what render_controller "
                "returns for the manager of a fleet with an admissionController"
            )
        deleted_with = opts.deleted_with if opts else None
        self.objects = {}
        last: list[pulumi.Resource] = []
        for label, each in zip(object_labels(objects), objects, strict=True):
            if each["kind"] == "Deployment":
                self.workers = self._secret(name, each["metadata"]["namespace"], kubeconfigs, deleted_with)
                last.append(self.workers)
            made = declare_object(self, f"{name}/{label}", each, deleted_with=deleted_with, depends_on=last)
            self.objects[label] = made
            last = [made]
        self.register_outputs({})

    def _secret(
        self,
        name: str,
        namespace: str,
        kubeconfigs: Mapping[str, pulumi.Input[str]],
        deleted_with: pulumi.Resource | None,
    ) -> KubernetesObject:
        data = {
            worker: pulumi.Output.secret(kubeconfig).apply(lambda text: base64.b64encode(text.encode()).decode())
            for worker, kubeconfig in kubeconfigs.items()
        }
        return declare_object(
            self,
            f"{name}/workers",
            manifest("v1", "Secret", WORKERS_SECRET, namespace, type="Opaque", data=data),
            deleted_with=deleted_with,
            depends_on=list(self.objects.values())[-1:],
        )
