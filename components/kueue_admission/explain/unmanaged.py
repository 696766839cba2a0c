"""Jobs and pod groups for which Kueue made no Workload: no queue name, or a group that is not complete.

Kueue has no token for these, since it has no Workload to give it to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kueue_admission.api.job_kinds import KINDS
from kueue_admission.api.resources import DEPLOYMENT
from kueue_admission.explain.answer import Explanation
from kueue_admission.kernel.manifest import Manifest, inside, key_of
from kueue_admission.kernel.names import POD_GROUP_LABEL, POD_GROUP_TOTAL_ANNOTATION, QUEUE_LABEL
from kueue_admission.kernel.syntax import whole_number
from kueue_admission.read.dumped_configuration import configurations_in
from kueue_admission.read.dumps import disabled_kinds, is_unmanaged, queue_of_job, unmanaged_namespaces
from kueue_admission.read.manifests import WITH_QUEUE, is_job, owners_of
from kueue_admission.read.printed import Printed, PrintedJob

_MOST_NAMED: Final = 8

_BY_SETTING: Final = {
    True: "and stays so, as Kueue manages jobs without a queue name here (manageJobsWithoutQueueName)",
    False: "not by Kueue, which leaves jobs without a queue name alone (manageJobsWithoutQueueName is off)",
    None: "and where Kueue manages jobs without a queue name (manageJobsWithoutQueueName), it stays so",
}
"""By what Kueue's Configuration says; None: it is not among the objects."""


def explain_unmanaged(manifests: Iterable[Manifest], name: str, *, cluster: str = "") -> Explanation | None:
    """Why Kueue has no Workload for the Job or pod group `name` (`namespace/name`, or the name alone)."""
    objects = list(manifests)
    disabled_names = disabled_kinds(objects)
    outside = unmanaged_namespaces(objects)
    for manifest in objects:
        if manifest.get("kind") == "CronJob" and name in _names(manifest):
            return _of_cron_job(manifest, cluster)
        if key_of(manifest).partition("/")[0] in outside and is_job(manifest) and name in _names(manifest):
            return _outside(manifest, outside[key_of(manifest).partition("/")[0]], cluster)
        if manifest.get("kind") in disabled_names and name in _names(manifest):
            return _passed_over(manifest, disabled_names[str(manifest.get("kind"))], cluster)
        if is_unmanaged(manifest) and name in _names(manifest):
            return _part_of_another(manifest, objects, disabled_names, cluster) or _without_queue(
                manifest, objects, cluster
            )
    pods = [m for m in objects if m.get("kind") in WITH_QUEUE and queue_of_job(m)]
    of_group = next((names[0] for m in pods if (names := _group_names(m)) and name in (*names, *_names(m))), "")
    group = [m for m in pods if of_group in _group_names(m)]
    if group:
        totals = (whole_number(_texts(pod, "annotations").get(POD_GROUP_TOTAL_ANNOTATION)) for pod in group)
        return _incomplete(group, next((total for total in totals if total is not None), 0), cluster)
    alone = next((m for m in pods if name in _names(m)), None)
    if alone is None:
        return None
    return _by_pods(alone, objects, cluster) or _without_workload(key_of(alone), [alone], cluster)


def _texts(manifest: Manifest, field: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in inside(manifest, "metadata", field).items()}


def _names(manifest: Manifest) -> tuple[str, str]:
    key = key_of(manifest)
    return key, key.partition("/")[2]


def _group_names(manifest: Manifest) -> tuple[str, ...]:
    group = _texts(manifest, "labels").get(POD_GROUP_LABEL)
    return (_group_key(manifest, group), group) if group else ()


def _group_key(manifest: Manifest, group: str) -> str:
    return f"{key_of(manifest).partition('/')[0]}/{group}"


def _explanation(key: str, cluster: str, headline: str, queue: str, step: str, code: str | None = None) -> Explanation:
    return Explanation(
        workload=key,
        cluster=cluster,
        state="without a Workload",
        reason=None,
        message="",
        headline=headline,
        local_queue=queue,
        next_step=step,
        code=code,
    )


