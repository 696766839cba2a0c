"""`schema` and `render`: what needs neither a cluster nor Pulumi."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from kueue_admission.cli import console
from kueue_admission.kernel.yaml_text import dump_yaml
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.render_folder import charts_comment, show_difference, write_folders
from kueue_fleet.google.document import document
from kueue_fleet.google.resources import resources_on
from kueue_fleet.objects import render_cluster

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
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", help="Write a folder for each cluster, with a kustomization.yaml, instead."),
    ] = None,
    difference: Annotated[
        bool, typer.Option("--diff", help="Show what --output-dir would change there; exit 1 if anything.")
    ] = False,
) -> None:
    """Print every Kubernetes object of a fleet as YAML, in apply order, without a cluster or Pulumi.

    The Helm charts of Kueue and of others come first, as a comment with their values. With --cloud: every resource of
    Google Cloud, as a program in Pulumi YAML has it, `${Network/lab/vpc.selfLink}` for what is known once another one
    is made.

    With --output-dir: a file for each object, in a folder for each cluster, as Argo CD, Config Sync and kustomize take
    them from git. Annotations say the order. Values of the charts are beside them. Files that an earlier run wrote
    are removed if the fleet does not have them any more.

    \b
    Examples:
      kueue-fleet render stacks/Pulumi.prod.yaml --cluster worker-us-east4 \\
          | kubectl diff -f -
      kueue-fleet render .
      kueue-fleet render fleet.yaml > fleet.rendered.yaml
      kueue-fleet render fleet.yaml --output-dir clusters
      kueue-fleet render fleet.yaml --output-dir clusters --diff
      kueue-fleet render fleet.yaml --cloud -o json \\
          | jq '.resources[] | select(.type | endswith(":NodePool"))'
    """
    if (cloud and cluster is not None) or (output == "json" and not cloud):
        raise console.mistyped("--cluster goes with Kubernetes objects, --output json with --cloud; leave one out")
    if (difference and output_dir is None) or (cloud and output_dir is not None):
        raise console.mistyped("--output-dir goes with Kubernetes objects, --diff with --output-dir; leave one out")
    fleet = load_fleet(file)
    if cloud:
        resources = {resource.key: document(resource) for resource in resources_on(fleet)}
        if output == "json":
            console.json_document({"schemaVersion": 1, "resources": resources})
        else:
            console.text(dump_yaml({"resources": resources}))
        return
    if cluster is not None and cluster not in fleet.cluster_names:
        raise console.mistyped(
            f"--cluster: the fleet has no cluster {cluster!r}; it has {', '.join(fleet.cluster_names)}"
        )
    names = [name for name in fleet.cluster_names if cluster in (None, name)]
    if output_dir is not None:
        (show_difference if difference else write_folders)(fleet, names, output_dir)
        return
    for name in names:
        before = f"# Cluster {name}\n{charts_comment(fleet, name)}\n"
        console.text("---\n".join([before, *map(dump_yaml, render_cluster(fleet, name))]))
