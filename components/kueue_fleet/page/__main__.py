"""`python -m kueue_fleet.page`: the page for teams, as the controller's image runs it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from kueue_admission.kernel.yaml_text import load_yaml
from kueue_fleet.kube.kubeconfig import kubeconfig_files
from kueue_fleet.objects.fleet_page import PageConfiguration
from kueue_fleet.page.api_server import ApiServer
from kueue_fleet.page.team_page import TeamPage
from kueue_fleet.page.viewers import IapSignIn, TokenSignIn


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the page with the arguments of a command line until SIGTERM; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kueue_fleet.page", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the configuration that the component writes")
    parser.add_argument("--listen", default="127.0.0.1:8080", help="HOST:PORT")
    parser.add_argument("--kubeconfig", type=Path, help="of the cluster; default: KUBECONFIG, else the pod's account")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    host, _, port = options.listen.rpartition(":")
    if not port.isdecimal():
        parser.error(f"--listen {options.listen}: write HOST:PORT")
    kubeconfig = options.kubeconfig or (kubeconfig_files() if os.environ.get("KUBECONFIG") else None)
    try:
        settings = PageConfiguration.model_validate(
            load_yaml(options.config.read_text(encoding="utf-8"), "config.yaml")
        )
    except (OSError, ValueError) as wrong:
        print(f"error: {options.config}: {wrong}", file=sys.stderr)
        return 1
    api, iap = ApiServer(kubeconfig), settings.page.iap
    signs = TokenSignIn() if iap is None else IapSignIn(iap.audience or "", settings.users, iap.groups)
    page = TeamPage(settings, api, signs)
    asyncio.run(_serve(page, api, host, int(port)))
    return 0


async def _serve(page: TeamPage, api: ApiServer, host: str, port: int) -> None:
    runner = web.AppRunner(page.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    end_event = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end_event.set)
    try:
        await web.TCPSite(runner, host, port).start()
        logging.info("serving on %s:%s", host, port)
        await end_event.wait()
    finally:
        await runner.cleanup()
        await api.close()


if __name__ == "__main__":
    sys.exit(main())
