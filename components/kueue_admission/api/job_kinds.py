"""The kinds of job that Kueue manages: their API, and where they have the pods that they make.

Roles, MultiKueue's rights and the policy on the jobs of teams are all made from it.

Source: kueue@v0.19.2 pkg/controller/jobs, the kinds' own APIs at the versions of its go.mod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple


class JobKind(NamedTuple):
    """A kind of job."""

    group: str
    """API group; the empty one is Kubernetes' core."""
    plural: str
    """Resource, as in URLs and roles."""
    kind: str
    """Kind, as in manifests."""
    version: str = "v1"
    """Version of the API that Kueue reads."""
    pod_specs: str = ""
    """CEL: the specs of the pods that `object` makes, a list. Empty: not known."""
    other_classes: str = ""
    """CEL: the PriorityClasses that `object` names beside those of `pod_specs`, a list with an empty text for none."""
    managed_by: str = ""
    """CEL: the controller that `object` names as its own, an empty text where it names none. Empty: the kind has no
    such field, or Kueue does not set it."""
    counts_more: bool = False
    """Whether Kueue counts more than what the containers of `pod_specs` request."""

    @property
    def pod_annotations(self) -> str:
        """CEL: the annotations of the pods of `pod_specs`, a list of maps. Empty: not known."""
        return self.pod_specs.replace(_SPEC, ".?metadata.?annotations.orValue({})")


_SPEC: Final = ".?spec.orValue({})"
_MANAGED_BY: Final = "object.spec.?managedBy.orValue('')"


def _of(*templates: str) -> str:
    """The pods of single templates."""
    return "[" + ", ".join(_spec(template) for template in templates) + "]"


def _pods_of_items(items: str, template: str) -> str:
    """The pods of a list, each item of which has a template."""
    return f"{items}.orValue([]).map(item, {_spec(f'item.{template}')})"


def _spec(template: str) -> str:
    return f"{template}{_SPEC}"


def _kubeflow(kind: str, replicas: str, version: str = "v1") -> JobKind:
    """A kind of the training operator, whose replicas are a map by their role."""
    every = f"object.spec.?{replicas}.orValue({{}})"
    pods = f"{every}.map(role, {_spec(f'{every}[role].?template')})"
    classes = "[object.spec.?runPolicy.?schedulingPolicy.?priorityClass.orValue('')]"
    managed_by = "object.spec.?runPolicy.?managedBy.orValue('')"
    return JobKind("kubeflow.org", f"{kind.lower()}s", kind, version, pods, classes, managed_by)


def _ray(plural: str, kind: str, cluster: str, *further: str) -> JobKind:
    """A kind of KubeRay; `cluster` is where it has the spec of a RayCluster."""
    head = _of(f"{cluster}.?headGroupSpec.?template", *further)
    pods = f"{head} + {_pods_of_items(f'{cluster}.?workerGroupSpecs', '?template')}"
    return JobKind("ray.io", plural, kind, "v1", pods, managed_by=_MANAGED_BY, counts_more=True)


