"""From text or plain data to a checked fleet.

In two phases: first the form of everything (`form`), then the rules (`check`), on what could be read. So one mistake
hides no other, and no rule judges what was not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from kueue_admission.kernel import suggest
from kueue_admission.kernel.form_rules import FORMER_NAME, WRONG_TYPE
from kueue_admission.kernel.messages import in_quotes, warn_in_program
from kueue_admission.kernel.problem import Problem, SpecError, errors_of
from kueue_admission.kernel.yaml_text import YamlDocument, load_document
from kueue_fleet.fleet_file.calendar_pools import fleet_at, fleet_opened
from kueue_fleet.fleet_file.charts import CHARTS_KEY, replaced_chart_problems
from kueue_fleet.fleet_file.check import check_scope
from kueue_fleet.fleet_file.check.dates import check_dates
from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.fleet_file.form import read_form
from kueue_fleet.fleet_file.former_names import as_written
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.quota_windows import fleet_in, quota_windows
from kueue_fleet.fleet_file.rules.files import NOT_A_FLEET, OTHER_PROJECT, PLAIN_SECRET, STRAY_SECTION, UNREAD_KEY
from kueue_fleet.fleet_file.rules.teams import QUOTA_WINDOW
from kueue_fleet.settings.windows import together

PULUMI_KEY: Final = "kueue-fleet:fleet"
"""Config key of a Pulumi.<env>.yaml that holds the fleet."""
PROJECT_KEY: Final = "gcp:project"
"""Config key of the project that Pulumi's own provider uses."""
TEAM_SECRETS_KEY: Final = "kueue-fleet:teamSecrets"
"""Config of what is in the Secrets of teams, by name and key; encrypted."""
REHEARSAL_KEY: Final = "kueue-fleet:rehearsal"
"""Config key of the section that only a rehearsal reads."""
KUBERNETES_KEY: Final = "kueue-fleet:kubernetesClusters"
"""Config key by which a rehearsal replaces how clusters that are not of GKE are reached."""
AS_PUBLISHED_KEY: Final = "kueue-fleet:asPublished"
"""Config key by which a rehearsal has the program only warn of what `read_fleet` calls `as_published`."""
_FLAGS: Final = frozenset({"true", "True", "false", "False"})
"""What Pulumi reads as a flag of the config."""
_STACK_KEYS: Final = frozenset({"config", "environment", "secretsprovider", "encryptionsalt", "encryptedkey"})


@dataclass(frozen=True, slots=True)
class Reading:
    """A fleet, None where a problem of it is an error, and every problem of the file, warnings too."""

    fleet: FleetSpec | None
    problems: tuple[Problem, ...]

    @property
    def former_names(self) -> list[Problem]:
        """The problems that a program would not learn from `check_fleet`."""
        return [problem for problem in self.problems if problem.rule == FORMER_NAME]

    def whole(self) -> FleetSpec:
        """The fleet. Raises SpecError, with every problem, where one of them is an error."""
        if self.fleet is None:
            raise SpecError(self.problems)
        return self.fleet


def read_fleet_text(text: str, source: str, now: datetime | None = None, *, as_published: bool = False) -> Reading:
    """The fleet in `text`, which came from `source`; problems have file and line, in the order of the lines.

    With `now`, the fleet is as it is then, and what is due by that day is among them. `as_published`: see `read_fleet`.
    """
    try:
        document = load_document(text, source)
        part = fleet_part(document)
    except SpecError as refused:
        return Reading(None, refused.problems)
    reading = read_fleet(part.data, now, as_published=as_published)
    problems = [*as_written(FleetSpec, reading.problems), *_other_project(document, part)]
    placed_problems = [
        replace(_as_written(problem, part), source=source, line=part.line_of(problem.path)) for problem in problems
    ]
    beside = [] if document is part else [*_beside_the_fleet(document)]
    fleet = None if errors_of([*problems, *beside]) else reading.fleet
    if document is not part:
        of_stack = [*beside, *_rehearsal(document), *_unknown_keys(document)]
        placed_problems += [
            replace(problem, source=source, line=document.line_of(problem.path)) for problem in of_stack
        ]
    placed_problems.sort(key=lambda problem: problem.line or 0)
    return Reading(fleet, tuple(placed_problems))


def _as_written(problem: Problem, part: YamlDocument) -> Problem:
    """With a number to put in quotes as the file has it: 007 is no text once it is read as 7, nor 0.20 as 0.2."""
    written = part.written_at(problem.path) if problem.rule is WRONG_TYPE else ""
    with suppress(ValueError):
        if problem.fix == in_quotes(str(float(written) if "." in written else int(written))):
            return replace(problem, fix=in_quotes(written))
    return problem


