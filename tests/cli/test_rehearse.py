"""`rehearse` as far as it goes without engines: what it refuses, how it says so, and how it looks."""

from __future__ import annotations

import errno
import os
import pickle
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import call
from kueue_fleet import cli
from kueue_fleet.cli.job_report import group_reasons
from kueue_fleet.program import run
from kueue_fleet.program.handed_out import DeclaredFleet
from kueue_fleet.program.project import Project
from kueue_fleet.program.run import fleets_of
from kueue_rehearsal.jobs.views import Answer, JobState, JobView
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.session import Session

ROOT = Path(__file__).parents[2]
ESCAPE = "\x1b"

FLEET = """
config:
  kueue-fleet:fleet:
    name: tiny
    project: my-gcp-project
    clusters: [{ name: solo, role: standalone, region: us-east4 }]
    flavors: [{ name: l4, nodeLabels: { cloud.google.com/gke-accelerator: nvidia-l4 } }]
    clusterQueues:
      - name: queue
        namespaceSelector: {}
        resourceGroups:
          - coveredResources: [cpu]
            flavors: [{ name: l4, resources: [{ name: cpu, nominalQuota: 4 }] }]
    teams: [{ name: team-a, localQueues: [{ name: gpu, clusterQueue: queue }] }]
"""


ACCOUNT = "wi-team-a@.iam.gserviceaccount.com"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Pulumi project with the stack `tiny`; nothing has been rehearsed in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("{name: mine, runtime: python}")
    (folder / "Pulumi.tiny.yaml").write_text(FLEET)
    monkeypatch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path / "s"))
    monkeypatch.chdir(folder)
    return folder


def rehearse(
    *arguments: str | Path, how: str = "run", stack: str = "tiny", **environ: str
) -> subprocess.CompletedProcess[str]:
    return call("rehearse", how, "--stack", stack, *arguments, **environ)


def assert_refused(done: subprocess.CompletedProcess[str], message: str) -> None:
    """One plain message, exit code 1, and nothing of a rehearsal."""
    assert re.search(message, done.stderr), done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    # What is known without the engines, where they are missing, and that Go was looked for.
    output = [line.strip() for line in done.stdout.splitlines() if line.startswith(" ")]
    labels = [line.partition("  ")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert labels in ([], ["Check", "Plan", "First run", "Meanwhile"])
    assert all(re.fullmatch("building, once: etcd, .* toolchain", line) for line in output[1:]), output
    assert done.returncode == 1
    assert not list(Path(os.environ["KUEUE_FLEET_STATE_DIR"]).glob("rehearsals/*"))


def test_every_problem_of_the_spec_is_listed_and_nothing_is_started(project: Path) -> None:
    wrong = FLEET.replace("regio", "rejio").replace("nominalQuota: 4", "nominalQuota: -4")
    (project / "Pulumi.tiny.yaml").write_text(wrong)
    result = rehearse()
    assert_refused(result, r"Pulumi\.tiny\.yaml does not describe a fleet:")
    for problem in call("check", project / "Pulumi.tiny.yaml").stderr.splitlines():
        assert problem.removeprefix(f"error: {project}/") in result.stderr
    assert len(result.stderr.splitlines()) >= 3


NOT_REHEARSED = "    kueue: { version: 0.20.7 }\n"


def test_what_no_rehearsal_can_run_is_refused_before_anything_starts(project: Path) -> None:
    (project / "Pulumi.tiny.yaml").write_text(FLEET + NOT_REHEARSED)
    message = (
        r"Pulumi\.tiny\.yaml cannot be rehearsed:\n  kueue\.version: 0\.20\.7, but a rehearsal has Kueue 0\.19\.2,"
    )
    assert_refused(rehearse(), message)


DECLARED = """
import kueue_fleet as kf

spec = kf.parse_fleet({fleet!r})
kf.Fleet(spec.name, spec)
"""


@cache
def declared(program: str) -> list[DeclaredFleet]:
    """What the program in this folder declares; a program that was run before is not run again."""
    return fleets_of(Project.read(Path()), "tiny")


@pytest.mark.parametrize("place", ["--stack=tiny", ".", "Pulumi.tiny.yaml"])
def test_the_fleet_is_that_of_the_program_where_the_file_has_none(
    project: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(run, "fleets_of", lambda project, *_: declared(project.program.read_text()))
    fleet = yaml.safe_load(FLEET)["config"]["kueue-fleet:fleet"] | {"kueue": {"version": "0.20.7"}}
    (project / "__main__.py").write_text(DECLARED.format(fleet=fleet))
    (project / "Pulumi.tiny.yaml").write_text("config: {}\n")
    assert_refused(call("rehearse", "run", place), r"cannot be rehearsed:\n  kueue\.version: 0\.20\.7")


def test_a_folder_with_several_stacks(project: Path) -> None:
    (project / "Pulumi.other.yaml").write_text(FLEET)
    assert_refused(call("rehearse", "run", "."), r"^error: \.: has 2 stacks; give the file of one\n$")


def test_the_stacks_of_a_folder_are_where_its_project_keeps_them(project: Path) -> None:
    (project / "Pulumi.yaml").write_text("{name: mine, runtime: python, stackConfigDir: stacks}")
    (project / "stacks").mkdir()
    (project / "Pulumi.tiny.yaml").rename(project / "stacks" / "Pulumi.tiny.yaml")
    (project / "stacks" / "Pulumi.tiny.yaml").write_text(FLEET + NOT_REHEARSED)
    assert_refused(call("rehearse", "run", "."), r"stacks/Pulumi\.tiny\.yaml cannot be rehearsed:")


@pytest.mark.usefixtures("project")
def test_an_unknown_stack_names_those_there_are() -> None:
    assert_refused(rehearse(stack="prod"), r"^error: stack prod: there is no .*; use one of the stacks: tiny\n$")


def test_outside_of_a_project(project: Path) -> None:
    message = r"empty/Pulumi.yaml: no such file; run this in a Pulumi project, or name one with --project\n$"
    (project / "empty").mkdir()
    assert_refused(rehearse("--project", "empty"), message)


JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"generateName": "a-", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}},
}


