"""The rules KF800 to KF899 of teams, the controller and Kueue's configuration."""

from __future__ import annotations

from kueue_admission.kernel.problem import KUEUE_SOURCE, THE_INPUT, Rule

NAMESPACE_SELECTOR = Rule(
    "KF801",
    seen="`takes no jobs of namespace NAME: its namespaceSelector does not match`",
    why="Kueue admits no job of a namespace that the queue does not select.",
    remedy="Change the selector or the labels, as the message says",
    source="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/",
)
UNMANAGED_NAMESPACE = Rule(
    "KF802",
    severity="warning",
    seen="`and Kueue leaves all jobs there alone`",
    why="`managedJobsNamespaceSelector` leaves out a namespace with a LocalQueue.",
    remedy="Match the namespace too",
)
MANAGED_NAMESPACES = Rule(
    "KF803",
    seen="`matches kube-system, where Kueue must not manage jobs`",
    why="Kueue would hold back pods that it needs itself.",
    remedy="Add the matchExpression that the message names",
    source=f"{KUEUE_SOURCE}/pkg/config/validation.go#L349",
)
GROUPS = Rule(
    "KF804",
    severity="warning",
    seen="`is a group, but CLUSTER looks up no groups`",
    why="A group gets rights only on clusters with RBAC for Google Groups.",
    remedy="Set `rbacSecurityGroup`, or name people",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/google-groups-rbac",
)
REGIONS = Rule(
    "KF805",
    seen="`queue NAME is in REGION only`",
    why="The team may use only some regions, and its queue is not on a cluster there.",
    remedy="Allow one of these regions, or use another queue",
    source=THE_INPUT,
)
REGIONS_NOT_KEPT = Rule(
    "KF806",
    severity="warning",
    seen="`Kueue's own dispatchers know no regions`, `which stores its jobs`",
    why="Only the fleet's own controller keeps jobs to the regions of a team, and the manager stores their objects.",
    remedy="Limit the clusters of the queue, use the [controller](controller.md), or move the manager",
)
TEAM_ACCOUNT = Rule(
    "KF807",
    severity="warning",
    seen="`reaches everything in the project`",
    why="The jobs of a team would get rights that they do not need.",
    remedy="Name the roles, and use an account of the team",
)
DEFAULT_LIMIT = Rule(
    "KF808",
    severity="warning",
    seen="`is also what each container gets that asks for none`",
    why="A LimitRange with a maximum and without a default gives the maximum to each container.",
    remedy="Add `default`",
    source="https://kubernetes.io/docs/concepts/policy/limit-range/",
)
OWN_CONTROLLER = Rule(
    "KF809",
    seen="`is not the fleet's own controller`",
    why="A section needs the fleet's own controller, or a check names the wrong one.",
    remedy="Change the section or the check as the message says; see [the controller](controller.md)",
    source=THE_INPUT,
)
CHECK_OF_KUEUE = Rule(
    "KF810",
    seen="`is Kueue's MultiKueue controller`",
    why="The fleet creates the checks of Kueue's own controllers from their sections.",
    remedy="Write the section that the message names",
    source=THE_INPUT,
)
OTHER_KUEUE = Rule(
    "KF812",
    severity="warning",
    seen="`the rules checked here are those of 0.19.2`",
    why="Another release of Kueue may accept and refuse different settings.",
    remedy="Read the release notes; the message says what is known of newer patches",
)
FEATURE_GATE = Rule(
    "KF813",
    seen="`Kueue 0.19.2 has no feature gate NAME`",
    why="A feature gate is unknown, locked, or off where something needs it.",
    remedy="Correct it as the message says",
    source="https://kueue.sigs.k8s.io/docs/installation/",
)
FRAMEWORK = Rule(
    "KF814",
    seen="`is not a framework of Kueue`",
    why="This release does not manage the kind of jobs, or manages it without a framework.",
    remedy="Use one of those that the message lists",
    source=f"{KUEUE_SOURCE}/pkg/config/validation.go#L315",
)
OPERATOR = Rule(
    "KF815",
    severity="warning",
    seen="`the fleet does not install its operator`",
    why="A kind of jobs is managed without its operator; or the other way round.",
    remedy="Add the operator, or remove the framework",
)
OPERATOR_NEEDED = Rule(
    "KF816",
    seen="`makes JobSets, and the fleet does not install JobSet`",
    why="An operator needs another one.",
    remedy="Add it",
    source="https://www.kubeflow.org/docs/components/trainer/operator-guides/installation/",
)
SET_ELSEWHERE = Rule(
    "KF817",
    seen="`is set here, but belongs to the fleet's multiKueue section`",
    why="The fleet sets this field of Kueue's Configuration from its own sections.",
    remedy="Set it there",
    source=THE_INPUT,
)
REPLICAS = Rule(
    "KF818",
    seen="`which would all admit jobs`",
    why="Several replicas need leader election, and a disruption budget that allows draining of nodes.",
    remedy="Write what the message names",
    source="https://kueue.sigs.k8s.io/docs/installation/",
)
PRIORITY_CLASS = Rule(
    "KF819",
    severity="warning",
    seen="`GKE refuses pods of NAME outside kube-system`",
    why="A system PriorityClass needs a ResourceQuota of its scope in the namespace.",
    remedy="Leave the field out, or create that ResourceQuota first",
)
ROTATION = Rule(
    "KF820",
    severity="warning",
    seen="`rotateBy … is due`",
    why="The tokens by which the manager reaches the workers must be replaced by that day.",
    remedy="See [Rotate credentials](tasks/rotate-credentials.md)",
)
GENERATED_NAME = Rule(
    "KF821",
    seen="`cannot be the name of a MultiKueueConfig`",
    why="The fleet derives a name from this one, and a check refers to it by at most 63 letters, digits and hyphens.",
    remedy="Set the name that the message asks for",
    source=f"{KUEUE_SOURCE}/apis/kueue/v1beta2/admissioncheck_types.go#L78",
)
RELEASE_FIELD = Rule(
    "KF822",
    seen="`Kueue 0.17.1 has no field …`",
    why="The release of Kueue that the file names does not have the field; the API server would drop it or Kueue "
    "would not start.",
    remedy="Remove it, or use a release that has it, see [Releases of Kueue](releases.md)",
    source=f"{KUEUE_SOURCE}/pkg/config/config.go#L61",
)
RELEASE_SKEW = Rule(
    "KF823",
    seen="`whose Workloads have no …`",
    why="The worker's release drops a field of the copies that the manager creates there; creates Workloads of its "
    "own for their Jobs; or finishes the copies.",
    remedy="Use a release on the worker, or the feature gate, that the message names",
    source=f"{KUEUE_SOURCE}/pkg/controller/admissionchecks/multikueue/workload.go",
)
RELEASE_API = Rule(
    "KF824",
    seen="`is in v1beta1, which Kueue 0.20.0 does not serve`",
    why="The target release of `upgrade` does not serve this version of the object; it could no longer be read.",
    remedy="Write or store it in the version that the message names, before the upgrade",
    source="https://github.com/kubernetes-sigs/kueue/blob/main/CHANGELOG/CHANGELOG-0.20.md",
)
DECIDED_OTHERWISE = Rule(
    "KF825",
    severity="warning",
    seen="`is decided differently`",
    why="Simulations of both releases decide differently about a job that waits or is submitted.",
    remedy="See [what changed in Kueue's decisions](releases.md#what-changed-in-the-decisions-from-017-to-019), and "
    "change the job or its queue first if you do not want the new decision",
)
LOST_AT_ONCE = Rule(
    "KF826",
    severity="warning",
    seen="`which Kueue 0.18.3 counts from when a job was admitted`",
    why="Kueue 0.17 and 0.18 measure workerLostTimeout from the wrong moment, so a short outage of a worker ends jobs "
    "that run there.",
    remedy="Use 0.19 or newer on the manager, or a timeout longer than jobs run",
)
HOST_IPC = Rule(
    "KF827",
    severity="warning",
    seen="`is what refuses hostIPC`",
    why="Pods that share a GPU by MPS need `hostIPC`, which the Pod Security Standards baseline and restricted refuse.",
    remedy="Write `podSecurity: privileged`",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/nvidia-mps-gpus",
)
OLDER_RELEASE = Rule(
    "KF828",
    severity="warning",
    seen="`0.18.3 is older than 0.19.2`",
    why="The target release of `upgrade` is older than the present one.",
    remedy="Upgrade, or rehearse the way back first",
)
OTHER_DUMP = Rule(
    "KF829",
    severity="warning",
    seen="`but the Kueue of --objects is 0.17.1`",
    why="The objects for `upgrade` are of another release than the file names.",
    remedy="Write the running release into the file, or print the cluster again",
)
HOST_PATHS = Rule(
    "KF830",
    severity="warning",
    seen="`is what refuses host paths`",
    why="Pods that use the networks of GPUs mount host paths of the NCCL plugin, which the Pod Security Standards "
    "baseline and restricted refuse.",
    remedy="Write `podSecurity: privileged`",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/gpu-bandwidth-gpudirect-tcpx",
)
CLAIMED_CLASS = Rule(
    "KF831",
    severity="warning",
    seen="`is in no deviceClassMappings`, `for which no queue of the team has quota`",
    why="Pods claim devices by a template of the team, and Kueue counts devices of a class under the name of its "
    "mapping.",
    remedy="Write the mapping, and quota for its name; see [Networks for GPUs](tasks/gpu-networks.md#claims)",
    source="https://kueue.sigs.k8s.io/docs/concepts/dynamic_resource_allocation/",
)
DATA_REGION = Rule(
    "KF832",
    seen="`in REGION, but data of team NAME stays in …`",
    why="A bucket, instance or disk of a team is outside the regions where its jobs may run.",
    remedy="Name clusters in these regions, or a location in them; see [Data for jobs](tasks/data.md#in-which-regions)",
    source=THE_INPUT,
)
DATA_ACCOUNT = Rule(
    "KF833",
    seen="`so its jobs cannot reach a bucket`",
    why="Jobs read and write a bucket as the Google account of their team.",
    remedy="Give the team an account",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-setup",
)
TEAM_QUOTA = Rule(
    "KF834",
    seen="`but its claims in storage take N`, `but Kueue admits jobs of the team with up to N`, `and pods beyond it "
    "are refused`, `no pod of a job that Kueue admits to the team is ever made`",
    why="The ResourceQuota of a team refuses the claims that the file gives it, or pods of jobs that Kueue admits.",
    remedy="Write the amount that the message names",
    source="https://kubernetes.io/docs/concepts/policy/resource-quotas/#storage-resource-quota",
)
SLACK = Rule(
    "KF835",
    seen="`LocalQueue NAME leads to it`",
    why="A slack queue is the reserve of a cohort: lost capacity reduces what it lends, so it must not have jobs of "
    "its own.",
    remedy="Write what the message names, see [Machines that break](tasks/machines-that-break.md)",
    source="https://github.com/project-codeflare/mlbatch",
)
QUOTA_AUTOMATION = Rule(
    "KF836",
    seen="`Kueue writes quotas of the manager too`",
    why="Two controllers would write the quotas of the same ClusterQueue in turn.",
    remedy="Use one of the two",
    source="https://github.com/kubernetes-sigs/kueue/blob/v0.19.2"
    "/pkg/controller/admissionchecks/multikueue/clusterqueue.go",
)
NO_AUDIENCE = Rule(
    "KF837",
    severity="warning",
    seen="`so the page refuses everybody`",
    why="IAP's signature is for one backend service, whose number is known once the ingress exists.",
    remedy="Write `fleetPage.iap.audience` then",
    source="https://cloud.google.com/iap/docs/signed-headers-howto",
)
NO_VIEWERS = Rule(
    "KF838",
    severity="warning",
    seen="`so its members see nothing on the page`",
    why="IAP identifies viewers, but not their groups.",
    remedy="List the group's members in `fleetPage.iap.groups`",
    source="https://cloud.google.com/iap/docs/signed-headers-howto",
)
BUDGET = Rule(
    "KF839",
    seen="`but only the fleet's controller holds jobs back`",
    why="An enforced budget needs the fleet's controller on the cluster where jobs are submitted.",
    remedy="Write what the message names, see [Budgets](goals.md#budgets)",
    source=THE_INPUT,
)
BUDGET_COUNT = Rule(
    "KF840",
    severity="warning",
    seen="`so its jobs wait`, `so they hold no job back`",
    why="An enforced budget cannot have the intended effect.",
    remedy="Write what the message names, see [Budgets](goals.md#budgets)",
)
CLAIMED_GPUS = Rule(
    "KF841",
    seen="`this pool would be handed out twice`, `GKE installs no drivers for GPUs that pods claim`",
    why="NVIDIA's DRA driver provides GPUs on all of its nodes or on none, and not beside GKE's device plugin and "
    "drivers.",
    remedy="Write what the message names, see [NVIDIA's DRA driver](tasks/gpu-networks.md#nvidias-dra-driver)",
    source="https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra",
)
PLAN_LIMIT = Rule(
    "KF843",
    severity="warning",
    seen="`is not in the file, as there is no …`, `which is none of the levels`",
    why="`plan` can only change values that the file has, starting from these.",
    remedy="Write what the message names, see [Plan](plan.md#what-may-change)",
)
QUOTA_WINDOW = Rule(
    "KF844",
    seen="`are both open at`, `no quota is another one in it`",
    why="A quota has one amount at any time, and a window that changes none is meant for one.",
    remedy="Write what the message names, see [Quotas by time](tasks/change-quotas.md#quotas-by-time-of-the-week)",
    source=THE_INPUT,
)
DYNAMIC_SLICES = Rule(
    "KF845",
    seen="`but GKE's slice controller`",
    why="GKE's slice controller works with cubes of TPU7x from sub-blocks of a reservation, on a Standard cluster of "
    "the channel RAPID.",
    remedy="Write what the message names; see [Slices from cubes](tasks/tpus.md#slices-from-cubes)",
    source="https://docs.cloud.google.com/kubernetes-engine/docs/how-to/use-gke-dynamic-slicing",
)
TEMPLATE = Rule(
    "KF846",
    severity="warning",
    seen="`so that no such job ever runs`",
    why="A template of a team asks for more than its queue, or one of its nodes, can ever have.",
    remedy="Write less, or name another queue",
    source="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/",
)
