"""One leader among the replicas: a Lease, held with the official client's leader election."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.baselock import BaseLock

from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.client import KubeApi

_RELEASE_SECONDS: Final = 5.0
"""Much less than the grace period of the pods."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds: how long a lease lasts, how long its holder tries to renew it, and how often."""

    lease: int = 15
    renew: int = 10
    retry: int = 2


class LeaseLock(BaseLock):
    """A Lease as the lock of the client's leader election.

    The client's own LeaseLock cannot create its Lease (kubernetes 37.0.2: it passes a bool that its models refuse).
    A server that does not answer within `patience` seconds is a failed attempt, not the end of the process. `taken` is
    set once another replica has what was held: the client's election would continue until its deadline. `renewed_at` is
    when the last successful renewal was begun, on the clock of `time.monotonic`; None if it is not held.
    """

    def __init__(self, api: KubeApi, name: str, namespace: str, identity: str, patience: float = 10.0) -> None:
        super().__init__(name, namespace, identity)
        self.taken = asyncio.Event()
        self._api = api
        self._patience = patience
        self._lease: Json = {}
        self.renewed_at: float | None = None

    async def get(
        self, name: str, namespace: str
    ) -> tuple[bool, LeaderElectionRecord] | tuple[bool, Exception] | tuple[bool, None]:
        """What the Lease says; (False, the refusal) where there is none."""
        try:
            self._lease = await self._in_time(self._api.get(f"{_leases(namespace)}/{name}"))
        except ApiError as error:
            return False, ApiException(
                status=error.status, reason=error.reason or str(error), body=json.dumps({"code": error.status})
            )
        spec = self._lease.get("spec") or {}
        if self.renewed_at is not None and spec.get("holderIdentity") != self.identity:
            self.taken.set()
        duration = spec.get("leaseDurationSeconds")
        return True, LeaderElectionRecord(
            spec.get("holderIdentity") or None,
            None if duration is None else str(duration),
            spec.get("acquireTime"),
            spec.get("renewTime"),
        )

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        """Whether the Lease was made."""
        begun = time.monotonic()
        metadata = {"name": name, "namespace": namespace}
        body = {"apiVersion": _API, "kind": "Lease", "metadata": metadata, "spec": _spec(election_record, {})}
        try:
            self._lease = await self._in_time(self._api.create(_leases(namespace), body))
        except ApiError as error:
            log.warning("lease not made", extra={"fields": {"error": str(error)}})
            return False
        self.renewed_at = begun
        return True

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        """Whether the Lease was changed; not if another replica was faster."""
        begun = time.monotonic()
        body = {**self._lease, "spec": _spec(updated_record, self._lease.get("spec") or {})}
        try:
            self._lease = await self._in_time(self._api.replace(f"{_leases(namespace)}/{name}", body))
        except ApiError as error:
            log.warning("lease not renewed", extra={"fields": {"error": str(error)}})
            return False
        self.renewed_at = begun
        return True

    async def _in_time(self, request: Coroutine[Any, Any, Json]) -> Json:
        """The answer to a request. Raises ApiError if there is none in time."""
        try:
            # Not wait_for, which can swallow a cancellation (Python 3.11).
            async with asyncio.timeout(self._patience):
                return await request
        except TimeoutError:
            raise ApiError(0, "", f"the API server did not answer within {self._patience:g} s") from None

    async def release(self) -> None:
        """Release the Lease, if it is held, so that another replica need not wait until it expires.

        It takes a few seconds at most, so that the process ends soon.
        """
        spec = self._lease.get("spec") or {}
        if spec.get("holderIdentity") != self.identity:
            return
        body = {**self._lease, "spec": {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}}
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._api.replace(f"{_leases(self.namespace)}/{self.name}", body)
        except TimeoutError:
            log.warning("lease not released", extra={"fields": {"error": f"no answer in {_RELEASE_SECONDS:g} s"}})
        except ApiError as error:
            log.warning("lease not released", extra={"fields": {"error": str(error)}})


_API: Final = "coordination.k8s.io/v1"


def _leases(namespace: str) -> str:
    return f"/apis/{_API}/namespaces/{namespace}/leases"


def _spec(record: LeaderElectionRecord, before: Json) -> Json:
    other = before.get("holderIdentity") != record.holder_identity
    return {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": int(record.lease_duration or 0),
        "acquireTime": _time(record.acquire_time),
        "renewTime": _time(record.renew_time),
        "leaseTransitions": int(before.get("leaseTransitions") or 0) + int(other),
    }


def _time(text: str | None) -> str:
    """A time of the client's election, local without a zone, or of the Lease, as the Lease has it."""
    return datetime.fromisoformat(text or "").astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _until_over(lock: LeaseLock, seconds: float) -> None:
    """Until another replica has the Lease, or it was not renewed for so long, whatever an attempt still waits for."""
    while not lock.taken.is_set():
        seconds_left = 1.0 if lock.renewed_at is None else lock.renewed_at + seconds - time.monotonic()
        if seconds_left <= 0:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(seconds_left, 1.0)):
                await lock.taken.wait()


async def lead(
    api: KubeApi,
    name: str,
    namespace: str,
    identity: str,
    work: Callable[[], Awaitable[None]],
    terms: Terms | None = None,
) -> None:
    """Wait for the Lease, then work for as long as it is held. Returns when it is lost, raises what `work` raises."""
    terms = terms or Terms()
    failures: list[BaseException] = []
    working: list[asyncio.Task[None]] = []

    async def guarded() -> None:
        working.append(cast("asyncio.Task[None]", asyncio.current_task()))
        try:
            await work()
        except Exception as error:
            failures.append(error)
            election.cancel()

    async def lost() -> None:
        log.warning("lease lost", extra={"fields": {"identity": identity}})

    lock = LeaseLock(api, name, namespace, identity, terms.renew)
    config = Config(lock, terms.lease, terms.renew, terms.retry, guarded, lost)
    election = asyncio.create_task(LeaderElection(config).run())
    until_over = asyncio.create_task(_until_over(lock, terms.lease - 1.0))
    try:
        await asyncio.wait([election, until_over], return_when=asyncio.FIRST_COMPLETED)
        if until_over.done():
            await lost()
            return
        await election
    except asyncio.CancelledError:
        if failures:
            raise failures[0] from None
        raise
    finally:
        until_over.cancel()
        election.cancel()
        for task in working:
            task.cancel()
            await asyncio.wait([task])
        # Only now: nothing is written any more.
        await lock.release()
