"""What a kubelet works out from a Pod before it starts a container: environment, arguments, paths, ports.

No I/O: functions of the Pod as the API server shows it. Files are in `volumes`, the Pod's status in `status`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.quantity import Quantity

_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_.][A-Za-z0-9_.-]*)\)")
_MAP_KEY = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_SUPPORTED_VOLUMES = {"configMap", "secret", "projected", "downwardAPI", "emptyDir"}
_SOURCE_REFERENCES = {
    "configMapRef": "configmaps",
    "configMapKeyRef": "configmaps",
    "secretRef": "secrets",
    "secretKeyRef": "secrets",
}
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


class PodError(Exception):
    """The container cannot be started as the Pod asks. `reason` is the kubelet's word for its waiting state."""

    def __init__(self, message: str, reason: str = "CreateContainerConfigError") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Source:
    """A ConfigMap or Secret of the pod's namespace that a pod refers to."""

    kind: str
    """`configmaps` or `secrets`, as in the API's path."""
    name: str


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What the node adds to a Pod."""

    pod_ip: str
    host_ip: str
    node_name: str


def unsupported(pod: Manifest) -> list[str]:
    """What the pod asks for and this node cannot give, each as a sentence; an empty list when it can run."""
    spec = pod["spec"]
    problems = [
        f"spec.initContainers[{container['name']}].restartPolicy: sidecar containers are not run here"
        for container in spec.get("initContainers", ())
        if container.get("restartPolicy") == "Always"
    ]
    for volume in spec.get("volumes", ()):
        kinds = set(volume) - {"name"}
        problems += [
            f"spec.volumes[{volume['name']}].{kind}: this node has only {', '.join(sorted(_SUPPORTED_VOLUMES))}"
            for kind in sorted(kinds - _SUPPORTED_VOLUMES)
        ]
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        problems += _unsupported_container(container)
    return problems


def _unsupported_container(container: Manifest) -> list[str]:
    name = container["name"]
    problems = []
    for probe in _PROBES:
        handler = container.get(probe) or {}
        problems += [
            f"spec.containers[{name}].{probe}.{kind}: only httpGet and tcpSocket probes work on this node"
            for kind in ("exec", "grpc")
            if kind in handler
        ]
    if container.get("lifecycle"):
        problems.append(f"spec.containers[{name}].lifecycle: hooks are not run on this node")
    problems += [
        f"spec.containers[{name}].volumeMounts[{mount['mountPath']}].subPathExpr: use subPath on this node"
        for mount in container.get("volumeMounts", ())
        if mount.get("subPathExpr")
    ]
    return problems


def environment_sources(container: Manifest) -> set[Source]:
    """The ConfigMaps and Secrets that the container's environment refers to."""
    references = [*container.get("envFrom", ()), *(one.get("valueFrom") or {} for one in container.get("env", ()))]
    return {
        Source(kind, reference[key]["name"])
        for reference in references
        for key, kind in _SOURCE_REFERENCES.items()
        if key in reference
    }


def environment(
    pod: Manifest, container: Manifest, facts: HostFacts, sources: Mapping[Source, Mapping[str, bytes] | None]
) -> dict[str, str]:
    """The container's variables, `$(NAME)` expanded, in the kubelet's order: envFrom, then env.

    `sources` has what `environment_sources` asked for; None stands for a missing object. Raises PodError.
    """
    variables: dict[str, str] = {}
    for entry in container.get("envFrom", ()):
        for kind, reference in (("configmaps", entry.get("configMapRef")), ("secrets", entry.get("secretRef"))):
            if reference is not None:
                data = source_content(sources, Source(kind, reference["name"]), bool(reference.get("optional")))
                variables |= {entry.get("prefix", "") + key: value.decode() for key, value in data.items()}
    for variable in container.get("env", ()):
        if "valueFrom" in variable:
            value = _value_from(pod, container, variable, facts, sources)
            if value is not None:
                variables[variable["name"]] = value
        else:
            variables[variable["name"]] = expand(variable.get("value", ""), variables)
    return variables


def source_content(
    sources: Mapping[Source, Mapping[str, bytes] | None],
    source: Source,
    optional: bool,
    reason: str = "CreateContainerConfigError",
) -> Mapping[str, bytes]:
    """What is in a source; nothing where it may be missing, and is. Raises PodError with `reason`."""
    data = sources.get(source)
    if data is None and not optional:
        raise PodError(f'{source.kind[:-1]} "{source.name}" not found', reason)
    return data or {}


