"""`python -m kueue_fleet.controller`: the controller alone, without the rest of the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kueue_fleet.controller.main import ConfigurationError, Settings, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller with the arguments of a command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="kueue-fleet controller", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the configuration that the component writes")
    parser.add_argument("--workers", type=Path, required=True, help="folder with a kubeconfig for each worker")
    parser.add_argument("--listen", default=":8080", help="address of health and metrics: HOST:PORT")
    parser.add_argument("--kubeconfig", type=Path, default=None, help="of the manager; default: the pod's account")
    parser.add_argument("--identity", default="", help="name of this replica; default: the host's")
    options = parser.parse_args(arguments)
    try:
        settings = Settings.of_command(
            options.config, options.workers, options.listen, options.kubeconfig, options.identity
        )
    except ValueError as error:
        parser.error(str(error))
    try:
        return run(settings)
    except ConfigurationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
