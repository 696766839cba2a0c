"""Words of translated English that nothing in the folders below says. `make check` runs this.

It reads Python, YAML and Markdown, and prints a line for each place, with what to write.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "components",
    "docs",
    "examples",
    "offline",
    "policies",
    "stacks",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)
"""What is checked: all that users read."""
WORDS = {
    r"(?<!there )\bis no (?!longer\b)": "is not a",
    r"for ever\b|\bwithout end\b": "indefinitely, or say when it ends",
    r"\bfor want of\b": "because of missing ...",
    r"\bupon which\b": "and then",
    r"\bin its stead\b": "instead",
    r"\banew\b": "again",
    r"\bnobody\b": "say who does not: no controller, no user",
    r"\b(is|are|was|were) told\b": "say what is called, returned or printed",
    r"\bone sees\b": "say what is shown",
    r"\bat (its|their) leisure\b": "later",
    r"\bthe books\b": "quota, usage",
    r"\b(is|are) gone on with\b": "is resumed",
    r"\btests? holds?\b": "a test checks or compares",
    r"\bheld against\b": "compared with",
    r"\bto the letter\b": "exactly",
    r"\bthe last word\b": "what decides: authoritative, certain",
    r"\bloses? patience\b": "times out",
    r"\bone of both\b": "either of them",
    r"\breminds? of\b": "warns of",
    r"\bmend(s|ed)?\b": "fix, repair",
    r"\bhears? of\b": "learns of, sees",
    r"\bof no use\b": "what it is: a placeholder",
    r"\bdearest\b": "most expensive",
    r"\bno one\b": "who does not, or no other owner",
    r"\bvoid(s|ed)\b": "revoke a token, reset a counter",
    r"\bat work on\b": "is using",
    r"\bin a circle\b": "a cycle",
    r"\bundoes itself\b": "is undone",
    r"\btheir \w+ not\b": "and not their ...",
    r"\b(changes|differences|times|lines that) are none\b": "that are not, ignored",
    r"(?<!there )\bare no (?!longer\b)": "are not",
    r"\bto be had\b": "available",
    r"\bof which it is\b": "say what is known, or looked at",
    r"\bwithout a word\b": "silently, by default",
    r"\b(made|makes|has) of itself\b": "derives",
    r"\b(is|are) said (of|also|already|once)\b|\bwhich is said\b": "say who says it, or name the sentence",
    r"\bcome to (?!rest\b)(a|an|it)\b": "reach, end",
    r"\bspeaks? of\b": "mentions, describes",
    r"\bhow many of its \w+ may\b": "the number of ... that may",
    r"\bwhat of (a|it|its|the|them)\b": "which of ..., the fields that ...",
    r"\bbe it alone\b": "even if it were alone",
    r"\bsays? nothing of\b": "does not say, leaves alone",
    r"\bthan which\b": "no other is more ...",
}
"""What is not written, and what to write instead."""


def found(path: str, text: str) -> Iterator[str]:
    """`file:line: word; write ...` for each place."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, instead in WORDS.items():
            for match in re.finditer(pattern, line, re.IGNORECASE):
                yield f"{path}:{number}: {match[0]!r}; write: {instead}"


def main() -> int:
    """Prints every place; the exit code is 1 if there is one."""
    command = ["git", "ls-files", "--", *FOLDERS]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    paths = [path for path in listed if path.endswith((".py", ".yaml", ".md")) and (ROOT / path).is_file()]
    places = [place for path in paths for place in found(path, (ROOT / path).read_text(encoding="utf-8"))]
    print("\n".join(places) or f"Plain English: all of {len(paths)} files")
    return int(bool(places))


if __name__ == "__main__":
    sys.exit(main())
