"""Which program of this machine runs in place of which container image, and what its configuration must say here.

The program, and the same configuration with its addresses moved to the pod's own loopback address and its paths moved
to the pod's folder. All else stays as declared, so that what the components wrote is what runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kueue_fleet.fleet_file.model.fleet_page import PAGE_NAME
from kueue_fleet.fleet_file.model.kueue_installation import PLUGIN
from kueue_fleet.kube.answers import Json
from kueue_fleet.objects.cluster_profiles import PLUGIN_CONTAINER
from kueue_fleet.settings.tokens import CONTROLLER_NAME
from kueue_rehearsal.engines import KUEUE_ENGINES
from kueue_rehearsal.node_agent.pods import PodError, image_repository, minor_release, rewrite_paths
from kueue_rehearsal.node_agent.ray_dashboard import PORT as RAY_DASHBOARD_PORT
from kueue_rehearsal.paths import RehearsalPaths
from kueue_rehearsal.standins.executables import GKE_AUTH
from kueue_rehearsal.standins.gke_auth import STATE_VARIABLE

DEFAULT_CERT_DIR = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 (a path within the pod's own folder)
"""Where a program looks for its webhook's certificate by default."""

IMAGE_REASON = "ErrImagePull"
"""The kubelet's reason for a container whose image cannot be pulled; here, because no program stands in for it."""


@dataclass(frozen=True, slots=True)
class Program:
    """What runs instead of an image."""

    command: tuple[str, ...]
    """Replaces the image's entrypoint and the container's `command`; the container's `args` follow."""
    configuration_group: str | None = None
    """The API group of the configuration file that must be among the container's arguments, because only there can the
    program be told its address; None for a program that takes its address from its environment or arguments."""
    kubeconfig_argument: bool = False
    """Whether the program must be given `--kubeconfig` too: Kueue's visibility server does not look at KUBECONFIG."""
    arguments: tuple[str, ...] = ()
    """Follow the container's `args`: what a program that has no configuration file must be told here. `{pod_ip}`,
    `{host_ip}` and `{namespace}` are filled in, as in `environment`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    container: str | None = None
    """Containers of this name run it, whatever their image is called; None: the image's repository decides."""
    labels: Mapping[str, str] | None = None
    """Pods with these labels run it, whatever their image is called; None: the image's repository decides."""
    visibility_directory: bool = True
    """Kueue only: whether the program keeps the certificate of its visibility server in `visibility` below its current
    folder (linked with -X sigs.k8s.io/kueue/pkg/visibility.certDir=visibility) instead of in /visibility."""


@dataclass(frozen=True, slots=True)
class CertificateNeed:
    """A serving certificate that the program expects in a Secret, and does not make itself here."""

    service: str
    secret: str


@dataclass(frozen=True, slots=True)
class HostPlace:
    """Where a container runs: what a configuration has to be told."""

    pod_ip: str
    namespace: str
    paths: Mapping[str, str]
    """Container path → path on this machine."""
    program: Program


@dataclass(frozen=True, slots=True)
class Adaptation:
    """A configuration file fit for this machine."""

    content: bytes
    group: str
    notes: tuple[str, ...] = ()
    certificate: CertificateNeed | None = None


