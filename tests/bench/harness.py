"""Kueue's own performance harness, its baseline set, run here: built once from Kueue's Go module, which carries it.

Where there is no Go, no etcd or no kube-apiserver it does not run, and `RECORDED` has what it measured when it did.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.distributions import Changing, exponential
from kueue_rehearsal.engines import ENGINES, EngineCache, Engines, find_engines
from kueue_rehearsal.engines.toolchain import GoToolchain, find_go
from kueue_rehearsal.paths import RehearsalError, engines_dir
from kueue_rehearsal.processes.child_process import die_with_parent
from tests.bench.generator import Creation
from tests.bench.harness_delays import measure_delays
from tests.bench.harness_log import class_of, read_log
from tests.bench.simulation import SETS, quantiles

RECORDED: Final = Path(__file__).parent / "harness_recorded.json"
DRAWN: Final = ("cycle", "write", "start", "release", "stop")
"""The delays that are drawn, other ones as time passes."""
_TIMEOUT: Final = "45m"
_PROGRAMS: Final = ("runner", "minimalkueue")


@dataclass(frozen=True, slots=True)
class HarnessRun:
    """What the harness measured. Seconds and MiB of its Kueue; `load` is the machine's mean load.

    `means` and `quantiles` (median and 90th percentile) are seconds to admission by class.
    """

    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    means: dict[str, float]
    quantiles: dict[str, tuple[float, float]]
    load: float
    delays: Delays
    creation: Creation
    when: str = "this run"


def recorded() -> HarnessRun:
    """What it measured once, on the machine that the file names; delays by their means in each window."""
    data = json.loads(RECORDED.read_text())
    delays = data["delays"]
    drawn = {name: Changing(delays["window"], tuple(map(exponential, delays[name]))) for name in DRAWN}
    return HarnessRun(
        wall_seconds=data["wallSeconds"],
        cpu_seconds=data["cpuSeconds"],
        peak_mib=data["peakMiB"],
        means=data["means"],
        quantiles={label: (median, tenth) for label, (median, tenth) in data["quantiles"].items()},
        load=data["load"],
        delays=Delays(delays["decision"], delays["burst"], workers=delays["workers"], **drawn),
        creation=Creation(**data["creation"]),
        when=f"recorded {data['when'][:10]}",
    )


def run_harness() -> HarnessRun:
    """Run the baseline set, which takes about seven minutes. Raises RehearsalError where it cannot run."""
    cache = EngineCache(engines_dir())
    engines = find_engines(cache)
    go = find_go(os.environ)
    if go is None:
        raise RehearsalError("Kueue's harness: needs Go on PATH; install Go 1.26 or newer")
    module = _module(go)
    programs = _build(cache, go, module)
    with tempfile.TemporaryDirectory(prefix="kf-harness-") as folder:
        return _run(Path(folder), programs, module, engines)


def _module(go: GoToolchain) -> Path:
    """The folder of Kueue's module, in the version that the rehearsal uses."""
    engine = next(engine for engine in ENGINES if engine.name == "kueue")
    result = subprocess.run(
        [go.executable, "mod", "download", "-json", f"{engine.module}@{engine.version}"],
        env=dict(go.environment), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode != 0:
        raise RehearsalError(f"Kueue's harness: its module cannot be had: {result.stdout or result.stderr}")
    return Path(json.loads(result.stdout)["Dir"])


def _build(cache: EngineCache, go: GoToolchain, module: Path) -> Path:
    """The folder with both programs."""
    key = module.name.rpartition("@")[2]

    def fill(folder: Path) -> None:
        packages = [f"./test/performance/scheduler/{name}" for name in _PROGRAMS]
        # The module's own go.mod has what the harness needs beyond Kueue.
        result = subprocess.run(
            [go.executable, "build", "-mod=mod", "-o", f"{folder}/", *packages],
            cwd=module, env=dict(go.environment), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if result.returncode != 0:
            raise RehearsalError(f"Kueue's harness: go build failed: {result.stderr[-400:]}")

    with cache.locked("kueue-harness", waiting=lambda: None):
        return cache.entry("kueue-harness", key) or cache.store("kueue-harness", key, fill)


def _run(folder: Path, programs: Path, module: Path, engines: Engines) -> HarnessRun:
    assets = folder / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver"):
        (assets / name).symlink_to(engines.binary(name))
    (assets / "kubectl").touch()
    scheduler = module / "test" / "performance" / "scheduler"
    output = folder / "out"
    output.mkdir()
    loads = []
    with (folder / "runner.log").open("w") as log:
        process = subprocess.Popen(
            [
                programs / "runner", "--o", output, "--crds", module / "config" / "components" / "crd" / "bases",
                "--generatorConfig", scheduler / "configs" / "baseline" / "generator.yaml",
                "--minimalKueue", programs / "minimalkueue", "--timeout", _TIMEOUT, "--withLogs", "--logToFile",
            ],
            env={**os.environ, "PROJECT_DIR": str(module / "config"), "KUBEBUILDER_ASSETS": str(assets)},
            stdout=log, stderr=subprocess.STDOUT, preexec_fn=die_with_parent(),
        )  # fmt: skip
        try:
            while process.poll() is None:
                loads.append(os.getloadavg()[0])
                time.sleep(5)
        finally:
            process.terminate()
            process.wait()
    if process.returncode != 0:
        raise RehearsalError(f"Kueue's harness: failed: {(folder / 'runner.log').read_text()[-400:]}")
    return _read(output, sum(loads) / len(loads))


def _read(output: Path, load: float) -> HarnessRun:
    summary: dict[str, Any] = yaml.safe_load((output / "summary.yaml").read_text())["workloadClasses"]
    stats: dict[str, int] = yaml.safe_load((output / "minimalkueue.stats.yaml").read_text())
    run_seconds = {label: numbers[2] / 1000 for label, numbers in SETS["baseline"][2].items()}
    with (output / "minimalkueue.err.log").open() as lines:
        log = read_log(lines)
    delays, creation = measure_delays(log, run_seconds)
    waits: defaultdict[str, list[float]] = defaultdict(list)
    for workload, admitted in log.admitted.items():
        waits[class_of(workload)].append(admitted - log.created[workload])
    return HarnessRun(
        wall_seconds=stats["wallMs"] / 1000,
        cpu_seconds=(stats["userMs"] + stats["sysMs"]) / 1000,
        peak_mib=stats["maxrss"] / 1024,
        means={name: of_class["averageTimeToAdmissionMs"] / 1000 for name, of_class in sorted(summary.items())},
        quantiles={label: quantiles(seconds) for label, seconds in sorted(waits.items())},
        load=round(load, 1),
        delays=delays,
        creation=creation,
    )
