"""What the API server refuses of single objects in Jobs and JobSets whose fields are all of the right form.

Each rule is for a type of `fields.json`, and so for every place where that type stands.

Source: kubernetes@v1.36.3 pkg/apis/core/validation/validation.go (validateProbe, validateHandler, validateLifecycle,
validateInitContainers, validateContainerCommon, validateContainerPorts, validateEnvVarValueFrom, ValidateEnvFrom,
ValidateTolerations, ValidateNodeSelectorRequirement, ValidatePodTemplateSpec, ValidatePodSpec, ValidateHostAliases,
validatePodDNSConfig, validatePodHostName, validateHostUsers, validateTopologySpreadConstraints, validate*VolumeSource),
pkg/apis/batch/validation/validation.go (validateJobSpec, validatePodFailurePolicy, validateSuccessPolicy),
pkg/kubelet/util of volumes (media of emptyDir).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kueue_admission.forms import syntax
from kueue_admission.forms.form_rules import Fault, FaultError
from kueue_admission.forms.manifest import inside, maps_in
from kueue_admission.forms.quantity import ZERO, Quantity
from kueue_admission.forms.suggest import nearest
from kueue_fleet.jobs.queued_job import job_fault

Faults = Iterator[tuple[str, Fault]]
"""Where below the object, beginning with a dot or empty, and what is wrong there."""

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "AppArmorProfile.type": ("RuntimeDefault", "Localhost", "Unconfined"),
    "Container.imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "Container.terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "ContainerPort.protocol": ("TCP", "UDP", "SCTP"),
    "ContainerResizePolicy.restartPolicy": ("NotRequired", "RestartContainer"),
    "EmptyDirVolumeSource.medium": ("Memory", "HugePages", "HugePages-2Mi", "HugePages-1Gi", ""),
    "HTTPGetAction.scheme": ("HTTP", "HTTPS"),
    "HostPathVolumeSource.type": (
        *("DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice", ""),
    ),
    "JobSpec.completionMode": ("NonIndexed", "Indexed"),
    "JobSpec.podReplacementPolicy": ("TerminatingOrFailed", "Failed"),
    "JobSetSpecFailurePolicy.restartStrategy": ("Recreate", "BlockingRecreate", "InPlaceRestart"),
    "JobSetSpecFailurePolicyRules.action": ("FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"),
    "JobSetSpecReplicatedJobsDependsOn.status": ("Ready", "Complete"),
    "JobSetSpecStartupPolicy.startupPolicyOrder": ("AnyOrder", "InOrder"),
    "JobSetSpecSuccessPolicy.operator": ("All", "Any"),
    "LabelSelectorRequirement.operator": ("In", "NotIn", "Exists", "DoesNotExist"),
    "NodeSelectorRequirement.operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
    "PodFailurePolicyOnExitCodesRequirement.operator": ("In", "NotIn"),
    "PodFailurePolicyOnPodConditionsPattern.status": ("True", "False", "Unknown"),
    "PodFailurePolicyRule.action": ("FailIndex", "FailJob", "Ignore", "Count"),
    "PodOS.name": ("linux", "windows"),
    "PodSecurityContext.fsGroupChangePolicy": ("OnRootMismatch", "Always"),
    "PodSecurityContext.seLinuxChangePolicy": ("MountOption", "Recursive"),
    "PodSecurityContext.supplementalGroupsPolicy": ("Merge", "Strict"),
    "PodSpec.dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "PodSpec.preemptionPolicy": ("PreemptLowerPriority", "Never"),
    "SecurityContext.procMount": ("Default", "Unmasked"),
    "SeccompProfile.type": ("RuntimeDefault", "Unconfined", "Localhost"),
    "Toleration.effect": ("NoSchedule", "PreferNoSchedule", "NoExecute", ""),
    "Toleration.operator": ("Exists", "Equal", ""),
    "TopologySpreadConstraint.nodeAffinityPolicy": ("Honor", "Ignore"),
    "TopologySpreadConstraint.nodeTaintsPolicy": ("Honor", "Ignore"),
    "TopologySpreadConstraint.whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "VolumeMount.mountPropagation": ("None", "HostToContainer", "Bidirectional"),
}
"""The words that a field takes."""
_PORT: Final = 65_535
_MODE: Final = 0o777
_INT32: Final = 2**31 - 1
_INT64: Final = (
    *("activeDeadlineSeconds", "expirationSeconds", "fsGroup", "generation", "runAsGroup", "runAsUser", "seconds"),
    *("supplementalGroups", "terminationGracePeriodSeconds", "tolerationSeconds"),
)
"""Fields of 64 bits; other whole numbers have 32."""
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "ConfigMapVolumeSource.defaultMode": (0, _MODE),
    "ContainerPort.containerPort": (1, _PORT),
    "ContainerPort.hostPort": (0, _PORT),
    "DownwardAPIVolumeSource.defaultMode": (0, _MODE),
    "GRPCAction.port": (1, _PORT),
    "KeyToPath.mode": (0, _MODE),
    "PreferredSchedulingTerm.weight": (1, 100),
    "ProjectedVolumeSource.defaultMode": (0, _MODE),
    "SecretVolumeSource.defaultMode": (0, _MODE),
    "WeightedPodAffinityTerm.weight": (1, 100),
}
_LEAST: Final[Mapping[str, int]] = {
    **dict.fromkeys(("JobSpec.activeDeadlineSeconds", "JobSpec.backoffLimit", "JobSpec.backoffLimitPerIndex"), 0),
    **dict.fromkeys(("JobSpec.maxFailedIndexes", "JobSpec.ttlSecondsAfterFinished"), 0),
    **dict.fromkeys(("JobSetSpec.ttlSecondsAfterFinished", "JobSetSpecFailurePolicy.maxRestarts"), 0),
    **dict.fromkeys(("Probe.initialDelaySeconds", "Probe.timeoutSeconds", "Probe.periodSeconds"), 0),
    **dict.fromkeys(("Probe.successThreshold", "Probe.failureThreshold", "SleepAction.seconds"), 0),
    **dict.fromkeys(("PodSpec.activeDeadlineSeconds", "Probe.terminationGracePeriodSeconds"), 1),
    **dict.fromkeys(("PodSpec.terminationGracePeriodSeconds", "SecurityContext.runAsUser"), 0),
    **dict.fromkeys(("PodSecurityContext.runAsUser", "PodSecurityContext.fsGroup"), 0),
    **dict.fromkeys(("PodSecurityContext.runAsGroup", "SecurityContext.runAsGroup"), 0),
    **dict.fromkeys(("SuccessPolicyRule.succeededCount",), 0),
    **dict.fromkeys(("TopologySpreadConstraint.maxSkew", "TopologySpreadConstraint.minDomains"), 1),
}
_ONE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "EnvFromSource": ("configMapRef", "secretRef"),
    "EnvVarSource": ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"),
    "LifecycleHandler": ("exec", "httpGet", "tcpSocket", "sleep"),
    "PodFailurePolicyRule": ("onExitCodes", "onPodConditions"),
    "Probe": ("exec", "httpGet", "tcpSocket", "grpc"),
}
"""Types that have exactly one of these fields."""
_NEEDED: Final[Mapping[str, str]] = {
    "ConfigMapEnvSource": "name",
    "ConfigMapKeySelector": "name",
    "ConfigMapVolumeSource": "name",
    "Container": "image",
    "ExecAction": "command",
    "NodeSelector": "nodeSelectorTerms",
    "PodFailurePolicyOnExitCodesRequirement": "values",
    "SecretEnvSource": "name",
    "SecretKeySelector": "name",
    "SecretVolumeSource": "secretName",
    "SuccessPolicy": "rules",
}
"""Fields that have to be there though the schema does not say so, and not be empty."""
_ENV_FIELDS: Final = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
_MOST_ANNOTATIONS: Final = 256 * 1024
"""Bytes of the keys and values of an object's annotations. Source: apimachinery TotalAnnotationSizeLimitB."""
_NAMES: Final = ("nodeName", "priorityClassName", "runtimeClassName", "serviceAccountName")
"""Of other objects, in pods."""
_MOST_NAMESERVERS: Final = 3
_MOST_SEARCHES: Final = 32
_HOSTNAME: Final = 64
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def field_faults(field: str, value: Any) -> Iterator[Fault]:
    """What is wrong with the value of a field, `Type.name`, that is of the right form."""
    if (values := VALUES.get(field)) is not None and value not in values:
        near = nearest(str(value), values)
        fix = f"did you mean {near}?" if near else f"write one of {', '.join(filter(None, values))}"
        yield job_fault(f"is {value!r}, which Kubernetes does not know", fix)
    if type(value) is not int:
        return
    least, most = _RANGES.get(field, (_LEAST.get(field), None))
    if most is None and field.rpartition(".")[2] not in _INT64:
        most = _INT32
    if least is not None and value < least:
        yield job_fault(f"is {value}", f"write {least} or more")
    if most is not None and value > most:
        yield job_fault(f"is {value}", f"write {most} or less")


