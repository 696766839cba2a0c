import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml

from kueue_rehearsal import pulumi_cli
from kueue_rehearsal.paths import RehearsalError, RehearsalPaths
from kueue_rehearsal.processes.ends import still_running
from kueue_rehearsal.pulumi_cli import (
    PATCH_FORCE,
    PulumiError,
    PulumiProject,
    PulumiRun,
    end_pulumi,
    make_pulumi_home,
    pulumi_environment,
)
from kueue_rehearsal.pulumi_events import Operation, PulumiEvent, summarize_diagnostics
from process_ends import gone

STACK_URN = "urn:pulumi:dev::kueue-fleet::pulumi:pulumi:Stack::kueue-fleet-dev"
QUEUE_TYPE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
QUEUE_URN = f"urn:pulumi:dev::kueue-fleet::kueue-fleet:index:Fleet${QUEUE_TYPE}::worker/dws"


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what a run that has ended left behind."""
    monkeypatch.setattr(pulumi_cli, "_END_SECONDS", 0.2)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A Pulumi project of a user."""
    folder = tmp_path / "source"
    (folder / "stacks").mkdir(parents=True)
    project = {"name": "kueue-fleet", "runtime": "python", "main": "stacks/", "stackConfigDir": "stacks"}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    (folder / "stacks" / "Pulumi.dev.yaml").write_text("config:\n  gcp:project: mine\n")
    return folder


@pytest.fixture
def paths(tmp_path: Path) -> RehearsalPaths:
    root = tmp_path / "state"
    root.mkdir()
    return RehearsalPaths(root)


def script(folder: Path, text: str) -> Path:
    """An executable that plays pulumi."""
    file = folder / "pulumi"
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(0o755)
    return file


def test_the_copy_runs_the_users_program_with_the_overrides(source: Path, paths: RehearsalPaths) -> None:
    PulumiProject("dev", paths).write(source, {"kueue-fleet:charts": {"kueue": "/charts/kueue"}})
    project = yaml.safe_load((paths.project / "Pulumi.yaml").read_text())
    settings = yaml.safe_load((paths.project / "Pulumi.dev.yaml").read_text())
    assert project["main"] == str(source / "stacks")
    assert "stackConfigDir" not in project
    assert project["runtime"] == {"name": "python", "options": {"toolchain": "pip", "virtualenv": sys.prefix}}
    assert settings == {"config": {"gcp:project": "mine", "kueue-fleet:charts": {"kueue": "/charts/kueue"}}}


def test_a_fleets_own_file_is_the_stack(source: Path, paths: RehearsalPaths) -> None:
    file = source / "fleet.yaml"
    file.write_text("{name: lab, project: theirs}")
    PulumiProject("fleet", paths, file).write(source, {"kueue-fleet:asPublished": True})
    settings = yaml.safe_load((paths.project / "Pulumi.fleet.yaml").read_text())
    fleet = {"name": "lab", "project": "theirs"}
    assert settings == {
        "config": {"gcp:project": "theirs", "kueue-fleet:fleet": fleet, "kueue-fleet:asPublished": True}
    }


def test_writing_again_keeps_the_salt_that_pulumi_wrote_and_never_touches_the_users_file(
    source: Path, paths: RehearsalPaths
) -> None:
    project = PulumiProject("dev", paths)
    project.write(source, {})
    copied = paths.project / "Pulumi.dev.yaml"
    copied.write_text("encryptionsalt: v1:abc\n" + copied.read_text())
    (source / "stacks" / "Pulumi.dev.yaml").write_text("config:\n  gcp:project: other\n")
    project.write(source, {})
    assert yaml.safe_load(copied.read_text()) == {"encryptionsalt": "v1:abc", "config": {"gcp:project": "other"}}
    assert "encryptionsalt" not in (source / "stacks" / "Pulumi.dev.yaml").read_text()


