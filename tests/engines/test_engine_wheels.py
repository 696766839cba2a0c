"""A wheel of a real engine: installed, it is found and runs where there is neither Go nor anything built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.engines.wheels import make_wheels
from kueue_rehearsal.paths import engines_dir
from tests.rehearsal.engines.test_wheels import install

ROOT = Path(__file__).parents[2]


def test_etcd_from_its_wheel_runs_without_go_and_without_a_cache(tmp_path: Path) -> None:
    cache = EngineCache(engines_dir())
    build_engines(cache, names=["etcd"])
    install(make_wheels(cache, ["etcd"], tmp_path / "wheels", os.environ), tmp_path / "site")
    environ = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{tmp_path / 'site'}:{ROOT / 'components'}",
        "KUEUE_FLEET_CACHE_DIR": str(tmp_path / "empty"),
    }
    command = [sys.executable, "-m", "kueue_rehearsal.engines", "etcd"]
    listed = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    row = next(line.split() for line in listed.splitlines() if line.startswith("etcd "))
    assert row[1:3] == ["v3.6.8", "wheel"]
    assert row[3].startswith(str(tmp_path / "site"))
    assert not (tmp_path / "empty").exists()
    output = subprocess.run([row[3], "--version"], capture_output=True, text=True, check=True).stdout
    assert output.startswith("etcd Version: 3.6.8\n")
