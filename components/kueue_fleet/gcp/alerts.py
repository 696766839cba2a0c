"""What somebody should be told about: alert policies of Cloud Monitoring, as plain data.

In: the names of the clusters and how long capacity may take. Out: properties of alert policies, by a short name. They
read Kueue's metrics from managed Prometheus and, for a lost connection, of which Kueue has no metric, its log.

Metric names and reasons: kueue@v0.19.2 pkg/metrics/metrics.go, apis/kueue/v1beta2/workload_types.go; log messages:
pkg/controller/admissionchecks/multikueue/multikueuecluster.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any

_RULE_GROUP = "kueue-fleet"
_CONNECTION_LOST = ("setting client config", "loading client config failed")
"""What the manager's Kueue logs each time that it tries to reach a worker in vain."""
_NO_UNKNOWN_METRIC = {"disableMetricValidation": True}
"""Cloud Monitoring knows a metric only once it was read for the first time."""


def alert_policies(
    fleet: str,
    *,
    manager: str | None,
    job_clusters: Sequence[str],
    kueue_namespace: str,
    provisioning_seconds: int,
    stopped_queues: Sequence[str] = (),
    controller: bool = False,
) -> dict[str, dict[str, Any]]:
    """The policies by short name: `queue-inactive`, `provisioning-stuck`, `kueue-gone`, `worker-disconnected`,
    `worker-unfollowed`.

    `stopped_queues` are inactive on purpose. The last but one policy is there with a manager only, and the last with
    the fleet's own controller, which has a metric for what Kueue only logs.
    """
    clusters = [*([manager] if manager else []), *job_clusters]
    policies = {
        "queue-inactive": _policy(
            f"{fleet}: a queue is inactive",
            "A ClusterQueue admits nothing: a flavor or a check that it names is missing or not ready. "
            "`kubectl describe clusterqueue` says which, on the cluster in the label.",
            _prometheus("QueueInactive", _inactive(clusters, stopped_queues), 600),
        ),
        "provisioning-stuck": _policy(
            f"{fleet}: jobs wait for capacity that does not come",
            f"For {provisioning_seconds // 60} minutes a queue has had jobs that hold quota and wait for nodes, and "
            "none of them got any. DWS may have accepted a ProvisioningRequest that it will never fulfil: look at "
            "`kubectl get provisioningrequests -A`, and delete the one that is too old; Kueue asks again.",
            _prometheus("ProvisioningStuck", _stuck(job_clusters, provisioning_seconds), 60),
        ),
        "kueue-gone": _policy(
            f"{fleet}: Kueue is gone",
            "No Kueue answers on the cluster in the label: it does not run, or the cluster cannot be reached.",
            _prometheus("KueueGone", " or ".join(f'absent(kueue_build_info{{cluster="{c}"}})' for c in clusters), 600),
            severity="CRITICAL",
        ),
    }
    if manager is not None and controller:
        followed = f'max by (exported_cluster) (kueue_fleet_worker_followed{{cluster="{manager}"}}) < 1'
        policies["worker-unfollowed"] = _policy(
            f"{fleet}: the dispatcher does not see a worker",
            "The fleet's own controller cannot follow the worker in the label, and sends it no jobs.",
            _prometheus("WorkerUnfollowed", followed, 300),
            severity="CRITICAL",
        )
    if manager is not None:
        messages = " OR ".join(f'"{message}"' for message in _CONNECTION_LOST)
        match = {
            "displayName": "The manager cannot reach a worker",
            "conditionMatchedLog": {
                "filter": f'resource.type="k8s_container" resource.labels.cluster_name="{manager}" '
                f'resource.labels.namespace_name="{kueue_namespace}" jsonPayload.logger="multikueue-cluster" '
                f"jsonPayload.msg=({messages})",
                "labelExtractors": {"worker": "EXTRACT(jsonPayload.name)"},
            },
        }
        policies["worker-disconnected"] = {
            **_policy(
                f"{fleet}: a worker is disconnected",
                "The manager's Kueue cannot reach a worker. Its jobs are taken from it after workerLostTimeout. Is the "
                "cluster up, and its token not expired? `kubectl describe multikueuecluster` says more.",
                match,
                severity="CRITICAL",
            ),
            # Policies on logs are refused without a limit.
            "alertStrategy": {"notificationRateLimit": {"period": "3600s"}, "autoClose": "3600s"},
        }
    return policies


def _policy(title: str, text: str, condition: Mapping[str, Any], *, severity: str = "WARNING") -> dict[str, Any]:
    return {
        "displayName": title,
        "combiner": "OR",
        "severity": severity,
        "conditions": [dict(condition)],
        "documentation": {"content": text, "mimeType": "text/markdown"},
    }


def _prometheus(rule: str, query: str, duration_seconds: int) -> dict[str, Any]:
    return {
        "displayName": rule,
        "conditionPrometheusQueryLanguage": {
            "query": query,
            "duration": f"{duration_seconds}s",
            "evaluationInterval": "60s",
            "alertRule": rule,
            "ruleGroup": _RULE_GROUP,
            **_NO_UNKNOWN_METRIC,
        },
    }


def _matching(clusters: Sequence[str]) -> str:
    return f'cluster=~"{"|".join(clusters)}"'


def _inactive(clusters: Sequence[str], stopped: Sequence[str]) -> str:
    labels = ['status!="active"', _matching(clusters)]
    if stopped:
        names = "|".join(name.replace(".", r"\\.") for name in sorted(stopped))
        labels.append(f'cluster_queue!~"{names}"')
    return f"max by (cluster, cluster_queue) (kueue_cluster_queue_status{{{','.join(labels)}}}) > 0"


def _stuck(clusters: Sequence[str], seconds: int) -> str:
    """At every minute of that time somebody waited, and in all of it nobody was admitted."""
    here = _matching(clusters)
    waiting = (
        f'sum by (cluster, cluster_queue) (kueue_unadmitted_workloads{{reason="UnsatisfiedAdmissionChecks",{here}}})'
    )
    admitted = f"sum by (cluster, cluster_queue) (increase(kueue_admitted_workloads_total{{{here}}}[{seconds}s]))"
    return f"(min_over_time(({waiting})[{seconds}s:60s]) > 0) unless ({admitted} > 0)"
