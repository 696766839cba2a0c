"""The ports on which pods of the fleet reach API servers, for their NetworkPolicies.

Policies are of the address and port that a Service leads to: a cluster outside GKE has its API server on any port,
often 6443, behind port 443 of the Service `kubernetes`.
Source: https://kubernetes.io/docs/concepts/services-networking/network-policies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kueue_fleet.fleet_file.model.clusters import ClusterEntry

_OF_GKE: Final = 443


def api_server_egress(home: ClusterEntry, workers: Iterable[ClusterEntry] = ()) -> dict[str, Any]:
    """The rule that lets pods of `home` reach its API server, and those of `workers`; where a port is not known, all
    of them."""
    ports = {worker.kubernetes.port for worker in workers if worker.kubernetes is not None}
    if home.outside_gke or None in ports:
        return {"ports": [{"protocol": "TCP"}]}
    return {"ports": [{"protocol": "TCP", "port": port} for port in sorted({_OF_GKE, *filter(None, ports)})]}
