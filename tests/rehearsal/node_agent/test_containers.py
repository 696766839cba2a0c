"""Containers as real processes of this machine, without an API server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from kueue_fleet.kube.answers import ApiError
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi
from kueue_rehearsal.node_agent import containers, status
from kueue_rehearsal.node_agent.addresses import ClaimedAddress, claim_address
from kueue_rehearsal.node_agent.containers import Container, ContainerHost, PodNode
from kueue_rehearsal.node_agent.mounts import SERVICE_ACCOUNT_PATH, PodVolumes
from kueue_rehearsal.node_agent.pods import HostFacts, Source
from kueue_rehearsal.node_agent.programs import CertificateNeed, Program, default_programs
from kueue_rehearsal.node_agent.volumes import VolumeFile, write_volume
from kueue_rehearsal.paths import RehearsalPaths
from kueue_rehearsal.processes.child_process import start_process

WAIT_SECONDS = 10.0
SERVE = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists("healthy") else 503)
        self.end_headers()
    def log_message(self, *args): pass
http.server.HTTPServer((os.environ["POD_IP"], 8081), Handler).serve_forever()
"""


class Pod:
    """A pod's surroundings: its address, its folder, and what its containers said."""

    def __init__(self, folder: Path, address: ClaimedAddress, client: aiohttp.ClientSession) -> None:
        self.folder = folder
        self.address = address
        self.client = client
        self.changed = asyncio.Event()
        self.certificates: list[CertificateNeed] = []
        self.google_account = ""
        self.outage: ApiError | None = None
        """What the API server answers."""
        self.running: list[tuple[Container, asyncio.Task[int]]] = []

    def start(
        self, code: str, policy: str = "Always", programs: Mapping[str, Program] | None = None, **fields: Any
    ) -> Container:
        spec: dict[str, Any] = {"name": "main", "image": "test/python:1", **fields}
        spec.setdefault("env", [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}])
        pod = {
            "metadata": {"name": "p", "namespace": "team", "uid": "u"},
            "spec": {
                "containers": [spec],
                "terminationGracePeriodSeconds": 1,
                "volumes": [{"name": name} for name in ("account", "config", "scratch")],
            },
        }
        facts = HostFacts(self.address.ip, "127.0.0.1", "system-0")
        server = SimpleNamespace(server="https://127.0.0.1:1", ca_file=self.folder / "ca.crt")
        node = PodNode(
            api=cast("ControlPlaneApi", server),
            name=facts.node_name,
            ip=facts.host_ip,
            programs=programs or {"test/python": Program((sys.executable, "-c", code))},
            spawn=start_process,
            client=self.client,
            ensure_certificate=self._ensure_certificate,
        )
        volumes = PodVolumes(node.api, pod, facts, self.folder / "volumes")
        volumes.problem = None
        host = ContainerHost(node, pod, facts, volumes, self.folder, self._fetch, self._google_account)
        container = Container(host, spec, policy, self.changed.set)
        self.running.append((container, asyncio.create_task(container.run())))
        return container

    async def _fetch(self, source: Source) -> Mapping[str, bytes] | None:
        return {"k": b"from the API"} if source.name == "there" else None

    async def _google_account(self) -> str:
        if self.outage is not None:
            raise self.outage
        return self.google_account

    async def _ensure_certificate(self, _: str, need: CertificateNeed) -> None:
        self.certificates.append(need)

    async def until(self, holds: Any) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    @property
    def root(self) -> Path:
        return self.folder / "containers" / "main"

    def log(self) -> str:
        return (self.folder / "main.log").read_text()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the probes are in the tests."""
    monkeypatch.setattr(containers, "EAGER_SECONDS", 0.05)
    monkeypatch.setattr(containers, "_CONFIG_RETRY_SECONDS", 0.1)
    monkeypatch.setattr(status, "BACKOFF_FIRST_SECONDS", 0.25)


@pytest.fixture
async def pod(tmp_path: Path) -> AsyncIterator[Pod]:
    address = claim_address(str(tmp_path))
    async with aiohttp.ClientSession() as client:
        pod = Pod(tmp_path, address, client)
        yield pod
        for container, task in pod.running:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await container.stop(0.2)
    address.release()


async def test_a_container_that_ends_while_the_api_server_is_away_starts_again_when_it_is_back(pod: Pod) -> None:
    container = pod.start("import os, time\nwhile not os.path.exists('over'): time.sleep(0.05)\nos.remove('over')")
    await pod.until(lambda: container.state.running_since is not None)
    pod.outage = ApiError(0, "", "GET /api failed: Cannot connect to host")
    (pod.root / "over").touch()
    await pod.until(lambda: container.state.waiting_for == "RunContainerError")
    assert "Cannot connect to host" in container.state.waiting_message
    pod.outage = None
    await pod.until(lambda: container.state.running_since is not None)


async def test_arguments_environment_and_files_reach_the_process(pod: Pod) -> None:
    write_volume(pod.folder / "volumes" / "config", {"app.txt": VolumeFile(b"content")})
    write_volume(pod.folder / "volumes" / "account", {"token": VolumeFile(b"T", 0o600)})
    code = (
        "import os, sys; file = sys.argv[1].removeprefix('--config='); "
        "print(sys.argv[1], open(file).read(), os.environ['NOTE'], os.environ['KUBECONFIG'], os.getcwd())"
    )
    container = pod.start(
        code,
        policy="Never",
        args=["--config=$(FILE)"],
        env=[
            {"name": "FILE", "value": "/etc/app.txt"},
            {"name": "NOTE", "valueFrom": {"configMapKeyRef": {"name": "there", "key": "k"}}},
        ],
        volumeMounts=[
            {"name": "config", "mountPath": "/etc/app.txt", "subPath": "app.txt"},
            {"name": "account", "mountPath": SERVICE_ACCOUNT_PATH},
        ],
    )
    assert await pod.running[0][1] == 0
    root, kubeconfig = pod.root, pod.folder / "kubeconfig"
    assert pod.log() == f"--config={root}/etc/app.txt content from the API {kubeconfig} {root}\n"
    assert f"tokenFile: {root}{SERVICE_ACCOUNT_PATH}/token" in kubeconfig.read_text()
    assert (kubeconfig.stat().st_mode & 0o777, pod.folder.joinpath("volumes").stat().st_mode & 0o777) == (0o600, 0o700)
    assert container.state.terminated is not None
    assert container.state.terminated.reason == "Completed"


async def test_a_pod_without_a_service_account_mount_gets_no_credential(pod: Pod) -> None:
    pod.start("import os; print('KUBECONFIG' in os.environ)", policy="Never")
    await pod.running[0][1]
    assert pod.log() == "False\n"


async def test_a_crashing_container_is_restarted_with_growing_delays(pod: Pod) -> None:
    container = pod.start("raise SystemExit(3)")
    await pod.until(lambda: container.state.waiting_reason == "CrashLoopBackOff" and not container.state.terminated)
    assert container.state.waiting_message == "back-off 0.25s restarting failed container=main"
    assert container.state.restart_count == 1
    assert container.state.last is not None
    assert container.state.last.exit_code == 3
    await pod.until(lambda: container.state.restart_count == 2)


async def test_a_missing_config_map_is_shown_and_waited_for(pod: Pod) -> None:
    environment = [{"name": "K", "valueFrom": {"configMapKeyRef": {"name": "gone", "key": "k"}}}]
    container = pod.start("pass", env=environment)
    await pod.until(lambda: container.state.waiting_reason == "CreateContainerConfigError")
    assert container.state.waiting_message == 'configmap "gone" not found'


async def test_an_unknown_image_is_shown_as_one_that_cannot_be_pulled(pod: Pod) -> None:
    container = pod.start("pass", image="nginx:1")
    await pod.until(lambda: container.state.waiting_reason == "ErrImagePull")
    assert container.state.waiting_message.startswith("no program on this machine stands in for image nginx:1")


async def test_a_program_that_would_listen_everywhere_is_not_started(pod: Pod) -> None:
    programs = default_programs(lambda name: Path(sys.executable), RehearsalPaths(pod.folder))
    container = pod.start("", programs=programs, image="registry.k8s.io/kueue/kueue:1", args=["--zap-log-level=2"])
    await pod.until(lambda: container.state.waiting_reason == "CreateContainerConfigError")
    assert "would listen on every address of this machine" in container.state.waiting_message
    assert not (pod.folder / "main.log").exists()


async def test_a_container_knows_as_which_google_account_its_pod_acts(pod: Pod) -> None:
    pod.google_account = "multikueue-atlas@my-project.iam.gserviceaccount.com"
    pod.start("import os; print(os.environ['KUEUE_FLEET_GOOGLE_ACCOUNT'], flush=True)")
    await pod.until(lambda: (pod.folder / "main.log").exists() and pod.google_account in pod.log())


async def test_a_known_configuration_is_replaced_and_the_mounted_file_left_alone(pod: Pod) -> None:
    declared = b"apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\n"
    write_volume(pod.folder / "volumes" / "config", {"c.yaml": VolumeFile(declared)})
    programs = {
        "jobset/jobset": Program(
            (sys.executable, "-c", "import sys; print(open(sys.argv[1][9:]).read())"), "config.jobset.x-k8s.io"
        )
    }
    pod.start(
        "",
        policy="Never",
        programs=programs,
        image="jobset/jobset",
        args=["--config=/c.yaml"],
        volumeMounts=[{"name": "config", "mountPath": "/c.yaml", "subPath": "c.yaml"}],
    )
    assert await pod.running[0][1] == 0
    assert f"healthProbeBindAddress: {pod.address.ip}:8081" in pod.log()
    assert (pod.root / "c.yaml").read_bytes() == declared
    assert pod.certificates == [CertificateNeed("jobset-webhook-service", "jobset-webhook-server-cert")]


async def test_readiness_comes_as_soon_as_the_probe_succeeds_and_goes_after_its_failures(pod: Pod) -> None:
    probe = {"httpGet": {"path": "/readyz", "port": 8081}, "initialDelaySeconds": 60, "periodSeconds": 0.2}
    container = pod.start(SERVE, readinessProbe={**probe, "failureThreshold": 1})
    await pod.until(lambda: container.state.running_since is not None)
    await asyncio.sleep(0.3)
    assert not container.state.ready
    (pod.root / "healthy").touch()
    await pod.until(lambda: container.state.ready)
    (pod.root / "healthy").unlink()
    await pod.until(lambda: not container.state.ready)
    assert container.state.restart_count == 0


async def test_a_failed_liveness_probe_restarts_the_container(pod: Pod) -> None:
    probe = {"tcpSocket": {"port": 8081}, "periodSeconds": 0.2, "failureThreshold": 1, "initialDelaySeconds": 0.2}
    container = pod.start("import time; time.sleep(60)", livenessProbe=probe)
    await pod.until(lambda: container.state.restart_count == 1)
    assert container.state.last is not None
    assert container.state.last.signal == 15


async def test_a_startup_probe_holds_back_the_others(pod: Pod) -> None:
    probe = {"httpGet": {"path": "/", "port": 8081}, "periodSeconds": 0.2, "failureThreshold": 30}
    container = pod.start(SERVE, startupProbe=probe)
    await pod.until(lambda: container.state.running_since is not None)
    assert not container.state.started
    (pod.root / "healthy").touch()
    await pod.until(lambda: container.state.ready)


async def test_stop_is_a_term_then_a_kill_after_the_grace_period(pod: Pod) -> None:
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: print('term', flush=True)); "
        "print('up', flush=True); [time.sleep(0.1) for _ in range(1000)]"
    )
    container = pod.start(code)
    await pod.until(lambda: container.state.running_since is not None)
    async with asyncio.timeout(WAIT_SECONDS):
        while "up" not in pod.log():
            await asyncio.sleep(0.05)
    pod.running[0][1].cancel()
    await asyncio.gather(pod.running[0][1], return_exceptions=True)
    await container.stop(0.5)
    assert pod.log() == "up\nterm\n"
    assert container.state.terminated is not None
    assert container.state.terminated.signal == 9
    pid = int(container.state.container_id.removeprefix("process://"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_program_without_a_configuration_is_told_its_place_last(pod: Pod) -> None:
    program = Program(
        (sys.executable, "-c", "import os, sys; print(sys.argv[1:], os.environ['HTTP_PROXY'], flush=True)"),
        arguments=("--metrics-addr={pod_ip}:8080", "--leader-election-namespace={namespace}"),
        environment={"HTTP_PROXY": "http://{host_ip}:1"},
    )
    pod.start("", "Never", programs={"kuberay/operator": program}, image="quay.io/kuberay/operator:v1", args=["--a"])
    await pod.until(lambda: (pod.folder / "main.log").exists() and pod.log())
    arguments = ["--a", f"--metrics-addr={pod.address.ip}:8080", "--leader-election-namespace=team"]
    assert pod.log() == f"{arguments} http://127.0.0.1:1\n"


async def test_probes_that_fail_in_themselves_end_the_wait_for_the_process(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(client: aiohttp.ClientSession, probe: object) -> bool:
        raise ValueError("not an answer")

    monkeypatch.setattr(containers, "run_probe", broken)
    probe = {"tcpSocket": {"port": 8081}}
    container = pod.start("import time; time.sleep(60)", readinessProbe=probe)
    [(_, run)] = pod.running
    with pytest.raises(ExceptionGroup):
        await asyncio.wait_for(run, WAIT_SECONDS)
    await container.stop(0)
