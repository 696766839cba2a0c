"""Kueue, JobSet and other operators, and Grafana on one cluster, by their official Helm charts.

Releases that are ready when they are done, because Helm waits for the Deployments and Kueue is Ready only with its
webhooks serving. `helm.v3.Release` and no other way: Helm orders the objects and waits, and the whole chart is one
thing to protect. Uninstalling Kueue deletes its CRDs and with them every queue and every Workload, therefore the
protection.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pulumi

from kueue_admission.api.configuration import overlay
from kueue_admission.api.manifests import namespace_manifest
from kueue_admission.kernel import Problem, SpecError
from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.component import judge, judge_late
from kueue_fleet.fleet_file import ClusterEntry, JobSetInstallation, KueueInstallation
from kueue_fleet.fleet_file.alone import check_alone
from kueue_fleet.fleet_file.charts import CHARTS_KEY, chart_of_minor, replaced_chart_problems
from kueue_fleet.fleet_file.check.chart_values import check_chart_values
from kueue_fleet.fleet_file.model.dra_driver import NvidiaDraDriver
from kueue_fleet.fleet_file.model.kueue_installation import installation_helm_values, kueue_image_values
from kueue_fleet.fleet_file.model.observability import Grafana
from kueue_fleet.fleet_file.model.operators import Operator
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.kueue_components.applied_objects import HelmRelease, KubernetesObject, provider_of
from kueue_fleet.kueue_components.component import Component, declare_object
from kueue_fleet.kueue_components.whole_program import note_made
from kueue_fleet.objects.charts import (
    ClusterChart,
    dra_driver_chart,
    grafana_chart,
    job_set_chart,
    kueue_chart,
    operator_chart,
)
from kueue_fleet.objects.monitoring import grafana_helm_values

RELEASE_TIMEOUT_SECONDS = 900
"""For one Helm operation: on an empty Autopilot cluster the first node takes minutes to come."""
MAX_HISTORY = 5
"""Revisions that Helm keeps; each is a Secret in the cluster."""
_ANY_CLUSTER = ClusterEntry("alone", role="standalone", region="us-central1")
"""One that the Configuration is checked for."""
_RESOURCE_TIMEOUTS = pulumi.CustomTimeouts(create="20m", update="20m", delete="20m")


class _Installation(Component):
    """A namespace and a Helm release in it."""

    namespace: str
    """Where the release is."""
    namespace_object: KubernetesObject
    """The namespace."""
    release: HelmRelease
    """The release; whatever uses its CRDs depends on it."""

    @property
    def status(self) -> pulumi.Output[Any]:
        """What Helm says of the release."""
        return self.release.status

    def _install(
        self,
        name: str,
        spec: KueueInstallation | JobSetInstallation | Operator | NvidiaDraDriver | Grafana,
        chart: ClusterChart,
        *,
        values: "pulumi.Input[Mapping[str, Any]] | None" = None,
        protect: bool,
        take_ownership: bool = False,
        before: Sequence[pulumi.Resource] = (),
    ) -> None:
        """Declare the namespace, and the release after it and `before`.

        `values` take the place of the chart's. Raises SpecError where the stack's config names no such chart.
        """
        if "enabled" in spec.model_fields_set and not getattr(spec, "enabled", True):
            wrong = "is false, which has no effect on a component of its own"
            judge(
                [NO_EFFECT.at(f"{type(spec).__name__}.enabled", wrong, "remove it, or the component")],
                pulumi.ResourceOptions(parent=self),
            )
        self.namespace = chart.namespace
        namespace = namespace_manifest(chart.namespace, chart.namespace_labels or None)
        self.namespace_object = declare_object(self, f"{name}-namespace", namespace)
        charts = _charts_of_stack()
        replaced_chart = charts.get(chart_of_minor(chart.version)) if chart.section == "kueue" else None
        replaced_chart = replaced_chart or charts.get(chart.section)
        if replaced_chart:
            pulumi.log.info(f"chart {chart.chart} is {replaced_chart} here, by the stack's config", self)
        self.release = HelmRelease(
            name,
            {
                "name": chart.release,
                "namespace": chart.namespace,
                "chart": replaced_chart or chart.chart,
                "version": chart.version,
                **({"repositoryOpts": {"repo": chart.repository}} if chart.repository and not replaced_chart else {}),
                "values": chart.values if values is None else values,
                "timeout": RELEASE_TIMEOUT_SECONDS,
                "maxHistory": MAX_HISTORY,
                "skipAwait": False,
                **({"takeOwnership": True} if take_ownership else {}),
            },
            pulumi.ResourceOptions(
                parent=self,
                depends_on=[self.namespace_object, *before],
                protect=protect,
                retain_on_delete=protect,
                deleted_with=self.deleted_with,
                custom_timeouts=_RESOURCE_TIMEOUTS,
            ),
        )
        self._give_out()


class KueueInstall(_Installation):
    """Kueue on one cluster."""

    priority_class: KubernetesObject | None
    """The PriorityClass that is made for Kueue's pods, unless the spec names another one."""

    def __init__(
        self,
        name: str,
        spec: KueueInstallation | None = None,
        *,
        values: "pulumi.Input[Mapping[str, Any]] | None" = None,
        deletion_protection: bool = True,
        take_ownership: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the installation.

        `spec` is by default Kueue 0.19.2 from its own registry. `values` are the chart's values; by default they hold
        the fleet file's `configuration` and pods, those of a cluster in a fleet are `fleet_file.kueue_helm_values`. The
        image is the spec's, unless they name another one. With `deletion_protection` Pulumi refuses to delete the
        release, and leaves it in the cluster if that protection is lifted by hand. With
        `take_ownership` Helm takes over existing objects of the chart, such as those of an installation without Helm.
        The stack's config `kueue-fleet:charts` may name another chart, as a rehearsal does.

        Raises:
            SpecError: the installation breaks rules of the fleet file.
        """
        spec = spec or KueueInstallation()
        judge(check_alone("kueue", spec, clusters=(_ANY_CLUSTER,)), opts)
        if values is not None:
            values = _known_values(f"KueueInstall {name}.values", spec, values, opts)
        super().__init__(name, opts)
        chart = kueue_chart(spec)
        self.priority_class = None
        if chart.priority_class is not None:
            self.priority_class = declare_object(
                self,
                f"{name}-priority",
                chart.priority_class,
                replace_on_changes=["value", "preemptionPolicy"],
            )
        self._install(
            name,
            spec,
            chart,
            values=installation_helm_values(spec) if values is None else values,
            protect=deletion_protection,
            take_ownership=take_ownership,
            before=[self.priority_class] if self.priority_class else [],
        )
        note_made(provider_of(self), self.release, None)


class JobSetInstall(_Installation):
    """JobSet on one cluster."""

    def __init__(
        self,
        name: str,
        spec: JobSetInstallation | None = None,
        *,
        deletion_protection: bool = True,
        take_ownership: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the installation; arguments as for `KueueInstall`."""
        spec = spec or JobSetInstallation()
        super().__init__(name, opts)
        self._install(
            name,
            spec,
            job_set_chart(spec),
            protect=deletion_protection,
            take_ownership=take_ownership,
        )


class OperatorInstall(_Installation):
    """The operator of kinds of jobs on one cluster."""

    def __init__(
        self,
        name: str,
        operator: str,
        spec: Operator,
        *,
        deletion_protection: bool = True,
        take_ownership: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the installation; `operator` is its field in the fleet file, the others as for `KueueInstall`."""
        super().__init__(name, opts)
        self._install(
            name,
            spec,
            operator_chart(operator, spec),
            protect=deletion_protection,
            take_ownership=take_ownership,
        )


class NvidiaDraDriverInstall(_Installation):
    """NVIDIA's DRA driver on one cluster, which brings its DeviceClasses and ComputeDomains."""

    def __init__(
        self,
        name: str,
        spec: NvidiaDraDriver | None = None,
        *,
        values: Mapping[str, Any],
        deletion_protection: bool = True,
        take_ownership: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the installation. `values` are the chart's, in a fleet those of `NvidiaDraDriver.helm_values`; the
        others are as for `KueueInstall`."""
        spec = spec or NvidiaDraDriver()
        super().__init__(name, opts)
        self._install(
            name,
            spec,
            dra_driver_chart(spec, values),
            protect=deletion_protection,
            take_ownership=take_ownership,
        )


class GrafanaInstall(_Installation):
    """Grafana on one cluster, which shows the fleet's dashboard from what managed Prometheus collects."""

    def __init__(
        self,
        name: str,
        spec: Grafana | None = None,
        *,
        project: "pulumi.Input[str]",
        account: "pulumi.Input[str]",
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the installation.

        `project` is the Google Cloud project with the metrics, `account` the address of the Google account that may
        read them, as of `GrafanaIdentity`. Its pod waits for the ConfigMap of `GrafanaDashboard` in its namespace. The
        release is not protected: all of it can be made again.
        """
        spec = spec or Grafana()
        super().__init__(name, opts)
        values = pulumi.Output.all(project, account).apply(lambda known: grafana_helm_values(spec, *known))
        self._install(name, spec, grafana_chart(spec), values=values, protect=False)


def _known_values(
    where: str, spec: KueueInstallation, values: "pulumi.Input[Mapping[str, Any]]", opts: pulumi.ResourceOptions | None
) -> "pulumi.Input[Mapping[str, Any]]":
    """The values, judged, with the image of the spec where they name none."""

    def problems(given: Mapping[str, Any]) -> Iterator[Problem]:
        return (problem.at(where) for problem in check_chart_values(spec, given))

    def complete(given: Mapping[str, Any]) -> dict[str, Any]:
        complete_values: dict[str, Any] = overlay(kueue_image_values(spec), dict(given))
        return complete_values

    def known(given: Mapping[str, Any]) -> dict[str, Any]:
        judge_late(problems(given), opts)
        return complete(given)

    if isinstance(values, Mapping):
        judge(problems(values), opts)
        return complete(values)
    later: pulumi.Output[Mapping[str, Any]] = pulumi.Output.from_input(cast("Any", values))
    return later.apply(known)


def _charts_of_stack() -> dict[str, str]:
    """Chart references of the stack's config. Raises SpecError for what is none."""
    charts: dict[str, str] = pulumi.Config(PRODUCT).get_object(CHARTS_KEY.removeprefix(f"{PRODUCT}:")) or {}
    if problems := list(replaced_chart_problems(charts)):
        raise SpecError(problems)
    return charts
