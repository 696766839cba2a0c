"""The table of rules in the pack's README, from the rules themselves.

`python -m kueue_fleet_policies.table policies/README.md` writes it there, between its two marks.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Final

from kueue_fleet_policies import RULES
from kueue_fleet_policies.rule import EXEMPTIONS, ResourceRule, StackRule

BEGIN: Final = "<!-- rules: written by `python -m kueue_fleet_policies.table policies/README.md` -->"
"""Line above the table in the page."""
END: Final = "<!-- end of rules -->"
"""Line below the table in the page."""


NOT_JUDGED: Final[Mapping[str, str]] = tomllib.loads(files(__package__).joinpath("cis.toml").read_text("utf-8"))
"""Recommendations of the CIS benchmark that have no rule, by number, and why."""


def rules_table() -> str:
    """The rules as Markdown, one table for each group, and which recommendations have no rule."""
    of_groups = (line for group, rules in groupby(RULES, lambda rule: rule.group) for line in _group(group, rules))
    return "\n".join([*of_groups, *_not_judged()])


def _not_judged() -> Iterator[str]:
    yield "### Recommendations without a rule\n"
    yield "| CIS | why |"
    yield "|---|---|"
    yield from (f"| {number} | {reason} |" for number, reason in NOT_JUDGED.items())
    yield ""


def _group(group: str, rules: Iterator[ResourceRule | StackRule]) -> Iterator[str]:
    yield f"### {group}\n"
    yield "| rule | asks | level | CIS |"
    yield "|---|---|---|---|"
    for rule in rules:
        repairs = ", repairs" if rule.remediable and rule.level.value != "remediate" else ""
        notes = [rule.asks, *_settings(rule)]
        if rule.exempts:
            notes.append(f"Leaves alone: {rule.exempts}.")
        yield f"| [{rule.name}]({rule.source}) | {' '.join(notes)} | {rule.level.value}{repairs} | {rule.cis or ''} |"
    yield ""


def _settings(rule: ResourceRule | StackRule) -> Iterator[str]:
    for name, option in rule.schema.items():
        if name != EXEMPTIONS:
            meaning = option["description"][0].lower() + option["description"][1:-1]
            yield f"`{name}`: {meaning}, default `{json.dumps(option['default'])}`."


def with_table(text: str) -> str:
    """`text` with the table between the marks.

    Raises:
        ValueError: a mark is missing.
    """
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the marks {BEGIN} and {END} are not there")
    return f"{before}{BEGIN}\n\n{rules_table()}\n{END}{after}"


def main() -> None:
    """Write the table into the file named on the command line."""
    readme = Path(sys.argv[1])
    readme.write_text(with_table(readme.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
