"""The real `pulumi` command on a copy of the project, with its events as they happen.

`PulumiEvent`s while it runs, and a `PulumiError` with Pulumi's own diagnostics when it fails. The copy exists because
Pulumi writes into a stack's config file (its encryption salt), and the user's files are not ours to change.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

import psutil
import yaml

from kueue_admission.kernel.suggest import instead
from kueue_fleet.fleet_file.parse import as_stack
from kueue_fleet.google.resource_types import STACK
from kueue_fleet.program.handed_out import FOLDER_VARIABLE, DeclaredFleet, handed_out
from kueue_fleet.program.project import Project, ProjectError, without_secrets
from kueue_rehearsal.paths import RehearsalError, RehearsalPaths
from kueue_rehearsal.private_files import write_private
from kueue_rehearsal.processes.child_process import die_with_parent
from kueue_rehearsal.processes.children import describe_end
from kueue_rehearsal.processes.ends import kill, runs, still_running
from kueue_rehearsal.pulumi_events import (
    Operation,
    PulumiEvent,
    name_of,
    resource_event,
    summarize_diagnostics,
    type_of,
)

_EVENT_POLL_SECONDS = 0.1
_MARKUP = re.compile(r"<\{%[^%]*%\}>")
_LOCKED = "the stack is currently locked by"
_OUT_OF_TIME = ": context deadline exceeded"
# After the first signal Pulumi waits for the steps under way, after the second it ends at once.
_CANCEL_SECONDS = 10.0
_END_SECONDS = 3.0
_LOCK_SECONDS = 20.0
_NO_SECRET: Final = "not-in-a-rehearsal"  # noqa: S105  (none)
"""In the place of each encrypted value of the stack's config."""
_KEYS: Final = ("secretsprovider", "encryptionsalt", "encryptedkey")
ONE_CHECKPOINT: Final = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}
"""Environment of a pulumi that writes its state once, at the end: writing all of it after every step takes most of its
CPU. Source: pulumi v3.250 pkg/backend/snapshot.go, sdk/go/common/env/env.go."""


def make_pulumi_home(home: Path) -> Path:
    """A folder for PULUMI_HOME in which Pulumi keeps no debug logs: to write these takes a third of its CPU.

    There is no setting for it; Pulumi goes on without where its folder cannot be made. A folder that has them stays as
    it is. Source: pulumi v3.250 pkg/logging/encrypted.go.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / "logs").touch()
    return home


class PulumiError(RehearsalError):
    """A Pulumi command failed; the text holds its diagnostics, without its decoration."""


Watch = Callable[[Collection[Operation]], None]
"""Is called again and again with what is under way; raises RehearsalError to have the command ended."""
Late = Callable[[], Collection[str]]
"""Says what is not ready, each in words."""


@dataclass(slots=True)
class PulumiResult:
    """What a finished command says of itself: resources by operation, as in Pulumi's summary."""

    changes: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    """What providers warn of; what the program itself warns of, `check` has said before."""

    @property
    def unchanged(self) -> bool:
        """Whether every resource stayed as it was."""
        return set(self.changes) <= {"same"}

    @property
    def summary(self) -> str:
        """That in words."""
        words = ", ".join(f"{number} {op}" for op, number in sorted(self.changes.items())) or "nothing to do"
        return "nothing changed" if self.unchanged and self.changes else words


