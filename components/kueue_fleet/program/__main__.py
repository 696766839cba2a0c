"""The process in which a program runs: under Pulumi's mocks, with the config of a stack."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import runpy
import signal
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import pulumi
from pulumi.runtime.stack import run_pulumi_func

from kueue_fleet.testing import Mocks


def main(request_file: str) -> int:
    """Run the program that the file asks for; returns 1 where it fails, having printed why."""
    request = json.loads(Path(request_file).read_text())
    Path(request["started"]).touch()
    # If the process that started this one is killed, this one ends by itself.
    signal.alarm(int(request["seconds"]) + 1)
    program = request["main"]
    sys.argv = [program]
    sys.path[0] = str(Path(program).parent)
    gc.set_threshold(100_000)  # Nearly all that a program makes stays until its end.
    try:
        asyncio.run(_run(request, program))
    except SystemExit as ended:
        if ended.code in (None, 0):
            return 0
        print(f"it ended itself: sys.exit({ended.code!r})", file=sys.stderr)
        return 1
    except pulumi.RunError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:
        traceback.print_exception(type(error), error, _from(error.__traceback__, sys.path[0]))
        return 1
    return 0


async def _run(request: dict[str, Any], program: str) -> None:
    # What a fleet warns of is said by who reads it.
    log = logging.getLogger("program")
    log.setLevel(logging.ERROR)
    names = {"project": request["project"], "stack": request["stack"]}
    pulumi.runtime.set_mocks(Mocks(), **names, preview=True, logger=log)
    pulumi.runtime.set_all_config(request["config"], request["secrets"])

    def run() -> None:
        runpy.run_path(program, run_name="__main__")

    await run_pulumi_func(run)


def _from(trace: TracebackType | None, folder: str) -> TracebackType | None:
    """The traceback from the program on, without what runs it."""
    here = trace
    while here is not None and not here.tb_frame.f_code.co_filename.startswith(folder):
        here = here.tb_next
    return here


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
