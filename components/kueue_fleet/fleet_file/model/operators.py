"""The operators of kinds of jobs: Helm charts of pinned versions, and which of Kueue's frameworks each is for.

The versions are those that Kueue 0.19.2 is built with (kueue@v0.19.2 go.mod).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kueue_admission.api.job_kinds import KINDS
from kueue_admission.kernel import suggest
from kueue_admission.kernel.base import DnsLabel, RuledModel, SpecModel, Text
from kueue_admission.kernel.given import ListOfText
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.model.addresses import Chart, ImageRepository
from kueue_fleet.fleet_file.model.installations import Version
from kueue_fleet.fleet_file.rules.teams import FRAMEWORK


class Operator(SpecModel):
    """How the operator of a kind of job is installed on every cluster."""

    version: Version
    """Version of chart and operator."""
    chart: Chart
    """Helm chart, also of a mirror, or a path; or its name in `repository`."""
    repository: Chart | None = None
    """URL of the repository, where `chart` is a name in it."""
    image: ImageRepository
    """Repository of the image; the tag is `v` and the version."""
    namespace: DnsLabel
    """Where the operator runs."""

    def helm_values(self) -> dict[str, Any]:
        """Values of the chart."""
        return {"image": {"repository": self.image, "tag": f"v{self.version}"}}


class KubeRay(Operator):
    """How KubeRay is installed: RayJobs, RayClusters and RayServices."""

    version: Version = "1.6.2"
    """Version of chart and operator."""
    chart: Chart = "kuberay-operator"
    """Helm chart, also of a mirror, or a path; or its name in `repository`."""
    repository: Chart | None = "https://ray-project.github.io/kuberay-helm"
    """URL of the repository; null where `chart` is a whole reference."""
    image: ImageRepository = "quay.io/kuberay/operator"
    """Repository of the image; the tag is `v` and the version."""
    namespace: DnsLabel = "ray-system"
    """Where KubeRay runs."""


class LeaderWorkerSet(Operator):
    """How LeaderWorkerSet is installed."""

    version: Version = "0.9.0"
    """Version of chart and operator."""
    chart: Chart = "oci://registry.k8s.io/lws/charts/lws"
    """Helm chart, also of a mirror, or a path."""
    image: ImageRepository = "registry.k8s.io/lws/lws"
    """Repository of the image; the tag is `v` and the version."""
    namespace: DnsLabel = "lws-system"
    """Where LeaderWorkerSet runs."""

    def helm_values(self) -> dict[str, Any]:
        """Values of the chart."""
        image = {"repository": self.image, "tag": f"v{self.version}", "pullPolicy": "IfNotPresent"}
        return {"image": {"manager": image}}


class Trainer(Operator):
    """How Kubeflow Trainer is installed: TrainJobs. It makes JobSets, which `jobSet` installs."""

    version: Version = "2.2.1"
    """Version of chart and operator."""
    chart: Chart = "oci://ghcr.io/kubeflow/charts/kubeflow-trainer"
    """Helm chart, also of a mirror, or a path."""
    image: ImageRepository = "ghcr.io/kubeflow/trainer/trainer-controller-manager"
    """Repository of the image; the tag is `v` and the version."""
    namespace: DnsLabel = "kubeflow-system"
    """Where Trainer runs."""

    def helm_values(self) -> dict[str, Any]:
        """Values of the chart: no second JobSet, and no runtimes, which its webhooks refuse until it runs."""
        registry, _, repository = self.image.partition("/")
        return {
            "jobset": {"install": False},
            "image": {"registry": registry, "repository": repository, "tag": f"v{self.version}"},
        }


FRAMEWORKS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubeRay": ("ray.io/rayjob", "ray.io/raycluster", "ray.io/rayservice"),
    "leaderWorkerSet": ("leaderworkerset.x-k8s.io/leaderworkerset",),
    "trainer": ("trainer.kubeflow.org/trainjob",),
}
"""Kueue's frameworks by the operator that they need."""
BUILT_IN: Final = frozenset({"batch/job", "pod", "deployment", "statefulset"})
"""Frameworks of Kubernetes' own kinds, which need no operator."""


class Operators(RuledModel):
    """The operators that the fleet installs, on every cluster. Kueue manages their kinds of jobs."""

    kube_ray: KubeRay | None = None
    """KubeRay, `{}` for the defaults; absent: not installed."""
    leader_worker_set: LeaderWorkerSet | None = None
    """LeaderWorkerSet, `{}` for the defaults; absent: not installed."""
    trainer: Trainer | None = None
    """Kubeflow Trainer, `{}` for the defaults; absent: not installed."""
    installed_elsewhere: ListOfText[Text] = ()
    """Frameworks of Kueue, such as kubeflow.org/mpijob, whose operators are there without the fleet."""

    @property
    def installed(self) -> dict[str, Operator]:
        """Those that the fleet installs, by their field in the file."""
        operators = {"kubeRay": self.kube_ray, "leaderWorkerSet": self.leader_worker_set, "trainer": self.trainer}
        return {name: operator for name, operator in operators.items() if operator is not None}

    @property
    def frameworks(self) -> list[str]:
        """The frameworks of those that the fleet installs."""
        return [framework for name in self.installed for framework in FRAMEWORKS[name]]

    def own_problems(self) -> Iterator[Problem]:
        """Frameworks that Kueue has, each once."""
        for index, name in enumerate(self.installed_elsewhere):
            if name in self.frameworks:
                path = f"installedElsewhere[{index}]"
                yield FRAMEWORK.at(path, f"{name} has its operator from the fleet", "remove it")
        yield from framework_problems("installedElsewhere", self.installed_elsewhere)


def framework_problems(path: str, names: Sequence[str]) -> Iterator[Problem]:
    """The names in a list at `path` that are not frameworks of Kueue."""
    for index, name in enumerate(names):
        if name not in KINDS:
            fix = suggest.instead(name, KINDS, "frameworks")
            yield FRAMEWORK.at(f"{path}[{index}]", f"{name} is not a framework of Kueue", fix)
