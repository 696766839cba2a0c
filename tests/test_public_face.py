"""What a program can import, and what it need not."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pulumi
import pytest
from pydantic import BaseModel

import kueue_fleet
import kueue_fleet.gcp_components
import kueue_fleet.kueue_components
from kueue_admission import kernel
from kueue_admission.api.check_objects import SPECS
from kueue_admission.api.priority_classes import PriorityClassFields, WorkloadPriorityClassFields
from kueue_fleet import fleet_file
from kueue_fleet.cli.submit_in_python import submit
from kueue_fleet.fleet import Fleet, spec_from_config
from kueue_fleet.fleet_file import short
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.fleet_inputs import FleetInputs
from kueue_fleet.gcp_components.cluster import ControlPlaneAccess
from kueue_fleet.gcp_components.network import NetworkIds
from kueue_fleet.jobs.new_job import JobRequest
from kueue_fleet.kueue_components.credentials import WorkerGrant
from kueue_fleet.kueue_components.plain_cluster import KubernetesCluster
from kueue_fleet.objects.dashboards import grafana_dashboard

STUB = Path(kueue_fleet.__file__).with_suffix(".pyi")
PLAIN = (
    *(Fleet, FleetInputs, spec_from_config, ControlPlaneAccess, NetworkIds, WorkerGrant, JobRequest, submit),
    KubernetesCluster,
    *(short.Quota, grafana_dashboard),
    *(kernel.Duration, kernel.Problem, kernel.Quantity, kernel.SpecError, kernel.errors_of),
    *(fleet_file.check_fleet, fleet_file.json_schema, fleet_file.parse_fleet, fleet_file.parse_fleet_text),
)
"""Public names that are neither components nor models."""
MODELS: tuple[type[BaseModel], ...] = (
    FleetSpec,
    RehearsalSection,
    *SPECS.values(),
    PriorityClassFields,
    WorkloadPriorityClassFields,
)
"""Models that are public with every model in them."""
OF_FLEETS = {"ClusterProfiles", "ControllerImage", "GkeCluster", "KueuePlugin", "ManagerIdentity", "OperatorInstall"}
"""Components that only a Fleet makes, or others derive from."""


def components() -> Iterator[type]:
    """The components of both packages but those of fleets alone."""
    for package in (kueue_fleet.gcp_components, kueue_fleet.kueue_components):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if module.name != "kueue_fleet.kueue_components.component":  # What others derive from.
                yield from (
                    item
                    for item in defined(importlib.import_module(module.name))
                    if issubclass(item, pulumi.ComponentResource) and item.__name__ not in OF_FLEETS
                )


def defined(module: ModuleType) -> Iterator[type]:
    """The public classes of a module."""
    for name, item in vars(module).items():
        if isinstance(item, type) and item.__module__ == module.__name__ and not name.startswith("_"):
            yield item


def with_parts(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """A model, and the models of its fields."""
    if model not in seen:
        seen.add(model)
        for field in model.model_fields.values():
            for part in models_of(field.annotation):
                with_parts(part, seen)
    return seen


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_of(argument)


def stub() -> str:
    """What `__init__.pyi` is: every public name with its module."""
    models: set[type[BaseModel]] = set()
    for model in MODELS:
        with_parts(model, models)
    public: set[Any] = {*PLAIN, *components(), *models, *defined(short)}
    ordered = sorted(public, key=lambda each: (each.__module__, each.__name__.islower(), each.__name__.lower()))
    lines = [f"from {item.__module__} import {item.__name__} as {item.__name__}\n" for item in ordered]
    return f'''"""What programs use: every component, what it takes, and reading fleets; each name with its module.

`tests/test_public_face.py` writes it.
"""

{"".join(lines)}
__all__: list[str]

__version__: str
"""Version of the distribution, such as 0.2.0."""
'''


def test_the_stub_has_what_is_public(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("update_snapshots"):
        STUB.write_text(stub())
    assert STUB.read_text() == stub()


def test_every_name_of_the_package_can_be_imported() -> None:
    for name in kueue_fleet.__all__:
        assert getattr(kueue_fleet, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Cluster'"):
        kueue_fleet.Cluster  # type: ignore[attr-defined]  # noqa: B018


def test_nothing_that_programs_need_has_two_meanings() -> None:
    """A component and what it takes never share a name."""
    names = re.findall(r" as (\w+)$", STUB.read_text(), re.MULTILINE)
    assert sorted(names) == sorted(set(names)) == kueue_fleet.__all__


def test_the_version_is_that_of_the_distribution() -> None:
    assert kueue_fleet.__version__ == version("kueue-fleet")


@pytest.mark.parametrize(
    ("model", "begins"),
    [
        ("FleetSpec", "(name: str, project: str = '', *, deletion_protection: bool = True, "),
        ("ClusterQueueSpec", "(*, resource_groups: Sequence[ResourceGroup] = (), cohort_name: str | None = None, "),
        ("Pool", "(name: str, machine_type: str, *, existing: bool = False, "),
    ],
)
def test_a_model_shows_its_fields(model: str, begins: str) -> None:
    output = getattr(kueue_fleet, model)
    assert str(inspect.signature(output)).startswith(begins)
    assert f"{model}{begins}" in pydoc.plain(pydoc.render_doc(output))


def test_a_fleet_shows_what_it_takes_beside_the_spec() -> None:
    signature = str(inspect.signature(kueue_fleet.Fleet))
    assert "spec: FleetSpec | dict[str, Any], *, opts: ResourceOptions | None = None, project: Input[str]" in signature


def test_help_describes_the_outputs_of_a_component() -> None:
    output = pydoc.plain(pydoc.render_doc(kueue_fleet.Fleet))
    assert (
        "kubeconfig: Kubeconfig with a context for each cluster, named like it, of GKE or that the program gives;"
        in output
    )
    assert "identifier: `projects/P/locations/L/clusters/C/nodePools/N`, once it is there." in pydoc.plain(
        pydoc.render_doc(kueue_fleet.NodePool)
    )


def test_no_validator_is_in_any_help() -> None:
    """What pydantic and Python keep for themselves apart: `__annotations__` and the like."""
    lines = {
        (name, line)
        for name in kueue_fleet.__all__
        for line in pydoc.plain(pydoc.render_doc(getattr(kueue_fleet, name))).splitlines()
        if not re.match(r" \|  __(?!init__|new__|get_pydantic)", line)
    }
    assert not [item for item in lines if "AfterValidator" in item[1] or "Strict(" in item[1]]


def python(program: str) -> str:
    """What a fresh interpreter prints."""
    root = Path(__file__).parents[1]
    paths = [str(root), str(root / "tests/support"), str(root / "components")]
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{program}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return result.stdout


def test_the_spec_does_without_pulumi() -> None:
    program = "import kueue_fleet.fleet_file; print([m for m in sys.modules if m.startswith('pulumi')])"
    assert python(program).strip() == "[]"
