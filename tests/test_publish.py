"""What `make release` writes: versions, the changelog, an index of wheels."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import publish

CHANGELOG = "# Changelog\n\n## Unreleased\n\n- A change.\n\n## 0.2.0 (2026-11-26)\n\n- An old one.\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "pyproject.toml": 'name = "kueue-fleet"\nversion = "0.2.0"\ndependencies = ["kueue-admission==0.2.0"]\n',
        "components/one/pyproject.toml": '[project]\nversion = "0.2.0"\n',
        "docs/tasks/page.md": "docker build -t R/kueue-fleet/controller:0.2.0 ., Kueue 0.2.0\n",
        "CHANGELOG.md": CHANGELOG,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_release_has_one_version_everywhere(project: Path) -> None:
    publish.write_version(project, "0.3.0", "2026-12-01")
    assert publish.version_of(project) == "0.3.0"
    assert "kueue-admission==0.3.0" in (project / "pyproject.toml").read_text()
    assert "controller:0.3.0 ., Kueue 0.2.0" in (project / "docs/tasks/page.md").read_text()


def test_the_changelog_gets_its_heading_and_date(project: Path) -> None:
    publish.write_version(project, "0.3.0", "2026-12-01")
    text = (project / "CHANGELOG.md").read_text()
    assert "## Unreleased\n\n## 0.3.0 (2026-12-01)\n\n- A change.\n" in text
    assert (publish.notes(text, "Unreleased"), publish.notes(text, "0.3.0")) == ("", "- A change.")


@pytest.mark.parametrize("version", ["0.2.0", "0.1.9", "next", "0.3"])
def test_a_version_that_is_not_newer_is_refused(version: str, project: Path) -> None:
    with pytest.raises(ValueError, match="is not a version after"):
        publish.write_version(project, version, "2026-12-01")


def test_a_release_without_changes_is_refused(project: Path) -> None:
    (project / "CHANGELOG.md").write_text("## Unreleased\n\n## 0.2.0 (2026-11-26)\n\n- An old one.\n")
    with pytest.raises(ValueError, match="nothing below Unreleased"):
        publish.write_version(project, "0.3.0", "2026-12-01")


def test_this_project_can_be_released() -> None:
    assert publish.notes((publish.ROOT / "CHANGELOG.md").read_text(), publish.version_of(publish.ROOT))


def test_pip_installs_from_the_index(tmp_path: Path) -> None:
    wheel = tmp_path / "wheels" / "a_part-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a_part.py", "")
        archive.writestr("a_part-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: a-part\nVersion: 1.0\n")
        archive.writestr("a_part-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("a_part-1.0.dist-info/RECORD", "")
    publish.write_index([wheel], tmp_path / "index", tmp_path / "SHA256SUMS")
    options = ["--quiet", "--isolated", "--no-deps", "--index-url", (tmp_path / "index").as_uri()]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(tmp_path / "site"), "a-part==1.0"]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "site" / "a_part.py").is_file()
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert (tmp_path / "SHA256SUMS").read_text() == f"{digest}  {wheel.name}\n"


def test_what_is_packed_names_no_owner_and_links_what_is_there() -> None:
    """`make wheels OWNER=name` makes the links whole."""
    for readme in (*publish.ROOT.glob("components/*/README.md"), publish.ROOT / "policies" / "README.md"):
        links = re.findall(r"\]\((\.\./[^)#]*)", readme.read_text())
        assert [link for link in links if not (readme.parent / link).exists()] == []
        assert "OWNER" not in readme.read_text() + (readme.parent / "pyproject.toml").read_text()
    assert "OWNER" not in (publish.ROOT / "pyproject.toml").read_text()
