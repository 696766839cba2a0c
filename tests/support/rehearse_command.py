"""The `kueue-fleet rehearse` command as a process, on a small project of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from forked_python import forked_python
from kueue_rehearsal.jobs.clients import ClusterClients
from kueue_rehearsal.paths import RehearsalPaths
from kueue_rehearsal.processes.supervisor_client import SupervisorClient
from kueue_rehearsal.state_folder import supervisor
from one_cluster import wait_until

ROOT = Path(__file__).parents[2]
STACK = "tiny"
CLUSTER = "solo"
WAIT_SECONDS = 400.0
SOON_SECONDS = 240.0
"""An end within some seconds, on a machine that others use too; Pulumi would wait for ten minutes."""


def fleet(cluster: str = CLUSTER, gpus: int = 4) -> dict[str, Any]:
    quotas = {"nvidia.com/gpu": gpus, "cpu": 16, "memory": "64Gi", "ephemeral-storage": "100Gi"}
    flavor = {"name": "l4", "resources": [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]}
    return {
        "name": "tiny",
        "project": "my-gcp-project",
        "deletionProtection": False,
        "jobSet": {"enabled": False},
        "kueue": {"replicas": 1},
        "clusters": [{"name": cluster, "role": "standalone", "region": "us-east4"}],
        "flavors": [{"name": "l4", "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}],
        "clusterQueues": [
            {
                "name": "queue",
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": list(quotas), "flavors": [flavor]}],
            }
        ],
        "teams": [{"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "queue"}]}],
    }


def job(name: str, gpus: int = 1, seconds: int = 2, namespace: str = "team-a") -> dict[str, Any]:
    requests = {"cpu": 1, "memory": "1Gi", "ephemeral-storage": "1Gi", "nvidia.com/gpu": gpus}
    container = {"name": "main", "image": "busybox", "resources": {"requests": requests, "limits": requests}}
    nodes = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "generateName": f"{name}-",
            "namespace": namespace,
            "labels": {"kueue.x-k8s.io/queue-name": "gpu"},
        },
        "spec": {
            "suspend": True,
            "template": {
                "metadata": {"annotations": {"kueue-fleet.dev/run-seconds": str(seconds)}},
                "spec": {"restartPolicy": "Never", "nodeSelector": nodes, "containers": [container]},
            },
        },
    }


MORE = """
import pulumi_kubernetes as k8s

config = pulumi.Config("kueue-fleet")
(cluster,) = fleet.clusters.values()
inside = pulumi.ResourceOptions(provider=cluster.provider)


def pods(name, image):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": image}]}}
    return {"selector": {"matchLabels": labels}, "template": template}


"""
"""What a user writes after the program of docs/programs.md: `k8s`, `config`, `inside` and `pods`."""


def page_program() -> str:
    """The program of docs/programs.md, as it stands there."""
    program, *_ = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "programs.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert "Fleet.from_config(" in program
    return str(program)


COMMAND = "from kueue_fleet.cli import main; main()"


def forking_command() -> str:
    """COMMAND in a Python whose programs are forked; not for one that is killed meanwhile: see `forked_python`."""
    python = forked_python()
    return f"import sys; sys.executable, sys.prefix = {str(python)!r}, {str(python.parents[1])!r}; {COMMAND}"


@dataclass(frozen=True)
class Ended:
    """How a command has ended."""

    code: int
    out: str
    err: str


class Command:
    """A running command, alone in its process group as in a terminal's foreground."""

    def __init__(self, program: str, arguments: list[str], folder: Path, environ: dict[str, str]) -> None:
        self._out, self._err = folder / f"{time.monotonic_ns()}.out", folder / f"{time.monotonic_ns()}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, "rehearse", *arguments],
                cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                # A shell starts background jobs, such as a CI's, with Ctrl-C ignored, and children inherit that.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip

    def until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not happened():
            assert self.process.poll() is None, f"it has ended before {what}: {self.end()}"
            assert time.monotonic() < deadline, f"not seen: {what}; {self._out.read_text()}"
            time.sleep(0.1)

    def until_said(self, text: str) -> None:
        self.until(lambda: text in self._out.read_text(), text)

    def interrupt(self) -> tuple[Ended, float]:
        """Ctrl-C in a terminal; how it ended and after how many seconds."""
        began = time.monotonic()
        os.killpg(self.process.pid, signal.SIGINT)
        return self.end(), time.monotonic() - began

    def kill(self) -> None:
        """As by `kill -9`, or for want of memory."""
        self.process.kill()
        self.process.wait()

    def end(self) -> Ended:
        code = self.process.wait(WAIT_SECONDS)
        return Ended(code, self._out.read_text(), self._err.read_text())


