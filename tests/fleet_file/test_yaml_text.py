"""YAML that would end the process, that expands without bound, or that Python refuses, is refused with its line."""

from __future__ import annotations

import time

import pytest

from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.yaml_bounds import MOST_LEVELS
from kueue_admission.kernel.yaml_kubectl import KubectlLoader
from kueue_admission.kernel.yaml_text import load_documents, load_yaml


def nested(levels: int, key: str = "a:") -> str:
    """Maps within maps, one to a line."""
    return "\n".join(" " * level + key for level in range(levels))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: " + "[" * 1_000_000, 2),
        ("{a: " * 100_000, 1),
        ("[\n" * 100_000, MOST_LEVELS + 1),
        ("- " * 100_000, 1),
        ("-  " * 100_000, 1),
        ("? " * 100_000, 1),
        (nested(3000), MOST_LEVELS + 1),
        (nested(MOST_LEVELS + 1), MOST_LEVELS + 1),
        ("\n".join(" " * level + "a:\n" + " " * level + "-" for level in range(110)), MOST_LEVELS + 1),
    ],
    ids=["brackets", "braces", "brackets in rows", "list marks", "wide marks", "keys", "3000 maps", "maps", "lists"],
)
def test_too_deep_is_refused_before_it_is_read(text: str, line: int) -> None:
    with pytest.raises(SpecError, match=f"f.yaml:{line}: is nested too deeply; write plain fields and lists"):
        load_documents(text, "f.yaml")


def test_brackets_within_text_are_no_levels() -> None:
    text = "\n".join(f"k{number}: 'from [ to'" for number in range(2000))
    assert len(load_yaml(text, "f.yaml")) == 2000


def test_what_is_deep_but_bearable_is_read() -> None:
    result = load_yaml("a: " + "[" * (MOST_LEVELS - 1) + "]" * (MOST_LEVELS - 1), "f.yaml")
    for _ in range(MOST_LEVELS - 1):
        result = next(iter(result.values())) if isinstance(result, dict) else result[0]
    assert result == []
    assert load_yaml(nested(MOST_LEVELS), "f.yaml")


def repeated(levels: int, form: str) -> str:
    """Each line stands for ten of the line before it."""
    lines = ["a0: &a0 {k0: v, k1: v, k2: v, k3: v}"]
    for level in range(1, levels):
        aliases = ",".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} " + form.format(aliases=aliases, level=level))
    return "\n".join(lines)


@pytest.mark.parametrize("form", ["{{<<: [{aliases}], z{level}: 1}}", "[{aliases}]"], ids=["merge keys", "aliases"])
@pytest.mark.parametrize("levels", [7, 9, 60])
def test_what_stands_for_too_much_is_refused_at_once(form: str, levels: int) -> None:
    text = repeated(levels, form)
    began = time.process_time()
    with pytest.raises(SpecError, match=r"f.yaml:1: aliases and merge keys repeat more than 100,000 values; write the"):
        load_documents(text, "f.yaml")
    assert time.process_time() - began < 0.5


def test_aliases_as_people_use_them_are_read() -> None:
    text = repeated(4, "{{<<: [{aliases}], z{level}: 1}}")
    assert load_yaml(text, "f.yaml")["a3"] == {"k0": "v", "k1": "v", "k2": "v", "k3": "v", "z1": 1, "z2": 1, "z3": 1}


def test_a_chain_of_aliases_is_as_deep_as_what_it_stands_for() -> None:
    chain = "\n".join(f"a{level}: &a{level} [*a{level - 1}]" for level in range(1, 300))
    with pytest.raises(SpecError, match=r"f.yaml:1: is nested too deeply"):
        load_documents("a0: &a0 [x]\n" + chain, "f.yaml")


@pytest.mark.parametrize("text", ["a: 1\nb: &b [*b]", "a: 1\nb: &b {c: {d: *b}}", "a: 1\nb: &b {<<: *b}"])
def test_an_alias_of_what_it_is_in_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match=r"f.yaml:2: an alias leads back to itself; write the values out"):
        load_documents(text, "f.yaml")


@pytest.mark.parametrize("text", ["- &a{} x\n", "---\na: &a{} x\n"])
def test_many_anchors_are_read_in_time(text: str) -> None:
    started = time.process_time()
    load_documents("".join(text.format(number) for number in range(10_000)), "f.yaml")
    assert time.process_time() - started < 5


@pytest.mark.parametrize("number", ["9" * 4000, "0x" + "f" * 3998, "0o" + "7" * 3998, "-" + "9" * 3999])
def test_a_number_of_too_many_digits(number: str) -> None:
    with pytest.raises(SpecError, match=r"f.yaml:2: .*a number has 4000 digits") as refused:
        load_documents(f"a: 1\nb: {number}", "f.yaml")
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (
            "016",
            '016 is 14 to Pulumi and kubectl, which read it as octal; write 16 or 14, or "016" in quotes if it is text',
        ),
        (
            "-010",
            '-010 is -8 to Pulumi and kubectl, which read it as octal; write 10 or -8, or "-010" in quotes if it is '
            "text",
        ),
        ("1_000", '1_000 is 1000 to Pulumi and kubectl; write 1000, or "1_000" in quotes if it is text'),
        ("0b11", '0b11 is 3 to Pulumi and kubectl; write 3, or "0b11" in quotes if it is text'),
    ],
)
def test_what_other_readers_take_for_another_number_is_refused(number: str, said: str) -> None:
    with pytest.raises(SpecError) as refused:
        load_yaml(f"a: 1\nb: {number}", "f.yaml")
    assert str(refused.value) == f"f.yaml:2: {said} [KF518]"
    assert load_yaml(f"a: '{number}'", "f.yaml") == {"a": number}


def test_numbers_that_all_readers_take_alike_are_read() -> None:
    assert load_yaml("[0, 00, 007, 08, 10, -1, 0o17, 0x1F]", "f.yaml") == [0, 0, 7, 8, 10, -1, 15, 31]


def test_objects_of_people_are_read_as_kubectl_reads_them() -> None:
    """go.yaml.in/yaml/v2@v2.4.4 resolve.go."""
    text = "{a: yes, b: Off, c: n, d: 010, e: 1_000, f: 0b11, g: 'yes', on: yesterday}"
    (document,) = load_documents(text, "f.yaml", KubectlLoader)
    assert document.data == {
        "a": True,
        "b": False,
        "c": False,
        "d": 8,
        "e": 1000,
        "f": 3,
        "g": "yes",
        "true": "yesterday",
    }
    assert load_yaml(text.replace("010", "8").replace("1_000", "1").replace("0b11", "1"), "f.yaml")["a"] == "yes"
