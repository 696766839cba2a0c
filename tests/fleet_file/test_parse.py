"""Fleet files as tired people type them: every mistake is named, with its place and what to do."""

from __future__ import annotations

import contextlib
import copy
import json
import textwrap
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fleet_file.builders import FIRST_QUOTA, REMOVED, changed, fleet_data, problems, standalone_data

from drawn import examples
from kueue_admission.kernel import SpecError
from kueue_admission.kernel.problem import errors_of
from kueue_fleet.fleet_file import FleetSpec, parse_fleet, parse_fleet_text, read_fleet_text
from kueue_fleet.objects import render_fleet

GOOD = """\
name: single
project: my-project
clusters:
  - {name: only, role: standalone, region: us-central1}
flavors:
  - name: l4
clusterQueues:
  - name: gpu
    namespaceSelector: {}
    resourceGroups:
      - coveredResources: [cpu]
        flavors:
          - name: l4
            resources:
              - name: cpu
                nominalQuota: 4
localQueues:
  - {namespace: default, name: gpu, clusterQueue: gpu}
"""


def mistyped(right: str, wrong: str) -> str:
    """The good file with one thing typed wrong."""
    assert right in GOOD
    return GOOD.replace(right, wrong)


REFUSED: dict[str, tuple[str, list[str]]] = {
    "empty file": (
        "",
        ["fleet.yaml: is empty; write a fleet: name, project and clusters to begin with"],
    ),
    "only comments": (
        "# nothing yet\n",
        ["fleet.yaml: is empty; write a fleet: name, project and clusters to begin with"],
    ),
    "a list": (
        "- name: a\n",
        ["fleet.yaml: holds a list, not a map of fields; begin with name:, project:, clusters:"],
    ),
    "one word": (
        "fleet\n",
        ["fleet.yaml: holds a single value, not a map of fields; begin with name:, project:, clusters:"],
    ),
    "null": (
        "~\n",
        ["fleet.yaml: is empty; write a fleet: name, project and clusters to begin with"],
    ),
    "two documents": (
        GOOD + "---\n" + GOOD,
        ["fleet.yaml: holds 2 YAML documents; keep one document to a file"],
    ),
    "tab": (
        mistyped("    namespaceSelector", "\tnamespaceSelector"),
        ["fleet.yaml:9: a tab is used for indentation; use spaces, two for each level"],
    ),
    "tab in front of a key": (
        "name: a\n\tproject: b\n",
        ["fleet.yaml:2: a tab is used for indentation; use spaces, two for each level"],
    ),
    "indented too little": (
        mistyped("            resources:", "        resources:"),
        [
            "fleet.yaml:13: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources: is missing; add resources",
            (
                "fleet.yaml:14: clusterQueues[gpu].resourceGroups[0].resources: is not a known field; did you "
                "mean coveredResources?"
            ),
        ],
    ),
    "indented too much": (
        mistyped("project: my-project", "  project: my-project"),
        [
            (
                "fleet.yaml:2: the colon or the indentation is wrong: project: my-project; line it up with the "
                "keys beside it"
            )
        ],
    ),
    "key twice": (
        mistyped("project: my-project", "project: my-project\nname: other"),
        ["fleet.yaml:3: name is written twice in the same map, first in line 1; remove one of the two"],
    ),
    "key twice deep down": (
        mistyped("                nominalQuota: 4", "                nominalQuota: 4\n                nominalQuota: 5"),
        ["fleet.yaml:17: nominalQuota is written twice in the same map, first in line 16; remove one of the two"],
    ),
    "no colon": (
        mistyped("project: my-project", "project my-project"),
        ["fleet.yaml:2: there is no colon: project my-project; write it as 'name: value'"],
    ),
    "bracket left open": (
        mistyped("[cpu]", "[cpu"),
        [
            (
                "fleet.yaml:11: a bracket is opened and not closed, or a comma is missing: - coveredResources: "
                "[cpu; close it"
            )
        ],
    ),
    "quote left open": (
        mistyped("name: single", 'name: "single'),
        ['fleet.yaml:1: a quote is opened and not closed: name: "single; close it'],
    ),
    "alias of nothing": (
        mistyped("name: single", "name: *fleet"),
        [
            "fleet.yaml:1: there is no anchor of the alias: name: *fleet; put the value in quotes, or define the "
            "anchor above it"
        ],
    ),
    "reserved character": (
        mistyped("name: single", "name: @single"),
        ["fleet.yaml:1: a value begins with a character that YAML reserves: name: @single; put the value in quotes"],
    ),
    "control character": (
        mistyped("name: single", "name: sin\x07gle"),
        ["fleet.yaml:1: is not readable as YAML: control characters are not allowed; remove it"],
    ),
    "python object": (
        mistyped("name: single", "name: !!python/object/apply:os.system [ls]"),
        ["fleet.yaml:1: a tag is not allowed: name: !!python/object/apply:os.system [ls]; remove what begins with !"],
    ),
    "wrong case of a field": (
        mistyped("nominalQuota", "NominalQuota"),
        [
            (
                "fleet.yaml:16: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[cpu].NominalQuota: "
                "is not a known field; did you mean nominalQuota?"
            )
        ],
    ),
    "snake case": (
        mistyped("nominalQuota", "nominal_quota"),
        [
            (
                "fleet.yaml:16: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[cpu].nominal_quota: "
                "is not a known field; did you mean nominalQuota?"
            )
        ],
    ),
    "gpus: 4": (
        mistyped("                nominalQuota: 4", "                gpus: 4"),
        [
            (
                "fleet.yaml:15: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[cpu].nominalQuota: "
                "is missing; add how much of the resource the queue may use"
            ),
            (
                "fleet.yaml:16: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[cpu].gpus: is not a "
                "known field; remove it, or use one of borrowingLimit, during, lendingLimit, name, "
                "nominalQuota, perCluster"
            ),
        ],
    ),
    "space in a quantity": (
        mistyped("nominalQuota: 4", "nominalQuota: 4 Gi"),
        [
            (
                "fleet.yaml:16: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[cpu].nominalQuota: "
                '"4 Gi" has a space in it; write 4Gi'
            )
        ],
    ),
    "B at the end": (
        mistyped("nominalQuota: 4", "nominalQuota: 4GB"),
        [
            (
                "fleet.yaml:16: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[cpu].nominalQuota: "
                "\"4GB\" ends in 'B', which is not a suffix of a quantity; write 4G"
            )
        ],
    ),
    "negative": (
        mistyped("nominalQuota: 4", "nominalQuota: -4"),
        [
            (
                "fleet.yaml:16: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[cpu].nominalQuota: "
                "-4 is negative; write 0 or a positive amount"
            )
        ],
    ),
    "quantity true": (
        mistyped("nominalQuota: 4", "nominalQuota: true"),
        [
            (
                "fleet.yaml:16: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[cpu].nominalQuota: "
                'true is not a valid quantity; write a number with an optional suffix, such as 4, "500m" or "64Gi"'
            )
        ],
    ),
    "quantity forgotten": (
        mistyped("nominalQuota: 4", "nominalQuota:"),
        [
            (
                "fleet.yaml:16: clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[cpu].nominalQuota: "
                "nothing is given where a value is needed; write a value, or remove the line"
            )
        ],
    ),
    "number as name": (
        mistyped("name: single", "name: 2024"),
        ['fleet.yaml:1: name: 2024 is given where text is needed; put it in quotes: "2024"'],
    ),
    "text for a list": (
        mistyped("[cpu]", "cpu"),
        [
            (
                'fleet.yaml:11: clusterQueues[gpu].resourceGroups[0].coveredResources: "cpu" is given where a '
                "list is needed; write each item on its own line, beginning with '- '"
            )
        ],
    ),
    "map for a list": (
        mistyped("  - name: l4\nclusterQ", "    l4: {}\nclusterQ"),
        [
            (
                "fleet.yaml:5: flavors: a map is given where a list is needed; write each item on its "
                "own line, beginning with '- '"
            )
        ],
    ),
    "list for a map": (
        mistyped("namespaceSelector: {}", "namespaceSelector: []"),
        [
            (
                "fleet.yaml:9: clusterQueues[gpu].namespaceSelector: a list is given where a map is needed; "
                "write its fields as 'name: value', one on each line"
            )
        ],
    ),
    "text for a map": (
        mistyped("namespaceSelector: {}", "namespaceSelector: all"),
        [
            (
                'fleet.yaml:9: clusterQueues[gpu].namespaceSelector: "all" is given where a map is needed; '
                "write its fields as 'name: value', one on each line"
            )
        ],
    ),
    "yes": (
        mistyped("name: single", "name: single\ndeletionProtection: yes"),
        [
            (
                'fleet.yaml:2: deletionProtection: "yes" is given where true or false is needed; write true or '
                "false, without quotes"
            )
        ],
    ),
    "true in quotes": (
        mistyped("name: single", 'name: single\ndeletionProtection: "true"'),
        [
            (
                'fleet.yaml:2: deletionProtection: "true" is given where true or false is needed; write true '
                "or false, without quotes"
            )
        ],
    ),
    "1 for true": (
        mistyped("name: single", "name: single\njobSet: {enabled: 1}"),
        ["fleet.yaml:2: jobSet.enabled: 1 is given where true or false is needed; write true or false, without quotes"],
    ),
    "version as number": (
        mistyped("name: single", "name: single\nkueue: {version: 0.19}"),
        ['fleet.yaml:2: kueue.version: 0.19 is given where text is needed; put it in quotes: "0.19"'],
    ),
    "zone for region": (
        mistyped("us-central1", "us-central1-a"),
        ['fleet.yaml:4: clusters[only].region: "us-central1-a" is a zone, not a region; write us-central1'],
    ),
    "role in capitals": (
        mistyped("standalone", "Standalone"),
        [
            (
                'fleet.yaml:4: clusters[only].role: "Standalone" is not allowed; did you mean standalone? '
                "Allowed: manager, worker, standalone"
            )
        ],
    ),
    "nothing under labels": (
        mistyped("name: single", "name: single\nlabels:"),
        ["fleet.yaml:2: labels: nothing is given where a value is needed; write a value, or remove the line"],
    ),
    "number as label": (
        mistyped("name: single", "name: single\nlabels: {cost-center: 4711}"),
        ['fleet.yaml:2: labels[cost-center]: 4711 is given where text is needed; put it in quotes: "4711"'],
    ),
    "map key that is a number": (
        mistyped("name: single", "name: single\nlabels: {1: a}"),
        ['fleet.yaml:2: labels: the key 1 is given where text is needed; put it in quotes: "1"'],
    ),
    "missing everything": (
        "name: single\n",
        [
            "fleet.yaml:1: project: is missing; add the id of your Google Cloud project",
            "fleet.yaml:1: clusters: is missing; add a manager and its workers, or one cluster of role standalone",
        ],
    ),
    "item without a name": (
        mistyped("  - name: l4\nclusterQ", "  - nodeLabels: {a: b}\nclusterQ"),
        [
            "fleet.yaml:6: flavors[0].name: is missing; add name",
            'fleet.yaml:6: flavors[0].nodeLabels[a]: "b" is a custom label, with which GKE makes nodes only for '
            "pods that tolerate the taint of the same key and value; add the toleration {key: a, operator: Equal, "
            "value: b, effect: NoSchedule}",
        ],
    ),
    "words for items": (
        mistyped("  - name: l4\nclusterQ", "  - l4\nclusterQ"),
        [
            (
                'fleet.yaml:6: flavors[0]: "l4" is given where a map is needed; write its fields as \'name: '
                "value', one on each line"
            )
        ],
    ),
    "queue misspelt": (
        mistyped("clusterQueue: gpu", "clusterQueue: gpus"),
        ["fleet.yaml:18: localQueues[gpu].clusterQueue: there is no queue gpus; did you mean gpu?"],
    ),
    "Kubernetes object pasted": (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {}\n",
        ["fleet.yaml: holds a Kubernetes object, a ClusterQueue; write a fleet, which holds the fields of its spec"],
    ),
    "stack without fleet": (
        "config:\n  gcp:project: my-project\n",
        ["fleet.yaml:1: config: has no kueue-fleet:fleet; add kueue-fleet:fleet: and the fleet below it"],
    ),
    "stack with another key": (
        "config:\n  kueue-fleet:fleets: {}\n",
        ["fleet.yaml:2: config: has no kueue-fleet:fleet, but kueue-fleet:fleets; rename it to kueue-fleet:fleet"],
    ),
    "stack with a misspelt config": (
        "encryptionsalt: v1\nconfg:\n  kueue-fleet:fleet: {}\n",
        ["fleet.yaml:2: confg: holds kueue-fleet:fleet, but is not config; rename it to config"],
    ),
    "stack with the fleet outside its config": (
        "kueue-fleet:fleet:\n  name: single\n",
        ["fleet.yaml:1: kueue-fleet:fleet: is not in config; write it below config:"],
    ),
    "stack with an empty config": (
        "config:\n",
        ["fleet.yaml:1: config: has no kueue-fleet:fleet; add kueue-fleet:fleet: and the fleet below it"],
    ),
    "stack without config": (
        "encryptionsalt: v1:abc\n",
        ["fleet.yaml:1: config: has no kueue-fleet:fleet; add kueue-fleet:fleet: and the fleet below it"],
    ),
    "encrypted fleet": (
        "config:\n  kueue-fleet:fleet: {secure: abc}\n",
        ["fleet.yaml:2: config.kueue-fleet:fleet: is encrypted; write it plainly: a fleet holds no secrets"],
    ),
    "fleet as text in a stack": (
        "config:\n  kueue-fleet:fleet: abc\n",
        ["fleet.yaml:2: config.kueue-fleet:fleet: is not a map of fields; write name:, project:, clusters: below it"],
    ),
    "another project in the stack": (
        "config:\n  gcp:project: other-project\n  kueue-fleet:fleet:\n" + textwrap.indent(GOOD, "    "),
        [
            (
                "fleet.yaml:5: project: my-project, but gcp:project of the stack is other-project; write the "
                "same project in both"
            )
        ],
    ),
}


