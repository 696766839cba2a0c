"""The prerequisites page of a fleet: what its project has to have, and what the fleet costs, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.prerequisites import KEY_ROLE, key_grants
from kueue_fleet.fleet_file.projects import clusters_in
from kueue_fleet.gke.prices import HOURS_PER_MONTH, Prices
from kueue_fleet.google.cost import cost_of
from kueue_fleet.preflight.needs import Needs, needs_of
from kueue_fleet.preflight.plain_clusters import plain_cluster_needs


def prerequisites_page(fleet: FleetSpec, prices: Prices) -> str:
    """The page of `fleet`, with its costs by `prices`."""
    projects_needs = needs_of(fleet)
    lines = [f"# Prerequisites of {fleet.name}"]
    for own in projects_needs[:1]:
        lines += [
            "",
            f"What project `{own.project}` has to have before the first `pulumi up`, in {', '.join(own.regions)}.",
            "`kueue-fleet preflight` checks which of these the project has.",
            *_project(fleet, own),
        ]
    lines += [*_plain_clusters(fleet), *_costs(fleet, prices)]
    for needs in projects_needs[1:]:
        lines += [
            "",
            f"# Project {needs.project}",
            "",
            f"The same of project `{needs.project}`, in {', '.join(needs.regions)}.",
        ]
        lines += _project(fleet, needs)
    return "\n".join(lines) + "\n"


def _plain_clusters(fleet: FleetSpec) -> Iterator[str]:
    clusters = plain_cluster_needs(fleet)
    if clusters:
        yield from (
            "",
            "## Clusters outside GKE",
            "",
            "`kueue-fleet preflight` checks that each answers by its context,",
        )
        yield "that its identity may write what is made there, and that it serves these kinds:"
        rows = [
            (item.cluster, f"`{item.context}`", ", ".join(dict.fromkeys(version for version, _ in item.kinds)))
            for item in clusters
        ]
        yield from _table("cluster", "context", "APIs of Kubernetes", rows=rows)


def _project(fleet: FleetSpec, needs: Needs) -> Iterator[str]:
    yield from _apis(needs)
    yield from _quotas(needs)
    yield from _machines(needs)
    yield from _network(needs)
    yield from _roles(fleet, needs)


def _table(*headings: str, rows: Sequence[tuple[object, ...]]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(headings)} |"
    yield "|---" * len(headings) + "|"
    for row in rows:
        yield f"| {' | '.join(str(cell) for cell in row)} |"


def _apis(needs: Needs) -> Iterator[str]:
    yield from ("", "## APIs")
    if needs.enables_apis:
        yield from ("", "`pulumi up` enables them; `serviceusage.googleapis.com` has to be there.")
    yield from _table("API", "for", rows=needs.apis)


def _quotas(needs: Needs) -> Iterator[str]:
    yield from (
        "",
        "## Quotas",
        "",
        "What pools, reservations and flavors can grow to. PREEMPTIBLE quotas are those of",
    )
    yield "Spot and flex-start nodes; where a project has none, the quota without that word counts instead."
    rows = [
        (
            need.metric.region or "all",
            f"`{need.metric}`",
            f"{need.amount:,}",
            ", ".join(f"{reason} {amount:,}" for reason, amount in need.reasons.items()),
        )
        for need in needs.quotas
    ]
    yield from _table("region", "quota", "at least", "for", rows=rows)


def _machines(needs: Needs) -> Iterator[str]:
    zones: dict[str, dict[str, None]] = {}
    for need in needs.machines:
        for name in filter(None, (need.machine_type, need.accelerator)):
            zones.setdefault(name, {})[need.zone] = None
    if zones:
        yield from ("", "## Machines")
        yield from _table("machine type", "in zones", rows=[(name, ", ".join(where)) for name, where in zones.items()])
    others = [need for need in needs.reservations if not need.own]
    if others:
        rows = [(need.name, need.project, f"{need.nodes} {need.machine_type}") for need in others]
        yield from ("", "## Reservations of others")
        yield from _table("reservation", "of project", "machines", rows=rows)


def _network(needs: Needs) -> Iterator[str]:
    if needs.reads_network:
        yield from ("", "## Addresses")
    if needs.subnets:
        yield from ("", f"Subnets of network {needs.network} of project `{needs.network_project}`:")
        rows = [(need.region, need.name, ", ".join(need.secondary) or "-") for need in needs.subnets]
        yield from _table("region", "subnet", "secondary ranges", rows=rows)
    elif needs.ranges:
        yield from ("", f"Free in network {needs.network}, which the fleet makes:")
        yield from _table("region", "for", "range", rows=needs.ranges)
    if needs.host_grants:
        yield from ("", "## Shared VPC", "", f"Granted in host project `{needs.network_project}`, to accounts of")
        yield f"`{needs.project}`, with its number for NUMBER; GKE's API is enabled in both:"
        rows = [
            (grant.role, grant.agent.format("NUMBER"), ", ".join(name for _, name in grant.subnets) or "the project")
            for grant in needs.host_grants
        ]
        yield from _table("role", "account", "on", rows=rows)


def _roles(fleet: FleetSpec, needs: Needs) -> Iterator[str]:
    yield from ("", "## Roles", "", "For whoever runs `pulumi up`:")
    yield from _table("role", "for", rows=[(need.role, need.reason) for need in needs.roles])
    grants = key_grants(clusters_in(fleet, needs.project))
    if grants:
        yield from ("", f"On keys of Cloud KMS, `{KEY_ROLE}`:")
        yield from _table("key", "service agent", "for", rows=grants)


def _costs(fleet: FleetSpec, prices: Prices) -> Iterator[str]:
    cost = cost_of(fleet, prices)
    sums = {**cost.by(lambda line: line.kind), "**all**": (cost.always, cost.in_use)}
    rows = [
        (name, *(f"{amount * hours:,.2f}" for amount in amounts for hours in (1, HOURS_PER_MONTH)))
        for name, amounts in sums.items()
    ]
    yield from (
        "",
        "## Costs",
        "",
        f"In USD, prices of {cost.prices}: always, and in addition while all nodes are in use.",
    )
    yield from _table("class", "always, an hour", "always, a month", "in use, an hour", "in use, a month", rows=rows)
    if cost.unknown:
        yield from ("", f"Not in these sums: {'; '.join(cost.unknown)}.")
