"""What people are alerted to: alert policies of Cloud Monitoring, as plain data.

Properties of alert policies, by a short name. They read the metrics of Kueue and of the fleet's controller from managed
Prometheus and, for a lost connection, of which Kueue has no metric, its log. Each text says what happens to jobs, and
the first command to run.

Metric names and reasons: kueue@v0.19.2 pkg/metrics/metrics.go, apis/kueue/v1beta2/workload_types.go; log messages:
pkg/controller/admissionchecks/multikueue/multikueuecluster.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file.model.goals import WaitLimit
from kueue_fleet.objects.dashboard_charts import LEADING
from kueue_fleet.settings.tokens import CONTROLLER_NAME

CONNECTION_LOGGER: Final = "multikueue-cluster"
"""Logger of what the manager's Kueue says about its connections."""
CONNECTION_LOST: Final = ("setting client config", "loading client config failed")
"""What it logs each time that it fails to reach a worker."""
LONGEST_WAIT: Final = 40_960
"""Seconds of the highest limit of Kueue's histogram of waits; longer ones look like this one."""
EVALUATION_SECONDS: Final = 60
"""From one evaluation of a query to the next."""
_NO_UNKNOWN_METRIC = {"disableMetricValidation": True}
"""Cloud Monitoring knows a metric only once it was read for the first time."""
_TOKEN_LEFT: Final = 0.2


def alert_policies(
    fleet: str,
    *,
    manager: str | None,
    job_clusters: Sequence[str],
    kueue_namespace: str,
    provisioning_seconds: int,
    stopped_queues: Sequence[str] = (),
    controller_namespace: str | None = None,
    goals: Sequence[WaitLimit] = (),
    follows_capacity: bool = False,
) -> dict[str, dict[str, Any]]:
    """The policies by short name.

    Of every fleet: `queue-inactive`, `provisioning-stuck`, `kueue-gone`; with a manager: `worker-disconnected`; with
    the fleet's own controller, in `controller_namespace`: `jobs-stuck`, and with a manager too `controller-gone`,
    `worker-unfollowed`, `token-expiring`.
    `stopped_queues` are inactive on purpose. Where quotas follow capacity: `capacity-lost`. Where `goals` has
    times that Kueue's histogram can tell: `goal-missed`.
    """
    clusters = [*([manager] if manager else []), *job_clusters]
    policies = {
        "queue-inactive": _policy(
            f"{fleet}: a queue is inactive",
            "The ClusterQueue in the label admits no job: a flavor or a check that it names is missing or not ready. "
            "Running jobs continue.\n\n"
            "First: `kubectl --context CLUSTER describe clusterqueue QUEUE`; its condition Active says what is "
            "missing.",
            _prometheus("QueueInactive", _inactive(clusters, stopped_queues), 600),
        ),
        "provisioning-stuck": _policy(
            f"{fleet}: jobs wait for capacity that does not come",
            f"For {provisioning_seconds // 60} minutes the queue in the label has had jobs that hold quota and wait "
            "for nodes, and none of them got any. They keep waiting, and keep that quota from jobs behind them. DWS "
            "may have accepted a ProvisioningRequest that it will never fulfil.\n\n"
            "First: `kubectl --context CLUSTER get provisioningrequests -A`. Delete the one that is too old; Kueue "
            "asks again.",
            _prometheus("ProvisioningStuck", _stuck(job_clusters, provisioning_seconds), 60),
        ),
        "kueue-gone": _policy(
            f"{fleet}: Kueue is gone",
            "On the cluster in the label no Kueue answers, or none of its replicas leads. No job is admitted there, "
            "and where none answers, its webhooks refuse new jobs too. Running pods continue. A worker's jobs "
            "continue too, but the manager sends it no more.\n\n"
            f"First: `kubectl --context CLUSTER -n {kueue_namespace} get pods,leases`. If that does not answer either, "
            "the cluster is gone or cannot be reached: `gcloud container clusters list`.",
            _prometheus("KueueGone", _absence_query(clusters), 600),
            severity="CRITICAL",
        ),
    }
    short_goals = [goal for goal in goals if goal.seconds < LONGEST_WAIT]
    if short_goals:
        policies["goal-missed"] = _goal_missed(fleet, manager or job_clusters[0], short_goals)
    if controller_namespace is not None:
        policies["jobs-stuck"] = _jobs_stuck(fleet, manager or job_clusters[0], controller_namespace)
        if follows_capacity:
            policies["capacity-lost"] = _capacity_lost(fleet, manager or job_clusters[0])
    if manager is not None and controller_namespace is not None:
        policies |= _of_controller(fleet, manager, controller_namespace)
    if manager is not None:
        policies["worker-disconnected"] = _disconnected(fleet, manager, kueue_namespace)
    return policies


