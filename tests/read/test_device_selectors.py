"""Selectors of devices; those of `tests/differential/devices.py` were asked the real Kueue too."""

from __future__ import annotations

from typing import Any

import pytest
from tests.differential.devices import SLICES

from kueue_admission.decide.errors import NotModelledError
from kueue_admission.read.device_selectors import SelectionError, compiled, device_of
from kueue_admission.read.fields import Fields

A, B = (
    [device_of(item["spec"]["driver"], Fields(device, "device", [])) for device in item["spec"]["devices"]]
    for item in SLICES
)
ATTRIBUTES = 'device.attributes["a.example.com"]'


def chosen(expression: str) -> list[bool]:
    return [compiled(expression)(device) for device in A]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("true || false && false", [True] * 3),
        ("!true == false", [True] * 3),
        ("1 + 2 * 3 - 4 / 2 == 5", [True] * 3),
        ("7 % -3 == 1 && -7 / 2 == -3", [True] * 3),
        ("1.5 < 2.0 && 'a' + r'\\b' == \"a\\\\b\"", [True] * 3),
        (f"{ATTRIBUTES}.cores > 0 ? {ATTRIBUTES}.cores == 16 : true", [True, False, True]),
        (f"{ATTRIBUTES}['model'] != 'slow'", [True, True, False]),
        (f"{ATTRIBUTES}.no || {ATTRIBUTES}.cores == {ATTRIBUTES}.cores", [True] * 3),
        (f"cel.bind(a, {ATTRIBUTES}, cel.bind(b, a.cores, b < 0 || a.model == 'Fast-1'))", [True, False, True]),
        (f"{ATTRIBUTES}.release.isGreaterThan(semver('1.10.0-alpha'))", [False, True, True]),
        (f"{ATTRIBUTES}.release.major() == 1 && {ATTRIBUTES}.release.patch() == 0", [True] * 3),
        ("device.capacity['a.example.com'].memory.isLessThan(quantity('41G'))", [False, False, False]),
        ("has(device.attributes['x.example.com'].y)", [False] * 3),
    ],
)
def test_what_an_expression_chooses(expression: str, wanted: list[bool]) -> None:
    assert chosen(expression) == wanted


@pytest.mark.parametrize(
    "expression",
    [
        f"{ATTRIBUTES}.no",
        f"{ATTRIBUTES}.no && true",
        f"{ATTRIBUTES}.model",
        f"{ATTRIBUTES}.model < 3",
        f"!{ATTRIBUTES}.model",
        f"-{ATTRIBUTES}.model == 1",
        f"{ATTRIBUTES}.cores / 0 == 1",
        f"{ATTRIBUTES}.model * 1000000000000 == ''",
        "9223372036854775807 + 1 > 0",
        "device.nothing == 1",
        "nothing == 1",
        "semver('1') == semver('1')",
        "quantity('x') == quantity('1')",
        "size(3) == 1",
        "cel.bind(a, 'aaaaaaaaaa', cel.bind(b, a+a+a+a+a+a+a+a+a+a, cel.bind(c, b+b+b+b+b+b+b+b+b+b, "
        "cel.bind(d, c+c+c+c+c+c+c+c+c+c, size(d+d) > 1))))",
    ],
)
def test_an_expression_without_a_value_for_a_device(expression: str) -> None:
    with pytest.raises(SelectionError):
        chosen(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "device.driver ==",
        "device.driver == 'x",
        "[1, 2].exists(x, x == 1)",
        "device.driver.unknown()",
        "{'a': 1} == {}",
        "(" * 5000 + "true" + ")" * 5000,
        "device.driver.matches('(a+)+$')",
        "device.driver.matches('a*a*a*a*a*a*$')",
        "device.driver.matches('[')",
        "device.driver == '\\d'",
        "true; false",
    ],
)
def test_more_of_cel_than_selectors_need_is_refused(expression: str) -> None:
    with pytest.raises(NotModelledError):
        chosen(expression)


def test_attributes_of_other_types_and_domains() -> None:
    assert compiled('device.attributes["a.example.com"].link == "x"')(B[0])
    wrong: dict[str, Any] = {"attributes": {"sizes": {"ints": [1, 2]}}}
    with pytest.raises(NotModelledError, match="attributes of devices of type 'ints'"):
        device_of("x", Fields(wrong, "device", []))
