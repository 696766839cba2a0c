"""Writes files and makes folders that only their owner may read: credentials are in many of them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Writes a file whole or not at all, readable by its owner only unless `mode` says otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # mkstemp makes the file with mode 0600.
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def make_private(folder: Path) -> None:
    """Makes `folder` and its missing parents, readable by their owner only."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
