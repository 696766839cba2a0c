"""The command line, called in this process: starting Python anew takes longer than most commands."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from kueue_fleet import cli


def call(*arguments: str | Path, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """What `kueue-fleet ARGUMENTS` prints, to no terminal, and how it ends. `environ` is added to the environment."""
    argv = ["kueue-fleet", *map(str, arguments)]
    given, out, err = (io.TextIOWrapper(io.BytesIO(text), "utf-8") for text in (stdin.encode(), b"", b""))
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        mock.patch.object(sys, "argv", argv),
        mock.patch.object(sys, "stdin", given),
        mock.patch.dict(os.environ, environ),
    ):
        code: str | int | None = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
    assert code is None or isinstance(code, int), f"it ends with a message of its own: {code}"
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(argv, code or 0, out.read(), err.read())
