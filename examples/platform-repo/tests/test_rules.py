"""The company's rule, on namespaces as the policy engine hands them over."""

from typing import Any

import pytest
from company.rules import COST_CENTRE, RULES
from company.team_space import COST_CENTRE_LABEL, SPACE_LABEL

from kueue_fleet_policies import RULES as THEIRS
from kueue_fleet_policies import UNKNOWN, Resource


def problems(labels: dict[str, Any], config: dict[str, Any] | None = None) -> list[str]:
    urn = "urn:pulumi:dev::p::kubernetes:core/v1:Namespace::vision"
    namespace = Resource("kubernetes:core/v1:Namespace", "vision", urn, {"metadata": {"labels": labels}})
    return [str(problem) for problem in COST_CENTRE.problems(namespace, config)]


def test_a_space_says_who_pays() -> None:
    assert problems({SPACE_LABEL: "true", COST_CENTRE_LABEL: "cc-1207"}) == []


@pytest.mark.parametrize(
    ("labels", "says"),
    [({}, "is missing, so no cost centre pays"), ({COST_CENTRE_LABEL: "1207"}, "is 1207, which is not a cost centre")],
)
def test_a_space_that_does_not(labels: dict[str, str], says: str) -> None:
    (problem,) = problems({SPACE_LABEL: "true", **labels})
    assert problem.startswith(f"metadata.labels[{COST_CENTRE_LABEL}]: {says}")


def test_other_namespaces_are_left_alone() -> None:
    assert problems({}) == []


def test_what_a_preview_does_not_know_is_not_judged() -> None:
    assert problems({SPACE_LABEL: "true", COST_CENTRE_LABEL: UNKNOWN}) == []


def test_the_pattern_is_a_setting_and_exemptions_are_too() -> None:
    labels = {SPACE_LABEL: "true", COST_CENTRE_LABEL: "1207"}
    assert problems(labels, {"pattern": r"\d{4}"}) == []
    assert problems(labels, {"exemptions": [{"resource": "vision", "reason": "moves to another cluster in May"}]}) == []


def test_names_do_not_clash_with_the_librarys() -> None:
    assert not {rule.name for rule in RULES} & {rule.name for rule in THEIRS}
