"""What two rehearsals of one stack have in common, whatever the machine and whoever was first."""

from __future__ import annotations

import re


def shape(line: str) -> str:
    """A line without what each run has of its own: times, sizes, versions, made-up names, which worker it was.

    What Pulumi counts stays.
    """
    line = re.sub(r"\b([a-z]+(?:-[a-z]+)*)-[a-z0-9]{5}(?= )", r"\1-x", line)
    line = re.sub(r"( team-[a-z]+ +)worker-[a-z0-9-]+", r"\1worker", line)
    line = re.sub(r"\b\d+(?:\.\d+)+\b", "V", line)
    return " ".join(re.sub(r"(?<![\w.])\d+(?![\w.])(?! (?:create|delete|same|update)\b)", "N", line).split())


def lacks(shown: str, printed: str) -> list[str]:
    """Lines that a page shows, and that a run did not print; `...` stands for any lines."""
    result = {shape(line) for line in printed.splitlines()}
    return [shape(line) for line in shown.splitlines() if line.strip() not in ("", "...") and shape(line) not in result]
