"""The components as packages for programs that use them as a plugin, in build/sdk: `make sdk`.

Pulumi generates the SDKs from the schema that the library gives: an npm package for TypeScript, which npm compiles and
packs, and a wheel for Python. Pulumi finds the plugin of a program with one of them by the address in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kueue_fleet.plugin import package_schema
from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir
from tests.engines.node import node_folder

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "typescript"
SERVER: Final = "git://github.com/{owner}/kueue-fleet/components/pulumi_plugin"
"""Where Pulumi gets the plugin from."""
_PYTHON_PROGRAM: Final = """
import pulumi_kueue_fleet as fleet

quota = fleet.spec.ResourceQuotaArgs(name="nvidia.com/gpu", nominal_quota=8)
l4 = fleet.spec.FlavorQuotasArgs(name="l4", resources=[quota])
group = fleet.spec.ResourceGroupArgs(covered_resources=["nvidia.com/gpu"], flavors=[l4])
fleet.ClusterQueue("team-vision", spec=fleet.spec.ClusterQueueSpecArgs(resource_groups=[group]))
"""


@dataclass(frozen=True, slots=True)
class Workshop:
    """A folder in which packages are made, with the programs that make them on PATH."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str, where: Path, fails: bool = False) -> str:
        """What the command prints. Raises RuntimeError if it fails, or, with `fails`, if it does not."""
        result = subprocess.run(
            command, cwd=where, env=self.environment, capture_output=True, text=True, check=False
        )  # fmt: skip
        output = f"{result.stdout}{result.stderr}"
        if (result.returncode != 0) != fails:
            raise RuntimeError(f"{' '.join(command)}: exit code {result.returncode}\n{output}")
        return output if fails else result.stdout

    def generate(self, owner: str, language: str) -> Path:
        """The folder with the SDK for a language, for a plugin from OWNER's repository."""
        schema = package_schema() | {"pluginDownloadURL": SERVER.format(owner=owner)}
        schema["language"]["python"]["pyproject"] = {"enabled": True}
        (self.folder / "schema.json").write_text(json.dumps(schema))
        self.run("pulumi", "package", "gen-sdk", "schema.json", "--language", language, "--out", ".", where=self.folder)
        return self.folder / language


@contextmanager
def _workshop() -> Iterator[Workshop]:
    cache = EngineCache(engines_dir())
    engines = build_engines(cache, names=["pulumi", "pulumi-nodejs"])
    with TemporaryDirectory() as result:
        folder = Path(result)
        generator = engines.binary("pulumi-language-nodejs")
        programs = folder / "programs"
        programs.mkdir()
        # It makes SDKs for Python where it is called so.
        (programs / "pulumi-language-python").symlink_to(generator)
        folders = [programs, engines.binary("pulumi").parent, generator.parent, node_folder(cache, os.environ)]
        environment = os.environ | {
            "PATH": os.pathsep.join([*map(str, folders), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }
        yield Workshop(folder, environment)


def pack_npm(workshop: Workshop, target: Path, owner: str) -> Path:
    """The npm package, in the folder TARGET.

    The example in TypeScript is compiled with it, and a field that there is not must not compile.

    Raises:
        RuntimeError: a program fails, or compiles what it must not.
    """
    sdk = workshop.generate(owner, "nodejs")
    workshop.run("npm", "install", "--no-audit", "--no-fund", where=sdk)
    workshop.run("npm", "run", "build", where=sdk)
    for name in ("package.json", "README.md"):
        shutil.copy(sdk / name, sdk / "bin" / name)
    packed = workshop.run("npm", "pack", "--silent", "--pack-destination", str(target), where=sdk / "bin").split()[-1]
    folder = workshop.folder / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules", "sdks", "package-lock.json"))
    settings = json.loads((folder / "package.json").read_text())
    settings["dependencies"]["@pulumi/kueue-fleet"] = f"file:{target / packed}"
    (folder / "package.json").write_text(json.dumps(settings))
    workshop.run("npm", "install", "--no-audit", "--no-fund", where=folder)
    workshop.run("npx", "tsc", where=folder)
    program = folder / "index.ts"
    program.write_text(program.read_text().replace("nominalQuota: gpus", "nominalQouta: gpus"))
    if "'nominalQuota'" not in (output := workshop.run("npx", "tsc", where=folder, fails=True)):
        raise RuntimeError(f"a field that is spelt wrong is not what does not compile:\n{output}")
    return target / packed


def pack_wheel(workshop: Workshop, target: Path, owner: str) -> Path:
    """The wheel for Python, in the folder TARGET; a small program is checked with it as that in TypeScript is.

    Raises:
        RuntimeError: a program fails, or passes what it must not.
    """
    sdk = workshop.generate(owner, "python")
    workshop.run("uv", "build", "--quiet", "--wheel", "--out-dir", str(target), where=sdk)
    wheel = max(target.glob("pulumi_kueue_fleet-*.whl"), key=lambda file: file.stat().st_mtime)
    folder = workshop.folder / "program"
    workshop.run("uv", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(wheel), where=sdk)
    program = folder / "program.py"
    check = ("mypy", "--strict", "--follow-imports", "silent", "program.py")
    program.write_text(_PYTHON_PROGRAM)
    workshop.run(*check, where=folder)
    program.write_text(_PYTHON_PROGRAM.replace("nominal_quota=", "nominal_qouta="))
    output = workshop.run(*check, where=folder, fails=True)
    if '"nominal_qouta"' not in output:
        raise RuntimeError(f"a field that is spelt wrong is not what does not pass:\n{output}")
    return wheel


def main(owner: str) -> None:
    """Make both, and print where they are."""
    target = Path("build/sdk").resolve()
    target.mkdir(parents=True, exist_ok=True)
    with _workshop() as workshop:
        for pack in (pack_npm, pack_wheel):
            print(pack(workshop, target, owner).relative_to(Path.cwd()))


if __name__ == "__main__":
    main(sys.argv[1])