IN_STACK = "config:\n  kueue-fleet:fleet:\n" + textwrap.indent(GOOD, "    ")


@pytest.mark.parametrize("key", ["teams", "kueue-fleet:teams"])
def test_a_section_beside_the_fleet_is_read_by_nothing(key: str) -> None:
    reading = read_fleet_text(f"{IN_STACK}  {key}: []\n", "Pulumi.dev.yaml")
    assert [str(problem) for problem in reading.problems] == [
        f"Pulumi.dev.yaml:21: config.{key}: stands beside the fleet, where nothing reads it; write teams: below "
        "kueue-fleet:fleet:"
    ]


def test_commands_do_not_go_on_without_a_section_that_stands_beside_config() -> None:
    assert read_fleet_text(f"{IN_STACK}teams: []\n", "Pulumi.dev.yaml").fleet is None


def test_the_section_of_rehearsals_is_checked_with_the_stack() -> None:
    section = """\
  kueue-fleet:rehearsal:
    sed: 7
    dws: {low: 9, failPercent: 101}
    reservations:
      - {name: r, zone: us-central1-z, machineType: g2-standard-24, count: 4}
"""
    reading = read_fleet_text(IN_STACK + section, "Pulumi.dev.yaml")
    at = "config.kueue-fleet:rehearsal"
    assert [str(problem) for problem in reading.problems] == [
        f"Pulumi.dev.yaml:22: {at}.sed: is not a known field; did you mean seed?",
        f"Pulumi.dev.yaml:23: {at}.dws.failPercent: 101 is too large; use at most 100",
        f"Pulumi.dev.yaml:23: {at}.dws.low: 9 is more than high, 8; write a smaller one, or both",
        (
            f"Pulumi.dev.yaml:25: {at}.reservations[r].zone: is us-central1-z, which does not exist; use one of "
            "us-central1-a, us-central1-b, us-central1-c, us-central1-f"
        ),
    ]
    # Only a rehearsal reads it: the fleet can be rendered, compared and applied all the same.
    assert reading.whole().name == "single"


