"""The DWS stack in a rehearsal, phase by phase, and its peer: the same charts and objects put there by hand.

By hand is what a shell script does: `helm upgrade --install` on four clusters at once, then every rendered object,
applied in order. What `pulumi up` costs more buys state, previews and a destroy.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes import config, dynamic

from job_files import jobs_in
from kueue_fleet.fleet_file import FleetSpec, kueue_helm_values, parse_fleet_text
from kueue_fleet.fleet_file.model.kueue_pods import kueue_priority_class
from kueue_fleet.objects import render_fleet
from kueue_rehearsal.kubeconfig import rehearsal_kubeconfig, write_kubeconfig
from kueue_rehearsal.paths import RehearsalPaths
from kueue_rehearsal.processes.supervisor_client import start_supervisor
from kueue_rehearsal.session import Session

ROOT = Path(__file__).parents[2]
STACK = "dws-multikueue"


class Stopwatch:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the block."""
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began


def measure_rehearsal() -> tuple[dict[str, float], dict[str, float]]:
    """Run the stack with its jobs; returns seconds by phase, and MiB."""
    session = Session.for_stack(STACK, ROOT)
    fleet = parse_fleet_text(session.stack_file.read_text(), source=str(session.stack_file))
    jobs = jobs_in(ROOT / "examples" / STACK / "jobs.yaml")
    watch = Stopwatch()
    began = time.perf_counter()
    with session.exclusive():
        session.prepare_engines(lambda text: print(text, end="\r"))
        with session.running(keep=False):
            session.stand_ins()
            with watch.phase("pulumi up"):
                list(session.pulumi().up())
            session.write_kubeconfig(fleet)
            for views in session.run_jobs(fleet, jobs, 180):
                if "first job admitted" not in watch.seconds and any(view.cluster for view in views):
                    watch.seconds["first job admitted"] = time.perf_counter() - began
            watch.seconds["all jobs settled"] = time.perf_counter() - began
            usage = session.usage()
            with watch.phase("second pulumi up"):
                list(session.pulumi().up())
            with watch.phase("pulumi destroy"):
                list(session.pulumi().destroy())
    memory = {"control planes and Kueue": usage.control_planes_mib, "everything": usage.all_mib}
    return watch.seconds, {name: float(mib) for name, mib in memory.items()}


def measure_by_hand() -> dict[str, float]:
    """The peer: four clusters of the supervisor, the same charts by helm, the same objects by server-side apply."""
    session = Session.for_stack(STACK, ROOT)
    fleet = parse_fleet_text(session.stack_file.read_text(), source=str(session.stack_file))
    session.prepare_engines(lambda text: None)
    watch = Stopwatch()
    with tempfile.TemporaryDirectory(prefix="kf") as folder:
        paths = RehearsalPaths(Path(folder) / "lab")
        with start_supervisor(paths) as supervisor, watch.phase("by hand"):

            def bring_up(cluster: str) -> dict[str, Any]:
                region = fleet.cluster(cluster).region
                return supervisor.client.put_cluster(cluster, project=fleet.project, location=region, autopilot=True)

            with ThreadPoolExecutor() as pool:
                result = list(pool.map(bring_up, fleet.cluster_names))
                token = paths.admin_token.read_text().strip()
                write_kubeconfig(paths.kubeconfig, rehearsal_kubeconfig(result, token, fleet.cluster_names[0]))
                list(pool.map(lambda name: _install(session, fleet, paths.kubeconfig, name), fleet.cluster_names))
    return watch.seconds


def _install(session: Session, fleet: FleetSpec, kubeconfig: Path, cluster: str) -> None:
    result = config.new_client_from_config(str(kubeconfig), context=cluster)  # type: ignore[no-untyped-call]
    api = dynamic.DynamicClient(result)  # type: ignore[no-untyped-call]

    def apply(manifest: Mapping[str, Any]) -> None:
        resource = api.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
        api.server_side_apply(  # type: ignore[no-untyped-call]
            resource,
            body=manifest,
            name=manifest["metadata"]["name"],
            namespace=manifest["metadata"].get("namespace"),
            field_manager="by-hand",
        )

    apply(kueue_priority_class())
    charts: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
        ("jobset", "jobset-chart", {"image": {"tag": f"v{fleet.job_set.version}"}}),
        ("kueue", "kueue-chart", kueue_helm_values(fleet, cluster)),
    )
    for name, chart, values in charts:
        subprocess.run(
            [
                session.engines.binary("helm"), "upgrade", "--install", name, session.engines.asset(chart), "--wait",
                "--create-namespace", "--namespace", f"{name}-system", "--kubeconfig", kubeconfig,
                "--kube-context", cluster, "--values", "-",
            ],
            input=yaml.safe_dump(dict(values)),
            text=True,
            check=True,
            capture_output=True,
        )  # fmt: skip
    for manifest in render_fleet(fleet)[cluster]:
        apply(manifest)
