"""`status`: a live fleet at a glance, read through the contexts of a kubeconfig."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kueue_fleet.cli import console
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.input_files import Output
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.spec import FleetSpec

if TYPE_CHECKING:
    from kueue_fleet.status import ClusterObjects, FleetStatus

_KUEUE = ("kueue.x-k8s.io", "v1beta2")
_KINDS = {
    "clusterqueues": _KUEUE,
    "workloads": _KUEUE,
    "multikueueclusters": _KUEUE,
    "provisioningrequests": ("autoscaling.x-k8s.io", "v1"),
}
_NEVER_THERE = {"provisioningrequests"}
_TIMEOUT_SECONDS = 10
_SHOWN = 20
_REMIND_DAYS = 14


def register(app: typer.Typer) -> None:
    """Add the command of this module to APP."""
    app.command(short_help="Show a live fleet: queues, what waits and why, workers, DWS, credentials.")(status)


def status(
    file: FleetFile,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="Has a context for each cluster, named as it.",
            show_default="$KUBECONFIG or ~/.kube/config",
        ),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it anew until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option("--every", min=1, help="Seconds between two looks of --watch.")] = 5.0,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="`json` prints one document, schemaVersion 1.")
    ] = Output.text,
) -> None:
    """Show a live fleet: clusters, queues with use against quota, what waits with its dominant reason, DWS requests.

    Reads only. Exits 1 if a cluster could not be read.

    \b
    Examples:
      pulumi stack output kubeconfig --show-secrets > kubeconfig
      kueue-fleet status stacks/Pulumi.prod.yaml --kubeconfig kubeconfig
      kueue-fleet status stacks/Pulumi.prod.yaml --watch
      kueue-fleet status stacks/Pulumi.prod.yaml -o json | jq .pending
    """
    if watch and output is Output.json:
        raise console.CommandError("--watch: shows text only; leave it out for --output json", exit_code=2)
    fleet = load_fleet(file)
    if not watch:
        found = _look(fleet, kubeconfig)
        if output is Output.json:
            typer.echo(json.dumps(found.as_json(), indent=2))
        else:
            console.out.print(_rendered(found))
        if not all(cluster.reachable for cluster in found.clusters):
            raise typer.Exit(1)
        return
    with Live(console=console.out, auto_refresh=False) as live:
        while True:
            live.update(_rendered(_look(fleet, kubeconfig)), refresh=True)
            time.sleep(every)


def _look(fleet: FleetSpec, kubeconfig: Path | None) -> FleetStatus:
    from kueue_fleet.spec.clusters import ServiceAccountToken
    from kueue_fleet.status import fleet_status

    clusters = [fleet.cluster(name) for name in fleet.cluster_names]
    with ThreadPoolExecutor(max_workers=len(clusters)) as pool:
        objects = pool.map(lambda cluster: _read(cluster.name, cluster.role, kubeconfig), clusters)
        by_name = {cluster.name: found for cluster, found in zip(clusters, objects, strict=True)}
    credentials = fleet.multi_kueue.credentials if fleet.multi_kueue else None
    rotate_by = credentials.rotate_by if isinstance(credentials, ServiceAccountToken) else None
    return fleet_status(fleet.name, by_name, rotate_by, datetime.now(UTC))  # noqa: TID251 - the edge has the clock


def _read(cluster: str, role: str, kubeconfig: Path | None) -> ClusterObjects:
    try:
        from kubernetes import client, config
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError
        from yaml import YAMLError
    except ImportError:
        raise console.CommandError(
            "status needs the Kubernetes client; pip install 'kueue-fleet[rehearsal]' or 'kueue-fleet[controller]'"
        ) from None
    from kueue_fleet.status import ClusterObjects

    try:
        made = config.new_client_from_config(str(kubeconfig) if kubeconfig else None, context=cluster)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError, ValueError, YAMLError) as wrong:
        words = " ".join(str(wrong).removeprefix("Invalid kube-config file. ").split()).rstrip(".")
        name = kubeconfig or "kubeconfig"
        raise console.CommandError(f"{name}: {words}; give a kubeconfig with a context {cluster}") from None
    api = client.CustomObjectsApi(made)
    found: dict[str, Any] = {}
    for plural, (group, version) in _KINDS.items():
        try:
            answer: Any = api.list_cluster_custom_object(group, version, plural, _request_timeout=_TIMEOUT_SECONDS)
            found[plural] = answer["items"]
        except ApiException as refused:
            if refused.status == 404 and plural in _NEVER_THERE:
                continue
            return ClusterObjects(role, found, f"{plural}: {refused.status} {refused.reason}")
        except HTTPError as failed:
            reason = getattr(failed, "reason", failed)
            return ClusterObjects(role, found, f"no answer: {type(reason).__name__}")
    return ClusterObjects(role, found)


def _rendered(found: FleetStatus) -> RenderableType:
    parts: list[RenderableType] = [_clusters(found), Text(), _queues(found)]
    if found.pending:
        parts += [Text(), _pending(found)]
    if found.requests:
        parts += [Text(), _requests(found)]
    if found.rotate_by is not None and found.days_left is not None:
        parts += [Text(), _credentials(found.rotate_by.isoformat(), found.days_left)]
    return Group(*parts)


def _table(*columns: str, right: Mapping[str, bool] | None = None, fold: str = "") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column,
            justify="right" if right and right.get(column) else "left",
            overflow="fold" if column == fold else "ellipsis",
            no_wrap=column != fold,
        )
    return table


def _clusters(found: FleetStatus) -> Table:
    numbers = dict.fromkeys(("pending", "reserved", "admitted"), True)
    table = _table("cluster", "role", "state", *numbers, right=numbers, fold="state")
    for cluster in found.clusters:
        state = Text("ready", "green")
        if not cluster.reachable or cluster.connected is False:
            state = Text(cluster.message or "not connected", "red")
        elif cluster.connected:
            state = Text("connected", "green")
        table.add_row(
            cluster.name, cluster.role, state, str(cluster.pending), str(cluster.reserved), str(cluster.admitted)
        )
    return table


def _queues(found: FleetStatus) -> Table:
    table = _table("queue", "cluster", "flavor", "resource", "used / quota", right={"used / quota": True}, fold="queue")
    for queue in found.queues:
        shown = Text(queue.name)
        if not queue.active:
            shown.append(f" (inactive: {queue.reason})", "red")
        rows = [use for use in queue.use if use.used != "0" or use.resource.endswith("/gpu")] or list(queue.use[:1])
        for number, use in enumerate(rows):
            borrowed = f" (+{use.borrowed})" if use.borrowed != "0" else ""
            name, cluster = (shown, queue.cluster) if number == 0 else (Text(), "")
            table.add_row(name, cluster, use.flavor, use.resource, f"{use.used}{borrowed} / {use.nominal}")
    return table


def _pending(found: FleetStatus) -> Group:
    table = _table("pending", "queue", "waits", "reason", right={"waits": True}, fold="reason")
    for each in found.pending[:_SHOWN]:
        reason = Text(each.reason, "yellow").append(f" on {each.cluster}" if each.cluster else "", "")
        table.add_row(f"{each.namespace}/{each.name}", each.queue, _span(each.waiting_seconds), reason)
    return _cut(table, len(found.pending))


def _requests(found: FleetStatus) -> Group:
    table = _table("DWS request", "cluster", "age", "state", right={"age": True}, fold="state")
    for each in found.requests[:_SHOWN]:
        state = f"{each.state}: {each.message}" if each.message else each.state
        table.add_row(f"{each.namespace}/{each.name}", each.cluster, _span(each.age_seconds), state)
    return _cut(table, len(found.requests))


def _cut(table: Table, total: int) -> Group:
    more = total - _SHOWN
    return Group(table, *([Text(f"and {more} more; --output json has all")] if more > 0 else []))


def _credentials(day: str, days: int) -> Text:
    if days < 0:
        return Text(f"credentials: were to be made anew by {day}; change multiKueue.credentials.rotation", "red")
    style = "yellow" if days <= _REMIND_DAYS else ""
    return Text(f"credentials: to be made anew by {day}, in {console.count(days, 'day')}", style)


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
