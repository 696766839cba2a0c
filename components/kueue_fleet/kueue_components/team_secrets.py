"""What a program gives for the Secrets of teams: judged when it is known, and encoded as Kubernetes has it.

No value is ever in a message.
"""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import pulumi

from kueue_admission.kernel import Problem, syntax
from kueue_admission.kernel.base import DnsSubdomain, syntax_of
from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.model_problems import syntax_problems
from kueue_admission.kernel.suggest import instead
from kueue_fleet.component import judge_late
from kueue_fleet.fleet_file import TeamEntry
from kueue_fleet.fleet_file.rules.files import NO_EFFECT, PROGRAM

_SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]+")


def _secret_key(text: str) -> Fault | None:
    """Key of a Secret (validation.IsConfigMapKey)."""
    form = "use letters, digits, '-', '_' and '.'"
    return syntax.in_form(text, _SECRET_KEY, 253, form) or (Fault("is a path", form) if text.startswith("..") else None)


_Contents = Mapping[Annotated[str, syntax_of(_secret_key)], pulumi.Input[str]]
TeamSecrets = pulumi.Input[Mapping[DnsSubdomain, pulumi.Input[_Contents]]]
"""What is in Secrets, by name and key."""
_SHORTEST_ENCODED = 12
"""Characters from which on a text that decodes to printable text is not so by chance: about one in a million."""


def known_secrets(
    where: str, teams: Sequence[TeamEntry], secrets: TeamSecrets
) -> pulumi.Output[Mapping[str, Mapping[str, Any]]]:
    """What is in the Secrets of teams, as a secret. Raises RunError, from within Pulumi, where it is wrong."""

    def known(given: Mapping[str, Any]) -> Mapping[str, Any]:
        judge_late(_problems(where, teams, given), None)
        return given

    whole: pulumi.Output[Any] = pulumi.Output.secret(secrets)
    return whole.apply(known)


def encoded(values: Mapping[str, Any]) -> dict[str, str]:
    """What is in one Secret, as Kubernetes has it."""
    return {key: base64.b64encode(str(value).encode()).decode() for key, value in values.items()}


def _problems(where: str, teams: Sequence[TeamEntry], given: Mapping[str, Any]) -> Iterator[Problem]:
    names = list(dict.fromkeys(name for team in teams for name in team.secrets))
    for team in teams:
        for name in team.secrets:
            if not isinstance(given.get(name), Mapping) or not given[name]:
                fix = f"run pulumi config set --secret --path 'kueue-fleet:teamSecrets.{name}.KEY'"
                yield PROGRAM.at(f"teams[{team.name}].secrets", f"nothing is given for {name}", fix)
    for name, contents in given.items():
        path = f"{where}[{name}]"
        if name not in names:
            wrong = "has no effect, since no team has a Secret of that name"
            yield NO_EFFECT.at(path, wrong, instead(name, names, "Secrets of teams") if names else "remove it")
        for key, value in contents.items() if name in names and isinstance(contents, Mapping) else ():
            yield from syntax_problems(path, key, _secret_key)
            yield from _of_value(f"{path}[{key}]", value)


def _of_value(path: str, value: Any) -> Iterator[Problem]:
    if isinstance(value, bool) or not isinstance(value, str | int):
        yield PROGRAM.at(path, "is not text", "give text")
    elif value == "":
        yield PROGRAM.at(path, "is empty", "give what belongs there", "warning")
    elif isinstance(value, str) and _is_encoded(value):
        wrong = "is text in base64, which the Secret gets encoded once more"
        yield PROGRAM.at(path, wrong, "give the text itself", "warning")


def _is_encoded(value: str) -> bool:
    try:
        text = base64.b64decode(value, validate=True).decode("ascii")
    except ValueError:
        return False
    return len(value) >= _SHORTEST_ENCODED and text.translate({10: None, 13: None, 9: None}).isprintable()
