"""Files of jobs in examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kueue_admission.simulate.documents import read_documents


def jobs_in(file: Path) -> list[dict[str, Any]]:
    """The jobs in FILE and what they use, as a rehearsal submits them."""
    return [dict(item.data) for item in read_documents(file.read_text(), str(file))]