def test_what_is_encrypted_needs_no_key_in_a_rehearsal(source: Path, paths: RehearsalPaths) -> None:
    secret = {"config": {"kueue-fleet:teamSecrets": {"hub": {"token": {"secure": "v1:abc:def"}}}, "other": 1}}
    theirs = {"encryptionsalt": "v1:theirs", "secretsprovider": "gcpkms://key", **secret}
    (source / "stacks" / "Pulumi.dev.yaml").write_text(yaml.safe_dump(theirs))
    PulumiProject("dev", paths).write(source, {})
    settings = yaml.safe_load((paths.project / "Pulumi.dev.yaml").read_text())
    assert settings == {
        "config": {"kueue-fleet:teamSecrets": {"hub": {"token": "not-in-a-rehearsal"}}, "other": 1},
    }


def test_secrets_of_a_fleets_own_file_have_a_placeholder(source: Path, paths: RehearsalPaths) -> None:
    file = source / "fleet.yaml"
    file.write_text("{name: lab, project: theirs, teams: [{name: a, secrets: [hub]}, {name: b}]}")
    PulumiProject("fleet", paths, file).write(source, {})
    config = yaml.safe_load((paths.project / "Pulumi.fleet.yaml").read_text())["config"]
    assert config["kueue-fleet:teamSecrets"] == {"hub": {"token": "not-in-a-rehearsal"}}


def test_an_unknown_stack_names_the_known_ones(source: Path, paths: RehearsalPaths) -> None:
    with pytest.raises(RehearsalError, match=r"^stack prod: there is no .*/Pulumi\.prod\.yaml; use one of .*: dev$"):
        PulumiProject("prod", paths).stack_file(source)


def test_a_folder_without_project_is_refused(tmp_path: Path, paths: RehearsalPaths) -> None:
    with pytest.raises(RehearsalError, match=r"Pulumi\.yaml: no such file; run this in a Pulumi project"):
        PulumiProject("dev", paths).stack_file(tmp_path)


def test_nothing_of_the_users_accounts_reaches_pulumi(paths: RehearsalPaths) -> None:
    users = {
        "PATH": "/usr/bin",
        "HOME": "/home/me",
        "KUBECONFIG": "/home/me/.kube/config",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
        "CLOUDSDK_CONFIG": "/home/me/gcloud",
        "PULUMI_ACCESS_TOKEN": "secret",
        "PULUMI_BACKEND_URL": "https://api.pulumi.com",
        "HELM_KUBECONTEXT": "production",
    }
    environment = pulumi_environment(paths, users, [Path("/lab/bin")], {"EXTRA": "1"})
    assert set(environment) & set(users) == {"PATH", "HOME", "KUBECONFIG", "PULUMI_BACKEND_URL"}
    assert environment["KUBECONFIG"] == "/dev/null"
    assert pulumi_environment(paths, {PATCH_FORCE: "true"}, [], {})[PATCH_FORCE] == "true"
    assert environment["PULUMI_BACKEND_URL"] == f"file://{paths.pulumi_backend}"
    assert environment["PATH"] == "/lab/bin:/usr/bin"
    assert environment["EXTRA"] == "1"


def test_pulumi_has_no_folder_for_debug_logs_and_one_that_is_there_stays(tmp_path: Path) -> None:
    for _ in range(2):
        assert make_pulumi_home(tmp_path / "new" / "home") == tmp_path / "new" / "home"
    with pytest.raises(FileExistsError):
        (tmp_path / "new" / "home" / "logs").mkdir(exist_ok=True)
    (tmp_path / "logs").mkdir()
    make_pulumi_home(tmp_path)
    assert (tmp_path / "logs").is_dir()


def test_the_passphrase_is_made_once_and_is_the_owners_alone(paths: RehearsalPaths) -> None:
    pulumi_environment(paths, {}, [], {})
    first = paths.passphrase.read_text()
    pulumi_environment(paths, {}, [], {})
    assert paths.passphrase.read_text() == first
    assert len(first) >= 32
    assert paths.passphrase.stat().st_mode & 0o777 == 0o600