@dataclass(slots=True)
class PulumiProject:
    """A stack of a Pulumi project, copied to a rehearsal's state folder."""

    stack: str
    paths: RehearsalPaths
    fleet_file: Path | None = None
    """A fleet's own file, which takes the place of the stack's in the project."""
    _executable: Path = Path("pulumi")
    _environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    _late: Late = tuple

    def use(self, executable: Path, environment: Mapping[str, str], late: Late = tuple) -> None:
        """Run this pulumi from now on, with ENVIRONMENT as its whole environment, PATH included.

        A failure says what is LATE then too.
        """
        self._executable = executable
        self._late = late
        self._environment = {**environment, FOLDER_VARIABLE: str(self._handed_out)}

    def stack_file(self, source: Path) -> Path:
        """The config file of the stack in the project folder SOURCE.

        Raises:
            RehearsalError: SOURCE is not a Pulumi project, or has no such stack.
        """
        project = self._project_in(source)
        if self.fleet_file is not None:
            return self.fleet_file
        file = project.stack_file(self.stack)
        if not file.is_file():
            known_file = instead(self.stack, project.stacks, "stacks")
            raise RehearsalError(f"stack {self.stack}: there is no {file}; {known_file}")
        return file

    def stack_settings(self, source: Path) -> dict[str, Any]:
        """What the config file of the stack in SOURCE holds now. Raises RehearsalError as `stack_file` does."""
        return as_stack(yaml.safe_load(self.stack_file(source).read_text()) or {})

    @staticmethod
    def _project_in(source: Path) -> Project:
        if source.is_file():
            raise RehearsalError(f"--project {source}: is a file; name the folder with Pulumi.yaml")
        missing_text = "run this in a Pulumi project, or name one with --project"
        try:
            return Project.read(source, missing_text, "write python, as a rehearsal runs no other programs", ["python"])
        except ProjectError as wrong:
            raise RehearsalError(str(wrong)) from None

    def write(self, source: Path, overrides: Mapping[str, Any]) -> None:
        """Copy the project in SOURCE, its program staying where it is, with OVERRIDES in the stack's config.

        Raises:
            RehearsalError: SOURCE is not a Pulumi project, or has no config file for the stack.
        """
        project = dict(self._project_in(source).settings)
        settings = self.stack_settings(source)
        project.pop("stackConfigDir", None)
        project["main"] = str((source / project.get("main", ".")).resolve())
        # The copy lies elsewhere, so a relative virtual environment would not be found; this one has what is needed,
        # and pip, unlike uv, installs nothing before a run.
        project["runtime"] = {"name": "python", "options": {"toolchain": "pip", "virtualenv": sys.prefix}}
        # What is encrypted can be read with the stack's own key only, which a rehearsal does not ask for.
        settings = {key: value for key, value in settings.items() if key not in _KEYS} | self._kept_settings()
        settings["config"] = {**without_secrets(settings.get("config") or {}, _NO_SECRET), **overrides}
        self.paths.project.mkdir(parents=True, exist_ok=True)
        (self.paths.project / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False))
        self._copied_stack_file.write_text(yaml.safe_dump(settings, sort_keys=False))

    @property
    def _copied_stack_file(self) -> Path:
        return self.paths.project / f"Pulumi.{self.stack}.yaml"

    def _kept_settings(self) -> dict[str, Any]:
        # Pulumi wrote the salt here on an earlier run; without it the secrets of its state cannot be read again.
        if not self._copied_stack_file.is_file():
            return {}
        earlier = yaml.safe_load(self._copied_stack_file.read_text()) or {}
        return {key: earlier[key] for key in _KEYS if key in earlier}

    def select(self) -> None:
        """Make the stack in the rehearsal's own backend, unless it is there already."""
        self.paths.pulumi_backend.mkdir(parents=True, exist_ok=True)
        make_pulumi_home(self.paths.pulumi_home)
        self._run("stack", "select", "--create", "--non-interactive", "--stack", self.stack)

    def up(self, watch: Watch | None = None) -> PulumiRun:
        """Begin `pulumi up`."""
        shutil.rmtree(self._handed_out, ignore_errors=True)
        self._handed_out.mkdir()
        return self._start("up", "--skip-preview", "--suppress-outputs", watch=watch)

    @property
    def fleets(self) -> list[DeclaredFleet]:
        """What each `Fleet` of the program declared in the last `up`."""
        return handed_out(self._handed_out)

    @property
    def _handed_out(self) -> Path:
        return self.paths.root / "fleets"

    def destroy(self) -> PulumiRun:
        """Begin `pulumi destroy`."""
        return self._start("destroy", "--skip-preview")

    def recover(self) -> None:
        """Remove the lock that a killed run has left, after waiting for a run that is still ending.

        Raises:
            PulumiError: another Pulumi is using the state.
        """
        deadline = time.monotonic() + _LOCK_SECONDS
        while holders := _lock_holders(self.paths):
            if time.monotonic() > deadline:
                pid = holders[0].pid
                raise PulumiError(
                    f"another Pulumi (process {pid}) is using the state of this rehearsal; "
                    f"wait for it to end, or end it with `kill {pid}`"
                )
            time.sleep(_EVENT_POLL_SECONDS)
        if _lock_files(self.paths):
            self._run("cancel", "--yes", "--non-interactive", "--stack", self.stack)

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(
            [self._executable, *arguments],
            cwd=self.paths.project,
            env=dict(self._environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        if done.returncode:
            raise PulumiError(_plain_failure(f"pulumi {arguments[0]}", done.stderr.strip() or done.stdout.strip()))

    def _start(self, verb: str, *options: str, watch: Watch | None = None) -> PulumiRun:
        events = self.paths.root / f"pulumi-{verb}.events.json"
        events.unlink(missing_ok=True)
        log = self.paths.root / f"pulumi-{verb}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    self._executable, verb, "--yes", "--non-interactive", "--color=never", "--stack", self.stack,
                    f"--event-log={events}", *options,
                ],
                cwd=self.paths.project,
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C goes to a terminal's whole process group: twice told to end, Pulumi would drop its steps.
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )  # fmt: skip
        return PulumiRun(verb, process, events, log, watch, self._late)


