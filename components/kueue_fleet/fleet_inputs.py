"""What a Pulumi program gives to `Fleet` beside the fleet file, and where it is wrong, or contradicts the file."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TypedDict

import pulumi

from kueue_admission.kernel import Problem
from kueue_admission.kernel.form_rules import NEEDED
from kueue_fleet.fleet_file import FleetSpec, read_fleet
from kueue_fleet.fleet_file.model.accounts import account_address, grafana_account_id, team_account_id
from kueue_fleet.fleet_file.rules.files import PROGRAM
from kueue_fleet.fleet_file.worker_tokens import manager_accounts
from kueue_fleet.gcp_components.network import NetworkIds
from kueue_fleet.gke import google_syntax
from kueue_fleet.kueue_components.plain_cluster import KubernetesCluster
from kueue_fleet.kueue_components.team_secrets import TeamSecrets


class FleetInputs(TypedDict, total=False):
    """What a program gives to `Fleet` beside the spec; all of it may be left out, and most of it may be an output."""

    project: pulumi.Input[str] | None
    """Google Cloud project id, instead of the file's, for example an output of the stack that makes it; `check` and
    other commands use the file's."""
    network: NetworkIds | None
    """A network that the program or another stack made; default: the file's, or a new one."""
    team_secrets: TeamSecrets | None
    """What is in the Secrets that teams name, by name and key. It is secret in the state, whether it comes from
    `config.get_secret_object` or is plain. Without it, none are made."""
    controller_image: pulumi.Input[str] | None
    """Image of the fleet's own controller, instead of the file's, for example one that the program builds; without
    either, the fleet builds and pushes one."""
    node_service_accounts: Mapping[str, pulumi.Input[str]] | None
    """Addresses of nodes' accounts by cluster, instead of the file's `clusters[].nodeServiceAccount`."""
    existing_clusters: Mapping[str, pulumi.Input[str]] | None
    """Ids, `projects/P/locations/L/clusters/N`, of clusters with `existing: true`, by name, such as outputs of the
    stack that makes them. The fleet waits for them, and refuses the id of another cluster; without an id, it finds the
    cluster by its name."""
    kubernetes_clusters: Mapping[str, KubernetesCluster] | None
    """Clusters with `kubernetes` that the program or another stack made, by name; default: Pulumi reaches them by the
    contexts of the kubeconfig that kubectl uses."""
    as_published: bool
    """Only warn of the two defects of the batch platform as it is published; rehearsals set it, to show the effects."""


def read_spec(data: object, *, as_published: bool = False) -> FleetSpec:
    """The fleet in plain data of a program; former names in it are logged. Raises SpecError, as `parse_fleet` does."""
    reading = read_fleet(data, as_published=as_published)
    for problem in reading.former_names:
        pulumi.log.warn(problem.coded)
    return reading.whole()


def check_project(project: object) -> Iterator[Problem]:
    """A project of the program that is not an id, where the program knows it."""
    if isinstance(project, str) and (fault := google_syntax.project_id(project)):
        yield PROGRAM.at("project", f"the program gives {project} {fault.wrong}", fault.fix)


def known_project(project: pulumi.Input[str]) -> pulumi.Output[str]:
    """The project, checked once it is known. Raises RunError, from within Pulumi."""

    def checked(known_id: str) -> str:
        for problem in check_project(known_id):
            raise pulumi.RunError(str(problem))
        return known_id

    return pulumi.Output.from_input(project).apply(checked)


def account_addresses(
    spec: FleetSpec, project: str | pulumi.Output[str], teams: Iterable[str]
) -> dict[str, pulumi.Output[str]]:
    """Addresses of the accounts in a project that only Pulumi knows, by those that the objects have.

    `teams` are those with a Google service account.
    """
    if isinstance(project, str):
        return {}
    ids = [team_account_id(spec.name, team) for team in teams]
    ids += [account.account_id for account in manager_accounts(spec)]
    ids += [grafana_account_id(spec.name)]
    return {account_address(account, spec.project): project.apply(partial(account_address, account)) for account in ids}