def _value_from(
    pod: Manifest,
    container: Manifest,
    variable: Manifest,
    facts: HostFacts,
    sources: Mapping[Source, Mapping[str, bytes] | None],
) -> str | None:
    value_from = variable["valueFrom"]
    if "fieldRef" in value_from:
        return field_value(pod, value_from["fieldRef"]["fieldPath"], facts)
    if "resourceFieldRef" in value_from:
        return resource_value(pod, container, value_from["resourceFieldRef"])
    for key, kind in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if key in value_from:
            reference = value_from[key]
            optional = bool(reference.get("optional"))
            data = source_content(sources, Source(kind, reference["name"]), optional)
            if reference["key"] in data:
                return data[reference["key"]].decode()
            if optional:
                return None
            raise PodError(f"couldn't find key {reference['key']} in {kind[:-1]} {reference['name']}")
    raise PodError(f"env {variable['name']}: valueFrom.{next(iter(value_from), '')} is not known on this node")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replaces `$(NAME)` of known variables; `$$` stands for `$`, unknown names stay as they are.

    Source: k8s.io/kubernetes third_party/forked/golang/expansion.
    """

    def replace(match: re.Match[str]) -> str:
        if match.group(0) == "$$":
            return "$"
        return variables.get(match.group(1), match.group(0))

    return _VARIABLE.sub(replace, text)


def field_value(pod: Manifest, field_path: str, facts: HostFacts) -> str:
    """The downward API's value of `field_path`. Raises PodError for a field that it does not have."""
    metadata, spec = pod["metadata"], pod["spec"]
    simple = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata.get("namespace", "default"),
        "metadata.uid": metadata.get("uid", ""),
        "spec.nodeName": facts.node_name,
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
    }
    if field_path in simple:
        return str(simple[field_path])
    if field_path in ("metadata.labels", "metadata.annotations"):
        entries = metadata.get(field_path.removeprefix("metadata."), {})
        return "\n".join(f'{key}="{_escaped(value)}"' for key, value in sorted(entries.items()))
    if match := _MAP_KEY.fullmatch(field_path):
        return str(metadata.get(match.group(1), {}).get(match.group(2), ""))
    raise PodError(f"fieldRef {field_path}: not a field of the downward API")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(pod: Manifest, container: Manifest, reference: Manifest) -> str:
    """The downward API's value of `limits.cpu` and the like, in units of its divisor, rounded up.

    Raises PodError where the container does not set it.
    """
    container_name = reference.get("containerName")
    if container_name:
        container = next((one for one in pod["spec"]["containers"] if one["name"] == container_name), container)
    kind, _, resource = reference["resource"].partition(".")
    amount = (container.get("resources") or {}).get(kind, {}).get(resource)
    if amount is None:
        raise PodError(f"resourceFieldRef {reference['resource']}: container {container['name']} does not set it")
    divisor = Quantity(reference.get("divisor") or "1")
    if not divisor:
        divisor = Quantity("1")
    return str((Quantity(amount).decimal / divisor.decimal).to_integral_value(ROUND_CEILING))


def rewrite_paths(text: str, places: Mapping[str, str]) -> str:
    """Replaces every container path of `places` in `text` by its place on the host.

    A path counts only where it begins the text or follows one of `= : , space quote`, and ends the text, or is
    followed by `/` or by one of these; so `/visibility` does not touch `/visibility-other`. The longest match wins.
    """
    if not places:
        return text
    alternatives = "|".join(re.escape(path.rstrip("/")) for path in sorted(places, key=len, reverse=True))
    pattern = re.compile(rf"(?:(?<=^)|(?<=[=:,\s\"']))(?:{alternatives})(?=$|[/=:,\s\"'])")
    places_without_slash = {path.rstrip("/"): host for path, host in places.items()}
    return pattern.sub(lambda match: places_without_slash[match.group(0)], text)


def container_ports(containers: Iterable[Manifest]) -> list[int]:
    """The TCP ports that the containers declare."""
    return [
        port["containerPort"]
        for container in containers
        for port in container.get("ports", ())
        if port.get("protocol", "TCP") == "TCP"
    ]


def port_number(container: Manifest, port: int | str) -> int:
    """A probe's or Service's port by number or by the container's port name. Raises PodError for an unknown name."""
    if isinstance(port, int):
        return port
    if port.isdigit():
        return int(port)
    for declared in container.get("ports", ()):
        if declared.get("name") == port:
            return int(declared["containerPort"])
    raise PodError(f"container {container['name']} has no port named {port}")


def minor_release(image: str) -> str:
    """The minor release in the image's tag, such as `0.18` of `v0.18.3`; empty where that is not a version."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    match = re.match(r"v?(\d+\.\d+)\.\d", tag)
    return match[1] if match else ""


def image_repository(image: str) -> str:
    """The image's name without registry tag or digest: `registry.k8s.io/kueue/kueue:v0.19.2` →
    `registry.k8s.io/kueue/kueue`."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return head + slash + last.partition(":")[0]
