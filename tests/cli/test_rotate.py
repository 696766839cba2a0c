"""`kueue-fleet rotate`: which tokens it replaces, what it prints and when it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fleet_file.builders import fleet
from tests.kube.token_apis import FIRST_TOKEN, jwt, kubeconfig, secret
from typer.testing import CliRunner, Result

from kueue_fleet.cli import app
from kueue_fleet.cli import rotate as command
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.tokens import TAKEN_SECONDS, token_life

ROOT = Path(__file__).parents[2]
STACK = str(ROOT / "stacks" / "Pulumi.dws-multikueue.yaml")
WORKERS = ["worker-europe-west4", "worker-us-east4", "worker-asia-southeast1"]


class Clusters:
    """Every cluster of the fleet, as an administrator: objects by cluster and path."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Json] = {}
        self.down: set[str] = set()
        self.slept: list[float] = []
        self.issued: list[str] = []
        for worker in WORKERS:
            manager = f"/api/v1/namespaces/kueue-system/secrets/{worker}-2026-11"
            self.objects["manager-europe-west4", manager] = secret(FIRST_TOKEN)
            self.objects[worker, "/api/v1/namespaces/kueue-system/secrets/multikueue-manager-2026-11"] = {}

    def request(self, cluster: str, method: str, path: str, body: Json | None) -> Json:
        if cluster in self.down:
            raise ApiError(0, "", "no answer: NewConnectionError")
        if method == "POST":
            assert body is not None
            self.issued.append(cluster)
            return {"status": {"token": jwt(iat=1_800_000_000, exp=1_800_000_000 + body["spec"]["expirationSeconds"])}}
        if method == "PATCH":
            assert body is not None
            self.objects[cluster, path] = body
            return body
        if (cluster, path) not in self.objects:
            raise ApiError(404, "NotFound", "not found")
        return self.objects.pop((cluster, path)) if method == "DELETE" else self.objects[cluster, path]


@pytest.fixture(autouse=True)
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    result = Clusters()

    def request(cluster: Any, method: str, path: str, body: Json | None = None, *_: Any) -> Json:
        return result.request(cluster, method, path, body)

    monkeypatch.setattr(command, "request", request)
    monkeypatch.setattr(command, "connect", lambda _, cluster, *__: cluster)
    monkeypatch.setattr(command, "sleep", result.slept.append)
    return result


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["rotate", STACK, *arguments])


def test_every_worker_gets_a_token_that_expires_and_the_first_ones_are_voided(clusters: Clusters) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert clusters.issued == WORKERS
    assert clusters.slept == [TAKEN_SECONDS]
    assert [cluster for cluster, _ in clusters.objects if cluster in WORKERS] == []
    for (cluster, _), results in clusters.objects.items():
        assert cluster == "manager-europe-west4"
        assert results["metadata"]["annotations"]["kueue-fleet.dev/expires"] == "2027-01-22T08:00:00+00:00"
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "worker-us-east4 multikueue-manager: a new token, which expires on 2027-01-22 08:00 UTC" in lines
    assert "worker-us-east4 multikueue-manager: the first token is revoked" in lines
    assert "eyJ" not in result.output


def test_once_the_first_tokens_are_gone_nothing_is_waited_for(clusters: Clusters) -> None:
    run()
    clusters.slept.clear()
    assert run().exit_code == 0
    assert clusters.slept == []


def test_one_worker_alone(clusters: Clusters) -> None:
    assert run("--worker", "worker-us-east4").exit_code == 0
    assert clusters.issued == ["worker-us-east4"]
    slip = run("--worker", "worker-us-east1")
    assert "there is no worker worker-us-east1; did you mean worker-us-east4" in str(slip.exception)


def test_a_worker_out_of_reach_keeps_its_token_and_the_others_get_theirs(clusters: Clusters) -> None:
    clusters.down.add("worker-us-east4")
    result = run()
    assert isinstance(result.exception, Exception)
    assert str(result.exception) == (
        "1 token not replaced, and still valid:\n  worker-us-east4 multikueue-manager: no answer: NewConnectionError"
    )
    assert clusters.issued == ["worker-europe-west4", "worker-asia-southeast1"]
    kept = clusters.objects["manager-europe-west4", "/api/v1/namespaces/kueue-system/secrets/worker-us-east4-2026-11"]
    assert kept == secret(FIRST_TOKEN)
    assert token_life(kubeconfig(FIRST_TOKEN)["users"][0]["user"]["token"]).expires is None


def test_a_fleet_without_tokens_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = {"multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}}
    monkeypatch.setattr(command, "load_fleet", lambda _: fleet(profiles))
    assert "reaches its workers without tokens; there is nothing to replace" in str(run().exception)
