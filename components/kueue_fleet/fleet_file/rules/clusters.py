"""The rules KF600 to KF699 of clusters, networks, node pools and reservations."""

from __future__ import annotations

from kueue_admission.kernel.problem import KUEUE_SOURCE, THE_INPUT, Rule

ROLES = Rule(
    "KF601",
    seen="`there is a worker but no manager`",
    why="A fleet has one manager and its workers, or one standalone cluster.",
    remedy="Change `role` of the clusters",
    source=THE_INPUT,
)
NO_WORKERS = Rule(
    "KF602",
    severity="warning",
    seen="`there is a manager but no worker, so no job can run`",
    why="A manager dispatches jobs and runs none.",
    remedy="Add clusters of role worker",
)
RUNS_NO_JOBS = Rule(
    "KF603",
    seen="`is the manager, which runs no jobs`",
    why="An entry names only clusters where no job runs: the manager, an Autopilot cluster for node pools, or a "
    "region without a cluster.",
    remedy="Name workers",
    source=THE_INPUT,
)
UNLISTED_WORKER = Rule(
    "KF604",
    severity="warning",
    seen="`is a worker, but not listed`",
    why="`multiKueue.workers` leaves the cluster out.",
    remedy="Add it, or [drain it](tasks/drain-a-worker.md) and remove the cluster",
)
TOO_MANY_WORKERS = Rule(
    "KF605",
    seen="`a MultiKueueConfig names at most 20`",
    why="Kueue dispatches the jobs of a queue to at most that many clusters.",
    remedy="Name fewer workers in `clusters` of the queue",
    source=f"{KUEUE_SOURCE}/apis/kueue/v1beta2/multikueue_types.go#L156",
)
OVERLAP = Rule(
    "KF606",
    seen="`overlaps 10.0.0.0/20 of …`",
    why="Two ranges of the network have addresses in common, which Google Cloud refuses.",
    remedy="Use a range that overlaps no other",
    source="https://cloud.google.com/vpc/docs/subnets",
)
SUBNET = Rule(
    "KF607",
    seen="`not set, but a cluster is there`",
    why="A network that exists needs a subnet for each region of the fleet.",
    remedy="Name the subnet and its ranges in `network.existing`",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/alias-ips",
)
OPEN_TO_ALL = Rule(
    "KF608",
    severity="warning",
    seen="`is the whole internet`",
    why="Everyone on the internet could connect to the control plane.",
    remedy="Name your own ranges",
)
GOOGLE_NAME = Rule(
    "KF609",
    seen="`names have at most 63 characters`",
    why="Google Cloud refuses names that contain this one.",
    remedy="Write a shorter name",
    source="https://cloud.google.com/compute/docs/naming-resources",
)
GOOGLE_LABELS = Rule(
    "KF610",
    seen="`clusters have room for N`",
    why="Labels of Google Cloud have a value, and a resource has at most 64 of them.",
    remedy="Remove some",
    source="https://cloud.google.com/resource-manager/docs/labels-overview",
)
MANY_LABELS = Rule(
    "KF611",
    severity="warning",
    seen="`GKE adds up to N to nodes`",
    why="Together with GKE's own, these are more labels than a node can have.",
    remedy="Remove some",
)
UNKNOWN_MACHINE = Rule(
    "KF612",
    severity="warning",
    seen="`is not in the catalogue`",
    why="A machine type or accelerator that this release does not know: a typing error, or a newer one, whose size is "
    "then not checked.",
    remedy="Correct the name, or make sure that it exists",
    source="https://cloud.google.com/compute/docs/gpus",
)
NOT_OFFERED = Rule(
    "KF613",
    severity="warning",
    seen="`is not known to be offered in ZONE`",
    why="Google offers these machines or accelerators elsewhere.",
    remedy="Use one of the places that the message names, or make sure that it is",
    source="https://cloud.google.com/compute/docs/gpus/gpu-regions-zones",
)
ZONE = Rule(
    "KF614",
    seen="`is ZONE, which does not exist`",
    why="The region has no such zone, or the cluster is in another region.",
    remedy="Use one of the zones that the message names",
    source="https://cloud.google.com/compute/docs/regions-zones",
)
MAINTENANCE = Rule(
    "KF615",
    seen="`leaves GKE N h of the 32 days`",
    why="GKE refuses windows and exclusions that leave too little time for upgrades.",
    remedy="Make the window longer, or the exclusions shorter",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions",
)
KEY_REGION = Rule(
    "KF616",
    seen="`the key is in LOCATION`",
    why="A key of Cloud KMS works only in its own location.",
    remedy="Use a key of the cluster's region",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/encrypting-secrets",
)
GKE_VERSION = Rule(
    "KF617",
    severity="warning",
    seen="`flex-start needs 1.32.2`",
    why="The cluster's version of GKE cannot create such nodes.",
    remedy="Write the version that the message names, or a newer one",
)
SECURITY_GROUP = Rule(
    "KF618",
    seen="`GKE looks into one group only`",
    why="RBAC with Google Groups works through one group named gke-security-groups.",
    remedy="Write `gke-security-groups@` and your domain",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/google-groups-rbac",
)
POOL_SIZE = Rule(
    "KF619",
    seen="`a pool has at most 1000 nodes in each zone`",
    why="A quota of GKE that cannot be raised.",
    remedy="Write a smaller number, or split the pool",
    source="https://cloud.google.com/kubernetes-engine/quotas",
)
POOL_LABEL = Rule(
    "KF620",
    seen="`GKE sets it to …`",
    why="GKE sets the node label itself.",
    remedy="Remove it, or use another key",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools",
)
CONSUMPTION = Rule(
    "KF621",
    seen="`Google does not offer NAME so`",
    why="Some machines are available only by a reservation or flex-start.",
    remedy="Use one of the ways that the message names",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/consumption-option",
)
EXISTING_POOL = Rule(
    "KF622",
    severity="warning",
    seen="`no pool is there`",
    why="`existing` is set for a pool on a cluster that does not exist yet.",
    remedy="Remove it, or set `existing` on the cluster too",
)
ON_MANAGER = Rule(
    "KF623",
    severity="warning",
    seen="`is the manager`",
    why="A node pool names the manager, which runs no jobs.",
    remedy="Remove it there",
)
RESERVATION = Rule(
    "KF624",
    seen="`reservation NAME is in ZONE, not in ZONE`",
    why="A pool and its reservation differ in zone, machine type, GPUs, local SSDs or time, so the pool gets no nodes.",
    remedy="Write the same in both",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations",
)
RESERVATION_COUNT = Rule(
    "KF625",
    seen="`N machines, but its pools may have M nodes`",
    why="The pools of a reservation may grow beyond it.",
    remedy="Reserve more, or make the pools smaller",
    source="https://cloud.google.com/compute/docs/instances/reservations-consume",
)
TPU_RESERVATION = Rule(
    "KF626",
    seen="`Google reserves by chips and not by machines`",
    why="A reservation of TPUs is made with a version and a number of chips.",
    remedy="Ask for it with gcloud or your account team",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus",
)
SHARED_WITH = Rule(
    "KF627",
    severity="warning",
    seen="`is an id, but Google answers with numbers`",
    why="Google names projects by number, so the provider sees no change of the list later.",
    remedy="Write the number of the project",
)
ATTACHED = Rule(
    "KF628",
    seen="`is set, but NAME comes with …`",
    why="GPUs can be attached to N1 machines only, in certain numbers.",
    remedy="Remove it, or write what the message names",
    source="https://cloud.google.com/compute/docs/gpus",
)
RESERVATION_KIND = Rule(
    "KF629",
    severity="warning",
    seen="`is a future reservation of this file`",
    why="The capacity of a pool is of another kind than the reservation that it names.",
    remedy="Write the type that the message names",
)
NO_ROOM_TO_UPGRADE = Rule(
    "KF630",
    severity="warning",
    seen="`has no machine for a node more, so no upgrade ever ends`",
    why="A pool that fills its reservation cannot surge, and `maxUnavailable` is 0.",
    remedy="Write `upgrade: {maxSurge: 0, maxUnavailable: 1}`",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies",
)
BACKUP = Rule(
    "KF631",
    severity="warning",
    seen="`is of a reservation that is kept as a backup`",
    why="Kueue tries flavors in order, and uses the next one only when quota is used up.",
    remedy="Put it after others, or add `fallback`",
)
COMMITMENT = Rule(
    "KF632",
    seen="`is missing, and a commitment cannot be cancelled`",
    why="A commitment is paid for until its end, and fits the reservations that it names.",
    remedy="Confirm it as the message says; name reservations of its region and resources",
    source="https://cloud.google.com/compute/docs/instances/signing-up-committed-use-discounts",
)
CALENDAR = Rule(
    "KF633",
    severity="warning",
    seen="`reservation NAME ends on DATE`",
    why="Google opens and closes calendar reservations on a day, and removes their nodes.",
    remedy="Do what the message says by that day",
    source="https://cloud.google.com/compute/docs/instances/future-reservations-calendar-mode-overview",
)
ENDED = Rule(
    "KF634",
    severity="warning",
    seen="`ended on DATE`",
    why="The entry is over.",
    remedy="Remove it",
)
UNUSUAL_DURATION = Rule(
    "KF635",
    severity="warning",
    seen="`write 24h to 2160h`",
    why="Google grants calendar reservations of 1 to 90 days.",
    remedy="Write such a length, or make sure that Google grants it",
)
SHARED_VPC = Rule(
    "KF665",
    seen="`in PROJECT, and the network is one that only the fleet's project can use`",
    why="A cluster in another project than the fleet's has its nodes in a network that the other project shares with "
    "it.",
    remedy="Name the network of the Shared VPC's host project in `network.existing`; see [Several "
    "projects](tasks/existing-clusters.md#several-projects)",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-shared-vpc",
)
RESERVED_ELSEWHERE = Rule(
    "KF666",
    seen="`of PROJECT, and reservation NAME is not shared with it`",
    why="A pool takes its nodes from a reservation of another project than its cluster's.",
    remedy="Write the project of the reservation in `capacity.project`, and share it with the cluster's",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations#shared-reservations",
)
MULTI_NETWORKING = Rule(
    "KF669",
    seen="`nodes of CLUSTER cannot have several networks`",
    why="A pool has `acceleratorNetworks`, and its cluster is made without multi-networking.",
    remedy="Set `multiNetworking: true` on the cluster; see [Networks for GPUs](tasks/gpu-networks.md)",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods",
)
NETWORKS_DIFFER = Rule(
    "KF670",
    seen="`is another network on CLUSTER than for pool NAME`",
    why="Pods ask for networks by names that a cluster has once, and its pools have different networks of one name.",
    remedy="Name the same networks, or put the pool on another cluster",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods",
)
NODE_NETWORK_PROJECT = Rule(
    "KF671",
    seen="`made by the fleet, in PROJECT, but the nodes' own network is in …`",
    why="All networks of a node are of one project.",
    remedy="Name networks of that project in `acceleratorNetworks.existing`",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods",
)
NO_CARDS = Rule(
    "KF672",
    seen="`true, but Google is not known to have one for MACHINE`, `the network cards of MACHINE are not known`",
    why="A pool asks for networks of its GPUs, or the NCCL plugin for them, and its machines are not known to have "
    "any.",
    remedy="Remove `ncclPlugin`, or `acceleratorNetworks`",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/gpu-bandwidth-gpudirect-tcpx",
)
DATA_DRIVER = Rule(
    "KF674",
    seen="`without DRIVER, which storage NAME needs`",
    why="Pods cannot mount a volume where the cluster does not have its driver.",
    remedy="Add the driver to `storageDrivers`",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/storage-overview",
)
RANGE_TOO_SMALL = Rule(
    "KF675",
    severity="warning",
    seen="`has addresses for N nodes, but M may come`, `has N addresses, but the pods of M nodes that may come take …`",
    why="Nodes beyond the addresses of their range never come: GKE gives each a range of its own for its pods.",
    remedy="Write a larger range, lower `maxPodsPerNode`, or let the pools have fewer nodes",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/alias-ips",
)
SYSTEM_POOL_TOO_SMALL = Rule(
    "KF676",
    seen="`leaves pods N of memory, and each of Kueue's asks for 2Gi`",
    why="No node of the cluster takes the pods of Kueue, so that no job is ever admitted.",
    remedy="Write a larger `systemPool.machineType`, or request less in `kueue.resources`",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes",
)
ACCOUNT_ELSEWHERE = Rule(
    "KF677",
    severity="warning",
    seen="`an account of PROJECT, and the nodes are in PROJECT`",
    why="Google attaches accounts of another project to machines only if that project allows it.",
    remedy="Name an account of the cluster's project, or lift `iam.disableCrossProjectServiceAccountUsage` there",
    source="https://cloud.google.com/iam/docs/attach-service-accounts#different-project",
)
NOT_OF_GKE = Rule(
    "KF678",
    seen="`and CLUSTER is not of GKE`, `no cluster of the fleet is in Google Cloud`",
    why="What the entry asks for is a part of GKE or Google Cloud, and a cluster with `kubernetes` has neither.",
    remedy="Do what the message says; see [Workers outside GKE](tasks/workers-outside-gke.md)",
    source=THE_INPUT,
)
NO_SERVER = Rule(
    "KF679",
    severity="warning",
    seen="`is missing, and the manager reaches a worker by it`, `leads the manager's pods to themselves`",
    why="The manager's Kueue needs the address of the worker's API server; the context is of your own kubeconfig.",
    remedy="Add `kubernetes.server`, or give it to `Fleet` in a program",
)
SAME_CLUSTER = Rule(
    "KF680",
    severity="warning",
    seen="`is that of CLUSTER too`",
    why="Two entries lead to one cluster, where they overwrite each other's objects. Commands without the file read a "
    "cluster by the context of its name.",
    remedy="Correct the context or the address",
)
