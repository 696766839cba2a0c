"""Starts one stand-in with as few imports as possible.

Run by path from the launchers that `executables.install_standins` writes, with `python -I -S`: no site initialisation,
no user site, no PYTHONPATH. Of Pulumi's SDK only the generated protocol modules are made importable, without running
the `__init__` of the packages above them, which import all of it (0.1 s of CPU and 15 MiB more per process).

Arguments: the folder that the stand-in's package is in, the site-packages directory, the stand-in's module, the version
to report, then the plugin's own arguments.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

LIBRARY_ROOT = Path(__file__).resolve().parents[2]
"""Folder that the library is imported from."""


def put_bare_package(name: str, directory: Path) -> None:
    """Makes `name` importable as a package whose `__init__` has not been run."""
    package = types.ModuleType(name)
    package.__path__ = [str(directory)]
    sys.modules[name] = package


def put_bare_pulumi_protocol(site_packages: Path) -> None:
    """Makes the generated protocol modules of the Pulumi SDK importable without the SDK."""
    for name in ("pulumi", "pulumi.runtime", "pulumi.runtime.proto", "pulumi.runtime.proto.codegen"):
        put_bare_package(name, site_packages.joinpath(*name.split(".")))


def put_import_path(import_root: str, site_packages: str) -> None:
    """Makes the stand-in, the library and the generated protocol modules importable."""
    sys.path += [import_root, str(LIBRARY_ROOT), site_packages]
    put_bare_pulumi_protocol(Path(site_packages))


def main(argv: list[str]) -> int:
    """Imports the stand-in named in `argv` and runs its `main`; the exit code is what that returns."""
    import_root, site_packages, module, version, *arguments = argv
    put_import_path(import_root, site_packages)
    return int(importlib.import_module(module).main(version, arguments))


if __name__ == "__main__":
    sys.path.pop(0)
    sys.exit(main(sys.argv[1:]))
