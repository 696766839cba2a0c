"""What a ClusterQueue refers to, followed to the end: its AdmissionChecks, their configuration, clusters, credentials.

Reads objects as they are printed, with the conditions that Kueue set on them. An object that is not among them counts
as missing where others of its kind are there, or where Kueue says that it is; else the input does not tell.
Source: kueue@v0.19.2 pkg/controller/admissionchecks/{multikueue,provisioning}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kueue_admission.decide.model import ClusterQueue
from kueue_admission.explain.answer import Link
from kueue_admission.kernel.manifest import Manifest, inside
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER
from kueue_admission.read.lost_capacity import LostCapacity, lost_capacity
from kueue_admission.read.printed import Printed

_WITH_PARAMETERS: Final = (MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER)
_NOT_FOUND: Final = "NotFound"


class Links:
    """The objects of one cluster by kind and name; where it lists none of a kind, that kind is not known."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        self._found: dict[str, dict[str, Manifest]] = {}
        for manifest in manifests:
            self._found.setdefault(str(manifest.get("kind")), {})[_name(manifest)] = manifest

    def broken(self, queue: ClusterQueue) -> tuple[Link, ...]:
        """What is missing or not Active below the ClusterQueue, each with its cause behind it."""
        return tuple(link for check in queue.checks for link in self._check(queue.name, check.name))

    def lost(self, queue: str) -> tuple[LostCapacity, ...]:
        """What the flavors of the ClusterQueue lost, where its quotas follow capacity."""
        return lost_capacity(Printed.of(self._found.get("ClusterQueue", {}).get(queue, {})))

    def _check(self, queue: str, name: str) -> Iterator[Link]:
        check = self._found.get("AdmissionCheck", {}).get(name)
        if check is None:
            undo = f"create AdmissionCheck {name}, or remove it from admissionChecksStrategy of ClusterQueue {queue}"
            yield Link("AdmissionCheck", name, _NOT_FOUND, "does not exist", undo)
            return
        controller = str(inside(check, "spec").get("controllerName"))
        parameters = inside(check, "spec", "parameters")
        inactive = _inactive(check)
        below: list[Link] = []
        if parameters:
            below = list(self._parameters(name, parameters, "" if inactive is None else inactive[1]))
        elif inactive is not None and controller in _WITH_PARAMETERS:
            below = [
                Link(
                    "AdmissionCheck",
                    name,
                    "NoParameters",
                    "has no parameters",
                    f"give AdmissionCheck {name} parameters",
                )
            ]
        if inactive is not None:
            undo = f"see what its controller {controller} says: kubectl describe admissioncheck {name}"
            yield Link("AdmissionCheck", name, *inactive, "" if below else undo)
        yield from below

    def _parameters(self, check: str, parameters: Manifest, text: str) -> Iterator[Link]:
        """`text`: what Kueue says of a check that is not Active."""
        kind, name = str(parameters.get("kind")), str(parameters.get("name"))
        config = self._found.get(kind, {}).get(name)
        if config is None:
            yield from self._missing(kind, name, f"AdmissionCheck {check}", text, is_gone="not found" in text)
        elif kind == "MultiKueueConfig":
            clusters = inside(config, "spec").get("clusters")
            names = [str(cluster) for cluster in clusters] if isinstance(clusters, list) else []
            below = [link for link_name in names for link in self._cluster(link_name, name, text)]
            if below:
                yield Link(kind, name, "", f"names {', '.join(names)}")
            yield from below

    def _cluster(self, name: str, config: str, text: str) -> Iterator[Link]:
        cluster = self._found.get("MultiKueueCluster", {}).get(name)
        if cluster is None:
            missing_clusters = text.partition("Inactive clusters")[0]
            is_gone = name in missing_clusters.replace("[", " ").replace("]", " ").split()
            yield from self._missing("MultiKueueCluster", name, f"MultiKueueConfig {config}", text, is_gone=is_gone)
            return
        inactive = _inactive(cluster)
        if inactive is None:
            return
        below = list(_credentials(cluster, *inactive))
        undo = (
            f"see whether the API server of {name} answers Kueue on the manager, and takes its credentials: kubectl "
            f"describe multikueuecluster {name}"
        )
        yield Link("MultiKueueCluster", name, *inactive, "" if below else undo)
        yield from below

    def _missing(self, kind: str, name: str, named_by: str, text: str, *, is_gone: bool) -> Iterator[Link]:
        """`is_gone`: Kueue says so."""
        if is_gone or self._found.get(kind):
            undo = f"create {kind} {name}, or name another one in {named_by}"
            yield Link(kind, name, _NOT_FOUND, f"does not exist; {named_by} names it", undo)
        elif text:
            undo = f"see whether it is there: kubectl get {kind.lower()} {name} -o yaml"
            yield Link(kind, name, "Unknown", f"is not among the objects given; {named_by} names it", undo)


def _name(manifest: Manifest) -> str:
    return str(inside(manifest, "metadata").get("name"))


def _inactive(manifest: Manifest) -> tuple[str, str] | None:
    """Reason and message of the condition Active where it is not True; None also where there is none yet."""
    printed_object = Printed.of(manifest)
    if "Active" not in printed_object.conditions or printed_object.is_true("Active"):
        return None
    return printed_object.reason("Active"), printed_object.message("Active")


def _credentials(cluster: Manifest, reason: str, message: str) -> Iterator[Link]:
    """What holds the credentials of a MultiKueueCluster that they are the fault of."""
    source: Any = inside(cluster, "spec", "clusterSource")
    name, kubeconfig, profile = _name(cluster), inside(source, "kubeConfig"), inside(source, "clusterProfileRef")
    is_missing = "not found" in message or "no such file" in message
    state = (_NOT_FOUND, "does not exist") if is_missing else (reason, message)
    if kubeconfig and reason in ("BadKubeConfig", "InsecureKubeConfig"):
        location = str(kubeconfig.get("location"))
        if kubeconfig.get("locationType", "Secret") == "Secret":
            kind, place = "Secret", location
            undo = (
                f"create Secret {location} in Kueue's namespace, with a kubeconfig of {name} under the key kubeconfig"
            )
        else:
            kind, place = "file", f"{location} of Kueue's pods"
            undo = f"mount a kubeconfig of {name} at {location}"
        yield Link(
            kind, place, *state, undo if is_missing else f"correct the kubeconfig of {name} in {kind} {location}"
        )
    elif profile and reason == "BadClusterProfile":
        place = str(profile.get("name"))
        what = "create" if is_missing else "correct"
        yield Link("ClusterProfile", place, *state, f"{what} ClusterProfile {place}")
