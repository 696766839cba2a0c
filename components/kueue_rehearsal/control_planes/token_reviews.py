"""Tells the API servers of a rehearsal which Google account a token is of, as GKE's control planes find out.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#webhook-token-authentication.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from aiohttp import web

from kueue_fleet.kube.new_kubeconfig import render_kubeconfig
from kueue_rehearsal.control_planes.ports import HOST
from kueue_rehearsal.private_files import write_private
from kueue_rehearsal.standins.google_tokens import token_account


class TokenReviews:
    """Listens on loopback between `start` and `stop`."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._runner: web.AppRunner | None = None

    async def start(self, kubeconfig: Path) -> None:
        """Listen, and write what the API servers need to ask here."""
        application = web.Application()
        application.router.add_post("/review", self._review)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, 0).start()
        port = self._runner.addresses[0][1]
        cluster = {"server": f"http://{HOST}:{port}/review"}
        document = render_kubeconfig("rehearsal", cluster, {}, user_name="api-server")
        write_private(kubeconfig, json.dumps(document, indent=1).encode())

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _review(self, request: web.Request) -> web.Response:
        review = await request.json()
        address = token_account(self._key, str(review["spec"].get("token", "")), time.time())
        status: dict[str, object] = {"authenticated": False}
        if address is not None:
            status = {"authenticated": True, "user": {"username": address, "groups": ["system:authenticated"]}}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": "TokenReview", "status": status})
