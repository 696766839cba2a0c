"""Codes of messages: each has its row on the page and a text that is found by it; the page has no others."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from tests.fleet_file.builders import fleet_data

from kueue_admission.kernel.known_messages import KnownMessage, code_of, known_messages, with_code
from kueue_admission.kernel.problem import Rule
from kueue_admission.kernel.rule_lists import by_code
from kueue_fleet.fleet_file import read_fleet_text
from kueue_fleet.fleet_file.rules import FLEET_RULES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
POLICIES = (ROOT / "policies" / "README.md").read_text()
SECTIONS = {
    "1": "A job waits",
    "2": "A job is refused",
    "3": "A worker is away",
    "4": "Pulumi",
    "5": "The fleet file",
    "6": "Clusters, networks and node pools",
    "7": "Flavors, queues and quotas",
    "8": "Teams, the controller and Kueue's configuration",
    "9": "Imports, jobs and projects",
}
"""Headings of the page, by the first digit of the codes below."""
HEAD = "| code | what you see | why | what to do |\n|---|---|---|---|\n"
HEAD_OF_OURS = "| code | what you see | why |\n|---|---|---|\n"
KUEUE = "couldn't assign flavors to pod set main: "
# As Kueue 0.19.2, Kubernetes 1.36, Pulumi 3 and Google Cloud write them; what is ours is asked of our own code below.
SAID = {
    "KF102": "LocalQueue gpu doesn't exist",
    "KF103": "ClusterQueue dws is inactive",
    "KF104": "FitsNoCluster: no worker can hold 16 nvidia.com/gpu",
    "KF105": f"ExceedsMaxQuota: {KUEUE}insufficient quota for nvidia.com/gpu in flavor t4-dws, previously considered "
    "podsets requests (0) + current podset request (8) > maximum capacity (4)",
    "KF106": f"{KUEUE}insufficient unused quota for nvidia.com/gpu in flavor l4, 2 more needed",
    "KF107": f"{KUEUE}flavor l4 doesn't match node affinity",
    "KF108": f"{KUEUE}untolerated taint {{nvidia.com/gpu present NoSchedule <nil>}} in flavor l4",
    "KF111": "the queued provisioning feature currently supports only single PodSet per request",
    "KF112": 'Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "kubernetes.io/job-controller"',
    "KF113": f"{KUEUE}resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec.containers[0]: "
    'Invalid value: ["cpu"]: requests must not be above the limitRange max',
    "KF114": "Workload no longer fits after processing another workload",
    "KF115": f'{KUEUE}topology "nvl" allows to fit only 1 out of 2 pod(s). Total nodes: 3; excluded: taint "a": 2',
    "KF116": "The workload has failed admission checks",
    "KF203": 'pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged',
    "KF204": 'failed calling webhook: no endpoints available for service "kueue-webhook-service"',
    "KF205": "Pod Allocate failed due to rpc error: code = Unknown desc = [invalid request for sharing GPU (MPS), "
    "at most 1 nvidia.com/gpu can be requested on multi-GPU nodes], which is unexpected",
    "KF301": "ClientConnectionFailed: dial tcp 10.0.0.1:443: i/o timeout",
    "KF302": "BadKubeConfig: secret not found",
    "KF401": 'unable to replace resource "urn:pulumi:prod::x" as it is currently marked for protection',
    "KF402": 'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .spec',
    "KF403": "error: the stack is currently locked by 1 lock(s)",
    "KF404": "Kubernetes Engine API has not been used in project 123 before or it is disabled",
    "KF405": "The zone does not have enough resources available: ZONE_RESOURCE_POOL_EXHAUSTED",
    "KF406": "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region us-central1.",
}
FILES: dict[str, dict[str, Any]] = {
    "KF501": {"clusterQueues": [{"name": "q", "cohort": "c"}]},
    "KF502": {"clustres": []},
    "KF503": {"teams": [{"name": "t", "localQueues": [{"name": "gpu", "clusterQueue": "dsw"}]}]},
    "KF504": {"clusters": [{"name": "a", "region": "us-east4"}]},
    "KF505": {"clusters": [{"name": "a", "role": "standalone", "region": "us-eats4"}]},
}
NOT_MESSAGES = {"KF101", "KF109", "KF110", "KF117", "KF201", "KF202", "KF303"}


def test_a_code_that_two_rules_have_is_refused() -> None:
    with pytest.raises(ValueError, match="rules with one code: KF501"):
        by_code(FLEET_RULES.values(), [FLEET_RULES["KF501"]])


def test_every_error_has_a_source() -> None:
    assert not [rule.code for rule in FLEET_RULES.values() if rule.severity == "error" and not rule.source]


def everything() -> list[KnownMessage | Rule]:
    """What the page has, in its order."""
    return [*known_messages(), *sorted(FLEET_RULES.values(), key=lambda rule: rule.code)]


def rows() -> dict[str, str]:
    """The tables of the page as they should be, by heading."""
    return {
        SECTIONS[number]: _table(list(entries)) for number, entries in groupby(everything(), lambda each: each.code[2])
    }


def _table(entries: list[KnownMessage | Rule]) -> str:
    head = HEAD if isinstance(entries[0], KnownMessage) else HEAD_OF_OURS
    return head + "".join(map(_row, entries))


def _row(each: KnownMessage | Rule) -> str:
    code = f"[{each.code}]({each.page})" if each.page else each.code
    row = f'| <a id="{each.code.lower()}"></a>{code} | {_seen(each.seen)} | '
    if isinstance(each, KnownMessage):
        return row + f"{each.why} | {each.remedy} |\n"
    return row + " ".join(filter(None, (_cause(each.why), _beside_the_message(each.remedy)))) + " |\n"


def _seen(seen: str) -> str:
    """What is seen; of a rule for node pools its name alone where the page of policies says what it asks for."""
    name, colon, _ = seen.partition("`: ")
    return f"{name}`" if colon and f"[{name.strip('`')}](" in POLICIES else seen


def _cause(why: str) -> str:
    """Why, but not what the page says once of all rules for node pools."""
    return {
        "GKE refuses such a pool.": "",
        "GKE takes such a pool, and it does not work as it should.": "GKE takes it.",
    }.get(why, why)


_FURTHER = re.compile(r"\]\(|`(kueue-fleet|pulumi|kubectl|gcloud) |\A[Oo]r .*`")


def _beside_the_message(remedy: str) -> str:
    """Where to read on, a command, or another way by a field; the message itself says what to do."""
    every = (part.rstrip(";.") for part in re.split(r"(?<=[;.]) ", remedy))
    parts = [part for part in every if _FURTHER.search(part) and "the message" not in part.lower()]
    return "".join(f"{part[:1].upper()}{part[1:]}. " for part in parts).rstrip()


@pytest.mark.parametrize(
    ("remedy", "shown"),
    [
        ("Change the pool as the message says", ""),
        ("Write what the message names; see [Plan](plan.md)", "See [Plan](plan.md)."),
        ("Run `kueue-fleet import`, or do as the message says", ""),
        ("Remove it, or set `existing` on the cluster too", ""),
        ("Set `a`; or leave it. See [Plan](plan.md)", "See [Plan](plan.md)."),
        ("Add a queue. Or set `a`; `kueue-fleet plan` finds it", "Or set `a`. `kueue-fleet plan` finds it."),
    ],
)
def test_the_page_does_not_repeat_what_the_message_says(remedy: str, shown: str) -> None:
    assert _beside_the_message(remedy) == shown


def test_the_page_has_each_code_and_no_other(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text()
    result = text
    for section, table in rows().items():
        heading = f"## {section}\n\n"
        before, results, rest = result.partition(heading)
        assert results, f"{PAGE.name}: has no {heading.strip()}"
        result = before + heading + table + re.sub(r"\A(\|.*\n)+", "", rest)
    if request.config.getoption("update_snapshots"):
        PAGE.write_text(result)
    assert result == text
    assert re.findall(r'<a id="(kf\d+)">', text) == [
        code.lower() for code in (*(message.code for message in known_messages()), *sorted(FLEET_RULES))
    ]


def test_every_rule_is_used() -> None:
    modules = {path: path.read_text() for path in (ROOT / "components").rglob("*.py")}
    rules = [path for path in modules if path.name in ("form_rules.py", "job_rules.py") or path.parent.name == "rules"]
    names = {name for path in rules for name in re.findall(r"^(\w+) = Rule\(", modules[path], re.M)}
    used = {word for path, text in modules.items() if path not in rules for word in re.findall(r"\w+", text)}
    assert names
    assert names <= used


def test_codes_are_numbered_by_section() -> None:
    for number, in_section in groupby((item.code for item in everything()), lambda code: code[2]):
        result = list(in_section)
        assert result == [f"KF{number}{count:02}" for count in range(1, len(result) + 1)]


def test_every_message_of_others_has_an_example_here() -> None:
    assert {*SAID, *NOT_MESSAGES} == {message.code for message in known_messages()}
    assert {message.code for message in known_messages() if not message.pattern} == NOT_MESSAGES


@pytest.mark.parametrize("code", SAID)
def test_a_message_of_others_is_known(code: str) -> None:
    assert code_of(SAID[code]) == code


@pytest.mark.parametrize("code", FILES)
def test_a_problem_of_a_fleet_file_is_known(code: str) -> None:
    reading = read_fleet_text(json.dumps(fleet_data() | FILES[code]), "fleet.yaml")
    assert code in {problem.rule.code for problem in reading.problems}


def test_more_quota_than_nodes_is_known() -> None:
    file = ROOT / "examples" / "batch-platform" / "with-defects.yaml"
    assert "KF506" in {problem.rule.code for problem in read_fleet_text(file.read_text(), "fleet.yaml").problems}


def test_other_texts_stay_as_they_are() -> None:
    assert with_code("j waits: Pending", "Pending") == "j waits: Pending"
    assert with_code("j waits", SAID["KF106"]) == "j waits [KF106]"
