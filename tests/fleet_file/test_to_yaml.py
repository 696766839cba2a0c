"""A fleet as YAML, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from tests.fleet_files import fleet_files

import kueue_fleet as kf
from drawn import examples
from kueue_admission.kernel.yaml_text import dump_yaml, load_yaml
from kueue_fleet.fleet_file import parse_fleet, parse_fleet_text

ROOT = Path(__file__).parents[2]
STACKS = [*ROOT.glob("stacks/Pulumi.*.yaml"), *ROOT.glob("examples/*/Pulumi.*.yaml")]
FILES = sorted(
    [*ROOT.glob("examples/*/fleet.yaml"), *(stack for stack in STACKS if "kueue-fleet:fleet" in stack.read_text())]
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_example_reads_as_it_was(file: Path) -> None:
    fleet = parse_fleet_text(file.read_text(), file.name)
    assert parse_fleet_text(fleet.to_yaml(), "written") == fleet


@settings(max_examples=examples(60), deadline=None)
@given(fleet_files())
def test_every_fleet_reads_as_it_was(data: dict[str, Any]) -> None:
    fleet = parse_fleet(data)
    assert parse_fleet_text(fleet.to_yaml(), "written") == fleet


def test_it_leaves_out_what_is_as_by_default_and_begins_with_names() -> None:
    file = ROOT / "stacks" / "Pulumi.dws-multikueue.yaml"
    text = parse_fleet_text(file.read_text(), file.name).to_yaml()
    assert text.startswith(
        "name: dws-multikueue\nproject: my-gcp-project\ndeletionProtection: false\nclusters:\n- name:"
    )
    assert "mode:" not in text
    assert "- name: t4-dws\n  nodeLabels:\n" in text
    assert "type: ServiceAccountToken" in text


def test_single_models_are_written_too() -> None:
    assert kf.Pool("l4", "g2-standard-24", nodes=1, capacity=kf.Spot()).to_yaml() == (
        "name: l4\nmachineType: g2-standard-24\nnodeCount: 1\ncapacity:\n  type: spot\n"
    )


@pytest.mark.parametrize("text", ["1e3", "0o7", "yes", "2026-11", "null", "12:30", "=", "<<", "", "ä", "\x07", "1_000"])
def test_text_stays_text(text: str) -> None:
    assert load_yaml(dump_yaml({"a": text}), "written") == {"a": text}
