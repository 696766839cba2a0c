"""The identity that a cluster's nodes run as.

In: project and cluster name. Out: a Google service account with the roles a GKE node needs and no more, instead of the
project's default service account, which is an Editor. Workloads do not use it: they use Workload Identity.
"""

import hashlib
from collections.abc import Sequence

import pulumi

from kueue_fleet.gcp.resources import ProjectIamMember, ServiceAccount

NODE_ROLES: tuple[str, ...] = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
"""Logs, metrics and autoscaling; images of the project's registries. Source:
https://cloud.google.com/kubernetes-engine/docs/how-to/service-accounts#default-gke-service-agent."""

_ACCOUNT_ID_LENGTH = 30


def account_id(cluster_name: str) -> str:
    """The service account id of a cluster's nodes: `gke-<cluster>`, shortened with a digest beyond 30 characters.

    Source: https://cloud.google.com/iam/docs/service-accounts-create (6 to 30 characters).
    """
    wanted = f"gke-{cluster_name}"
    if len(wanted) <= _ACCOUNT_ID_LENGTH:
        return wanted
    digest = hashlib.sha256(cluster_name.encode()).hexdigest()[:6]
    return f"{wanted[: _ACCOUNT_ID_LENGTH - 7].rstrip('-')}-{digest}"


class NodeIdentity(pulumi.ComponentResource):
    """The service account of a cluster's nodes, with its roles."""

    email: pulumi.Output[str]
    """The account's address."""
    roles: list[ProjectIamMember]
    """The grants; nodes that start before them cannot write logs, so a cluster waits for all of them."""

    def __init__(
        self,
        name: str,
        *,
        project: str,
        cluster_name: str,
        roles: Sequence[str] = NODE_ROLES,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the account and grant it `roles` in `project`."""
        super().__init__("kueue-fleet:index:NodeIdentity", name, None, opts)
        account = ServiceAccount(
            name,
            {"project": project, "accountId": account_id(cluster_name), "displayName": f"GKE nodes of {cluster_name}"},
            pulumi.ResourceOptions(parent=self),
        )
        self.email = account.output("email")
        member = self.email.apply(lambda email: f"serviceAccount:{email}")
        self.roles = [
            ProjectIamMember(
                f"{name}/{role.removeprefix('roles/')}",
                {"project": project, "role": role, "member": member},
                pulumi.ResourceOptions(parent=self),
            )
            for role in roles
        ]
        self.register_outputs({"email": self.email})
