"""Packs built engines into wheels, one for each engine, which `pip install kueue-fleet[rehearsal]` brings.

A wheel holds an engine's entries of the cache as they are; `discovery` finds them through an entry point. The licences
of all modules that are linked into the programs are in its metadata, and the modules themselves are named with versions
and hashes.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from kueue_rehearsal.engines.build import download_modules
from kueue_rehearsal.engines.cache import MANIFEST, EngineCache
from kueue_rehearsal.engines.catalogue import BUILD_FLAGS, ENGINES, Engine
from kueue_rehearsal.engines.discovery import BUILD_COMMAND, INSTALLED_GROUP
from kueue_rehearsal.engines.toolchain import GoToolchain, find_go, install_go
from kueue_rehearsal.paths import RehearsalError

LARGEST_BYTES = 100_000_000
"""What PyPI takes for one file: https://docs.pypi.org/project-management/storage-limits/."""
_LICENCES = re.compile(r"(licen[cs]e|copying|notice|patents)", re.IGNORECASE)
_WITHOUT_FILE = {
    "github.com/sourcegraph/appdash-data": (
        "The module has no licence file. It is data of github.com/sourcegraph/appdash, which is under the MIT licence."
    ),
}
"""What is known of modules that come without the text of their licence."""
_HOOK = '''"""Names the platform that the programs are for."""

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformHook(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data |= {"pure_python": False, "tag": "TAG"}
'''


def distribution(engine: Engine) -> str:
    """The name of the engine's wheel on a package index."""
    return f"kueue-fleet-engine-{engine.name}"


def _module(engine: Engine) -> str:
    return distribution(engine).replace("-", "_")


def wheel_version(engine: Engine) -> str:
    """The engine's version, and a post-release that differs whenever other files are built for it.

    So a release of kueue-fleet names exactly the wheel that its rehearsal takes.
    """
    build_hash = hashlib.sha256(f"{engine.source_hash()} {engine.assets_hash()}".encode()).hexdigest()
    return f"{engine.version.removeprefix('v')}.post{int(build_hash[:6], 16)}"


def requirements() -> list[str]:
    """What the extra `rehearsal` of a release names: a wheel for each engine of a rehearsal, where there are wheels."""
    here = "sys_platform == 'linux' and (platform_machine == 'x86_64' or platform_machine == 'aarch64')"
    return [f"{distribution(engine)}=={wheel_version(engine)}; {here}" for engine in ENGINES if engine.for_rehearsal]


def make_wheels(
    cache: EngineCache,
    names: Iterable[str],
    target: Path,
    environ: Mapping[str, str],
) -> list[Path]:
    """Writes a wheel for each of the engines, which are in the cache, into `target`, and returns all of them.

    One that is there already is kept.

    Raises RehearsalError: an engine that is not in the cache, a module that cannot be downloaded, a wheel that is
    too large.
    """
    go = find_go(environ) or install_go(cache, environ)
    target.mkdir(parents=True, exist_ok=True)
    wheels = []
    for engine in (engine for engine in ENGINES if engine.name in set(names)):
        there = next(target.glob(f"{_module(engine)}-{wheel_version(engine)}-*_{platform.machine()}.whl"), None)
        if there is not None:
            wheels.append(there)
            continue
        with tempfile.TemporaryDirectory(prefix="kueue-fleet-wheel-") as folder:
            _write_project(engine, cache, go, Path(folder))
            wheels.append(_build(engine, Path(folder), target))
    return wheels


def _write_project(engine: Engine, cache: EngineCache, go: GoToolchain, folder: Path) -> None:
    """A Python project with the engine's files, its licences, and where its sources are."""
    module = _module(engine)
    package = folder / module
    package.mkdir()
    programs = _pack(cache, engine.name, engine.source_hash(), package)
    if engine.assets:
        _pack(cache, f"{engine.name}-assets", engine.assets_hash(), package)
    linked_modules = _linked_modules(go, [programs / name for name, _ in engine.binaries])
    title = f"{', '.join(name for name, _ in engine.binaries)} {engine.version}, as a rehearsal of kueue-fleet runs it"
    sources = _sources(engine, go, linked_modules)
    (package / "__init__.py").write_text(f'"""{title}."""\n')
    (package / "SOURCES.md").write_text(sources)
    (folder / "README.md").write_text(f"# {distribution(engine)}\n\n{title}.\n\n{sources}")
    (folder / "LICENSES.txt").write_text(_licences(engine, cache, go, linked_modules))
    machine = platform.machine()
    tag = f"py3-none-manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
    (folder / "hatch_build.py").write_text(_HOOK.replace("TAG", tag))
    settings: dict[str, dict[str, object]] = {
        "build-system": {"requires": ["hatchling>=1.27"], "build-backend": "hatchling.build"},
        "project": {
            "name": distribution(engine),
            "version": wheel_version(engine),
            "description": title,
            "readme": "README.md",
            "license-files": ["LICENSES.txt"],
            "requires-python": ">=3.11",
        },
        f'project.entry-points."{INSTALLED_GROUP}"': {engine.name: module},
        "tool.hatch.build.targets.wheel": {"packages": [module]},
        "tool.hatch.build.targets.wheel.hooks.custom": {},
    }
    tables = (
        "\n".join((f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""))
        for table, values in settings.items()
    )
    (folder / "pyproject.toml").write_text("\n".join(tables))


