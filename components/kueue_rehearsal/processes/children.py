"""The child processes of one owner, by name: who is alive, who ended and how, who is started again.

A process that ends unasked is always logged. Only those spawned with `restart=True` are started again: after 1, 2, 4, 8
and 16 s, and then every 16 s; after one that ran for 30 s the delays start over.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.processes.child_process import ChildProcess, ProcessSpec, log_tail, start_process

log = logging.getLogger(__name__)

RESTART_DELAYS_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Pause before each further start of a process that ended; the last one from then on."""
_FORGIVEN_AFTER_SECONDS = 30.0
"""What ran so long is not in a loop of crashes."""
_REMEMBERED_ENDS = 32


def describe_end(returncode: int) -> str:
    """`ended with exit code 1`, `was killed by SIGKILL`."""
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


@dataclass(slots=True)
class _Slot:
    child: ChildProcess
    restart: bool
    restarts: int = 0
    """Since it last ran for `_FORGIVEN_AFTER_SECONDS`."""
    pending: asyncio.TimerHandle | None = None


class Children:
    """The processes of one cluster, or of the rehearsal itself."""

    def __init__(self, owner: str, on_death: Callable[[ChildProcess], None] = lambda child: None) -> None:
        self._owner = owner
        self._on_death = on_death
        self._slots: dict[str, _Slot] = {}
        self._closed = False

    def spawn(self, spec: ProcessSpec, *, restart: bool = False) -> ChildProcess:
        """Starts a process under its name.

        Raises RehearsalError when one of that name runs, when the program cannot be started, or after `stop`.
        """
        if self._closed:
            raise RehearsalError(f"{self._owner}: it is being stopped, {spec.name} is not started any more")
        before = self._slots.get(spec.name)
        if before is not None and before.child.returncode is None:
            raise RehearsalError(
                f"{self._owner}: {spec.name} runs already as process {before.child.pid}; stop it first"
            )
        if before is not None and before.pending is not None:
            before.pending.cancel()
        child = start_process(spec)
        self._slots.pop(spec.name, None)
        self._slots[spec.name] = _Slot(child, restart)
        self._forget_old_ends()
        child.on_exit(self._ended)
        return child

    def running(self, name: str) -> ChildProcess | None:
        """The process of this name, if it is alive."""
        slot = self._slots.get(name)
        return slot.child if slot is not None and slot.child.returncode is None else None

    def alive(self) -> list[ChildProcess]:
        """All that run, in the order they were started."""
        return [slot.child for slot in self._slots.values() if slot.child.returncode is None]

    def signal(self, name: str, number: signal.Signals) -> int:
        """Signals a process as a fault would; what follows is not taken for a stop. Returns its pid.

        Raises LookupError when none of that name runs.
        """
        child = self.running(name)
        if child is None:
            raise LookupError(name)
        log.warning("%s: sending %s to %s (process %d), as asked", self._owner, number.name, name, child.pid)
        child.send_signal(number)
        return child.pid

    def status(self) -> dict[str, dict[str, object]]:
        """Each process, those that have ended too: pid, state, restarts, log."""
        return {name: _slot_status(slot) for name, slot in self._slots.items()}

    async def stop_named(self, *names: str) -> None:
        """Stops these together; names that do not run are passed over."""
        children = [child for child in map(self.running, names) if child is not None]
        self._cancel_restarts(names)
        await asyncio.gather(*(child.stop() for child in children))

    async def stop(self, *last: str) -> None:
        """Stops all together, but those named in `last` after the others, in that order. Nothing starts again."""
        self._closed = True
        self._cancel_restarts(self._slots)
        await asyncio.gather(*(child.stop() for child in self.alive() if child.spec.name not in last))
        for name in last:
            await self.stop_named(name)

    def _cancel_restarts(self, names: Iterable[str]) -> None:
        for name in names:
            slot = self._slots.get(name)
            if slot is not None and slot.pending is not None:
                slot.pending.cancel()
                slot.pending = None

    def _ended(self, child: ChildProcess) -> None:
        if child.stopping or self._closed:
            return
        returncode = child.returncode
        assert returncode is not None
        how = describe_end(returncode)
        last_line = log_tail(child.spec.log, 1)
        slot = self._slots.get(child.spec.name)
        if slot is None or slot.child is not child or not slot.restart:
            log.error("%s: %s %s; its log is %s: %s", self._owner, child.spec.name, how, child.spec.log, last_line)
        else:
            self._restart_later(slot, how, last_line)
        self._on_death(child)

    def _restart_later(self, slot: _Slot, how: str, text: str) -> None:
        spec = slot.child.spec
        if time.time() - slot.child.started_at > _FORGIVEN_AFTER_SECONDS:
            slot.restarts = 0
        delay = RESTART_DELAYS_SECONDS[min(slot.restarts, len(RESTART_DELAYS_SECONDS) - 1)]
        slot.restarts += 1
        log.error(
            "%s: %s %s; it is started again in %.0f s; its log is %s: %s",
            self._owner, spec.name, how, delay, spec.log, text,
        )  # fmt: skip
        slot.pending = asyncio.get_running_loop().call_later(delay, self._restart, slot)

    def _restart(self, slot: _Slot) -> None:
        slot.pending = None
        try:
            slot.child = start_process(slot.child.spec)
        except RehearsalError as error:
            log.error("%s: %s", self._owner, error)
            slot.restart = False
            return
        slot.child.on_exit(self._ended)

    def _forget_old_ends(self) -> None:
        ended_names = [
            name for name, slot in self._slots.items() if slot.child.returncode is not None and not slot.pending
        ]
        for name in ended_names[:-_REMEMBERED_ENDS]:
            del self._slots[name]


def _slot_status(slot: _Slot) -> dict[str, object]:
    child = slot.child
    if child.returncode is None:
        state = "running"
    elif child.stopping:
        state = "stopped"
    else:
        state = describe_end(child.returncode)
        if slot.pending is not None:
            state += ", to be started again"
    return {"pid": child.pid, "state": state, "restarts": slot.restarts, "log": str(child.spec.log)}
