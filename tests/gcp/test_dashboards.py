from __future__ import annotations

import json
from typing import Any

import pytest

import pulumi_mocks
from kueue_fleet import Dashboards
from kueue_fleet.fleet_file import Observability
from kueue_fleet.fleet_file.model.goals import WaitLimit
from kueue_fleet.google.alerts import alert_policies
from promql import query_problems
from pulumi_mocks import Recording

ON = {"managedPrometheus": True}


def run(observability: dict[str, Any] | None = None, **arguments: Any) -> Recording:
    given: dict[str, Any] = {"manager": "manager", "job_clusters": ["one", "two"], **arguments}
    settings = Observability.model_validate({**ON, **(observability or {})})
    return pulumi_mocks.run(lambda: Dashboards("lab", settings, project="lab-project", fleet="lab", **given))


def policies(**arguments: Any) -> dict[str, dict[str, Any]]:
    given: dict[str, Any] = {
        "manager": "manager",
        "job_clusters": ["one", "two"],
        "kueue_namespace": "kueue-system",
        "provisioning_seconds": 1800,
        **arguments,
    }
    return alert_policies("lab", **given)


def query_of(policy: dict[str, Any]) -> str:
    return str(policy["conditions"][0]["conditionPrometheusQueryLanguage"]["query"])


def test_the_dashboard_and_four_alerts() -> None:
    recording = run(
        {"alerts": {"notificationChannels": ["projects/lab-project/notificationChannels/7"]}}, labels={"team": "ml"}
    )
    dashboard = recording.one("gcp:monitoring/dashboard:Dashboard")
    assert dashboard.inputs["project"] == "lab-project"
    assert json.loads(dashboard.inputs["dashboardJson"])["displayName"] == "lab: GPU batch fleet"
    alerts = {alert.name: alert.inputs for alert in recording.of_type("AlertPolicy")}
    assert set(alerts) == {
        "lab/queue-inactive",
        "lab/provisioning-stuck",
        "lab/kueue-gone",
        "lab/worker-disconnected",
    }
    for inputs in alerts.values():
        assert inputs["project"] == "lab-project"
        assert inputs["notificationChannels"] == ["projects/lab-project/notificationChannels/7"]
        assert inputs["userLabels"] == {"team": "ml"}
        assert inputs["displayName"].startswith("lab: ")
        assert inputs["documentation"]["mimeType"] == "text/markdown"


@pytest.mark.parametrize("settings", [{"dashboard": False}, {"alerts": {"enabled": False}}], ids=str)
def test_each_part_can_be_switched_off(settings: dict[str, Any]) -> None:
    recording = run(settings)
    assert bool(recording.of_type("gcp:monitoring/dashboard:Dashboard")) == ("dashboard" not in settings)
    assert bool(recording.of_type("AlertPolicy")) == ("alerts" not in settings)


def test_queries_of_alerts_name_metrics_that_exist_and_do_not_need_to_have_been_seen() -> None:
    for name, policy in policies(stopped_queues=["closed"], controller_namespace="system").items():
        if name == "worker-disconnected":
            continue
        condition = policy["conditions"][0]["conditionPrometheusQueryLanguage"]
        assert not list(query_problems(condition["query"])), name
        assert condition["disableMetricValidation"] is True


def test_a_queue_that_is_stopped_on_purpose_is_no_alarm() -> None:
    assert query_of(policies()["queue-inactive"]) == (
        'max by (cluster, cluster_queue) (kueue_cluster_queue_status{status!="active",cluster=~"manager|one|two",'
        'replica_role!="follower"}) > 0'
    )
    assert 'cluster_queue!~"a\\\\.b|closed"' in query_of(policies(stopped_queues=["closed", "a.b"])["queue-inactive"])


def test_waiting_is_an_alarm_only_where_jobs_run_and_nobody_got_anything() -> None:
    query = query_of(policies(provisioning_seconds=2700)["provisioning-stuck"])
    assert query.count("[2700s") == 3
    assert query.count('cluster=~"one|two"') == 3
    assert 'reason="UnsatisfiedAdmissionChecks"' in query
    assert " unless " in query
    assert "45 minutes" in policies(provisioning_seconds=2700)["provisioning-stuck"]["documentation"]["content"]


