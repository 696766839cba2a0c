"""Pages whose `console` blocks are run: commands after `$ `, and below each what it prints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from forked_command import program_folder

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "policies").glob("*.md"),
        *(ROOT / "components").glob("*/README.md"),
    ]
)
TODAY = """import datetime
import warnings

# Of pyarrow, which finds another class below than it was built with.
warnings.filterwarnings("ignore", message="datetime.date size changed")

date = datetime.date


class Kind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, date)


class Day(date, metaclass=Kind):
    @classmethod
    def today(cls):
        return cls(2026, 11, 21)


datetime.date = Day
"""
"""Python reads it when it starts: pages are read on the day on which they were written, whenever they are tested."""

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_CONTINUED = re.compile(r"\\\n *")


@dataclass(frozen=True)
class Step:
    """A command of a page and what stands below it."""

    command: str
    shown: str
    """With the `$ ` line, as it is on the page."""
    expected: str


def blocks(page: Path, language: str) -> list[str]:
    """The text of each block of that language, as it is on the page but for the indentation of a list."""
    return [textwrap.dedent(match[3]) for match in _BLOCK.finditer(page.read_text()) if match[2] == language]


def languages(page: Path) -> set[str]:
    """The languages of its blocks; empty text for a block without one."""
    return {match[2] for match in _BLOCK.finditer(page.read_text())}


def prose(page: Path) -> str:
    """The page without its blocks."""
    return _BLOCK.sub("", page.read_text())


def steps(block: str) -> list[Step]:
    """The commands of a block, with their output."""
    result = []
    for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
        if not part.strip():
            continue
        lines = part.splitlines(keepends=True)
        length = 1
        while lines[length - 1].rstrip("\n").endswith("\\"):
            length += 1
        output = "".join(lines[:length])
        result.append(Step(output.removeprefix("$ ").rstrip("\n"), output, "".join(lines[length:])))
    return result


def workplace(folder: Path) -> Path:
    """A folder with what a clone has that pages work on."""
    for name in ("stacks", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    return folder


def run(step: Step, folder: Path) -> str:
    """What the command prints, on both streams, and its exit code where that is not 0."""
    environment = {
        **os.environ,
        "PATH": f"{program_folder(TODAY)}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONPATH": str(folder / ".today"),
    }
    (folder / ".today").mkdir(exist_ok=True)
    (folder / ".today" / "sitecustomize.py").write_text(TODAY)
    result = subprocess.run(
        ["bash", "-c", step.command], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=120, check=False,
    )  # fmt: skip
    output = "\n".join(line.rstrip() for line in result.stdout.splitlines())
    return output + "\n" if output else ""


def matches(expected: str, printed: str) -> bool:
    """Whether a page tells the truth; a line `...` stands for any lines."""
    if "...\n" not in expected.splitlines(keepends=True):
        return expected.strip() == printed.strip()
    parts = [re.escape(part) for part in re.split(r"^\.\.\.$\n?", expected, flags=re.MULTILINE)]
    return re.fullmatch(r"(?:.*\n)*?".join(parts), printed) is not None


def commands_of_sh(page: Path) -> list[str]:
    """Commands that need a cloud or a cluster."""
    text = "\n".join(_CONTINUED.sub(" ", block) for block in blocks(page, "sh"))
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
