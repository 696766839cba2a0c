"""The fleet of tests/engines/shared_fleet: a manager, a worker in each of two regions, and the fleet's controller."""

from __future__ import annotations

from controller_lab import fleet_data, queue_data
from one_cluster import Json

RIVAL = "rival"
"""Another team, whose jobs wait in the same ClusterQueue as those of `team`."""
EU, US = "worker-eu", "worker-us"
REGIONS = {EU: "europe-west4", US: "us-east4"}
PRICES = {"europe-west4": {"l4": 2.0, "b200": 10.0}, "us-east4": {"l4": 1.0, "b200": 10.1}}
BREAKS = "example.com/breaks"
"""Label of the nodes of a flavor whose quota follows capacity; tests make them."""
TEAM, RESERVE = "steady", "reserve"
"""The queues of that flavor; the second lends what the first may lose."""
WIDEN_SECONDS = 15
"""Longer than a busy machine takes to let a job in: where a job goes is not to depend on that."""
DISPATCH = {"widenAfter": f"{WIDEN_SECONDS}s", "giveUpAfter": "120s", "retryAfter": "2s"}


def data() -> Json:
    """Beside the queues of the lab two whose jobs go on to L4: from B200 by DWS, and from nodes that never come."""
    result = fleet_data(REGIONS, prices=PRICES, dispatch=DISPATCH)
    queue, later = queue_data("patient", "b200", 8), queue_data("patient", "l4", 8)
    queue["resourceGroups"][0]["flavors"] += later["resourceGroups"][0]["flavors"]
    queue["admissionChecksStrategy"] = {"admissionChecks": [{"name": "dws", "onFlavors": ["b200"]}]}
    queue["fallback"] = [{"flavor": "b200", "patience": "4s"}]
    result["flavors"].append({"name": "absent", "nodeLabels": {"example.com/absent": "true"}})
    admitted = queue_data("admitted", "absent", 8)
    admitted["resourceGroups"][0]["flavors"] += later["resourceGroups"][0]["flavors"]
    admitted["fallback"] = [{"flavor": "absent", "patience": "3s"}]
    for item in (queue, admitted):
        result["clusterQueues"].append(item)
        result["localQueues"].append({"namespace": "team", "name": item["name"], "clusterQueue": item["name"]})
    follows = {"cohortName": "spare", "quotaFollows": "capacity"}
    result["cohorts"] = [{"name": "spare"}]
    result["topologies"] = [{"name": "hosts", "levels": [{"nodeLabel": "kubernetes.io/hostname"}]}]
    result["flavors"].append({"name": "breaks", "nodeLabels": {BREAKS: "true"}, "topologyName": "hosts"})
    result["clusterQueues"] += [
        {**queue_data(TEAM, "breaks", 4), **follows},
        {**queue_data(RESERVE, "breaks", 2), **follows, "slack": True},
    ]
    result["localQueues"].append({"namespace": "team", "name": TEAM, "clusterQueue": TEAM})
    result["localQueues"].append({"namespace": RIVAL, "name": "gpu", "clusterQueue": "gpu"})
    return result