def begin(source: Path, paths: RehearsalPaths, text: str) -> PulumiRun:
    project = PulumiProject("dev", paths)
    project.write(source, {})
    project.use(script(source, text), dict(os.environ))
    return project.up()


def test_events_are_given_as_they_happen_and_the_summary_stays(source: Path, paths: RehearsalPaths) -> None:
    events = [
        {"resourcePreEvent": {"metadata": {"op": "create", "urn": QUEUE_URN}}},
        {"resOutputsEvent": {"metadata": {"op": "create", "urn": QUEUE_URN}}},
        {"summaryEvent": {"resourceChanges": {"create": 1, "same": 2}}},
    ]
    lines = "\n".join(json.dumps(event) for event in events)
    run = begin(
        source, paths, f"""for a in "$@"; do case $a in --event-log=*) cat >"${{a#*=}}" <<'X'\n{lines}\nX\nesac; done"""
    )
    assert list(run) == [
        PulumiEvent("create", QUEUE_TYPE, "worker/dws", done=False),
        PulumiEvent("create", QUEUE_TYPE, "worker/dws", done=True),
    ]
    assert run.result.changes == {"create": 1, "same": 2}
    assert not run.result.unchanged


def test_a_failure_gives_pulumis_own_diagnostics_without_markup(source: Path, paths: RehearsalPaths) -> None:
    event = {
        "diagnosticEvent": {"severity": "error", "urn": QUEUE_URN, "message": "<{%fg 1%}>error: <{%reset%}>refused\n"}
    }
    run = begin(
        source,
        paths,
        f"""for a in "$@"; do case $a in --event-log=*) echo '{json.dumps(event)}' >"${{a#*=}}";; esac; done; exit 3""",
    )
    with pytest.raises(PulumiError) as failure:
        list(run)
    assert str(failure.value) == (
        f"pulumi up failed:\n{QUEUE_TYPE} worker/dws: refused\n(its whole output is in {run.log})"
    )


def test_a_failure_names_the_pods_that_are_not_ready(source: Path, paths: RehearsalPaths) -> None:
    project = PulumiProject("dev", paths)
    project.write(source, {})
    project.use(script(source, "echo timed out; exit 1"), dict(os.environ), lambda: ["batch: kuberay"])
    with pytest.raises(PulumiError, match=r"^pulumi up failed:\ntimed out\nnot ready: batch: kuberay\n"):
        list(project.up())


def test_helms_own_time_limit_says_what_to_do(source: Path, paths: RehearsalPaths) -> None:
    with pytest.raises(PulumiError, match="Helm waits 60 s until the API server knows a chart's CRDs"):
        list(begin(source, paths, "echo 'Release batch/kuberay: context deadline exceeded'; exit 1"))


def test_a_failure_without_events_gives_the_end_of_the_output(source: Path, paths: RehearsalPaths) -> None:
    run = begin(source, paths, "echo 'error: no such backend'; exit 255")
    with pytest.raises(PulumiError, match=r"^pulumi up failed:\nerror: no such backend\n"):
        list(run)


def test_a_locked_state_says_what_to_do(source: Path, paths: RehearsalPaths) -> None:
    run = begin(source, paths, "echo 'error: the stack is currently locked by 1 lock(s). Either wait'; exit 255")
    with pytest.raises(
        PulumiError, match=r"^pulumi up: the stack's state is locked by another Pulumi run; wait for it"
    ):
        list(run)


def test_an_interrupted_run_has_ended(source: Path, paths: RehearsalPaths) -> None:
    run = begin(source, paths, "trap 'exit 1' TERM; sleep 30 & wait")
    run.interrupt()
    with pytest.raises(PulumiError):
        list(run)


