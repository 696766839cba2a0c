"""Clusters that are not of GKE, in a program."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest

import plain_fleets
import pulumi_mocks
from kueue_admission.kernel import SpecError
from kueue_fleet import Fleet, KubernetesCluster
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.google.resources import resources_on
from kueue_fleet.program.handed_out import FOLDER_VARIABLE, handed_out
from mocked_fleets import run
from plain_fleets import alone, mixed, mixed_data
from pulumi_mocks import Recording

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [
        {"name": "c", "cluster": {"server": "https://eks.example/", "certificate-authority-data": "Q0E="}},
        {"name": "other", "cluster": {"server": "https://other.example"}},
    ],
    "users": [{"name": "u", "user": {"token": "secret-token"}}],
    "contexts": [
        {"name": "eks", "context": {"cluster": "c", "user": "u"}},
        {"name": "other", "context": {"cluster": "other", "user": "u"}},
    ],
    "current-context": "eks",
}


def given(**changes: Any) -> Recording:
    """The worker paris without an address of its own, as a program gives it."""
    data = mixed_data()
    data["clusters"][2]["kubernetes"] = {}
    fleet = parse_fleet(data)

    def program() -> Fleet:
        kubeconfig = pulumi.Output.from_input(json.dumps(KUBECONFIG))  # An Output belongs to the run that makes it.
        paris = KubernetesCluster(kubeconfig=kubeconfig, **changes)
        return Fleet(fleet.name, fleet, kubernetes_clusters={"paris": paris})

    return pulumi_mocks.run(program)


def connection(recording: Recording) -> dict[str, Any]:
    """The worker's cluster in the manager's kubeconfig."""
    secret = recording.one("Secret", "manager/multikueue/paris")
    assert secret.secrets == {"data"}
    config = json.loads(base64.b64decode(secret.inputs["data"]["kubeconfig"]))
    result: dict[str, Any] = config["clusters"][0]["cluster"]
    return result


def test_nothing_of_google_is_made_for_it() -> None:
    assert not [item.key for item in resources_on(mixed()) if "paris" in item.key]


def test_a_fleet_without_gke_has_nothing_of_google() -> None:
    assert resources_on(alone()) == ()


def test_pulumi_reaches_it_by_its_context() -> None:
    provider = run(mixed()).one("kubernetes", "paris")
    assert (provider.inputs["context"], provider.inputs.get("kubeconfig")) == ("admin@paris", None)


def test_the_manager_reaches_it_at_its_address_with_its_own_authority() -> None:
    result = connection(run(mixed()))
    assert result["server"] == plain_fleets.SERVER
    assert "certificate-authority-data" in result
    assert "tls-server-name" not in result


def test_the_file_says_how_the_manager_connects() -> None:
    data = mixed_data()
    data["clusters"][2]["kubernetes"] |= {"tlsServerName": "kubernetes", "proxyUrl": "http://proxy.example:3128"}
    result = connection(run(parse_fleet(data)))
    assert (result["tls-server-name"], result["proxy-url"]) == ("kubernetes", "http://proxy.example:3128")


def test_its_objects_are_deleted_one_by_one() -> None:
    assert not [r.short for r in run(mixed()) if r.place.startswith("paris/") and r.deleted_with]


def test_a_kubeconfig_of_the_program_is_the_providers() -> None:
    provider = given().one("kubernetes", "paris")
    config = json.loads(provider.inputs["kubeconfig"])
    assert "kubeconfig" in provider.secrets
    assert [item["name"] for item in config["contexts"]] == ["paris"]
    assert "context" not in provider.inputs


def test_the_manager_reaches_it_as_the_kubeconfig_says() -> None:
    assert connection(given()) == {"server": "https://eks.example", "certificate-authority-data": "Q0E="}


def test_another_address_has_the_clusters_own_authority() -> None:
    result = connection(given(server="https://private.example:6443"))
    assert result["server"] == "https://private.example:6443"
    assert result["certificate-authority-data"] != "Q0E="


def test_another_context_is_another_cluster() -> None:
    assert connection(given(context="other"))["server"] == "https://other.example"


def test_a_worker_without_an_address_is_refused() -> None:
    data = mixed_data()
    data["clusters"][2]["kubernetes"] = {}
    with pytest.raises(SpecError, match=r"clusters\[paris\]\.kubernetes\.server: not set, but the manager reaches"):
        Fleet("mixed", parse_fleet(data))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere", "clusters: the program gives nowhere, which is not in the file; remove it"),
        ("gke", r"clusters\[gke\]\.kubernetes: not set, but the program gives the cluster; set it"),
        (
            "paris",
            r"clusters\[paris\]\.kubernetes\.server: set, but the program gives the address; keep one of the two",
        ),
    ],
)
def test_what_contradicts_the_file_is_refused(name: str, said: str) -> None:
    cluster = KubernetesCluster(kubeconfig="{}", server="https://k8s.example")
    with pytest.raises(SpecError, match=said):
        Fleet("mixed", mixed(), kubernetes_clusters={name: cluster})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"contexts": None}, "the program gives no kubeconfig"),
        ({"current-context": "nobody"}, "has no context nobody"),
        ({"users": []}, "its context eks names a cluster or a user that is not there"),
        ({"users": [{"name": "u", "user": {"client-key": "/home/ada/key"}}]}, "names a file in client-key"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_refused(changes: dict[str, Any], said: str) -> None:
    data = mixed_data()
    data["clusters"][2]["kubernetes"] = {}
    cluster = KubernetesCluster(kubeconfig=json.dumps(KUBECONFIG | changes))
    with pytest.raises(Exception, match=said):
        run(parse_fleet(data), kubernetes_clusters={"paris": cluster})


def test_commands_read_a_fleet_without_gke_from_its_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    run(alone())
    [fleet] = handed_out(tmp_path)
    assert parse_fleet(fleet.data) == alone()


def test_a_fleet_without_gke_is_declared_without_googles_provider() -> None:
    program = (
        "import sys\n"
        "sys.modules['pulumi_gcp'] = None\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from mocked_fleets import run\n"
        "from plain_fleets import alone\n"
        "print(len(run(alone()).of_type('ClusterQueue')))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (result.stdout, result.returncode) == ("2\n", 0), result.stderr
