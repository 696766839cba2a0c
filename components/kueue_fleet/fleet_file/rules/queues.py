"""The rules KF700 to KF799 of flavors, queues and quotas."""

from __future__ import annotations

from kueue_admission.kernel.problem import THE_INPUT, Rule

_PODS_READY = "https://kueue.sigs.k8s.io/docs/tasks/manage/setup_wait_for_ready_pods/"

COHORT_UNDECLARED = Rule(
    "KF713",
    severity="warning",
    seen="`no entry of cohorts declares NAME`",
    why="Kueue accepts any name for a cohort; a cohort that is not declared has no quota, limits or parent.",
    remedy="Correct the name, or declare it",
)
COUNTED_TWICE = Rule(
    "KF715",
    severity="warning",
    seen="`Kueue adds the two`",
    why="The cohort's own quota equals the sum of its queues.",
    remedy="Remove `resourceGroups` of the cohort if you meant the sum",
)
COHORT_ALONE = Rule(
    "KF716",
    severity="warning",
    seen="`is alone in cohort NAME`",
    why="There is no other queue to borrow from.",
    remedy="Put another queue in it, or remove `cohortName`",
)
FLAVOR_WITHOUT_NODES = Rule(
    "KF717",
    severity="warning",
    seen="`no node pool of CLUSTER has the label …`",
    why="The flavor has no nodes: no pool has its labels, and GKE does not create any. Jobs that get its quota stay "
    "pending.",
    remedy="Write `nodePool`, add a pool, or allow node auto-provisioning",
    source="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/",
)
AUTOPILOT_LABELS = Rule(
    "KF718",
    seen="`makes and names its node pools itself`",
    why="Autopilot creates nodes only for labels that GKE knows.",
    remedy="Use the labels that the message names",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-compute-classes",
)
UNKNOWN_LABEL_VALUE = Rule(
    "KF719",
    severity="warning",
    seen="`is a value that GKE gives no node`",
    why="A node label of GKE has a value that this release does not know.",
    remedy="Correct the value",
    source="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/",
)
NOT_TOLERATED = Rule(
    "KF720",
    seen="`nodes of pool NAME have the taint …, which admitted pods need to tolerate`",
    why="Pods of the flavor's jobs would not be scheduled on its nodes.",
    remedy="Add the toleration to the flavor, or declare the taint in `nodeTaints`",
    source="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/",
)
NO_SUCH_TAINT = Rule(
    "KF721",
    severity="warning",
    seen="`is a taint that no node of the flavor has`",
    why="`nodeTaints` requires a toleration of jobs, but does not set a taint on nodes.",
    remedy="Correct it, or set the taint on the pool",
)
CUSTOM_LABEL = Rule(
    "KF722",
    seen="`is a custom label`",
    why="GKE creates nodes with such a label only for pods that tolerate the taint of the same key and value.",
    remedy="Add the toleration",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/node-auto-provisioning",
)
NO_NODES = Rule(
    "KF723",
    seen="`is 0, but queues may use …`",
    why="A pool of fixed size 0 has quota.",
    remedy="Write a size, or `autoscaling`",
    source=_PODS_READY,
)
SHARED_NODES = Rule(
    "KF724",
    severity="warning",
    seen="`flavors A, B share nodes on CLUSTER`",
    why="The nodes are enough for each flavor, but not for all of them together.",
    remedy="Give each flavor a node pool of its own, or lower `nominalQuota`",
    source=_PODS_READY,
)
NODES_OF_OTHERS = Rule(
    "KF725",
    severity="warning",
    seen="`its jobs can take nodes that those flavors' quota counts`",
    why="A flavor by labels selects nodes that another flavor counts as its own.",
    remedy="Write `nodePool`, or add labels that only its own nodes have",
)
UNIT = Rule(
    "KF726",
    severity="warning",
    seen="`is less than a hundredth of what nodes … have`, `not more than one of each of its N nodes`",
    why="An amount probably has the wrong unit.",
    remedy="Check the unit",
)
TPU_SLICES = Rule(
    "KF727",
    seen="`a slice is N chips, and jobs run on whole slices`",
    why="Quota for a part of a TPU slice is never used.",
    remedy="Write a multiple of the slice",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/tpus",
)
PROVISIONING_LIMIT = Rule(
    "KF728",
    severity="warning",
    seen="`allows at most N, but queues may use M`",
    why="The limits of node auto-provisioning are below the quota.",
    remedy="Raise the limit, or lower `nominalQuota`",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/node-auto-provisioning",
)
PROVISIONING_LIMIT_LOW = Rule(
    "KF729",
    severity="warning",
    seen="`cpu … allows at most N, but queues may use M`",
    why="The same for CPU and memory, of which the nodes have some for other pods too.",
    remedy="Raise the limit, or lower `nominalQuota`",
)
DWS_CHECK = Rule(
    "KF730",
    seen="`no check asks for nodes of NAME`",
    why="Nodes of queued provisioning come only for a ProvisioningRequest, and a check requests no others.",
    remedy="Add or limit the check as the message says; see [Use DWS](tasks/dws.md)",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest",
)
DWS_SPOT = Rule(
    "KF731",
    severity="warning",
    seen="`which are Spot VMs, but DWS nodes are not`",
    why="A check asks DWS for nodes of a flavor of Spot VMs.",
    remedy="Limit the check to other flavors",
)
DWS_FIRST = Rule(
    "KF732",
    severity="warning",
    seen="`the next flavor is for when quota is used up`",
    why="A job with quota on a DWS flavor waits there indefinitely.",
    remedy="Put the flavor last, or add [fallback](tasks/fallback.md)",
)
DWS_RUN_TIME = Rule(
    "KF733",
    seen="`is longer than nodes of pool NAME live`",
    why="DWS grants whole seconds, up to seven days, and the pool's `maxRunDuration` bounds them.",
    remedy="Request less, or make `maxRunDuration` longer",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/dws",
)
DWS_PREEMPTION = Rule(
    "KF734",
    severity="warning",
    seen="`Kueue 0.19 then keeps that job's quota`",
    why="Preemption of a job that waits for its ProvisioningRequest on a worker frees no quota ([found in "
    "Kueue](found-in-kueue.md)).",
    remedy="Set the policy to Never",
)
MANAGER_QUOTA = Rule(
    "KF735",
    severity="warning",
    seen="`a job that fits there never leaves the manager`",
    why="The manager's quota is below that of a worker.",
    remedy="Write the amount that the message names, or remove `manager` to have the sum",
)
MANAGER_QUOTA_UNUSED = Rule(
    "KF736",
    severity="warning",
    seen="`so some of it is never used`",
    why="The manager's quota and that of the workers differ.",
    remedy="Write the amount that the message names, or remove `manager` to have the sum",
)
FITS_NO_WORKER = Rule(
    "KF737",
    severity="warning",
    seen="`a pod set of more than … fits the manager's quota and no worker's`",
    why="Such a job holds the manager's quota indefinitely.",
    remedy="Use the fleet's own [controller](controller.md)",
)
MANAGER_SHARES = Rule(
    "KF738",
    severity="warning",
    seen="`its quota on the manager is on flavor NAME`",
    why="Queues that share no flavor on any worker share one on the manager.",
    remedy="Give each a flavor of its own",
)
LABEL_CONFLICT = Rule(
    "KF739",
    severity="warning",
    seen="`have different values of the node label …`",
    why="A pod gets the labels of one flavor of each group, and these contradict each other.",
    remedy="Use labels that both can have",
)
EMPTY_QUEUE = Rule(
    "KF740",
    severity="warning",
    seen="`empty, so no job can ever be admitted`",
    why="The queue has no quota.",
    remedy="Add quotas",
)
NOT_COVERED = Rule(
    "KF741",
    severity="warning",
    seen="`no quota for cpu, and a job that requests it is never admitted`",
    why="A queue covers devices, but not the other resources that their pods request.",
    remedy="Cover it too; or set `kueue.configuration.resources.quotaCheckStrategy: IgnoreUndeclared`, with which "
    "Kueue counts only what a queue covers",
    source="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/",
)
QUEUE_PLACE = Rule(
    "KF742",
    seen="`the queue is not on CLUSTER`",
    why="An amount is for a cluster where the queue is not, or whose amounts are derived.",
    remedy="Remove it, or add the cluster to the queue",
    source=THE_INPUT,
)
FALLBACK = Rule(
    "KF743",
    seen="`set, but only the fleet's controller takes jobs back`",
    why="`fallback` needs the fleet's own controller where the jobs of the queue are submitted.",
    remedy="See [other machines](tasks/fallback.md)",
    source=THE_INPUT,
)
PATIENCE = Rule(
    "KF744",
    severity="warning",
    seen="`is not shorter than waitForPodsReady.timeout`",
    why="Jobs are withdrawn before their capacity can come, or Kueue evicts them first.",
    remedy="Write the length that the message names",
)
CLASS_NAME = Rule(
    "KF745",
    seen="`those that begin so are GKE's own`",
    why="The compute class of a flavor has the flavor's name.",
    remedy="Write another name",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes",
)
CLASS_ORDER = Rule(
    "KF746",
    severity="warning",
    seen="`AnyBestEffort, with which GKE takes on-demand nodes`",
    why="GKE tries the next priority of a class when it gets no nodes, but with AnyBestEffort it uses on-demand nodes "
    "first.",
    remedy="Put it last; see [Obtain machines](tasks/fallback.md#who-falls-back)",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes",
)
CLASS_NODES = Rule(
    "KF747",
    seen="`no node of the class ever comes`",
    why="On Standard clusters, GKE creates node pools for a class only if the class allows it.",
    remedy="Remove `nodePoolAutoCreation`",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes",
)
CLASS_COUNTED = Rule(
    "KF748",
    severity="warning",
    seen="`has no GPUs, but queue NAME counts nvidia.com/gpu`, `which Kueue counts alike`",
    why="Kueue counts quota of the flavor, and does not see the priority of its nodes.",
    remedy="Write priorities with the same GPUs; see [Obtain machines](tasks/fallback.md#who-falls-back)",
)
MIXED_SHARES = Rule(
    "KF749",
    severity="warning",
    seen="`have different numbers of shares`",
    why="A flavor by labels selects whole and shared GPUs, or GPUs with different numbers of shares.",
    remedy="Write a flavor with `nodePool` for each",
    source="https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus",
)
GOAL_OF_NO_JOB = Rule(
    "KF750",
    severity="warning",
    seen="`no job of CLASS comes to it`",
    why="A goal is about jobs that its queue or team never gets, so it can never be checked.",
    remedy="Name a class that teams may use, add a LocalQueue, or remove the goal",
)
GOAL_OUT_OF_REACH = Rule(
    "KF751",
    severity="warning",
    seen="`of all GPU hours, more than 100 %`, `its quota gives at most N`",
    why="Goals require more than exists, so they cannot all be met.",
    remedy="Write less, or give more quota",
)
TOPOLOGY_LEVEL = Rule(
    "KF752",
    severity="warning",
    seen="`is a label that no node of pool NAME has`",
    why="Kueue places jobs of a flavor with a topology on nodes that have every label of its levels, and on no others.",
    remedy="Correct the label, set it on the pool, or make sure that something else sets it",
    source="https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/",
)
MIXED_NODES = Rule(
    "KF754",
    severity="warning",
    seen="`where it never starts`",
    why="Kueue counts quota, and looks at nodes of flavors with a topology alone: a pod for 8 GPUs can get quota of "
    "nodes with one each.",
    remedy="Use a queue for each size of nodes, a topology, or select the kind of GPU in the pods",
    source="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/",
)
AUTOPILOT_MANAGER = Rule(
    "KF755",
    severity="warning",
    seen="`each job can run on one of them only`",
    why="Autopilot refuses Jobs and Pods for GPUs without an accelerator selector where they are created, although "
    "the manager runs none of them. A job with a selector waits for that kind alone.",
    remedy="Use a Standard cluster as manager, or a queue for each kind of GPU",
    source="https://github.com/GoogleCloudPlatform/ai-on-gke/pull/983",
)
