"""Google Cloud's resources as data: ids, outputs, places."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.google.plan import previewed
from kueue_fleet.google.resource_kinds import kind_of
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL
from kueue_rehearsal.standins.gcp_resources import check_version, completed
from kueue_rehearsal.standins.plugin_errors import PluginError

PLACE = {"project": "p", "region": "europe-west4"}


@pytest.mark.parametrize(
    ("token", "inputs", "resource_id", "outputs"),
    [
        (
            "gcp:compute/network:Network",
            {"name": "n", "project": "p"},
            "projects/p/global/networks/n",
            {"selfLink": "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"},
        ),
        (
            "gcp:compute/subnetwork:Subnetwork",
            {"name": "s", "project": "p", "region": "r", "ipCidrRange": "10.1.0.0/20"},
            "projects/p/regions/r/subnetworks/s",
            {"gatewayAddress": "10.1.0.1"},
        ),
        (
            "gcp:serviceaccount/account:Account",
            {"accountId": "nodes", "project": "p"},
            "projects/p/serviceAccounts/nodes@p.iam.gserviceaccount.com",
            {
                "email": "nodes@p.iam.gserviceaccount.com",
                "member": "serviceAccount:nodes@p.iam.gserviceaccount.com",
                "name": "projects/p/serviceAccounts/nodes@p.iam.gserviceaccount.com",
            },
        ),
        ("gcp:projects/iAMMember:IAMMember", {"project": "p", "role": "r", "member": "m"}, "p/r/m", {}),
        ("gcp:projects/service:Service", {"project": "p", "service": "s.googleapis.com"}, "p/s.googleapis.com", {}),
        (CLUSTER, {"project": "p", "location": "l", "name": "c"}, "projects/p/locations/l/clusters/c", {}),
    ],
)
def test_ids_and_outputs_are_those_of_google(
    token: str, inputs: dict[str, Any], resource_id: str, outputs: dict[str, Any]
) -> None:
    kind = kind_of(token)
    assert kind.resource_id(inputs) == resource_id
    derived = kind.derive(inputs, resource_id)
    assert outputs.items() <= derived.items()
    assert kind.derive(inputs, resource_id) == derived, "the same inputs must give the same outputs"


def test_project_and_place_come_from_the_provider_when_they_are_not_given() -> None:
    subnetwork = "gcp:compute/subnetwork:Subnetwork"
    assert completed(subnetwork, {"name": "s"}, PLACE) == {"name": "s", **PLACE}
    assert completed(CLUSTER, {"name": "c"}, PLACE)["location"] == "europe-west4"
    membership = {"project": "p", "membershipId": "m"}
    assert completed("gcp:gkehub/membership:Membership", membership, {}) == {**membership, "location": "global"}
    assert completed(subnetwork, {"name": "s", "project": "q", "region": UNKNOWN}, {})["region"] is UNKNOWN


@pytest.mark.parametrize(("where", "missing"), [({"region": "r"}, "project"), ({"project": "p"}, "location")])
def test_a_place_that_is_given_nowhere_is_asked_for(where: dict[str, str], missing: str) -> None:
    with pytest.raises(PluginError, match=f"{missing}: required field is not set"):
        completed(CLUSTER, {"name": "c"}, where)


def test_what_google_adds_is_not_known_in_a_preview() -> None:
    cluster = previewed(CLUSTER, {"name": "c"})
    assert cluster["name"] == "c"
    assert cluster["endpoint"] is UNKNOWN
    assert cluster["masterAuth"] is UNKNOWN
    assert previewed(NODE_POOL, {"name": "p"})["version"] is UNKNOWN
    account = previewed("gcp:serviceaccount/account:Account", {"accountId": UNKNOWN, "project": "p"})
    assert account["email"] is UNKNOWN
    assert previewed("gcp:projects/iAMMember:IAMMember", {"role": "r"}) == {"role": "r", "etag": UNKNOWN}


@pytest.mark.parametrize(
    ("wanted", "fits"), [("1.31", True), ("1.36.9-gke.1", True), ("1.40", False), ("latest", True)]
)
def test_a_minimum_version_is_held_against_the_rehearsals(wanted: str, fits: bool) -> None:
    if fits:
        check_version({"minMasterVersion": wanted}, "v1.36.3")
        return
    with pytest.raises(PluginError, match="a rehearsal has Kubernetes"):
        check_version({"minMasterVersion": wanted}, "v1.36.3")


def test_a_dashboard_has_a_number_of_its_own() -> None:
    kind = kind_of("gcp:monitoring/dashboard:Dashboard")
    one, two = (kind.resource_id({"project": "p", "dashboardJson": text}) for text in ("{}", "{ }"))
    assert one.startswith("projects/p/dashboards/1")
    assert one != two
