"""What is said about a job that waits for several flavors at once."""

from __future__ import annotations

from tests.decide.build import job
from tests.decide.workload.test_variants import cluster, run

from kueue_admission.explain import explain


def test_the_job_is_explained_as_if_it_tried_its_flavors_in_turn() -> None:
    made = run(cluster(res=1, spot=2), job("a", 4))
    answer = explain(made.engine.snapshot(), "ns/a", cluster="")
    assert [flavor.flavor for flavor in answer.flavors] == ["res", "spot"]


def test_changes_are_tried_without_its_variants() -> None:
    made = run(cluster(res=4, spot=2), job("b", 4), job("a", 4))
    assert any(change.admits for change in explain(made.engine.snapshot(), "ns/b", cluster="").changes)


def test_a_variant_has_its_own_answer() -> None:
    made = run(cluster(res=1, spot=2), job("a", 4))
    answer = explain(made.engine.snapshot(), "ns/a-variant-spot", cluster="")
    assert "skipping flavor res due to WorkloadAllowedResourceFlavorAnnotation annotation" in answer.message
