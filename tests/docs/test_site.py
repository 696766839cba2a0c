"""The pages as a site, and the versions that they name."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.docs.console import ROOT

from kueue_rehearsal.engines.catalogue import ENGINES

SHOWN = {
    "kueue": "Kueue",
    "jobset": "JobSet",
    "kuberay": "KubeRay",
    "lws": "LeaderWorkerSet",
    "trainer": "Kubeflow Trainer",
    "kubernetes": "Kubernetes API server",
    "etcd": "etcd",
    "pulumi": "Pulumi CLI",
}
PACKAGES = ("pulumi", "pulumi-gcp", "pulumi-docker-build", "pulumi-kubernetes", "pydantic")


def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    """A link to a page, a heading or a file that is not there is one; with --quiet, --strict would let it pass."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for page in (
        "index.html",
        "concepts/index.html",
        "tasks/dws/index.html",
        "python/components/index.html",
        "search/search_index.json",
    ):
        assert (tmp_path / "site" / page).is_file()
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'href="platform/"' in home
    assert 'href="tasks/dws/"' in (tmp_path / "site" / "platform" / "index.html").read_text(encoding="utf-8").replace(
        "../tasks", "tasks"
    )
    assert "/blob/main/stacks/Pulumi.prod.yaml" in home


def versions() -> str:
    """The table of versions, from what pins them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    result = [(label, next(e for e in ENGINES if e.name == name)) for name, label in SHOWN.items()]
    rows = []
    for label, engine in result:
        tested = engine.version.removeprefix("v")
        rows.append((label, f"{engine.accepts}.x" if engine.accepts else tested, tested))
    classifiers = [text.rpartition(" ")[2] for text in project["classifiers"] if ":: 3." in text]
    rows.append(("Python", f"{classifiers[0]} to {classifiers[-1]}", classifiers[0]))
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    for name in PACKAGES:
        expected = next(text for text in project["dependencies"] if re.match(rf"{name}[><=]", text))
        tested = next(package["version"] for package in locked if package["name"] == name)
        rows.append((f"`{name}`", expected.removeprefix(name).replace(",", ", "), tested))
    lines = [f"| {label} | {works} | {tested} |" for label, works, tested in rows]
    return "\n".join(("| | works with | tested with |", "|---|---|---|", *lines))


def test_the_page_on_versions_says_what_is_pinned(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "releases.md"
    text = page.read_text(encoding="utf-8")
    result = re.sub(
        r"^\| \| works with.*?(?=\n\n)", lambda _: versions(), text, count=1, flags=re.MULTILINE | re.DOTALL
    )
    if request.config.getoption("update_snapshots"):
        page.write_text(result, encoding="utf-8")
    else:
        assert text == result
