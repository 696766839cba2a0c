"""The controller's metrics, under the prefix kueue_fleet_."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from kueue_fleet.kube.permissions import RequestListener

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """All metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.decisions = Counter(
            "kueue_fleet_dispatch_decisions",
            "Dispatch decisions written, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self.nominations = Counter(
            "kueue_fleet_nominations", "Clusters nominated.", ["cluster"], registry=self.registry
        )
        self.assignments = Counter(
            "kueue_fleet_assignments", "Copies that were allowed to be admitted.", ["cluster"], registry=self.registry
        )
        self.filtered = Counter(
            "kueue_fleet_filtered", "Clusters left out of a decision.", ["cluster", "reason"], registry=self.registry
        )
        self.checks = Counter(
            "kueue_fleet_check_decisions",
            "Admission check decisions written.",
            ["check", "state"],
            registry=self.registry,
        )
        self.given_up = Counter(
            "kueue_fleet_given_up", "Workloads taken back from a cluster.", ["cluster"], registry=self.registry
        )
        self.rescued = Counter(
            "kueue_fleet_rescued", "Evictions that were finished for Kueue.", ["reason"], registry=self.registry
        )
        self.requests = Counter(
            "kueue_fleet_requests",
            "Requests to API servers, by the permission that they need and the HTTP status; 0: no answer.",
            ["cluster", "verb", "resource", "status"],
            registry=self.registry,
        )
        self.token_expires = Gauge(
            "kueue_fleet_token_expires_timestamp_seconds",
            "When the token by which a worker is reached expires; of tokens that do.",
            ["cluster", "account"],
            registry=self.registry,
        )
        self.token_issued = Gauge(
            "kueue_fleet_token_issued_timestamp_seconds",
            "When the token by which a worker is reached was issued; of tokens that expire.",
            ["cluster", "account"],
            registry=self.registry,
        )
        self.token_failures = Counter(
            "kueue_fleet_token_failures",
            "Tokens that were looked at and could not be read or renewed.",
            ["cluster", "account"],
            registry=self.registry,
        )
        self.failures = Counter(
            "kueue_fleet_failures", "Writes that failed, by HTTP status.", ["status"], registry=self.registry
        )
        self.decide_seconds = Histogram(
            "kueue_fleet_decide_seconds", "Time of one decision.", buckets=_SECONDS, registry=self.registry
        )
        self.nominate_seconds = Histogram(
            "kueue_fleet_nominate_seconds",
            "From the moment that a workload can be dispatched is seen until it is nominated.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.queue = Gauge("kueue_fleet_queue_length", "Workloads to look at.", registry=self.registry)
        self.leading = Gauge("kueue_fleet_leader", "Whether this replica leads.", registry=self.registry)
        self.connected = Gauge(
            "kueue_fleet_worker_followed",
            "Whether a worker's objects are known as they are.",
            ["cluster"],
            registry=self.registry,
        )

    def requests_to(self, cluster: str) -> RequestListener:
        """Counts the requests to one cluster."""

        def count(verb: str, resource: str, status: int) -> None:
            self.requests.labels(cluster, verb, resource, str(status)).inc()

        return count

    def text(self) -> bytes:
        """All of them as Prometheus reads them."""
        return generate_latest(self.registry)
