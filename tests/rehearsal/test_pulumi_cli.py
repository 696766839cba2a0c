import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from kueue_fleet.rehearsal.paths import RehearsalError, RehearsalPaths
from kueue_fleet.rehearsal.pulumi_cli import PulumiError, PulumiEvent, PulumiProject, PulumiRun, pulumi_environment

STACK_URN = "urn:pulumi:dev::kueue-fleet::pulumi:pulumi:Stack::kueue-fleet-dev"
QUEUE_TYPE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
QUEUE_URN = f"urn:pulumi:dev::kueue-fleet::kueue-fleet:index:Fleet${QUEUE_TYPE}::worker/dws"


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
    assert project["runtime"] == {"name": "python", "options": {"virtualenv": sys.prefix}}
    assert settings == {"config": {"gcp:project": "mine", "kueue-fleet:charts": {"kueue": "/charts/kueue"}}}


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


def test_an_unknown_stack_names_the_known_ones(source: Path, paths: RehearsalPaths) -> None:
    with pytest.raises(RehearsalError, match=r"^--stack prod: there is no .*Pulumi\.prod\.yaml; the stacks are dev$"):
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
    assert set(environment) & set(users) == {"PATH", "HOME", "PULUMI_BACKEND_URL"}
    assert environment["PULUMI_BACKEND_URL"] == f"file://{paths.pulumi_backend}"
    assert environment["PATH"] == "/lab/bin:/usr/bin"
    assert environment["EXTRA"] == "1"


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


def test_the_urn_of_the_stack_itself_is_understood(source: Path, paths: RehearsalPaths) -> None:
    event = {"resourcePreEvent": {"metadata": {"op": "same", "urn": STACK_URN}}}
    run = begin(
        source,
        paths,
        f"""for a in "$@"; do case $a in --event-log=*) echo '{json.dumps(event)}' >"${{a#*=}}";; esac; done""",
    )
    assert list(run) == [PulumiEvent("same", "pulumi:pulumi:Stack", "kueue-fleet-dev", done=False)]
