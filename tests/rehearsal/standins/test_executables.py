"""Launchers: written where the real part is absent, and light enough for a fleet's worth of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.standins import executables
from kueue_rehearsal.standins.executables import (
    PARTS,
    STAND_IN_GROUP,
    find_real_parts,
    install_standins,
    missing_parts,
)

ALL = [part.executable for part in PARTS]
STOOD_IN_FOR = [name for name in ALL if name != "pulumi-resource-kubernetes"]
ALWAYS = ["pulumi-resource-gcp", "pulumi-resource-docker-build", "gke-gcloud-auth-plugin"]


def _executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def _installed(folder: Path, present: dict[str, Path] | None = None) -> list[str]:
    return [part.executable for part in install_standins(folder, Path(sys.executable), present=present or {})]


def test_every_part_but_the_engine_is_replaced_when_none_is_there(tmp_path: Path) -> None:
    assert _installed(tmp_path) == STOOD_IN_FOR
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(STOOD_IN_FOR)
    assert all(os.access(path, os.X_OK) for path in tmp_path.iterdir())


def test_a_real_part_is_used_wherever_it_is_installed_except_google_clouds(tmp_path: Path) -> None:
    _installed(tmp_path / "bin")
    real = {name: _executable(tmp_path / "real" / name) for name in ALL}
    assert _installed(tmp_path / "bin", real) == ALWAYS
    links = {path.name: path.readlink() for path in (tmp_path / "bin").iterdir() if path.is_symlink()}
    assert links == {name: real[name] for name in ALL[:3]}
    _installed(tmp_path / "bin")
    assert not Path(tmp_path, "bin", "pulumi-language-python").is_symlink()
    assert real["pulumi-language-python"].read_text(encoding="utf-8") == "#!/bin/sh\n"


def test_without_the_offline_distribution_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert missing_parts({}) == []
    monkeypatch.setattr(executables, "entry_points", lambda group: [] if group == STAND_IN_GROUP else None)
    assert missing_parts({}) == [
        "pulumi-language-python: Pulumi's Python language host is not installed; "
        "install Pulumi (https://www.pulumi.com/docs/install/), which brings it, "
        "or pip install ./offline for the stand-in",
    ]
    with pytest.raises(RehearsalError, match="pulumi-language-python"):
        _installed(tmp_path / "bin")
    assert not (tmp_path / "bin").exists()
    real = {name: _executable(tmp_path / "real" / name) for name in ALL if "policy" not in name}
    assert missing_parts(real) == []
    assert _installed(tmp_path / "bin", real) == ALWAYS
    assert not Path(tmp_path, "bin", "pulumi-analyzer-policy-python").exists()


def test_real_parts_are_found_on_path_and_among_pulumis_plugins(tmp_path: Path) -> None:
    on_path = _executable(tmp_path / "bin" / "pulumi-language-python")
    plugin = _executable(tmp_path / "home/plugins/resource-kubernetes-v4.34.2/pulumi-resource-kubernetes")
    result = find_real_parts(str(tmp_path / "bin"), tmp_path / "home")
    assert result == {"pulumi-language-python": on_path, "pulumi-resource-kubernetes": plugin}


def test_a_stand_in_is_not_taken_for_the_real_part(tmp_path: Path) -> None:
    _installed(tmp_path / "bin")
    assert find_real_parts(str(tmp_path / "bin"), tmp_path / "home") == {}


def test_a_launcher_says_what_it_is_and_names_its_interpreter(tmp_path: Path) -> None:
    _installed(tmp_path)
    text = Path(tmp_path, "pulumi-resource-gcp").read_text(encoding="utf-8")
    assert "stand-in for Pulumi's Google Cloud provider" in text
    assert f"exec {sys.executable} -I -S " in text


@pytest.mark.parametrize("executable", ["pulumi-language-python", "pulumi-resource-gcp"])
def test_a_plugin_imports_no_more_than_it_needs(executable: str, tmp_path: Path) -> None:
    _installed(tmp_path)
    launcher = Path(tmp_path, executable).read_text(encoding="utf-8").splitlines()[-1]
    bootstrap, import_root, site_packages, module = launcher.split()[4:8]
    code = (
        "import sys, runpy\n"
        f"runpy.run_path({bootstrap!r})['put_import_path']({import_root!r}, {site_packages!r})\n"
        f"import {module}\n"
        "print(' '.join(sys.modules))\n"
    )
    result = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    imported = set(result.stdout.split())
    assert "pulumi.runtime.proto.provider_pb2" in imported or executable == "pulumi-language-python"
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
    result = subprocess.run(
        [tmp_path / "gke-gcloud-auth-plugin", "--version"], capture_output=True, text=True, check=True, env={}
    )
    assert "+standin" in result.stdout
