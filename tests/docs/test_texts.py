"""The calls that `make check` finds, which read a sentence of ours."""

from __future__ import annotations

import ast

import pytest
from tests.docs.texts import found


def lines(code: str) -> list[int]:
    return [line for line, _ in found("a.py", ast.parse(code), {"SpecError"})]


@pytest.mark.parametrize(
    "code",
    [
        "problem.wrong.partition(': ')",
        "text.split('; ')",
        "re.search('is missing', problem.wrong)",
        "_PATTERN.search(str(problem))",
        "made.headline.replace('a', 'b')",
        "'is missing' in each.wrong",
        "try:\n    pass\nexcept SpecError as refused:\n    str(refused).removeprefix('a')",
    ],
)
def test_these_are_found(code: str) -> None:
    assert lines(code) == [code.count("\n") + 1]


@pytest.mark.parametrize(
    "code",
    [
        "path.partition('.')",
        "problem.wrong.split('\\n')",
        "'; '.join(parts)",
        "problem.wrong in before",
        "try:\n    pass\nexcept OSError as error:\n    str(error).splitlines()",
    ],
)
def test_others_are_not(code: str) -> None:
    assert lines(code) == []
