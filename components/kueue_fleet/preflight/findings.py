"""What fits and what to ask for: what a fleet needs against what a project of it has.

Deterministic, no I/O: from `Needs` and `Facts`, a finding for each API, quota, machine, reservation, range and role.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from typing import Final, Literal

from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.preflight.facts import Facts, Part, Quota, without_preemptible
from kueue_fleet.preflight.needs import MachineNeed, Needs, RangeNeed
from kueue_fleet.preflight.quotas import Metric, QuotaNeed
from kueue_fleet.preflight.reservations import reservation_problems

_LISTED: Final = 5
"""Pools and the like that are named for a quota, the largest first."""

Verdict = Literal["fits", "ask", "check", "unknown"]
"""fits; ask: it does not fit; check: it fits only if what is in use is this fleet's, or its limit is in no API that is
read; unknown: it could not be read."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a fleet needs."""

    part: Part
    what: str
    """Such as NVIDIA_L4_GPUS in us-central1."""
    needs: str
    has: str
    verdict: Verdict
    wrong: str = ""
    """What is wrong, for all but `fits`."""
    fix: str = ""
    """What to do about it."""
    project: str = ""
    """Of which project it is needed; empty: of a cluster outside GKE."""

    @property
    def fails(self) -> bool:
        """Whether the fleet does not fit, as far as is known."""
        return self.verdict in ("ask", "unknown")


def findings(needs: Needs, facts: Facts) -> list[Finding]:
    """A finding for each need, in the order of the parts; one for all of them where the project cannot be asked."""
    if facts.not_asked is not None:
        wrong, fix, _ = facts.not_asked
        return [Finding("project", "Google Cloud", "readable", "?", "unknown", wrong, fix, needs.project)]
    all_findings = (
        *_apis(needs, facts),
        *_quotas(needs, facts),
        *_machines(needs, facts),
        *_reservations(needs, facts),
        *_ranges(needs, facts),
        *_subnets(needs, facts),
        *_host_grants(needs, facts),
        *_roles(needs, facts),
    )
    return [replace(finding, project=needs.project) for finding in all_findings]


def _unread(facts: Facts, part: Part, what: str, needs: str, *of: str) -> Finding | None:
    """The finding that nothing is known, where the part, or one of OF in it, could not be read."""
    for key in (part, *(f"{part} {reason}" for reason in of)):
        if key in facts.unread:
            return Finding(part, what, needs, "?", "unknown", facts.unread[key].wrong, facts.unread[key].fix)
    return None


def _apis(needs: Needs, facts: Facts) -> Iterator[Finding]:
    for api in needs.apis:
        unread = _unread(facts, "apis", api.name, "enabled")
        if unread is not None:
            yield unread
        elif api.name in facts.enabled_apis:
            yield Finding("apis", api.name, "enabled", "enabled", "fits")
        elif needs.enables_apis:
            yield Finding("apis", api.name, "enabled", "enabled by `pulumi up`", "fits")
        else:
            fix = f"run: gcloud services enable {api.name} --project {needs.project}"
            yield Finding("apis", api.name, "enabled", "off", "ask", f"is not enabled; it is for {api.reason}", fix)


def _quotas(needs: Needs, facts: Facts) -> Iterator[Finding]:
    """Preemptible amounts count as standard ones where the project has no preemptible quota.

    Source: https://cloud.google.com/compute/resource-usage#preemptible-quota
    """
    amounts: dict[Metric, tuple[int, dict[str, int]]] = {}
    for need in needs.quotas:
        metric = _counted_as(need, facts)
        amount, reasons = amounts.get(metric, (0, {}))
        amounts[metric] = amount + need.amount, {**reasons, **need.reasons}
    for metric, (amount, reasons) in amounts.items():
        yield _quota(metric, amount, reasons, facts)


def _counted_as(need: QuotaNeed, facts: Facts) -> Metric:
    counted_need = need.standard if without_preemptible(need, facts.quotas) else None
    return counted_need if counted_need is not None and counted_need in facts.quotas else need.metric


