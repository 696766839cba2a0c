"""The README of the pack says what the rules say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pulumi_policy import EnforcementLevel
from tests.policies.recorded import findings, recorded

from kueue_fleet.fleet_file.reference import reference_markdown
from kueue_fleet_policies import RULES
from kueue_fleet_policies.table import END, NOT_JUDGED, with_table

PACK = Path(__file__).parent.parent.parent / "policies"
LEVELS = {level.value for level in EnforcementLevel}


def test_the_table_of_rules_is_that_of_the_rules() -> None:
    text = (PACK / "README.md").read_text()
    assert text == with_table(text), "run: .venv/bin/python -m kueue_fleet_policies.table policies/README.md"
    for rule in RULES:
        assert f"| [{rule.name}]({rule.source}) |" in text


def test_a_text_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="are not there"):
        with_table(f"no table here {END}")


def test_the_fleet_file_names_the_same_numbers_of_the_benchmark() -> None:
    cis = {rule.name: rule.cis for rule in RULES}
    assert dict(re.findall(r"^\| `(\w+)` .*\(CIS GKE ([\d.]+)\)", reference_markdown(), re.MULTILINE)) == {
        "databaseEncryptionKey": cis["gke-secrets-cmek"],
        "diskEncryptionKey": cis["gke-boot-disk-cmek"],
        "nodeServiceAccount": cis["gke-node-service-account"],
        "rbacSecurityGroup": cis["gke-groups-rbac"],
        "binaryAuthorization": cis["gke-binary-authorization"],
    }


CIS_1_9 = {
    *(f"3.1.{number}" for number in range(1, 5)),
    *(f"4.1.{number}" for number in range(1, 11)),
    *("4.2.1", "4.3.1", "4.3.2", "4.4.1", "4.4.2", "4.5.1"),
    *(f"4.6.{number}" for number in range(1, 5)),
    *(f"5.1.{number}" for number in range(1, 5)),
    *("5.2.1", "5.2.2", "5.3.1", "5.4.1"),
    *(f"5.5.{number}" for number in range(1, 8)),
    *(f"5.6.{number}" for number in range(1, 8)),
    *("5.7.1", "5.7.2", "5.8.1", "5.8.2", "5.8.3", "5.9.1", "5.9.2"),
    *(f"5.10.{number}" for number in range(1, 5)),
}
"""Every recommendation. Source: github.com/aquasecurity/kube-bench cfg/gke-1.9.0."""


def test_each_recommendation_of_the_benchmark_has_a_rule_or_a_reason() -> None:
    judged = {number for rule in RULES if rule.cis for number in rule.cis.split(", ")}
    assert judged | NOT_JUDGED.keys() == CIS_1_9
    assert not judged & NOT_JUDGED.keys()


@pytest.mark.parametrize("source", ["production.json", "README.md"])
def test_settings_that_are_shown_exist(source: str) -> None:
    text = (PACK / source).read_text()
    if source == "README.md":
        text = text.split("```json\n")[1].split("```")[0]
    by_name = {rule.name: rule for rule in RULES}
    for name, settings in json.loads(text).items():
        schema = by_name[name].schema
        for key, value in settings.items():
            if key == "enforcementLevel":
                assert value in LEVELS
                assert value != "remediate" or by_name[name].remediable
            else:
                assert isinstance(value, type(schema[key]["default"])), f"{name}.{key}"


def test_production_keeps_the_strict_settings() -> None:
    settings = json.loads((PACK / "production.json").read_text())
    strict = {name for name, given in settings.items() if given.get("enforcementLevel") == "mandatory"}
    recording = recorded("prod")
    fallen = [
        one for one in findings(recording, settings) if one.level is EnforcementLevel.MANDATORY or one.rule in strict
    ]
    assert not fallen, "\n".join(map(str, fallen))
