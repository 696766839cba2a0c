"""Names in Kueue's and the fleet's objects that several parts of the fleet read or write: labels, controllers, groups.

Labels of GKE are in `gke.labels`.
"""

from __future__ import annotations

from typing import Final

KUEUE_GROUP: Final = "kueue.x-k8s.io"
"""API group of Kueue's objects."""
KUEUE_API: Final = f"{KUEUE_GROUP}/v1beta2"
"""`apiVersion` of Kueue's objects."""
POD_GROUP_LABEL: Final = "kueue.x-k8s.io/pod-group-name"
"""On the pods of a group: its name."""
POD_GROUP_TOTAL_ANNOTATION: Final = "kueue.x-k8s.io/pod-group-total-count"
"""On the pods of a group: how many there are."""
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""Label of a job: the LocalQueue that it is submitted to."""
MULTIKUEUE_CONTROLLER: Final = "kueue.x-k8s.io/multikueue"
"""Controller of the admission checks that send jobs to worker clusters."""
ORIGIN_LABEL: Final = "kueue.x-k8s.io/multikueue-origin"
"""Label of what a manager makes on a worker: the origin of its Configuration."""
PROVISIONING_CONTROLLER: Final = "kueue.x-k8s.io/provisioning-request"
"""Controller of the admission checks that ask for nodes."""
PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
"""Label of a job: its WorkloadPriorityClass."""
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
"""Label of a node with its own name: the lowest level of a Topology."""
MAX_RUN_PARAMETER: Final = "maxRunDurationSeconds"
"""Parameter of a ProvisioningRequest: how many seconds DWS keeps its nodes."""
LEAST_PODS_ANNOTATION: Final = "kueue.x-k8s.io/job-min-parallelism"
"""Annotation of a Job: with how many pods at the same time it may start."""
RUN_DURATION_ANNOTATION: Final = f"provreq.kueue.x-k8s.io/{MAX_RUN_PARAMETER}"
"""Annotation of a job, which Kueue copies to its Workload: how many seconds DWS keeps the job's nodes."""
ALLOWED_FLAVORS_ANNOTATION: Final = "kueue.x-k8s.io/workload-allowed-resource-flavors"
"""Annotation of a Workload: the only flavors that Kueue gives it, joined by commas; gate ConcurrentAdmission."""
GPU_RESOURCE: Final = "nvidia.com/gpu"
"""Resource name of NVIDIA's GPUs, and key of the taint of GKE's nodes with GPUs."""
TPU_RESOURCE: Final = "google.com/tpu"
"""Resource name of TPU chips, and key of the taint of GKE's nodes with TPUs."""
ACCELERATOR_RESOURCES: Final = (GPU_RESOURCE, TPU_RESOURCE)
"""The scarce and costly resources."""
PRODUCT: Final = "kueue-fleet"
"""How the fleet's own things call themselves: the package, the stack's config, and labels in Google Cloud."""
FALLBACK_CHECK: Final = "kueue-fleet-fallback"
"""AdmissionCheck on queues with `fallback`: the fleet's controller takes a job back from a flavor whose nodes do not
come."""
SINGLE_POD_SET_REFUSAL: Final = "the queued provisioning feature currently supports only single PodSet per request"
"""GKE's words for a ProvisioningRequest of several PodSets. Source: https://github.com/ray-project/ray/issues/57839."""
REGIONS_LABEL: Final = "kueue-fleet.dev/regions"
"""Label of a job, its Workload or a namespace: regions, or groups of regions, joined by `_`: `europe-west4_eu`."""
RUN_SECONDS_ANNOTATION: Final = "kueue-fleet.dev/run-seconds"
"""Annotation of a job or its pods: how many seconds they run, in simulations and rehearsals."""
