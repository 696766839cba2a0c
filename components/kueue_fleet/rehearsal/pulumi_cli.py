"""The real `pulumi` command on a copy of the project, with its events as they happen.

In: a stack of the user's project, and the environment that the rehearsal made for it. Out: `PulumiEvent`s while it
runs, and a `PulumiError` with Pulumi's own diagnostics when it fails. The copy exists because Pulumi writes into a
stack's config file (its encryption salt), and the user's files are not ours to change.
"""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kueue_fleet.rehearsal.paths import RehearsalError, RehearsalPaths
from kueue_fleet.rehearsal.processes import die_with_parent

_EVENT_POLL_SECONDS = 0.1
_MARKUP = re.compile(r"<\{%[^%]*%\}>")
_LOCKED = "the stack is currently locked by"


class PulumiError(RehearsalError):
    """A Pulumi command failed; the text holds its diagnostics, without its decoration."""


@dataclass(frozen=True, slots=True)
class PulumiEvent:
    """One step of one resource.

    `op` is Pulumi's own word (create, update, replace, delete, same ...). `done` is False when the step begins.
    """

    op: str
    type: str
    name: str
    done: bool
    failed: bool = False


@dataclass(slots=True)
class PulumiResult:
    """What a finished command says of itself: resources by operation, as in Pulumi's summary."""

    changes: dict[str, int] = field(default_factory=dict)

    @property
    def unchanged(self) -> bool:
        """Whether every resource stayed as it was."""
        return set(self.changes) <= {"same"}


@dataclass(slots=True)
class PulumiProject:
    """A stack of a Pulumi project, copied to a rehearsal's state folder."""

    stack: str
    paths: RehearsalPaths
    _executable: Path = Path("pulumi")
    _environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def use(self, executable: Path, environment: Mapping[str, str]) -> None:
        """Run this pulumi from now on, with ENVIRONMENT as its whole environment, PATH included."""
        self._executable, self._environment = executable, environment

    def stack_file(self, source: Path) -> Path:
        """The config file of the stack in the project folder SOURCE.

        Raises:
            RehearsalError: SOURCE is no Pulumi project, or has no such stack.
        """
        config_dir = source / (self._project_settings(source).get("stackConfigDir") or ".")
        file = config_dir / f"Pulumi.{self.stack}.yaml"
        if not file.is_file():
            known = sorted(path.name[len("Pulumi.") : -len(".yaml")] for path in config_dir.glob("Pulumi.*.yaml"))
            raise RehearsalError(
                f"--stack {self.stack}: there is no {file}; the stacks are {', '.join(known) or 'none'}"
            )
        return file

    @staticmethod
    def _project_settings(source: Path) -> dict[str, Any]:
        file = source / "Pulumi.yaml"
        if not file.is_file():
            raise RehearsalError(f"{file}: no such file; run this in a Pulumi project, or name one with --project")
        settings: dict[str, Any] = yaml.safe_load(file.read_text())
        return settings

    def write(self, source: Path, overrides: Mapping[str, Any]) -> None:
        """Copy the project in SOURCE, its program staying where it is, with OVERRIDES in the stack's config.

        Raises:
            RehearsalError: SOURCE is no Pulumi project, or has no config file for the stack.
        """
        project = self._project_settings(source)
        settings = yaml.safe_load(self.stack_file(source).read_text()) or {}
        project.pop("stackConfigDir", None)
        project["main"] = str((source / project.get("main", ".")).resolve())
        # The copy lies elsewhere, so a relative virtual environment would not be found; this one has what is needed.
        project["runtime"] = {"name": "python", "options": {"virtualenv": sys.prefix}}
        settings |= self._kept_settings()
        settings["config"] = {**(settings.get("config") or {}), **overrides}
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
        return {key: earlier[key] for key in ("secretsprovider", "encryptionsalt", "encryptedkey") if key in earlier}

    def select(self) -> None:
        """Make the stack in the rehearsal's own backend, unless it is there already."""
        self.paths.pulumi_backend.mkdir(parents=True, exist_ok=True)
        self.paths.pulumi_home.mkdir(parents=True, exist_ok=True)
        self._run("stack", "select", "--create", "--non-interactive", "--stack", self.stack)

    def up(self) -> PulumiRun:
        """Begin `pulumi up`."""
        return self._start("up", "--skip-preview", "--suppress-outputs")

    def destroy(self) -> PulumiRun:
        """Begin `pulumi destroy`."""
        return self._start("destroy", "--skip-preview")

    def cancel(self) -> None:
        """Remove the lock that a killed run left behind."""
        self._run("cancel", "--yes", "--non-interactive", "--stack", self.stack)

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs; secret ones as Pulumi masks them."""
        outputs: dict[str, Any] = json.loads(self._run("stack", "output", "--json", "--stack", self.stack) or "{}")
        return outputs

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self._executable, *arguments],
            cwd=self.paths.project,
            env=dict(self._environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise PulumiError(_plain_failure(f"pulumi {arguments[0]}", [done.stderr.strip() or done.stdout.strip()]))
        return done.stdout

    def _start(self, verb: str, *options: str) -> PulumiRun:
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
                preexec_fn=die_with_parent(signal.SIGTERM),
            )  # fmt: skip
        return PulumiRun(verb, process, events, log)


class PulumiRun:
    """A running Pulumi command: iterate over it for its events, then read `result`.

    Raises PulumiError from the iteration when the command fails.
    """

    def __init__(self, verb: str, process: subprocess.Popen[bytes], events: Path, log: Path) -> None:
        self.result = PulumiResult()
        self.log = log
        self._verb = verb
        self._process = process
        self._events = events
        self._diagnostics: list[str] = []

    def __iter__(self) -> Iterator[PulumiEvent]:
        for raw in self._raw_events():
            if "summaryEvent" in raw:
                self.result.changes = dict(raw["summaryEvent"].get("resourceChanges") or {})
            if "diagnosticEvent" in raw:
                self._note(raw["diagnosticEvent"])
            event = _resource_event(raw)
            if event:
                yield event
        if self._process.wait():
            raise PulumiError(_plain_failure(f"pulumi {self._verb}", self._diagnostics or [self._log_tail()], self.log))

    def interrupt(self) -> None:
        """Ask Pulumi to stop after the steps under way, as Ctrl-C does, and wait for it."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def _raw_events(self) -> Iterator[dict[str, Any]]:
        finished = threading.Event()

        def wait() -> None:
            self._process.wait()
            finished.set()

        threading.Thread(target=wait, daemon=True).start()
        rest = b""
        offset = 0
        while True:
            over = finished.wait(_EVENT_POLL_SECONDS)
            if self._events.is_file():
                with self._events.open("rb") as stream:
                    stream.seek(offset)
                    new = stream.read()
                offset += len(new)
                *lines, rest = (rest + new).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
            if over:
                return

    def _note(self, diagnostic: Mapping[str, Any]) -> None:
        if diagnostic.get("severity") == "error" and not diagnostic.get("ephemeral"):
            message = _MARKUP.sub("", diagnostic.get("message", "")).strip()
            urn = diagnostic.get("urn", "")
            self._diagnostics.append(f"{_type_of(urn)} {_name_of(urn)}: {message}" if urn else message)

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return "\n".join(lines[-20:])


