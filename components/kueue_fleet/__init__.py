"""GPU batch fleets on GKE with Kueue: one typed description, and Pulumi components for all of it or any part.

    import kueue_fleet as kf

    fleet = kf.Fleet.from_config()

Of one kind of object there are four names. A component makes a resource: `ClusterQueue`. `...Spec` and `...Fields` are
what a component of Kubernetes takes: `ClusterQueueSpec`. `...Entry` and `...Args` are parts of a fleet file, for
`FleetSpec`: `ClusterQueueEntry`. `Queue` is a short form of an entry.

Names are loaded when they are first used, so that the spec works without Pulumi; `__init__.pyi` lists them.
"""

TYPE_CHECKING = False
"""As typing has it, whose import takes longer than all else before `cli.main`."""
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_HOMES: "dict[str, str]" = {}
"""The module of each public name, once one of them was asked for."""


def _homes() -> "Mapping[str, str]":
    """The same, read from the list."""
    if not _HOMES:
        from pkgutil import get_data

        lines = (get_data(__name__, "__init__.pyi") or b"").decode().splitlines()
        imports = [line.split() for line in lines if line.startswith("from ")]
        _HOMES.update({name: module for _, module, _, name, *_ in imports})
    return _HOMES


def __getattr__(name: str) -> "Any":
    if name == "__all__":
        return sorted(_homes())
    if name == "__version__":
        from importlib.metadata import version

        return version("kueue-fleet")
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import sys
    from importlib import import_module

    if "pulumi" in sys.modules:
        import_module("kueue_fleet.in_programs")  # In a program, errors of models too end it without a traceback.
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(_homes())