def test_a_config_key_that_nothing_reads_is_a_warning() -> None:
    [problem] = read_fleet_text(IN_STACK + "  kueue-fleet:rehersal: {seed: 7}\n", "Pulumi.dev.yaml").problems
    assert (problem.severity, problem.place) == ("warning", "Pulumi.dev.yaml:21")
    assert problem.fix == "did you mean kueue-fleet:rehearsal?"


def said_about(text: str) -> list[str]:
    """What is said about a file of that text."""
    try:
        parse_fleet_text(text, "fleet.yaml")
    except SpecError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_mistake_is_named(text: str, expected: list[str]) -> None:
    assert said_about(text) == expected


def test_good_file_bare_and_in_a_stack() -> None:
    bare = parse_fleet_text(GOOD, "fleet.yaml")
    stack = yaml.safe_dump({"config": {"gcp:project": "my-project", "kueue-fleet:fleet": yaml.safe_load(GOOD)}})
    assert parse_fleet_text(stack, "Pulumi.dev.yaml") == bare
    assert said_about(GOOD) == []


def test_json_as_pulumi_hands_it_over() -> None:
    assert parse_fleet(json.loads(json.dumps(fleet_data()))) == parse_fleet(fleet_data())


def test_dates_with_midnight_as_some_readers_have_it() -> None:
    data = changed(fleet_data(), {"multiKueue/credentials/rotateBy": "2027-02-01T00:00:00Z"})
    assert parse_fleet(data) == parse_fleet(fleet_data())