def default_programs(
    program: Callable[[str], Path], paths: RehearsalPaths, *, kueue_visibility_directory: bool = True
) -> dict[str, Program]:
    """The images of Kueue, JobSet, other operators, the fleet's controller and Google's credential plugin, under
    whatever registry.

    `program` says where an engine's program is. The keys are the last two parts of a repository, with the minor release
    where the tag decides. The controller's image is one that users build and name, so its pods are known by their label
    too.
    """
    rehearsal = {STATE_VARIABLE: str(paths.root)}

    def kueue(engine: str) -> Program:
        return Program(
            (str(program(engine)),),
            "config.kueue.x-k8s.io",
            kubeconfig_argument=True,
            environment=rehearsal,
            visibility_directory=kueue_visibility_directory,
        )

    return {
        **{f"kueue/kueue:{release}": kueue(engine) for release, engine in KUEUE_ENGINES.items()},
        "kueue/kueue": kueue("kueue"),
        "jobset/jobset": Program((str(program("jobset")),), "config.jobset.x-k8s.io"),
        "lws/lws": Program((str(program("lws")),), "config.lws.x-k8s.io"),
        "trainer/trainer-controller-manager": Program((str(program("trainer")),), "config.trainer.kubeflow.org"),
        "kuberay/operator": Program(
            (str(program("kuberay")),),
            arguments=(
                "--metrics-addr={pod_ip}:8080",
                "--health-probe-bind-address={pod_ip}:8082",
                "--leader-election-namespace={namespace}",
            ),
            environment={"HTTP_PROXY": f"http://{{host_ip}}:{RAY_DASHBOARD_PORT}"},
        ),
        # The fleet's own controller, from this very installation; it takes its address from its arguments.
        "kueue-fleet/controller": Program(
            (sys.executable, "-m", "kueue_fleet.controller"),
            environment={"PYTHONPATH": _import_root(), **rehearsal},
            labels={"app.kubernetes.io/name": CONTROLLER_NAME},
        ),
        PAGE_NAME: Program(
            (sys.executable, "-m", "kueue_fleet.page"), environment={"PYTHONPATH": _import_root()}, container=PAGE_NAME
        ),
        PLUGIN: Program(("/bin/cp", str(paths.bin / GKE_AUTH.executable)), container=PLUGIN_CONTAINER),
    }


def _import_root() -> str:
    return str(Path(__file__).parents[2])


def find_program(
    programs: Mapping[str, Program], container: Mapping[str, Any], labels: Mapping[str, str] | None = None
) -> Program:
    """The program for a container, in a pod with `labels`.

    Raises PodError with reason ErrImagePull when there is none.
    """
    for program in programs.values():
        if program.container is not None and program.container == container.get("name"):
            return program
    image = container["image"]
    repository = image_repository(image)
    for known_as in (f"{repository}:{minor_release(image)}", repository):
        for name, program in programs.items():
            if known_as == name or known_as.endswith(f"/{name}"):
                return program
    for program in programs.values():
        if program.labels is not None and program.labels.items() <= (labels or {}).items():
            return program
    raise PodError(
        f"no program on this machine stands in for image {image} (there is no container engine: only "
        f"{', '.join(sorted(programs))} are run, and pods of jobs are simulated)",
        IMAGE_REASON,
    )


def adapt_configuration(content: bytes, place: HostPlace) -> Adaptation | None:
    """The configuration for this machine, or None when the file is another configuration.

    Raises PodError when a known configuration cannot be moved to the pod's address.
    """
    if not any(group.encode() in content for group in _ADAPTERS):
        return None
    try:
        document = yaml.safe_load(content)
    except yaml.YAMLError:
        return None
    if not isinstance(document, dict):
        return None
    group = str(document.get("apiVersion", "")).partition("/")[0]
    adapter = _ADAPTERS.get(group)
    if adapter is None or document.get("kind") != "Configuration":
        return None
    notes, certificate = adapter(document, place)
    return Adaptation(yaml.safe_dump(document, sort_keys=False).encode(), group, tuple(notes), certificate)


def adapt_arguments(arguments: list[str], place: HostPlace) -> list[str]:
    """The arguments with their paths moved, and gates that cannot work here turned off."""
    adapted_arguments = [rewrite_paths(argument, place.paths) for argument in arguments]
    if not place.program.visibility_directory:
        adapted_arguments = [
            f"{argument},{_VISIBILITY_GATE}=false" if argument.startswith("--feature-gates=") else argument
            for argument in adapted_arguments
        ]
    return adapted_arguments


_VISIBILITY_GATE = "VisibilityOnDemand"


def _section(document: Json, name: str) -> Json:
    section = document.get(name)
    if not isinstance(section, dict):
        section = document[name] = {}
    return section


def _move_address(section: Json, key: str, default: str, pod_ip: str) -> None:
    """Puts the pod's address before the port. `0` turns the listener off, and stays."""
    address = section.get(key) or default
    if address == "0":
        return
    host, colon, port = str(address).rpartition(":")
    if not colon or not port.isdigit():
        raise PodError(f"configuration: {key}: {address!r} has no port; write [HOST]:PORT")
    if host in ("", "0.0.0.0", "[::]", "::", "localhost", "127.0.0.1"):  # noqa: S104
        section[key] = f"{pod_ip}:{port}"
        return
    raise PodError(f"configuration: {key}: {address!r} is not an address of this pod; write :{port}")


