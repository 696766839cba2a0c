"""What every component does in a Pulumi program: how a mistake ends it, its options, and its name."""

import asyncio
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime.settings import get_monitor, get_root_resource

from kueue_admission.forms import SpecError
from kueue_fleet.fleet_file.fleet_rules import COMPONENT


class ProgramError(SpecError, pulumi.RunError):
    """A `SpecError` in a Pulumi program: it ends the program with its text alone, without a traceback."""


SpecError.raised_as = ProgramError


_NAMES: "Final[WeakKeyDictionary[Any, set[Any]]]" = WeakKeyDictionary()
"""The components that were declared, by the run of a program."""


def _run() -> Any:
    """What one run of a program has for itself: its task; unit tests share a root, and often the mocks."""
    try:
        return asyncio.current_task() or get_monitor()
    except RuntimeError:
        return get_monitor()


class OwnComponent(pulumi.ComponentResource):
    """A component of this library."""

    if not TYPE_CHECKING:

        def __new__(cls, name: Any = None, *_: Any, opts: Any = None, **__: Any) -> Self:
            """Check what Pulumi would refuse in words of its own, or as late as in the engine.

            Raises:
                SpecError: options that are none, or the name of another component of this class and parent.
            """
            if opts is not None and not isinstance(opts, pulumi.ResourceOptions):
                wrong, fix = f"{type(opts).__name__} is given", "give pulumi.ResourceOptions, such as with provider=..."
                raise SpecError([COMPONENT.at(f"{cls.__name__} {name}: opts", wrong, fix)])
            root = get_root_resource()
            if root is not None:
                names = _NAMES.setdefault(_run(), set())
                named = (cls, name, (opts and opts.parent) or root)
                if named in names:
                    wrong = "is declared before, with the same parent"
                    raise SpecError([COMPONENT.at(f"{cls.__name__} {name}", wrong, "give each its own name")])
                names.add(named)
            return super().__new__(cls)
