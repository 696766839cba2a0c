"""Texts that no option means, given to every option and argument of every command: each ends with a plain message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.cli.in_process import GROUP, Command, Ended, commands_below

from drawn import some_of
from kueue_rehearsal.session import Session

FLEET: Final = """
name: f
project: my-project
clusters: [{name: c, role: standalone, region: us-east4}]
flavors: [{name: l4, nodeLabels: {cloud.google.com/gke-accelerator: nvidia-l4}}]
clusterQueues:
  - name: q
    namespaceSelector: {}
    resourceGroups:
      - coveredResources: [nvidia.com/gpu]
        flavors: [{name: l4, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
teams: [{name: a, localQueues: [{name: q, clusterQueue: q}]}]
"""
STACK: Final = yaml.safe_dump({"config": {"kueue-fleet:fleet": yaml.safe_load(FLEET)}})
JOBS: Final = 'jobs: [{name: train, queue: q, namespace: a, requests: {nvidia.com/gpu: "1"}, runSeconds: 60}]\n'
QUEUES: Final = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: f}\n"

GOOD: Final = {
    "init": "--project my-project --region us-central1 --yes --force -C made",
    "check": "",
    "schema": "",
    "render": "",
    "rehearse run": "--no-jobs",
    "rehearse up": "--no-jobs",
    "rehearse down": "",
    "rehearse drill": "--fault kueue-restarted",
    "rehearse reclaim-spot": "",
    "simulate fleet": "-w jobs.yaml",
    "simulate objects": "",
    "explain": "--stack fleet.yaml -w jobs.yaml --second 5",
    "controller": "--config fleet.yaml --workers folder",
    "import": "--name x --project my-project --region us-central1 --mode Autopilot --default-kueue",
    "diff": "",
    "cost": "",
    "upgrade": "--to 0.19.2",
    "preflight": "",
    "status": "--kubeconfig nofile",
    "top": "--kubeconfig nofile",
    "submit": "--fleet fleet.yaml -q q --image i --dry-run",
    "when": "--job train --objects queues.yaml",
    "record": "--store store --from jobs.csv",
    "replay": "--store store",
    "evidence": "--store store --from 2026-11-01 --to 2026-12-01",
    "plan": "--store store --may-change clusterQueues[q].resourceGroups[0].flavors[l4].resources[0].nominalQuota=0..4",
    **dict.fromkeys(("describe", "logs", "exec", "cancel", "rotate"), "--kubeconfig nofile"),
}
"""Options of each command that are right, and end it soon."""
ARGUMENTS: Final = {
    "init": ["x"],
    "check": ["fleet.yaml"],
    "render": ["fleet.yaml"],
    **{f"rehearse {how}": ["good"] for how in ("run", "up", "down", "drill")},
    "rehearse reclaim-spot": ["solo", "good"],
    "simulate fleet": ["fleet.yaml"],
    "simulate objects": ["queues.yaml"],
    "explain": ["train"],
    "import": ["a=queues.yaml"],
    "diff": ["fleet.yaml", "fleet.yaml"],
    "cost": ["fleet.yaml"],
    "upgrade": ["fleet.yaml"],
    "preflight": ["fleet.yaml"],
    "status": ["fleet.yaml"],
    "top": ["fleet.yaml"],
    **{key: ["train"] for key in ("describe", "logs", "cancel")},
    "exec": ["train", "ls"],
    "submit": ["true"],
    "when": ["fleet.yaml"],
    "rotate": ["fleet.yaml"],
    "record": ["fleet.yaml"],
    "replay": ["fleet.yaml"],
    "evidence": ["fleet.yaml"],
    "plan": ["fleet.yaml"],
}

TEXTS: Final = (
    *("", "-", "--", "a=", "=a", "a=b=c", ",", ":", "~", "*", "[", "{}", "%s", "a b", "a\nb"),
    *(".", "a/b", "../../x", "/dev/null", "/nowhere/x", "x" * 5000),
    *("\x1b[31m", "\u202e", "\udcff", "[/us-east4-a]"),
    *("0", "-1", "1.5", "1e999", "nan", "inf", "9" * 5000, "٣", "²"),
    *("exponential(", "exponential(-1)", "uniform(2,1)", "decision=-1", "decision=1e400", "q=nan"),
    *("2026-13-45", "9999-12-31", "x:99999999", "c=0", "c/x=1"),
    *("jobs[", "a[b].c=1", "clusterQueues[q]=1", "clusterQueues[q].x=1", "teams[0]=", "jobs[train].count=1e30"),
    "jobs[train].count=99999999999999999999",
    "jobs[train].runSeconds=.inf",
)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("fleet.yaml", "Pulumi.good.yaml"):
        Path(name).write_text(FLEET if name == "fleet.yaml" else STACK)
    for name, text in (("Pulumi.yaml", "name: p\nruntime: python\n"), ("jobs.yaml", JOBS), ("queues.yaml", QUEUES)):
        Path(name).write_text(text)
    Path("jobs.csv").write_text("submitted,queue,gpus,runSeconds\n0,a/q,1,60\n")
    Path("folder").mkdir()
    monkeypatch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    return Command(monkeypatch, capsys)


class BeginsError(Exception):
    """What a rehearsal of something that is right begins with."""


def _begins(session: Session, say: object, operators: object) -> None:
    raise BeginsError


def places() -> Iterator[tuple[str, str, int]]:
    """Every option and argument of every command that takes a text: a number for arguments."""
    for name, result in commands_below(GROUP):
        arguments = 0
        for parameter in result.params:
            if parameter.param_type_name == "argument":
                yield name, "", arguments
                arguments += 1
            elif not parameter.is_flag:
                yield name, parameter.opts[0], -1


@pytest.mark.parametrize(
    ("name", "option", "number"), [pytest.param(*each, id=" ".join(each[:2])) for each in places()]
)
def test_what_a_wrong_text_is_answered(
    name: str, option: str, number: int, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "prepare_engines", _begins)
    wrong = []
    for text in some_of(TEXTS, f"{name} {option}"):
        arguments = list(ARGUMENTS.get(name, []))
        if not option:
            arguments[number] = text
        try:
            given = [f"{option}={text}"] if option else []
            ended = command([*name.split(), *_others(name, option), *given, "--", *arguments])
        except BeginsError:
            continue
        wrong += [f"{text[:40]!r}: {problem}" for problem in _wrong_about(ended)]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def _others(name: str, option: str) -> list[str]:
    """The words of the good options of a command, without this option."""
    parameters = dict(commands_below(GROUP))[name].params
    spellings: list[str] = next((item.opts for item in parameters if option in item.opts), [])
    words = GOOD[name].split()
    at = next((number for number, word in enumerate(words) if word in spellings), None)
    return words if at is None else words[:at] + words[at + 2 :]


def _takes_one(parameter: Any) -> bool:
    return parameter.param_type_name == "option" and not parameter.multiple and not parameter.is_flag


@pytest.mark.parametrize("name", [name for name, _ in commands_below(GROUP)])
def test_an_option_with_one_value_is_given_once(name: str, command: Command) -> None:
    options = [item.opts for item in dict(commands_below(GROUP))[name].params if _takes_one(item)]
    answers = [command([*name.split(), f"{opts[0]}=a", f"{opts[-1]}=b"]) for opts in options]
    assert [(ended.code, "is given 2 times; give it once" in ended.err) for ended in answers] == [
        (2, True) for _ in options
    ]


@pytest.mark.parametrize("name", [name for name, _ in commands_below(GROUP)])
def test_the_next_option_is_not_taken_as_a_value(name: str, command: Command) -> None:
    options = [parameter.opts for parameter in dict(commands_below(GROUP))[name].params if _takes_one(parameter)]
    answers = [command([*name.split(), opts[0], "--yes"]) for opts in options]
    assert [(ended.code, "has no value before --yes; give one" in ended.err) for ended in answers] == [
        (2, True) for _ in options
    ]


def test_a_mistyped_option_names_the_help_of_its_command(command: Command) -> None:
    ended = command(["init", "lab", "--kubernetes"])
    assert ended.err == "error: init: Option '--kubernetes' requires an argument; see kueue-fleet init --help\n"


def _wrong_about(ended: Ended) -> Iterator[str]:
    if not (ended.out + ended.err).replace("\n", "").isprintable():
        yield f"prints what acts on a terminal: {ended!r:.300}"
    if ended.code == 0:
        return
    if ended.code not in (1, 2, 3):
        yield f"exit code {ended.code}"
    if not ended.err.startswith(("error: ", "warning: ")) or "; " not in ended.err:
        yield f"does not say what to do: {ended.err[:300]}"
    if result := re.search(r"Traceback|NoneType|<class|pydantic|Errno|\b(dict|str|int)\b", ended.err):
        yield f"has {result[0]}: {ended.err[:300]}"
