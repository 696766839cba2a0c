from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_rehearsal.node_agent.pods import PodError
from kueue_rehearsal.node_agent.programs import (
    CertificateNeed,
    HostPlace,
    Program,
    adapt_arguments,
    adapt_configuration,
    default_programs,
    find_program,
)
from kueue_rehearsal.paths import RehearsalPaths

PROGRAMS = default_programs(lambda name: Path("/bin") / name, RehearsalPaths(Path("/state")))
PATHS = {"/tmp/k8s-webhook-server/serving-certs": "/pod/certs"}
PLACE = HostPlace("127.70.1.2", "kueue-system", PATHS, PROGRAMS["kueue/kueue"])


def adapted(text: str, place: HostPlace = PLACE) -> dict[str, Any]:
    adaptation = adapt_configuration(text.encode(), place)
    assert adaptation is not None
    document: dict[str, Any] = yaml.safe_load(adaptation.content)
    return document


@pytest.mark.parametrize(
    "image",
    [
        "registry.k8s.io/kueue/kueue:v0.19.2",
        "us-central1-docker.pkg.dev/k8s-staging-images/kueue/kueue:release-0.19",
        "kueue/kueue",
    ],
)
def test_an_image_is_known_by_its_repository_under_any_registry(image: str) -> None:
    assert find_program(PROGRAMS, {"image": image}).command == ("/bin/kueue",)


@pytest.mark.parametrize(
    ("tag", "program"),
    [("v0.18.3", "kueue-0.18"), ("v0.17.0", "kueue-0.17"), ("v0.19.4", "kueue"), ("main", "kueue")],
)
def test_the_release_in_an_image_of_kueue_decides_which_runs(tag: str, program: str) -> None:
    image = f"registry.k8s.io/kueue/kueue:{tag}"
    assert find_program(PROGRAMS, {"image": image}).command == (f"/bin/{program}",)


@pytest.mark.parametrize("image", ["busybox:1", "registry.k8s.io/kueue/kueue-viz:1", "evil/notkueue/kueuex"])
def test_an_unknown_image_is_an_image_that_cannot_be_pulled(image: str) -> None:
    with pytest.raises(PodError, match="no program on this machine stands in for image") as caught:
        find_program(PROGRAMS, {"image": image})
    assert caught.value.reason == "ErrImagePull"


def test_the_fleets_controller_is_known_by_its_label_since_users_name_its_image() -> None:
    labels = {"app.kubernetes.io/name": "kueue-fleet-controller", "pod-template-hash": "a"}
    result = find_program(PROGRAMS, {"image": "europe-docker.pkg.dev/acme/gpu/dispatcher:7"}, labels)
    assert result is PROGRAMS["kueue-fleet/controller"]
    for other in ({"app.kubernetes.io/name": "grafana"}, {}, None):
        with pytest.raises(PodError, match="no program on this machine stands in for image"):
            find_program(PROGRAMS, {"image": "europe-docker.pkg.dev/acme/gpu/dispatcher:7"}, other)


def test_kueue_listens_on_the_pods_address_only() -> None:
    document = adapted("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n")
    assert document["health"]["healthProbeBindAddress"] == "127.70.1.2:8081"
    assert document["metrics"]["bindAddress"] == "127.70.1.2:8443"
    assert document["webhook"] == {"host": "127.70.1.2", "certDir": "/pod/certs"}
    assert document["visibilityServer"]["bindAddress"] == "127.70.1.2"
    assert document["leaderElection"]["resourceNamespace"] == "kueue-system"
    assert document["namespace"] == "kueue-system"
    assert "featureGates" not in document


def test_what_is_not_an_address_stays_as_declared() -> None:
    document = adapted(
        """
        apiVersion: config.kueue.x-k8s.io/v1beta2
        kind: Configuration
        namespace: elsewhere
        metrics: {bindAddress: "0", enableClusterQueueResources: true}
        pprofBindAddress: ":8083"
        multiKueue: {dispatcherName: example.com/mine}
        webhook: {port: 9553}
        leaderElection: {leaderElect: false, resourceNamespace: other}
        """
    )
    assert document["metrics"] == {"bindAddress": "0", "enableClusterQueueResources": True}
    assert document["pprofBindAddress"] == "127.70.1.2:8083"
    assert document["multiKueue"] == {"dispatcherName": "example.com/mine"}
    assert document["webhook"]["port"] == 9553
    assert document["leaderElection"] == {"leaderElect": False, "resourceNamespace": "other"}
    assert document["namespace"] == "elsewhere"


@pytest.mark.parametrize("address", ["10.1.2.3:8081", "8081", "example.com:http"])
def test_an_address_that_cannot_be_moved_is_refused(address: str) -> None:
    text = f"""
        apiVersion: config.kueue.x-k8s.io/v1beta2
        kind: Configuration
        health: {{healthProbeBindAddress: "{address}"}}
        """
    with pytest.raises(PodError, match="healthProbeBindAddress"):
        adapt_configuration(text.encode(), PLACE)


