"""Writes the stand-ins as executables, only for the parts whose real counterpart is absent.

In: a folder that will be first on Pulumi's PATH, and what was found of the real plugins. Out: what was installed, so
that the rehearsal can say it when it starts. The launchers name the interpreter by its absolute path and start it
isolated (`-I -S`): a fleet starts up to 21 providers, and each costs what it imports.
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
from pathlib import Path
from typing import Final

BOOTSTRAP: Final = Path(__file__).with_name("bootstrap.py")
"""Script that starts a stand-in."""
PULUMI_HOME_FOLDER: Final = "plugins"
"""Folder of plugins, below Pulumi's home."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """One executable that replaces a part which is absent here."""

    executable: str
    """The name of the real part's executable, under which the stand-in is found."""
    module: str
    """The module of this package that it runs; empty for the policy analyzer, which is the SDK's own."""
    replaces: str
    """The real part, in words for the user."""
    plugin: str
    """Name of its folder below PULUMI_HOME/plugins, without the version; empty when it never is there."""
    sdk: str
    """The Python package whose version it reports."""


LANGUAGE_HOST: Final = StandIn(
    "pulumi-language-python", "language_host", "Pulumi's Python language host", "language-python", "pulumi"
)
"""Runs Python programs."""
POLICY_ANALYZER: Final = StandIn(
    "pulumi-analyzer-policy-python", "", "Pulumi's starter of Python policy packs", "analyzer-policy-python", "pulumi"
)
"""Runs policy packs in Python."""
KUBERNETES: Final = StandIn(
    "pulumi-resource-kubernetes",
    "kubernetes_provider",
    "Pulumi's Kubernetes provider",
    "resource-kubernetes",
    "pulumi_kubernetes",
)
"""The provider of Kubernetes objects."""
GCP: Final = StandIn(
    "pulumi-resource-gcp", "gcp_provider", "Pulumi's Google Cloud provider", "resource-gcp", "pulumi_gcp"
)
"""The provider of Google Cloud's resources."""
GKE_AUTH: Final = StandIn(
    "gke-gcloud-auth-plugin", "gke_auth", "Google's credential plugin for kubectl", "", "pulumi_gcp"
)
"""Prints credentials for kubectl."""
STAND_INS: Final = (LANGUAGE_HOST, POLICY_ANALYZER, KUBERNETES, GCP, GKE_AUTH)
"""All of them."""
ALWAYS_NEEDED: Final = frozenset({GCP.executable, GKE_AUTH.executable})
"""Parts that a rehearsal replaces even where the real ones are: those would go to the real Google Cloud."""


def find_real_parts(path: str, pulumi_home: Path) -> dict[str, Path]:
    """The real counterparts that are installed, by executable: on `path`, or among Pulumi's plugins."""
    found: dict[str, Path] = {}
    for part in STAND_INS:
        if (on_path := shutil.which(part.executable, path=path)) and not _is_standin(Path(on_path)):
            found[part.executable] = Path(on_path)
        elif part.plugin and (plugin := _installed_plugin(part, pulumi_home / PULUMI_HOME_FOLDER)):
            found[part.executable] = plugin
    return found


def _is_standin(path: Path) -> bool:
    with path.open("rb") as file:
        return BOOTSTRAP.name.encode() in file.read(4096)


def _installed_plugin(part: StandIn, folder: Path) -> Path | None:
    for candidate in sorted(folder.glob(f"{part.plugin}-v*/{part.executable}"), reverse=True):
        if os.access(candidate, os.X_OK):
            return candidate
    return None


def install_standins(bin_dir: Path, python: Path, *, present: Mapping[str, Path]) -> list[StandIn]:
    """Writes the launchers into `bin_dir` and returns what was installed.

    `present` holds the real parts by executable name (`find_real_parts`); they are left in charge, but for Google
    Cloud's two, which a rehearsal must never reach. A stand-in that is not needed any more is removed.
    Raises FileNotFoundError when an SDK that a stand-in serves is not installed for `python`.
    """
    bin_dir.mkdir(parents=True, exist_ok=True)
    site_packages = _site_packages(python)
    installed = []
    for part in STAND_INS:
        target = bin_dir / part.executable
        if part.executable in present and part.executable not in ALWAYS_NEEDED:
            target.unlink(missing_ok=True)
            continue
        version = _sdk_version(part, site_packages)
        written = target.with_suffix(".new")
        written.write_text(_launcher(part, python, site_packages, version), encoding="utf-8")
        written.chmod(0o755)
        written.replace(target)
        installed.append(part)
    return installed


def _site_packages(python: Path) -> Path:
    if python.absolute() == Path(sys.executable).absolute():
        return Path(sysconfig.get_path("purelib"))
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def _sdk_version(part: StandIn, site_packages: Path) -> str:
    if part.sdk == "pulumi":
        for metadata in site_packages.glob("pulumi-*.dist-info"):
            return metadata.name.removeprefix("pulumi-").removesuffix(".dist-info")
        raise FileNotFoundError(f"the pulumi SDK is not in {site_packages}; install it there")
    described = json.loads((site_packages / part.sdk / "pulumi-plugin.json").read_text(encoding="utf-8"))
    return str(described["version"])


def _launcher(part: StandIn, python: Path, site_packages: Path, version: str) -> str:
    note = f"# {part.executable}: stand-in for {part.replaces}, written by kueue-fleet ({BOOTSTRAP.name})."
    # Made absolute, not resolved: the link in a virtual environment is what makes it one.
    interpreter = python.absolute()
    if not part.module:
        # After the engine's address and the pack come the pack's runtime options, which pulumi.policy cannot read.
        command, arguments = [str(interpreter), "-u", "-m", "pulumi.policy"], '"$1" "$2"'
    else:
        command = [str(interpreter), "-I", "-S", str(BOOTSTRAP), str(site_packages), part.module, version]
        arguments = '"$@"'
    return f"#!/bin/sh\n{note}\nexec {shlex.join(command)} {arguments}\n"
