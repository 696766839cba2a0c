"""A node pool of a Standard cluster, of any capacity class.

A pool keeps its name for life, since flavors select its nodes by it. What GKE cannot change in place therefore deletes
the pool before making it again: jobs that lose their nodes have the same node selector as before and continue when the
new nodes are there, where a second pool of another name would leave them pending, and would need the pool's
reservation or quota twice while both exist. No queue and no other pool changes. Where that is not wanted unseen, the
pool is protected: Pulumi refuses the change.
"""

from collections.abc import Sequence
from itertools import chain
from typing import ClassVar, Self

import pulumi

from kueue_admission.kernel import SpecError
from kueue_admission.kernel.arguments import checked
from kueue_admission.kernel.form_rules import Fault
from kueue_fleet.component import Component, Labels, check_labels, judge, today
from kueue_fleet.fleet_file.alone import check_alone
from kueue_fleet.fleet_file.check.clusters import account_elsewhere
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.gcp_names import GkeClusterName, GoogleServiceAccountAddress, ProjectId, Zone
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.zone_rules import zone_in_region
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.gcp_components.declare import declare
from kueue_fleet.gcp_components.sdk import gcp
from kueue_fleet.gke.google_syntax import gke_cluster_name, project_id, region
from kueue_fleet.gke.zones import region_at
from kueue_fleet.google.node_pools import node_pool
from kueue_fleet.in_programs import declared_pools


class NodePool(Component):
    """A node pool."""

    pool: "gcp.container.NodePool"
    """The pool."""
    in_file: ClassVar[bool] = True
    """Whether its entry is one of the fleet file's `nodePools`."""
    name: pulumi.Output[str]
    """Its name in GKE, once it is there, and the value of the nodes' label cloud.google.com/gke-nodepool."""
    pool_name: str
    """The same, known before."""
    identifier: pulumi.Output[str]
    """`projects/P/locations/L/clusters/C/nodePools/N`, once it is there."""
    instance_group_urls: pulumi.Output[Sequence[str]]
    """The managed instance groups of its nodes, one in each zone."""
    placement: "gcp.compute.ResourcePolicy | None"
    """The workload policy that keeps the nodes together, on machines that need one for compact placement."""

    def __init__(
        self,
        name: str,
        spec: NodePoolEntry,
        *,
        cluster_spec: ClusterEntry,
        project: pulumi.Input[ProjectId],
        cluster: pulumi.Input[GkeClusterName],
        service_account: pulumi.Input[GoogleServiceAccountAddress],
        location: "pulumi.Input[Zone] | None" = None,
        private_nodes: pulumi.Input[bool] = True,
        deletion_protection: bool = True,
        labels: "Labels | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the pool.

        `spec` and `cluster_spec` are the entries of the pool and of its cluster, as a fleet file has them: region,
        zones, disk key and image streaming are the cluster's. `cluster` is the cluster's name and `service_account` the
        address of its nodes' account; `location` is its zone, if it is in one and not in a region; `private_nodes`,
        whether nodes have internal addresses alone, is to be as the cluster has it; with `deletion_protection`, unless
        `spec` says otherwise, Pulumi refuses to delete or replace the pool; `labels` are Google Cloud labels. Put a
        reservation of the same program into `opts.depends_on`.

        Raises:
            SpecError: the cluster is Autopilot, or not among those of the pool, or GKE would refuse the pool.
        """
        where = f"NodePool {name}"
        if cluster_spec.mode == "Autopilot":
            wrong = f"{cluster_spec.name} is an Autopilot cluster, whose nodes GKE makes"
            raise SpecError([COMPONENT.at(where, wrong, "remove the pool, or make the cluster Standard")])
        if spec.clusters is not None and cluster_spec.name not in spec.clusters:
            wrong = f"is on {', '.join(spec.clusters)}, and cluster_spec is {cluster_spec.name}"
            raise SpecError([COMPONENT.at(f"{where}.clusters", wrong, "remove clusters from the entry")])

        def compare(cluster: str) -> None:
            if cluster != cluster_spec.name:
                wrong = f"is {cluster}, and cluster_spec is {cluster_spec.name}"
                judge([COMPONENT.at(f"{where}.cluster", wrong, "give the entry of that cluster", "warning")], opts)

        pulumi.Output.from_input(cluster).apply(compare)
        if isinstance(service_account, str) and isinstance(project, str):
            judge(account_elsewhere(f"{where}.service_account", service_account, project), opts)
        if self.in_file:
            zone = location if isinstance(location, str) else None
            of_zone = zone_in_region(f"{where}.location", zone, cluster_spec.region) if zone else ()
            judge(
                chain(
                    check_alone("nodePools", spec, clusters=(cluster_spec,), today=today()),
                    of_zone,
                    check_labels(labels),
                ),
                opts,
            )
        super().__init__(name, opts)
        whole = opts.deleted_with if opts else None
        rendered_pools = node_pool(
            name,
            spec,
            cluster_spec,
            project=project,
            cluster=cluster,
            service_account=service_account,
            location=location,
            private_nodes=private_nodes,
            deletion_protection=deletion_protection,
            labels=labels or {},
            deleted_with="whole" if whole else None,
        )
        *placement, self.pool = declare(self, rendered_pools, {"whole": whole}).values()
        self.placement = placement[0] if placement else None
        self._known(spec.name)

    @classmethod
    @checked
    def get(cls, name: str, identifier: str, *, opts: pulumi.ResourceOptions | None = None) -> Self:
        """A pool that exists, `projects/P/locations/L/clusters/C/nodePools/N`: it is read, never changed or deleted.

        Raises:
            SpecError: the identifier names something else.
        """
        *_, pool_name = parts_of_id(
            f"{cls.__name__} {name}", identifier, "projects/P/locations/L/clusters/C/nodePools/N"
        )
        component = cls._claimed(name, opts)
        Component.__init__(component, name, opts)
        component.pool = gcp.container.NodePool.get(name, identifier, opts=pulumi.ResourceOptions(parent=component))
        component.placement = None
        component._known(pool_name)
        return component

    def _known(self, pool_name: str) -> None:
        """End the component of the pool."""
        self.pool_name = pool_name
        declared_pools().add(pool_name)
        self.name, self.identifier = self.pool.name, self.pool.id
        self.instance_group_urls = self.pool.instance_group_urls
        self._give_out()


def parts_of_id(where: str, identifier: str, form: str) -> list[str]:
    """What stands for the capital letters of FORM in the identifier. Raises SpecError, at WHERE, if it has another."""
    parts, form_parts = identifier.split("/"), form.split("/")
    if parts[::2] != form_parts[::2] or len(parts) != len(form_parts) or not all(parts):
        raise SpecError([COMPONENT.at(where, f"{identifier!r} is not an id", f"write {form}")])
    checks = dict(zip("PLCN", (project_id, _location, gke_cluster_name, gke_cluster_name), strict=True))
    problem = (
        COMPONENT.at(where, f"{identifier!r}: {part} {fault.wrong}", fault.fix)
        for letter, part in zip(form_parts[1::2], parts[1::2], strict=True)
        if (fault := checks[letter](part))
    )
    if problems := list(problem):
        raise SpecError(problems)
    return parts[1::2]


def _location(text: str) -> Fault | None:
    return region(region_at(text))