def _quota(metric: Metric, amount: int, reasons: dict[str, int], facts: Facts) -> Finding:
    what = f"{metric} in {metric.region}" if metric.region else f"{metric} in all regions"
    if metric.unread:
        wrong = f"preflight cannot read quotas of {metric.unread}, and the fleet makes {amount} GiB ({_takes(reasons)})"
        fix = f"compare it with {metric} of {metric.unread} in {metric.region}, on the quotas page of the console"
        return Finding("quotas", what, str(amount), "?", "check", wrong, fix)
    unread = _unread(facts, "quotas", what, str(amount), metric.region, metric.name)
    if unread is not None:
        return unread
    quota = facts.quotas.get(metric)
    if quota is None:
        wrong = "Google reports no such quota for the project"
        fix = f"look for {metric} on the quotas page of the console, and ask for {amount}"
        return Finding("quotas", what, str(amount), "?", "unknown", wrong, fix)
    return _compared(metric, what, amount, reasons, quota)


def _compared(metric: Metric, what: str, amount: int, reasons: dict[str, int], quota: Quota) -> Finding:
    usage_text = "" if quota.usage is None else f", {quota.usage:.0f} in use"
    has = "no limit" if quota.limit < 0 else f"{quota.limit:.0f}{usage_text}"
    if quota.limit < 0 or amount + (quota.usage or 0) <= quota.limit:
        return Finding("quotas", what, str(amount), has, "fits")
    takes = _takes(reasons)
    where = f" in {metric.region}" if metric.region else ""
    if amount <= quota.limit:
        wrong = f"{amount} ({takes}) and what is in use ({quota.usage:.0f}) are more than the limit, {quota.limit:.0f}"
        fix = f"if what is in use is not this fleet's, ask for {amount + (quota.usage or 0):.0f} of {metric}{where}"
        return Finding("quotas", what, str(amount), has, "check", wrong, fix)
    wrong = f"the limit is {quota.limit:.0f}, but the fleet grows to {amount} ({takes})"
    fix = f"ask for {amount} of {metric}{where}, or lower the limits of these"
    return Finding("quotas", what, str(amount), has, "ask", wrong, fix)


def _takes(reasons: Mapping[str, int]) -> str:
    largest = sorted(reasons.items(), key=lambda each: -each[1])
    more = [f"{len(largest) - _LISTED} more"] if len(largest) > _LISTED else []
    return listed([f"{reason} {count}" for reason, count in largest[:_LISTED]] + more)


def _machines(needs: Needs, facts: Facts) -> Iterator[Finding]:
    for need in needs.machines:
        yield from _machine(need, facts)


def _machine(need: MachineNeed, facts: Facts) -> Iterator[Finding]:
    for name, kind, offers in (
        (need.machine_type, "machine types", facts.machine_types),
        (need.accelerator, "accelerators", facts.accelerators),
    ):
        if name is None:
            continue
        what = f"{name} in {need.zone}"
        unread = _unread(facts, "machines", what, "offered", need.zone, kind)
        if unread is not None:
            yield unread
        elif (need.zone, name) in offers:
            yield Finding("machines", what, "offered", "offered", "fits")
        else:
            others = sorted(zone for zone, offered in offers if offered == name)
            region = need.zone.rpartition("-")[0]
            near = [zone for zone in others if zone.startswith(f"{region}-")]
            where = f"of {region} it is in {listed(near)}" if near else f"it is in no zone of {region}"
            fix = f"{where}; take other zones or machines for {listed(need.reasons)}"
            yield Finding("machines", what, "offered", "not there", "ask", f"{need.zone} has no {name}", fix)


def _reservations(needs: Needs, facts: Facts) -> Iterator[Finding]:
    for need in needs.reservations:
        what = f"{need.name} of {need.project}"
        machines_text = f"{need.machines if need.own else need.nodes} {need.machine_type}"
        unread = _unread(facts, "reservations", what, machines_text, need.project)
        if unread is not None:
            yield unread
            continue
        there = facts.reservations.get((need.project, need.name), ())
        has = (
            listed(
                [f"{reservation.machines} {reservation.machine_type} in {reservation.zone}" for reservation in there]
            )
            if there
            else "none"
        )
        problems = reservation_problems(need, there, facts.project_number)
        if problems is None:
            yield Finding("reservations", what, machines_text, "made by `pulumi up`", "fits")
        elif not problems:
            yield Finding("reservations", what, machines_text, has, "fits")
        for problem in problems or ():
            verdict: Verdict = "check" if problem.severity == "warning" else "ask"
            yield Finding("reservations", what, machines_text, has, verdict, problem.wrong, problem.fix)


