from __future__ import annotations

from pathlib import Path

import pytest

from kueue_rehearsal.private_files import write_private


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_private(target, b"old")
    with pytest.raises(TypeError):
        write_private(target, "text")  # type: ignore[arg-type]
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