KINDS: Final[Mapping[str, JobKind]] = {
    "batch/job": JobKind("batch", "jobs", "Job", "v1", _of("object.spec.?template"), managed_by=_MANAGED_BY),
    "jobset.x-k8s.io/jobset": JobKind(
        "jobset.x-k8s.io",
        "jobsets",
        "JobSet",
        "v1alpha2",
        _pods_of_items("object.spec.?replicatedJobs", "?template.?spec.?template"),
        managed_by=_MANAGED_BY,
    ),
    "kubeflow.org/mpijob": _kubeflow("MPIJob", "mpiReplicaSpecs", "v2beta1"),
    "kubeflow.org/paddlejob": _kubeflow("PaddleJob", "paddleReplicaSpecs"),
    "kubeflow.org/pytorchjob": _kubeflow("PyTorchJob", "pytorchReplicaSpecs"),
    "kubeflow.org/tfjob": _kubeflow("TFJob", "tfReplicaSpecs"),
    "kubeflow.org/xgboostjob": _kubeflow("XGBoostJob", "xgbReplicaSpecs"),
    "kubeflow.org/jaxjob": _kubeflow("JAXJob", "jaxReplicaSpecs"),
    "ray.io/rayjob": _ray("rayjobs", "RayJob", "object.spec.?rayClusterSpec", "object.spec.?submitterPodTemplate"),
    "ray.io/raycluster": _ray("rayclusters", "RayCluster", "object.?spec"),
    "ray.io/rayservice": _ray("rayservices", "RayService", "object.spec.?rayClusterConfig"),
    # Its pods are those of a TrainingRuntime, which members of teams cannot make.
    "trainer.kubeflow.org/trainjob": JobKind(
        "trainer.kubeflow.org", "trainjobs", "TrainJob", "v1alpha1", managed_by=_MANAGED_BY
    ),
    # Its components may be jobs, or pods.
    "workload.codeflare.dev/appwrapper": JobKind(
        "workload.codeflare.dev",
        "appwrappers",
        "AppWrapper",
        "v1beta2",
        " + ".join(
            _pods_of_items("object.spec.?components", template)
            for template in ("?template", "?template.?spec.?template", "?template.?spec.?jobTemplate.?spec.?template")
        ),
        managed_by=_MANAGED_BY,
        counts_more=True,
    ),
    "sparkoperator.k8s.io/sparkapplication": JobKind(
        "sparkoperator.k8s.io",
        "sparkapplications",
        "SparkApplication",
        "v1beta2",
        _of("object.spec.?driver.?template", "object.spec.?executor.?template"),
        "["
        + ", ".join(
            f"object.spec.?{path}.?priorityClassName.orValue('')"
            for path in ("driver", "executor", "batchSchedulerOptions")
        )
        + "]",
        counts_more=True,
    ),
    "leaderworkerset.x-k8s.io/leaderworkerset": JobKind(
        "leaderworkerset.x-k8s.io",
        "leaderworkersets",
        "LeaderWorkerSet",
        "v1",
        _of("object.spec.?leaderWorkerTemplate.?leaderTemplate", "object.spec.?leaderWorkerTemplate.?workerTemplate"),
    ),
    "pod": JobKind("", "pods", "Pod", "v1", _of("object")),
    "deployment": JobKind("apps", "deployments", "Deployment", "v1", _of("object.spec.?template")),
    "statefulset": JobKind("apps", "statefulsets", "StatefulSet", "v1", _of("object.spec.?template")),
}
"""By framework, as Kueue's Configuration names it."""
DISPATCHED_FRAMEWORKS: Final = frozenset(KINDS) - {"sparkoperator.k8s.io/sparkapplication"}
"""The frameworks that MultiKueue dispatches (kueue@v0.19.2 pkg/controller/jobs, MultiKueueAdapter)."""


def enabled_kinds(configuration: Mapping[str, Any]) -> tuple[JobKind, ...]:
    """What a Kueue with this Configuration manages: its frameworks, and external ones, Kind.version.group."""
    integrations = configuration.get("integrations") or {}
    frameworks = integrations.get("frameworks") or ["batch/job"]
    known_kinds = [KINDS[name] for name in frameworks if name in KINDS]
    return tuple(dict.fromkeys((*known_kinds, *external_kinds(integrations.get("externalFrameworks") or ()))))


def built_in_adapters(frameworks: Sequence[str]) -> set[str]:
    """The kinds, Kind.version.group, for which MultiKueue has a built-in adapter; pods and Deployments are left out."""
    kinds = [KINDS[name] for name in frameworks if name in DISPATCHED_FRAMEWORKS - {"pod", "deployment"}]
    return {f"{kind.kind}.{kind.version}.{kind.group}" for kind in kinds}


def external_kinds(names: Sequence[str]) -> tuple[JobKind, ...]:
    """Kinds that others than Kueue integrate, from their names, Kind.version.group."""
    split = (name.split(".", 2) for name in names if name.count(".") >= 2)
    return tuple(JobKind(group, plural_of(kind), kind, version) for kind, version, group in split)


def plural_of(kind: str) -> str:
    """The resource of a kind, guessed as Kubernetes does (apimachinery pkg/api/meta, UnsafeGuessKindToResource)."""
    lower = kind.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"