def check_network(spec: FleetSpec, network: NetworkIds | None) -> Iterator[Problem]:
    """A network of the program, and fields of the file that describe another one."""
    if network is None:
        return
    for field in [*(["existing"] if spec.network.existing else []), *spec.network.own_fields]:
        yield PROGRAM.at(f"network.{field}", "set, but the program gives the network", "remove it")
    for region in dict.fromkeys(cluster.region for cluster in spec.new_clusters):
        if region not in network.subnetworks:
            yield PROGRAM.at(
                "network", f"the program gives no subnet for {region}, where the fleet has a cluster", "add it"
            )
    for region, link in network.subnetworks.items():
        elsewhere = google_syntax.region_in_link(link) if isinstance(link, str) else None
        if elsewhere not in (None, region):
            yield PROGRAM.at("network", f"the program gives a subnet of {elsewhere} for {region}", "give one there")


def check_image(spec: FleetSpec, image: object) -> Iterator[Problem]:
    """An image of the program for a controller that the fleet does not have."""
    if image is not None and spec.controller is None:
        wrong = "not set, so that the image that the program gives has no effect"
        yield PROGRAM.at("controller", wrong, "add the section, or remove controller_image", "warning")


def check_accounts(spec: FleetSpec, accounts: Mapping[str, object]) -> Iterator[Problem]:
    """Accounts of the program, of clusters that the file does not have, or gives one itself."""
    for name in accounts:
        if name not in spec.cluster_names:
            yield PROGRAM.at(
                "clusters", f"the program gives an account for {name}, which is not in the file", "remove it"
            )
        elif spec.cluster(name).node_service_account is not None:
            yield PROGRAM.at(
                f"clusters[{name}].nodeServiceAccount", "set, but the program gives the account", "keep one of the two"
            )


def check_existing(spec: FleetSpec, ids: Mapping[str, object]) -> Iterator[Problem]:
    """Ids of the program, of clusters that the file does not have, or has the fleet make."""
    for name in ids:
        if name not in spec.cluster_names:
            yield PROGRAM.at("clusters", f"the program gives an id for {name}, which is not in the file", "remove it")
        elif not spec.cluster(name).existing:
            yield PROGRAM.at(f"clusters[{name}].existing", "not set, but the program gives the cluster's id", "set it")


def check_kubernetes(spec: FleetSpec, clusters: Mapping[str, KubernetesCluster]) -> Iterator[Problem]:
    """Clusters of the program that the file does not have, or has of GKE; workers without an address."""
    for name, connection in clusters.items():
        if name not in spec.cluster_names:
            yield PROGRAM.at("clusters", f"the program gives {name}, which is not in the file", "remove it")
            continue
        file_connection = spec.cluster(name).kubernetes
        if file_connection is None:
            yield PROGRAM.at(f"clusters[{name}].kubernetes", "not set, but the program gives the cluster", "set it")
        elif connection.server is not None and file_connection.server is not None:
            wrong, fix = "set, but the program gives the address", "keep one of the two"
            yield PROGRAM.at(f"clusters[{name}].kubernetes.server", wrong, fix)
    for entry in spec.clusters:
        alone = entry.role == "worker" and entry.kubernetes is not None and entry.name not in clusters
        if alone and entry.kubernetes is not None and entry.kubernetes.server is None:
            yield NEEDED.at(
                f"clusters[{entry.name}].kubernetes.server",
                "not set, but the manager reaches the worker by it",
                f"add it, or give Fleet kubernetes_clusters with {entry.name}",
            )


def check_secrets(spec: FleetSpec, team_secrets: object) -> Iterator[Problem]:
    """Secrets of teams that the file names, and the program has nothing for."""
    for team in spec.teams if team_secrets is None else ():
        if team.secrets:
            yield PROGRAM.at(
                f"teams[{team.name}].secrets",
                "set, but the program gives no contents for them",
                "run pulumi config set --secret --path 'kueue-fleet:teamSecrets."
                f"{team.secrets[0]}.KEY'; a program of your own passes team_secrets to Fleet",
            )
