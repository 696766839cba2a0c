"""Quantities: exact, and written as the API server writes them."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kueue_admission.kernel import Quantity

# Canonical texts, from k8s.io/apimachinery pkg/api/resource/quantity_test.go (TestQuantityParse, TestQuantityString).
CANONICAL = {
    "0": "0",
    "0n": "0",
    "0Ki": "0",
    "-0": "0",
    "1": "1",
    "+1": "1",
    "010": "10",
    "1.": "1",
    ".5": "500m",
    "1.5": "1500m",
    "1000m": "1",
    "1000": "1k",
    "1500": "1500",
    "1e3": "1e3",
    "1E6": "1e6",
    "12e6": "12e6",
    "1e-3": "1e-3",
    "1000k": "1M",
    "100000": "100k",
    "1001k": "1001k",
    "1Ki": "1Ki",
    "1024Ki": "1Mi",
    "1.5Gi": "1536Mi",
    "0.5Ki": "512",
    "1Ei": "1Ei",
    "1.1Ki": "1126400m",
    "1023Mi": "1023Mi",
    "-2Gi": "-2Gi",
    "100n": "100n",
    "1000000n": "1m",
    "9223372036854775807": "9223372036854775807",
    "9223372036854775808": "9223372036854775808",
    "8Ei": "9223372036854775807",
    "-8Ei": "-9223372036854775807",
    "1000000000Ti": "9223372036854775807",
}

REFUSED = {
    "": "is not a valid quantity",
    "x": "is not a valid quantity",
    "1 Gi": "has a space in it; write 1Gi",
    " 1": "has a space in it; write 1",
    "4GB": "ends in 'B', which is not a suffix of a quantity; write 4G",
    "64GiB": "ends in 'B', which is not a suffix of a quantity; write 64Gi",
    "4gi": "ends in 'gi', which is not a suffix of a quantity; write Gi",
    "4K": "ends in 'K', which is not a suffix of a quantity; write k or Ki",
    "4g": "ends in 'g', which is not a suffix of a quantity; write G or Gi",
    "1,000": "has a comma in it; write the number without",
    "0,5": "has a comma in it; write 0.5",
    "1,5Gi": "has a comma in it; write 1.5Gi",
    "1,000,000": "has a comma in it; write the number without",
    "1e": "is not a valid quantity",
    "--1": "is not a valid quantity",
    "0.1n": "is finer than 1n, the smallest quantity",
    "1e-10": "is finer than 1n, the smallest quantity",
    "9" * 5000: "is 5000 characters long; write at most 400",
    "9" * 100_000 + "d": "is 100001 characters long; write at most 400",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_text_is_the_servers(text: str, canonical: str) -> None:
    assert str(Quantity(text)) == canonical


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as refusal:
        Quantity(text)
    assert str(refusal.value).startswith(reason)


def test_equal_by_value_whatever_the_notation() -> None:
    assert Quantity("1") == Quantity("1000m") == Quantity("1e0") == Quantity(1) == Quantity(Decimal("1.0"))
    assert Quantity("1Gi") == Quantity(2**30)
    assert len({Quantity("1"), Quantity("1000m")}) == 1
    assert Quantity("1") != 1


def test_ordered_across_notations() -> None:
    ordered = [Quantity(text) for text in ("-1", "0", "1n", "999m", "1", "1k", "1Ki", "1M", "1Mi", "1e7")]
    assert sorted(ordered, reverse=True) == ordered[::-1]
    assert sorted(ordered) == ordered


def test_units_are_rounded_up_as_kueue_does() -> None:
    assert Quantity("1500u").milli == 2
    assert Quantity("1500m").value == 2
    assert Quantity("-1500m").value == -1


def test_sum_keeps_the_first_notation_that_is_not_zero() -> None:
    assert str(Quantity("1Gi") + Quantity("1")) == "1073741825"
    assert str(Quantity("0") + Quantity("1Gi")) == "1Gi"
    assert str(Quantity.total([Quantity("0"), Quantity("256Gi"), Quantity("256Gi")])) == "512Gi"
    assert str(Quantity.total([])) == "0"


def test_headroom_is_rounded_up_to_a_whole_unit() -> None:
    assert Quantity("10").with_headroom(15) == Quantity("12")
    assert Quantity("10500m").with_headroom(0) == Quantity("10500m")
    assert str(Quantity("100Gi").with_headroom(50)) == "150Gi"
    assert str(Quantity("768Gi").with_headroom(10)) == "865076Mi"
    assert str(Quantity("512Ki").with_headroom(10)) == "576717"


def test_amounts_beyond_the_largest_quantity_count_as_that() -> None:
    largest = Quantity("8Ei")
    beyond = [largest + Quantity("1"), Quantity.total([largest, largest]), largest.with_headroom(10), Quantity("1e30")]
    assert {amount.value for amount in beyond} == {2**63 - 1} == {largest.milli}


def test_immutable_and_copied_as_itself() -> None:
    amount = Quantity("1Gi")
    with pytest.raises(AttributeError, match="immutable"):
        amount._nano = 3
    with pytest.raises(AttributeError, match="immutable"):
        del amount._nano
    assert copy.copy(amount) is amount
    assert copy.deepcopy(amount) is amount
    assert str(pickle.loads(pickle.dumps(amount))) == "1Gi"
    assert repr(amount) == "Quantity('1Gi')"
    assert bool(amount)
    assert not Quantity("0Gi")


@pytest.mark.parametrize("value", [True, None, [], {}, float("inf"), float("nan")])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Quantity).validate_python(value)


def test_numbers_are_read_as_they_are_written() -> None:
    adapter = TypeAdapter(Quantity)
    assert [str(adapter.validate_python(value)) for value in (4, 0.1, 1e-7, 2.5, "4")] == [
        "4",
        "100m",
        "100n",
        "2500m",
        "4",
    ]
    assert adapter.dump_python(Quantity("1024Mi"), mode="json") == "1Gi"


AMOUNTS = st.integers(-(2**63) + 1, 2**63 - 1)
SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi", "e3", "E-3", "e0")
SCALE = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "e3": 3, "E-3": -3, "e0": 0}


def decimal_of(number: int, suffix: str) -> Decimal:
    """The exact amount, by decimal arithmetic."""
    if suffix.endswith("i"):
        return Decimal(number) * Decimal(1024) ** ("KMGTP".index(suffix[0]) + 1)
    return Decimal(number).scaleb(SCALE[suffix])


@given(st.integers(-(10**6), 10**6), st.sampled_from(SUFFIXES))
def test_parsing_agrees_with_decimal_arithmetic(number: int, suffix: str) -> None:
    expected = decimal_of(number, suffix)
    if abs(expected) < 2**63:
        assert Quantity(f"{number}{suffix}").decimal == expected


@given(st.integers(-(10**6), 10**6), st.sampled_from(SUFFIXES))
def test_canonical_text_is_stable_and_exact(number: int, suffix: str) -> None:
    if abs(decimal_of(number, suffix)) >= 2**63:
        return
    amount = Quantity(f"{number}{suffix}")
    again = Quantity(str(amount))
    assert again == amount
    assert str(again) == str(amount)
    assert "." not in str(amount)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(SUFFIXES[:8])), min_size=1, max_size=8))
def test_sum_agrees_with_decimal_arithmetic(parts: list[tuple[int, str]]) -> None:
    amounts = [Quantity(f"{number}{suffix}") for number, suffix in parts]
    total = sum((amount.decimal for amount in amounts), start=Decimal(0))
    assert Quantity.total(amounts).decimal == total
    added = amounts[0]
    for amount in amounts[1:]:
        added = added + amount
    assert added == Quantity.total(amounts)
    assert (added - amounts[0]).decimal == total - amounts[0].decimal


@given(AMOUNTS, AMOUNTS)
def test_order_is_that_of_the_numbers(one: int, other: int) -> None:
    assert (Quantity(one) < Quantity(other)) == (one < other)
    assert (Quantity(one) == Quantity(other)) == (one == other)


@given(st.integers(0, 10**12), st.integers(0, 1000))
def test_headroom_is_the_least_whole_amount_that_is_enough(milli: int, percent: int) -> None:
    widened = Quantity(f"{milli}m").with_headroom(percent)
    exact = Decimal(milli).scaleb(-3) * (100 + percent) / 100
    if percent == 0:
        assert widened.decimal == exact
    else:
        assert exact <= widened.decimal < exact + 1
        assert widened.decimal == widened.decimal.to_integral_value()


@pytest.mark.parametrize(("text", "plain"), [("7000", "7000"), ("7k", "7000"), ("32Gi", "32Gi"), ("500m", "500m")])
def test_in_messages_it_is_as_people_write_it(text: str, plain: str) -> None:
    assert Quantity(text).plain == plain
