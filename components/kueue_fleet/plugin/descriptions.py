"""What each argument of the components means in YAML or TypeScript, in a sentence.

The fields of the fleet file's models, and what `Fleet` takes beside its spec, are not here: their docstrings are used.
An argument means the same in every component that has it, unless it stands here with the component's name.
"""

from collections.abc import Mapping
from typing import Any, Final

ARGUMENTS: Final[Mapping[str, str]] = {
    "account": "Address of the Google service account that reads metrics.",
    "accounts": "Address of the Google account of each team, by the team's name.",
    "apis": "APIs to enable, such as container.googleapis.com; they stay enabled.",
    "access": "How the API server is reached; by default by its DNS name alone.",
    "caCertificate": "Certificate authority of the API server, base64 PEM; absent: its certificate is a public one.",
    "checks": "AdmissionChecks by name, each with its workers, most preferred first; default: multikueue, with all.",
    "cluster": "Name of the GKE cluster, as its component outputs it.",
    "clusterName": "Name of the cluster.",
    "clusterQueue": "Name of the ClusterQueue, in place of the spec.",
    "clusterSpec": "The cluster that the pool is on, as in the fleet's `clusters`.",
    "commitments": "Committed-use contracts; they cannot be cancelled.",
    "controllerNamespace": "Where the fleet's own controller runs on the manager; default: there is none.",
    "credentials": "The token of an account on the worker, by which the manager reaches it.",
    "deletionProtection": "Whether Pulumi refuses to delete it; default true.",
    "endpoint": "Address of the worker's API server, without a scheme, as the manager reaches it.",
    "expectActive": "Whether to wait until the object is Active.",
    "fleet": "Name of the fleet.",
    "followsCapacity": "Whether quotas of some ClusterQueues follow capacity; default false.",
    "frameworks": "Kinds of jobs, as in the Configuration of the manager's Kueue; default: batch/job and JobSet.",
    "futureReservations": "Machines requested from DWS Calendar for a later time.",
    "googleAccount": "Address of the account that the manager acts as, in place of a token.",
    "image": "Image of the controller, instead of the one in the Deployment.",
    "jobClusters": "Names of the clusters that run jobs.",
    "kubeconfigs": "Kubeconfig of each worker, by its name, as WorkerAccess outputs it.",
    "kubernetesAccounts": "Accounts that act as it: pairs of namespace and name, in every cluster of the project.",
    "kubeconfig": "Kubeconfig of the worker, as WorkerAccess outputs it.",
    "kueueNamespace": "Where Kueue runs; default kueue-system.",
    "location": "Zone of the cluster, if it is in one and not in a region.",
    "labels": "Labels in Google Cloud.",
    "given": "The cluster as a program has it; default: by its context of the kubeconfig that kubectl uses.",
    "goals": "What jobs of ClusterQueues are to get, by the name of the queue.",
    "managedPrometheus": "Whether Google's collectors run, as they always do on Autopilot; default true.",
    "manager": "Name of the manager cluster, if there is one.",
    "members": "Who gets the role: `group:`, `user:` or `serviceAccount:` and an address.",
    "namespace": "Namespace of the queue.",
    "namespaces": "Namespaces on the worker that have jobs.",
    "network": "Self link or name of the network.",
    "networkName": "The network's name in Google Cloud; by default the resource's name.",
    "nodeServiceAccount": "Address of the nodes' account, instead of the entry's.",
    "existingId": "Id of a cluster that exists, such as an output of what makes it; it has to be the entry's.",
    "objectName": "Name of the object in the cluster; by default the resource's name.",
    "objects": "Kubernetes objects, as `kueue-fleet render` prints them.",
    "privateNodes": "Whether nodes have internal addresses alone; to be as the cluster has it. Default true.",
    "ownAuthority": "Whether, without `caCertificate`, the authority is the cluster's own; default false.",
    "peering": "Whether to connect the network with Google's services where Managed Lustre needs it; default false.",
    "podRangeName": "Secondary range of the subnet for pods; by default GKE's choice.",
    "podRanges": "Range of the pods by region; default: a /15 of 10.0.0.0/9 that no other region has.",
    "project": "Google Cloud project id.",
    "elsewhere": "Other projects with clusters of the fleet; of ProjectServices, each with the APIs that it needs.",
    "imagesOf": "Another project whose images the nodes read.",
    "ranges": "Range of the nodes by region; default: that of Google's auto-mode networks.",
    "pools": "Entries of node pools of one cluster, as a fleet file has them.",
    "regions": "Regions that get a subnet and Cloud NAT.",
    "reservations": "Machines that are reserved, and paid for, from now on.",
    "rotation": "Serial of the worker's token, as WorkerAccess outputs it; absent: a plugin gives the credentials.",
    "roles": "Roles of the account in the project.",
    "serviceAccount": "Address of the account of the nodes, as the cluster outputs it.",
    "serviceRangeName": "Secondary range of the subnet for Services; by default GKE's choice.",
    "serviceRanges": "Range of the Services by region, for one cluster; default: GKE's own.",
    "secrets": "What is in the Secrets that the team names, by name and key; without it, none are made.",
    "stoppedQueues": "ClusterQueues that are inactive on purpose, for which no alert is raised.",
    "subnetwork": "Self link or name of the subnet.",
    "takeOwnership": "Whether Helm takes over existing objects of the chart; default: it fails.",
    "team": "Name of the team.",
    "tlsServerName": "Name in the server's certificate; default: the host of the address.",
    "proxyUrl": "Proxy through which the manager connects; default: none.",
    "workers": "The workers by name: what their WorkerAccess outputs.",
    "values": "Values of the chart; by default what the fleet file's configuration asks for.",
    # Fields of ControlPlaneAccess.
    "dns": "By a DNS name, checked by IAM, with no IP address at all; else by addresses, from `networks` alone.",
    "networks": "Ranges that may reach the addresses, by a display name; unused with `dns`.",
    "kubernetesTokens": "Whether tokens of Kubernetes service accounts are taken over the DNS name.",
    # Fields of KubernetesCluster.
    "context": "Context of the kubeconfig; default: the current one.",
    "server": "Address at which the manager reaches the API server; default: the kubeconfig's.",
    "certificateAuthorityData": "Authority of that address, PEM in base64; default: the kubeconfig's.",
    # Fields of NetworkIds.
    "selfLink": "Self link of an existing network, or `projects/HOST/global/networks/NAME`.",
    "subnetworks": "Self link of each region's subnet, or `projects/HOST/regions/REGION/subnetworks/NAME`.",
    "podRangeNames": "Name of the subnet's secondary range for pods, by region; default: GKE adds one.",
    "serviceRangeNames": "Name of its secondary range for Services, for one cluster, by region; default: GKE's own.",
    "nodeRanges": "Range of the nodes, by region; the manager's is needed where it reaches workers by address.",
}
"""Meaning by the argument's name in camelCase."""

OF_COMPONENT: Final[Mapping[tuple[str, str], str]] = {
    ("GrafanaIdentity", "namespace"): "Where Grafana's pods run; default monitoring.",
    ("Fleet", "spec"): "The fleet, as in a fleet file.",
    ("TeamStorage", "spec"): "The fleet, as in a fleet file, of which `storage` is declared.",
    ("TeamStorage", "network"): "The clusters' network, `projects/P/global/networks/N`.",
    ("GpuDrivers", "spec"): "The DaemonSet, as `kueue-fleet render` prints it.",
    ("Namespaces", "spec"): "Names of the namespaces.",
    ("MultiKueue", "spec"): "The whole fleet, as in a fleet file, in place of `workers`.",
}
"""Where an argument means something of its own."""


def describe_argument(component: str, argument: str, model: Mapping[str, Any] | None = None) -> str:
    """The meaning of `argument` (camelCase); that of a `spec` is what the schema says of its `model`.

    Raises KeyError where there is no description.
    """
    if (component, argument) in OF_COMPONENT:
        return OF_COMPONENT[component, argument]
    if argument == "spec" and model is not None:
        return str(model["description"])
    return ARGUMENTS[argument]
