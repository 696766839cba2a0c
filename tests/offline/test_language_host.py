"""The language host: which Python, which plugins; running programs is tried by the real pulumi in tests/engines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from pulumi.runtime.proto import language_pb2

from kueue_fleet_offline.language_host import (
    LanguageHost,
    project_python,
    required_plugins,
    site_packages_of,
)
from kueue_rehearsal.standins.plugin_errors import PluginError


def test_a_project_without_its_own_environment_uses_the_rehearsals(tmp_path: Path) -> None:
    assert project_python({}, str(tmp_path)) == sys.executable
    assert project_python({"toolchain": "pip"}, str(tmp_path)) == sys.executable


@pytest.mark.parametrize("options", [{"virtualenv": "venv"}, {"toolchain": "uv"}, {"toolchain": "poetry"}])
def test_a_projects_own_environment_is_used_and_must_be_there(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(PluginError, match=r"runtime\.options\.virtualenv: no Python in"):
        project_python(options, str(tmp_path))
    python = tmp_path / options.get("virtualenv", ".venv") / "bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert project_python(options, str(tmp_path)) == str(python)


def test_a_type_checker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="typechecker"):
        project_python({"typechecker": "mypy"}, str(tmp_path))


def test_the_installed_sdks_name_the_plugins_that_are_needed(tmp_path: Path) -> None:
    for name, described in {
        "pulumi_x": {"resource": True, "name": "x", "version": "1.0.0"},
        "pulumi_no": {"resource": False},
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        Path(folder, "pulumi-plugin.json").write_text(json.dumps(described), encoding="utf-8")
    assert [plugin["name"] for plugin in required_plugins([tmp_path])] == ["x"]
    names = {plugin["name"] for plugin in required_plugins(site_packages_of(sys.executable))}
    assert {"gcp", "kubernetes"} <= names


def test_an_environment_that_is_there_is_used_as_it_is() -> None:
    host = LanguageHost("3.0.0", "")
    request = language_pb2.InstallDependenciesRequest(info=language_pb2.ProgramInfo(root_directory="/"))
    (output,) = host.InstallDependencies(request, None)
    assert f"{sys.executable} is used as it is, nothing is installed" in output.stdout.decode()
