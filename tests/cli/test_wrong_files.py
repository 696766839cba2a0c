"""A hundred files that no command can use, given to every command that reads one: each says so, plainly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from tests.cli.in_process import Command, Ended
from tests.cli.wrong_files import ALL, NOT_TEXT, NOT_YAML

from drawn import some_of
from kueue_fleet.cli import COMMANDS
from kueue_rehearsal.session import Session

JOBS: Final = "jobs: [{name: train, queue: gpu, namespace: team-a, requests: {nvidia.com/gpu: 1}, runSeconds: 60}]\n"
QUEUES: Final = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: f}\n"
IDENTITY: Final = "--name x --project my-project --region us-central1 --default-kueue"

CALLS: Final = (
    "check {file}",
    "check -",
    "render {file}",
    "rehearse run wrong",
    "rehearse up good --project project",
    "rehearse up good --jobs {file}",
    "simulate fleet {file} -w jobs.yaml",
    "simulate fleet fleet.yaml -w {file}",
    "simulate fleet fleet.yaml --jobs {file}",
    "simulate objects folder",
    "simulate objects {json}",
    "simulate fleet fleet.yaml -w jobs.yaml --prices {file}",
    "explain train --objects {file}",
    "explain train --objects - --second 1",
    "explain train --stack {file} -w jobs.yaml --second 1",
    "explain train --stack fleet.yaml -w {file} --second 1",
    "diff {file} fleet.yaml",
    "diff fleet.yaml {file}",
    "diff fleet.yaml fleet.yaml -w {file}",
    "cost {file}",
    "upgrade {file} --to 0.19.2",
    "upgrade fleet.yaml --to 0.20.0 --objects {file}",
    "preflight {file}",
    "cost fleet.yaml --prices {file}",
    "cost fleet.yaml --store {file}",
    f"import a={{file}} {IDENTITY}",
    f"import a=queues.yaml --node-pools a={{file}} {IDENTITY}",
    "status --page {file}",
    "status --page fleet.yaml --kubeconfig {file}",
    "status --page fleet.yaml --prices {file}",
    "status --page fleet.yaml --store {file}",
    "status {file}",
    "status fleet.yaml --kubeconfig {file}",
    "status fleet.yaml --prices {file}",
    "status fleet.yaml --store {file}",
    "status --usage {file}",
    "status --usage fleet.yaml --kubeconfig {file}",
    "status --usage fleet.yaml --prices {file}",
    "status --usage fleet.yaml --store {file}",
    *(f"{name} --kubeconfig {{file}} --context c" for name in ("describe x", "logs x", "exec x ls", "cancel x")),
    "when {file} --job x --objects folder",
    "when regions.yaml --job x --objects {file}",
    "when regions.yaml --job x --kubeconfig {file}",
    "when regions.yaml -f {file} --objects folder",
    "when regions.yaml --job x --objects folder -w {file}",
    "submit --fleet {file} -q gpu --image i --dry-run",
    "submit --fleet regions.yaml -f {file} --dry-run",
    "submit --fleet regions.yaml -q team-vision/gpu --image i --gpus 1 --no-estimate --kubeconfig {file}",
    "record {file} --store history --once",
    "record regions.yaml --store history --from {file}",
    "record regions.yaml --store history --once --kubeconfig {file}",
    "replay {file} --store history",
    "replay regions.yaml --store {file}",
    "evidence {file} --store history --from 2026-11-01 --to 2026-12-01",
    "evidence regions.yaml --store {file} --from 2026-11-01 --to 2026-12-01 --team team-vision",
    "plan {file} --store history --may-change a=0..1",
    "plan regions.yaml --store history --may-change a=0..1 --prices {file}",
    "rotate {file}",
    "rotate regions.yaml --kubeconfig {file}",
    "controller --config {file} --workers folder",
)
"""Every place of a command line that names a file which is read, with what comes from standard input."""

WITHOUT_FILES: Final = {"schema", "init"}

USABLE: Final = {
    ("a pod", "simulate objects"),
    ("a pod", "import a={file}"),
    ("spec of text", "import a={file}"),
    ("a pod template of text", "import a={file}"),
    ("a job set without jobs", "import a={file}"),
    ("a Pulumi project", "rehearse up good --project"),
    ("metadata of text", "upgrade fleet.yaml"),
    ("a queue of text", "upgrade fleet.yaml"),
    ("an empty kubeconfig", "upgrade fleet.yaml"),
    ("an empty kubeconfig", "import a={file}"),
}
"""Files that are right, or not looked at so closely, for one of the calls."""

OF_PROGRAMMERS: Final = re.compile(
    r"Traceback|[a-z]Error\b|Exception|NoneType|<class|object at 0x|\b(dict|str|int|pydantic)\b|line \d+, column"
)
"""What no message has in it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("wrong_files")
    fleet = {
        "name": "f",
        "project": "my-project",
        "clusters": [{"name": "c", "role": "standalone", "region": "us-east4"}],
    }
    (result / "fleet.yaml").write_text(yaml.safe_dump(fleet))
    regions = (Path(__file__).parents[2] / "stacks/Pulumi.dws-multikueue.yaml").read_text()
    (result / "regions.yaml").write_text(yaml.safe_dump(yaml.safe_load(regions)["config"]["kueue-fleet:fleet"]))
    (result / "Pulumi.good.yaml").write_text(yaml.safe_dump({"config": {"kueue-fleet:fleet": fleet}}))
    (result / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (result / "jobs.yaml").write_text(JOBS)
    (result / "queues.yaml").write_text(QUEUES)
    for name in ("project", "folder"):
        (result / name).mkdir()
    (result / "project" / "Pulumi.good.yaml").write_text("")
    return result


def _begins(session: Session, say: object, operators: object) -> None:
    raise AssertionError(f"a rehearsal of {session.stack} begins")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Command:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(Session, "prepare_engines", _begins)
    monkeypatch.setenv("KUEUE_FLEET_STATE_DIR", str(folder / "state"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    return Command(monkeypatch, capsys)


def test_every_command_that_reads_a_file_is_called() -> None:
    assert {call.split()[0] for call in CALLS} == {
        name for name, item in COMMANDS.items() if not item.instead
    } - WITHOUT_FILES
    assert len(ALL) >= 100


@pytest.mark.parametrize("name", ALL)
def test_what_a_wrong_file_is_answered(name: str, command: Command, folder: Path) -> None:
    data = ALL[name]
    for place in ("wrong.yaml", "wrong.json", "Pulumi.wrong.yaml", "project/Pulumi.yaml", "folder/wrong.yaml"):
        (folder / place).write_bytes(data)
    wrong = [
        f"{call}: {problem}"
        for call in some_of(CALLS, name)
        if not any(name == usable and call.startswith(start) for usable, start in USABLE)
        for problem in _wrong_about(command(call.format(file="wrong.yaml", json="wrong.json"), data), name)
    ]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def _wrong_about(ended: Ended, name: str) -> Iterator[str]:
    if ended.code != 1:
        yield f"exit code {ended.code}, {ended.out[-200:]}{ended.err[-200:]}"
    if ended.out:
        yield f"prints {ended.out[:200]}"
    first, *more = ended.err.splitlines() or [""]
    listed = first.endswith(":") and more
    told = [line.removeprefix("  ") for line in more] if listed else [first, *more]
    for line in told:
        if "; " not in line and not re.fullmatch(r"and \d+ more", line):
            yield f"does not say what to do: {line[:200]}"
    if not first.startswith("error: "):
        yield f"begins with {first[:200]}"
    place = r"wrong\.(yaml|json)|folder|<stdin>|project/Pulumi\.yaml|^  a(\[|\.nodePools|\.ClusterQueue a: )"
    if not re.search(place + (r":\d+: " if name in NOT_YAML and "json" not in first else ""), ended.err, re.MULTILINE):
        yield f"does not name the place: {first[:200]}"
    if name not in NOT_TEXT and (result := OF_PROGRAMMERS.search(ended.err)):
        yield f"has {result[0]}: {ended.err[:300]}"
    if not ended.err.replace("\n", "").isprintable() or len(ended.err) > 25_000 or max(map(len, told)) > 2000:
        yield f"is not fit to be shown: {ended.err[:200]!r}"
