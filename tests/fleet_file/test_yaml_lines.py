"""Every problem is at the line of what it is about, or of what it is missing from."""

from __future__ import annotations

import textwrap

import pytest

from kueue_admission.kernel.yaml_text import load_document
from kueue_fleet.fleet_file import read_fleet_text

TEXT = """\
name: a
labels:
  a.b/c: d
  "x]": e
clusterQueues:
  - name: first.of.all
    resourceGroups:
      - flavors:
          - name: l4
            resources:
              - name: nvidia.com/gpu
                nominalQuota: 4
  - {name: second,
     clusters: [a,
       b]}
  - third
  - name: "0"
  - name: twice
  - name: twice
nodepools:
  - name: p
    machine_type: m
base: &base
  image: i
derived:
  <<: *base
  replicas: 1
clusters:
  - &manager
    name: manager
    region: europe-west4
  - <<: *manager
    name: worker
    region: us-east4
  - <<: [*manager]
    name: other
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 1),
        ("name", 1),
        ("labels[a.b/c]", 3),
        ("labels[x]]", 4),
        ("labels[missing]", 2),
        ("clusterQueues", 5),
        ("clusterQueues[first.of.all]", 6),
        ("clusterQueues[first.of.all].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].nominalQuota", 12),
        ("clusterQueues[first.of.all].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].lendingLimit", 11),
        ("clusterQueues[first.of.all].resourceGroups[0].coveredResources", 8),
        ("clusterQueues[second].clusters[1]", 15),
        ("clusterQueues[2]", 16),
        ("clusterQueues[2].name", 16),
        ("clusterQueues[4].name", 18),
        ("clusterQueues[5]", 19),
        ("clusterQueues[9].name", 5),
        ("nodePools[p].machineType", 22),
        ("derived.image", 24),
        ("derived.replicas", 27),
        ("clusters[manager].region", 31),
        ("clusters[worker]", 32),
        ("clusters[worker].region", 34),
        ("clusters[other].name", 36),
        ("clusters[other].region", 31),
        ("multiKueue", 1),
        ("a]b.c[", 1),
    ],
)
def test_line_of_a_path(path: str, line: int) -> None:
    assert load_document(TEXT, "f.yaml").line_of(path) == line


def test_a_fleet_in_a_stack_file_has_the_lines_of_the_file() -> None:
    fleet = "name: single\nproject: my-project\nclusters: [{name: only, role: boss, region: us-central1}]\n"
    stack = "config:\n  gcp:region: us-central1\n  kueue-fleet:fleet:\n" + textwrap.indent(fleet, "    ")
    [problem] = read_fleet_text(stack, "Pulumi.dev.yaml").problems
    assert (problem.place, problem.path) == ("Pulumi.dev.yaml:6", "clusters[only].role")
    assert str(problem).startswith('Pulumi.dev.yaml:6: clusters[only].role: "boss" is not allowed; ')


def test_problems_come_in_the_order_of_the_lines() -> None:
    text = """
    teams: [{name: t, localQueues: [{name: q, clusterQueue: none}]}]
    clusters: [{name: only, role: boss, region: us-central1}]
    project: 5
    name: single
    """
    problems = read_fleet_text(textwrap.dedent(text), "f.yaml").problems
    assert [(problem.line, problem.path) for problem in problems] == [
        (2, "teams[t].localQueues[q].clusterQueue"),
        (3, "clusters[only].role"),
        (4, "project"),
    ]


def test_many_problems_of_one_map_are_placed_without_looking_through_it_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file of 2,000 unknown fields took 3 s."""
    looked_at = 0

    def counted(name: str) -> str:
        nonlocal looked_at
        looked_at += 1
        return name.lower()

    monkeypatch.setattr("kueue_admission.kernel.yaml_lines.plain", counted)
    document = load_document("".join(f"key{number}: {number}\n" for number in range(500)), "f.yaml")
    assert [document.line_of(f"key{number}") for number in range(500)] == list(range(1, 501))
    assert looked_at == 500
