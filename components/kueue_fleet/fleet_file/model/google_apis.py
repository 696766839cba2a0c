"""Parts of the fleet file that use APIs of Google Cloud which other fleets do not need."""

from collections.abc import Mapping
from typing import ClassVar


class UsesApis:
    """An entry, a section, or a field of one, with APIs that the fleet's project has to have enabled for it."""

    apis: ClassVar[Mapping[str, str]]
    """What needs each API, by the API's name without its domain: `file`."""
