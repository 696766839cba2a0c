"""`rotate`: new tokens for the manager's access to every worker, made through the contexts of a kubeconfig."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import sleep, time
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_admission.cli import console
from kueue_fleet.cli.contexts import check_readable, connect
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.progress import line, step
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.worker_tokens import token_credentials, worker_tokens
from kueue_fleet.kube.answers import APPLY_PATCH, ApiError, Json
from kueue_fleet.kube.requests import request
from kueue_fleet.kube.tokens import TAKEN_SECONDS, TokenError, renew_token, void_first_token
from kueue_fleet.settings.tokens import WorkerToken

if TYPE_CHECKING:
    from kubernetes.client import ApiClient


def rotate(
    file: FleetFile,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="With a context for each cluster, of its name or the file's, whose user may write Secrets there.",
            show_default="$KUBECONFIG or ~/.kube/config",
        ),
    ] = None,
    worker: Annotated[list[str] | None, typer.Option("--worker", help="Only this worker; may be repeated.")] = None,
) -> None:
    """Replace the tokens by which the manager reaches the workers; running jobs do not notice.

    Each worker makes new tokens, which expire after multiKueue.credentials.lifetime, and the command writes them into
    their Secrets on the manager. Three minutes later, when all readers have the new tokens, it revokes the first ones,
    which `pulumi up` made and which never expire. A fleet with a controller does all of this by itself.

    \b
    Examples:
      pulumi stack output kubeconfig --show-secrets > kubeconfig
      kueue-fleet rotate stacks/Pulumi.dws-multikueue.yaml --kubeconfig kubeconfig
      kueue-fleet rotate . --kubeconfig kubeconfig
      kueue-fleet rotate stacks/Pulumi.dws-multikueue.yaml \\
          --worker worker-us-east4
    """
    fleet = load_fleet(file)
    places = _places(fleet, worker or [])
    check_readable(kubeconfig)
    credentials = token_credentials(fleet)
    assert credentials is not None
    assert fleet.manager is not None
    names = dict.fromkeys((fleet.manager.name, *(place.worker for place in places)))
    clusters = {name: _Cluster(connect("rotate", name, kubeconfig, fleet)) for name in names}
    renewed_tokens, problems = _renew(places, clusters, fleet.manager.name, credentials.lifetime.seconds)
    first = [place for place in renewed_tokens if clusters[place.worker].has(_first(place))]
    if first:
        with step("wait") as say:
            say.stage("until every reader has the new tokens")
            sleep(TAKEN_SECONDS)
            say("every reader has the new tokens")
    problems += _void(first, clusters)
    if problems:
        count = console.count(len(problems), "token")
        raise console.CommandError(f"{count} not replaced, and still valid:", problems=problems)


def _places(fleet: FleetSpec, workers: list[str]) -> list[WorkerToken]:
    """The tokens to replace. Raises CommandError where there are none, or no such worker."""
    tokens = worker_tokens(fleet)
    if not tokens:
        wrong = "has no multiKueue" if fleet.multi_kueue is None else "reaches its workers without tokens"
        raise console.CommandError(f"fleet {fleet.name} {wrong}; there is nothing to replace")
    known_places = dict.fromkeys(token.worker for token in tokens)
    for name in workers:
        if name not in known_places:
            from kueue_admission.kernel.suggest import instead

            raise console.mistyped(f"--worker: there is no worker {name}; {instead(name, known_places, 'workers')}")
    return [token for token in tokens if not workers or token.worker in workers]


def _renew(
    places: list[WorkerToken], clusters: Mapping[str, _Cluster], manager: str, lifetime: float
) -> tuple[list[WorkerToken], list[str]]:
    """What was renewed, and what went wrong."""
    renewed_tokens, problems = [], []
    for place in places:
        label = f"{place.worker} {place.account}"
        try:
            life = asyncio.run(
                renew_token(clusters[manager], clusters[place.worker], place, lifetime, time(), at_once=True)
            )
        except (ApiError, TokenError) as wrong:
            problems.append(f"{label}: {wrong}")
            continue
        renewed_tokens.append(place)
        expires = datetime.fromtimestamp(life.expires or 0, UTC).strftime("%Y-%m-%d %H:%M UTC")
        line(place.worker, f"{place.account}: a new token, which expires on {expires}")
    return renewed_tokens, problems


def _void(places: list[WorkerToken], clusters: Mapping[str, _Cluster]) -> list[str]:
    problems = []
    for place in places:
        try:
            asyncio.run(void_first_token(clusters[place.worker], place))
        except ApiError as wrong:
            problems.append(f"{place.worker} {place.account}: its first token is still valid: {wrong}")
            continue
        line(place.worker, f"{place.account}: the first token is revoked")
    return problems


def _first(place: WorkerToken) -> str:
    return f"/api/v1/namespaces/{place.account_namespace}/secrets/{place.first_secret}"


@dataclass
class _Cluster:
    """One cluster, through the official client, which takes a kubeconfig of any kind."""

    client: ApiClient

    def has(self, path: str) -> bool:
        """Whether there is something at PATH; also where that cannot be read."""
        try:
            request(self.client, "GET", path)
        except ApiError as error:
            return not error.is_not_found
        return True

    async def get(self, path: str) -> Json:
        """See `TokenApi.get`."""
        return request(self.client, "GET", path)

    async def create(self, path: str, body: Json) -> Json:
        """See `TokenApi.create`."""
        return request(self.client, "POST", path, body)

    async def apply(self, path: str, body: Json, manager: str) -> Json:
        """See `TokenApi.apply`."""
        return request(self.client, "PATCH", path, body, {"fieldManager": manager, "force": "true"}, APPLY_PATCH)

    async def delete(self, path: str) -> Json:
        """See `TokenApi.delete`."""
        return request(self.client, "DELETE", path)
