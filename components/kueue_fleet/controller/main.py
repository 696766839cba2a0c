"""The controller's process: health and metrics at once, everything else while it leads."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from kueue_admission.decide.model import Configuration
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.read_model import read_model
from kueue_admission.kernel.yaml_text import load_yaml
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.pod_resources import Limits, namespace_limits
from kueue_admission.releases import nearest
from kueue_fleet.controller.ask_again import REASONS, count_stuck
from kueue_fleet.controller.capacity import CapacityWriter
from kueue_fleet.controller.configured_quota import ConfiguredQuota
from kueue_fleet.controller.election import Terms, lead
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.history import HistoryWriter
from kueue_fleet.controller.journal import Events, log_to_stdout
from kueue_fleet.controller.manager import ManagerState
from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.controller.reconcile import Reconciler
from kueue_fleet.controller.renewal import TokenRenewal
from kueue_fleet.controller.waiting_reasons import WaitingReasons
from kueue_fleet.controller.work_queue import WorkQueue
from kueue_fleet.controller.workers import WorkerState
from kueue_fleet.kube.access import Kubeconfigs
from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.client import KubeApi, read_by_record
from kueue_fleet.kube.kubeconfig import kubeconfig_files
from kueue_fleet.settings.configuration import LEASE_NAME, ControllerConfiguration, WorkerConfiguration

CONCURRENT = 16
"""Workloads that are looked at at the same time: most of it is waiting for the API server."""
_CHECK, _ACTIVATE, _LOCAL = "check", "activate", "local"
"""What a key of the queue begins with that is not a Workload's."""
_WORKERS_SECONDS = 10.0
"""How long a new leader waits for workers before it decides without those that do not answer."""
_CLOCK_STEP_SECONDS = 5.0
_YOUNGER_COLLECTIONS = 1000
"""Before each full collection of garbage; 2,000 nominations bring about 20."""
_STUCK_SECONDS = 5.0
"""Between two counts of what is stuck, for which every Workload is looked at."""

log = logging.getLogger(__name__)