def object_faults(kind: str, value: Mapping[str, Any]) -> Faults:
    """What is wrong with an object of a type, whose fields are all of the right form."""
    if (fields := _ONE_OF.get(kind)) is not None:
        given = [field for field in fields if value.get(field) not in (None, [])]
        if not given:
            yield "", job_fault("does not say what it is, and Kubernetes refuses it", f"write {_or(fields)}")
        elif len(given) > 1:
            wrong = f"has {' and '.join(given)}, and Kubernetes takes one of them"
            yield "", job_fault(wrong, f"keep {' or '.join(given)}")
    needed = _NEEDED.get(kind)
    # An image that is there and empty is not a name of one, which `check_job_fields` says.
    empty: tuple[object, ...] = (None,) if kind == "Container" else (None, "", [])
    if needed is not None and value.get(needed) in empty:
        yield f".{needed}", job_fault("is missing, and Kubernetes refuses the job", "write it")
    if (rule := _RULES.get(kind)) is not None:
        yield from rule(value)


def metadata_faults(metadata: Mapping[str, Any]) -> Faults:
    """Labels and annotations that no object can have."""
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    yield from _labels(".labels", labels)
    if isinstance(annotations, Mapping):
        for key in annotations:
            if fault := syntax.label_key(str(key).lower()):
                yield f".annotations[{key}]", _refused(str(key), fault)
        size = sum(len(f"{key}{value}".encode()) for key, value in annotations.items())
        if size > _MOST_ANNOTATIONS:
            wrong = f"have {size:,} bytes, and Kubernetes takes {_MOST_ANNOTATIONS:,}"
            yield ".annotations", job_fault(wrong, "put the data into a ConfigMap or a volume")