def _pack(cache: EngineCache, name: str, key: str, package: Path) -> Path:
    """Copies an entry of the cache; its manifest in a wheel has no times, as the installer sets them."""
    built_entry = cache.entry(name, key)
    if built_entry is None:
        raise RehearsalError(
            f"{name}: not in {cache.root}, and only what was built there is packed; take the program off PATH and out "
            f"of KUBEBUILDER_ASSETS, and run `{BUILD_COMMAND}`"
        )
    target = package / built_entry.name
    shutil.copytree(built_entry, target)
    recorded_files = json.loads((target / MANIFEST).read_text())["files"]
    entries = {file: [size, None, digest] for file, (size, _, digest) in recorded_files.items()}
    (target / MANIFEST).write_text(json.dumps({"files": entries}, indent=1))
    return target


def _linked_modules(go: GoToolchain, programs: Iterable[Path]) -> dict[str, str]:
    """Version and hash of each module that Go has recorded in the programs, by its path."""
    modules: dict[str, str] = {}
    module = ""
    for program in programs:
        command = [str(go.executable), "version", "-m", str(program)]
        module_text = subprocess.run(
            command, env=dict(go.environment), capture_output=True, text=True, check=True
        ).stdout
        for words in (line.split() for line in module_text.splitlines()):
            if len(words) >= 3 and words[0] in ("mod", "dep") and words[2].startswith("v"):
                module = words[1]
                modules[module] = " ".join(words[2:])
            elif words[:1] == ["=>"]:
                modules[module] = f"replaced by {' '.join(words[1:])}"
    return modules


def _sources(engine: Engine, go: GoToolchain, linked_modules: Mapping[str, str]) -> str:
    flags = " ".join((*BUILD_FLAGS, f"-ldflags='{engine.linker_flags}'"))
    change_text = "".join(
        f"In {module.module}, matches of `{edit.pattern}` in {edit.file} are replaced by `{edit.replacement}`; imports "
        "that nothing uses after that are left out.\n\n"
        for module in engine.patched
        if module.module in linked_modules
        for edit in module.edits
    )
    modules = "".join(f"- {module} {version}\n" for module, version in sorted(linked_modules.items()))
    return (
        f"Built {'without' if not change_text else 'with the following'} changes, by {go.version}, with "
        f"`CGO_ENABLED=0 go build {flags}`, from the Go modules below. "
        "`go mod download MODULE@VERSION` fetches the source of each. Licences are in LICENSES.txt.\n\n"
        + change_text
        + modules
    )


def _licences(engine: Engine, cache: EngineCache, go: GoToolchain, linked_modules: Mapping[str, str]) -> str:
    """The text of every licence once, below the modules that have it."""
    wanted_modules = {*linked_modules, *(asset.module for asset in engine.assets)}
    texts: dict[str, list[str]] = {}
    for module, folder in sorted(download_modules(engine, sorted(wanted_modules), cache, go).items()):
        files = sorted(file for file in folder.iterdir() if file.is_file() and _LICENCES.match(file.name))
        if module in _WITHOUT_FILE:
            texts.setdefault(_WITHOUT_FILE[module], []).append(module)
        elif not files:
            raise RehearsalError(f"{module}: has no licence file; leave it out of {engine.name}, or find its licence")
        for file in files:
            texts.setdefault(file.read_text(errors="replace").strip(), []).append(module)
    line = "=" * 100
    return "\n\n".join(f"{line}\n" + "\n".join(modules) + f"\n{line}\n\n{text}" for text, modules in texts.items())


def _build(engine: Engine, project: Path, target: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(project / "dist")]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    wheel_files = list((project / "dist").glob("*.whl"))
    if done.returncode != 0 or len(wheel_files) != 1:
        last_line = (done.stderr.strip().splitlines() or ["it made no wheel"])[-1]
        raise RehearsalError(
            f"{distribution(engine)}: hatchling failed ({last_line}); is it installed beside kueue-fleet?"
        )
    size = wheel_files[0].stat().st_size
    if size > LARGEST_BYTES:
        raise RehearsalError(f"{wheel_files[0].name}: {size} bytes; an index takes {LARGEST_BYTES}: split the engine")
    return Path(shutil.move(wheel_files[0], target / wheel_files[0].name))
