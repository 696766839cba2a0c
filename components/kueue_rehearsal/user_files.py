"""Reads the YAML files that the user of a rehearsal writes."""

from __future__ import annotations

from pathlib import Path

from kueue_admission.forms import SpecError
from kueue_admission.forms.yaml_text import YamlDocument, load_documents
from kueue_rehearsal.paths import RehearsalError


def read_documents(file: Path, instead: str) -> list[YamlDocument]:
    """The documents in FILE that have content; INSTEAD says what to do where it cannot be opened.

    Raises:
        RehearsalError: it cannot be opened, or is not UTF-8 text or not YAML.
    """
    try:
        return [each for each in load_documents(file.read_text(encoding="utf-8"), str(file)) if each.data is not None]
    except OSError as wrong:
        raise RehearsalError(f"{file}: {wrong.strerror}; {instead}") from None
    except UnicodeDecodeError as wrong:
        raise RehearsalError(f"{file}: is not UTF-8 text (byte {wrong.start}); save it as UTF-8") from None
    except SpecError as refused:
        raise RehearsalError(str(refused)) from None
