"""How much of the engines Go compiles more than once, from the modules that are on this machine."""

from __future__ import annotations

from tests.engine_versions import APART, compiled_twice, folders

MOST = 60
"""Packages; `make align-engines` lists them."""


def test_nearly_every_package_is_compiled_in_one_version() -> None:
    twice = compiled_twice(folder for folder in folders() if folder.name not in APART)
    lines = "\n".join(f"{package}: {', '.join(sorted(versions))}" for package, versions in sorted(twice.items()))
    assert len(twice) <= MOST, f"{len(twice)} packages:\n{lines}"