FULL_JOB = {**JOB, "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"jobs\.yaml: no such file or folder; give one with Kubernetes objects\n$"),
        ("a: [", r"jobs\.yaml:1: a bracket is opened and not closed, .*; close it\n$"),
        ("", r"jobs\.yaml: holds no objects; write Kueue's objects and jobs into it\n$"),
        ("\xff", r"jobs\.yaml: is not UTF-8 text \(byte 0\); save it as UTF-8\n$"),
        (
            "{kind: Deployment, metadata: {name: a}}",
            r"jobs\.yaml:1: is a Deployment; as a job it needs the label kueue.x-k8s.io/queue-name, and no uid\n$",
        ),
        (yaml.safe_dump({**JOB, "kind": "Pod"}), r"jobs\.yaml:1: is a Pod, which the fleet's Kueue does not manage"),
        ("- 1", r"jobs\.yaml:1: is a list of 1; write objects"),
        ("kind: Service", r"jobs\.yaml:1: Service has no metadata; give it a name there\n$"),
        ("{kind: Service, metadata: {name: a}}", r"jobs\.yaml: has no jobs; add some, or give --no-jobs\n$"),
        (
            yaml.safe_dump({"kind": "Job", "metadata": {"name": "a"}}),
            r"Job default/a\.metadata\.labels: has no kueue\.",
        ),
        (
            yaml.safe_dump_all([{**JOB, "metadata": {**JOB["metadata"], "name": "Train_A"}}]),
            r'Job\.metadata\.name: "Train_A" has characters or a form that are not allowed; use lower-case',
        ),
        (yaml.safe_dump({"kind": "Job", "metadata": "a"}), r"jobs\.yaml:1: Job has no metadata; give it a name there"),
        (yaml.safe_dump({**JOB, "spec": "a"}), r"\.spec: is not a map; write its fields below it"),
        (yaml.safe_dump({**JOB, "spec": {}}), r"\.spec: is missing or empty; write its fields below it"),
        (
            yaml.safe_dump_all([JOB, {**JOB, "kind": "X"}]),
            r"jobs\.yaml:1: Job default/a-1.*jobs\.yaml:8: X: nothing runs it",
        ),
        (
            yaml.safe_dump_all([FULL_JOB, {"kind": "PersistentVolumeClaim", "metadata": {"name": "a"}}]),
            r"PersistentVolumeClaim: nothing runs it in a rehearsal; use Job, JobSet, .* TrainingRuntime\n$",
        ),
    ],
)
def test_a_wrong_file_of_jobs_starts_nothing(project: Path, text: str | None, message: str) -> None:
    file = project / "jobs.yaml"
    if text is not None:
        file.write_bytes(text.encode("latin-1"))
    assert_refused(rehearse("--jobs", file), f"(?s){message}")