def read_fleet(data: Any, now: datetime | None = None, *, as_published: bool = False) -> Reading:
    """The fleet in `data`, plain data as YAML or JSON gives it; with `now`, as it is then, with what is due that day.

    Without it, pools of calendar reservations are closed unless the file says that they are active. `as_published`: the
    errors that the batch platform has as it is published are warnings, so that what they lead to can be simulated.
    """
    fleet, problems = read_form(FleetSpec, data)
    if fleet is not None:
        problems = _checked(fleet, data, problems, as_published=as_published)
    if fleet is None or errors_of(problems):
        return Reading(None, tuple(problems))
    opened_fleet = fleet_opened(fleet)
    if opened_fleet is not fleet:
        # What is wrong with it once its pools are open is said before that day.
        problems = _checked(opened_fleet, data, problems, as_published=as_published)
        if errors_of(problems):
            return Reading(None, tuple(problems))
    problems = _in_windows(opened_fleet, data, problems, as_published=as_published)
    if errors_of(problems):
        return Reading(None, tuple(problems))
    if now is None:
        return Reading(fleet, tuple(problems))
    return Reading(fleet_at(fleet, now), (*problems, *check_dates(fleet, now.date())))


def _checked(fleet: FleetSpec, data: Any, problems: Iterable[Problem], *, as_published: bool) -> list[Problem]:
    """These problems and those of the rules, in the order of the file."""
    scope = Scope(fleet, data)
    all_problems = [*problems, *check_scope(scope)]
    if as_published:
        all_problems = [problem.as_published() for problem in all_problems]
    return scope.in_file_order(dict.fromkeys(all_problems))


def _in_windows(fleet: FleetSpec, data: Any, problems: Iterable[Problem], *, as_published: bool) -> list[Problem]:
    """These problems, and what else is wrong with the quotas while windows are open."""
    known_problems = list(problems)
    once = dict.fromkeys(known_problems)
    for windows in together(quota_windows(fleet)):
        within = fleet_in(fleet, windows)
        scope = Scope(within, data)
        queues = (problem.at(scope.path(queue)) for queue in within.cluster_queues for problem in queue.own_problems())
        all_problems = [
            problem.as_published() if as_published else problem for problem in (*queues, *check_scope(scope))
        ]
        for problem in scope.in_file_order(dict.fromkeys(all_problems)):
            if problem not in once and problem.rule is not QUOTA_WINDOW:
                once[problem] = None
                known_problems.append(
                    replace(problem, wrong=f"while {' and '.join(sorted(windows))} is open: {problem.wrong}")
                )
    return known_problems


def read_with_errors(data: Any) -> FleetSpec:
    """The fleet in `data`, whatever the rules say of it. Raises SpecError where its form is wrong."""
    fleet, problems = read_form(FleetSpec, data)
    if fleet is None or errors_of(problems):
        raise SpecError(problems)
    return fleet


def parse_fleet_text(text: str, source: str = "<text>") -> FleetSpec:
    """The fleet in `text`, which came from `source` (for messages). Raises SpecError with all problems."""
    given: object = text
    if not isinstance(given, str):
        raise SpecError([WRONG_TYPE.at("", f"{suggest.with_article(type(given).__name__)} is given", "give text")])
    reading = read_fleet_text(text, source)
    warn_in_program(reading.former_names)
    return reading.whole()


def parse_fleet(data: Any, *, as_published: bool = False) -> FleetSpec:
    """The fleet in `data`, plain data as YAML or JSON gives it. Raises SpecError with all problems."""
    reading = read_fleet(data, as_published=as_published)
    warn_in_program(reading.former_names)
    return reading.whole()


