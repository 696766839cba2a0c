"""The typed program runs, and what its types refuse is refused when it runs too."""

from __future__ import annotations

import pytest

import pulumi_mocks
import typed_program
from kueue_admission.api import ResourceQuota
from kueue_admission.kernel import Quantity, SpecError
from small_fleets import WORKER, fleet_data


def test_amounts_are_given_as_numbers_as_text_and_as_quantities() -> None:
    assert Quantity(4) == typed_program.CPU.nominal_quota
    assert typed_program.read_again(typed_program.MEMORY) == "68719476735 16Gi"
    assert typed_program.TEAM.resource_quota["requests.storage"] == Quantity("10Ti")


def test_what_is_no_amount_fails_types_and_program() -> None:
    # Were this no error to mypy, it would name the comment as one that is not needed.
    with pytest.raises(SpecError, match="nothing is given where a value is needed"):
        ResourceQuota(name="cpu", nominal_quota=None)  # type: ignore[arg-type]


def test_specs_may_be_models_and_plain_data() -> None:
    recording = pulumi_mocks.run(typed_program.queues)
    queues = {result.name: result.inputs["spec"] for result in recording.of_type("ClusterQueue") if result.custom}
    assert queues["plain"]["resourceGroups"][0]["flavors"][0]["resources"] == [{"name": "cpu", "nominalQuota": "8"}]
    assert queues["plain"]["preemption"]["reclaimWithinCohort"] == "Never", "defaults are written out, as with models"
    assert queues["typed"]["fairSharing"] == {"weight": "500m"}
    assert recording.one("Cohort", custom=True).inputs["spec"] == {"fairSharing": {"weight": "2"}}


def test_a_node_pool_is_declared_from_its_entry() -> None:
    pool = pulumi_mocks.run(typed_program.nodes).one("gcp:container/nodePool:NodePool")
    assert pool.inputs["nodeConfig"]["machineType"] == "g2-standard-24"
    assert pool.inputs["cluster"] == "batch"


def test_the_program_of_the_page_declares_the_fleet_of_the_config() -> None:
    recording = pulumi_mocks.run(typed_program.fleet, config={"kueue-fleet:fleet": fleet_data(WORKER)})
    assert recording.one("kueue-fleet:index:Fleet").name == "lab"