def _goal_missed(fleet: str, cluster: str, goals: Sequence[WaitLimit]) -> dict[str, Any]:
    return _policy(
        f"{fleet}: jobs wait longer than their goal",
        "Of the jobs that were admitted in the last day, more than the goal of the queue in the label allows waited "
        "longer than it says. Jobs that still wait are not counted.\n\n"
        "First: `kueue-fleet status STACK --kubeconfig FILE --store HISTORY` says which goal is missed, and "
        "`kueue-fleet replay STACK --store HISTORY --what-if ...` what a change would do.",
        _prometheus("GoalMissed", " or ".join(_exceeds(cluster, goal) for goal in goals), 600),
    )


def _exceeds(cluster: str, goal: WaitLimit) -> str:
    labels = [f'cluster="{cluster}"', f'cluster_queue="{goal.queue}"', LEADING]
    by = "cluster_queue, le"
    if goal.priority_class:
        labels.append(f'priority_class="{goal.priority_class}"')
        by = f"priority_class, {by}"
    waits = f"increase(kueue_admission_wait_time_seconds_bucket{{{','.join(labels)}}}[1d])"
    return f"(histogram_quantile({goal.quantile:g}, sum by ({by}) ({waits})) > {goal.seconds:g})"


def _jobs_stuck(fleet: str, cluster: str, namespace: str) -> dict[str, Any]:
    return _policy(
        f"{fleet}: jobs are stuck",
        "For 10 minutes jobs have waited for what does not come by itself, and the fleet's own controller has not "
        "helped them on. By the reason in the label: StuckEviction: evicted or deleted, with its quota still held, as "
        "long as a worker cannot be asked (event HeldEviction); StuckCheck: a check is Retry without quota; "
        "RetriesUsed: DWS has not provided nodes for any of the retries; LostJob: deleted on its worker; "
        "LostEnd: it ended there, and goes on here.\n\n"
        "First: `kueue-fleet status STACK --kubeconfig FILE` names the jobs; docs/stuck.md says what undoes each kind. "
        f"If none of them is: `kubectl --context {cluster} -n {namespace} logs deployment/{CONTROLLER_NAME} "
        "--all-pods --tail 50`.",
        _prometheus("JobsStuck", f'max by (reason) (kueue_fleet_stuck{{cluster="{cluster}"}}) > 0', 600),
    )


def _capacity_lost(fleet: str, cluster: str) -> dict[str, Any]:
    lost = f'max by (exported_cluster, flavor, resource) (kueue_fleet_lost_capacity{{cluster="{cluster}"}}) > 0'
    return _policy(
        f"{fleet}: capacity is lost",
        "For 30 minutes nodes of the flavor in the label have been broken, drained or missing, so that queues may use "
        "less than the fleet file gives them: first what a slack queue lends, then the quota of each queue. Jobs that "
        "run on other nodes continue. GKE repairs a node that is not ready after about 10 minutes.\n\n"
        "First: `kueue-fleet status STACK --kubeconfig FILE` names the nodes; docs/tasks/machines-that-break.md.",
        _prometheus("CapacityLost", lost, 1800),
    )


def _of_controller(fleet: str, manager: str, namespace: str) -> dict[str, dict[str, Any]]:
    here = f'cluster="{manager}"'
    worker_metric = f"max by (exported_cluster) (kueue_fleet_worker_followed{{{here}}}) < 1"
    expiry = f"kueue_fleet_token_expires_timestamp_seconds{{{here}}}"
    issue_time = f"kueue_fleet_token_issued_timestamp_seconds{{{here}}}"
    time_share = f"max by (exported_cluster, account) (({expiry} - time()) / ({expiry} - {issue_time})) < {_TOKEN_LEFT}"
    logs = f"kubectl --context {manager} -n {namespace} logs deployment/{CONTROLLER_NAME} --all-pods --tail 50"
    return {
        "controller-gone": _policy(
            f"{fleet}: the dispatcher is gone",
            "No replica of the fleet's own controller leads. No job starts anywhere: none is nominated for a worker, "
            "and what waits on a worker is not admitted. Running jobs continue, and nothing is lost.\n\n"
            f"First: `kubectl --context {manager} -n {namespace} get pods,leases`, then `{logs}`.",
            _prometheus("ControllerGone", f"absent(kueue_fleet_leader{{{here}}} == 1)", 300),
            severity="CRITICAL",
        ),
        "worker-unfollowed": _policy(
            f"{fleet}: the dispatcher does not see a worker",
            "For 10 minutes the fleet's own controller has not known what is on the worker in the label. It sends no "
            "job there. What only waited there is offered to other workers; what runs there continues, and if Kueue "
            "evicts it after workerLostTimeout, it waits for this worker (condition `kueue-fleet.dev/Dispatch`, reason "
            "WaitingForWorker).\n\n"
            f"First: `kubectl --context {manager} get multikueuecluster`: not Active either, the worker is out of "
            f"reach; Active, only the controller has lost it: `{logs}`. A worker that is destroyed: "
            "docs/tasks/break-glass.md.",
            _prometheus("WorkerUnfollowed", worker_metric, 600),
            severity="CRITICAL",
        ),
        "token-expiring": _policy(
            f"{fleet}: a token expires soon",
            f"Less than {_TOKEN_LEFT:.0%} is left of the life of a token for the worker in the label, and no new one "
            "has come. Until it expires nothing changes; then Kueue (account multikueue-manager) or the fleet's own "
            "controller cannot reach the worker any more, and no job is sent there.\n\n"
            "First: `kueue-fleet rotate STACK --kubeconfig FILE`; then see why the controller does not renew it: "
            "docs/tasks/rotate-credentials.md.",
            _prometheus("TokenExpiring", time_share, 600),
        ),
    }


