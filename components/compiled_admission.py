"""A hook of hatchling that compiles by mypyc what takes the time of decisions, for wheels of `kueue-admission`.

Off unless HATCH_BUILD_HOOK_ENABLE_CUSTOM is set: `pip install` of a checkout, and the development environment, have the
sources alone. A wheel with it has both, and Python imports what is compiled.
"""

from __future__ import annotations

import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SIMULATION: Final = ("agenda", "clock", "cluster", "contention", "delays", "records", "runner")
COMPILED: Final = ("decide/**/*.py", *(f"simulate/{name}.py" for name in _SIMULATION))
"""Of the package's folder."""
INTERPRETED: Final = {"__init__.py", "usage_ledger.py"}
"""Names of files that stay as they are: tests change methods of the ledger."""


def sources(package: Path) -> list[Path]:
    """What is compiled of the package in this folder."""
    paths = {path for pattern in COMPILED for path in package.glob(pattern) if path.name not in INTERPRETED}
    return sorted(paths)


class CompiledAdmission(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel, which then is one for this Python and this kind of machine."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile. Does nothing for an installation in place."""
        if version != "standard":
            return
        self._folder = TemporaryDirectory(prefix="compiled-admission-")
        wheel_files = compiled(Path(self.root), Path(self._folder.name))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        # mypyc's library of all modules stands beside the package, where pyproject.toml puts nothing.
        places = dict(self.build_config.sources)
        self.build_config.sources.clear()
        self.build_config.sources.update({"compiled/": "", **places})
        files = {str(path): f"compiled/{path.relative_to(wheel_files)}" for path in wheel_files.rglob("*.so")}
        build_data["force_include"].update(files)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled, which is in the wheel."""
        if version == "standard":
            self._folder.cleanup()


def compiled(package: Path, folder: Path) -> Path:
    """The folder, within `folder`, with the compiled modules of the package, as they are imported.

    One C file for each module and little optimization take 100 s of CPU. With mypyc's defaults, one file and -O3, the
    C compiler had not ended after nine minutes.
    """
    from mypyc.build import mypycify  # not needed to read this file
    from setuptools import Distribution  # type: ignore[import-untyped]

    paths = [str(path.relative_to(package.parent)) for path in sources(package)]
    options = [f"--python-version={sys.version_info.major}.{sys.version_info.minor}", "--explicit-package-bases"]
    options += ["--ignore-missing-imports", f"--cache-dir={folder / 'mypy'}", "--config-file="]
    with chdir(package.parent):
        extensions = mypycify(
            [*options, *paths],
            opt_level="1",
            debug_level="0",
            multi_file=True,
            target_dir=str(folder / "c"),
            group_name="kueue_admission",
        )
        command = Distribution({"name": "kueue-admission", "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "objects")
        command.ensure_finalized()
        command.run()
    return folder / "lib"
