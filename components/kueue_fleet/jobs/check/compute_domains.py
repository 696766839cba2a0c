"""ComputeDomains, and claim templates, that are written beside the jobs that use them.

NVIDIA's DRA driver makes the claim template that a ComputeDomain names, of one channel for each pod. Pods of different
machines that have a channel of one domain reach each other's GPUs over NVLink, within a rack of A4X.

Source: kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.1 deployments/helm/dra-driver-nvidia-gpu/crds,
templates/compute-domain-workload-claim-template.tmpl.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.form_rules import NEEDED
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.manifest import Manifest, inside, key_of
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.manifests import label_of
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.dra_driver import CHANNEL_CLASS
from kueue_fleet.gke.accelerator_networks import has_compute_domains
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.check.gpu_networks import asks_for_gpus, pools_of
from kueue_fleet.jobs.queued_job import PodSetTemplate, QueuedJob, job_fault, of_pod_set

_DOMAIN: Final = "ComputeDomain"
_KINDS: Final = (_DOMAIN, "ResourceClaimTemplate")


def claims_apart(manifests: Iterable[Document]) -> tuple[list[Document], list[Document]]:
    """The jobs, and beside them the objects by which their pods claim devices."""
    manifest_list = list(manifests)
    claims = [manifest_there for manifest_there in manifest_list if manifest_there.data["kind"] in _KINDS]
    return [manifest_there for manifest_there in manifest_list if manifest_there.data["kind"] not in _KINDS], claims


def claim_templates(claims: Iterable[Document]) -> list[Manifest]:
    """The claim templates, those of ComputeDomains as the driver makes them."""
    return [claim.data if claim.data["kind"] != _DOMAIN else _template(claim.data) for claim in claims]


def _template(domain: Mapping[str, Any]) -> Manifest:
    request = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}
    namespace, _, _ = key_of(domain).partition("/")
    spec = {"spec": {"devices": {"requests": [request]}}}
    return manifest("resource.k8s.io/v1", "ResourceClaimTemplate", _template_name(domain), namespace, spec=spec)


def _template_name(domain: Mapping[str, Any]) -> str:
    return str(inside(domain, "spec", "channel", "resourceClaimTemplate").get("name") or "")


def check_domains(fleet: FleetSpec, claims: Iterable[Document]) -> Iterator[Problem]:
    """Each domain names its claim template, which a driver of the fleet makes where Kueue looks for it."""
    for where, data in claims:
        if data["kind"] != _DOMAIN:
            continue
        if not _template_name(data):
            path = f"{label_of(data)}.spec.channel.resourceClaimTemplate.name"
            yield NEEDED.at(path, "is missing", "name the template that pods claim").behind(where)
        if not any(map(fleet.dra_pools_on, fleet.job_clusters)):
            wrong = "no driver makes its claim template: the fleet does not install NVIDIA's where jobs run"
            yield JOB.at(label_of(data), wrong, "write nvidiaDraDriver: {} in the fleet").behind(where)
        elif fleet.manager is not None:
            wrong = (
                "its claim template is made on workers alone, and Kueue counts devices by the templates on "
                f"{fleet.manager.name}, where jobs are submitted, so that it admits none that uses it"
            )
            yield JOB.at(label_of(data), wrong, "use a fleet of one cluster, of role standalone").behind(where)


@job_check
def check_channels(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Pods that claim a channel where no node has one; a warning where several machines of A4X do without."""
    domains = [claim.data for claim in job.claims if claim.data["kind"] == _DOMAIN]
    templates = {f"{key_of(domain).partition('/')[0]}/{_template_name(domain)}" for domain in domains}
    queue = fleet.queue(job.queue)
    for pods in job.pod_sets if queue is not None else ():
        pools = list(pools_of(fleet, queue, pods)) if queue is not None else []
        domain_support = [has_compute_domains(pool.machine_type) for pool in pools]
        has_template = any(f"{job.namespace}/{claim_name}" in templates for claim_name in _claimed(pods))
        if has_template and not any(domain_support):
            wrong = "claims a channel of a ComputeDomain, which only nodes of A4X have, and comes to none of these"
            yield of_pod_set(job, pods, job_fault(wrong, "remove the claim, or use a queue of A4X"))
        alone = not has_template and pods.count > 1 and asks_for_gpus(pods)
        if alone and domain_support and all(domain_support) and fleet.nvidia_dra_driver is not None:
            wrong = "is in no ComputeDomain, so its machines reach each other over the network, not over NVLink"
            fault = job_fault(wrong, "write a ComputeDomain beside it, as docs/tasks/gpu-networks.md shows")
            yield of_pod_set(job, pods, fault, "warning")


def _claimed(pods: PodSetTemplate) -> Iterator[str]:
    for claim in inside(pods.template, "spec").get("resourceClaims") or ():
        yield str(inside(claim).get("resourceClaimTemplateName"))
