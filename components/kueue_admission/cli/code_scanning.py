"""Problems in the forms of code scanners: SARIF, and the annotations of a GitHub workflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from kueue_admission.kernel.names import PRODUCT
from kueue_admission.kernel.problem import Problem


def sarif_log(problems: Iterable[Problem], tool: str = PRODUCT) -> dict[str, Any]:
    """The problems that `tool` found, in the format of code scanners.

    Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
    """
    problems = list(problems)
    rules = [
        {"id": rule.code, "shortDescription": {"text": rule.seen}, "help": {"text": f"{rule.why} {rule.remedy}"}}
        | ({"helpUri": rule.page} if rule.page else {})
        for rule in sorted({problem.rule for problem in problems}, key=lambda rule: rule.code)
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": tool, "rules": rules}},
                "results": [_sarif_result(problem) for problem in problems],
            }
        ],
    }


def _sarif_result(problem: Problem) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(problem.source)}}
    if problem.line is not None:
        place["region"] = {"startLine": problem.line}
    return {
        "ruleId": problem.rule.code,
        "level": problem.severity,
        "message": {"text": str(replace(problem, source="", line=None))},
        "locations": [{"physicalLocation": place}],
    }


_ESCAPED: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
"""What a workflow command's text may not have as it is; its properties have two more."""


def annotation(problem: Problem) -> str:
    """The problem as a workflow command of GitHub, which shows it beside the line of the file.

    Source: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions#setting-an-error-message
    """
    properties = {"file": problem.source, "line": problem.line, "title": problem.path or None}
    attributes = (f"{name}={_escaped(str(value), of_property=True)}" for name, value in properties.items() if value)
    text = f"{problem.wrong}; {problem.fix} [{problem.rule.code}]"
    return f"::{problem.severity} {','.join(attributes)}::{_escaped(text)}"


def _escaped(text: str, *, of_property: bool = False) -> str:
    for character, code in (_ESCAPED | ({":": "%3A", ",": "%2C"} if of_property else {})).items():
        text = text.replace(character, code)
    return text
