"""Services of a cluster for the tests of the supervisor, named by `module:function` on its command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kueue_rehearsal.cloud.node_pool_rules import Reservation
from kueue_rehearsal.control_planes.control_plane import ClusterAccess, ClusterService
from kueue_rehearsal.processes.child_process import ProcessSpec


class Worker:
    """Prepares the cluster, then runs a process and answers for node pools."""

    def __init__(self, access: ClusterAccess) -> None:
        self.access = access

    async def prepare(self) -> None:
        (self.access.workdir / "prepared.txt").write_text(f"{self.access.server} {self.access.autopilot}")

    async def run(self) -> None:
        argv = ("/bin/sleep", "3600")
        child = self.access.spawn(ProcessSpec(name="sleeper", argv=argv, log=self.access.workdir / "sleeper.log"))
        await child.wait()
        await asyncio.Event().wait()

    async def put_inputs(self, body: Mapping[str, object]) -> None:
        (self.access.workdir / "inputs.json").write_text(json.dumps(body))

    def inputs(self) -> Mapping[str, object]:
        return {"cluster": json.loads((self.access.workdir / "inputs.json").read_text()), "nodePools": {}}

    async def put_node_pool(
        self, pool: str, body: Mapping[str, object], reservations: Sequence[Reservation]
    ) -> dict[str, object]:
        return {"name": pool, **body, "reservations": [one.name for one in reservations]}

    async def refused_pods(self) -> list[dict[str, object]]:
        return [{"kind": "Deployment", "name": "web"}]

    def late_pods(self) -> list[str]:
        return ["shop/web: container main waits"]

    async def reclaim_spot(self, pool: str | None, count: int) -> list[str]:
        return [f"{pool}-{number}" for number in range(count)]

    async def delete_node_pool(self, pool: str) -> None:
        Path(self.access.workdir / f"deleted-{pool}").touch()


class Crashing:
    """Raises as soon as it runs."""

    def __init__(self, access: ClusterAccess) -> None:
        self.access = access

    async def run(self) -> None:
        raise ValueError("out of luck")


class Returning:
    """Does not stay."""

    async def run(self) -> None:
        return


class Unprepared:
    """Cannot prepare its cluster."""

    async def prepare(self) -> None:
        raise LookupError("no such thing")

    async def run(self) -> None:
        raise AssertionError("runs though it is not prepared")


def working(access: ClusterAccess) -> Sequence[ClusterService]:
    return (Worker(access),)


def failing(access: ClusterAccess) -> Sequence[ClusterService]:
    return (Crashing(access), Returning())


def unprepared(access: ClusterAccess) -> Sequence[ClusterService]:
    return (Unprepared(),)
