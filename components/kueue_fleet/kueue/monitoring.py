"""How managed Prometheus reads Kueue's metrics on one cluster.

GKE brings the definition of PodMonitoring to every cluster with managed Prometheus. Prometheus and Grafana inside the
cluster are in `kueue.install`.
"""

from kueue_fleet.kueue.component import OrderedObjects


class ManagedMonitoring(OrderedObjects):
    """An account that may read Kueue's metrics, and a PodMonitoring that uses it."""

    pulumi_type = "kueue-fleet:index:ManagedMonitoring"