@pytest.mark.usefixtures("project")
def test_down_without_a_rehearsal(tmp_path: Path) -> None:
    result = rehearse(how="down")
    assert (result.returncode, result.stdout) == (0, "There is no rehearsal of tiny; nothing to do.\n")
    (tmp_path / "s" / "rehearsals" / "prod").mkdir(parents=True)
    assert rehearse(how="down").stdout == "There is no rehearsal of tiny; there is one of prod.\n"


@pytest.mark.parametrize("group", ["rehearse", "simulate"])
def test_without_a_subcommand_they_are_listed(
    group: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kueue-fleet", group])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "\nCommands:\n" in capsys.readouterr().err


def test_a_report_needs_jobs_and_a_place(project: Path) -> None:
    result = rehearse("--html", "r.html", "--no-jobs")
    message = "error: --html and --no-jobs: a report needs jobs; leave one of them out\n"
    assert (result.returncode, result.stderr) == (2, message)
    assert_refused(rehearse("--html", "r.html"), "--html r.html: a report needs jobs, and there is no .*; name a file")
    assert_refused(rehearse("--html", "no/r.html"), "--html no/r.html: there is no folder no; make it")


@pytest.mark.parametrize("wanted", ["solo=0", "solo=-1", "=1", "solo=many", "solo=²", f"solo={'9' * 5000}"])
def test_a_wrong_reclaim_says_how_to_write_one(project: Path, wanted: str) -> None:
    result = rehearse(wanted, how="reclaim-spot")
    assert result.returncode == 2
    assert "write CLUSTER, CLUSTER/POOL or CLUSTER/POOL=COUNT" in result.stderr


def test_nothing_is_reclaimed_where_nothing_runs(project: Path) -> None:
    message = "solo: no rehearsal of tiny is running; run kueue-fleet rehearse up --stack tiny"
    assert_refused(rehearse("solo", how="reclaim-spot"), message)


def test_wrong_settings_of_the_simulated_cloud_are_refused_before_anything_starts(project: Path) -> None:
    (project / "Pulumi.tiny.yaml").write_text(FLEET + "  kueue-fleet:rehearsal: { spot: { rate: 2 }, seed: x }\n")
    result = rehearse()
    assert_refused(result, r"config\.kueue-fleet:rehearsal\.spot\.rate: is not a known field")
    assert "config.kueue-fleet:rehearsal.seed:" in result.stderr


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            "/dev/null/x",
            r"^error: /dev/null/x/rehearsals/tiny: cannot be written \(Not a directory\); set KUEUE_FLEET_ST",
        ),
        (
            "/tmp/" + "x" * 100,
            r"a socket's path may have 107 bytes, this one has \d+; set KUEUE_FLEET_STATE_DIR to a sh",
        ),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_state_folder_that_cannot_be_used(state: str, message: str) -> None:
    assert_refused(rehearse(KUEUE_FLEET_STATE_DIR=state), message)


@pytest.mark.usefixtures("project")
def test_a_missing_toolchain_and_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    nothing = {"PATH": str(tmp_path), "KUBEBUILDER_ASSETS": "", "PIP_NO_INDEX": "1", "UV_NO_INDEX": "1"}
    result = rehearse(KUEUE_FLEET_CACHE_DIR=str(tmp_path / "c"), **nothing)
    assert_refused(result, r"^error: no Go 1\.\d+ or newer on PATH, and .* cannot be installed .*; install Go from")
    result = rehearse(KUEUE_FLEET_CACHE_DIR="/dev/null/c", **nothing)
    assert_refused(
        result, r"^error: /dev/null/c/engines: Not a directory; set KUEUE_FLEET_STATE_DIR and KUEUE_FLEET_CACHE"
    )


