"""The settings of a running rehearsal, from config `kueue-fleet:rehearsal` of a stack.

The section itself, with its fields, defaults and rules, is `fleet_file.model.rehearsal_section`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kueue_admission.kernel.problem import errors_of
from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection, read_rehearsal_section
from kueue_fleet.fleet_file.parse import REHEARSAL_KEY
from kueue_rehearsal.paths import RehearsalError


def parse_settings(data: Any, source: str) -> RehearsalSection:
    """The settings in the config's value `data`; `source` is the file it came from, for messages.

    Raises RehearsalError with every problem.
    """
    section, problems = read_rehearsal_section({} if data is None else data)
    errors = errors_of(problems)
    if section is None or errors:
        raise RehearsalError("\n".join(f"{source}: {problem.at(f'config.{REHEARSAL_KEY}')}" for problem in errors))
    return section


class SettingsFile:
    """The settings of a running rehearsal: a file that is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._settings = RehearsalSection()

    def current(self) -> RehearsalSection:
        """The settings now; the defaults where there is no file. Raises RehearsalError for one that is wrong."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return self._settings
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            self._settings = parse_settings(json.loads(self._path.read_text()), str(self._path))
            self._stamp = stamp
        return self._settings