def _passed_over(manifest: Manifest, config: Manifest, cluster: str) -> Explanation:
    kind, key = manifest.get("kind"), key_of(manifest)
    name = next(framework for framework, value in KINDS.items() if value.kind == kind)
    namespace, _, config_name = key_of(config).partition("/")
    return _explanation(
        key,
        cluster,
        f"Kueue passes over every {kind} on this cluster: integrations.frameworks of its Configuration does not name "
        f"{name}.",
        queue_of_job(manifest),
        f"Add {name} to integrations.frameworks in ConfigMap {config_name}, restart Kueue (kubectl rollout restart "
        f"deployment {DEPLOYMENT} -n {namespace}), and create the {kind} again with suspend: true.",
        "KF117",
    )


def _of_cron_job(manifest: Manifest, cluster: str) -> Explanation:
    """Source: https://kueue.sigs.k8s.io/docs/tasks/run/run_cronjobs/."""
    queue = str(inside(manifest, "spec", "jobTemplate", "metadata", "labels").get(QUEUE_LABEL) or "")
    headline = f"Kueue queues the Jobs that a CronJob makes, and not the CronJob: they name the LocalQueue {queue}."
    step = f"Explain one of them: kubectl get jobs -n {key_of(manifest).partition('/')[0]}."
    if not queue:
        headline = f"Kueue does not manage the Jobs of this CronJob: its jobTemplate has no label {QUEUE_LABEL}."
        step = f"Write the label {QUEUE_LABEL} below spec.jobTemplate.metadata.labels of the CronJob."
    return _explanation(key_of(manifest), cluster, headline, queue, step, None if queue else "KF101")


def _outside(manifest: Manifest, config: Manifest, cluster: str) -> Explanation:
    kind, key = manifest.get("kind"), key_of(manifest)
    namespace, _, name = key.partition("/")
    is_suspended = PrintedJob.of(manifest).is_suspended
    headline = (
        f"Kueue passes over every job in namespace {namespace}, also those that name a queue: "
        "managedJobsNamespaceSelector of its Configuration leaves it out."
        f"{' The job is suspended, and nothing starts it.' if is_suspended else ''}"
    )
    step = (
        f"Create the {kind} in a namespace that the selector matches, or have it match this one (ConfigMap "
        f"{key_of(config).partition('/')[2]}; then restart Kueue)"
    )
    if is_suspended:
        step += f", or start it without Kueue: kubectl patch {str(kind).lower()} {name} -n {namespace}"
        step += ' --type merge -p \'{"spec":{"suspend":false}}\''
    return _explanation(key, cluster, headline, queue_of_job(manifest), f"{step}.", "KF117")


def _part_of_another(
    manifest: Manifest, objects: list[Manifest], manifests: Mapping[str, Manifest], cluster: str
) -> Explanation | None:
    """For a job that a job of another kind made, which Kueue queues as a whole."""
    kinds = {kind.kind for kind in KINDS.values()}
    owner = next((owner for owner in Printed.of(manifest).owners if owner.controls and owner.kind in kinds), None)
    if owner is None:
        return None
    kind, key = owner.kind, f"{key_of(manifest).partition('/')[0]}/{owner.name}"
    whole = next(
        (candidate for candidate in objects if candidate.get("kind") == kind and key_of(candidate) == key), None
    )
    if whole is not None and kind in manifests:
        return _passed_over(whole, manifests[kind], cluster)
    headline = f"It is a part of {kind} {key}, which Kueue queues as a whole."
    return _explanation(key_of(manifest), cluster, headline, "", f"Explain that one: kueue-fleet explain {key}.")


