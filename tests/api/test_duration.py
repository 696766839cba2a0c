"""Durations as Go writes them."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kueue_admission.kernel import Duration

LENGTHS = {
    "0": 0,
    "0s": 0,
    "-0": 0,
    "1ns": 1,
    "1us": 1000,
    "1µs": 1000,
    "1.5s": 1_500_000_000,
    "1h30m": 5_400_000_000_000,
    "1h0m0.5s": 3_600_500_000_000,
    "-5m": -300_000_000_000,
    "+5m": 300_000_000_000,
}


@pytest.mark.parametrize(("text", "nanoseconds"), LENGTHS.items())
def test_length(text: str, nanoseconds: int) -> None:
    assert Duration(text).nanoseconds == nanoseconds
    assert str(Duration(text)) == text


@pytest.mark.parametrize("text", ["", "5", "5 m", "m", "1d", "5min", "1h-5m", "five", "2562048h", "9" * 5000 + "s"])
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        Duration(text)


@pytest.mark.parametrize("value", [5, 1.5, True, None, []])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Duration).validate_python(value)


def test_compared_by_length_and_immutable() -> None:
    assert Duration("60s") == Duration("1m") < Duration("1h")
    assert len({Duration("60s"), Duration("1m")}) == 1
    assert Duration("90s").seconds == 90.0
    with pytest.raises(AttributeError, match="immutable"):
        Duration("1s").nanoseconds = 5
    assert copy.deepcopy(Duration("1m")) == Duration("1m")
    assert str(pickle.loads(pickle.dumps(Duration("60s")))) == "60s"
    assert repr(Duration("60s")) == "Duration('60s')"


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_parts_add_up(hours: int, minutes: int, seconds: int, milli: int) -> None:
    length = Duration(f"{hours}h{minutes}m{seconds}.{milli:03}s").nanoseconds
    assert length == ((hours * 60 + minutes) * 60 + seconds) * 10**9 + milli * 10**6
