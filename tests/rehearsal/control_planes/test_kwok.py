from __future__ import annotations

from pathlib import Path

import yaml

from kueue_fleet.kueue_api.names import RUN_SECONDS_ANNOTATION
from kueue_fleet.rehearsal.control_planes.kwok import EXIT_CODE_ANNOTATION, kwok_process, stages_path, write_kwok_files


def test_the_stages_are_documents_that_stand_alone() -> None:
    # kwok reads them one by one: an anchor of one document does not exist in the next.
    documents = [yaml.safe_load(text) for text in stages_path().read_text().split("\n---\n")]
    assert [document["metadata"]["name"] for document in documents] == [
        "node-ready",
        "pod-run",
        "pod-succeed",
        "pod-fail",
        "pod-terminate",
        "pod-delete",
    ]
    text = stages_path().read_text()
    assert RUN_SECONDS_ANNOTATION in text
    assert EXIT_CODE_ANNOTATION in text


def test_kwok_manages_only_simulated_nodes_and_listens_nowhere(tmp_path: Path) -> None:
    spec = kwok_process(Path("/bin/kwok"), tmp_path)
    assert "--manage-nodes-with-label-selector=kueue-fleet.dev/simulated=true" in spec.argv
    assert not any(argument.startswith("--server-address") for argument in spec.argv)


def test_a_pod_that_is_bound_does_not_wait_for_kwok_to_see_a_lease(tmp_path: Path) -> None:
    # With leases, and their watch behind by 1.5 s, a restarted kwok never ran such a pod.
    assert "--node-lease-duration-seconds=0" in kwok_process(Path("/bin/kwok"), tmp_path).argv


def test_kwoks_credential_is_private(tmp_path: Path) -> None:
    write_kwok_files(tmp_path / "kwok", server="https://127.0.0.1:1", ca_file=tmp_path / "ca.crt", token="secret")
    kubeconfig = tmp_path / "kwok" / "kubeconfig"
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(kubeconfig.read_text())["users"] == [{"name": "admin", "user": {"token": "secret"}}]
