"""Random fleet files without errors, over every section and field, for Hypothesis.

`fleet_files()` draws the plain data of a file, as YAML gives it; `fleets()` the same, parsed. Files are right by
construction, so nothing is filtered away; warnings are wanted. `test_fleet_files.py` holds that each field is drawn.
"""

from __future__ import annotations

from tests.fleet_files.files import fleet_files, fleets

__all__ = ["fleet_files", "fleets"]