def _resource_event(raw: Mapping[str, Any]) -> PulumiEvent | None:
    for key, done, failed in (
        ("resourcePreEvent", False, False),
        ("resOutputsEvent", True, False),
        ("resOpFailedEvent", True, True),
    ):
        if key in raw:
            metadata = raw[key]["metadata"]
            urn = metadata["urn"]
            return PulumiEvent(metadata["op"], _type_of(urn), _name_of(urn), done, failed)
    return None


def _type_of(urn: str) -> str:
    parts = urn.split("::")
    return parts[2].rsplit("$", 1)[-1] if len(parts) > 2 else urn


def _name_of(urn: str) -> str:
    return urn.split("::", 3)[-1]


def _plain_failure(command: str, diagnostics: list[str], log: Path | None = None) -> str:
    text = "\n".join(line for line in diagnostics if line)
    if _LOCKED in text:
        return (
            f"{command}: the stack's state is locked by another Pulumi run; wait for it to end, "
            "or, if that run was killed, end the rehearsal with `kueue-fleet rehearse --down`"
        )
    where = f"\n(its whole output is in {log})" if log else ""
    return f"{command} failed:\n{text}{where}"


def pulumi_environment(
    paths: RehearsalPaths, base: Mapping[str, str], path_entries: list[Path], extra: Mapping[str, str]
) -> dict[str, str]:
    """The environment of every pulumi process of a rehearsal.

    It shares nothing with the user's Pulumi login, kubeconfig or cloud credentials, so none can be used by mistake.
    """
    hidden = ("PULUMI_", "KUBECONFIG", "GOOGLE_", "CLOUDSDK_", "GCLOUD_", "HELM_")
    environment = {key: value for key, value in base.items() if not key.startswith(hidden)}
    if not paths.passphrase.exists():
        paths.passphrase.touch(mode=0o600)
        paths.passphrase.write_text(secrets.token_urlsafe(32))
    environment |= {
        "PATH": ":".join([*(str(entry) for entry in path_entries), base.get("PATH", "/usr/bin:/bin")]),
        "PULUMI_BACKEND_URL": f"file://{paths.pulumi_backend}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(paths.passphrase),
        "PULUMI_HOME": str(paths.pulumi_home),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "1",
        "PULUMI_DEBUG_COMMANDS": "true",  # else --event-log is not known
    }
    return environment | dict(extra)
