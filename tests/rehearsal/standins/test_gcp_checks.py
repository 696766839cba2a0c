"""What the Google provider refuses: by its schema, and by the forms of names, ranges and times."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.google.provider_facts import Fact, Facts
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL
from kueue_rehearsal.standins import gcp_checks
from kueue_rehearsal.standins.gcp_checks import check_inputs
from kueue_rehearsal.standins.property_values import Secret

RESERVATION = "gcp:compute/reservation:Reservation"
MACHINES = {"count": 1, "instanceProperties": {"machineType": "g2-standard-4"}}


def problems(token: str, given: dict[str, Any]) -> dict[str, str]:
    needed = {"name": "abc", **({"cluster": "c"} if token == NODE_POOL else {})}
    return dict(check_inputs(token, {**needed, **given}))


def test_what_the_schema_has_passes() -> None:
    given = {
        "releaseChannel": {"channel": "REGULAR"},
        "resourceLabels": {"any-key": "x"},
        "nodeLocations": ["a", UNKNOWN],
        "initialNodeCount": "1",
        "deletionProtection": Secret(True),
        "masterAuth": UNKNOWN,
        "ipAllocationPolicy": {},
        "clusterAutoscaling": {"resourceLimits": [{"resourceType": "cpu", "maximum": 10}]},
        "maintenancePolicy": {"dailyMaintenanceWindow": {"startTime": "03:00"}, "maintenanceExclusions": []},
        "description": None,
        "__defaults": [],
    }
    assert problems(CLUSTER, given) == {}


@pytest.mark.parametrize(
    ("token", "given", "path", "words"),
    [
        (CLUSTER, {"enableAutopliot": True}, "enableAutopliot", "no such property; did you mean enableAutopilot?"),
        (CLUSTER, {"enable_autopilot": True}, "enable_autopilot", "did you mean enableAutopilot?"),
        (
            CLUSTER,
            {"releaseChannel": {"chan": "x", "channel": "RAPID"}},
            "releaseChannel.chan",
            "did you mean channel?",
        ),
        (
            CLUSTER,
            {"clusterAutoscaling": {"resourceLimits": [{"max": 1, "maximum": 1, "resourceType": "cpu"}]}},
            "clusterAutoscaling.resourceLimits[0].max",
            "did you mean maximum?",
        ),
        (CLUSTER, {"releaseChannel": Secret("REGULAR")}, "releaseChannel", "str given; it is an object"),
        (CLUSTER, {"nodeLocations": "a"}, "nodeLocations", "str given; it is a list"),
        (CLUSTER, {"nodeLocations": [{}]}, "nodeLocations[0]", "dict given; it is a string"),
        (CLUSTER, {"resourceLabels": {"a": []}}, "resourceLabels.a", "list given; it is a string"),
        (CLUSTER, {"name": {"a": 1}}, "name", "dict given; it is a string"),
        (CLUSTER, {"initialNodeCount": "many"}, "initialNodeCount", "str given; it is a whole number"),
        (CLUSTER, {"initialNodeCount": 1.5}, "initialNodeCount", "float given; it is a whole number"),
        (CLUSTER, {"deletionProtection": "maybe"}, "deletionProtection", "str given; it is true or false"),
        (CLUSTER, {"masterVersion": "1.36"}, "masterVersion", "is set by Google; remove it"),
        (CLUSTER, {"name": None}, "name", "required field is not set; set it"),
        (CLUSTER, {"releaseChannel": {}}, "releaseChannel.channel", "required field is not set"),
        (CLUSTER, {"releaseChannel": {"channel": "Regular"}}, "releaseChannel.channel", "it is one of UNSPECIFIED, "),
        (
            CLUSTER,
            {"clusterAutoscaling": {"resourceLimits": [{"resourceType": "cpu", "maximum": 0}]}},
            "clusterAutoscaling.resourceLimits[0].maximum",
            "0 given; it is at least 1",
        ),
        (NODE_POOL, {"nodeConfig": {"diskSizeGb": 9}}, "nodeConfig.diskSizeGb", "it is at least 10"),
        (NODE_POOL, {"nodeConfig": {"flexstart": True}}, "nodeConfig.flexstart", "did you mean flexStart?"),
        (
            NODE_POOL,
            {"nodeConfig": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}},
            "nodeConfig.taints[0].effect",
            "it is one of NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE",
        ),
        (
            NODE_POOL,
            {"nodeConfig": {"guestAccelerators": ["nvidia-l4"]}},
            "nodeConfig.guestAccelerators[0]",
            "str given; it is an object",
        ),
        (
            CLUSTER,
            {"maintenancePolicy": {}},
            "maintenancePolicy.dailyMaintenanceWindow",
            "exactly one of maintenancePolicy.dailyMaintenanceWindow, ",
        ),
        (
            "gcp:compute/subnetwork:Subnetwork",
            {"network": "n", "logConfig": {}},
            "logConfig.aggregationInterval",
            "at least one of logConfig.aggregationInterval, ",
        ),
        (
            RESERVATION,
            {"zone": "z", "specificReservation": {**MACHINES, "sourceInstanceTemplate": "t"}},
            "specificReservation.instanceProperties",
            "exactly one of",
        ),
    ],
)
def test_what_it_does_not_have_is_refused(token: str, given: dict[str, Any], path: str, words: str) -> None:
    result = problems(token, given)
    assert set(result) == {path}
    assert words in result[path]
    assert result[path].startswith(f"{path}: ")


def test_what_excludes_each_other_is_refused_also_where_it_is_switched_off() -> None:
    result = problems(CLUSTER, {"enableAutopilot": True, "networkPolicy": {"enabled": False}})
    assert result == {"networkPolicy": "networkPolicy: conflicts with enableAutopilot; remove one of them"}


def test_an_autopilot_cluster_takes_a_workload_identity_pool_and_no_limits() -> None:
    autopilot = {"enableAutopilot": True, "workloadIdentityConfig": {"workloadPool": "p.svc.id.goog"}}
    assert problems(CLUSTER, autopilot) == {}
    limits = {"clusterAutoscaling": {"enabled": True, "resourceLimits": [{"resourceType": "cpu", "maximum": 9}]}}
    refused = problems(CLUSTER, autopilot | limits | {"enableShieldedNodes": True, "enableIntranodeVisibility": True})
    assert set(refused) == {
        "clusterAutoscaling.enabled",
        "clusterAutoscaling.resourceLimits",
        "enableShieldedNodes",
        "enableIntranodeVisibility",
    }


def test_what_goes_together_is_asked_for_together() -> None:
    together = Facts("", {"t": {"a": Fact("string", optional=True, together=("b",)), "b": Fact("int", optional=True)}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gcp_checks, "load_facts", lambda: together)
        assert check_inputs("t", {"a": "x"}) == [("a", "a: needs b; set it too, or remove a")]
        assert check_inputs("t", {"a": "x", "b": 1}) == []


def test_numbers_of_items_are_checked() -> None:
    exclusion = {"startTime": "2027-01-01T00:00:00Z", "endTime": "2027-01-02T00:00:00Z"}
    exclusions = [{"exclusionName": f"e{number}", **exclusion} for number in range(21)]
    policy = {"dailyMaintenanceWindow": {"startTime": "03:00"}, "maintenanceExclusions": exclusions}
    result = problems(CLUSTER, {"maintenancePolicy": policy})
    assert result == {
        "maintenancePolicy.maintenanceExclusions": (
            "maintenancePolicy.maintenanceExclusions: 21 items given; 0 to 20 are allowed"
        )
    }


@pytest.mark.parametrize(
    ("token", "given", "words"),
    [
        (CLUSTER, {"name": "0-batch"}, "begins with a letter"),
        (CLUSTER, {"name": "c" * 41}, "1 to 40"),
        ("gcp:compute/network:Network", {"name": "n" * 64}, "1 to 63"),
        ("gcp:compute/network:Network", {"name": "end-"}, "does not end with a hyphen"),
        ("gcp:serviceaccount/account:Account", {"name": None, "accountId": "gke-a"}, "6 to 30"),
        (
            "gcp:projects/iAMCustomRole:IAMCustomRole",
            {"name": None, "roleId": "my-role", "title": "t", "permissions": ["container.clusters.get"]},
            "3 to 64 letters",
        ),
        (
            CLUSTER,
            {"masterAuthorizedNetworksConfig": {"cidrBlocks": [{"cidrBlock": "203.0.113.7"}]}},
            "it needs the length of its prefix, such as 203.0.113.7/32",
        ),
        (CLUSTER, {"privateClusterConfig": {"masterIpv4CidrBlock": "10.0.0.0/24"}}, "a prefix of /28"),
        ("gcp:compute/subnetwork:Subnetwork", {"network": "n", "ipCidrRange": "10.0.0.1/20"}, "has host bits set"),
        (CLUSTER, {"ipAllocationPolicy": {"clusterIpv4CidrBlock": "/14"}}, None),
        (CLUSTER, {"maintenancePolicy": {"dailyMaintenanceWindow": {"startTime": "24:00"}}}, "a time of day"),
        (
            CLUSTER,
            {
                "maintenancePolicy": {
                    "recurringWindow": {
                        "startTime": "2027-01-01",
                        "endTime": "2027-01-01T04:00:00Z",
                        "recurrence": "FREQ=DAILY",
                    }
                }
            },
            "it is a time as in RFC 3339",
        ),
        (
            "gcp:projects/iAMMember:IAMMember",
            {"name": None, "project": "p", "role": "r", "member": "a@b.com"},
            "a kind and a name",
        ),
    ],
)
def test_forms_are_checked(token: str, given: dict[str, Any], words: str | None) -> None:
    result = list(problems(token, given).values())
    assert len(result) == (words is not None)
    assert words is None or words in result[0]


def test_all_problems_are_reported_at_once() -> None:
    assert len(problems(CLUSTER, {"x1": 1, "releaseChannel": {"x2": 1}, "nodeLocations": {}})) == 4