def _without_queue(manifest: Manifest, objects: list[Manifest], cluster: str) -> Explanation:
    kind, key = manifest.get("kind"), key_of(manifest)
    namespace, _, name = key.partition("/")
    queue = _texts(manifest, "annotations").get(QUEUE_LABEL, "")
    if queue:
        headline = (
            f"Kueue does not manage this {kind}: it names the LocalQueue {queue} in an annotation, and Kueue reads "
            f"the label {QUEUE_LABEL} only."
        )
        step = f"Create the {kind} again with the label {QUEUE_LABEL}: {queue} and suspend: true."
    elif PrintedJob.of(manifest).is_suspended:
        manage_all = [
            bool(configuration.get("manageJobsWithoutQueueName")) for _, configuration in configurations_in(objects)
        ]
        headline = (
            f"This {kind} is in no queue: it has no label {QUEUE_LABEL}. It is suspended, "
            f"{_BY_SETTING[manage_all[0] if manage_all else None]}."
        )
        step = f"kubectl label {str(kind).lower()} {name} -n {namespace} {QUEUE_LABEL}=NAME, with a LocalQueue's name."
    else:
        headline = (
            f"Kueue does not manage this {kind}: it has no label {QUEUE_LABEL}. What keeps its pods from running, if "
            "they do not run, is not Kueue."
        )
        step = (
            f"Create the {kind} again with the label {QUEUE_LABEL} and suspend: true (kubectl get {str(kind).lower()} "
            f"{name} -n {namespace} shows its labels), or let Kueue manage jobs without a queue name "
            "(manageJobsWithoutQueueName)."
        )
    return _explanation(key, cluster, headline, "", step, "KF101")


def _by_pods(manifest: Manifest, objects: list[Manifest], cluster: str) -> Explanation | None:
    """For what makes pods each of which has a Workload."""
    kind, key = manifest.get("kind"), key_of(manifest)
    workloads = (candidate for candidate in objects if candidate.get("kind") == "Workload")
    workload_keys = [
        key_of(workload)
        for workload in workloads
        if any(owner.startswith(f"{key}-") for _, owner in owners_of(workload))
    ]
    if not workload_keys:
        return None
    headline = f"Kueue queues each pod of this {kind} by itself: {', '.join(workload_keys[:_MOST_NAMED])}."
    step = f"Explain one of them: kueue-fleet explain {workload_keys[0]}."
    return _explanation(key, cluster, headline, queue_of_job(manifest), step)


def _without_workload(key: str, pods: list[Manifest], cluster: str) -> Explanation:
    """For live pods, or what makes them, which have no Workload among the objects."""
    kind, namespace = pods[0].get("kind"), key.partition("/")[0]
    what = f"this {kind}" if len(pods) == 1 else f"this group of {len(pods)} pods"
    headline = f"The Workload of {what} is not among the objects."
    step = (
        f"Add what `kubectl get workloads -n {namespace} -o yaml` prints. Where it has none, Kueue does not manage the "
        f"{kind}: see whether it was created with the label {QUEUE_LABEL}, and whether integrations.frameworks and "
        "managedJobsNamespaceSelector of Kueue's Configuration cover it."
    )
    return _explanation(key, cluster, headline, queue_of_job(pods[0]), step)


def _incomplete(group: list[Manifest], total: int, cluster: str) -> Explanation:
    name = _texts(group[0], "labels")[POD_GROUP_LABEL]
    key = _group_key(group[0], name)
    if len(group) >= total > 0:
        return _without_workload(key, group, cluster)
    if total == 0:
        headline = f"No pod of the group says how many pods belong to it (annotation {POD_GROUP_TOTAL_ANNOTATION})."
        step = f"Create the pods again with the annotation {POD_GROUP_TOTAL_ANNOTATION}."
    else:
        headline = (
            f"The pod group has {len(group)} of its {total} pods; Kueue makes its Workload when all are there, and "
            "until then every pod stays gated."
        )
        again = f"create the group again with {POD_GROUP_TOTAL_ANNOTATION}: {len(group)}"
        step = f"Create the missing {total - len(group)}, or {again}."
    return _explanation(key, cluster, headline, _texts(group[0], "labels").get(QUEUE_LABEL, ""), step)
