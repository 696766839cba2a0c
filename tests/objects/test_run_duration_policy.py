from __future__ import annotations

from pathlib import Path

from kueue_admission.kernel.names import RUN_DURATION_ANNOTATION
from kueue_fleet.fleet_file import parse_fleet, parse_fleet_text
from kueue_fleet.objects.run_duration_policy import NAME, render_run_duration_policy

STACK = Path(__file__).parents[2] / "stacks" / "Pulumi.dws-multikueue.yaml"


def test_jobs_of_a_fleet_that_asks_dws_are_checked_on_every_cluster() -> None:
    fleet = parse_fleet_text(STACK.read_text(), str(STACK))
    for cluster in fleet.cluster_names:
        policy, binding = render_run_duration_policy(fleet, cluster)
        assert (policy["kind"], binding["kind"]) == ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
        assert binding["spec"] == {"policyName": NAME, "validationActions": ["Deny"]}
        (condition,) = policy["spec"]["matchConditions"]
        assert RUN_DURATION_ANNOTATION in condition["expression"]
        (validation,) = policy["spec"]["validations"]
        assert "<= 604800" in validation["expression"]
        groups = {rule["apiGroups"][0] for rule in policy["spec"]["matchConstraints"]["resourceRules"]}
        assert {"batch", "jobset.x-k8s.io"} <= groups
    assert render_run_duration_policy(fleet, "no-cluster") == []


def test_a_fleet_without_dws_has_no_such_policy() -> None:
    clusters = [{"name": "one", "role": "standalone", "region": "us-east4"}]
    fleet = parse_fleet({"name": "f", "project": "my-project", "clusters": clusters})
    assert render_run_duration_policy(fleet, "one") == []
