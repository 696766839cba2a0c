"""Writes the stand-ins as executables, only for the parts whose real counterpart is absent.

The launchers name the interpreter by its absolute path and start it isolated (`-I -S`): a fleet starts up to 21
providers, and each costs what it imports.

What stands in for Google Cloud is in this package. What stands in for the parts that every user of Pulumi installs
comes with distributions of its own (`offline/` in this repository), which name their modules as entry points.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kueue_rehearsal.paths import RehearsalError

BOOTSTRAP: Final = Path(__file__).with_name("bootstrap.py")
"""Script that starts a stand-in."""
STAND_IN_GROUP: Final = "kueue_fleet.stand_ins"
"""Entry points of other distributions: the executable's name, and the module that stands in for it."""
OFFLINE: Final = "pip install ./offline"
"""How the stand-ins of this repository are installed."""


@dataclass(frozen=True, slots=True)
class Part:
    """One executable that Pulumi or kubectl starts, and that may be absent here."""

    executable: str
    """The name of the real part's executable, under which the stand-in is found."""
    replaces: str
    """The real part, in words for the user."""
    plugin: str
    """Name of its folder below PULUMI_HOME/plugins, without the version; empty when it never is there."""
    sdk: str
    """The Python package whose version a stand-in reports."""
    install: str = ""
    """How a user installs the real part, for one that a rehearsal cannot do without."""
    module: str = ""
    """The module of this package that always replaces it, as the real one would go to the real Google Cloud."""


LANGUAGE_HOST: Final = Part(
    "pulumi-language-python",
    "Pulumi's Python language host",
    "language-python",
    "pulumi",
    install="install Pulumi (https://www.pulumi.com/docs/install/), which brings it",
)
"""Runs Python programs."""
POLICY_ANALYZER: Final = Part(
    "pulumi-analyzer-policy-python", "Pulumi's starter of Python policy packs", "analyzer-policy-python", "pulumi"
)
"""Runs policy packs in Python."""
KUBERNETES: Final = Part(
    "pulumi-resource-kubernetes",
    "Pulumi's Kubernetes provider",
    "resource-kubernetes",
    "pulumi_kubernetes",
)
"""The provider of Kubernetes objects: an engine of the rehearsal, where the user has none."""
GCP: Final = Part(
    "pulumi-resource-gcp",
    "Pulumi's Google Cloud provider",
    "resource-gcp",
    "pulumi_gcp",
    module="kueue_rehearsal.standins.gcp_provider",
)
"""The provider of Google Cloud's resources."""
DOCKER_BUILD: Final = Part(
    "pulumi-resource-docker-build",
    "Pulumi's Docker Build provider",
    "resource-docker-build",
    "pulumi_docker_build",
    module="kueue_rehearsal.standins.docker_build_provider",
)
"""The provider of images: the real one would push to a real registry."""
GKE_AUTH: Final = Part(
    "gke-gcloud-auth-plugin",
    "Google's credential plugin for kubectl",
    "",
    "pulumi_gcp",
    module="kueue_rehearsal.standins.gke_auth",
)
"""Prints credentials for kubectl."""
PARTS: Final = (LANGUAGE_HOST, POLICY_ANALYZER, KUBERNETES, GCP, DOCKER_BUILD, GKE_AUTH)
"""All of them."""


def find_real_parts(path: str, pulumi_home: Path) -> dict[str, Path]:
    """The real counterparts that are installed, by executable: on `path`, or among Pulumi's plugins."""
    paths: dict[str, Path] = {}
    for part in PARTS:
        if (on_path := shutil.which(part.executable, path=path)) and not _is_standin(Path(on_path)):
            paths[part.executable] = Path(on_path)
        elif part.plugin and (plugin := _installed_plugin(part, pulumi_home / "plugins")):
            paths[part.executable] = plugin
    return paths


def _is_standin(path: Path) -> bool:
    with path.open("rb") as file:
        return BOOTSTRAP.name.encode() in file.read(4096)


