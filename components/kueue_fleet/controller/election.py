"""One leader among the replicas: a Lease, held with the official client's leader election."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

import aiohttp
from kubernetes.aio.client import ApiClient
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds: how long a lease lasts, how long its holder tries to renew it, and how often."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class _Lock(LeaseLock):
    """A LeaseLock that takes a server that does not answer for a failed attempt, not for the end of the process."""

    async def get(
        self, name: str, namespace: str
    ) -> tuple[bool, LeaderElectionRecord] | tuple[bool, Exception] | tuple[bool, None]:
        try:
            return await super().get(name, namespace)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return False, _Unreachable(type(error).__name__)

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        return await _attempt(super().create(name, namespace, election_record))

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        return await _attempt(super().update(name, namespace, updated_record))


class _Unreachable(Exception):  # noqa: N818 (the client asks it for a `reason`)
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def _attempt(attempt: Awaitable[bool]) -> bool:
    try:
        return await attempt
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


async def lead(
    client: ApiClient,
    name: str,
    namespace: str,
    identity: str,
    work: Callable[[], Awaitable[None]],
    terms: Terms | None = None,
) -> None:
    """Wait for the Lease, then work for as long as it is held. Returns when it is lost, raises what `work` raises."""
    terms = terms or Terms()
    failed: list[BaseException] = []
    working: list[asyncio.Task[None]] = []

    async def guarded() -> None:
        working.append(cast("asyncio.Task[None]", asyncio.current_task()))
        try:
            await work()
        except Exception as error:
            failed.append(error)
            election.cancel()

    async def lost() -> None:
        log.warning("lease lost", extra={"fields": {"identity": identity}})

    lock = _Lock(name, namespace, identity, client)
    config = Config(lock, terms.lease, terms.renew, terms.retry, guarded, lost)
    election = asyncio.create_task(LeaderElection(config).run())
    try:
        await election
    except asyncio.CancelledError:
        if failed:
            raise failed[0] from None
        raise
    finally:
        for task in working:
            task.cancel()
            await asyncio.wait([task])
