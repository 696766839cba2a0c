"""What the manager's Kueue may do on a worker: read what it watches everywhere, write where the fleet has jobs.

The Secret has no token in it: Kubernetes fills it in. Carrying the token to the manager is the job of the components.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kueue_admission.api.job_kinds import DISPATCHED_FRAMEWORKS, KINDS, external_kinds
from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.clusters import ServiceAccountToken
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.worker_tokens import ACCOUNT_NAME, first_token, first_token_manifest
from kueue_fleet.objects.grants import (
    READ_VERBS,
    cluster_grant,
    google_subject,
    job_namespaces,
    namespace_grants,
    policy_rule,
    service_account_subject,
    worker_service_account,
    worker_subject,
)

ACCOUNT_JOBS_ROLE_NAME: Final = f"{ACCOUNT_NAME}-jobs"
"""Name of the role by which it writes, and of the RoleBindings in the namespaces that have jobs."""

_PATCHED: Final = frozenset({"jobs", "rayclusters", "rayjobs", "rayservices"})
"""Kinds whose remote copy Kueue also patches, for elastic jobs."""


def render_worker_access(fleet: FleetSpec, worker: str) -> list[Manifest]:
    """Roles and bindings for the manager on `worker`; with tokens, ServiceAccount and token Secret too.

    The roles cover the kinds of job that the manager's Kueue
    manages, no others. What is bound in namespaces comes first: a worker where the account could write everywhere is
    never without the right to write where jobs are.
    """
    if fleet.multi_kueue is None or fleet.manager is None:
        return []
    configuration = kueue_configuration(fleet, fleet.manager.name)
    frameworks = configuration["integrations"].get("frameworks") or ["batch/job"]
    external = [item["name"] for item in configuration.get("multiKueue", {}).get("externalFrameworks", [])]
    subject = worker_subject(fleet, ACCOUNT_NAME)
    return [
        *worker_service_account(fleet, ACCOUNT_NAME),
        *_grants(subject, job_namespaces(fleet), frameworks, external),
        *first_token_manifest(fleet, ACCOUNT_NAME),
    ]


def token_access(
    credentials: ServiceAccountToken, namespace: str, job_namespaces: Sequence[str], frameworks: Sequence[str]
) -> list[Manifest]:
    """The same without a fleet, to an account in Kueue's `namespace`, with the Secret of its first token."""
    subject = service_account_subject(ACCOUNT_NAME, namespace)
    return [
        manifest("v1", "ServiceAccount", ACCOUNT_NAME, namespace),
        *_grants(subject, job_namespaces, frameworks),
        first_token(credentials, namespace, ACCOUNT_NAME),
    ]


def google_access(address: Any, job_namespaces: Sequence[str], frameworks: Sequence[str]) -> list[Manifest]:
    """The same to a Google account, which may be an output of Pulumi."""
    return _grants(google_subject(address), job_namespaces, frameworks)


def _grants(
    subject: dict[str, str], namespaces: Sequence[str], frameworks: Sequence[str], external: Sequence[str] = ()
) -> list[Manifest]:
    jobs = worker_job_rules(frameworks, external)
    return [
        *namespace_grants(ACCOUNT_JOBS_ROLE_NAME, jobs, subject, namespaces),
        *cluster_grant(ACCOUNT_NAME, worker_rules(frameworks, external), subject),
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
    """API group and resource of each kind, once. Of a Deployment, MultiKueue dispatches the pods."""
    names = ("pod" if name == "deployment" else name for name in frameworks if name in DISPATCHED_FRAMEWORKS)
    kinds = (*(KINDS[name] for name in names), *external_kinds(external))
    return list(dict.fromkeys((kind.group, kind.plural) for kind in kinds))