def _installed_plugin(part: Part, folder: Path) -> Path | None:
    for candidate in sorted(folder.glob(f"{part.plugin}-v*/{part.executable}"), reverse=True):
        if os.access(candidate, os.X_OK):
            return candidate
    return None


def missing_parts(present: Mapping[str, Path]) -> list[str]:
    """What a rehearsal needs and has neither for real (`find_real_parts`) nor a stand-in for; one line for each."""
    modules = _standin_modules()
    return [
        f"{part.executable}: {part.replaces} is not installed; {part.install}, or {OFFLINE} for the stand-in"
        for part in PARTS
        if part.install and part.executable not in present and part.executable not in modules
    ]


def _standin_modules() -> dict[str, str]:
    installed_points = {point.name: point.value for point in entry_points(group=STAND_IN_GROUP)}
    return installed_points | {part.executable: part.module for part in PARTS if part.module}


def install_standins(bin_dir: Path, python: Path, *, present: Mapping[str, Path]) -> list[Part]:
    """Writes the launchers into `bin_dir` and returns the parts that are stood in for.

    `present` holds the real parts by executable name (`find_real_parts`). They are used, but for those that reach
    Google Cloud, which a rehearsal must never do; `bin_dir` gets links to them, as a rehearsal does not look into the
    user's own Pulumi home.

    Raises:
        FileNotFoundError: an SDK that a stand-in serves is not installed for `python`.
        RehearsalError: a part has to be there and is not (`missing_parts`).
    """
    if missing_parts_there := missing_parts(present):
        raise RehearsalError("\n".join(missing_parts_there))
    bin_dir.mkdir(parents=True, exist_ok=True)
    site_packages, modules = _site_packages(python), _standin_modules()
    installed_paths = []
    for part in PARTS:
        target, new_file = bin_dir / part.executable, bin_dir / f"{part.executable}.new"
        new_file.unlink(missing_ok=True)
        if part.executable in present and not part.module:
            new_file.symlink_to(present[part.executable])
        elif module := modules.get(part.executable):
            version = _sdk_version(part, site_packages)
            new_file.write_text(_launcher(part, module, python, site_packages, version), encoding="utf-8")
            new_file.chmod(0o755)
            installed_paths.append(part)
        else:
            target.unlink(missing_ok=True)
            continue
        new_file.replace(target)
    return installed_paths


def _site_packages(python: Path) -> Path:
    if python.absolute() == Path(sys.executable).absolute():
        return Path(sysconfig.get_path("purelib"))
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def _sdk_version(part: Part, site_packages: Path) -> str:
    if part.sdk == "pulumi":
        for metadata in site_packages.glob("pulumi-*.dist-info"):
            return metadata.name.removeprefix("pulumi-").removesuffix(".dist-info")
        raise FileNotFoundError(f"the pulumi SDK is not in {site_packages}; install it there")
    plugin_data = json.loads((site_packages / part.sdk / "pulumi-plugin.json").read_text(encoding="utf-8"))
    return str(plugin_data["version"])


def _launcher(part: Part, module: str, python: Path, site_packages: Path, version: str) -> str:
    note = f"# {part.executable}: stand-in for {part.replaces}, written by kueue-fleet ({BOOTSTRAP.name})."
    # Made absolute, not resolved: the link in a virtual environment is what makes it one.
    interpreter = python.absolute()
    command = [interpreter, "-I", "-S", BOOTSTRAP, _import_root(module), site_packages, module, version]
    return f'#!/bin/sh\n{note}\nexec {shlex.join(map(str, command))} "$@"\n'


def _import_root(module: str) -> Path:
    """The folder that the module's package is imported from, which an isolated interpreter does not know."""
    package = find_spec(module.partition(".")[0])
    if package is None or not package.submodule_search_locations:
        raise RehearsalError(f"{module}: named by an entry point of {STAND_IN_GROUP}, but not installed; {OFFLINE}")
    return Path(next(iter(package.submodule_search_locations))).parent
