"""Nearest names."""

from __future__ import annotations

from kueue_admission.kernel.suggest import instead, nearest


def test_case_hyphens_and_underscores_do_not_count() -> None:
    assert nearest("NOMINAL_quota", ["nominalQuota", "name"]) == "nominalQuota"


def test_nothing_near() -> None:
    assert nearest("gpus", ["name", "clusters"]) is None


def test_a_word_is_near_the_one_name_that_has_it() -> None:
    fields = ["locationPolicy", "totalMaxNodeCount", "totalMinNodeCount"]
    assert (nearest("min", fields), nearest("MAX", fields)) == ("totalMinNodeCount", "totalMaxNodeCount")
    assert nearest("node", fields) is None
    assert nearest("gpu", ["team-gpu", "team-cpu-large"]) == "team-gpu"


def test_a_short_list_is_written_out() -> None:
    assert instead("x", ["l4", "t4"], "flavors") == "use one of the flavors: l4, t4"


def test_a_long_list_is_cut() -> None:
    names = [f"flavor-{number}" for number in range(11)]
    assert instead("zzz", names, "flavors").endswith("flavor-7 and 3 more")


def test_nothing_to_suggest_from() -> None:
    assert instead("x", [], "flavors") == "there are no flavors yet: add one"
