"""What is told of the pods that a node never runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kueue_rehearsal.node_agent.refusals import describe_refusals

Json = dict[str, Any]
APPS = "/apis/apps/v1/namespaces/shop"


@dataclass
class Api:
    """Knows some objects by their path."""

    objects: dict[str, Json] = field(default_factory=dict)

    async def find(self, path: str) -> Json | None:
        return self.objects.get(path)


@dataclass
class Worker:
    """A pod on the node, and why it is refused."""

    pod: Json
    message: str | None = "no program stands in for image nginx:1"
    since: float = 7.0
    is_curable: bool = False

    def refusal(self) -> str | None:
        return self.message


def item(name: str, kind: str = "", owner: str = "", **more: Any) -> Json:
    """An object of the namespace `shop`, made by the object KIND of that name."""
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
    owners = {"ownerReferences": [reference]} if kind else {}
    return {"metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", **owners, **more}}


async def described(api: Api, *workers: Worker) -> list[Json]:
    of_api: Any = api
    of_workers: Any = workers
    return await describe_refusals(of_api, of_workers)


async def test_a_pod_is_told_by_its_deployment_and_by_the_release_that_made_it() -> None:
    release = {"meta.helm.sh/release-name": "store", "meta.helm.sh/release-namespace": "helm"}
    api = Api(
        {
            f"{APPS}/replicasets/web-1": item("web-1", "Deployment", "web"),
            f"{APPS}/deployments/web": item("web", annotations=release),
        }
    )
    pod = item("web-1-x", "ReplicaSet", "web-1", labels={"app": "web"})
    assert await described(api, Worker(pod)) == [
        {
            "kind": "Deployment",
            "namespace": "shop",
            "name": "web",
            "labels": {"app": "web"},
            "message": "no program stands in for image nginx:1",
            "since": 7.0,
            "curable": False,
            "release": {"namespace": "helm", "name": "store"},
        }
    ]


async def test_a_stateful_sets_pod_a_pod_of_nobodys_and_one_of_something_else() -> None:
    api = Api({f"{APPS}/statefulsets/db": item("db")})
    pods = [item("db-0", "StatefulSet", "db"), item("alone"), item("odd", "Odd", "thing")]
    rows = await described(api, *map(Worker, pods))
    assert [(row["kind"], row["name"]) for row in rows] == [("StatefulSet", "db"), ("Pod", "alone"), ("Pod", "odd")]
    assert all("release" not in row for row in rows)


async def test_pods_that_run_and_pods_whose_maker_is_gone_are_not_told() -> None:
    again = item("web-1", "Deployment", "web")
    again["metadata"]["uid"] = "another of that name"
    api = Api({f"{APPS}/replicasets/web-1": again, f"{APPS}/statefulsets/db": item("db")})
    gone = [item("old", "ReplicaSet", "old-1"), item("web-1-x", "ReplicaSet", "web-1")]
    running = Worker(item("db-0", "StatefulSet", "db"), message=None)
    assert await described(api, *map(Worker, gone), running) == []
