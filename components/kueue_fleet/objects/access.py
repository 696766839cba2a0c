"""What the manager's Kueue may do on a worker: read what it watches everywhere, write where the fleet has jobs.

In: a fleet and the name of a worker. Out: the ServiceAccount, roles, bindings and token Secret there, as objects.
The Secret has no token in it: Kubernetes fills it in. Carrying the token to the manager is the job of the components.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.worker_tokens import ACCOUNT_NAME, first_token_manifest, token_credentials
from kueue_fleet.kueue_api.manifests import Manifest, manifest
from kueue_fleet.objects.grants import (
    READ_VERBS,
    cluster_grant,
    job_namespaces,
    namespace_grants,
    policy_rule,
    service_account_subject,
)

ACCOUNT_JOBS_ROLE_NAME: Final = f"{ACCOUNT_NAME}-jobs"
"""Name of the role by which it writes, and of the RoleBindings in the namespaces that have jobs."""

_PATCHED: Final = frozenset({"jobs", "rayclusters", "rayjobs", "rayservices"})
"""Kinds whose remote copy Kueue also patches, for elastic jobs."""
_KINDS: Final = {
    "batch/job": ("batch", "jobs"),
    "jobset.x-k8s.io/jobset": ("jobset.x-k8s.io", "jobsets"),
    "kubeflow.org/mpijob": ("kubeflow.org", "mpijobs"),
    "kubeflow.org/paddlejob": ("kubeflow.org", "paddlejobs"),
    "kubeflow.org/pytorchjob": ("kubeflow.org", "pytorchjobs"),
    "kubeflow.org/tfjob": ("kubeflow.org", "tfjobs"),
    "kubeflow.org/xgboostjob": ("kubeflow.org", "xgboostjobs"),
    "kubeflow.org/jaxjob": ("kubeflow.org", "jaxjobs"),
    "ray.io/rayjob": ("ray.io", "rayjobs"),
    "ray.io/raycluster": ("ray.io", "rayclusters"),
    "ray.io/rayservice": ("ray.io", "rayservices"),
    "trainer.kubeflow.org/trainjob": ("trainer.kubeflow.org", "trainjobs"),
    "workload.codeflare.dev/appwrapper": ("workload.codeflare.dev", "appwrappers"),
    "leaderworkerset.x-k8s.io/leaderworkerset": ("leaderworkerset.x-k8s.io", "leaderworkersets"),
    "pod": ("", "pods"),
    "deployment": ("", "pods"),
    "statefulset": ("apps", "statefulsets"),
}


def supported_frameworks() -> frozenset[str]:
    """The frameworks that MultiKueue dispatches (kueue@v0.19.2 pkg/controller/jobs, MultiKueueAdapter)."""
    return frozenset(_KINDS)


def render_worker_access(fleet: FleetSpec, worker: str) -> list[Manifest]:
    """ServiceAccount, roles, bindings and token Secret for the manager on `worker`.

    Empty where the manager has another kind of credentials. The roles cover the kinds of job that the manager's Kueue
    manages, no others. What is bound in namespaces comes first: a worker where the account could write everywhere is
    never without the right to write where jobs are.
    """
    if token_credentials(fleet) is None or fleet.manager is None:
        return []
    namespace = fleet.kueue.namespace
    configuration = kueue_configuration(fleet, fleet.manager.name)
    frameworks = configuration["integrations"].get("frameworks") or ["batch/job"]
    external = [item["name"] for item in configuration.get("multiKueue", {}).get("externalFrameworks", [])]
    subject = service_account_subject(ACCOUNT_NAME, namespace)
    return [
        manifest("v1", "ServiceAccount", ACCOUNT_NAME, namespace),
        *namespace_grants(
            ACCOUNT_JOBS_ROLE_NAME, worker_job_rules(frameworks, external), subject, job_namespaces(fleet)
        ),
        *cluster_grant(ACCOUNT_NAME, worker_rules(frameworks, external), subject),
        *first_token_manifest(fleet, ACCOUNT_NAME),
    ]


def worker_rules(frameworks: Sequence[str], external: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What Kueue reads in a whole worker; frameworks as in its Configuration, external ones as Kind.version.group.

    Its watches are not limited to namespaces. Source: kueue@v0.19.2
    pkg/controller/admissionchecks/multikueue/multikueuecluster.go (establishWatch, runGC).
    """
    own = ("workloads", "workloads/status", "clusterqueues", "localqueues")
    rules = [policy_rule("kueue.x-k8s.io", name, ["get"] if "/" in name else READ_VERBS) for name in own]
    for group, plural in _kinds(frameworks, external):
        rules.append(policy_rule(group, plural, READ_VERBS))
        rules.append(policy_rule(group, f"{plural}/status", ["get"]))
    return rules


def worker_job_rules(frameworks: Sequence[str], external: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What Kueue writes on a worker, in each namespace that has jobs of the fleet.

    Source: kueue@v0.19.2 test/util/multikueue.go (MultiKueueRulesForManager), less the verbs that no adapter in
    pkg/controller/jobs uses.
    """
    rules = [
        policy_rule("kueue.x-k8s.io", "workloads", ["create", "delete", "patch", "update"]),
        policy_rule("kueue.x-k8s.io", "workloads/status", ["patch", "update"]),
    ]
    for group, plural in _kinds(frameworks, external):
        rules.append(policy_rule(group, plural, ["create", "delete", *(["patch"] if plural in _PATCHED else [])]))
    return rules


def _kinds(frameworks: Sequence[str], external: Sequence[str]) -> list[tuple[str, str]]:
    """API group and resource of each kind of job, once each."""
    kinds = [_KINDS[name] for name in frameworks if name in _KINDS]
    for name in external:
        kind, _, rest = name.partition(".")
        kinds.append((rest.partition(".")[2], plural_of(kind)))
    return list(dict.fromkeys(kinds))


def plural_of(kind: str) -> str:
    """The resource of a kind, guessed as Kubernetes does (apimachinery pkg/api/meta, UnsafeGuessKindToResource)."""
    lower = kind.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"
