"""Standard input and output as a caller may leave them: closed, a pipe without a reader, a full disk."""

import io
import os
import sys

TYPE_CHECKING = False
"""As typing has it, whose import takes longer than all else before `main`."""
if TYPE_CHECKING:
    from typing import Any


class OutputClosedError(Exception):
    """The reader of a pipe has gone, as `head` does."""


class CannotWriteError(Exception):
    """What is printed cannot be written, as on a full disk."""


def prepare_streams() -> None:
    """Let failures of stdout and stderr raise the errors of this module, once; where they are closed, nothing happens.

    Streams that a test has put in their place stay.
    """
    # A file that is opened later would get the number of a closed one, and what is printed.
    while (free := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(free, True)
    os.close(free)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _guarded(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _guarded(2, sys.stderr)


class _Descriptor(io.FileIO):
    """What is written after a failure goes nowhere: Python writes the rest of a buffer when it ends."""

    def write(self, data: "Any", /) -> int:
        try:
            return super().write(data)
        except OSError as wrong:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(wrong, BrokenPipeError):
                raise OutputClosedError from None
            raise CannotWriteError(wrong.strerror) from None


def _guarded(number: int, stream: "Any") -> io.TextIOWrapper:
    writer = io.BufferedWriter(_Descriptor(number, "w", closefd=False))
    encoding = stream.encoding if stream else "utf-8"
    return io.TextIOWrapper(writer, encoding, errors="backslashreplace", line_buffering=True)
