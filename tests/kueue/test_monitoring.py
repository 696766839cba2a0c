from __future__ import annotations

from itertools import pairwise

import pulumi_mocks
from company_fleet import WORKERS, company_data
from kueue_fleet import GpuDrivers, ManagedMonitoring
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.objects.drivers import render_driver_installer
from kueue_fleet.objects.monitoring import render_managed_monitoring

SPEC = parse_fleet(company_data())


def test_the_token_is_there_before_it_is_used() -> None:
    objects = render_managed_monitoring(SPEC, WORKERS[0])
    recording = pulumi_mocks.run(lambda: ManagedMonitoring("monitoring", objects))
    result = [recording.one(manifest["kind"]) for manifest in objects]
    assert [r.inputs for r in result] == objects
    assert all(recording.is_before(first, second) for first, second in pairwise(result))
    secret = recording.one("Secret")
    assert set(secret.secret_outputs) == {"data", "stringData"}
    assert recording.one("ClusterRoleBinding").replace_on_changes == ("roleRef",)


def test_kinds_that_gke_brings_are_known_by_name() -> None:
    """Whoever stands in for GKE has to bring them too.

    Source: https://cloud.google.com/stackdriver/docs/managed-prometheus/setup-managed.
    """
    own = {"core", "apps", "batch", "rbac.authorization.k8s.io", "scheduling.k8s.io", "admissionregistration.k8s.io"}
    objects = render_managed_monitoring(SPEC, WORKERS[0])
    others = {
        manifest["kind"]: manifest["apiVersion"]
        for manifest in objects
        if (manifest["apiVersion"].rpartition("/")[0] or "core") not in own
    }
    assert others == {"PodMonitoring": "monitoring.googleapis.com/v1"}


def test_drivers_are_installed_where_a_pool_leaves_them_to_the_fleet() -> None:
    assert render_driver_installer(SPEC, WORKERS[0]) == []
    (installer,) = render_driver_installer(SPEC, "worker-us-east4")
    recording = pulumi_mocks.run(lambda: GpuDrivers("drivers", installer))
    assert recording.one("DaemonSet").inputs == installer
