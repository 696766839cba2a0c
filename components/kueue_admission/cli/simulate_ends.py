"""What `simulate` says of how a simulation ended, and the exit code for it."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kueue_admission.cli import INTERRUPTED, console
from kueue_admission.simulate.clock import EndReason
from kueue_admission.simulate.result import Result


def tell(results: Sequence[Result]) -> None:
    """Say on stderr where the simulation did not come to rest.

    Raises:
        Exit: with 130, the user ended it.
        CommandError: it was ended because it would never have.
    """
    for result in results:
        at = f"second {result.end.at - result.origin:,.0f}"
        if result.end.reason is EndReason.REPEATS:
            console.warning(f"ended at {at}: the same jobs start over again and again; give --until to choose the end")
        elif result.end.reason is EndReason.INTERRUPTED:
            console.warning(f"interrupted at {at} of the simulation; what is shown covers the time until then")
            raise typer.Exit(INTERRUPTED)
        elif result.end.reason is EndReason.NEVER_SETTLES:
            raise console.CommandError(
                f"the simulation does not get past {at}: what happens then is undone and repeated indefinitely; "
                "what is shown covers the time until then"
            )
