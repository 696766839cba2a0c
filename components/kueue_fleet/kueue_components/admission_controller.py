"""The fleet's own controller on the manager.

What it may read on a worker is a `WorkerAccess` with the objects of `render_controller_worker_access`.
"""

from collections.abc import Mapping, Sequence

import pulumi

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel import SpecError
from kueue_admission.kernel.manifest import Manifest, inside
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.kueue_components.applied_objects import KubernetesObject
from kueue_fleet.kueue_components.component import Component, WholeManifest, declare_object, object_labels
from kueue_fleet.kueue_components.credentials import kubeconfig_secret
from kueue_fleet.objects.controller import WORKERS_NAME
from kueue_fleet.settings.tokens import CONTROLLER_NAME


class AdmissionController(Component):
    """Dispatcher, admission checks and watchdog, and the page for teams: Deployments with all that they need."""

    objects: dict[str, KubernetesObject]
    """The objects by kind; where there are several of a kind, the others by kind, namespace and name."""
    workers: dict[str, KubernetesObject]
    """The Secret or ConfigMap with a worker's kubeconfig, by worker."""

    def __init__(
        self,
        name: str,
        objects: Sequence[WholeManifest],
        *,
        kubeconfigs: Mapping[str, pulumi.Input[str]],
        image: "pulumi.Input[str] | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the objects, each after the one before it, and the Secrets before the Deployment.

        `kubeconfigs` gives each worker's kubeconfig, as `WorkerAccess.kubeconfig` has it. `image` takes the place of
        the one in each Deployment, such as one that the program builds. The provider in `opts` is the manager's.

        Raises:
            SpecError: the controller's Deployment is not among the objects, or the kubeconfig of a worker is missing.
        """
        super().__init__(name, opts)
        controllers = [item for item in objects if _is_controller(item) and "namespace" in item["metadata"]]
        if len(controllers) != 1:
            wrong = f"{len(controllers)} Deployments in a namespace are given"
            fix = "give what render_controller returns for a manager"
            raise SpecError([COMPONENT.at(f"AdmissionController {name}.objects", wrong, fix)])
        self.objects = {}
        last: list[pulumi.Resource] = []
        for label, item in zip(object_labels(objects), objects, strict=True):
            if _is_controller(item):
                self.workers = self._secrets(name, item, kubeconfigs)
                last.extend(self.workers.values())
            declared = _with_image(item, image) if item["kind"] == "Deployment" and image is not None else item
            resource = declare_object(self, f"{name}/{label}", declared, depends_on=last)
            self.objects[label] = resource
            last = [resource]
        self._give_out()

    def _secrets(
        self, name: str, deployment: Manifest, kubeconfigs: Mapping[str, pulumi.Input[str]]
    ) -> dict[str, KubernetesObject]:
        """The Secrets that the Deployment mounts; or the ConfigMap, where no kubeconfig has a token."""
        volumes: Sequence[Manifest] = inside(deployment, "spec", "template", "spec").get("volumes") or ()
        namespace, before = deployment["metadata"]["namespace"], list(self.objects.values())[-1:]
        if any(volume.get("configMap", {}).get("name") == WORKERS_NAME for volume in volumes):
            files = manifest("v1", "ConfigMap", WORKERS_NAME, namespace, data=dict(kubeconfigs))
            resource = declare_object(self, f"{name}/workers", files, depends_on=before)
            return dict.fromkeys(kubeconfigs, resource)
        mounted_secrets = {
            source["secret"]["items"][0]["path"]: source["secret"]["name"]
            for volume in volumes
            for source in volume.get("projected", {}).get("sources", ())
        }
        missing_names = sorted(set(mounted_secrets) - set(kubeconfigs))
        if missing_names:
            wrong = f"there is none of {missing_names[0]}"
            raise SpecError([COMPONENT.at(f"AdmissionController {name}.kubeconfigs", wrong, "add it")])
        return {
            worker: kubeconfig_secret(
                self, f"{name}/workers/{worker}", secret, namespace, kubeconfigs[worker], depends_on=before
            )
            for worker, secret in mounted_secrets.items()
        }


def _is_controller(made_manifest: Manifest) -> bool:
    return (made_manifest["kind"], made_manifest["metadata"]["name"]) == ("Deployment", CONTROLLER_NAME)


def _with_image(deployment: Manifest, image: pulumi.Input[str]) -> Manifest:
    """The Deployment, whose pod has one container, with another image."""
    template = deployment["spec"]["template"]
    containers = [{**container, "image": image} for container in template["spec"]["containers"]]
    changed_template = {**template, "spec": {**template["spec"], "containers": containers}}
    return {**deployment, "spec": {**deployment["spec"], "template": changed_template}}