def test_reading_leaves_the_data_alone() -> None:
    data = changed(fleet_data(), {f"{FIRST_QUOTA}/nominalQuota": "4 Gi", "clusters/0/role": "Manager"})
    before = copy.deepcopy(data)
    assert problems(data)
    assert data == before


def test_one_bad_field_hides_no_other_problem() -> None:
    data = changed(
        fleet_data(),
        {
            "project": 5,
            "clusters/0/role": "Manager",
            "clusters/1/region": REMOVED,
            "flavors/1/nodeLabels": {"a b": "c"},
            "clusterQueues/0/cohort": "research",
            "clusterQueues/0/cohortName": REMOVED,
            f"{FIRST_QUOTA}/nominalQuota": "4 Gi",
            f"{FIRST_QUOTA}/borrowingLimit": 4,
            "clusterQueues/0/resourceGroups/0/flavors/0/resources/1/lendingLimit": 65,
            "clusterQueues/1/resourceGroups/0/flavors/0/name": "l44",
            "teams/0/localQueues/0/clusterQueue": "vison",
            "localQueues/0/namespace": "kube-system",
            "multiKueue/credentials/rotation": REMOVED,
            "multiKueue/workers": ["worker-a", "worker-b", "worker-c"],
        },
    )
    quota = "clusterQueues[vision].resourceGroups[0].flavors[l4].resources"
    assert [line.partition(";")[0] for line in problems(data)] == [
        "project: 5 is given where text is needed",
        'clusters[manager].role: "Manager" is not allowed',
        "clusters[worker-a].region: is missing",
        'flavors[t4].nodeLabels: the key "a b" has characters or a form that are not allowed',
        "clusterQueues[vision].cohort: was removed in Kueue's v1beta2",
        f'{quota}[nvidia.com/gpu].nominalQuota: "4 Gi" has a space in it',
        f"{quota}[cpu].lendingLimit: 65 is more than the nominalQuota of 64",
        "clusterQueues[language].resourceGroups[0].flavors[l44].name: there is no flavor l44",
        "teams[team-vision].localQueues[main].clusterQueue: there is no queue vison",
        "localQueues[trial].namespace: kube-system is the namespace of Kubernetes",
        "multiKueue.credentials.rotation: is missing",
        "multiKueue.workers[2]: there is no worker worker-c",
    ]


