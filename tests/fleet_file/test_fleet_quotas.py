"""What the controller writes quotas by says the same of each queue as the fleet, on every cluster and at any time."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fleet_file.builders import flavor_quotas, fleet
from tests.fleet_file.model.test_manager_flavors import ONLY_T4, of
from tests.fleet_files import fleets

from drawn import examples
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.calendar_pools import fleet_at, fleet_undated
from kueue_fleet.fleet_file.fleet_quotas import fleet_quotas
from kueue_fleet.fleet_file.model.per_cluster import following_clusters, quotas_on
from kueue_fleet.fleet_file.quota_windows import fleet_in, open_windows
from kueue_fleet.settings.fleet_quotas import FleetQuotas

MOMENTS = st.datetimes(datetime(2026, 6, 1), datetime(2027, 6, 1)).map(lambda each: each.replace(tzinfo=UTC))  # noqa: DTZ001


def written(spec: FleetSpec) -> FleetQuotas:
    """As the controller reads it."""
    return FleetQuotas.model_validate(fleet_quotas(fleet_undated(spec)).wire())


def assert_alike(spec: FleetSpec, quotas: FleetQuotas) -> None:
    for entry, queue in zip(spec.cluster_queues, quotas.cluster_queues, strict=True):
        assert quotas.clusters_written(queue) == following_clusters(spec, entry)
        for cluster in spec.queue_clusters(entry):
            own, other = (
                [group.wire() for group in groups]
                for groups in (quotas.quotas_on(queue, cluster), quotas_on(spec, entry, cluster))
            )
            assert own == other


@settings(max_examples=examples(20), deadline=None)
@given(spec=fleets(), moment=MOMENTS)
def test_quotas_are_those_of_the_fleet_at_any_time(spec: FleetSpec, moment: datetime) -> None:
    assert_alike(fleet_in(fleet_at(spec, moment), open_windows(spec, moment)), written(spec).at(moment))


def test_what_a_queue_of_the_manager_may_borrow_is_what_others_of_its_tree_lend() -> None:
    both = of("l4", clusters=["worker-b"])
    both["resourceGroups"][0]["flavors"] = [flavor_quotas("l4", 3), flavor_quotas("t4", 5, lendingLimit=1)]
    flavors = [{"name": n, "resources": [{"name": "cpu", "nominalQuota": q}]} for n, q in (("l4", 1), ("t4", 10))]
    group = {"coveredResources": ["cpu"], "flavors": flavors}
    spec = fleet(
        {**ONLY_T4, "clusterQueues/+": both, "multiKueue/headroomPercent": 50, "cohorts/0/resourceGroups": [group]}
    )
    quotas = written(spec)
    assert [queue.name for queue in quotas.cluster_queues if queue.lenders] == ["vision", "language"]
    assert_alike(spec, quotas)
