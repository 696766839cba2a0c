"""`make release VERSION=0.3.0`: everything of a release that needs no credentials, and then the command that publishes.

It writes the version and the changelog, builds the wheels of the distributions and of the engines, their checksums and
a package index, installs from that index into a new environment, rehearses a new fleet there, commits and tags. Without
VERSION it builds and tries what a release of this commit would be, and changes no file.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHEELS = ROOT / "build" / "wheels"
INDEX = ROOT / "build" / "index"
SUMS = ROOT / "build" / "SHA256SUMS"
PROJECTS = ("pyproject.toml", "*/pyproject.toml", "components/*/pyproject.toml")
NAMED = ("docs/*.md", "docs/tasks/*.md", "examples/*/*.yaml", "components/kueue_fleet/controller/image/Dockerfile")
"""Files that name the version in a tag of an image, or in the name of a package."""


def version_of(root: Path) -> str:
    """The version that all distributions have. Raises ValueError where they differ."""
    result: set[str] = {
        re.findall(r'^version = "(.*)"$', item.read_text(), re.MULTILINE)[0] for item in _files(root, PROJECTS)
    }
    if len(result) > 1:
        raise ValueError(f"pyproject.toml: the distributions have the versions {', '.join(sorted(result))}")
    return result.pop()


def write_version(root: Path, version: str, day: str) -> None:
    """Give every distribution this version, and what is unreleased its heading in the changelog.

    Raises ValueError for a version that is none, or is not newer, and for a changelog with nothing unreleased.
    """
    old = version_of(root)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version) or _numbers(version) <= _numbers(old):
        raise ValueError(f"VERSION {version}: is not a version after {old}; write three numbers")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text()
    if not notes(text, "Unreleased"):
        raise ValueError("CHANGELOG.md: there is nothing below Unreleased; say what users get")
    changelog.write_text(text.replace("## Unreleased\n", f"## Unreleased\n\n## {version} ({day})\n", 1))
    for file in _files(root, PROJECTS):
        of_file = file.read_text().replace(f'\nversion = "{old}"\n', f'\nversion = "{version}"\n', 1)
        file.write_text(re.sub(rf'("kueue-[\w-]+==){re.escape(old)}"', rf'\g<1>{version}"', of_file))
    for file in _files(root, NAMED):
        before = file.read_text()
        after = re.sub(rf"(kueue[-_]fleet[\w./-]*[:-]){re.escape(old)}\b", rf"\g<1>{version}", before)
        if after != before:
            file.write_text(after)


def notes(changelog: str, heading: str) -> str:
    """What the changelog says of a version, such as 0.3.0, or of Unreleased; empty where there is nothing."""
    result = re.search(rf"^## {re.escape(heading)}\b.*?$(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return result[1].strip() if result else ""


def write_index(wheels: Iterable[Path], index: Path, sums: Path) -> None:
    """A package index as pip reads one (PEP 503), of links to the wheels with their hashes; and their checksums."""
    shutil.rmtree(index, ignore_errors=True)
    lines, pages = [], dict[str, list[str]]()
    for wheel in sorted(wheels):
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines.append(f"{digest}  {wheel.name}\n")
        name = re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()
        pages.setdefault(name, []).append(
            f'<a href="{wheel.resolve().as_uri()}#sha256={digest}">{wheel.name}</a><br>\n'
        )
    for name, links in pages.items():
        (index / name).mkdir(parents=True)
        (index / name / "index.html").write_text(f"<!DOCTYPE html>\n<title>{name}</title>\n{''.join(links)}")
    sums.write_text("".join(lines))


def try_index(index: Path, version: str) -> dict[str, float]:
    """Install from the index as a newcomer does, and rehearse a new fleet; seconds by step.

    Raises CalledProcessError where a command fails.
    """
    # A short path: a rehearsal has sockets below it.
    with tempfile.TemporaryDirectory(prefix="kf", dir="/tmp") as name:
        environ = {**_clean(os.environ), "HOME": name, "PATH": f"{name}/venv/bin:/usr/bin:/bin"}
        packages = [f"kueue-fleet[rehearsal]=={version}"]
        if shutil.which("pulumi", path=environ["PATH"]) is None:
            packages.append(f"kueue-fleet-offline=={version}")  # in place of Pulumi's language host
        steps = {
            "environment": [sys.executable, "-m", "venv", f"{name}/venv"],
            "install": ["pip", "install", "-qq", "--extra-index-url", index.resolve().as_uri(), *packages],
            "init": ["kueue-fleet", "init", "first", "--project", "my-project", "--region", "us-central1", "--yes"],
            "rehearse": ["kueue-fleet", "rehearse", "up", "--stack", "first"],
            "remove": ["kueue-fleet", "rehearse", "down", "--stack", "first"],
        }
        seconds = {}
        for step, command in steps.items():
            began = time.monotonic()
            program = shutil.which(command[0], path=environ["PATH"]) or command[0]
            subprocess.run([program, *command[1:]], cwd=name, env=environ, check=True, stdout=sys.stderr)
            seconds[step] = time.monotonic() - began
        if (Path(name) / ".cache" / "kueue-fleet" / "engines").exists():
            raise RuntimeError("an engine was built, so that a wheel of it is missing")
    return seconds


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in environ.items() if key.startswith(("PIP_", "SSL_", "HTTP", "LANG"))}


def _files(root: Path, patterns: Iterable[str]) -> list[Path]:
    return [file for pattern in patterns for file in sorted(root.glob(pattern)) if "build" not in file.parts]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(version: str) -> int:
    """Exit code 0 when the release is built and tried, and tagged if it has a VERSION."""
    try:
        if version:
            if changed := _run("git", "status", "--porcelain"):
                raise ValueError(f"git: there are changes that are not committed:\n{changed}")
            write_version(ROOT, version, time.strftime("%Y-%m-%d", time.gmtime()))
            _run(sys.executable, "-m", "uv", "lock", "--quiet")
        released = version_of(ROOT)
        shutil.rmtree(WHEELS, ignore_errors=True)
        _run("make", "--silent", "engine-wheels", "wheels", f"OWNER={os.environ.get('OWNER', 'OWNER')}")
        write_index(WHEELS.glob("*.whl"), INDEX, SUMS)
        for step, seconds in try_index(INDEX, released).items():
            print(f"{step:<12} {seconds:4.0f} s")
        if version:
            _run("git", "commit", "--all", "--quiet", "--message", f"Release {version}")
            _run("git", "tag", "--annotate", f"v{version}", "--message", f"kueue-fleet {version}")
    except (ValueError, RuntimeError, subprocess.CalledProcessError) as failed:
        print(f"error: {failed}", file=sys.stderr)
        return 1
    print(
        f"{len(list(WHEELS.glob('*.whl')))} wheels in {WHEELS.relative_to(ROOT)}, checksums in {SUMS.relative_to(ROOT)}"
    )
    if version:
        print(f"Publish it: git push origin HEAD v{version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