def test_a_watch_is_told_what_is_under_way_and_may_have_the_run_ended(source: Path, paths: RehearsalPaths) -> None:
    status = {"urn": QUEUE_URN, "severity": "info", "message": "waits for Active\n", "ephemeral": True}
    events = [
        {"resourcePreEvent": {"metadata": {"op": "create", "urn": STACK_URN}}},
        {"diagnosticEvent": status},
        {"resourcePreEvent": {"metadata": {"op": "create", "urn": f"{QUEUE_URN}-made", "new": {"inputs": {}}}}},
        {"resourcePreEvent": {"metadata": {"op": "create", "urn": QUEUE_URN, "new": {"inputs": {"kind": "Queue"}}}}},
        {"diagnosticEvent": status},
        {"resourcePreEvent": {"metadata": {"op": "delete", "urn": f"{QUEUE_URN}-failed", "new": None}}},
        {"resOutputsEvent": {"metadata": {"op": "create", "urn": f"{QUEUE_URN}-made"}}},
        {"resOpFailedEvent": {"metadata": {"op": "delete", "urn": f"{QUEUE_URN}-failed"}}},
    ]
    lines = "\n".join(json.dumps(event) for event in events)
    project = PulumiProject("dev", paths)
    project.write(source, {})
    text = f"""for a in "$@"; do case $a in --event-log=*) cat >"${{a#*=}}" <<'X'\n{lines}\nX\nesac; done"""
    project.use(script(source, f"{text}\ntrap 'exit 1' TERM; sleep 30 & wait"), dict(os.environ))
    seen: list[tuple[str, str, str, object, str]] = []

    def watch(under_way: Collection[Operation]) -> None:
        seen.extend((one.op, one.type, one.name, one.inputs, one.status) for one in under_way)
        if seen:
            raise RehearsalError("it waits in vain")

    began = time.monotonic()
    with pytest.raises(RehearsalError, match=r"^it waits in vain$"), project.up(watch) as run:
        list(run)
    assert seen == [("create", QUEUE_TYPE, "worker/dws", {"kind": "Queue"}, "waits for Active")]
    assert time.monotonic() - began < 20
    with pytest.raises(PulumiError):
        list(run)  # it has ended


def test_the_urn_of_the_stack_itself_is_understood(source: Path, paths: RehearsalPaths) -> None:
    event = {"resourcePreEvent": {"metadata": {"op": "same", "urn": STACK_URN}}}
    run = begin(
        source,
        paths,
        f"""for a in "$@"; do case $a in --event-log=*) echo '{json.dumps(event)}' >"${{a#*=}}";; esac; done""",
    )
    assert list(run) == [PulumiEvent("same", "pulumi:pulumi:Stack", "kueue-fleet-dev", done=False)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [", r"Pulumi\.yaml:1: a bracket is opened and not closed"),
        ("just words", r"Pulumi\.yaml: is not one map of fields; write a map of fields$"),
        (
            "{name: x, runtime: nodejs}",
            r"Pulumi\.yaml: runtime: is nodejs; write python, as a rehearsal runs no other programs$",
        ),
        (
            "{name: x, runtime: {name: yaml}}",
            r"Pulumi\.yaml: runtime: is yaml; write python, as",
        ),
    ],
)
def test_a_project_that_cannot_be_rehearsed(source: Path, paths: RehearsalPaths, text: str, message: str) -> None:
    (source / "Pulumi.yaml").write_text(text)
    with pytest.raises(RehearsalError, match=message):
        PulumiProject("dev", paths).stack_file(source)


def test_equal_errors_are_shown_once_with_what_they_are_about() -> None:
    refused = [(f"{QUEUE_URN}{number}", "refused") for number in range(5)]
    assert summarize_diagnostics([*refused, *refused, (STACK_URN, "update failed"), ("", "no room")]) == (
        f"{QUEUE_TYPE} worker/dws0, {QUEUE_TYPE} worker/dws1, {QUEUE_TYPE} worker/dws2 and 2 more: refused\nno room"
    )


def test_many_and_long_errors_are_cut() -> None:
    output = summarize_diagnostics([("", f"{number}{'x' * 5000}") for number in range(8)]).splitlines()
    assert [len(line) for line in output[:-1]] == [1204] * 5
    assert output[-1] == "and 3 more errors"


