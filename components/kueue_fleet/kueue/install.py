"""Kueue, JobSet, and Prometheus with Grafana on one cluster, by their official Helm charts.

In: chart reference, version and values from the spec. Out: releases that are ready when they are done, because Helm
waits for the Deployments and Kueue is Ready only with its webhooks serving. `helm.v3.Release` and no other way: Helm
orders the objects and waits, and the whole chart is one thing to protect. Uninstalling Kueue deletes its CRDs and with
them every queue and every Workload, therefore the protection.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from kueue_fleet.kueue.component import declare_object
from kueue_fleet.kueue.objects import HelmRelease, KubernetesObject
from kueue_fleet.spec import JobSetInstallation, KueueInstallation, Manifest
from kueue_fleet.spec.monitoring import GRAFANA_RELEASE, grafana_helm_values
from kueue_fleet.spec.observability import Grafana

RELEASE_TIMEOUT_SECONDS = 900
"""For one Helm operation: on an empty Autopilot cluster the first node takes minutes to come."""
MAX_HISTORY = 5
"""Revisions that Helm keeps; each is a Secret in the cluster."""
_RESOURCE_TIMEOUTS = pulumi.CustomTimeouts(create="20m", update="20m", delete="20m")


class _Installation(pulumi.ComponentResource):
    """A namespace and a Helm release in it."""

    namespace: str
    """Where the release is."""
    namespace_object: KubernetesObject
    """The namespace."""
    release: HelmRelease
    """The release; whatever uses its CRDs depends on it."""

    def _install(
        self,
        name: str,
        *,
        release_name: str,
        chart: str,
        version: str | None,
        namespace: str,
        values: "pulumi.Input[Mapping[str, Any]]",
        protect: bool,
        opts: pulumi.ResourceOptions | None,
    ) -> None:
        deleted_with = opts.deleted_with if opts else None
        self.namespace = namespace
        self.namespace_object = declare_object(
            self,
            f"{name}-namespace",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            deleted_with=deleted_with,
        )
        self.release = HelmRelease(
            name,
            {
                "name": release_name,
                "namespace": namespace,
                "chart": chart,
                **({"version": version} if version else {}),
                "values": values,
                "timeout": RELEASE_TIMEOUT_SECONDS,
                "maxHistory": MAX_HISTORY,
                "skipAwait": False,
            },
            pulumi.ResourceOptions(
                parent=self,
                depends_on=[self.namespace_object],
                protect=protect,
                retain_on_delete=protect,
                deleted_with=deleted_with,
                custom_timeouts=_RESOURCE_TIMEOUTS,
            ),
        )


class KueueInstall(_Installation):
    """Kueue on one cluster."""

    def __init__(
        self,
        name: str,
        spec: KueueInstallation,
        *,
        values: "pulumi.Input[Mapping[str, Any]]",
        chart: str | None = None,
        deletion_protection: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the installation.

        `values` are the chart's values, as `spec.kueue_helm_values` renders them; `chart` replaces the spec's chart
        reference, for a mirror or a path; with `deletion_protection` Pulumi refuses to delete the release, and leaves
        it in the cluster should the refusal be lifted by hand.
        """
        super().__init__("kueue-fleet:index:KueueInstall", name, None, opts)
        self._install(
            name,
            release_name="kueue",
            chart=chart or spec.chart,
            version=spec.version,
            namespace=spec.namespace,
            values=values,
            protect=deletion_protection,
            opts=opts,
        )
        self.register_outputs({"namespace": self.namespace})


class JobSetInstall(_Installation):
    """JobSet on one cluster."""

    def __init__(
        self,
        name: str,
        spec: JobSetInstallation,
        *,
        chart: str | None = None,
        deletion_protection: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the installation; arguments as for `KueueInstall`."""
        super().__init__("kueue-fleet:index:JobSetInstall", name, None, opts)
        self._install(
            name,
            release_name="jobset",
            chart=chart or spec.chart,
            version=spec.version,
            namespace=spec.namespace,
            # The chart as it lies in JobSet's module asks for a moving tag.
            values={"image": {"repository": "registry.k8s.io/jobset/jobset", "tag": f"v{spec.version}"}},
            protect=deletion_protection,
            opts=opts,
        )
        self.register_outputs({"namespace": self.namespace})


class GrafanaInstall(_Installation):
    """Prometheus and Grafana on one cluster, which read Kueue's metrics and show the fleet's dashboard."""

    objects: list[KubernetesObject]
    """What they are told of Kueue."""

    def __init__(
        self,
        name: str,
        spec: Grafana,
        *,
        objects: Sequence[Manifest] = (),
        chart: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the installation.

        `objects` are what `spec.monitoring.render_grafana` renders; they are made after the chart, which brings their
        definitions. `chart` replaces the spec's chart reference. Not protected: what it measured can be lost.
        """
        super().__init__("kueue-fleet:index:GrafanaInstall", name, None, opts)
        self._install(
            name,
            release_name=GRAFANA_RELEASE,
            chart=chart or spec.chart,
            version=spec.version,
            namespace=spec.namespace,
            values=grafana_helm_values(),
            protect=False,
            opts=opts,
        )
        self.objects = [
            declare_object(
                self,
                f"{name}/{manifest['kind']}",
                manifest,
                deleted_with=opts.deleted_with if opts else None,
                depends_on=[self.release],
            )
            for manifest in objects
        ]
        self.register_outputs({"namespace": self.namespace})
