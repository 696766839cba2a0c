"""`schema` and `render`: what needs neither a cluster nor Pulumi."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from kueue_admission.cli import console
from kueue_admission.forms.yaml_text import dump_yaml
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.fleet_file import FleetSpec, kueue_helm_values
from kueue_fleet.fleet_file.model.kueue_pods import KUEUE_PRIORITY_CLASS, kueue_priority_class
from kueue_fleet.google.document import document
from kueue_fleet.google.resources import resources_on
from kueue_fleet.objects import render_fleet

FleetFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A Pulumi.<env>.yaml, a bare fleet YAML or a program; `-` reads stdin.")
]
"""The argument of commands that take one fleet."""
RenderOutput = Literal["yaml", "json"]
"""How `render` prints resources of Google Cloud."""


def schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a page for people instead.")] = False,
) -> None:
    """Print the JSON schema of a stack file, with which an editor completes and checks it.

    A bare fleet YAML is its definition `FleetSpec`.

    \b
    Examples:
      kueue-fleet schema > .vscode/kueue-fleet.schema.json
      kueue-fleet schema --markdown > docs/reference.md
      # first line of stacks/Pulumi.dev.yaml:
      # yaml-language-server: $schema=../.vscode/kueue-fleet.schema.json
    """
    from kueue_fleet.fleet_file import json_schema
    from kueue_fleet.fleet_file.reference import reference_markdown

    if markdown:
        console.text(reference_markdown() + "\n")
    else:
        console.json_document(json_schema())


def render(
    file: FleetFile,
    cluster: Annotated[str | None, typer.Option("--cluster", "-c", help="Only this cluster's objects.")] = None,
    cloud: Annotated[bool, typer.Option("--cloud", help="The resources of Google Cloud instead.")] = False,
    output: Annotated[RenderOutput, typer.Option("--output", "-o", help="`json` goes with --cloud.")] = "yaml",
) -> None:
    """Print every Kubernetes object of a fleet as YAML, in apply order, without a cluster or Pulumi.

    The Kueue release comes first, as a comment with its Helm values. With --cloud: every resource of Google Cloud, as a
    program in Pulumi YAML has it, `${Network/lab/vpc.selfLink}` for what is known once another one is made.

    \b
    Examples:
      kueue-fleet render stacks/Pulumi.prod.yaml --cluster worker-us-east4 \\
          | kubectl diff -f -
      kueue-fleet render .
      kueue-fleet render fleet.yaml > fleet.rendered.yaml
      kueue-fleet render fleet.yaml --cloud -o json \\
          | jq '.resources[] | select(.type | endswith(":NodePool"))'
    """
    if (cloud and cluster is not None) or (output == "json" and not cloud):
        raise console.mistyped("--cluster goes with Kubernetes objects, --output json with --cloud; leave one out")
    fleet = load_fleet(file)
    if cloud:
        resources = {each.key: document(each) for each in resources_on(fleet)}
        if output == "json":
            console.json_document({"schemaVersion": 1, "resources": resources})
        else:
            console.text(dump_yaml({"resources": resources}))
        return
    manifests = render_fleet(fleet)
    if cluster is not None and cluster not in manifests:
        raise console.mistyped(f"--cluster: the fleet has no cluster {cluster!r}; it has {', '.join(manifests)}")
    for name, objects in manifests.items():
        if cluster not in (None, name):
            continue
        documents = [f"# Cluster {name}\n{_helm_comment(fleet, name)}\n", *map(dump_yaml, objects)]
        console.text("---\n".join(documents))


def _helm_comment(fleet: FleetSpec, cluster: str) -> str:
    kueue = fleet.kueue_on(cluster)
    command = (
        f"helm upgrade --install kueue {kueue.chart} --version {kueue.version} --namespace {kueue.namespace} --values -"
    )
    values = dump_yaml(kueue_helm_values(fleet, cluster))
    before = []
    if kueue.priority_class_name == KUEUE_PRIORITY_CLASS:
        value = kueue_priority_class()["value"]
        before = [f"#   kubectl create priorityclass {KUEUE_PRIORITY_CLASS} --value={value}"]
    return "\n".join(
        [
            "# Kueue, before the objects below:",
            *before,
            f"#   {command}",
            *(f"#     {line}" for line in values.splitlines()),
        ]
    )
