"""A component that is renamed, or put elsewhere, with an alias: the engine changes nothing of what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest

import kueue_fleet as kf
from small_fleets import standalone_data
from tests.engines.memory_stack import Engine, pulumi_in_memory

Program = Callable[[], Any]
Children = Callable[[str, pulumi.ResourceOptions], Any]

SPEC = kf.parse_fleet(standalone_data(deletionProtection=False))
STD = kf.ClusterEntry("batch", role="standalone", region="us-central1", mode="Standard", deletion_protection=False)


class Platform(pulumi.ComponentResource):
    """A company's component; CHILDREN declares what is in it."""

    def __init__(self, name: str, children: Children, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("company:index:Platform", name, None, opts)
        children(name, pulumi.ResourceOptions(parent=self))


class Company(pulumi.ComponentResource):
    """A component around the platform."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("company:index:Company", name, None, opts)
        Platform(f"{name}-platform", by_convention, pulumi.ResourceOptions(parent=self))


def fleet(name: str, opts: pulumi.ResourceOptions | None = None, spec: kf.FleetSpec = SPEC) -> None:
    kf.Fleet(name, spec, opts=opts)


def by_convention(name: str, inside: pulumi.ResourceOptions) -> None:
    fleet(f"{name}-fleet", inside)


def by_its_own_name(name: str, inside: pulumi.ResourceOptions) -> None:
    fleet("fleet", inside)


def by_the_same_name(name: str, inside: pulumi.ResourceOptions) -> None:
    fleet(name, inside)


def without_a_dash(name: str, inside: pulumi.ResourceOptions) -> None:
    fleet(f"{name}fleet", inside)


def two_fleets(name: str, inside: pulumi.ResourceOptions) -> None:
    fleet(f"{name}-fleet", inside)
    second = standalone_data(name="tpus", deletionProtection=False)
    second["clusters"] = [{"name": "batch-tpus", "role": "standalone", "region": "us-central1"}]
    fleet("tpus", inside, kf.parse_fleet(second))


def single_components(name: str, inside: pulumi.ResourceOptions) -> None:
    kf.Network(f"{name}-network", network_name="lab", project="lab-project", regions=["us-central1"], opts=inside)
    cluster = kf.StandaloneCluster(
        f"{name}-cluster", STD, project="lab-project", network="default", subnetwork="default", opts=inside
    )
    kf.NodePool(
        f"{name}-l4",
        kf.Pool("l4", "g2-standard-24", max_nodes=4),
        cluster_spec=STD,
        project="lab-project",
        cluster=cluster.cluster.name,
        service_account=cluster.node_service_account,
        opts=inside,
    )
    on_it = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(provider=cluster.provider))
    kf.JobSetInstall(f"{name}-jobset", opts=on_it)
    kf.KueueInstall(f"{name}-kueue", opts=on_it)
    kf.ResourceFlavor(f"{name}-flavor", kf.ResourceFlavorSpec(), object_name="l4", opts=on_it)
    kf.Cohort("vision", kf.CohortSpec(), opts=on_it)
    kf.Namespaces(f"{name}-namespaces", ["research"], opts=on_it)
    kf.Team(f"{name}-team", kf.TeamEntry("team-a", local_queues=[]), opts=on_it)
    access = kf.WorkerAccess(
        f"{name}-access",
        cluster_name="batch",
        endpoint="10.0.0.2",
        ca_certificate=None,
        credentials=kf.ServiceAccountToken("2026-11", rotate_by="2027-02-01"),
        opts=on_it,
    )
    kf.MultiKueue(f"{name}-multikueue", workers={"batch": access}, opts=on_it)


def platform(name: str, children: Children, *aliases: pulumi.Alias) -> Program:
    return lambda: Platform(name, children, pulumi.ResourceOptions(aliases=list(aliases)))


def below(other: str, name: str, *aliases: Callable[[pulumi.Resource], pulumi.Alias]) -> Program:
    """The fleet NAME below one of two platforms, and what aliases it has, by the platform that is not its parent."""

    def program() -> None:
        result = {item: Platform(item, lambda *_: None) for item in ("vision", "speech")}
        parent = result.pop(other)
        former = [entry(*result.values()) for entry in aliases]
        fleet(name, pulumi.ResourceOptions(parent=parent, aliases=former))

    return program


def of_the_other(parent: pulumi.Resource) -> pulumi.Alias:
    return pulumi.Alias(parent=parent)


def by_urn(parent: pulumi.Resource) -> pulumi.Alias:
    return pulumi.Alias(parent="urn:pulumi:test::kueue-fleet::company:index:Platform::vision")


def no_parent(parent: pulumi.Resource) -> pulumi.Alias:
    return pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)


def from_below() -> None:
    Platform("vision", lambda *_: None)
    former = pulumi.Alias(parent="urn:pulumi:test::kueue-fleet::company:index:Platform::vision")
    fleet("fleet", pulumi.ResourceOptions(aliases=[former]))


def called_fleet_before(name: str, inside: pulumi.ResourceOptions) -> None:
    fleet("gpus", pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(aliases=[pulumi.Alias("fleet")])))


OLD = pulumi.Alias("old")
RENAMES: dict[str, tuple[Program, Program]] = {
    "parent, the child by Pulumi's convention": (platform("old", by_convention), platform("new", by_convention, OLD)),
    "parent, the child by its own name": (platform("old", by_its_own_name), platform("new", by_its_own_name, OLD)),
    "parent, the child by the same name": (platform("old", by_the_same_name), platform("new", by_the_same_name, OLD)),
    "parent, the child without a dash": (platform("old", without_a_dash), platform("new", without_a_dash, OLD)),
    "parent of two fleets": (platform("old", two_fleets), platform("new", two_fleets, OLD)),
    "parent of single components": (platform("old", single_components), platform("new", single_components, OLD)),
    "parent and child": (platform("old", by_its_own_name), platform("new", called_fleet_before, OLD)),
    "another parent": (below("vision", "fleet"), below("speech", "fleet", of_the_other)),
    "another parent, by its URN": (below("vision", "fleet"), below("speech", "fleet", by_urn)),
    "another parent, by Pulumi's convention": (
        below("vision", "vision-fleet"),
        below("speech", "speech-fleet", of_the_other),
    ),
    "no parent before": (lambda: fleet("fleet"), below("vision", "fleet", no_parent)),
    "no parent after": (below("vision", "fleet"), from_below),
}
AROUND = (lambda: Company("old"), lambda: Company("new", pulumi.ResourceOptions(aliases=[OLD])))
"""A component around a component: a stack of 0.2.0 needs one `pulumi up` before, as the page on upgrades says."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with pulumi_in_memory(tmp_path) as result:
        yield result


@pytest.mark.parametrize(("before", "after"), [*RENAMES.values(), AROUND], ids=[*RENAMES, "around a component"])
def test_a_rename_changes_nothing(engine: Engine, before: Program, after: Program) -> None:
    assert engine.up(before)
    assert engine.up(after) == []


def with_the_parents_name_always(
    name: str, opts: pulumi.ResourceOptions | None
) -> tuple[str, pulumi.ResourceOptions | None]:
    """The names of 0.2.0."""
    above = opts.parent.pulumi_resource_name if opts and opts.parent else None
    return f"{above}/{name}" if above else name, opts


@pytest.mark.parametrize(("before", "after"), RENAMES.values(), ids=RENAMES)
def test_a_rename_in_a_stack_of_0_2_0_changes_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, before: Program, after: Program
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("kueue_fleet.fleet.below_parent", with_the_parents_name_always)
        assert engine.up(before)
    assert engine.up(after) == []
