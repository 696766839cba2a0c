"""Which queues lead to nodes that GKE creates for a ProvisioningRequest."""

from __future__ import annotations

import pytest
from tests.fleet_file.builders import changed, fleet_data

from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.model.queued_nodes import leads_to_queued_nodes


@pytest.mark.parametrize(("clusters", "leads"), [(["worker-b"], True), (["worker-a"], False)])
def test_a_check_of_a_flavor_that_the_queue_has_nowhere_asks_for_no_nodes(clusters: list[str], leads: bool) -> None:
    """The builder's queue has its check on flavor t4, which worker-b alone has."""
    fleet = parse_fleet(changed(fleet_data(), {"clusterQueues/0/clusters": clusters}))
    assert leads_to_queued_nodes(fleet, fleet.cluster_queues[0]) is leads
