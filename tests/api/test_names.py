"""A name that Kubernetes, Kueue, GKE or the fleet reads is a constant in one place."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "components", ROOT / "policies", ROOT / "offline")
NAME = re.compile(r"([-a-z0-9]+\.)*(x-k8s\.io|kueue-fleet\.dev|gke\.io|cloud\.google\.com)(/[-A-Za-z0-9_.]+)?")


def constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield from ((value.value, target.id) for target in targets if isinstance(target, ast.Name))


def test_each_is_defined_once() -> None:
    result: dict[str, list[str]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.py")):
            for value, name in constants(ast.parse(path.read_text(encoding="utf-8"))):
                if NAME.fullmatch(value):
                    result[value].append(f"{path.relative_to(ROOT)}: {name}")
    assert len(result) > 20
    assert {value: places for value, places in result.items() if len(places) > 1} == {}