class PulumiRun:
    """A running Pulumi command: iterate over it for its events, then read `result`.

    Raises PulumiError from the iteration when the command fails, and what `watch` raises. As a context, it has ended
    when the context does.
    """

    def __init__(
        self,
        verb: str,
        process: subprocess.Popen[bytes],
        events: Path,
        log: Path,
        watch: Watch | None = None,
        late: Late = tuple,
    ) -> None:
        self.result = PulumiResult()
        self.log = log
        self._verb = verb
        self._process = process
        self._events = events
        self._watch = watch
        self._late = late
        self._under_way: dict[str, Operation] = {}
        self._diagnostics: list[tuple[str, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.interrupt()

    def __iter__(self) -> Iterator[PulumiEvent]:
        for raw in self._raw_events():
            if "summaryEvent" in raw:
                self.result.changes = dict(raw["summaryEvent"].get("resourceChanges") or {})
            if "diagnosticEvent" in raw:
                self._note(raw["diagnosticEvent"])
            self._follow(raw)
            event = resource_event(raw)
            if event:
                yield event
        code = self._process.wait()
        if code < 0:
            raise PulumiError(f"pulumi {self._verb} {describe_end(code)}; run it again\n(its output is in {self.log})")
        if code:
            text = summarize_diagnostics(self._diagnostics) or self._log_tail()
            text = "\n".join((text, *(f"not ready: {pod}" for pod in self._late())))
            raise PulumiError(_plain_failure(f"pulumi {self._verb}", text, self.log))

    def interrupt(self) -> None:
        """End it if it still runs, with all that it has started.

        It is asked as by Ctrl-C, so that it waits for the steps under way; after some seconds, as by a second Ctrl-C.
        """
        if self._process.poll() is None:
            _end_tree(psutil.Process(self._process.pid))
            self._process.wait()

    def _raw_events(self) -> Iterator[dict[str, Any]]:
        rest = b""
        offset = 0
        over = False
        while not over:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_EVENT_POLL_SECONDS)
                over = True
            if self._events.is_file():
                with self._events.open("rb") as stream:
                    stream.seek(offset)
                    new = stream.read()
                offset += len(new)
                *lines, rest = (rest + new).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
            if self._watch is not None and not over:
                self._watch(self._under_way.values())

    def _follow(self, raw: Mapping[str, Any]) -> None:
        if "resourcePreEvent" in raw:
            metadata = raw["resourcePreEvent"]["metadata"]
            urn, inputs = metadata["urn"], (metadata.get("new") or {}).get("inputs") or {}
            # The stack itself is under way from the first event to the last.
            if type_of(urn) != STACK:
                self._under_way[urn] = Operation(metadata["op"], type_of(urn), name_of(urn), inputs, time.time())
        for key in ("resOutputsEvent", "resOpFailedEvent"):
            if key in raw:
                self._under_way.pop(raw[key]["metadata"]["urn"], None)

    def _note(self, diagnostic: Mapping[str, Any]) -> None:
        urn, severity = diagnostic.get("urn", ""), diagnostic.get("severity")
        message = _MARKUP.sub("", diagnostic.get("message", "")).strip().removeprefix(f"{severity}: ")
        if diagnostic.get("ephemeral"):
            if urn in self._under_way:
                self._under_way[urn] = replace(self._under_way[urn], status=message)
        elif severity == "error":
            self._diagnostics.append((urn, message))
        elif severity == "warning" and urn and not type_of(urn).startswith(("kueue-fleet:", "pulumi:")):
            self.result.warnings.append(message)

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return "\n".join(lines[-20:])


def _plain_failure(command: str, text: str, log: Path | None = None) -> str:
    if _LOCKED in text:
        return f"{command}: the stack's state is locked by another Pulumi run; wait for it to end, then run this again"
    if _OUT_OF_TIME in text:
        # helm.sh/helm/v3 pkg/action/install.go; a release that is too late says so in other words.
        text += (
            "\nHelm waits 60 s until the API server knows a chart's CRDs, which a busy machine may need; run this again"
        )
    where = f"\n(its whole output is in {log})" if log else ""
    return f"{command} failed:\n{text}{where}"


def _lock_files(paths: RehearsalPaths) -> list[Path]:
    # Where Pulumi's file backend keeps them (pkg/backend/diy/lock.go).
    return list((paths.pulumi_backend / ".pulumi" / "locks").rglob("*.json"))


def _lock_holders(paths: RehearsalPaths) -> list[psutil.Process]:
    """The living Pulumi processes that hold a lock on the rehearsal's state."""
    holders = []
    for file in _lock_files(paths):
        try:
            process = psutil.Process(int(json.loads(file.read_text())["pid"]))
            if process.name().startswith("pulumi") and runs(process):
                holders.append(process)
        except (FileNotFoundError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
            continue  # a lock that has gone since, that was not written to its end, or whose holder is dead
    return holders


def end_pulumi(paths: RehearsalPaths) -> None:
    """End every Pulumi that holds a lock on the rehearsal's state, with all that it has started."""
    for process in _lock_holders(paths):
        _end_tree(process)


def _end_tree(process: psutil.Process) -> None:
    """Has PROCESS end as `interrupt` says, and kill what it started and leaves behind."""
    try:
        child_processes = process.children(recursive=True)
    except psutil.NoSuchProcess:
        return
    with suppress(psutil.NoSuchProcess):
        for patience in (_CANCEL_SECONDS, _END_SECONDS):
            process.terminate()
            if not still_running([process], patience):
                break
        else:
            process.kill()
    kill(still_running([process, *child_processes], _END_SECONDS), _END_SECONDS)


PATCH_FORCE: Final = "PULUMI_K8S_ENABLE_PATCH_FORCE"
"""Variable with which the Kubernetes provider takes over fields of other owners."""


def pulumi_environment(
    paths: RehearsalPaths, base: Mapping[str, str], path_entries: list[Path], extra: Mapping[str, str]
) -> dict[str, str]:
    """The environment of every pulumi process of a rehearsal.

    It shares nothing with the user's Pulumi login, kubeconfig or cloud credentials, so none can be used by mistake.
    Fields that others own are taken back where the user says so (docs/tasks/break-glass.md).
    """
    hidden = ("PULUMI_", "KUBECONFIG", "GOOGLE_", "CLOUDSDK_", "GCLOUD_", "HELM_")
    environment = {key: value for key, value in base.items() if key == PATCH_FORCE or not key.startswith(hidden)}
    if not paths.passphrase.exists():
        write_private(paths.passphrase, secrets.token_urlsafe(32).encode())
    environment |= {
        "PATH": ":".join([*(str(entry) for entry in path_entries), base.get("PATH", "/usr/bin:/bin")]),
        "PULUMI_BACKEND_URL": f"file://{paths.pulumi_backend}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(paths.passphrase),
        "PULUMI_HOME": str(paths.pulumi_home),
        # A Kubernetes provider without a kubeconfig of its own would take the user's.
        "KUBECONFIG": "/dev/null",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "1",
        "PULUMI_DEBUG_COMMANDS": "true",  # else --event-log is not known
    }
    return environment | dict(extra)