def test_kueue_from_elsewhere_has_no_visibility_server_and_the_log_says_why() -> None:
    program = Program(("/bin/kueue",), "config.kueue.x-k8s.io", visibility_directory=False)
    place = HostPlace("127.70.1.2", "kueue-system", PATHS, program)
    adaptation = adapt_configuration(b"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n", place)
    assert adaptation is not None
    assert yaml.safe_load(adaptation.content)["featureGates"] == {"VisibilityOnDemand": False}
    assert "VisibilityOnDemand is off" in adaptation.notes[0]
    # Kueue refuses gates in both places, so those on the command line are completed there.
    assert adapt_arguments(["--feature-gates=A=true"], place) == ["--feature-gates=A=true,VisibilityOnDemand=false"]


def test_jobset_gets_its_certificate_from_the_agent() -> None:
    place = HostPlace("127.70.1.2", "jobset-system", PATHS, PROGRAMS["jobset/jobset"])
    text = b"""
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
internalCertManagement: {enable: true, webhookServiceName: hook, webhookSecretName: cert}
"""
    adaptation = adapt_configuration(text, place)
    assert adaptation is not None
    assert adaptation.certificate == CertificateNeed("hook", "cert")
    document = yaml.safe_load(adaptation.content)
    assert document["internalCertManagement"] == {"enable": False}
    assert document["metrics"]["certDir"] == document["webhook"]["certDir"] == "/pod/certs"


def test_lws_gets_its_certificate_from_the_agent_and_leads_without_a_lease_elsewhere() -> None:
    text = "apiVersion: config.lws.x-k8s.io/v1alpha1\nkind: Configuration\nleaderElection: {leaderElect: true}\n"
    for namespace, elects in (("lws-system", True), ("serving", False)):
        place = HostPlace("127.70.1.2", namespace, PATHS, PROGRAMS["lws/lws"])
        adaptation = adapt_configuration(text.encode(), place)
        assert adaptation is not None
        assert adaptation.certificate == CertificateNeed("lws-webhook-service", "lws-webhook-server-cert")
        document = yaml.safe_load(adaptation.content)
        assert document["internalCertManagement"] == {"enable": False}
        assert document["webhook"] == {"host": "127.70.1.2", "certDir": "/pod/certs"}
        assert document["leaderElection"] == {"leaderElect": elects, "resourceNamespace": namespace}
        assert any(note.startswith("leaderElection is off") for note in adaptation.notes) is not elects


def test_trainer_is_told_only_what_its_configuration_has() -> None:
    place = HostPlace("127.70.1.2", "kubeflow-system", PATHS, PROGRAMS["trainer/trainer-controller-manager"])
    text = b"""
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
webhook: {port: 9443, host: ""}
leaderElection: {leaderElect: true, resourceNamespace: ""}
certManagement: {enable: true, webhookServiceName: hook, webhookSecretName: cert}
"""
    adaptation = adapt_configuration(text, place)
    assert adaptation is not None
    assert adaptation.certificate == CertificateNeed("hook", "cert")
    document = yaml.safe_load(adaptation.content)
    assert document["certManagement"] == {"enable": False}
    assert document["webhook"] == {"port": 9443, "host": "127.70.1.2"}
    assert document["leaderElection"]["resourceNamespace"] == "kubeflow-system"


@pytest.mark.parametrize(
    "text",
    ["", "not yaml: [", "kind: Configuration", "apiVersion: other.x-k8s.io/v1\nkind: Configuration", "x-k8s.io"],
)
def test_other_files_are_left_alone(text: str) -> None:
    assert adapt_configuration(text.encode(), PLACE) is None


def test_the_plugin_that_kueue_runs_is_where_its_volume_is_here() -> None:
    execute = {"command": "/plugins/gcp-auth-plugin", "apiVersion": "v1", "interactiveMode": "Never"}
    profile = {"accessProviders": [{"name": "kueue-fleet", "execConfig": execute}]}
    document = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "multiKueue": {"clusterProfile": profile},
    }
    place = HostPlace("127.0.0.9", "kueue-system", {"/plugins": "/pod/root/plugins"}, PROGRAMS["kueue/kueue"])
    adaptation = adapt_configuration(yaml.safe_dump(document).encode(), place)
    assert adaptation is not None
    [provider] = yaml.safe_load(adaptation.content)["multiKueue"]["clusterProfile"]["accessProviders"]
    assert provider["execConfig"]["command"] == "/pod/root/plugins/gcp-auth-plugin"
    result = find_program(PROGRAMS, {"name": "add-plugins", "image": "europe-docker.pkg.dev/acme/tools/google:1"})
    assert result.command == ("/bin/cp", "/state/bin/gke-gcloud-auth-plugin")