class Refusal:
    """Calls the command in this process, with a step that fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys

    def __call__(self, fail: Callable[[], None]) -> tuple[object, str]:
        self._patch.setattr(Session, "prepare_engines", lambda session, say, operators: fail())
        self._patch.setattr(sys, "argv", ["kueue-fleet", "rehearse", "run", "--stack", "tiny"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, self._capsys.readouterr().err


@pytest.fixture
def refusal(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusal:
    return Refusal(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("folder", "arguments"),
    [
        ("", ["tiny"]),
        ("", ["Pulumi.tiny.yaml"]),
        ("", ["--stack", "Pulumi.tiny.yaml"]),
        ("..", ["project/Pulumi.tiny.yaml"]),
        ("..", ["--stack=project/Pulumi.tiny.yaml"]),
        ("..", ["tiny", "--project", "project"]),
        ("below", ["../Pulumi.tiny.yaml", "--no-jobs"]),
    ],
)
def test_a_stack_is_named_by_its_file_too(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: str,
    arguments: list[str],
) -> None:
    def tell(session: Session, say: object, operators: object) -> None:
        raise RehearsalError(f"would rehearse {session.stack} of {session.project_dir}")

    (project / "below").mkdir()
    monkeypatch.chdir(project / folder)
    monkeypatch.setattr(Session, "prepare_engines", tell)
    monkeypatch.setattr(sys, "argv", ["kueue-fleet", "rehearse", "run", *arguments])
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().err == f"error: would rehearse tiny of {project}\n"


def test_a_fleets_own_file_takes_the_place_of_a_stack(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tell(session: Session, say: object, operators: object) -> None:
        raise RehearsalError(f"{session.stack} {session.stack_file} {session.as_published}")

    file = project / "mine.yaml"
    fleet = yaml.safe_load(FLEET)["config"]["kueue-fleet:fleet"]
    file.write_text(yaml.safe_dump(fleet | {"teams": [{"name": "team-a", "existingGoogleServiceAccount": ACCOUNT}]}))
    monkeypatch.setattr(Session, "prepare_engines", tell)
    for more, output in (
        ([], [f"error: {file} does not describe a fleet:", "has no project in it"]),
        (["--as-published"], ["warning: ", "has no project in it", f"error: mine {file} True\n"]),
    ):
        monkeypatch.setattr(sys, "argv", ["kueue-fleet", "rehearse", "run", str(file), "--no-jobs", *more])
        with pytest.raises(SystemExit):
            cli.main()
        err = capsys.readouterr().err
        assert [item for item in output if item not in err] == [], err


def test_a_stack_file_without_a_project(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.tiny.yaml").write_text(FLEET)
    result = call("rehearse", "run", tmp_path / "Pulumi.tiny.yaml")
    message = "Pulumi.tiny.yaml: there is no Pulumi.yaml beside or above it; name its folder with --project\n"
    assert (result.returncode, result.stderr) == (1, f"error: {tmp_path}/{message}")


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RehearsalError("no Go; install it"), "no Go; install it"),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the state folder or the cache: No space left on device; free some space, or set KUEUE_FLEET_STATE_DIR to "
            "a folder on another disk",
        ),
        (
            OSError(errno.EROFS, "Read-only file system", "/cache/etcd"),
            "/cache/etcd: Read-only file system; set KUEUE_FLEET_STATE_DIR and KUEUE_FLEET_CACHE_DIR to folders that "
            "you can write",
        ),
    ],
)
def test_what_the_machine_refuses_is_one_sentence(refusal: Refusal, error: Exception, message: str) -> None:
    assert refusal(raising(error)) == (1, f"error: {message}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_one_line(refusal: Refusal, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    code, output = refusal(lambda: os.kill(os.getpid(), number))
    assert (code, output) == (128 + number, "error: interrupted; nothing was started\n")
    assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_stays_so(refusal: Refusal) -> None:
    def hang_up_then_interrupt() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert refusal(hang_up_then_interrupt)[0] == 130
    finally:
        signal.signal(signal.SIGHUP, before)


def test_without_a_home_it_says_what_to_set(refusal: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("KUEUE_FLEET_STATE_DIR")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert refusal(lambda: None) == (
        1,
        "error: this user has no home folder: set KUEUE_FLEET_STATE_DIR and KUEUE_FLEET_CACHE_DIR\n",
    )


def test_a_state_folder_of_ones_own_needs_no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setenv("KUEUE_FLEET_STATE_DIR", str(tmp_path))
    assert Session.for_stack("tiny", tmp_path).paths.root == tmp_path / "rehearsals" / "tiny"


def test_help_names_the_files() -> None:
    assert "Pulumi.<stack>.yaml" in call("rehearse", "run", "--help", COLUMNS="80").stdout
    assert " check [OPTIONS] FILE...\n" in call("check", "--help", COLUMNS="80").stdout
    assert "..." not in call("--help", COLUMNS="80").stdout.partition("Commands:")[2].partition("simulate")[0]


REASON = "ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor t4-dws (8 > 4)"
VIEWS = [
    JobView("Job", "team-language", "translator-abcde", JobState.FINISHED, "worker-asia-southeast1", ("t4-dws",), 12.0),
    JobView(
        "Job", "team-language", "too-big-abcde", JobState.PENDING, "", (), 3.0,
        (Answer("worker-asia-southeast1", REASON), Answer("worker-us-east4", REASON), Answer("worker-x", "Other: why")),
    ),
    JobView("Job", "team-vision", "detector-abcde", JobState.ADMITTED, "worker-us-east4", ("t4-dws",), 1.0),
]  # fmt: skip

SHOW = f"""
import pickle, time
VIEWS = pickle.loads({pickle.dumps(VIEWS)!r})
"""
SHOW += """
from kueue_admission.cli import console
from kueue_fleet.cli.job_report import job_display, jobs_table, print_open_ends
from kueue_fleet.cli.progress import step
with step("pulumi up") as say:
    say.now("3 of 4 control planes, 57 resources; create ClusterQueue worker/dws " + "x" * 80)
    time.sleep(0.3)
    say.note("worker-us-east4 is ready")
    say("74 create")
