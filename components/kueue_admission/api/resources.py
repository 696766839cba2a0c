"""What kubectl and the API server call the kinds that are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RESOURCES: Final[Mapping[str, str]] = {
    "ResourceFlavor": "resourceflavors",
    "Cohort": "cohorts",
    "ClusterQueue": "clusterqueues",
    "LocalQueue": "localqueues",
    "AdmissionCheck": "admissionchecks",
    "Topology": "topologies",
    "MultiKueueConfig": "multikueueconfigs",
    "MultiKueueCluster": "multikueueclusters",
    "ProvisioningRequestConfig": "provisioningrequestconfigs",
    "Workload": "workloads",
    "WorkloadPriorityClass": "workloadpriorityclasses",
    "PriorityClass": "priorityclasses",
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
    "LimitRange": "limitranges",
    "RuntimeClass": "runtimeclasses",
    "Job": "jobs",
}
"""Kind, and its plural in lower case. Beside Jobs there are other kinds of jobs."""
WORKLOADS: Final = ("kueue.x-k8s.io", "v1beta2", "workloads")
"""Group, version and plural of Workloads."""
CONFIG_MAP: Final = "kueue-manager-config"
"""What Kueue's own manifests and its chart call the ConfigMap."""
DEPLOYMENT: Final = "kueue-controller-manager"
"""What they call the Deployment."""
KUEUE_NAMESPACE: Final = "kueue-system"
"""Where they install Kueue."""