def test_the_stacks_own_failure_is_shown_where_there_is_no_other() -> None:
    assert summarize_diagnostics([(STACK_URN, "update failed")]).endswith("kueue-fleet-dev: update failed")


def test_a_killed_pulumi_is_no_failure_of_the_stack(source: Path, paths: RehearsalPaths) -> None:
    with pytest.raises(PulumiError, match=r"^pulumi up was killed by SIGKILL; run it again\n\(its output is in "):
        list(begin(source, paths, "kill -9 $$"))


def test_pulumi_is_out_of_reach_of_the_terminals_ctrl_c(source: Path, paths: RehearsalPaths) -> None:
    with begin(source, paths, "sleep 30 & wait") as run:
        assert os.getsid(run._process.pid) == run._process.pid


def test_a_run_that_does_not_end_is_killed_with_all_it_has_started(
    source: Path, paths: RehearsalPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi_cli, "_CANCEL_SECONDS", 0.2)
    run = begin(source, paths, "trap '' TERM; (trap '' TERM; setsid sleep 60) & while :; do sleep 1; done")
    deadline = time.monotonic() + 10
    while not any(child.name() == "sleep" for child in psutil.Process(run._process.pid).children(recursive=True)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    started = psutil.Process(run._process.pid).children(recursive=True)
    run.interrupt()
    assert still_running(started, 10) == []
    with pytest.raises(PulumiError, match="was killed by SIGKILL"):
        list(run)


@contextmanager
def lock_held(source: Path, paths: RehearsalPaths) -> Iterator[subprocess.Popen[bytes]]:
    """A living process called pulumi, and its lock."""
    program = source / "pulumi"
    shutil.copy(shutil.which("sleep") or "sleep", program)
    with subprocess.Popen([program, "60"]) as process:
        lock(paths, json.dumps({"pid": process.pid}))
        try:
            yield process
        finally:
            process.kill()


def lock(paths: RehearsalPaths, text: str) -> None:
    folder = paths.pulumi_backend / ".pulumi" / "locks" / "organization" / "kueue-fleet" / "dev"
    folder.mkdir(parents=True)
    (folder / "c0ffee.json").write_text(text)


def recover(source: Path, paths: RehearsalPaths) -> str:
    """What Pulumi was asked to do."""
    asked = source / "asked"
    asked.touch()
    project = PulumiProject("dev", paths)
    project.write(source, {})
    (source / "bin").mkdir()
    project.use(script(source / "bin", f"echo $* >>{asked}"), dict(os.environ))
    project.recover()
    return asked.read_text()


@pytest.mark.parametrize(
    "text",
    ['{"pid": 999999999}', "", '{"pid": "x"}', "[]", f'{{"pid": {os.getpid()}}}'],
    ids=["no such process", "empty", "no number", "a list", "another program"],
)
def test_a_lock_that_nobody_holds_is_taken_away(source: Path, paths: RehearsalPaths, text: str) -> None:
    lock(paths, text)
    assert recover(source, paths) == "cancel --yes --non-interactive --stack dev\n"


def test_without_a_lock_there_is_nothing_to_take_away(source: Path, paths: RehearsalPaths) -> None:
    assert recover(source, paths) == ""


def test_a_living_pulumi_keeps_its_lock(source: Path, paths: RehearsalPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulumi_cli, "_LOCK_SECONDS", 0.2)
    with lock_held(source, paths) as holder:
        expected = rf"^another Pulumi \(process {holder.pid}\) is using .*end it with `kill {holder.pid}`$"
        with pytest.raises(PulumiError, match=expected):
            recover(source, paths)


def test_taking_down_ends_a_pulumi_that_is_left(source: Path, paths: RehearsalPaths) -> None:
    with lock_held(source, paths) as holder:
        end_pulumi(paths)
        assert gone(holder.pid)
