"""Namespaces, and what a team has in its own.

Namespaces with LocalQueues, the account of its jobs, rights of its members and limits in them. Its Google service
account is not here.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pulumi

from kueue_admission.api.manifests import local_queue_manifest, manifest, namespace_labels, namespace_manifest
from kueue_admission.kernel import Problem, SpecError
from kueue_admission.kernel.base import DnsLabel, DnsSubdomain
from kueue_admission.kernel.form_rules import listed_twice
from kueue_admission.kernel.suggest import instead
from kueue_fleet.component import is_judged, judge
from kueue_fleet.fleet_file import TeamEntry
from kueue_fleet.fleet_file.alone import check_alone
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.kueue_components.applied_objects import KubernetesObject
from kueue_fleet.kueue_components.component import Component, WholeManifest, declare_object
from kueue_fleet.kueue_components.queues import ClusterQueue, LocalQueue
from kueue_fleet.kueue_components.team_secrets import TeamSecrets, encoded, known_secrets


class Namespaces(Component):
    """Namespaces that belong to no team."""

    takes = ("Namespace",)

    objects: dict[str, KubernetesObject]
    """The namespaces by name."""

    @property
    def names(self) -> dict[str, pulumi.Output[str]]:
        """Their names, once they are there, by name: what a LocalQueue takes as `namespace`."""
        return {name: namespace_resource.name for name, namespace_resource in self.objects.items()}

    def __init__(
        self, name: str, spec: Sequence[DnsLabel | WholeManifest], *, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare one Namespace for each name, or manifest, in `spec`.

        Raises:
            SpecError: two have the same name, or one is not a Namespace.
        """
        namespaces = [namespace_manifest(item) if isinstance(item, str) else item for item in spec]
        names = [namespace_object["metadata"]["name"] for namespace_object in namespaces]
        twice = (namespace_name for index, namespace_name in enumerate(names) if namespace_name in names[:index])
        repeated_names = (listed_twice(f"Namespaces {name}", namespace_name, "namespace") for namespace_name in twice)
        judge((*self._others(f"{name}.spec", namespaces), *repeated_names), opts)
        super().__init__(name, opts)
        self.objects = {}
        for namespace, item in zip(names, namespaces, strict=True):
            # Kubernetes makes this one, and never lets it be deleted.
            patch = namespace == "default"
            self.objects[namespace] = declare_object(self, f"{name}/{namespace}", item, patch=patch)
        self._give_out()


class Team(Component):
    """A team on one cluster: its namespaces, and what it has in each of them."""

    namespaces: dict[str, KubernetesObject]
    """The team's namespaces by name."""
    local_queues: dict[tuple[str, str], LocalQueue]
    """The team's LocalQueues by namespace and name."""
    secrets: dict[tuple[str, str], KubernetesObject]
    """The team's Secrets by namespace and name."""

    @property
    def namespace_names(self) -> list[str]:
        """The team's namespaces."""
        return list(self.namespaces)

    objects: list[KubernetesObject]
    """What else it has: ServiceAccount, Role, RoleBinding, LimitRange, ResourceQuota, NetworkPolicy, and the policy on
    its jobs."""

    def __init__(
        self,
        name: str,
        spec: TeamEntry,
        *,
        objects: Sequence[WholeManifest] = (),
        cluster_queues: Mapping[DnsSubdomain, ClusterQueue] | None = None,
        secrets: "TeamSecrets | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the team.

        `objects` are its namespaces and what `objects.teams` renders for it on this cluster, each after its namespace;
        a namespace that is not among them has the labels of a team. With
        `cluster_queues`, the cluster's queues by name, only LocalQueues of those are made, after the queue they lead
        to; without, all of them are. `secrets` has what is in the Secrets that the team's entry names, by name and key;
        without it, none are made.
        """
        unfilled = [] if secrets is not None else _unfilled(name, spec)
        judge(chain(check_alone("teams", spec), _led_nowhere(spec, cluster_queues), unfilled), opts)
        super().__init__(name, opts)
        self.namespaces = {}
        self.local_queues = {}
        namespaces_by_name = {item["metadata"]["name"]: item for item in objects if item["kind"] == "Namespace"}
        labels = namespace_labels(spec.name, spec.pod_security)
        for namespace in spec.namespace_names:
            resource_manifest = namespaces_by_name.get(namespace) or namespace_manifest(namespace, labels)
            place = declare_object(self, f"{name}/{namespace}", resource_manifest)
            self.namespaces[namespace] = place
            for queue in spec.local_queues:
                if cluster_queues is not None and queue.cluster_queue not in cluster_queues:
                    continue
                self.local_queues[namespace, queue.name] = LocalQueue(
                    f"{name}/{namespace}/{queue.name}",
                    local_queue_manifest(namespace, queue.name, queue),
                    cluster_queue=(cluster_queues or {}).get(queue.cluster_queue),
                    opts=pulumi.ResourceOptions(parent=self, depends_on=[place], deleted_with=self.deleted_with),
                )
        self.secrets = {}
        if secrets is not None:
            # Those of a fleet are for all of its teams, and judged with it.
            judged_secrets = secrets if is_judged(opts) else known_secrets(f"Team {name}.secrets", [spec], secrets)
            contents: pulumi.Output[Any] = pulumi.Output.secret(judged_secrets)
            for namespace, place in self.namespaces.items():
                for secret in spec.secrets:
                    data = contents.apply(partial(_in_secret, secret))
                    resource_manifest = manifest("v1", "Secret", secret, namespace, type="Opaque", data=data)
                    self.secrets[namespace, secret] = declare_object(
                        self, f"{name}/{namespace}/Secret/{secret}", resource_manifest, depends_on=[place]
                    )
        self.objects = []
        for item in objects:
            if item["kind"] == "Namespace":
                continue
            metadata = item["metadata"]
            namespace = metadata.get("namespace")
            label = (namespace, item["kind"], metadata["name"]) if namespace else (item["kind"],)
            if namespace and namespace not in self.namespaces:
                raise SpecError([COMPONENT.at(f"Team {name}.objects", f"one is in {namespace}", "give the team's own")])
            needed_resources = [self.namespaces[namespace]] if namespace else self.objects[-1:]
            self.objects.append(declare_object(self, "/".join((name, *label)), item, depends_on=needed_resources))
        self._give_out()


def _unfilled(name: str, team: TeamEntry) -> Iterator[Problem]:
    """Secrets that are not made, since nothing is given for them."""
    if team.secrets:
        wrong = f"is missing, so {', '.join(team.secrets)} of the entry is not made"
        yield COMPONENT.at(f"Team {name}.secrets", wrong, "give what is in it, or remove it from the entry", "warning")


def _led_nowhere(team: TeamEntry, queues: Mapping[str, ClusterQueue] | None) -> Iterator[Problem]:
    """LocalQueues that are not made, since the queue that they lead to is not given."""
    if queues is None:
        return
    for queue in team.local_queues:
        if queue.cluster_queue not in queues:
            wrong = f"is not made, since {queue.cluster_queue} is not in cluster_queues"
            fix = instead(queue.cluster_queue, queues, "queues") if queues else "give the queue, or no cluster_queues"
            yield NO_EFFECT.at(f"teams[{team.name}].localQueues[{queue.name}]", wrong, fix)


def _in_secret(name: str, contents: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return encoded(contents[name])
