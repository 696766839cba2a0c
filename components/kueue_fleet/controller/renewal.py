"""Keeps the tokens by which the workers are reached young: those of Kueue, and the controller's own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.tokens import TokenApi, TokenError, renew_token
from kueue_fleet.settings.tokens import WorkerToken

ROUND_SECONDS = 300.0
"""Pause between two looks at all tokens; much less than the half of any token's life."""

log = logging.getLogger(__name__)


class TokenRenewal:
    """Looks at every token, again and again. A worker that does not answer holds up no other."""

    def __init__(
        self,
        tokens: Sequence[WorkerToken],
        lifetime: float,
        manager: TokenApi,
        workers: Mapping[str, TokenApi],
        metrics: Metrics,
        now: Callable[[], float],
    ) -> None:
        self._tokens = tokens
        self._lifetime = lifetime
        self._manager = manager
        self._workers = workers
        self._metrics = metrics
        self._now = now

    async def run(self) -> None:
        """Look at them until cancelled."""
        while True:
            await self.look()
            # A token that lives for minutes is looked at in time as well.
            await asyncio.sleep(min(ROUND_SECONDS, self._lifetime / 10))

    async def look(self) -> None:
        """Look at every token once."""
        await asyncio.gather(*(self._renew(place) for place in self._tokens))

    async def _renew(self, place: WorkerToken) -> None:
        labels = (place.worker, place.account)
        try:
            life = await renew_token(self._manager, self._workers[place.worker], place, self._lifetime, self._now())
        except (ApiError, TokenError) as error:
            self._metrics.token_failures.labels(*labels).inc()
            fields = {"worker": place.worker, "account": place.account, "error": str(error)[:500]}
            log.warning("token not renewed", extra={"fields": fields})
            return
        if life.expires is not None:
            self._metrics.token_issued.labels(*labels).set(life.issued)
            self._metrics.token_expires.labels(*labels).set(life.expires)