class ConfigurationError(Exception):
    """The configuration file cannot be used; `problems` says why, each with what to do."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Settings:
    """Where everything is.

    `workers` is a folder with a kubeconfig for each worker, named like it. `kubeconfig` is the manager's.
    """

    configuration: Path
    workers: Path
    kubeconfig: Kubeconfigs
    host: str
    port: int
    identity: str = ""
    terms: Terms | None = None

    @classmethod
    def of_command(
        cls, configuration: Path, workers: Path, listen: str, kubeconfig: Path | None, identity: str
    ) -> Settings:
        """The settings of a command line, with KUBECONFIG for the manager. Raises ValueError for a wrong `--listen`."""
        host, _, port = listen.rpartition(":")
        if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 2**16):
            raise ValueError(f"--listen {listen}: has no port; write HOST:PORT")
        files: Kubeconfigs = kubeconfig
        if kubeconfig is None and os.environ.get("KUBECONFIG"):
            files = kubeconfig_files()
        return cls(configuration, workers, files, host or "0.0.0.0", int(port), identity)  # noqa: S104


def read_configuration(file: Path) -> ControllerConfiguration:
    """The configuration in a file. Raises ConfigurationError."""
    instead = "deploy the controller with its component, which writes it"
    try:
        data = load_yaml(file.read_text(encoding="utf-8"), str(file))
        if isinstance(data, Mapping):
            return read_model(ControllerConfiguration, data)
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}; {instead}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: is not UTF-8 text; {instead}") from None
    except SpecError as error:
        problems = (problem if problem.source else problem.behind(str(file)) for problem in error.problems)
        raise ConfigurationError(*(f"{problem}, or {instead}" for problem in problems)) from None
    raise ConfigurationError(f"{file}: does not hold a map of fields; {instead}")


class Controller:
    """One replica."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._configuration = read_configuration(settings.configuration)
        self.metrics = Metrics()
        self._alive_at = time.monotonic()
        self._leading = False
        self._reasons: WaitingReasons | None = None

    async def run(self) -> None:
        """Run until the Lease is lost or the process is asked to end."""
        manager = KubeApi(self._settings.kubeconfig, self.metrics.requests_to("manager"))
        runner = await self._serve()
        identity = self._settings.identity or socket.gethostname()
        try:
            await lead(
                manager,
                LEASE_NAME,
                self._configuration.namespace,
                identity,
                lambda: self._work(manager),
                self._settings.terms,
            )
        finally:
            await runner.cleanup()
            await manager.close()

    async def _work(self, manager_api: KubeApi) -> None:
        """What the leader does."""
        collect_rarely()
        self._leading = True
        self.metrics.leading.set(1)
        log.info("leading", extra={"fields": {"fleet": self._configuration.fleet}})
        queue = WorkQueue(time.monotonic)
        limits = namespace_limits(self._configuration.limit_ranges)
        kueue = parse_configuration(self._configuration.kueue, nearest(self._configuration.kueue_release))
        manager = ManagerState(
            kueue,
            self._configuration.controller.dispatch,
            lambda key: self._add(queue, manager, key),
            self._configuration.namespace,
            limits,
            asks=bool(self._configuration.asks_in),
        )
        manager.on_check = lambda name: queue.add(f"{_CHECK} {name}")
        workers = {entry.name: self._worker(entry, queue, manager, limits) for entry in self._configuration.workers}
        events = Events(manager_api, time.time, lambda: len(queue) > 0)
        worker_apis = {name: KubeApi(self._settings.workers / name, self.metrics.requests_to(name)) for name in workers}
        fleet = Fleet(manager, workers, manager_api, worker_apis, self.metrics, events.tell, time.time)
        reconciler = Reconciler(self._configuration, fleet)
        says = self._configuration.controller.explain_waiting
        quota = self._say_reasons(kueue, fleet, events, reconciler) if says else None
        tokens, lifetime = self._configuration.tokens, self._configuration.token_lifetime.seconds
        renewal = TokenRenewal(tokens, lifetime, manager_api, worker_apis, self.metrics, time.time)
        history = HistoryWriter(self._configuration, self.metrics, time.time)
        capacity = CapacityWriter(self._configuration.following, manager_api, worker_apis, self.metrics, time.time)
        try:
            async with asyncio.TaskGroup() as group:
                watches = manager.watch(manager_api)
                history.follow(None, manager_api, watches)
                for name, worker in workers.items():
                    of_worker = worker.watch(worker_apis[name])
                    history.follow(name, worker_apis[name], of_worker)
                    for watch in of_worker:
                        group.create_task(watch.run())
                for watch in (*watches, *(quota.watch(manager_api) if quota is not None else ())):
                    group.create_task(watch.run())
                if self._reasons is not None:
                    group.create_task(self._reasons.run())
                group.create_task(events.run())
                group.create_task(self._measure(queue, fleet))
                group.create_task(renewal.run())
                for watch in (*capacity.watches, *history.watches):
                    group.create_task(watch.run())
                group.create_task(capacity.run())
                group.create_task(history.run())
                for watch in watches:
                    await watch.synced.wait()
                await self._wait_for_workers(workers)
                reconciler.recall()
                await reconciler.budgets.load()
                group.create_task(reconciler.budgets.run())
                # A full collection has only what comes later to look at.
                gc.collect()
                gc.freeze()
                for _ in range(CONCURRENT):
                    group.create_task(self._reconcile(queue, reconciler))
        finally:
            for api in worker_apis.values():
                await api.close()

    def _say_reasons(
        self, configuration: Configuration, fleet: Fleet, events: Events, reconciler: Reconciler
    ) -> ConfiguredQuota:
        """Have each waiting Workload say why it waits; the quota of the manager, whose watches are to be run."""
        quota = ConfiguredQuota("manager", configuration, lambda _: reasons.note_all())
        reasons = self._reasons = WaitingReasons(fleet, quota, partial(events.tell, of_job=True), reconciler.residency)
        return quota

    async def _wait_for_workers(self, workers: Mapping[str, WorkerState]) -> None:
        """Know every worker that answers before the first decision; one that does not is waited for no longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WORKERS_SECONDS):
                # A list alone is not enough: until its watch runs, a worker counts as unknown.
                while not all(worker.followed for worker in workers.values()):
                    await asyncio.sleep(0.05)
        for worker in workers.values():
            if worker.followed:
                worker.read_configuration()

    def _worker(
        self,
        entry: WorkerConfiguration,
        queue: WorkQueue,
        manager: ManagerState,
        limits: Mapping[str, Limits],
    ) -> WorkerState:
        worker_state = WorkerState(
            entry.name,
            entry.region,
            parse_configuration(entry.kueue, nearest(entry.kueue_release)),
            self._configuration.origin,
            lambda key: self._add(queue, manager, key),
            limits,
        )
        worker_state.on_local = lambda key: queue.add(f"{_LOCAL} {entry.name} {key}")
        worker_state.on_check = lambda: queue.add(f"{_ACTIVATE} {entry.name}")
        return worker_state

    def _add(self, queue: WorkQueue, manager: ManagerState, key: str | None) -> None:
        if key is not None:
            queue.add(key)
            if self._reasons is not None:
                self._reasons.note(key)
            return
        for record in manager.records.values():
            if record.holds_quota and record.admitted_at is None:
                queue.add_behind(record.key)

    async def _reconcile(self, queue: WorkQueue, reconciler: Reconciler) -> None:
        while True:
            key = await queue.take()
            try:
                again = await self._reconcile_key(key, reconciler)
                if again is not None:
                    queue.add_after(key, max(again - time.time(), 0.5))
                queue.succeeded(key)
            except ApiError as error:
                self.metrics.failures.labels(str(error.status)).inc()
                level = logging.INFO if error.is_conflict or error.is_not_found else logging.WARNING
                log.log(level, "not written", extra={"fields": {"key": key, "error": str(error)[:500]}})
                queue.retry(key)
            except Exception:
                # One workload that the core cannot decide must not keep it from all others.
                self.metrics.failures.labels("bug").inc()
                log.exception("no decision", extra={"fields": {"key": key}})
                queue.retry(key)
            finally:
                queue.done(key)
                self._alive_at = time.monotonic()

    @staticmethod
    async def _reconcile_key(key: str, reconciler: Reconciler) -> float | None:
        kind, *names = key.split()
        match kind:
            case "check":
                await reconciler.reconcile_check(*names)
            case "activate":
                await reconciler.assigner.activate(*names)
            case "local":
                await reconciler.assigner.let_in(*names)
            case _:
                return await reconciler.reconcile(key)
        return None

    async def _measure(self, queue: WorkQueue, fleet: Fleet) -> None:
        ahead = time.time() - time.monotonic()
        watchdog = self._configuration.controller.watchdog
        counted_at = -math.inf
        while True:
            if abs(time.time() - time.monotonic() - ahead) > _CLOCK_STEP_SECONDS:
                # Delays of any workload, evicted ones included, were computed with the clock that was wrong.
                ahead = time.time() - time.monotonic()
                for key in fleet.manager.records:
                    queue.add(key)
            self.metrics.queue.set(len(queue))
            if time.monotonic() - counted_at >= _STUCK_SECONDS:
                stuck, counted_at = count_stuck(fleet, watchdog, time.time()), time.monotonic()
                for reason in REASONS:
                    self.metrics.stuck.labels(reason).set(stuck[reason])
            for name, worker in fleet.workers.items():
                self.metrics.connected.labels(name).set(worker.followed)
            self._alive_at = time.monotonic()
            await asyncio.sleep(1.0)

    async def _serve(self) -> web.AppRunner:
        """Health and metrics."""
        application = web.Application()
        application.router.add_get("/healthz", self._health)
        application.router.add_get("/readyz", self._ready)
        application.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, self._settings.host, self._settings.port).start()
        return runner

    async def _health(self, _: web.Request) -> web.Response:
        """Whether the event loop gets anywhere; a follower has nothing to do."""
        stuck = self._leading and time.monotonic() - self._alive_at > 60
        return web.Response(status=503 if stuck else 200, text="stuck" if stuck else "ok")

    async def _ready(self, _: web.Request) -> web.Response:
        return web.Response(text="leading" if self._leading else "standing by")

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self.metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4"})


def collect_rarely() -> None:
    """What is known mostly stays, and has no cycles: each full collection would hold up decisions to look at all of it,
    for a second with 20,000 Workloads on a busy machine, and find nothing."""
    gc.set_threshold(*gc.get_threshold()[:2], _YOUNGER_COLLECTIONS)


def run(settings: Settings) -> int:
    """Run the controller; the exit code of the process: 0 when it was asked to end, 1 when it lost the Lease.

    Raises ConfigurationError.
    """
    log_to_stdout()
    read_by_record()
    controller = Controller(settings)

    async def until_told(work: Coroutine[Any, Any, None]) -> int:
        task = asyncio.create_task(work)
        loop = asyncio.get_running_loop()
        signals: list[int] = []

        def stop() -> None:
            signals.append(1)
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return 0 if signals else 1

    return asyncio.run(until_told(controller.run()))