def _ranges(needs: Needs, facts: Facts) -> Iterator[Finding]:
    for need in needs.ranges:
        what = f"{need.cidr} for {need.what} in {need.region}"
        unread = _unread(facts, "addresses", what, "free")
        if unread is not None:
            yield unread
            continue
        ranges_taken = _taken(needs, need, facts)
        if not ranges_taken:
            has = "free" if facts.subnets is not None else f"free: {needs.network} is new"
            yield Finding("addresses", what, "free", has, "fits")
            continue
        wrong = f"overlaps with {listed(ranges_taken)} in network {needs.network}"
        field = {"nodes": "ranges", "pods": "podRanges", "Services": "serviceRanges"}[need.what]
        fix = f"write another range in network.{field}[{need.region}]"
        yield Finding("addresses", what, "free", "taken", "ask", wrong, fix)


def _taken(needs: Needs, need: RangeNeed, facts: Facts) -> list[str]:
    network = IPv4Network(need.cidr)
    own = {f"{needs.network}-{region}" for region in needs.regions}
    return [
        f"{subnet.cidr} of subnet {subnet.name}"
        for subnet in facts.subnets or ()
        if subnet.name not in own and IPv4Network(subnet.cidr).overlaps(network)
    ]


def _subnets(needs: Needs, facts: Facts) -> Iterator[Finding]:
    """Of a network that the fleet does not make."""
    for need in needs.subnets:
        what = f"subnet {need.name} in {need.region}"
        subnet_text = " with ".join(filter(None, ("there", listed(need.secondary) if need.secondary else "")))
        unread = _unread(facts, "addresses", what, subnet_text)
        if unread is not None:
            yield unread
            continue
        subnets = [subnet for subnet in facts.subnets or () if (subnet.region, subnet.name) == (need.region, need.name)]
        missing_names = [name for name in need.secondary if name not in {subnet.secondary for subnet in subnets}]
        field = f"network.existing.subnets[{need.region}]"
        if not subnets:
            wrong = f"network {needs.network} of {needs.network_project} has no such subnet"
            yield Finding(
                "addresses", what, subnet_text, "not there", "ask", wrong, f"write the name of one in {field}"
            )
        elif missing_names:
            fix = f"have it added, or write another name in {field}"
            wrong = f"it has no secondary range {listed(missing_names)}"
            yield Finding("addresses", what, subnet_text, "there", "ask", wrong, fix)
        else:
            yield Finding("addresses", what, subnet_text, "there", "fits")


def _host_grants(needs: Needs, facts: Facts) -> Iterator[Finding]:
    """What a folder or the organization grants is not seen."""
    for need in needs.host_grants:
        agent = need.agent.format(facts.project_number or "NUMBER")
        what, grant_text = f"{need.role} of {agent}", f"granted in {needs.network_project}"
        unread = _unread(facts, "grants", what, grant_text)
        if unread is not None:
            yield unread
        elif need in facts.host_grants:
            yield Finding("grants", what, grant_text, "granted", "fits")
        else:
            where = f"subnet {need.subnets[0][1]}" if need.subnets else "the project"
            command = "compute networks subnets" if need.subnets else "projects"
            on = f"{need.subnets[0][1]} --region {need.subnets[0][0]} --project " if need.subnets else ""
            fix = (
                f"run: gcloud {command} add-iam-policy-binding {on}{needs.network_project} "
                f"--member serviceAccount:{agent} --role {need.role}"
            )
            wrong = f"not granted on {where} itself; whether a folder or the organization grants it is not known"
            yield Finding("grants", what, grant_text, "?", "unknown", wrong, fix)


def _roles(needs: Needs, facts: Facts) -> Iterator[Finding]:
    for need in needs.roles:
        permissions_text = f"{len(need.permissions)} permissions" if len(need.permissions) > 1 else need.permissions[0]
        unread = _unread(facts, "permissions", need.role, permissions_text)
        if unread is not None:
            yield unread
            continue
        missing_permissions = [name for name in need.permissions if name not in facts.permissions]
        if not missing_permissions:
            yield Finding("permissions", need.role, permissions_text, "all", "fits")
            continue
        has = f"{len(need.permissions) - len(missing_permissions)} of {len(need.permissions)}"
        wrong = f"you lack {listed(missing_permissions)}, for {need.reason}"
        yield Finding(
            "permissions", need.role, permissions_text, has, "ask", wrong, f"ask for {need.role} in {needs.project}"
        )
