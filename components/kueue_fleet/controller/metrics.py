"""The controller's metrics, under the prefix kueue_fleet_."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from kueue_fleet.kube.api import RequestListener

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """All metrics, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        seconds = partial(Histogram, registry=self.registry, buckets=_SECONDS)
        self.decisions = counter("kueue_fleet_dispatch_decisions", "Dispatch decisions written, by reason.", ["reason"])
        self.nominations = counter("kueue_fleet_nominations", "Clusters nominated.", ["cluster"])
        self.assignments = counter("kueue_fleet_assignments", "Copies that were allowed to be admitted.", ["cluster"])
        self.filtered = counter("kueue_fleet_filtered", "Clusters left out of a decision.", ["cluster", "reason"])
        self.checks = counter("kueue_fleet_check_decisions", "Admission check decisions written.", ["check", "state"])
        self.given_up = counter("kueue_fleet_given_up", "Workloads taken back from a cluster.", ["cluster"])
        self.rescued = counter("kueue_fleet_rescued", "Jobs that were stuck and were helped on, by reason.", ["reason"])
        self.stuck = gauge("kueue_fleet_stuck", "Jobs that are stuck, by the reason of the event.", ["reason"])
        self.requests = counter(
            "kueue_fleet_requests",
            "Requests to API servers, by the permission that they need and the HTTP status; 0: no answer.",
            ["cluster", "verb", "resource", "status"],
        )
        self.token_expires = gauge(
            "kueue_fleet_token_expires_timestamp_seconds",
            "When the token by which a worker is reached expires; of tokens that do.",
            ["cluster", "account"],
        )
        self.token_issued = gauge(
            "kueue_fleet_token_issued_timestamp_seconds",
            "When the token by which a worker is reached was issued; of tokens that expire.",
            ["cluster", "account"],
        )
        self.token_failures = counter(
            "kueue_fleet_token_failures",
            "Attempts to check or renew a token that failed.",
            ["cluster", "account"],
        )
        self.failures = counter("kueue_fleet_failures", "Writes that failed, by HTTP status, or history.", ["status"])
        self.history_events = counter("kueue_fleet_history_events", "Events written to the history.")
        self.lost_capacity = gauge(
            "kueue_fleet_lost_capacity",
            "What queues may not use of a flavor, of the quota that the fleet file gives, because nodes are missing.",
            ["cluster", "flavor", "resource"],
        )
        self.budget_gpu_hours = gauge(
            "kueue_fleet_budget_gpu_hours",
            "GPU hours of a team in its week or month, where its budget holds.",
            ["team"],
        )
        self.budget_usd = gauge("kueue_fleet_budget_usd", "The same in USD, of what has a price.", ["team"])
        self.decide_seconds = seconds("kueue_fleet_decide_seconds", "Time of one decision.")
        self.nominate_seconds = seconds(
            "kueue_fleet_nominate_seconds",
            "From the moment that a workload can be dispatched is seen until it is nominated.",
        )
        self.queue = gauge("kueue_fleet_queue_length", "Workloads to look at.")
        self.leading = gauge("kueue_fleet_leader", "Whether this replica leads.")
        self.connected = gauge(
            "kueue_fleet_worker_followed", "Whether the controller follows a worker's objects.", ["cluster"]
        )

    def requests_to(self, cluster: str) -> RequestListener:
        """Counts the requests to one cluster."""

        def count(verb: str, resource: str, status: int) -> None:
            self.requests.labels(cluster, verb, resource, str(status)).inc()

        return count

    def text(self) -> bytes:
        """All of them as Prometheus reads them."""
        return generate_latest(self.registry)