def _labels(path: str, labels: Any) -> Faults:
    for key, value in labels.items() if isinstance(labels, Mapping) else ():
        if fault := syntax.label_key(str(key)):
            yield f"{path}[{key}]", _refused(str(key), fault)
        elif isinstance(value, str) and (fault := syntax.label_value(value)):
            yield f"{path}[{key}]", _refused(value, fault)


def _refused(text: str, fault: Fault) -> Fault:
    shown = text if len(text) <= 70 else f"{text[:60]}..."
    return job_fault(f"{shown!r} {fault.wrong}, and Kubernetes refuses it", fault.fix)


def _text(value: Mapping[str, Any], field: str) -> str:
    """A text; empty where there is none, or something else, which `check_job_fields` says."""
    found = value.get(field)
    return found if isinstance(found, str) else ""


def _or(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _port(value: Mapping[str, Any]) -> Faults:
    port = value.get("port")
    if isinstance(port, str) and _PORT_NAME.fullmatch(port) is None:
        wrong = f"{port!r} is neither a number nor the name of a port"
        yield ".port", job_fault(wrong, "write the number, without quotes, or at most 15 of a-z, 0-9 and hyphens")
    elif isinstance(port, int) and not 0 < port <= _PORT:
        yield ".port", job_fault(f"is {port}", f"write 1 to {_PORT}")


def _ports_and_probes(container: Mapping[str, Any]) -> Faults:
    names: list[str] = []
    for index, port in enumerate(maps_in(container.get("ports"))):
        if not (name := _text(port, "name")):
            continue
        if _PORT_NAME.fullmatch(name) is None:
            wrong = f"{name!r} is not the name of a port"
            yield f".ports[{index}].name", job_fault(wrong, "write at most 15 of a-z, 0-9 and hyphens")
        elif name in names:
            yield f".ports[{index}].name", job_fault(f"{name} is the name of another port", "use another name")
        names.append(name)
    for probe in ("livenessProbe", "startupProbe"):
        if inside(container, probe).get("successThreshold") not in (None, 0, 1):
            yield f".{probe}.successThreshold", job_fault("is more than 1, and Kubernetes refuses it", "remove it")
    if inside(container, "readinessProbe").get("terminationGracePeriodSeconds") is not None:
        wrong = "is not for readiness, and Kubernetes refuses it"
        yield ".readinessProbe.terminationGracePeriodSeconds", job_fault(wrong, "remove it")


def _field_of_pod(source: Mapping[str, Any]) -> Faults:
    path = inside(source, "fieldRef").get("fieldPath")
    if isinstance(path, str) and path not in _ENV_FIELDS and _SUBSCRIPT.fullmatch(path) is None:
        near = nearest(path, _ENV_FIELDS)
        fix = f"did you mean {near}?" if near else f"write one of {', '.join(_ENV_FIELDS)} or metadata.labels['KEY']"
        yield ".fieldRef.fieldPath", job_fault(f"there is no {path} for variables", fix)


def _toleration(value: Mapping[str, Any]) -> Faults:
    key, operator, text = _text(value, "key"), _text(value, "operator") or "Equal", _text(value, "value")
    if key and (fault := syntax.label_key(key)):
        yield ".key", _refused(key, fault)
    if not key and operator != "Exists":
        yield "", job_fault("has no key, and Kubernetes takes that with operator Exists only", "write the key")
    if operator == "Equal" and (fault := syntax.label_value(text)):
        yield ".value", _refused(text, fault)
    if value.get("tolerationSeconds") is not None and value.get("effect") != "NoExecute":
        wrong = "is for effect NoExecute, and Kubernetes refuses it with another"
        yield ".tolerationSeconds", job_fault(wrong, "remove it, or write effect: NoExecute")


def _requirement(value: Mapping[str, Any]) -> Faults:
    operator, values = value.get("operator"), _list(value, "values")
    if operator in ("In", "NotIn") and not values:
        yield ".values", job_fault(f"is empty, and {operator} needs some", "write the values, or use Exists")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield ".values", job_fault(f"is not for operator {operator}", "remove it, or use In")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield ".values", job_fault(f"has {len(values)} values, and {operator} takes one", "write one number in quotes")
    if (key := _text(value, "key")) and (fault := syntax.label_key(key)):
        yield ".key", _refused(key, fault)
    for index, each in enumerate(values):
        if isinstance(each, str) and (fault := syntax.label_value(each)):
            yield f".values[{index}]", _refused(each, fault)


def _pod(pod: Mapping[str, Any]) -> Faults:
    for fields, form in ((("hostname", "subdomain"), syntax.dns_label), (_NAMES, syntax.dns_subdomain)):
        for field in fields:
            if (name := _text(pod, field)) and (fault := form(name)):
                yield f".{field}", _refused(name, fault)
    yield from _of_hosts(pod)
    yield from _spread(pod)
    yield from _labels(".nodeSelector", pod.get("nodeSelector"))
    for index, volume in enumerate(maps_in(pod.get("volumes"))):
        if (name := _text(volume, "name")) and (fault := syntax.dns_label(name)):
            yield f".volumes[{index}].name", _refused(name, fault)
    for index, container in enumerate(maps_in(pod.get("initContainers"))):
        given = [field for field in ("lifecycle", *_PROBES) if container.get(field) is not None]
        if given and container.get("restartPolicy") != "Always":
            wrong = "is for containers that stay, and Kubernetes refuses it of others that run first"
            fix = "remove it, or write restartPolicy: Always for a sidecar"
            yield f".initContainers[{index}].{given[0]}", job_fault(wrong, fix)
    if pod.get("ephemeralContainers"):
        wrong = "cannot be in a template, and Kubernetes refuses the job"
        yield ".ephemeralContainers", job_fault(wrong, "write them as containers")
    if pod.get("dnsPolicy") == "None" and not inside(pod, "dnsConfig").get("nameservers"):
        wrong = "is None, and Kubernetes then takes no pod without nameservers"
        yield ".dnsPolicy", job_fault(wrong, "write dnsConfig.nameservers, or another policy")


def _of_hosts(pod: Mapping[str, Any]) -> Faults:
    """What pods cannot be with the network, or the users, of their nodes."""
    if pod.get("hostNetwork") is True:
        for index, container in enumerate(maps_in(pod.get("containers"))):
            for number, port in enumerate(maps_in(container.get("ports"))):
                if port.get("hostPort") not in (None, 0, port.get("containerPort")):
                    wrong = "is not its containerPort, and with hostNetwork Kubernetes refuses that"
                    yield f".containers[{index}].ports[{number}].hostPort", job_fault(wrong, "remove it")
    if name := _text(pod, "hostnameOverride"):
        fault = syntax.dns_subdomain(name)
        if fault or len(name) > _HOSTNAME:
            form = fault or job_fault(f"is longer than {_HOSTNAME} characters", "write a shorter one")
            yield ".hostnameOverride", _refused(name, form)
        for field in ("hostNetwork", "setHostnameAsFQDN"):
            if pod.get(field) is True:
                wrong = f"is set beside {field}, and Kubernetes refuses it"
                yield ".hostnameOverride", job_fault(wrong, "remove one of them")
    for field, others in (("hostPID", ("shareProcessNamespace",)), ("hostIPC", ())):
        wrong_beside = [other for other in others if pod.get(other) is True]
        wrong_beside += ["hostUsers: false"] if pod.get("hostUsers") is False else []
        if pod.get(field) is True and wrong_beside:
            wrong = f"is set beside {wrong_beside[0]}, and Kubernetes refuses it"
            yield f".{field}", job_fault(wrong, "remove one of them")


def _spread(pod: Mapping[str, Any]) -> Faults:
    seen = []
    for index, each in enumerate(maps_in(pod.get("topologySpreadConstraints"))):
        key, how = _text(each, "topologyKey"), each.get("whenUnsatisfiable")
        if key and (fault := syntax.label_key(key)):
            yield f".topologySpreadConstraints[{index}].topologyKey", _refused(key, fault)
        if (key, how) in seen:
            wrong = f"is the second for {key} with {how}, and Kubernetes refuses it"
            yield f".topologySpreadConstraints[{index}]", job_fault(wrong, "keep one of them")
        seen.append((key, how))
        if each.get("minDomains") is not None and how != "DoNotSchedule":
            wrong = "is for DoNotSchedule alone, and Kubernetes refuses it"
            yield f".topologySpreadConstraints[{index}].minDomains", job_fault(wrong, "remove it")


def _host_alias(value: Mapping[str, Any]) -> Faults:
    yield from _address(".ip", value.get("ip"))
    for index, name in enumerate(_list(value, "hostnames")):
        if isinstance(name, str) and (fault := syntax.dns_subdomain(name)):
            yield f".hostnames[{index}]", _refused(name, fault)


def _dns(value: Mapping[str, Any]) -> Faults:
    for index, address in enumerate(_list(value, "nameservers")):
        yield from _address(f".nameservers[{index}]", address)
    for field, most in (("nameservers", _MOST_NAMESERVERS), ("searches", _MOST_SEARCHES)):
        if len(_list(value, field)) > most:
            wrong = f"has {len(_list(value, field))}, and Kubernetes takes {most}"
            yield f".{field}", job_fault(wrong, "remove some")


def _list(value: Mapping[str, Any], field: str) -> list[Any]:
    found = value.get(field)
    return found if isinstance(found, list) else []


def _address(path: str, text: Any) -> Faults:
    try:
        if isinstance(text, str) and "%" in text:
            raise ValueError(text)
        ipaddress.ip_address(text if isinstance(text, str) and text else "::")
    except ValueError:
        yield path, job_fault(f"{text!r} is not an IP address, and Kubernetes refuses it", "write one, as 10.0.0.7")


def _scratch(value: Mapping[str, Any]) -> Faults:
    """A volume that is empty at first."""
    limit = value.get("sizeLimit")
    if limit is None or isinstance(limit, bool):
        return
    try:
        if Quantity(str(limit)) >= ZERO:
            return
        yield ".sizeLimit", job_fault(f"is {limit}, and Kubernetes takes no negative one", "write a positive amount")
    except FaultError as fault:
        yield ".sizeLimit", job_fault(f"{fault.fault.wrong}, and Kubernetes refuses it", fault.fault.fix)


def _qualified(field: str) -> Callable[[Mapping[str, Any]], Faults]:
    def rule(value: Mapping[str, Any]) -> Faults:
        if (name := _text(value, field)) and (fault := syntax.label_key(name)):
            yield f".{field}", _refused(name, fault)

    return rule


def _job(spec: Mapping[str, Any]) -> Faults:
    of_failure = spec.get("podFailurePolicy")
    if of_failure is not None and spec.get("podReplacementPolicy") not in (None, "Failed"):
        wrong = "is not Failed, and Kubernetes refuses it beside podFailurePolicy"
        yield ".podReplacementPolicy", job_fault(wrong, "write Failed, or remove it")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        wrong = "is set without backoffLimitPerIndex, and Kubernetes refuses it"
        yield ".maxFailedIndexes", job_fault(wrong, "write backoffLimitPerIndex, or remove it")
    pod = inside(spec, "template", "spec")
    names = [each.get("name") for field in ("containers", "initContainers") for each in maps_in(pod.get(field))]
    for index, rule in enumerate(maps_in(inside(of_failure).get("rules"))):
        at = f".podFailurePolicy.rules[{index}]"
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            wrong = "is FailIndex, and Kubernetes takes that with backoffLimitPerIndex only"
            yield f"{at}.action", job_fault(wrong, "write backoffLimitPerIndex, or FailJob")
        container = inside(rule, "onExitCodes").get("containerName")
        if container is not None and container not in names:
            near = nearest(str(container), [str(name) for name in names])
            fix = f"did you mean {near}?" if near else f"use one of {', '.join(map(str, names))}"
            yield f"{at}.onExitCodes.containerName", job_fault(f"there is no container {container}", fix)


def _exit_codes(value: Mapping[str, Any]) -> Faults:
    given = value.get("values")
    codes = [each for each in given if isinstance(each, int)] if isinstance(given, list) else []
    if value.get("operator") == "In" and 0 in codes:
        yield ".values", job_fault("has 0, which is not a failure, and Kubernetes refuses it", "remove it")
    if codes != sorted(set(codes)):
        yield ".values", job_fault("is not in order, or has one twice", "write each once, the least first")


def _success(value: Mapping[str, Any]) -> Faults:
    if value.get("succeededCount") is None and value.get("succeededIndexes") is None:
        wrong = "has neither succeededCount nor succeededIndexes, and Kubernetes refuses it"
        yield "", job_fault(wrong, "write one of them")


_RULES: Final[Mapping[str, Callable[[Mapping[str, Any]], Faults]]] = {
    "Container": _ports_and_probes,
    "EmptyDirVolumeSource": _scratch,
    "EnvVarSource": _field_of_pod,
    "HTTPGetAction": _port,
    "HostAlias": _host_alias,
    "JobSpec": _job,
    "LabelSelectorRequirement": _requirement,
    "NodeSelectorRequirement": _requirement,
    "ObjectMeta": metadata_faults,
    "PodFailurePolicyOnExitCodesRequirement": _exit_codes,
    "PodDNSConfig": _dns,
    "PodReadinessGate": _qualified("conditionType"),
    "PodSchedulingGate": _qualified("name"),
    "PodSpec": _pod,
    "SuccessPolicyRule": _success,
    "TCPSocketAction": _port,
    "Toleration": _toleration,
}
