"""Every rule is broken by its seed and by no other's; none depends on what a preview does not know."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy, StackValidationArgs, StackValidationPolicy
from pulumi_policy.proxy import (
    UNKNOWN_ARRAY_VALUE,
    UNKNOWN_BOOLEAN_VALUE,
    UNKNOWN_NUMBER_VALUE,
    UNKNOWN_OBJECT_VALUE,
    UNKNOWN_STRING_VALUE,
    unknown_checking_proxy,
)
from tests.policies.declared import (
    QUEUED,
    REGION,
    Declared,
    Seed,
    as_input,
    as_stack,
    auto_provisioning,
    autopilot,
    cluster,
    pool,
    release,
    workload,
)
from tests.policies.seeds import SEEDS

from kueue_fleet_policies import RULES, ResourceRule, StackRule, policies
from kueue_fleet_policies.estate import Estate
from kueue_fleet_policies.resource import KUBERNETES_PROVIDER, Resource

BY_NAME = {rule.name: rule for rule in RULES}
IDS = [seed.rule for seed in SEEDS]
REMEDIES_ONLY = {rule.name for rule in RULES if isinstance(rule, ResourceRule) and rule.check is None}
JUDGED = [seed for seed in SEEDS if seed.rule not in REMEDIES_ONLY]


NO_RESERVATION = {"consumeReservationType": "NO_RESERVATION"}
SPECIFIC = {
    "consumeReservationType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["l4"],
}


def alone(declared: Declared) -> Declared:
    """The resource without what it refers to."""
    return replace(declared, props=declared.known(), provider=None)


def broken(seed: Seed) -> list[tuple[str, str | None, str]]:
    """Rule, resource and message of everything that is wrong with a seed."""
    result: list[tuple[str, str | None, str]] = []
    estate = Estate.of(as_stack(seed.resources))
    resources = [Resource.of(as_input(one)) for one in seed.resources]
    for rule in RULES:
        config = seed.config if rule.name == seed.rule else {}
        if isinstance(rule, ResourceRule):
            for one in resources:
                result += [(rule.name, one.name, str(p)) for p in rule.problems(one, config)]
        else:
            result += [(rule.name, urn.rsplit("::", 1)[-1] or None, str(p)) for urn, p in rule.problems(estate, config)]
    return result


def test_every_rule_has_a_seed_and_no_two_rules_have_a_name() -> None:
    assert sorted(IDS) == sorted(BY_NAME)
    assert len(RULES) == len(BY_NAME) > 40


@pytest.mark.parametrize("seed", JUDGED, ids=[seed.rule for seed in JUDGED])
def test_a_seed_breaks_exactly_its_rule_and_is_told_what_to_change(seed: Seed) -> None:
    result = broken(seed)
    assert [(rule, resource) for rule, resource, _ in result] == [(seed.rule, seed.at)]
    assert seed.says in result[0][2]
    assert "; " in result[0][2]


GOOD = (
    cluster("good"),
    cluster("auto-provisioning", {"clusterAutoscaling": auto_provisioning(nvidia_l4=16)}),
    cluster("listed", {"controlPlaneEndpointsConfig": None, "privateClusterConfig.enablePrivateEndpoint": True}),
    autopilot("autopilot"),
    pool("good"),
    pool("cpu", machine="e2-standard-4"),
    pool("queued", QUEUED),
    pool("spot", {"nodeConfig.spot": True, "nodeConfig.reservationAffinity": NO_RESERVATION}),
    pool("reserved", {"nodeConfig.reservationAffinity": SPECIFIC, "autoscaling": None, "nodeCount": 2}),
    pool("compact", {"placementPolicy": {"type": "COMPACT"}, "nodeLocations": [f"{REGION}-b"]}),
    release("good", by="p"),
    workload("good", by="p"),
    *{one.type: alone(one) for seed in SEEDS for one in seed.resources if one.name != seed.at and seed.at}.values(),
)
GOOD_IDS = [f"{one.type.rsplit(':', 1)[-1]}-{one.name}" for one in GOOD]


@pytest.mark.parametrize("declared", GOOD, ids=GOOD_IDS)
def test_what_is_right_breaks_nothing(declared: Declared) -> None:
    assert broken(Seed("", (declared,), None)) == []


# --- what a preview does not know -------------------------------------------------------------------------------------

MARKS = (
    UNKNOWN_STRING_VALUE,
    UNKNOWN_OBJECT_VALUE,
    UNKNOWN_ARRAY_VALUE,
    UNKNOWN_BOOLEAN_VALUE,
    UNKNOWN_NUMBER_VALUE,
)


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in nested data but the top."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in parts:
        yield (*path, key)
        yield from paths_in(item, (*path, key))


def with_unknown(props: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """`props` with the value at a path not known, of a kind that fits where it lies."""
    result = copy.deepcopy(props)
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = MARKS[len(path) % len(MARKS)]
    return result


def reports_of(policy: Any, args: Any) -> list[str]:
    """What a policy reports; a policy that touches an unknown value raises here, as it would in the SDK."""
    output: list[str] = []
    policy.validate(args, lambda message, _urn=None: output.append(message))
    return output


RESOURCE_SEEDS = [seed for seed in JUDGED if isinstance(BY_NAME[seed.rule], ResourceRule)]
STACK_SEEDS = [seed for seed in JUDGED if isinstance(BY_NAME[seed.rule], StackRule)]
STACK_AT = [seed for seed in STACK_SEEDS if seed.at]


@pytest.mark.parametrize("seed", RESOURCE_SEEDS, ids=[seed.rule for seed in RESOURCE_SEEDS])
def test_an_unknown_property_takes_a_rule_at_most_the_violation_that_lies_in_it(seed: Seed) -> None:
    """The rule never touches it, and goes on seeing a violation that lies elsewhere."""
    policy = BY_NAME[seed.rule].policy()
    assert isinstance(policy, ResourceValidationPolicy)
    props = seed.culprit.known()
    lost = []
    for path in paths_in(props):
        proxied = unknown_checking_proxy(with_unknown(props, path))
        output = reports_of(policy, as_input(seed.culprit, proxied, seed.config))
        assert len(output) <= 1
        if not output:
            lost.append(path)
    unrelated = [path for path in paths_in(props) if path not in lost]
    assert unrelated or len(props) <= 2, "every property matters: the rule reads what it does not need"


@pytest.mark.parametrize("seed", STACK_SEEDS, ids=[seed.rule for seed in STACK_SEEDS])
def test_an_unknown_property_of_any_resource_never_stops_a_stack_rule(seed: Seed) -> None:
    policy = BY_NAME[seed.rule].policy()
    assert isinstance(policy, StackValidationPolicy)
    kept = 0
    for index, one in enumerate(seed.resources):
        for path in paths_in(one.known()):
            stack = as_stack(seed.resources)
            stack[index].props = unknown_checking_proxy(with_unknown(one.known(), path))
            for number, other in enumerate(stack):
                if number != index:
                    other.props = unknown_checking_proxy(dict(other.props))
            output = reports_of(policy, StackValidationArgs(stack, seed.config))
            assert len(output) <= 1
            kept += bool(output)
    assert kept


@pytest.mark.parametrize("rule", [r for r in RULES if isinstance(r, ResourceRule) and r.check], ids=lambda r: r.name)
def test_no_rule_touches_an_unknown_value_of_any_resource(rule: ResourceRule) -> None:
    """Each of its kinds of resource, from every seed, with each of its properties unknown in turn."""
    policy = rule.policy()
    seen: set[str] = set()
    for seed in SEEDS:
        for one in seed.resources:
            if rule.concerns(one.type) and one.type not in seen:
                seen.add(one.type)
                for path in paths_in(one.known()):
                    reports_of(policy, as_input(one, unknown_checking_proxy(with_unknown(one.known(), path))))
    assert seen


@pytest.mark.parametrize("declared", GOOD, ids=GOOD_IDS)
def test_what_is_not_known_is_never_held_against_a_resource(declared: Declared) -> None:
    props = declared.known()
    for path in paths_in(props):
        resource = Resource.of(as_input(declared, unknown_checking_proxy(with_unknown(props, path))))
        output = [problem for rule in RULES if isinstance(rule, ResourceRule) for problem in rule.problems(resource)]
        assert output == [], path


# --- what nobody should write, but somebody will ----------------------------------------------------------------------

JUNK: tuple[Any, ...] = ("[secret]", None, True, -1, [], {}, [None], ["x"], {"x": "y"}, [{"x": None}])
"""Wrong values; the first is what an analysis has in place of every secret that it cannot open, of whatever type."""


def with_junk(props: dict[str, Any], path: tuple[Any, ...], junk: Any) -> dict[str, Any]:
    result = copy.deepcopy(props)
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = copy.deepcopy(junk)
    return result


SAMPLES = {(one.type, one.props.get("enableAutopilot", False)): one for one in (*GOOD, *(s.culprit for s in STACK_AT))}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=[f"{t.rsplit(':', 1)[-1]}-{a}" for t, a in SAMPLES])
def test_a_wrong_value_is_no_reason_to_crash(sample: Declared) -> None:
    rules = [rule for rule in RULES if isinstance(rule, ResourceRule) and rule.concerns(sample.type)]
    for path in paths_in(sample.known()):
        for junk in JUNK:
            resource = Resource.of(as_input(sample, with_junk(sample.known(), path, junk)))
            for rule in rules:
                rule.problems(resource)


@pytest.mark.parametrize("seed", STACK_SEEDS, ids=[seed.rule for seed in STACK_SEEDS])
def test_a_wrong_value_anywhere_is_no_reason_for_a_stack_rule_to_crash(seed: Seed) -> None:
    rule = BY_NAME[seed.rule]
    assert isinstance(rule, StackRule)
    for index, one in enumerate(seed.resources):
        for number, path in enumerate(paths_in(one.known())):
            stack = as_stack(seed.resources)
            stack[index].props = with_junk(one.known(), path, JUNK[number % len(JUNK)])
            list(rule.problems(Estate.of(stack), seed.config))


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", RESOURCE_SEEDS, ids=[seed.rule for seed in RESOURCE_SEEDS])
def test_an_exemption_holds_for_the_resource_it_names_and_for_no_other(seed: Seed) -> None:
    rule = BY_NAME[seed.rule]
    assert isinstance(rule, ResourceRule)
    resource = Resource.of(as_input(seed.culprit))
    for named, expected in ((resource.name, 0), (resource.urn, 0), (f"{resource.name}-2", 1), ("*", 1)):
        exemptions = [{"resource": named, "reason": "there is a reason for it"}]
        assert len(rule.problems(resource, {**seed.config, "exemptions": exemptions})) == expected, named


@pytest.mark.parametrize("seed", STACK_AT, ids=[seed.rule for seed in STACK_AT])
def test_an_exemption_from_a_stack_rule_holds_for_the_resource_it_names(seed: Seed) -> None:
    rule = BY_NAME[seed.rule]
    assert isinstance(rule, StackRule)
    estate = Estate.of(as_stack(seed.resources))
    exempt = {**seed.config, "exemptions": [{"resource": seed.at, "reason": "there is a reason for it"}]}
    assert list(rule.problems(estate, exempt)) == []
    other = {**seed.config, "exemptions": [{"resource": "somebody", "reason": "there is a reason for it"}]}
    assert len(list(rule.problems(estate, other))) == 1


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="region-allowed: there is no setting regionz; use regions, exemptions"):
        BY_NAME["region-allowed"].settings({"regionz": ["europe-west4"]})


def test_every_row_judges_or_repairs() -> None:
    assert [rule.name for rule in RULES if not (rule.check or rule.remediable)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_who_it_is(rule: ResourceRule | StackRule) -> None:
    policy = rule.policy()
    assert policy.name == rule.name
    assert rule.asks.endswith(".")
    assert " must " in rule.asks, "the headline says what must be"
    assert str(policy.url).startswith("https://")
    assert policy.config_schema is not None
    assert "exemptions" in policy.config_schema.properties
    for name, option in policy.config_schema.properties.items():
        assert option["description"].endswith("."), name
        assert "default" in option, name
    if rule.cis:
        assert policy.description.startswith(f"CIS GKE {rule.cis}: ")
        assert policy.framework is not None
        assert policy.framework.reference == rule.cis


def test_rules_can_be_chosen_for_another_pack() -> None:
    assert [p.name for p in policies(["gke-private-nodes"])] == ["gke-private-nodes"]
    assert [p.name for p in policies(["spend-quota"])] == ["remember-inputs", "spend-quota"]
    secrets = {p.name for p in policies(["Secrets", "dws-from-zero"])}
    assert {"dws-from-zero", "secret-not-in-config-map"} < secrets
    assert len(policies()) == len(RULES) + 1
    with pytest.raises(ValueError, match="no rule and no group is called gke-privat-nodes"):
        policies(["gke-privat-nodes"])


def test_what_needs_something_from_the_user_is_advisory_and_the_rest_blocks() -> None:
    advisory = {rule.name for rule in RULES if rule.level is EnforcementLevel.ADVISORY}
    assert {"gke-secrets-cmek", "gke-boot-disk-cmek", "gke-groups-rbac", "gke-binary-authorization"} <= advisory
    mandatory = [rule for rule in RULES if rule.level is EnforcementLevel.MANDATORY]
    assert len(mandatory) > 90


def test_kubernetes_providers_are_judged_too() -> None:
    assert KUBERNETES_PROVIDER in {kind for rule in RULES if isinstance(rule, ResourceRule) for kind in rule.types}
