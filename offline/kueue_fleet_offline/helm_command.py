"""Runs the real `helm` for one command: credentials and values in private files, nothing of the user's is written.

Every command gets its own folder (0700) with the kubeconfig and the values (0600), removed when the command ends.
helm's caches go there too, unless the environment says where they are. A `helm` whose provider dies is ended with it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kueue_fleet.rehearsal.paths import HELM_VARIABLE
from kueue_fleet.rehearsal.private_files import write_private
from kueue_fleet.rehearsal.standins.plugin_errors import PluginError

CANCEL_POLL_SECONDS: Final = 0.2
"""How often a cancelled request is looked for while helm runs."""
INTERRUPT_GRACE_SECONDS: Final = 10
"""From the interruption of helm to its end by force."""
TAIL_CHARACTERS: Final = 2000
"""How much of helm's output an error shows."""
# Asks the kernel to end helm with this process, and then becomes helm: a signal handler would not survive a SIGKILL.
EXEC_WITH_PARENT: Final = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM)\n"
    "if os.getppid() != int(sys.argv[1]): sys.exit('the provider is gone')\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)
"""Python program that becomes helm, and ends with its parent."""
HOME_VARIABLES: Final = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
"""Environment variables with helm's own folders."""


class HelmError(PluginError):
    """helm said no; the text is its own, shortened at the front."""


def find_helm() -> str:
    """The helm to use: `KUEUE_FLEET_HELM`, else the one on PATH. Raises HelmError when there is none."""
    named = os.environ.get(HELM_VARIABLE)
    found = named if named and os.access(named, os.X_OK) else shutil.which("helm")
    if named and found != named:
        raise HelmError(f"{HELM_VARIABLE}={named} is not an executable; correct it")
    if not found:
        raise HelmError(f"helm is not on PATH; install helm 3 or set {HELM_VARIABLE} to its path")
    return str(Path(found).resolve())


@dataclass(frozen=True, slots=True)
class HelmCommand:
    """How helm is run for one cluster. `kubeconfig` is None for commands that need no cluster."""

    kubeconfig: Mapping[str, Any] | None
    context: str
    cluster: str
    stop: threading.Event

    def run(self, arguments: Sequence[str], values: Mapping[str, Any] | None = None) -> str:
        """helm's standard output. Raises HelmError with its last words when it fails or is cancelled."""
        helm = find_helm()
        with tempfile.TemporaryDirectory(prefix="kueue-fleet-helm-") as folder:
            command = [helm, *arguments]
            if values is not None:
                command += ["--values", _private_file(folder, "values.json", values)]
            if self.kubeconfig is not None:
                command += ["--kubeconfig", _private_file(folder, "kubeconfig.json", self._overridden())]
            environment = dict(os.environ)
            for variable in HOME_VARIABLES:
                environment.setdefault(variable, str(Path(folder, variable.lower())))
            return self._run(command, environment, folder)

    def _overridden(self) -> dict[str, Any]:
        config = dict(self.kubeconfig or {})
        if self.context:
            config["current-context"] = self.context
        if self.cluster:
            name = config.get("current-context")
            contexts = [dict(entry) for entry in config.get("contexts", [])]
            for entry in contexts:
                if entry.get("name") == name:
                    entry["context"] = {**entry.get("context", {}), "cluster": self.cluster}
            config["contexts"] = contexts
        return config

    def _run(self, command: list[str], environment: Mapping[str, str], folder: str) -> str:
        wrapped = [sys.executable, "-I", "-S", "-c", EXEC_WITH_PARENT, str(os.getpid()), *command]
        with Path(folder, "stdout").open("w+b") as output, Path(folder, "stderr").open("w+b") as errors:
            process = subprocess.Popen(wrapped, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
            cancelled = self._wait(process)
            output.seek(0)
            errors.seek(0)
            text = output.read().decode(errors="replace")
            complaint = errors.read().decode(errors="replace").strip()
        if cancelled:
            raise HelmError(f"helm {command[1]} was cancelled")
        if process.returncode:
            raise HelmError(f"helm {command[1]}: {complaint[-TAIL_CHARACTERS:] or f'exit code {process.returncode}'}")
        return text

    def _wait(self, process: subprocess.Popen[bytes]) -> bool:
        while True:
            try:
                process.wait(CANCEL_POLL_SECONDS)
                return False
            except subprocess.TimeoutExpired:
                if not self.stop.is_set():
                    continue
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(INTERRUPT_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            return True


def _private_file(folder: str, name: str, content: Any) -> str:
    path = Path(folder, name)
    write_private(path, json.dumps(content).encode())
    return str(path)