with job_display({}, time.monotonic() - 100, 300) as show:
    show(VIEWS)
console.show(jobs_table(VIEWS, {}))
print_open_ends(VIEWS)
"""


def show_environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "PYTHONPATH": f"{ROOT / 'components'}:{ROOT / 'tests/support'}", "TERM": "xterm-256color"}


@cache
def on_a_terminal(columns: int, **environ: str) -> str:
    """What SHOW writes to a terminal of that many columns."""
    ours, theirs = pty.openpty()
    try:
        size = {"COLUMNS": str(columns), "LINES": "40"}
        with subprocess.Popen(
            [sys.executable, "-c", SHOW], stdin=theirs, stdout=theirs, stderr=theirs,
            env={**show_environment(), **size, **environ},
        ) as process:  # fmt: skip
            os.close(theirs)
            written = b""
            while chunk := _read(ours):
                written += chunk
        assert process.returncode == 0, written.decode()
    finally:
        os.close(ours)
    return written.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError as wrong:
        # Linux says EIO at the end of a terminal whose other side is closed.
        if wrong.errno == errno.EIO:
            return b""
        raise


def test_the_table_has_every_column_in_80_columns() -> None:
    output = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", on_a_terminal(80))
    table = output[output.rindex("job  ") :].splitlines()
    assert table[0].split() == ["job", "team", "cluster", "flavor", "wait", "state"]
    assert "t4-dws" in table[1]
    assert "12 s" in table[1]
    assert "Finished" in table[1]
    assert all(len(line) <= 80 for line in table)
    assert "worker-us-east4 is ready\n" in output


def test_progress_is_live_on_a_terminal_and_cut_to_its_width() -> None:
    output = on_a_terminal(80)
    assert ESCAPE in output
    assert "3 of 4 control planes, 57 resources; create" in output
    assert "x" * 80 not in output


def test_no_escape_sequences_with_no_color() -> None:
    output = on_a_terminal(80, NO_COLOR="1")
    assert ESCAPE not in output
    assert "74 create" in output


def test_without_a_terminal_there_is_one_plain_line_a_row() -> None:
    result = subprocess.run(
        [sys.executable, "-c", SHOW], env=show_environment(), capture_output=True, text=True, check=True
    )
    assert ESCAPE not in result.stdout
    lines = [re.sub(r"\(\d+ s\)$", "(N s)", line.rstrip()) for line in result.stdout.splitlines()]
    assert lines == [
        "              worker-us-east4 is ready",
        "pulumi up     74 create (N s)",
        "               100 s  translator-abcde  Finished worker-asia-southeast1",
        "               100 s  too-big-abcde  Pending",
        "               100 s  detector-abcde  Admitted worker-us-east4",
        "job               team           cluster                 flavor  wait  state",
        "translator-abcde  team-language  worker-asia-southeast1  t4-dws  12 s  Finished",
        "too-big-abcde     team-language  -                       -        3 s  Pending",
        "detector-abcde    team-vision    worker-us-east4         t4-dws   1 s  Admitted",
        f"too-big-abcde waits: worker-asia-southeast1, worker-us-east4: {REASON} [KF105]",
        "too-big-abcde waits: worker-x: Other: why",
        "detector-abcde: Admitted in worker-us-east4, not finished",
    ]


def test_clusters_with_the_same_reason_are_one_line() -> None:
    assert group_reasons(VIEWS[1]) == [
        f"worker-asia-southeast1, worker-us-east4: {REASON}",
        "worker-x: Other: why",
    ]
