"""What fits and what to ask for: each rule, and what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.preflight import projects

from kueue_admission.kernel.form_rules import Fault
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.preflight.facts import Facts, Quota, Reservation, Subnet
from kueue_fleet.preflight.findings import Finding, findings
from kueue_fleet.preflight.needs import needs_of
from kueue_fleet.preflight.quotas import Metric, QuotaNeed

NEEDS = projects.needs()


def roomy() -> Facts:
    """Facts of a project into which the fleet fits."""
    theirs = Reservation(
        "us-central1-b",
        "READY",
        "g2-standard-24",
        (("nvidia-l4", 2),),
        4,
        0,
        True,
        "SPECIFIC_PROJECTS",
        frozenset({"my-project"}),
    )
    return Facts(
        enabled_apis=frozenset(api.name for api in NEEDS.apis),
        quotas={need.metric: Quota(need.amount, 0) for need in NEEDS.quotas},
        machine_types=frozenset((need.zone, need.machine_type) for need in NEEDS.machines),
        accelerators=frozenset((need.zone, need.accelerator) for need in NEEDS.machines if need.accelerator),
        reservations={("their-project", "theirs"): (theirs,)},
        permissions=frozenset(name for role in NEEDS.roles for name in role.permissions),
    )


def found(facts: Facts, fleet: dict[str, Any] | None = None) -> list[Finding]:
    expected = NEEDS if fleet is None else needs_of(parse_fleet(fleet))[0]
    return [item for item in findings(expected, facts) if item.verdict != "fits"]


def only(facts: Facts) -> tuple[str, str, str, str, str]:
    (finding,) = found(facts)
    return finding.what, finding.has, finding.verdict, finding.wrong, finding.fix


def test_all_of_it_fits() -> None:
    assert found(roomy()) == []
    parts = [item.part for item in findings(NEEDS, roomy())]
    assert list(dict.fromkeys(parts)) == ["apis", "quotas", "machines", "reservations", "addresses", "permissions"]


def test_an_api_that_is_not_enabled() -> None:
    facts = replace(roomy(), enabled_apis=roomy().enabled_apis - {"compute.googleapis.com"})
    (enabled,) = [item for item in findings(NEEDS, facts) if item.what == "compute.googleapis.com"]
    assert (enabled.verdict, enabled.has) == ("fits", "enabled by `pulumi up`")
    (finding,) = found(facts, projects.fleet_data() | {"enableApis": False})
    assert (finding.what, finding.has, finding.verdict) == ("compute.googleapis.com", "off", "ask")
    assert finding.wrong == "is not enabled; it is for networks, nodes, reservations and commitments"
    assert finding.fix == "run: gcloud services enable compute.googleapis.com --project my-project"


def test_a_limit_that_no_api_has_is_to_be_compared_by_hand() -> None:
    metric = Metric("EnterpriseStorageGibPerRegion", "us-central1", unread="file.googleapis.com")
    needs = NEEDS._replace(quotas=(QuotaNeed(metric, 1024, None, {"storage home": 1024}),))
    [finding] = [item for item in findings(needs, roomy()) if item.part == "quotas"]
    assert (finding.verdict, finding.fails, finding.has) == ("check", False, "?")
    assert finding.wrong == (
        "preflight cannot read quotas of file.googleapis.com, and the fleet makes 1024 GiB (storage home 1024)"
    )
    assert finding.fix == (
        "compare it with EnterpriseStorageGibPerRegion of file.googleapis.com in us-central1, on the quotas page of "
        "the console"
    )


class TestQuotas:
    L4 = Metric("NVIDIA_L4_GPUS", "us-central1")
    SPOT = Metric("PREEMPTIBLE_NVIDIA_L4_GPUS", "us-central1")

    def with_quota(self, metric: Metric, quota: Quota | None) -> Facts:
        quotas = {**roomy().quotas}
        if quota is None:
            del quotas[metric]
        else:
            quotas[metric] = quota
        return replace(roomy(), quotas=quotas)

    def test_too_little(self) -> None:
        assert only(self.with_quota(self.L4, Quota(10, 2))) == (
            "NVIDIA_L4_GPUS in us-central1",
            "10, 2 in use",
            "ask",
            "the limit is 10, but the fleet grows to 18 (only/shared 8, only/l4 6 and reservation kept 4)",
            "ask for 18 of NVIDIA_L4_GPUS in us-central1, or lower the limits of these",
        )

    def test_enough_only_without_what_is_in_use(self) -> None:
        """A fleet that is there already is itself in use."""
        (finding,) = found(self.with_quota(self.L4, Quota(20, 5)))
        assert (finding.verdict, finding.fails) == ("check", False)
        assert finding.wrong.endswith(" and what is in use (5) are more than the limit, 20")
        assert finding.fix == "if what is in use is not this fleet's, ask for 23 of NVIDIA_L4_GPUS in us-central1"

    @pytest.mark.parametrize("quota", [Quota(18, 0), Quota(18, None), Quota(-1, 5), Quota(23, 5)])
    def test_enough(self, quota: Quota) -> None:
        assert found(self.with_quota(self.L4, quota)) == []

    @pytest.mark.parametrize("spot", [None, Quota(0, 0)])
    def test_without_preemptible_quota_spot_counts_as_standard(self, spot: Quota | None) -> None:
        facts = self.with_quota(self.SPOT, spot)
        (finding,) = found(facts)
        assert (finding.what, finding.needs, finding.has) == ("NVIDIA_L4_GPUS in us-central1", "34", "18, 0 in use")
        assert found(replace(facts, quotas={**facts.quotas, self.L4: Quota(34, 0)})) == []

    def test_preemptible_quota_is_not_filled_up_with_standard(self) -> None:
        (finding,) = found(self.with_quota(self.SPOT, Quota(8, 0)))
        assert (finding.what, finding.needs) == ("PREEMPTIBLE_NVIDIA_L4_GPUS in us-central1", "16")

    def test_all_regions(self) -> None:
        (finding,) = found(self.with_quota(Metric("GPUS_ALL_REGIONS"), Quota(1, 0)))
        assert finding.what == "GPUS_ALL_REGIONS in all regions"
        assert finding.fix.startswith("ask for 46 of GPUS_ALL_REGIONS, or ")

    def test_one_that_google_does_not_report(self) -> None:
        (finding,) = found(self.with_quota(Metric("GPUS_ALL_REGIONS"), None))
        assert (finding.verdict, finding.has) == ("unknown", "?")
        assert finding.fix == "look for GPUS_ALL_REGIONS on the quotas page of the console, and ask for 46"


def test_a_machine_that_a_zone_does_not_have() -> None:
    here = ("us-central1-a", "a3-highgpu-8g")
    facts = replace(
        roomy(), machine_types=roomy().machine_types - {here} | {("us-central1-f", here[1]), ("us-east4-a", here[1])}
    )
    assert only(facts) == (
        "a3-highgpu-8g in us-central1-a",
        "not there",
        "ask",
        "us-central1-a has no a3-highgpu-8g",
        "of us-central1 it is in us-central1-f; take other zones or machines for only/h100",
    )
    facts = replace(roomy(), accelerators=frozenset())
    assert {item.fix for item in found(facts)} == {
        "it is in no zone of us-central1; take other zones or machines for only/t4"
    }


class TestReservations:
    def theirs(self, **changes: Any) -> list[Finding]:
        (there,) = roomy().reservations["their-project", "theirs"]
        return found(replace(roomy(), reservations={("their-project", "theirs"): (there._replace(**changes),)}))

    @pytest.mark.parametrize(
        ("changes", "wrong", "fix"),
        [
            (
                {"zone": "us-central1-c"},
                "it is not in us-central1-b; it is in us-central1-c",
                "take a zone where it is, or another reservation, in nodePools[shared].capacity",
            ),
            (
                {"machine_type": "g2-standard-48"},
                "its machines in us-central1-b are g2-standard-48, not g2-standard-24",
                "write the same type in nodePools[shared].capacity",
            ),
            (
                {"machines": 3},
                "it has 3 machines, but pools grow to 4 nodes",
                "lower their limits to 3 nodes in all, or have it enlarged",
            ),
            (
                {"specific": False},
                "it is not specific in us-central1-b, so that any machine may take its place",
                "have it made with specificReservationRequired",
            ),
            ({"status": "CREATING"}, "it is CREATING in us-central1-b", "wait until it is READY"),
            (
                {"shared_with": frozenset({"other-project"})},
                "it is not shared with my-project in us-central1-b",
                "have it shared with my-project",
            ),
            (
                {"share_type": "LOCAL", "shared_with": frozenset()},
                "it is not shared with my-project in us-central1-b",
                "have it shared with my-project",
            ),
        ],
    )
    def test_what_pools_need_of_it(self, changes: dict[str, Any], wrong: str, fix: str) -> None:
        (finding,) = self.theirs(**changes)
        assert (finding.what, finding.verdict) == ("theirs of their-project", "ask")
        assert (finding.wrong, finding.fix) == (wrong, fix)

    def test_all_of_it_at_once(self) -> None:
        assert (
            len(self.theirs(machine_type="x", machines=1, specific=False, status="DELETING", shared_with=frozenset()))
            == 5
        )

    def test_a_share_by_number_or_for_the_organization(self) -> None:
        (there,) = roomy().reservations["their-project", "theirs"]
        by_number = {("their-project", "theirs"): (there._replace(shared_with=frozenset({"123"})),)}
        assert found(replace(roomy(), reservations=by_number, project_number="123")) == []
        assert self.theirs(share_type="ORGANIZATION", shared_with=frozenset()) == []

    def test_there_is_none(self) -> None:
        (finding,) = found(replace(roomy(), reservations={}))
        assert finding.wrong == "it is not in us-central1-b; their-project has no reservation theirs"

    def kept(self, **changes: Any) -> list[Finding]:
        there = Reservation("us-central1-a", "READY", "g2-standard-24", (), 2, 0, True, "LOCAL", frozenset())
        result = {("my-project", "kept"): (there._replace(**changes),)}
        return found(replace(roomy(), reservations={**roomy().reservations, **result}))

    def test_one_of_the_file_may_exist_or_not(self) -> None:
        (new,) = [item for item in findings(NEEDS, roomy()) if item.what == "kept of my-project"]
        assert (new.verdict, new.has) == ("fits", "made by `pulumi up`")
        assert self.kept() == []

    def test_one_of_the_file_is_as_the_file_says(self) -> None:
        (finding,) = self.kept(machine_type="g2-standard-48")
        assert finding.verdict == "ask"
        (finding,) = self.kept(machines=5)
        assert (finding.verdict, finding.wrong) == ("check", "it has 5 machines in us-central1-a, not 2")
        data = projects.fleet_data()
        data["reservations"][0]["sharedWith"] = ["other-project", "third-project"]
        there = Reservation(
            "us-central1-a",
            "READY",
            "g2-standard-24",
            (),
            2,
            0,
            True,
            "SPECIFIC_PROJECTS",
            frozenset({"other-project"}),
        )
        facts = replace(roomy(), reservations={**roomy().reservations, ("my-project", "kept"): (there,)})
        (finding,) = found(facts, data)
        assert finding.wrong == "it is not shared with third-project in us-central1-a"

    def test_gpus_that_are_attached(self) -> None:
        data = projects.fleet_data()
        gpus = {"type": "nvidia-tesla-t4", "count": 2}
        data["reservations"] = [
            {"name": "kept", "zone": "us-central1-a", "machineType": "n1-standard-4", "count": 2, "accelerator": gpus}
        ]
        data["nodePools"] = [item for item in data["nodePools"] if item["name"] != "l4-kept"]
        there = Reservation(
            "us-central1-a", "READY", "n1-standard-4", (("nvidia-tesla-t4", 1),), 2, 0, True, "LOCAL", frozenset()
        )
        result = {("my-project", "kept"): (there,)}
        wrong = [
            entry.wrong
            for entry in found(replace(roomy(), reservations={**roomy().reservations, **result}), data)
            if entry.part == "reservations"
        ]
        assert wrong == ["GPUs of its machines in us-central1-a: 1 nvidia-tesla-t4, not 2 nvidia-tesla-t4"]


def test_ranges_that_are_taken() -> None:
    taken = Subnet("old", "us-central1", "10.0.0.0/16", "pods")
    own = Subnet("lab-us-central1", "us-central1", "10.128.0.0/20", "")
    facts = replace(roomy(), subnets=(taken, own))
    assert only(facts) == (
        "10.0.0.0/15 for pods in us-central1",
        "taken",
        "ask",
        "overlaps with 10.0.0.0/16 of subnet old in network lab",
        "write another range in network.podRanges[us-central1]",
    )
    assert found(replace(roomy(), subnets=())) == []


class TestANetworkOfSomebodyElse:
    DATA = projects.fleet_data() | {
        "network": {
            "existing": {
                "name": "shared",
                "project": "host-project",
                "subnets": {"us-central1": {"name": "gpus", "podRangeName": "pods", "serviceRangeName": "services"}},
            }
        }
    }

    def with_subnets(self, *subnets: Subnet) -> list[Finding]:
        facts = replace(roomy(), subnets=subnets)
        return [item for item in findings(needs_of(parse_fleet(self.DATA))[0], facts) if item.part == "addresses"]

    def test_its_subnet_is_there_with_its_ranges(self) -> None:
        ranges = [Subnet("gpus", "us-central1", "10.0.0.0/20", name) for name in ("", "pods", "services")]
        (finding,) = self.with_subnets(*ranges)
        assert (finding.what, finding.needs) == ("subnet gpus in us-central1", "there with pods and services")
        assert finding.verdict == "fits"
        (finding,) = self.with_subnets(*ranges[:2])
        assert (finding.verdict, finding.wrong) == ("ask", "it has no secondary range services")

    def test_its_subnet_is_elsewhere(self) -> None:
        (finding,) = self.with_subnets(Subnet("gpus", "us-east4", "10.0.0.0/20", ""))
        assert finding.wrong == "network shared of host-project has no such subnet"
        assert finding.fix == "write the name of one in network.existing.subnets[us-central1]"

    def test_the_fleet_makes_no_network(self) -> None:
        expected = needs_of(parse_fleet(self.DATA))[0]
        assert "roles/compute.networkAdmin" not in {need.role for need in expected.roles}
        assert not {need.metric.name for need in expected.quotas} & {"NETWORKS", "SUBNETWORKS", "ROUTERS"}


def test_permissions_that_are_missing() -> None:
    held = roomy().permissions - {"container.clusters.delete", "container.clusters.update"}
    assert only(replace(roomy(), permissions=held)) == (
        "roles/container.admin",
        "5 of 7",
        "ask",
        "you lack container.clusters.update and container.clusters.delete, for clusters, node pools, and what is in "
        "the clusters",
        "ask for roles/container.admin in my-project",
    )


@pytest.mark.parametrize(
    ("unread", "part", "some"),
    [
        ("apis", "apis", "compute.googleapis.com"),
        ("quotas", "quotas", "GPUS_ALL_REGIONS in all regions"),
        ("quotas us-central1", "quotas", "NVIDIA_L4_GPUS in us-central1"),
        ("machines us-central1-a", "machines", "a3-highgpu-8g in us-central1-a"),
        ("machines accelerators", "machines", "nvidia-tesla-t4 in us-central1-a"),
        ("reservations their-project", "reservations", "theirs of their-project"),
        ("addresses", "addresses", "10.0.0.0/15 for pods in us-central1"),
        ("permissions", "permissions", "roles/container.admin"),
    ],
)
def test_what_could_not_be_read_is_unknown_and_the_rest_is_not(unread: str, part: str, some: str) -> None:
    unknown = found(replace(roomy(), unread={unread: Fault("you may not", "ask for it")}))
    assert some in {item.what for item in unknown}
    assert {(each.part, each.verdict, each.wrong, each.fix) for each in unknown} == {
        (part, "unknown", "you may not", "ask for it")
    }
    assert all(entry.fails for entry in unknown)


@pytest.mark.parametrize(
    ("role", "section"),
    [
        ("roles/compute.admin", {"reservations": [], "nodePools": []}),
        ("roles/gkehub.admin", {"clusters": [projects.fleet_data()["clusters"][0] | {"fleetMembership": False}]}),
        ("roles/serviceusage.serviceUsageAdmin", {"enableApis": False}),
    ],
)
def test_a_role_is_asked_for_only_where_it_is_used(role: str, section: dict[str, Any]) -> None:
    assert role in {need.role for need in NEEDS.roles}
    assert role not in {need.role for need in needs_of(parse_fleet(projects.fleet_data() | section))[0].roles}


def test_dashboards_and_members_of_teams_need_roles() -> None:
    team = {"name": "vision", "members": ["group:vision@example.com"], "localQueues": []}
    data = projects.fleet_data() | {"observability": {}, "teams": [team]}
    roles = {need.role for need in needs_of(parse_fleet(data))[0].roles}
    assert roles - {need.role for need in NEEDS.roles} == {"roles/monitoring.editor", "roles/iam.roleAdmin"}
