"""Makes the tables of one minor release from Kueue's modules, and prints what changed against the release before.

`make release-tables VERSIONS="0.21.0 0.21.1"`: every version of the minor release that Go's proxy serves, oldest first.
A folder that has Kueue's source in place of a version (0.21.0=FOLDER) is read as it is.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

from kueue_admission.kernel.tables import read_table
from kueue_rehearsal.engines.cache import EngineCache
from kueue_rehearsal.engines.toolchain import find_go, install_go
from kueue_rehearsal.paths import engines_dir
from tests.releases.tables import TABLES, Rows, changes, configuration, rows

PACKAGE = "kueue_admission.releases"
FOLDER = Path(__file__).parents[2] / "components" / "kueue_admission" / "releases"


def main(given: list[str]) -> None:
    modules = {
        version: Path(folder) if folder else _module(version)
        for version, _, folder in (item.partition("=") for item in given)
    }
    newest = given[-1].partition("=")[0]
    major, minor = newest.split(".")[:2]
    folder, before = f"{major}.{minor}", f"{major}.{int(minor) - 1}"
    (FOLDER / folder).mkdir(exist_ok=True)
    source = f"# sigs.k8s.io/kueue@v{newest}, {{}}. Made by `make release-tables`.\n"
    text = configuration(modules[newest])
    (FOLDER / folder / "configuration.yaml").write_text(source.format("charts/kueue/values.yaml") + text)
    if (FOLDER / before).is_dir():
        old = (FOLDER / before / "configuration.yaml").read_text().splitlines()[1:]
        print("\n".join(unified_diff(old, text.splitlines(), before, folder, "configuration.yaml", lineterm="", n=1)))
    for name, table in TABLES.items():
        result = rows(table, modules)
        _write(FOLDER / folder / f"{name}.csv", source.format(table.sources), result)
        if (FOLDER / before).is_dir():
            print(f"{name}: {before} -> {folder}")
            for line in sorted(changes(table, read_table(PACKAGE, f"{before}/{name}.csv"), result)):
                print(f"  {line}")


def _module(version: str) -> Path:
    """The source of Kueue, which Go downloads and checks."""
    go = find_go(os.environ) or install_go(EngineCache(engines_dir()), os.environ)
    command = [str(go.executable), "mod", "download", "-json", f"sigs.k8s.io/kueue@v{version}"]
    result = subprocess.run(command, env=dict(go.environment), cwd="/", capture_output=True, text=True, check=False)
    answer = json.loads(result.stdout or "{}")
    if "Dir" not in answer:
        sys.exit(f"kueue {version}: {answer.get('Error') or result.stderr}")
    return Path(answer["Dir"])


def _write(file: Path, source: str, made: Rows) -> None:
    with file.open("w", newline="") as stream:
        stream.write(source)
        writer = csv.DictWriter(stream, list(made[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(made)


if __name__ == "__main__":
    main(sys.argv[1:])