def _move_manager(document: Json, place: HostPlace) -> None:
    """What these configurations have in common: all are of controller-runtime managers."""
    _move_address(_section(document, "health"), "healthProbeBindAddress", ":8081", place.pod_ip)
    _move_address(_section(document, "metrics"), "bindAddress", ":8443", place.pod_ip)
    if document.get("pprofBindAddress"):
        _move_address(document, "pprofBindAddress", "0", place.pod_ip)
    webhook = _section(document, "webhook")
    webhook["host"] = place.pod_ip
    webhook["certDir"] = rewrite_paths(webhook.get("certDir") or DEFAULT_CERT_DIR, place.paths)
    # In a container they read this from the service account's folder, which is elsewhere here.
    election = _section(document, "leaderElection")
    election["resourceNamespace"] = election.get("resourceNamespace") or place.namespace


def _adapt_kueue(document: Json, place: HostPlace) -> tuple[list[str], None]:
    _move_manager(document, place)
    profile = (document.get("multiKueue") or {}).get("clusterProfile") or {}
    for provider in profile.get("accessProviders") or ():
        provider["execConfig"]["command"] = rewrite_paths(provider["execConfig"]["command"], place.paths)
    document.setdefault("namespace", place.namespace)
    if place.program.visibility_directory:
        _section(document, "visibilityServer")["bindAddress"] = place.pod_ip
        return [], None
    if not any(key == _VISIBILITY_GATE for key in _section(document, "featureGates")):
        document["featureGates"][_VISIBILITY_GATE] = False
    return [
        f"feature gate {_VISIBILITY_GATE} is off: this build of Kueue keeps its certificate in /visibility, "
        "outside of the rehearsal's folders"
    ], None


def _issued_certificate(
    document: Json, name: str, service: str, secret: str
) -> tuple[list[str], CertificateNeed | None]:
    """Turns off that the program makes its own certificate, in the section `name`; the others are its defaults."""
    management = _section(document, name)
    if management.get("enable") is False:
        return [], None
    need = CertificateNeed(
        service=management.get("webhookServiceName") or service, secret=management.get("webhookSecretName") or secret
    )
    document[name] = {"enable": False}
    return [
        f"{name} is off: the program looks for its certificate or its namespace outside of the rehearsal's folders; "
        "the node agent issues the certificate instead"
    ], need


def _adapt_jobset(document: Json, place: HostPlace) -> tuple[list[str], CertificateNeed | None]:
    _move_manager(document, place)
    answer = _issued_certificate(
        document, "internalCertManagement", "jobset-webhook-service", "jobset-webhook-server-cert"
    )
    if answer[1] is not None:
        document["metrics"]["certDir"] = document["webhook"]["certDir"]
    return answer


_LWS_NAMESPACE = "lws-system"
"""Where LeaderWorkerSet looks for its lease, wherever it is, when the service account's folder is elsewhere."""


def _adapt_lws(document: Json, place: HostPlace) -> tuple[list[str], CertificateNeed | None]:
    _move_manager(document, place)
    notes, need = _issued_certificate(
        document, "internalCertManagement", "lws-webhook-service", "lws-webhook-server-cert"
    )
    if place.namespace != _LWS_NAMESPACE:
        document["leaderElection"]["leaderElect"] = False
        notes = [*notes, f"leaderElection is off: outside of a container its lease is in {_LWS_NAMESPACE}"]
    return notes, need


def _adapt_trainer(document: Json, place: HostPlace) -> tuple[list[str], CertificateNeed | None]:
    _move_manager(document, place)
    # It has no such field, and looks in the folder for temporary files, which is the pod's own here.
    del document["webhook"]["certDir"]
    return _issued_certificate(
        document, "certManagement", "kubeflow-trainer-controller-manager", "kubeflow-trainer-webhook-cert"
    )


_ADAPTERS: dict[str, Callable[[Json, HostPlace], tuple[list[str], CertificateNeed | None]]] = {
    "config.kueue.x-k8s.io": _adapt_kueue,
    "config.jobset.x-k8s.io": _adapt_jobset,
    "config.lws.x-k8s.io": _adapt_lws,
    "config.trainer.kubeflow.org": _adapt_trainer,
}
