"""The terminal of both command lines, `kueue-admission` and `kueue-fleet`, and what a command is as a process.

This module and the package above it import next to nothing, so that `run_process` is soon ready for Ctrl-C.
"""

import atexit
import gc
import os
import signal
import sys

TYPE_CHECKING = False
"""As typing has it, whose import takes longer than all else before `run_process`."""
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

INTERRUPTED = 130
"""Exit code after Ctrl-C."""
_SIGPIPE_STATUS = 141


def run_process(run: "Callable[[], int]") -> None:
    """Run the command line, and exit with its code. Nothing that is expected ends with a traceback."""
    before = signal.getsignal(signal.SIGINT)
    # A shell lets commands in the background ignore Ctrl-C.
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    # Pydantic looks for plugins in the metadata of every distribution, which takes 20 ms.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Nearly all that a command makes, modules and models first of all, stays until it ends: to look for garbage in it,
    # at the end of the process too, takes a tenth of `check`.
    atexit.register(gc.freeze)
    threshold = gc.get_threshold()
    gc.set_threshold(100_000, *threshold[1:])
    try:
        from kueue_admission.cli.streams import OutputClosedError, prepare_streams

        prepare_streams()
        sys.exit(run())
    except OutputClosedError:
        sys.exit(_SIGPIPE_STATUS)
    finally:
        gc.set_threshold(*threshold)
        signal.signal(signal.SIGINT, before)


def _end(number: int, frame: object) -> "NoReturn":
    """What Ctrl-C does wherever nothing has to be tidied up, in the middle of an import too; see `interruptible`."""
    os._exit(INTERRUPTED)
