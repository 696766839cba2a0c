"""`make align-engines`: every go.mod of the engines has the versions of the shared one, as far as they compile.

Go compiles a package once for all programs that have it in the same version, with the same versions below it. Prints
the packages that are compiled more than once for the programs of different go.mod files. Run it after a version in
`shared/go.mod` has changed, and build the engines: what no longer compiles goes into `OLDER`, with the reason.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from kueue_rehearsal.engines.catalogue import ENGINES, SHARED, SOURCES

OLDER = {
    # Kueue 0.17.1 imports its package pkg/credentials, which 0.1.3 no longer has.
    "kueue-0.17": {"sigs.k8s.io/cluster-inventory-api"},
    # It does not compile with Pulumi 3.246, which Pulumi's esc 0.25 needs.
    "pulumi-yaml": {"github.com/pulumi/pulumi/pkg/v3", "github.com/pulumi/pulumi/sdk/v3", "github.com/pulumi/esc"},
}
"""By folder, the modules that stay as they are."""
APART = {"prometheus"}
"""Folders that stay as they are: tests alone run it, and it needs newer versions of what Kubernetes and Kueue have."""
_REQUIRED = re.compile(r"^\t?(?:require )?(\S+) (v\S+)(?: // indirect)?$", re.MULTILINE)
_REPLACED = re.compile(r"^replace \($.*?^\)$", re.MULTILINE | re.DOTALL)


def folders() -> list[Path]:
    """Those with a go.mod, the shared one first."""
    return sorted({engine.folder for engine in ENGINES}, key=lambda folder: (folder.name != SHARED, folder.name))


def required(folder: Path) -> dict[str, str]:
    """The version of each module in a go.mod, before it is replaced."""
    return dict(_REQUIRED.findall(_REPLACED.sub("", (folder / "go.mod").read_text())))


def align(folder: Path) -> None:
    """Raises the modules of a go.mod that the shared one has too to its versions, with its replacements."""
    shared = SOURCES / SHARED
    versions = required(shared)
    engines = {engine.module for engine in ENGINES if engine.folder == folder}
    stay = engines | OLDER.get(folder.name, set())
    raised = [
        f"{module}@{versions[module]}"
        for module, version in required(folder).items()
        if module not in stay and versions.get(module, version) != version
    ]
    path = folder / "go.mod"
    replaced = _REPLACED.search((shared / "go.mod").read_text())
    assert replaced
    path.write_text(_REPLACED.sub("", path.read_text()).rstrip() + f"\n\n{replaced[0]}\n")
    _go(folder, "get", *(f"{module}@{required(folder)[module]}" for module in sorted(engines)), *raised)
    _go(folder, "mod", "tidy", "-e")


def packages(folder: Path) -> dict[str, str]:
    """The module and its version of each package that the programs of a go.mod are made of; Go's own have none."""
    programs = sorted({package for engine in ENGINES if engine.folder == folder for _, package in engine.binaries})
    output = _go(folder, "list", "-e", "-deps", "-json=ImportPath,Module", *programs, flags="-mod=readonly")
    decoder, entries, start = json.JSONDecoder(), {}, 0
    while start < len(output.rstrip()):
        entry, end = decoder.raw_decode(output, start)
        start = end + 1
        if module := entry.get("Module"):
            source = module.get("Replace", module)
            entries[entry["ImportPath"]] = f"{source['Path']}@{source.get('Version', '')}"
    return entries


def compiled_twice(of: Iterable[Path]) -> dict[str, set[str]]:
    """The packages of which the programs of these go.mod files need more than one version, and the versions.

    Without those of the engines themselves, such as Kueue's.
    """
    own = {engine.module for engine in ENGINES}
    versions: dict[str, set[str]] = defaultdict(set)
    for folder in of:
        for package, version in packages(folder).items():
            if version.partition("@")[0] not in own:
                versions[package].add(version)
    return {package: several for package, several in versions.items() if len(several) > 1}


def _go(folder: Path, *arguments: str, flags: str = "-mod=mod") -> str:
    environ = {**os.environ, "GOFLAGS": flags, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    result = subprocess.run(["go", *arguments], cwd=folder, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    return result.stdout


def main() -> int:
    """Aligns, and prints what is left by module."""
    for folder in folders():
        if folder.name not in {SHARED, *APART}:
            align(folder)
    by_module: dict[tuple[str, ...], int] = defaultdict(int)
    for versions in compiled_twice(folders()).values():
        by_module[tuple(sorted(versions))] += 1
    for modules, count in sorted(by_module.items(), key=lambda row: -row[1]):
        print(f"{count:5} packages  {'  '.join(modules)}")
    print(f"{sum(by_module.values())} packages are compiled in more than one version")
    return 0


if __name__ == "__main__":
    sys.exit(main())
