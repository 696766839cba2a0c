"""Old names of fields are read for one release more, wherever a fleet is written, each with a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import changed, fleet_data
from tests.fleet_file.check.test_dispatch import CHECK, NIGHTS, OURS, USES

import kueue_fleet as kf
import pulumi_mocks
import small_fleets
from kueue_admission.kernel import SpecError
from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.form_rules import EXCLUDED, FORMER_NAME
from kueue_admission.kernel.read_model import read_model
from kueue_admission.kernel.schema_path import fields_of
from kueue_fleet.fleet_file import FleetSpec, json_schema, parse_fleet, parse_fleet_text, read_fleet, read_fleet_text
from kueue_fleet.fleet_file.form import models_in
from kueue_fleet.fleet_file.former_names import former_names, in_present_names

RENAMED = [
    pytest.param(model, name, former, id=f"{model.__name__}.{former}")
    for model in models_in(FleetSpec, set())
    for former, name in former_names(model).items()
]
"""The fields that have an old name."""
DATA = changed(
    fleet_data(),
    {
        **OURS,
        "controller": {"image": "example.com/controller:1", "checks": [{"name": "fleet", "windows": [NIGHTS]}]},
        "admissionChecks/+": CHECK,
        USES: {"name": "fleet"},
        "teams/0/allowedPriorityClasses": ["batch"],
    },
)
"""A fleet with each of these fields."""


def in_former_names(part: Any, wire: Any, used: set[str]) -> Any:
    """The data of a part of a fleet with old names where there are some; those are put into `used`."""
    if isinstance(part, SpecModel):
        model = type(part)
        names = {alias: former for former, alias in former_names(model).items()}
        data = {}
        for alias, (name, _) in fields_of(model).items():
            if name in part.model_fields_set and alias in wire:
                used |= {f"{model.__name__}.{names[alias]}"} if alias in names else set()
                inner = in_former_names(getattr(part, name), wire[alias], used)
                data[names.get(alias, alias)] = inner
        return {**({"type": wire["type"]} if "type" in wire else {}), **data}
    if isinstance(part, tuple):
        return [in_former_names(*pair, used) for pair in zip(part, wire, strict=True)]
    if isinstance(part, Mapping):
        return {key: in_former_names(value, wire[key], used) for key, value in part.items()}
    return wire


FLEET = parse_fleet(DATA)
USED: set[str] = set()
OLD: dict[str, Any] = in_former_names(FLEET, FLEET.wire(), USED)


def test_the_fleet_has_each_of_them() -> None:
    assert {item.id for item in RENAMED} == USED


def test_a_file_is_read_and_the_lines_are_named() -> None:
    text = yaml.safe_dump(OLD, sort_keys=False)
    reading = read_fleet_text(text, "fleet.yaml")
    assert reading.fleet == FLEET
    warned = [problem for problem in reading.problems if problem.rule == FORMER_NAME]
    assert len(warned) == len(USED)
    assert {problem.severity for problem in warned} == {"warning"}
    lines = text.splitlines()
    for problem in warned:
        assert problem.line is not None
        former = problem.path.rpartition(".")[2]
        assert lines[problem.line - 1].strip().startswith(f"{former}:")
    assert reading.problems[-1].coded.startswith("fleet.yaml:")


def test_what_is_wrong_below_an_old_name_has_its_line() -> None:
    text = yaml.safe_dump(
        changed(OLD, {"admissionController/replica": 3, "admissionController/dispatch": {"step": 99}})
    )
    result = {problem.path: problem for problem in read_fleet_text(text, "fleet.yaml").problems}
    lines = text.splitlines()
    for path, word in (
        ("admissionController.replica", "replica: 3"),
        ("admissionController.dispatch.step", "step: 99"),
    ):
        line = result[path].line
        assert line is not None
        assert lines[line - 1].strip() == word


@pytest.mark.filterwarnings("default::FutureWarning")
def test_data_of_a_program_is_read_with_a_warning() -> None:
    ways: list[Callable[[], FleetSpec]] = [
        lambda: parse_fleet(OLD),
        lambda: parse_fleet_text(yaml.safe_dump(OLD)),
        lambda: FleetSpec(**OLD),
    ]
    for read in ways:
        with pytest.warns(FutureWarning, match="is an old name") as warned:
            assert read() == FLEET
        assert len(warned) == len(USED)
        assert {item.filename for item in warned} == {__file__}


def test_both_names_together_are_refused() -> None:
    both = changed(OLD, {"controller": {}, "teams/0/allowedPriorityClasses": []})
    refused = [str(item) for item in read_fleet(both).problems if item.rule == EXCLUDED]
    assert refused == [
        "admissionController: set, but so is controller, its new name; remove it",
        "teams[team-vision].priorityClasses: set, but so is allowedPriorityClasses, its new name; remove it",
    ]


@pytest.mark.parametrize(("model", "name", "former"), RENAMED)
def test_in_python(model: type[SpecModel], name: str, former: str) -> None:
    result, name = example(model), fields_of(model)[name][0]
    given = {item: getattr(result, item) for item in result.model_fields_set}
    old_name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in former)
    for keyword in (old_name, former):
        with pytest.warns(
            FutureWarning, match=rf"^{model.__name__}\.{keyword}: is an old name.*; write {name} \[KF529\]$"
        ):
            assert model(**{keyword: given[name], **{key: given[key] for key in given if key != name}}) == result
        with pytest.warns(FutureWarning, match=f"write {name} "):
            assert result.model_copy(update={keyword: given[name]}) == result
        with pytest.raises(SpecError, match=rf"\.{keyword}: set, but so is {name}, its new name; remove it"):
            model(**{keyword: given[name], **given})
    assert getattr(result, old_name) == given[name]


@pytest.mark.parametrize(("model", "name", "former"), RENAMED)
def test_the_schema_for_editors_says_that_it_is_old(model: type[SpecModel], name: str, former: str) -> None:
    properties = json_schema()["$defs"][model.__name__]["properties"]
    assert properties[former] == {
        **properties[name],
        "description": f"Old name of `{name}`, which the next release does not have.",
        "deprecated": True,
    }


@pytest.mark.filterwarnings("default::FutureWarning")
@pytest.mark.parametrize(("model", "name", "former"), RENAMED)
def test_one_section_alone(model: type[SpecModel], name: str, former: str) -> None:
    result = example(model)
    old = in_former_names(result, result.wire(), set())
    assert former in old
    with pytest.warns(FutureWarning, match=f"write {name} "):
        assert read_model(model, old) == result
    assert read_model(model, in_present_names(model, old)) == result


def test_the_config_of_a_stack_is_read_with_warnings(caplog: pytest.LogCaptureFixture) -> None:
    data = small_fleets.fleet_data(small_fleets.WORKER, controller={"image": "example.com/controller:1"})
    data["admissionController"] = data.pop("controller")
    recording = pulumi_mocks.run(kf.Fleet.from_config, config={"kueue-fleet:fleet": data})
    assert recording.one("kueue-fleet:index:Fleet").name == "lab"
    output = [record.message for record in caplog.records if "KF529" in record.message]
    assert len(output) == 1
    assert output[0].endswith(
        "admissionController: is an old name, which the next release does not have; write controller [KF529]"
    )


def example(model: type[SpecModel]) -> SpecModel:
    """The first model of that class in the fleet."""
    sections: list[Any] = [FLEET]
    for part in sections:
        if isinstance(part, model):
            return part
        inner = (
            part.__dict__.values()
            if isinstance(part, SpecModel)
            else part.values()
            if isinstance(part, Mapping)
            else part
        )
        sections += [item for item in inner if isinstance(item, (SpecModel, tuple, Mapping))]
    raise AssertionError(f"the fleet has no {model.__name__}")
