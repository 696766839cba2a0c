from __future__ import annotations

import pytest

from kueue_fleet.gcp_components.gke_kubeconfig import cluster_kubeconfig, merge_kubeconfigs, server_ca


def test_the_context_is_named_like_the_cluster_and_the_credential_comes_from_the_plugin() -> None:
    kubeconfig = cluster_kubeconfig("worker", "203.0.113.7", "Q0E=")
    assert kubeconfig["current-context"] == "worker"
    assert kubeconfig["contexts"] == [{"name": "worker", "context": {"cluster": "worker", "user": "worker"}}]
    assert kubeconfig["clusters"][0]["cluster"] == {
        "server": "https://203.0.113.7",
        "certificate-authority-data": "Q0E=",
    }
    credential = kubeconfig["users"][0]["user"]["exec"]
    assert credential["command"] == "gke-gcloud-auth-plugin"
    assert credential["provideClusterInfo"] is True
    assert credential["interactiveMode"] == "IfAvailable"


def test_merging_keeps_every_context_and_the_first_one_current() -> None:
    merged = merge_kubeconfigs([cluster_kubeconfig(name, f"{name}.test", "Q0E=") for name in ("manager", "worker")])
    assert merged["current-context"] == "manager"
    assert [context["name"] for context in merged["contexts"]] == ["manager", "worker"]
    assert [cluster["cluster"]["server"] for cluster in merged["clusters"]] == [
        "https://manager.test",
        "https://worker.test",
    ]


@pytest.mark.parametrize(
    ("endpoint", "authority"),
    [
        ("gke-12ab.us-east4.gke.goog", None),
        ("gke-12ab.us-east4.gke.goog:443", None),
        ("203.0.113.7", "Q0E="),
        ("127.0.0.1:6443", "Q0E="),
        ("gke.goog.example", "Q0E="),
    ],
)
def test_a_dns_name_of_google_has_a_public_certificate(endpoint: str, authority: str | None) -> None:
    """The cluster's own authority would refuse it."""
    assert server_ca(endpoint, "Q0E=") == authority
    server = cluster_kubeconfig("worker", endpoint, server_ca(endpoint, "Q0E="))["clusters"][0]["cluster"]
    assert ("certificate-authority-data" in server) == (authority is not None)