def test_the_timeout_of_the_file_is_used() -> None:
    recording = run({"alerts": {"provisioningTimeout": "2h"}})
    alert = recording.one("AlertPolicy", "lab/provisioning-stuck")
    assert "[7200s:60s]" in query_of(alert.inputs)


def test_a_cluster_that_says_nothing_is_an_alarm_by_its_name() -> None:
    assert query_of(policies(job_clusters=["one"])["kueue-gone"]).startswith(
        'absent(kueue_build_info{cluster="manager"}) or absent(kueue_build_info{cluster="one"}) or '
    )


def test_a_lost_worker_is_read_from_the_managers_log_at_most_once_an_hour() -> None:
    policy = policies()["worker-disconnected"]
    condition = policy["conditions"][0]["conditionMatchedLog"]
    assert 'resource.labels.cluster_name="manager"' in condition["filter"]
    assert 'resource.labels.namespace_name="kueue-system"' in condition["filter"]
    assert '"setting client config"' in condition["filter"]
    assert condition["labelExtractors"] == {"worker": "EXTRACT(jsonPayload.name)"}
    assert policy["alertStrategy"]["notificationRateLimit"] == {"period": "3600s"}


def test_without_a_manager_no_worker_can_be_lost() -> None:
    assert set(policies(manager=None, job_clusters=["batch"])) == {"queue-inactive", "provisioning-stuck", "kueue-gone"}


def test_the_fleets_own_controller_has_alerts_of_its_own() -> None:
    of_controller = {"controller-gone", "worker-unfollowed", "token-expiring"}
    assert not of_controller & policies().keys()
    assert not of_controller & policies(manager=None, controller_namespace="system").keys()
    alone = policies(manager=None, job_clusters=["batch"], controller_namespace="system")
    assert query_of(alone["jobs-stuck"]) == 'max by (reason) (kueue_fleet_stuck{cluster="batch"}) > 0'
    recording = run(controller_namespace="system")
    for short in (*of_controller, "jobs-stuck"):
        assert recording.one("AlertPolicy", f"lab/{short}")
    assert "kueue_fleet_" in recording.one("gcp:monitoring/dashboard:Dashboard").inputs["dashboardJson"]


def test_each_text_says_what_happens_and_the_first_command() -> None:
    """With the clusters and namespaces of this fleet, so that it can be copied."""
    result = policies(controller_namespace="dispatch", kueue_namespace="queues")
    assert len(result) == 8
    for policy in result.values():
        text = policy["documentation"]["content"]
        meaning, _, first = text.partition("\n\nFirst: `")
        assert "job" in meaning
        assert first.startswith(("kubectl ", "pulumi ", "kueue-fleet ")), text
    assert "-n queues get pods,leases" in result["kueue-gone"]["documentation"]["content"]
    logs = "kubectl --context manager -n dispatch logs deployment/kueue-fleet-controller"
    assert logs in result["controller-gone"]["documentation"]["content"]


def test_the_goals_of_waits_are_one_alert() -> None:
    goals = [WaitLimit("gpu", "", 0.9, 7200.0), WaitLimit("gpu", "deadline", 0.5, 600.0)]
    query = query_of(policies(goals=goals)["goal-missed"])
    assert query == (
        "(histogram_quantile(0.9, sum by (cluster_queue, le) (increase(kueue_admission_wait_time_seconds_bucket"
        '{cluster="manager",cluster_queue="gpu",replica_role!="follower"}[1d]))) > 7200) or '
        "(histogram_quantile(0.5, sum by (priority_class, cluster_queue, le) (increase("
        'kueue_admission_wait_time_seconds_bucket{cluster="manager",cluster_queue="gpu",replica_role!="follower",'
        'priority_class="deadline"}[1d]))) > 600)'
    )


def test_no_alert_where_the_histogram_of_kueue_ends_earlier() -> None:
    assert "goal-missed" not in policies(goals=[WaitLimit("gpu", "", 0.9, 86_400.0)])
