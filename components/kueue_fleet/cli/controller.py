"""`controller`: the fleet's dispatcher, admission checks and watchdog, as they run in the manager cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kueue_admission.cli import console


def controller(
    config: Annotated[
        Path, typer.Option("--config", help="The configuration that the component AdmissionController writes.")
    ],
    workers: Annotated[
        Path, typer.Option("--workers", help="A folder with a kubeconfig for each worker, named like it.")
    ],
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Address of health and metrics.")
    ] = ":8080",
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", help="Of the manager; default: KUBECONFIG, else the account of the pod."),
    ] = None,
    identity: Annotated[str, typer.Option("--identity", help="Name of this replica; default: the host's.")] = "",
) -> None:
    """Run the fleet's own controller, until it is asked to end or loses its Lease.

    Needs the extra `controller`: pip install kueue-fleet[controller].

    \b
    Examples:
      kueue-fleet controller --config config.yaml --workers kubeconfigs/
      kueue-fleet controller --config config.yaml --workers kubeconfigs/ \\
          --kubeconfig ~/.kube/config --listen 127.0.0.1:8080
    """
    from kueue_fleet.controller.main import ConfigurationError, Settings, run

    try:
        settings = Settings.of_command(config, workers, listen, kubeconfig, identity)
    except ValueError as error:
        raise console.mistyped(str(error)) from None
    try:
        code = run(settings)
    except ConfigurationError as error:
        raise console.wrong_input(config, error.problems) from None
    raise typer.Exit(code)
