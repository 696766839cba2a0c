"""Amounts, their texts in Kueue's messages, and the smaller rules that stand alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kueue_admission.decide.amounts import (
    MAX_INT64,
    UNLIMITED,
    format_amount,
    format_request,
    is_unlimited,
    quota_amount,
    request_amount,
    resource_order,
    to_int64,
)
from kueue_admission.decide.pods import PodSet, Taint, Toleration
from kueue_admission.decide.reasons import QuotaReservedReason, most_severe
from kueue_admission.decide.scheduler.examination import search_counts
from kueue_admission.decide.workload.lifecycle import backoff_seconds
from kueue_admission.kernel.quantity import Quantity


class TestAmounts:
    @pytest.mark.parametrize(
        ("resource", "text", "amount"),
        [
            ("cpu", "1500m", 1500),
            ("cpu", "1", 1000),
            ("memory", "1Gi", 2**30),
            ("gpu", "4", 4),
            ("cpu", "1E", UNLIMITED),
        ],
    )
    def test_quotas(self, resource: str, text: str, amount: int) -> None:
        assert quota_amount(resource, Quantity(text)) == amount

    def test_a_request_is_never_unlimited(self) -> None:
        assert request_amount("cpu", Quantity("9223372036854776")) == MAX_INT64

    @pytest.mark.parametrize(
        ("resource", "value", "text"),
        [
            ("cpu", 1500, "1500m"),
            ("cpu", 2000, "2"),
            ("memory", 3 * 2**30, "3Gi"),
            ("memory", 10**9, "1G"),
            ("memory", 0, "0"),
            ("hugepages-2Mi", 2**21, "2Mi"),
            ("example.com/gpu", 20, "20"),
        ],
    )
    def test_texts(self, resource: str, value: int, text: str) -> None:
        assert format_request(resource, value) == text

    @given(st.integers(-(2**80), 2**80))
    def test_unlimited_stays_unlimited_and_differences_of_it_cancel(self, amount: int) -> None:
        assert is_unlimited(UNLIMITED - amount)
        assert UNLIMITED - UNLIMITED == 0
        assert amount - UNLIMITED < 0
        assert to_int64(UNLIMITED + amount) == MAX_INT64
        assert format_amount("cpu", UNLIMITED - amount) == "<unlimited>"

    def test_resources_are_walked_in_the_order_of_their_hashes(self) -> None:
        names = ["cpu", "pods", "nvidia.com/gpu", "memory"]
        assert sorted(names, key=resource_order) == ["memory", "nvidia.com/gpu", "pods", "cpu"]


class TestReasons:
    def test_no_matching_flavor_is_worse_than_too_little_quota(self) -> None:
        worst = QuotaReservedReason.NO_MATCHING_FLAVOR
        assert most_severe(QuotaReservedReason.EXCEEDS_MAX_QUOTA, worst) is worst
        assert most_severe(None, QuotaReservedReason.WAITING_FOR_QUOTA) is QuotaReservedReason.WAITING_FOR_QUOTA


class TestPartialAdmission:
    @given(
        st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1, max_size=4),
        st.integers(0, 120),
    )
    def test_the_largest_number_of_pods_that_fits_is_found(self, sizes: list[tuple[int, int]], room: int) -> None:
        pod_sets = tuple(PodSet(name=str(i), count=n, min_count=min(n, least)) for i, (n, least) in enumerate(sizes))
        tried: list[int] = []

        def fits(counts: list[int]) -> int | None:
            tried.append(sum(counts))
            return sum(counts) if sum(counts) <= room else None

        result = search_counts(pod_sets, fits)
        least = sum(ps.min_count or 0 for ps in pod_sets)
        if least == sum(ps.count for ps in pod_sets) or least > room:
            assert result is None
        else:
            assert result is not None
            assert result <= room
            assert all(total > room or total <= result for total in tried)


class TestTolerations:
    @pytest.mark.parametrize(
        ("toleration", "tolerates"),
        [
            (Toleration("k", "Equal", "v"), True),
            (Toleration("k", "Equal", "other"), False),
            (Toleration("k", "Exists"), True),
            (Toleration(operator="Exists"), True),
            (Toleration("k", "Exists", effect="NoExecute"), False),
            (Toleration("other", "Exists"), False),
        ],
    )
    def test_who_tolerates_what(self, toleration: Toleration, tolerates: bool) -> None:
        assert toleration.tolerates(Taint("k", "v", "NoSchedule")) is tolerates

    def test_numbers_are_compared(self) -> None:
        assert Toleration("k", "Gt", "3").tolerates(Taint("k", "5"))
        assert not Toleration("k", "Lt", "3").tolerates(Taint("k", "5"))
        assert not Toleration("k", "Gt", "x").tolerates(Taint("k", "5"))


@pytest.mark.parametrize(("count", "seconds"), [(1, 60), (2, 120), (3, 240), (7, 3600), (500, 3600)])
def test_back_off_doubles_up_to_its_limit(count: int, seconds: float) -> None:
    assert backoff_seconds(count, 60, 3600) == seconds
