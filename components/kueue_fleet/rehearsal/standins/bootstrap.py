"""Starts one stand-in with as few imports as possible.

Run by path from the launchers that `install.install_standins` writes, with `python -I -S`: no site initialisation, no
user site, no PYTHONPATH. Of Pulumi's SDK only the generated protocol modules are made importable, without running the
`__init__` of the packages above them, which import all of it (0.1 s of CPU and 15 MiB more per process).

Arguments: site-packages directory, module name in this package, version to report, then the plugin's own arguments.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

PACKAGE = "kueue_fleet.rehearsal.standins"
"""Package of the stand-ins."""
IMPORT_ROOT = Path(__file__).resolve().parents[3]
"""Folder that the package is imported from."""


def put_bare_package(name: str, directory: Path) -> None:
    """Makes `name` importable as a package whose `__init__` has not been run."""
    package = types.ModuleType(name)
    package.__path__ = [str(directory)]
    sys.modules[name] = package


def put_bare_pulumi_protocol(site_packages: Path) -> None:
    """Makes the generated protocol modules of the Pulumi SDK importable without the SDK."""
    for name in ("pulumi", "pulumi.runtime", "pulumi.runtime.proto", "pulumi.runtime.proto.codegen"):
        put_bare_package(name, site_packages.joinpath(*name.split(".")))


def main(argv: list[str]) -> int:
    """Imports the stand-in named in `argv` and runs its `main`; the exit code is what that returns."""
    site_packages, module, version, *arguments = argv
    sys.path += [str(IMPORT_ROOT), site_packages]
    put_bare_pulumi_protocol(Path(site_packages))
    loaded = importlib.import_module(f"{PACKAGE}.{module}")
    return int(loaded.main(version, arguments))


if __name__ == "__main__":
    sys.path.pop(0)
    sys.exit(main(sys.argv[1:]))