def as_stack(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a stack file would hold that has the fleet of `data`, the content of a stack file or of a valid fleet's own.

    For a fleet's own it has an encrypted value in each Secret of a team.
    """
    if _STACK_KEYS.intersection(data):
        return dict(data)
    names = [name for team in data.get("teams") or () for name in team.get("secrets") or ()]
    secrets = {TEAM_SECRETS_KEY: {name: {"token": {"secure": ""}} for name in names}} if names else {}
    return {"config": {PROJECT_KEY: data.get("project"), PULUMI_KEY: dict(data), **secrets}}


def fleet_part(document: YamlDocument) -> YamlDocument:
    """The fleet's part of a document: the whole of it, or its config value if it is a Pulumi stack file.

    Raises SpecError where there is none.
    """
    data = document.data
    if data is None:
        raise _not_a_fleet(document, "is empty", "write a fleet: name, project and clusters to begin with")
    if not isinstance(data, Mapping):
        kind = "a list" if isinstance(data, list) else "a single value"
        raise _not_a_fleet(document, f"holds {kind}, not a map of fields", "begin with name:, project:, clusters:")
    if {"apiVersion", "kind"} <= set(data):
        wrong = f"holds a Kubernetes object, a {data['kind']}"
        raise _not_a_fleet(document, wrong, "write a fleet, which holds the fields of its spec")
    if PULUMI_KEY in data:
        raise _not_a_fleet(document, "is not in config", "write it below config:", PULUMI_KEY)
    for key, value in data.items():
        if isinstance(value, Mapping) and PULUMI_KEY in value and key != "config":
            raise _not_a_fleet(document, f"holds {PULUMI_KEY}, but is not config", "rename it to config", str(key))
    if not _STACK_KEYS.intersection(data):
        if "jobs" in data and not {"name", "clusters"} & set(data):
            raise _not_a_fleet(document, "is a workload file", "give it with --workload, and a fleet here")
        return document
    config = data.get("config")
    if not isinstance(config, Mapping) or PULUMI_KEY not in config:
        near = suggest.nearest(PULUMI_KEY, map(str, config)) if isinstance(config, Mapping) else None
        raise _not_a_fleet(
            document,
            f"has no {PULUMI_KEY}" + (f", but {near}" if near else ""),
            f"rename it to {PULUMI_KEY}" if near else f"add {PULUMI_KEY}: and the fleet below it",
            "config",
            line=document.line_of(f"config.{near or ''}"),
        )
    fleet, path = config[PULUMI_KEY], f"config.{PULUMI_KEY}"
    if isinstance(fleet, Mapping) and set(fleet) == {"secure"}:
        raise _not_a_fleet(document, "is encrypted", "write it plainly: a fleet holds no secrets", path)
    if not isinstance(fleet, Mapping):
        raise _not_a_fleet(document, "is not a map of fields", "write name:, project:, clusters: below it", path)
    return document.below("config", PULUMI_KEY)


def _not_a_fleet(document: YamlDocument, wrong: str, fix: str, path: str = "", line: int | None = None) -> SpecError:
    at = line if line is not None or not path else document.line_of(path)
    return SpecError([NOT_A_FLEET.at(path, wrong, fix, source=document.source, line=at)])


def _other_project(document: YamlDocument, fleet: YamlDocument) -> Iterator[Problem]:
    """The stack's own project, where it has one, is the fleet's."""
    if document is fleet:
        return
    of_stack, project = document.data["config"].get(PROJECT_KEY), fleet.data.get("project")
    if isinstance(of_stack, str) and isinstance(project, str) and of_stack != project:
        yield OTHER_PROJECT.at(
            "project", f"{project}, but {PROJECT_KEY} of the stack is {of_stack}", "write the same project in both"
        )


def _rehearsal(document: YamlDocument) -> Iterator[Problem]:
    """The section of the stack that only a rehearsal reads."""
    config = document.data["config"]
    if config.get(REHEARSAL_KEY) is not None:
        from kueue_fleet.fleet_file.model.rehearsal_section import read_rehearsal_section  # Few files have the section.

        for problem in read_rehearsal_section(config[REHEARSAL_KEY])[1]:
            yield problem.at(f"config.{REHEARSAL_KEY}")


def _beside_the_fleet(document: YamlDocument) -> Iterator[Problem]:
    """What stands beside the fleet: sections of it, which nothing would read, and values that a program refuses."""
    sections = {field.alias or name for name, field in FleetSpec.model_fields.items()}
    config: Mapping[Any, Any] = document.data["config"]
    for key, path in (*((key, str(key)) for key in document.data), *((key, f"config.{key}") for key in config)):
        section = str(key).removeprefix(PULUMI_KEY.partition(":")[0] + ":")
        if section in sections:
            yield STRAY_SECTION.at(
                path, "stands beside the fleet, where nothing reads it", f"write {section}: below {PULUMI_KEY}:"
            )

    yield from _plain_secrets(config.get(TEAM_SECRETS_KEY), f"config.{TEAM_SECRETS_KEY}")
    if config.get(CHARTS_KEY) is not None:
        yield from (problem.at("config") for problem in replaced_chart_problems(config[CHARTS_KEY]))
    if str(config.get(AS_PUBLISHED_KEY, False)) not in _FLAGS:
        yield WRONG_TYPE.at(f"config.{AS_PUBLISHED_KEY}", "is neither true nor false", "write true or false")


def _plain_secrets(value: Any, path: str) -> Iterator[Problem]:
    """Secrets of teams that everybody reads who reads the file; no message has them."""
    if isinstance(value, Mapping) and set(value) != {"secure"}:
        for key, item in value.items():
            yield from _plain_secrets(item, f"{path}.{key}")
    elif value is not None and not isinstance(value, Mapping):
        yield PLAIN_SECRET.at(
            path,
            "is in plain text, and so is every secret in it",
            f"run pulumi config set --secret --path '{TEAM_SECRETS_KEY}.NAME.KEY', and replace the secret",
        )


def _unknown_keys(document: YamlDocument) -> Iterator[Problem]:
    """Config keys that look like one of this project's, but are not."""
    prefix = PULUMI_KEY.partition(":")[0] + ":"
    known_keys = [
        key.removeprefix(prefix) for key in (PULUMI_KEY, REHEARSAL_KEY, CHARTS_KEY, KUBERNETES_KEY, AS_PUBLISHED_KEY)
    ]
    for key in map(str, document.data["config"]):
        near = suggest.nearest(key.removeprefix(prefix), known_keys)
        if key.startswith(prefix) and near is not None and key != prefix + near:
            yield UNREAD_KEY.at(f"config.{key}", "is not read by anything", f"did you mean {prefix}{near}?")
