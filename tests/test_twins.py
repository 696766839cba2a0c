"""The search for facts that stand in two places."""

from __future__ import annotations

from tests.twins import main, twins

ADD = """def add(first: int, second: int) -> int:
    total = [first + second for _ in range(first) if second > 3]
    return max(total)
"""


def test_a_name_of_kubernetes_in_two_modules_is_found() -> None:
    [result] = twins({"a.py": 'A = "example.com/queue-name"\n', "b.py": 'B: Final = "example.com/queue-name"\n'})
    assert result == "a.py:1: A and b.py:1: B"


def test_a_function_with_other_names_is_found() -> None:
    other = ADD.replace("first", "left").replace("second", "right").replace("total", "sums").replace("add", "plus")
    assert list(twins({"a.py": ADD, "b.py": other})) == ["a.py:1: add and b.py:1: plus"]


def test_words_and_other_functions_are_not() -> None:
    other = ADD.replace("first + second", "first - second")
    assert list(twins({"a.py": f'A = "spec"\n{ADD}', "b.py": f'B = "spec"\n{other}'})) == []


def test_the_library_has_none() -> None:
    assert main() == 0


def test_a_type_of_pulumi_has_one_home_in_functions_too() -> None:
    sources = {"a.py": 'def f():\n    return "gcp:compute/disk:Disk"\n', "b.py": 'X = ["gcp:compute/disk:Disk"]\n'}
    assert list(twins(sources)) == ["a.py:2: gcp:compute/disk:Disk and b.py:1: gcp:compute/disk:Disk"]
