"""What a program gives to `Fleet` beside the file, and several fleets in one program."""

from __future__ import annotations

import base64
import json
from collections import Counter

import pulumi
import pulumi_gcp as gcp
import pytest

import pulumi_mocks
from company_fleet import WORKERS, without_worker
from kueue_admission.kernel import SpecError
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from mocked_fleets import run
from pulumi_mocks import Recording
from small_fleets import MANAGER, WORKER, fleet, fleet_data

_, US, ASIA = WORKERS


@pytest.fixture(scope="module")
def one_worker() -> Recording:
    return run(fleet(WORKER))


class Platform(pulumi.ComponentResource):
    """A company's own component, with a fleet in it."""

    def __init__(self, name: str, spec: FleetSpec) -> None:
        super().__init__("company:index:Platform", name)
        Fleet(spec.name, spec, opts=pulumi.ResourceOptions(parent=self))


def test_fleets_in_one_program_share_no_name() -> None:
    """The same clusters in other projects: nothing of one fleet has the name of anything of another.

    One is named by its file, two by the program, and two are below parents of one type.
    """
    spec = parse_fleet(without_worker(US, ASIA))
    beside, below = (spec.name, "gpus", "research"), ("vision", "speech")

    def program() -> None:
        for name in (*beside, *below):
            there = spec.model_copy(update={"project": f"project-of-{name}"})
            Fleet(name, there) if name in beside else Platform(name, there)

    together = [resource for resource in pulumi_mocks.run(program) if resource.type != "company:index:Platform"]
    kinds = [(resource.type, resource.name) for resource in together]
    assert len(set(kinds)) == len(kinds)
    owners = Counter(name.split("/")[0] for _, name in kinds)
    assert len(owners) == len(beside) + len(below)
    assert len(set(owners.values())) == 1, owners
    projects: dict[str, str] = {}
    for resource in together:
        if resource.type.startswith("gcp:") and "project" in resource.inputs:
            owner = resource.name.split("/")[0]
            assert projects.setdefault(owner, resource.inputs["project"]) == resource.inputs["project"]
    assert sorted(projects.values()) == sorted(f"project-of-{name}" for name in (*beside, *below))


def test_what_an_earlier_release_gave_short_names_is_kept(one_worker: Recording) -> None:
    """That the engine finds everything below by these aliases is in tests/engines/test_fleet_on_pulumi.py."""
    named = {resource.place for resource in one_worker if resource.aliases}
    assert named >= {MANAGER, WORKER, fleet(WORKER).network_name}
    other = pulumi_mocks.run(lambda: Fleet("platform", fleet(WORKER)) and None)
    retyped = ("kubernetes:", "gcp:serviceaccount/")
    aliases = {resource.name for resource in other if resource.aliases and not resource.type.startswith(retyped)}
    assert not aliases, "a fleet of another name never had short names; those may be another fleet's"


def with_secrets() -> FleetSpec:
    data = fleet_data(WORKER)
    data["teams"][0] |= {"namespaces": ["team-a", "team-a-dev"], "secrets": ["hugging-face"]}
    return parse_fleet(data)


def test_what_teams_keep_secret_is_in_their_namespaces_where_jobs_run_and_nowhere_in_clear() -> None:
    spec = with_secrets()
    secrets = {"hugging-face": {"token": "hf-1234"}, "another": {"key": "not-asked-for"}}
    recording = pulumi_mocks.run(lambda: Fleet(spec.name, spec, team_secrets=secrets))
    result = {r.place: r for r in recording.of_type("Secret") if "hugging-face" in r.place}
    assert set(result) == {f"{WORKER}/team-a/{space}/Secret/hugging-face" for space in ("team-a", "team-a-dev")}
    for secret in result.values():
        assert base64.b64decode(secret.inputs["data"]["token"]) == b"hf-1234"
        assert "data" in secret.secrets
        assert set(secret.secret_outputs) >= {"data", "stringData"}
        assert recording.is_before(recording.one("Namespace", secret.place.rpartition("/Secret/")[0]), secret)
    plain = json.dumps([[r.inputs, r.outputs] for r in recording if not r.secrets])
    for value in ("hf-1234", base64.b64encode(b"hf-1234").decode(), "not-asked-for"):
        assert value not in plain


def test_secrets_of_teams_that_nobody_gives() -> None:
    spec = with_secrets()
    with pytest.raises(SpecError, match=r"teams\[team-a\]\.secrets: set, but the program gives no contents"):
        run(spec)
    with pytest.raises(pulumi.RunError, match=r"kueue-fleet:teamSecrets\.hugging-face\.KEY"):
        run(spec, team_secrets={"hugging-fac": {"token": "hf-1234"}})


def test_accounts_of_nodes_may_be_outputs_of_the_program() -> None:
    def program() -> None:
        account = gcp.serviceaccount.Account("gpu-nodes", project="p-1234", account_id="gpu-nodes")
        Fleet("lab", fleet(WORKER), node_service_accounts={WORKER: account.email})

    recording = pulumi_mocks.run(program)
    defaults = recording.one("gcp:container/cluster:Cluster", WORKER).inputs["clusterAutoscaling"]
    theirs = defaults["autoProvisioningDefaults"]["serviceAccount"]
    assert theirs == "gpu-nodes@p-1234.iam.gserviceaccount.com"
    assert recording.is_before(recording.one("Account", "gpu-nodes"), recording.one("Cluster", WORKER))
    assert [account.place for account in recording.of_type("Account")] == ["gpu-nodes", f"{MANAGER}-nodes"]


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("other", "clusters: the program gives an account for other, which is not in the file"),
        (WORKER, rf"clusters\[{WORKER}\]\.nodeServiceAccount: set, but the program gives the account"),
    ],
)
def test_an_account_of_nodes_that_is_not_wanted_is_refused(cluster: str, message: str) -> None:
    theirs = "gpu-nodes@p-1234.iam.gserviceaccount.com"
    data = fleet_data(WORKER)
    data["clusters"][1]["nodeServiceAccount"] = theirs
    spec = parse_fleet(data)
    with pytest.raises(SpecError, match=message):
        pulumi_mocks.run(
            lambda: Fleet("lab", spec, node_service_accounts={cluster: "a@p-1234.iam.gserviceaccount.com"})
        )
