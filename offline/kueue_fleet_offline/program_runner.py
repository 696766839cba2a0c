"""Runs a Pulumi program of a project in its own Python; started by path from `language_host`.

Errors go to the engine, and `ALREADY_REPORTED` as the exit
code says that nothing is to be added to them.
Source: how Pulumi's own Python host starts a program (sdk/python/cmd/pulumi-language-python-exec).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import runpy
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ALREADY_REPORTED = 32
"""Exit code of a program whose error has been shown."""
THREADS_PER_OPERATION = 4
"""Threads for each resource that may be made at the same time."""
UNLIMITED_PARALLEL_THREADS = 64
"""Resources that are made at the same time where Pulumi sets no limit."""


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pulumi-language-python (stand-in)")
    for name in ("monitor", "engine", "project", "stack", "organization", "root-directory", "pwd"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("program")
    return parser.parse_args()


def _users_traceback(error: BaseException, program: Path) -> str:
    """The traceback of `error` from the program's own first frame on."""
    frames = traceback.extract_tb(error.__traceback__)
    folder = str(program if program.is_dir() else program.parent)
    first = next((i for i, frame in enumerate(frames) if str(Path(frame.filename).resolve()).startswith(folder)), 0)
    limit = -(len(frames) - first) if frames else None
    return "".join(traceback.format_exception(error, limit=limit))


def _end_with_the_host() -> None:
    """Asks the kernel to end this process when the language host is gone, even when it was killed."""
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _executor(parallel: int) -> ThreadPoolExecutor:
    workers = max(parallel, 1) * THREADS_PER_OPERATION
    return ThreadPoolExecutor(max_workers=min(workers, UNLIMITED_PARALLEL_THREADS * THREADS_PER_OPERATION))


def main() -> int:
    """Runs the program; the exit code is 0, 1, or `ALREADY_REPORTED`."""
    arguments = _parse_arguments()
    _end_with_the_host()
    import pulumi
    import pulumi.runtime

    pulumi.runtime.set_all_config(pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env())
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            monitor=arguments.monitor,
            engine=arguments.engine,
            project=arguments.project,
            stack=arguments.stack,
            parallel=arguments.parallel,
            dry_run=arguments.dry_run,
            organization=arguments.organization,
            root_directory=arguments.root_directory,
        )
    )
    sys.argv = [arguments.program]
    os.chdir(arguments.pwd)
    program = Path(arguments.program).resolve()
    if program.is_dir() and not (program / "__main__.py").is_file():
        pulumi.log.error(f"unable to find main python program `__main__.py` in `{program}`")
        return ALREADY_REPORTED
    # What a failed program leaves unawaited is of no interest to its author.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = _executor(arguments.parallel)
    loop.set_default_executor(executor)

    def run() -> None:
        runpy.run_path(arguments.program, run_name="__main__")

    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(run))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return ALREADY_REPORTED
    except Exception as error:
        output = _users_traceback(error, program)
        pulumi.log.error(f"Program failed with an unhandled exception:\n{output}")
        return ALREADY_REPORTED
    finally:
        executor.shutdown(wait=True)
        loop.close()
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    # The program's imports must not be found in the folder of this file.
    sys.path.pop(0)
    sys.exit(main())
