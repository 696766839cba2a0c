"""The components as an npm package for TypeScript, in build/sdk: `make sdk`.

Pulumi generates the SDK from the schema that the library gives, npm compiles and packs it. Pulumi finds the plugin of a
program with the package by the address in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.engines.node import node_folder

from kueue_fleet.plugin import package_schema
from kueue_fleet.rehearsal.engines import EngineCache, build_engines
from kueue_fleet.rehearsal.paths import engines_dir

PROGRAMS: Final = {"pulumi": "pulumi", "pulumi-nodejs": "pulumi-language-nodejs"}
"""Programs by the engine that has them."""
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "typescript"
SERVER: Final = "git://github.com/{owner}/kueue-fleet/components/pulumi_plugin"
"""Where Pulumi gets the plugin from."""


def pack(target: Path, owner: str) -> Path:
    """Make the package in the folder TARGET, for a plugin from OWNER's repository.

    The example in TypeScript is compiled with it, and a field that there is not must not compile.

    Raises:
        RuntimeError: a program fails, or compiles what it must not.
    """
    cache = EngineCache(engines_dir())
    engines = build_engines(cache, names=[*PROGRAMS])
    folders = [*(engines.binary(name).parent for name in PROGRAMS.values()), node_folder(cache, os.environ)]
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as made:
        folder = Path(made)
        environment = os.environ | {
            "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }

        def run(*command: str, where: Path, fails: bool = False) -> str:
            done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
            if (done.returncode != 0) != fails:
                said = f"{done.stdout}{done.stderr}"
                raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{said}")
            return done.stdout

        schema = package_schema() | {"pluginDownloadURL": SERVER.format(owner=owner)}
        (folder / "schema.json").write_text(json.dumps(schema))
        run("pulumi", "package", "gen-sdk", "schema.json", "--language", "nodejs", "--out", ".", where=folder)
        sdk = folder / "nodejs"
        run("npm", "install", "--no-audit", "--no-fund", where=sdk)
        run("npm", "run", "build", where=sdk)
        for name in ("package.json", "README.md"):
            shutil.copy(sdk / name, sdk / "bin" / name)
        packed = run("npm", "pack", "--silent", "--pack-destination", str(target.resolve()), where=sdk / "bin").split()
        package = target / packed[-1]
        _compile_example(folder / "example", package.resolve(), run)
    return package


def _compile_example(folder: Path, package: Path, run: Callable[..., str]) -> None:
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules", "sdks", "package-lock.json"))
    settings = json.loads((folder / "package.json").read_text())
    settings["dependencies"]["@pulumi/kueue-fleet"] = f"file:{package}"
    (folder / "package.json").write_text(json.dumps(settings))
    run("npm", "install", "--no-audit", "--no-fund", where=folder)
    run("npx", "tsc", where=folder)
    program = folder / "index.ts"
    program.write_text(program.read_text().replace("nominalQuota: gpus", "nominalQouta: gpus"))
    if "'nominalQuota'" not in (said := run("npx", "tsc", where=folder, fails=True)):
        raise RuntimeError(f"a field that is spelt wrong is not what does not compile:\n{said}")


if __name__ == "__main__":
    print(pack(Path("build/sdk"), sys.argv[1]))
