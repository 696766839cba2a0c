"""The credential plugin: the rehearsal's token for the rehearsal's servers, and for nobody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kueue_rehearsal.paths import RehearsalPaths
from kueue_rehearsal.standins import gke_auth
from kueue_rehearsal.standins.gke_auth import CredentialError, credential
from kueue_rehearsal.standins.google_tokens import make_token, token_account

V1 = "client.authentication.k8s.io/v1"


@pytest.fixture
def state(tmp_path: Path) -> str:
    token = RehearsalPaths(tmp_path).admin_token
    token.parent.mkdir()
    token.write_text("lab-token\n", encoding="utf-8")
    return str(tmp_path)


def _info(server: str | None = "https://127.0.0.1:6443", api_version: str = V1) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if server:
        spec["cluster"] = {"server": server}
    return json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "spec": spec})


@pytest.mark.parametrize("api_version", [V1, f"{V1}beta1"])
@pytest.mark.parametrize("server", ["https://127.0.0.1:6443", "https://127.3.2.1", "https://localhost:1"])
def test_the_token_is_given_for_servers_on_loopback(state: str, api_version: str, server: str) -> None:
    assert credential(_info(server, api_version), state) == {
        "apiVersion": api_version,
        "kind": "ExecCredential",
        "status": {"token": "lab-token"},
    }


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (_info("https://34.1.2.3"), "is not a cluster of this rehearsal"),
        (_info("https://127.evil.example"), "is not a cluster of this rehearsal"),
        (_info("https://127.0.0.1@evil.example"), "is not a cluster of this rehearsal"),
        (_info("https://[bad"), "is not a cluster of this rehearsal"),
        (_info(None), "set provideClusterInfo: true"),
        (_info(api_version="client.authentication.k8s.io/v1alpha1"), "is unknown"),
        ("", "let a Kubernetes client start this"),
        (None, "let a Kubernetes client start this"),
    ],
)
def test_nothing_is_given_to_others(state: str, info: str | None, words: str) -> None:
    with pytest.raises(CredentialError, match=words):
        credential(info, state)


def test_outside_of_a_rehearsal_there_is_no_token(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="KUEUE_FLEET_REHEARSAL is not set"):
        credential(_info(), None)
    with pytest.raises(CredentialError, match="start the rehearsal"):
        credential(_info(), str(tmp_path))


def test_the_command_prints_the_credential_or_why_not(
    state: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUEUE_FLEET_REHEARSAL", state)
    monkeypatch.setenv("KUBERNETES_EXEC_INFO", _info())
    assert gke_auth.main("10.2.0", []) == 0
    assert json.loads(capsys.readouterr().out)["status"]["token"] == "lab-token"
    monkeypatch.setenv("KUBERNETES_EXEC_INFO", _info("https://34.1.2.3"))
    assert gke_auth.main("10.2.0", []) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "stand-in" in captured.err


def test_in_a_pod_it_gives_a_short_lived_token_of_the_pods_google_account(state: str) -> None:
    address = "multikueue-atlas@my-project.iam.gserviceaccount.com"
    result = credential(_info(), state, address, 1_000_000.5)
    assert result["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert result["status"]["expirationTimestamp"] == "1970-01-12T13:56:40Z"
    token, key = result["status"]["token"], Path(state, "pki", "admin.token").read_text().strip()
    assert key not in token
    assert token_account(key, token, 1_000_599) == address
    assert token_account(key, token, 1_000_600) is None
    assert token_account("guessed", token, 1_000_001) is None
    body, _, mark = token.rpartition(".")
    forged = make_token("guessed", "other@my-project.iam.gserviceaccount.com", 9_999_999)
    for wrong in (body, f"{forged.rpartition('.')[0]}.{mark}", f"{body}.é", "ya29.rehearsal.", ""):
        assert token_account(key, wrong, 1_000_001) is None
    with pytest.raises(CredentialError, match=r"annotate its ServiceAccount with iam\.gke\.io/gcp-service-account"):
        credential(_info(), state, "", 1_000_000)