class Project:
    """A Pulumi project with a fleet of one cluster, and a state folder; `command`: in the place of the real one."""

    def __init__(self, folder: Path, state: Path, command: str = "", **environ: str) -> None:
        self.folder, self.state = folder, state
        self._command, self._run_to_the_end = command or COMMAND, command or forking_command()
        (folder / "stacks").mkdir(parents=True)
        settings = yaml.safe_load((ROOT / "Pulumi.yaml").read_text()) | {"main": str(ROOT / "stacks")}
        (folder / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
        self.environ = {key: value for key, value in os.environ.items() if not key.startswith("KUEUE_FLEET_STATE")}
        self.environ |= {"KUEUE_FLEET_STATE_DIR": str(state), "KUBECONFIG": "/nonexistent", **environ}

    def write(self, fleet: dict[str, Any] | None, stack: str = STACK, **more: str) -> None:
        """The stack's file; without a fleet, the program is to declare one."""
        there = {} if fleet is None else {"kueue-fleet:fleet": fleet}
        config = {"gcp:project": "my-gcp-project", **there, **more}
        (self.folder / "stacks" / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}))

    def add_to_program(self, more: str) -> None:
        """Have the program of the page declare MORE: Python, with `k8s`, and `inside` for what is in its cluster."""
        self.write_program(page_program() + MORE + more)

    def write_program(self, text: str) -> None:
        """Have a program of the project's own."""
        program = self.folder / "program"
        program.mkdir(exist_ok=True)
        (program / "__main__.py").write_text(text)
        settings = yaml.safe_load((self.folder / "Pulumi.yaml").read_text()) | {"main": "program"}
        settings["runtime"]["options"]["virtualenv"] = sys.prefix
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(settings))

    def write_jobs(self, *jobs: dict[str, Any], name: str = "jobs.yaml") -> Path:
        file = self.folder / name
        file.write_text(yaml.safe_dump_all(jobs))
        return file

    def start(self, *arguments: str | Path, how: str = "run", stack: str = STACK) -> Command:
        return self._begin(self._command, how, stack, arguments)

    def run(self, *arguments: str | Path, how: str = "run", stack: str = STACK) -> Ended:
        return self._begin(self._run_to_the_end, how, stack, arguments).end()

    def _begin(self, program: str, how: str, stack: str, arguments: Sequence[str | Path]) -> Command:
        return Command(program, [how, "--stack", stack, *map(str, arguments)], self.folder, self.environ)

    def paths(self, stack: str = STACK) -> RehearsalPaths:
        return RehearsalPaths(self.state / "rehearsals" / stack)

    def client(self, stack: str = STACK) -> SupervisorClient:
        return SupervisorClient(self.paths(stack).socket)

    def queue(self) -> dict[str, Any]:
        [result] = self._clients().list(CLUSTER, "kueue.x-k8s.io", "v1beta2", "clusterqueues")
        return result

    def jobs(self) -> list[dict[str, Any]]:
        return self._clients().list(CLUSTER, "batch", "v1", "jobs")

    def _clients(self) -> ClusterClients:
        return ClusterClients(self.paths().kubeconfig, [CLUSTER])

    def locks(self, stack: str = STACK) -> list[Path]:
        return list((self.paths(stack).pulumi_backend / ".pulumi" / "locks").rglob("*.json"))

    def processes(self, stack: str = STACK) -> list[str]:
        """What has to do with the rehearsal: by its command line, environment or current folder."""
        root, result = str(self.paths(stack).root), []
        for process in psutil.process_iter():
            try:
                known = [*process.cmdline(), *process.environ().values(), process.cwd()]
                if process.status() != psutil.STATUS_ZOMBIE and any(f"{root}/" in f"{item}/" for item in known):
                    result.append(" ".join(process.cmdline()) or process.name())
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return result

    def assert_gone(self, stack: str = STACK) -> None:
        def gone() -> bool:
            assert self.processes(stack) == []
            return True

        wait_until(gone)

    def left(self, stack: str = STACK) -> set[str]:
        """The files of the rehearsal that are no logs."""
        root = self.paths(stack).root
        files = [file for file in root.rglob("*") if not file.is_dir()]
        return {file.name for file in files if file.suffix != ".log" and not file.name.endswith(".events.json")}


def cluster_starts(command: Command, project: Project) -> None:
    """Wait for it."""
    command.until(lambda: project.locks() != [], "pulumi up begins")


def interrupt(command: Command, project: Project, stack: str = STACK) -> None:
    """Ctrl-C, which leaves nothing but logs."""
    ended, seconds = command.interrupt()
    assert ended.err == f"error: interrupted; everything is taken down, the logs are in {project.paths(stack).root}\n"
    assert ended.code == 130
    assert seconds < SOON_SECONDS
    project.assert_gone(stack)
    assert project.left(stack) == {"command.lock"}


@contextmanager
def project(folder: Path, state: Path, command: str = "", **environ: str) -> Iterator[Project]:
    """A project whose rehearsals are taken down at the end; see `Project`."""
    result = Project(folder, state, command, **environ)
    result.write(fleet())
    try:
        yield result
    finally:
        for stack in sorted(place.name for place in (state / "rehearsals").glob("*")):
            if supervisor(result.paths(stack)) is not None:
                result.run(how="down", stack=stack)
