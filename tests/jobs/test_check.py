"""Checks of jobs register themselves, each in a module of its subject."""

from __future__ import annotations

import subprocess
import sys

from kueue_fleet.jobs.check import _CHECKS, _CHECKS_OF_RIGHT_JOBS, _import_checks


def test_every_module_of_the_folder_has_a_check() -> None:
    _import_checks()
    modules = {name for name in sys.modules if name.startswith("kueue_fleet.jobs.check.")}
    assert {check.__module__ for check in (*_CHECKS, *_CHECKS_OF_RIGHT_JOBS)} == modules


def test_the_order_is_the_same_whichever_module_is_imported_first() -> None:
    program = (
        "import kueue_fleet.jobs.check.{first}, kueue_fleet.jobs.check as check; check._import_checks(); "
        "print([one.__qualname__ for one in check._CHECKS])"
    )
    orders = {
        subprocess.run([sys.executable, "-c", program.format(first=first)], capture_output=True, check=True).stdout
        for first in ("amounts", "tpus")
    }
    assert len(orders) == 1


def test_the_order_is_that_of_the_modules() -> None:
    _import_checks()
    modules = [check.__module__ for check in _CHECKS]
    assert modules == sorted(modules)
