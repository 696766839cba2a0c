"""Copies of Go modules without some parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rehearsal.fake_go import SOURCES

from kueue_rehearsal.engines.catalogue import ENGINES
from kueue_rehearsal.engines.patched import PATCHED, Edit, PatchedModule, copy_patched
from kueue_rehearsal.paths import RehearsalError

MODULE = "example.com/m"


def copy(tmp_path: Path, files: dict[str, str], *edits: Edit) -> Path:
    for name, text in files.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_text(text)
        (tmp_path / "source" / name).chmod(0o444)
    copy_patched(PatchedModule(MODULE, edits), tmp_path / "source", tmp_path / "copy")
    return tmp_path / "copy"


def test_every_match_is_replaced(tmp_path: Path) -> None:
    copied = copy(tmp_path, {"a.go": "x := 1\nx := 1\n"}, Edit("a.go", "x := 1", "x := 2"))
    assert (copied / "a.go").read_text() == "x := 2\nx := 2\n"


def test_an_edit_that_matches_nothing_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"example\.com/m: a\.go has no 'y'; edit engines/patched\.py"):
        copy(tmp_path, {"a.go": "x"}, Edit("a.go", "y", "z"))


def test_an_import_with_another_name_than_its_path_stays(tmp_path: Path) -> None:
    text = 'package a\n\nimport (\n\t"example.com/go-b"\n)\n\nb.F()\nx\n'
    copied = copy(tmp_path, {"a.go": text}, Edit("a.go", "x\n", ""))
    assert "example.com/go-b" in (copied / "a.go").read_text()


def test_imports_that_nothing_uses_go_too(tmp_path: Path) -> None:
    head = (
        'package a\n\nimport (\n\t"fmt"\n\tv1 "example.com/v1"\n\t"example.com/b/v2" // why\n\t_ "example.com/c"\n)\n'
    )
    copied = copy(tmp_path, {"a.go": f"{head}\nv1.F()\nb.G()\nfmt.H()\n"}, Edit("a.go", r"v1\.F|b\.G", "f"))
    text = (copied / "a.go").read_text()
    assert '"fmt"' in text
    assert '_ "example.com/c"' in text
    assert "example.com/v1" not in text
    assert "example.com/b" not in text


def test_tests_of_a_module_are_not_copied(tmp_path: Path) -> None:
    copied = copy(tmp_path, {"a.go": "package a", "a_test.go": "package a", "testdata/x": ""})
    assert [path.name for path in copied.iterdir()] == ["a.go"]


def test_a_copy_can_be_removed_again(tmp_path: Path) -> None:
    (tmp_path / "source" / "sub").mkdir(parents=True)
    (tmp_path / "source" / "sub").chmod(0o555)
    copied = copy(tmp_path, {})
    assert (copied / "sub").stat().st_mode & 0o200


def test_every_patched_module_belongs_to_an_engine() -> None:
    assert {module for engine in ENGINES for module in engine.patched} == set(PATCHED)


@pytest.mark.parametrize("module", PATCHED, ids=lambda module: module.module)
def test_the_stand_in_for_go_has_what_each_edit_changes(module: PatchedModule) -> None:
    assert {edit.file for edit in module.edits} == set(SOURCES[module.module])


def test_kueue_writes_no_certificate_authority_that_is_there(tmp_path: Path) -> None:
    module = next(item for item in PATCHED if item.module.endswith("/cert-controller"))
    text = (copy(tmp_path, SOURCES[module.module], *module.edits) / "pkg/rotator/rotator.go").read_text()
    lines = [line.strip() for line in text.splitlines()]
    assert '"reflect"' in lines
    unchanged = lines.index("if reflect.DeepEqual(before, updatedResource) {")
    assert lines.index("before := updatedResource.DeepCopy()") < unchanged
    assert lines[unchanged + 1] == "continue"
    assert lines[unchanged + 3].startswith("if err := r.writer.Update(")


def test_a_patch_of_some_engines_is_in_their_builds_alone() -> None:
    module = next(item for item in PATCHED if item.engines)
    assert {engine.name for engine in ENGINES if module in engine.patched} == set(module.engines)
