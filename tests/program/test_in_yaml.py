"""Programs in YAML are read: their `Fleet` resources, with config and variables put in."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueue_fleet.program.project import Project, ProjectError
from kueue_fleet.program.run import fleets_of

EXAMPLES = Path(__file__).parents[2] / "examples"

PROGRAM = """
name: platform
runtime: yaml
config: { quota: { type: object } }
variables: { region: us-central1, name: "batch-${region}" }
resources:
  bucket: { type: gcp:storage:Bucket }
  batch:
    type: kueue-fleet:index:Fleet
    properties:
      project: PROJECT
      spec:
        name: lab-${pulumi.stack}
        clusters: [{ name: "${name}", role: standalone, region: "${region}" }]
        labels: { price: "$${free}", team: "${quota.team}" }
        LATE
"""


def declared(folder: Path, late: str = "", project: str = "acme-batch-1") -> tuple[object, object, object]:
    (folder / "Pulumi.yaml").write_text(PROGRAM.replace("LATE", late).replace("PROJECT", project))
    (folder / "Pulumi.dev.yaml").write_text("config: { platform:quota: { team: vision } }\n")
    [result] = fleets_of(Project.read(folder), "dev")
    return result


def test_config_variables_and_the_stack_are_put_in(tmp_path: Path) -> None:
    assert declared(tmp_path) == (
        "batch",
        {
            "name": "lab-dev",
            "clusters": [{"name": "batch-us-central1", "role": "standalone", "region": "us-central1"}],
            "labels": {"price": "${free}", "team": "vision"},
        },
        "acme-batch-1",
    )


def test_a_project_that_another_resource_gives_is_left_to_the_spec(tmp_path: Path) -> None:
    assert declared(tmp_path, project="${bucket.project}")[2] is None


@pytest.mark.parametrize(
    ("late", "what"),
    [
        ('network: "${bucket.name}"', r"network: what \$\{bucket.name\} is"),
        ('network: { "fn::invoke": {} }', "fn::invoke"),
    ],
)
def test_what_only_pulumi_knows_is_said(tmp_path: Path, late: str, what: str) -> None:
    with pytest.raises(ProjectError, match=rf"resources.batch.properties.spec.*{what}.*, only Pulumi knows; write the"):
        declared(tmp_path, late)


def test_the_example_declares_its_fleet() -> None:
    [result] = fleets_of(Project.read(EXAMPLES / "pulumi-yaml"), "dev")
    assert (result.name, result.data["name"]) == ("platform", "yaml-fleet")