def test_entry_that_cannot_be_read_is_still_known_by_name() -> None:
    data = changed(
        fleet_data(), {"flavors/0": {"name": "l4", "nodeLabels": 5, "nodeTaints": 7}, "clusters/1": "worker-a"}
    )
    assert [line.partition(":")[0] for line in problems(data)] == [
        "clusters[1]",
        "flavors[l4].nodeLabels",
        "flavors[l4].nodeTaints",
    ]


@pytest.mark.parametrize("tag", [REMOVED, "Token", 5, None])
def test_credentials_of_no_kind(tag: object) -> None:
    (line,) = problems(changed(fleet_data(), {"multiKueue/credentials/type": tag}))
    assert line.startswith("multiKueue.credentials.type: ")
    assert line.endswith("ServiceAccountToken, ClusterProfile")


def test_snake_case_is_for_python_only() -> None:
    only = {"name": "only", "role": "standalone", "region": "us-central1"}
    result = FleetSpec.model_validate(
        {"name": "single", "project": "my-project", "clusters": [only], "deletion_protection": False}
    )
    assert not result.deletion_protection
    with pytest.raises(SpecError, match="deletion_protection: is not a known field; did you mean deletionProtection"):
        parse_fleet({"name": "single", "project": "my-project", "clusters": [only], "deletion_protection": False})


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["l4", "worker-a", "manager", "vision", "dws", "research", "4 Gi", "name", "1e999", "-5m"]),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=4)), max_size=3),
    st.dictionaries(st.one_of(st.text(max_size=6), st.integers()), st.text(max_size=4), max_size=3),
)


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every container in `data` with each key in it."""
    if isinstance(data, dict):
        return [pair for key, value in data.items() for pair in [(data, key), *places(value)]]
    if isinstance(data, list):
        return [pair for index, value in enumerate(data) for pair in [(data, index), *places(value)]]
    return []


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_whatever_is_typed_the_answer_is_a_fleet_or_problems(data: st.DataObject) -> None:
    typed: Any = copy.deepcopy(data.draw(st.sampled_from([fleet_data(), standalone_data()])))
    for _ in range(data.draw(st.integers(1, 4))):
        here, key = data.draw(st.sampled_from(places(typed)))
        action = data.draw(st.sampled_from(["replace", "remove", "rename", "repeat"]))
        if action == "replace":
            here[key] = data.draw(VALUES)
        elif action == "remove":
            del here[key]
        elif action == "rename" and isinstance(here, dict):
            here[data.draw(st.text(max_size=8))] = here.pop(key)
        elif isinstance(here, list):
            here.append(copy.deepcopy(here[key]))
        if not places(typed):
            break
    with contextlib.suppress(SpecError):
        render_fleet(parse_fleet(typed))
    for line in problems(typed):
        assert line.count("; ") >= 1
        assert "pydantic" not in line
        assert "Input should" not in line


@given(st.one_of(VALUES, st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3), max_leaves=5)))
def test_data_that_is_no_fleet_is_refused(data: Any) -> None:
    with pytest.raises(SpecError):
        parse_fleet(data)


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_refused_without_a_crash(text: str) -> None:
    with pytest.raises(SpecError):
        parse_fleet_text(text, "fleet.yaml")


@pytest.mark.parametrize(
    ("secrets", "paths"),
    [
        ('\'{"hub": {"token": "hf_abc"}}\'', [""]),
        ("{hub: {token: hf_abc, user: {secure: v1:a}}}", [".hub.token"]),
        ("{hub: {token: {secure: v1:a}}}", []),
        ("{secure: v1:a}", []),
    ],
)
def test_secrets_in_clear_are_refused_and_not_repeated(secrets: str, paths: list[str]) -> None:
    fleet = json.dumps(standalone_data())
    text = f"config:\n  kueue-fleet:teamSecrets: {secrets}\n  kueue-fleet:fleet: {fleet}\n"
    result = [each for each in read_fleet_text(text, "stack").problems if each.rule.code == "KF528"]
    assert [entry.path for entry in result] == [f"config.kueue-fleet:teamSecrets{path}" for path in paths]
    assert not any("hf_abc" in str(item) for item in result)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("charts: {kueu: ./chart}", "charts.kueu: there is no such chart; did you mean kueue? [KF503]"),
        ("charts: ./chart", "charts: is not a map; write references of charts by their names: kueue: ./chart [KF507]"),
        ("charts: {kueue: 3}", "charts.kueue: is not text; write the reference of a chart, such as ./chart [KF507]"),
        ('charts: \'{"kueue-0.18": "./chart"}\'', None),
        ("charts: {jobSet: ./chart}", None),
        ("asPublished: maybe", "asPublished: is neither true nor false; write true or false [KF507]"),
        ("asPublished: true", None),
        ("asPublished: 'false'", None),
    ],
)
def test_values_beside_the_fleet_are_those_that_a_program_takes(value: str, said: str | None) -> None:
    text = f"config:\n  kueue-fleet:{value}\n  kueue-fleet:fleet: {json.dumps(standalone_data())}\n"
    result = [item.coded for item in errors_of(read_fleet_text(text, "stack").problems)]
    assert result == ([f"stack:2: config.kueue-fleet:{said}"] if said else [])