def _disconnected(fleet: str, manager: str, kueue_namespace: str) -> dict[str, Any]:
    """Kueue has no metric for it; its log has."""
    messages = " OR ".join(f'"{message}"' for message in CONNECTION_LOST)
    match = {
        "displayName": "The manager cannot reach a worker",
        "conditionMatchedLog": {
            "filter": f'resource.type="k8s_container" resource.labels.cluster_name="{manager}" '
            f'resource.labels.namespace_name="{kueue_namespace}" jsonPayload.logger="{CONNECTION_LOGGER}" '
            f"jsonPayload.msg=({messages})",
            "labelExtractors": {"worker": "EXTRACT(jsonPayload.name)"},
        },
    }
    return {
        **_policy(
            f"{fleet}: a worker is disconnected",
            "The manager's Kueue cannot reach the worker in the label. It sends no jobs there. What runs there "
            "continues, but the manager sees nothing of it; after workerLostTimeout Kueue evicts it, and when the "
            "worker is back, ends it there.\n\n"
            f"First: `kubectl --context {manager} describe multikueuecluster WORKER`; its condition Active says "
            "whether the address, the certificate or the token is refused. docs/tasks/break-glass.md says what to do "
            "meanwhile.",
            match,
            severity="CRITICAL",
        ),
        # Policies on logs are refused without a limit.
        "alertStrategy": {"notificationRateLimit": {"period": "3600s"}, "autoClose": "3600s"},
    }


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
            "evaluationInterval": f"{EVALUATION_SECONDS}s",
            "alertRule": rule,
            "ruleGroup": PRODUCT,
            **_NO_UNKNOWN_METRIC,
        },
    }


def _matching(clusters: Sequence[str]) -> str:
    return f'cluster=~"{"|".join(clusters)}"'


def _inactive(clusters: Sequence[str], stopped_queues: Sequence[str]) -> str:
    labels = ['status!="active"', _matching(clusters), LEADING]
    if stopped_queues:
        names = "|".join(name.replace(".", r"\\.") for name in sorted(stopped_queues))
        labels.append(f'cluster_queue!~"{names}"')
    return f"max by (cluster, cluster_queue) (kueue_cluster_queue_status{{{','.join(labels)}}}) > 0"


def _absence_query(clusters: Sequence[str]) -> str:
    """A cluster without any replica, or one where all of them have queues to look after and none leads."""
    absent = " or ".join(f'absent(kueue_build_info{{cluster="{cluster}"}})' for cluster in clusters)
    following = f'kueue_cluster_queue_status{{replica_role="follower",{_matching(clusters)}}}'
    leading = f"kueue_cluster_queue_status{{{LEADING},{_matching(clusters)}}}"
    return f"{absent} or (count by (cluster) ({following}) unless count by (cluster) ({leading}))"


def _stuck(clusters: Sequence[str], seconds: int) -> str:
    """At every minute of that time jobs waited, and in all of it none was admitted.

    A queue whose jobs wait for the first time has a series that begins just then: so the minutes are counted.
    """
    here = f"{_matching(clusters)},{LEADING}"
    waiting = (
        f'sum by (cluster, cluster_queue) (kueue_unadmitted_workloads{{reason="UnsatisfiedAdmissionChecks",{here}}})'
    )
    admission_count = (
        f"sum by (cluster, cluster_queue) (increase(kueue_admitted_workloads_total{{{here}}}[{seconds}s]))"
    )
    over = f"(({waiting})[{seconds}s:60s])"
    sample_count = f"count_over_time{over} >= {seconds // 60 - 1}"
    return f"(min_over_time{over} > 0 and {sample_count}) unless ({admission_count} > 0)"
