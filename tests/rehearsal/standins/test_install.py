"""Launchers: written where the real part is absent, and light enough for a fleet's worth of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kueue_fleet.rehearsal.standins.install import STAND_INS, find_real_parts, install_standins

ALL = [part.executable for part in STAND_INS]


def _executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def _installed(folder: Path, present: dict[str, Path] | None = None) -> list[str]:
    return [part.executable for part in install_standins(folder, Path(sys.executable), present=present or {})]


def test_every_part_is_replaced_when_none_is_there(tmp_path: Path) -> None:
    assert _installed(tmp_path) == ALL
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(ALL)
    assert all(os.access(path, os.X_OK) for path in tmp_path.iterdir())


def test_a_real_part_is_left_in_charge_but_for_google_clouds(tmp_path: Path) -> None:
    _installed(tmp_path)
    real = {name: Path("/real") / name for name in ALL}
    assert _installed(tmp_path, real) == ["pulumi-resource-gcp", "gke-gcloud-auth-plugin"]
    assert not Path(tmp_path, "pulumi-language-python").exists()
    assert Path(tmp_path, "pulumi-resource-gcp").exists()


def test_real_parts_are_found_on_path_and_among_pulumis_plugins(tmp_path: Path) -> None:
    on_path = _executable(tmp_path / "bin" / "pulumi-language-python")
    plugin = _executable(tmp_path / "home/plugins/resource-kubernetes-v4.34.2/pulumi-resource-kubernetes")
    found = find_real_parts(str(tmp_path / "bin"), tmp_path / "home")
    assert found == {"pulumi-language-python": on_path, "pulumi-resource-kubernetes": plugin}


def test_a_stand_in_is_not_taken_for_the_real_part(tmp_path: Path) -> None:
    _installed(tmp_path / "bin")
    assert find_real_parts(str(tmp_path / "bin"), tmp_path / "home") == {}


def test_a_launcher_says_what_it_is_and_names_its_interpreter(tmp_path: Path) -> None:
    _installed(tmp_path)
    text = Path(tmp_path, "pulumi-resource-kubernetes").read_text(encoding="utf-8")
    assert "stand-in for Pulumi's Kubernetes provider" in text
    assert f"exec {sys.executable} -I -S " in text


@pytest.mark.parametrize("module", ["kubernetes_provider", "gcp_provider", "language_host"])
def test_a_plugin_imports_no_more_than_it_needs(module: str, tmp_path: Path) -> None:
    _installed(tmp_path)
    name = {"kubernetes_provider": ALL[2], "gcp_provider": ALL[3], "language_host": ALL[0]}[module]
    launcher = Path(tmp_path, name).read_text(encoding="utf-8").splitlines()[-1]
    bootstrap, site_packages = launcher.split()[4:6]
    code = (
        "import sys, runpy\n"
        f"scope = runpy.run_path({bootstrap!r})\n"
        f"sys.path += [str(scope['IMPORT_ROOT']), {site_packages!r}]\n"
        f"scope['put_bare_pulumi_protocol'](scope['Path']({site_packages!r}))\n"
        f"import kueue_fleet.rehearsal.standins.{module}\n"
        "print(' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "pulumi.runtime.proto.provider_pb2" in imported or module == "language_host"
    assert not imported & {
        "pulumi.resource",
        "pulumi_gcp",
        "pulumi_kubernetes",
        "kubernetes",
        "pydantic",
        "yaml",
        "aiohttp",
    }


def test_a_launcher_of_the_credential_plugin_runs(tmp_path: Path) -> None:
    _installed(tmp_path)
    done = subprocess.run(
        [tmp_path / "gke-gcloud-auth-plugin", "--version"], capture_output=True, text=True, check=True, env={}
    )
    assert "+standin" in done.stdout
