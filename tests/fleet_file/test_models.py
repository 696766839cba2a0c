"""Models built in Python: the same rules, at once."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import get_annotations
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from kueue_admission.api import (
    ClusterQueueSpec,
    FairSharing,
    LabelSelector,
    LabelSelectorRequirement,
    ResourceFlavorSpec,
    ResourceGroup,
)
from kueue_admission.kernel import Quantity, SpecError
from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.described import Described
from kueue_fleet.fleet_file import AdmissionCheckEntry, FleetSpec, TeamEntry


def test_a_broken_rule_raises_with_the_message() -> None:
    with pytest.raises(SpecError, match="nodeLabels: empty, but topologyName is rack"):
        ResourceFlavorSpec(topology_name="rack")


def test_annotations_of_models_are_no_texts() -> None:
    """Pydantic would compile each text again in every process, and those of a base for each model."""
    models = {base for model in _in_annotations(FleetSpec) for base in model.__mro__ if issubclass(base, Described)}
    assert len(models) > 100
    assert [item for item in models if str in map(type, get_annotations(item).values())] == []


def _in_annotations(annotation: Any) -> Iterator[type[SpecModel]]:
    if isinstance(annotation, type) and issubclass(annotation, SpecModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from _in_annotations(field.annotation)
    for part in get_args(annotation):
        yield from _in_annotations(part)


def test_models_are_frozen() -> None:
    spec = ClusterQueueSpec(cohort_name="a")
    with pytest.raises(SpecError, match="cohort_name: is set afterwards; give it where"):
        spec.cohort_name = "b"  # type: ignore[misc]


def test_python_names_and_file_names_are_both_accepted_in_python() -> None:
    assert ClusterQueueSpec(cohort_name="a") == ClusterQueueSpec.model_validate({"cohortName": "a"})


def test_wire_is_in_kubernetes_spelling() -> None:
    group = ResourceGroup.model_validate(
        {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "a", "resources": [{"name": "cpu", "nominalQuota": "1000m"}]}],
        }
    )
    assert group.wire() == {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "a", "resources": [{"name": "cpu", "nominalQuota": "1"}]}],
    }
    assert FairSharing(weight=Quantity("500m")).wire() == {"weight": "500m"}


SELECTORS: list[tuple[LabelSelector, dict[str, str], bool]] = [
    (LabelSelector(), {}, True),
    (LabelSelector(match_labels={"a": "b"}), {"a": "b", "c": "d"}, True),
    (LabelSelector(match_labels={"a": "b"}), {"a": "c"}, False),
    (LabelSelector(match_labels={"a": ""}), {}, False),
]
for operator, values, labels, expected in [
    ("In", ("b",), {"a": "b"}, True),
    ("In", ("b",), {"a": "c"}, False),
    ("In", ("b",), {}, False),
    ("NotIn", ("b",), {"a": "c"}, True),
    ("NotIn", ("b",), {"a": "b"}, False),
    ("NotIn", ("b",), {}, True),
    ("Exists", (), {"a": ""}, True),
    ("Exists", (), {}, False),
    ("DoesNotExist", (), {}, True),
    ("DoesNotExist", (), {"a": ""}, False),
]:
    requirement = LabelSelectorRequirement.model_validate({"key": "a", "operator": operator, "values": values})
    SELECTORS.append((LabelSelector(match_expressions=(requirement,)), labels, expected))


@pytest.mark.parametrize(("selector", "labels", "matches"), SELECTORS)
def test_selectors_match_as_in_kubernetes(selector: LabelSelector, labels: dict[str, str], matches: bool) -> None:
    assert selector.matches(labels) is matches


CHECKS: dict[str, tuple[dict[str, object], str]] = {
    "neither kind": ({}, "neither provisioningRequest nor controllerName is set"),
    "both kinds": (
        {"controllerName": "a", "provisioningRequest": {"provisioningClassName": "c"}},
        "both provisioningRequest and controllerName are set",
    ),
    "parameters of a ProvisioningRequest": (
        {
            "provisioningRequest": {"provisioningClassName": "c"},
            "parameters": {"apiGroup": "a", "kind": "B", "name": "c"},
        },
        "parameters: set, but a provisioningRequest check refers to its own ProvisioningRequestConfig",
    ),
    "MultiKueue's controller": (
        {"controllerName": "kueue.x-k8s.io/multikueue"},
        "remove this check and write the multiKueue section, which makes it",
    ),
    "the ProvisioningRequest controller": (
        {"controllerName": "kueue.x-k8s.io/provisioning-request"},
        "write provisioningRequest instead of controllerName",
    ),
}


@pytest.mark.parametrize(("fields", "message"), CHECKS.values(), ids=CHECKS.keys())
def test_a_check_is_of_one_kind(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        AdmissionCheckEntry.model_validate({"name": "x", **fields})


def test_config_of_a_check_has_its_name() -> None:
    check = AdmissionCheckEntry.model_validate({"name": "dws", "provisioningRequest": {"provisioningClassName": "c"}})
    assert check.config_name == "dws"
    assert check.check_spec.wire() == {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "dws"},
    }


def test_a_team_has_a_namespace_of_its_name() -> None:
    assert TeamEntry(name="vision").namespace_names == ("vision",)
    assert TeamEntry(name="vision", namespaces=("a", "b")).namespace_names == ("a", "b")


def test_lookups() -> None:
    only = {"name": "only", "role": "standalone", "region": "us-central1"}
    fleet = FleetSpec.model_validate({"name": "single", "project": "my-project", "clusters": [only]})
    assert fleet.network_name == "single"
    assert fleet.manager is None
    assert fleet.job_clusters == ("only",)
    assert fleet.cluster("only").runs_jobs
    assert (fleet.flavor("x"), fleet.queue("x"), fleet.check("x"), fleet.cohort("x")) == (None, None, None, None)
