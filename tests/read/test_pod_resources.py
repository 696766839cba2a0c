"""What LimitRanges and RuntimeClasses make of pods, and what Kueue refuses.

Source: kueue@v0.19.2 pkg/workload/resources_test.go (TestAdjustResources, TestValidateResources,
TestValidateLimitRange), pkg/util/limitrange/limitrange_test.go (TestSummarize, TestValidatePodSpec).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kueue_admission.decide.model import Workload
from kueue_admission.read.kueue_objects import parse_objects

Json = dict[str, Any]


def limit_range(name: str = "limits", namespace: str = "ns", **bounds: Any) -> Json:
    """A LimitRange with one item: of containers, unless `type` says otherwise."""
    item = {"type": "Container", **bounds}
    return {"kind": "LimitRange", "metadata": {"name": name, "namespace": namespace}, "spec": {"limits": [item]}}


def container(requests: Json | None = None, limits: Json | None = None, **more: str) -> Json:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def workload(objects: list[Json], *containers: Json, namespace: str = "ns", **pod: Any) -> Workload:
    spec = {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": list(containers), **pod}}}]}
    item = {"kind": "Workload", "metadata": {"name": "w", "namespace": namespace}, "spec": {"queueName": "q", **spec}}
    (result,) = parse_objects([*objects, item]).workloads
    return result


def requests(found: Workload) -> dict[str, int]:
    return dict(found.pod_sets[0].requests)


RUNTIME = {"kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "overhead": {"podFixed": {"cpu": "1"}}}
BOUNDS = limit_range(default={"cpu": "4"}, defaultRequest={"cpu": "3"}, max={"cpu": "5"}, min={"cpu": "2"})


class TestOverhead:
    def test_that_of_the_runtime_class(self) -> None:
        assert requests(workload([RUNTIME], container({"cpu": "2"}), runtimeClassName="gvisor")) == {"cpu": 3000}

    def test_the_pods_own_comes_first(self) -> None:
        result = workload([RUNTIME], container({"cpu": "2"}), runtimeClassName="gvisor", overhead={"cpu": "500m"})
        assert requests(result) == {"cpu": 2500}

    @pytest.mark.parametrize("name", ["runc", None])
    def test_none_without_that_runtime_class(self, name: str | None) -> None:
        assert requests(workload([RUNTIME], container({"cpu": "2"}), runtimeClassName=name)) == {"cpu": 2000}


class TestDefaults:
    @pytest.mark.parametrize(
        ("given_requests", "given_limits", "expected"),
        [
            ({}, {}, 3000),
            ({}, {"cpu": "5"}, 3000),
            ({"cpu": "2"}, {}, 2000),
            ({}, {"memory": "1Gi"}, 3000),
        ],
    )
    def test_of_a_container(self, given_requests: Json, given_limits: Json, expected: int) -> None:
        """Before limits that stand for missing requests: the pod itself would ask for 5 in the second case."""
        assert requests(workload([BOUNDS], container(given_requests, given_limits)))["cpu"] == expected

    def test_of_an_init_container(self) -> None:
        result = workload([BOUNDS], container({"cpu": "2"}), initContainers=[container()])
        assert requests(result) == {"cpu": 3000}

    @pytest.mark.parametrize(
        ("bounds", "expected"),
        [
            ({"max": {"cpu": "4"}}, 4000),
            ({"max": {"cpu": "4"}, "min": {"cpu": "1"}}, 4000),
            ({"max": {"cpu": "4"}, "default": {"cpu": "2"}}, 2000),
            ({"min": {"cpu": "1"}}, 1000),
            ({"type": "Pod", "max": {"cpu": "4"}, "min": {"cpu": "1"}}, None),
            ({}, None),
        ],
    )
    def test_that_the_api_server_writes(self, bounds: Json, expected: int | None) -> None:
        assert requests(workload([limit_range(**bounds)], container())).get("cpu") == expected

    def test_of_another_namespace_do_not_count(self) -> None:
        alike = [container({"memory": "1Gi"})]
        assert "cpu" in requests(workload([BOUNDS], *alike))
        assert "cpu" not in requests(workload([BOUNDS], *alike, namespace="other"))

    def test_equal_pods_of_two_namespaces_are_read_apart(self) -> None:
        pods = {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container()]}}}]}
        items = [
            {"kind": "Workload", "metadata": {"name": "w", "namespace": name}, "spec": pods} for name in ("ns", "other")
        ]
        first, second = parse_objects([BOUNDS, *items]).workloads
        assert (requests(first), requests(second)) == ({"cpu": 3000}, {})

    def test_of_several_limit_ranges_the_first_by_name_counts(self) -> None:
        several = [limit_range("b", default={"cpu": "1"}), limit_range("a", default={"cpu": "2", "memory": "1Gi"})]
        assert requests(workload(several, container())) == {"cpu": 2000, "memory": 2**30}

    def test_jobs_get_them_too(self) -> None:
        template = {"spec": {"containers": [container()], "runtimeClassName": "gvisor"}}
        labels = {"kueue.x-k8s.io/queue-name": "q"}
        job = {"kind": "Job", "metadata": {"name": "j", "namespace": "ns", "labels": labels}}
        (result,) = parse_objects([BOUNDS, RUNTIME, {**job, "spec": {"template": template}}]).workloads
        assert requests(result) == {"cpu": 4000}


POD = "spec.podSets[0].template.spec"
ABOVE = "requests must not be above the limitRange max"
BELOW = "requests must not be below the limitRange min"


class TestProblems:
    @pytest.mark.parametrize(
        ("limits", "containers", "expected"),
        [
            ([], [container({"cpu": "2"}, {"cpu": "1"})],
             f'resources validation failed: {POD}.containers[0]: Invalid value: ["cpu"]: '
             "requests must not exceed its limits"),
            # Kueue's table has a LimitRange with max alone, but the API server stores it with that default limit.
            ([limit_range(max={"cpu": "300m"})], [container({"cpu": "500m"})],
             f'resources validation failed: {POD}.containers[0]: Invalid value: ["cpu"]: '
             "requests must not exceed its limits"),
            ([limit_range(max={"cpu": "300m"})], [container({"cpu": "500m"}, {"cpu": "1"})],
             "resources didn't satisfy LimitRange constraints: "
             f'{POD}.containers[0]: Invalid value: ["cpu"]: {ABOVE}'),
            ([limit_range(max={"cpu": "1"})], [container({"cpu": "1"}, {"cpu": "2"})],
             "resources didn't satisfy LimitRange constraints: "
             f'{POD}.containers[0]: Invalid value: ["cpu"]: {ABOVE}'),
            ([limit_range(min={"cpu": "2", "memory": "2Gi"})], [container({"cpu": "1", "memory": "1Gi"})],
             "resources didn't satisfy LimitRange constraints: "
             f'{POD}.containers[0]: Invalid value: ["cpu","memory"]: {BELOW}'),
            ([limit_range(min={"gpu": "3"})], [container({"gpu": "0"})],
             "resources didn't satisfy LimitRange constraints: "
             f'{POD}.containers[0]: Invalid value: ["gpu"]: {BELOW}'),
            ([limit_range(type="Pod", max={"cpu": "3"})], [container({"cpu": "2"}), container({"cpu": "2"})],
             f"resources didn't satisfy LimitRange constraints: {POD}: Invalid value: [\"cpu\"]: {ABOVE}"),
            ([limit_range(type="Pod", min={"cpu": "5", "gpu": "1"})], [container({"cpu": "2"})],
             f"resources didn't satisfy LimitRange constraints: {POD}: Invalid value: [\"cpu\"]: {BELOW}"),
            ([limit_range("a", max={"cpu": "3"}), limit_range("b", max={"cpu": "2"})],
             [container({"cpu": "3"}, {"cpu": "3"}), container({"cpu": "3"}, {"cpu": "3"})],
             "resources didn't satisfy LimitRange constraints: ["
             f'{POD}.containers[0]: Invalid value: ["cpu"]: {ABOVE}, '
             f'{POD}.containers[1]: Invalid value: ["cpu"]: {ABOVE}]'),
            ([limit_range(maxLimitRequestRatio={"cpu": "1"})], [container({"cpu": "1"}, {"cpu": "4"})], ""),
            ([limit_range(type="PersistentVolumeClaim", max={"storage": "1"})], [container({"storage": "2"})], ""),
            ([limit_range(namespace="other", max={"cpu": "1"})], [container({"cpu": "2"})], ""),
        ],
    )  # fmt: skip
    def test_in_kueues_words(self, limits: list[Json], containers: list[Json], expected: str) -> None:
        assert workload(limits, *containers).problem == expected

    def test_pod_level_requests_above_limits(self) -> None:
        result = workload([], container(), resources={"requests": {"cpu": "300m"}, "limits": {"cpu": "200m"}})
        assert result.problem == (
            f'resources validation failed: {POD}.resources: Invalid value: ["cpu"]: requests must not exceed its limits'
        )

    def test_overhead_and_sidecars_count_against_the_bounds_of_a_pod(self) -> None:
        most = limit_range(type="Pod", max={"cpu": "3"})
        assert not workload([most], container({"cpu": "2"}), runtimeClassName="gvisor").problem
        assert workload([most, RUNTIME], container({"cpu": "2500m"}), runtimeClassName="gvisor").problem
        sidecar = container({"cpu": "2"}, restartPolicy="Always")
        assert workload([most], container({"cpu": "2"}), initContainers=[sidecar]).problem


AMOUNTS = st.none() | st.integers(1, 6)


@given(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS), AMOUNTS, AMOUNTS)
def test_what_is_admissible_is_within_the_bounds(
    bounds: tuple[int | None, ...], asked: int | None, limited: int | None
) -> None:
    """A pod that Kueue takes has requests from `min` to `max`, and a request wherever the LimitRange says anything."""
    names = ("min", "defaultRequest", "default", "max")
    given_bounds = {name: entry for name, entry in zip(names, bounds, strict=True) if entry is not None}
    if list(given_bounds.values()) != sorted(given_bounds.values()):
        return  # The API server refuses it.
    item = limit_range("limits", "ns", **{name: {"cpu": each} for name, each in given_bounds.items()})
    result = workload(
        [item], container({} if asked is None else {"cpu": asked}, {} if limited is None else {"cpu": limited})
    )
    amount = requests(result).get("cpu")
    assert (amount is None) == (not given_bounds and asked is None and limited is None)
    if amount is not None and not result.problem:
        assert given_bounds.get("min", 0) * 1000 <= amount <= given_bounds.get("max", 6) * 1000
