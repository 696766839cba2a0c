"""The fleet of tests/engines/shared_fleet: a manager, a worker in each of two regions, and the fleet's controller."""

from __future__ import annotations

from controller_lab import fleet_data, queue_data
from one_cluster import Json

RIVAL = "rival"
"""Another team, whose jobs wait in the same ClusterQueue as those of `team`."""
EU, US = "worker-eu", "worker-us"
REGIONS = {EU: "europe-west4", US: "us-east4"}
PRICES = {"europe-west4": {"l4": 2.0, "b200": 10.0}, "us-east4": {"l4": 1.0, "b200": 10.1}}
WIDEN_SECONDS = 15
"""Longer than a busy machine takes to let a job in: where a job goes is not to depend on that."""
DISPATCH = {"widenAfter": f"{WIDEN_SECONDS}s", "giveUpAfter": "120s", "retryAfter": "2s"}


def data() -> Json:
    """Beside the queues of the lab two whose jobs go on to L4: from B200 by DWS, and from nodes that never come."""
    made = fleet_data(REGIONS, prices=PRICES, dispatch=DISPATCH)
    queue, later = queue_data("patient", "b200", 8), queue_data("patient", "l4", 8)
    queue["resourceGroups"][0]["flavors"] += later["resourceGroups"][0]["flavors"]
    queue["admissionChecksStrategy"] = {"admissionChecks": [{"name": "dws", "onFlavors": ["b200"]}]}
    queue["fallback"] = [{"flavor": "b200", "patience": "4s"}]
    made["flavors"].append({"name": "absent", "nodeLabels": {"example.com/absent": "true"}})
    admitted = queue_data("admitted", "absent", 8)
    admitted["resourceGroups"][0]["flavors"] += later["resourceGroups"][0]["flavors"]
    admitted["fallback"] = [{"flavor": "absent", "patience": "3s"}]
    for each in (queue, admitted):
        made["clusterQueues"].append(each)
        made["localQueues"].append({"namespace": "team", "name": each["name"], "clusterQueue": each["name"]})
    made["localQueues"].append({"namespace": RIVAL, "name": "gpu", "clusterQueue": "gpu"})
    return made
