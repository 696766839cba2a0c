from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from kueue_rehearsal.node_agent.pods import HostFacts, PodError, Source
from kueue_rehearsal.node_agent.volumes import (
    TokenProjection,
    VolumeFile,
    token_projections,
    volume_files,
    volume_sources,
    write_volume,
)

FACTS = HostFacts("127.70.1.2", "127.70.0.1", "system-0")
POD: dict[str, Any] = {"metadata": {"name": "p", "namespace": "team", "uid": "u"}, "spec": {"containers": []}}
ACCOUNT = {
    "name": "kube-api-access",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ]
    },
}


def test_the_service_account_volume_has_its_three_files() -> None:
    token = TokenProjection("token", None, 3607)
    assert token_projections(ACCOUNT) == [token]
    assert volume_sources(ACCOUNT) == {Source("configmaps", "kube-root-ca.crt")}
    files = volume_files(
        POD, ACCOUNT, FACTS, {Source("configmaps", "kube-root-ca.crt"): {"ca.crt": b"CA", "x": b""}}, {token: "T"}
    )
    assert files == {
        "ca.crt": VolumeFile(b"CA"),
        "namespace": VolumeFile(b"team"),
        "token": VolumeFile(b"T", 0o600),
    }


def test_secrets_are_private_and_may_be_empty() -> None:
    volume = {"name": "v", "secret": {"secretName": "s", "defaultMode": 0o644}}
    source = Source("secrets", "s")
    assert volume_files(POD, volume, FACTS, {source: {}}, {}) == {}
    assert volume_files(POD, volume, FACTS, {source: {"k": b"v"}}, {}) == {"k": VolumeFile(b"v", 0o600)}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"name": "cm"}, 'configmap "cm" not found'),
        ({"name": "other", "items": [{"key": "gone", "path": "x"}]}, "configmap other has no key gone"),
    ],
)
def test_a_pod_waits_for_what_its_volume_must_have(reference: dict[str, Any], message: str) -> None:
    data = {Source("configmaps", "cm"): None, Source("configmaps", "other"): {"k": b"v"}}
    with pytest.raises(PodError, match=message) as caught:
        volume_files(POD, {"name": "v", "configMap": reference}, FACTS, data, {})
    assert caught.value.reason == "ContainerCreating"


def test_an_optional_source_may_be_missing() -> None:
    volume = {"name": "v", "configMap": {"name": "cm", "optional": True}}
    assert volume_files(POD, volume, FACTS, {Source("configmaps", "cm"): None}, {}) == {}


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ""])
def test_no_file_leaves_its_volume(path: str) -> None:
    volume = {"name": "v", "configMap": {"name": "cm", "items": [{"key": "k", "path": path}]}}
    with pytest.raises(PodError, match="leaves the volume"):
        volume_files(POD, volume, FACTS, {Source("configmaps", "cm"): {"k": b""}}, {})


def test_a_volume_holds_exactly_its_files_and_writes_only_those_that_changed(tmp_path: Path) -> None:
    folder = tmp_path / "volume"
    write_volume(folder, {"a": VolumeFile(b"1"), "sub/b": VolumeFile(b"2", 0o600)})
    written = {name: (folder / name).stat().st_ino for name in ("a", "sub/b")}
    write_volume(folder, {"a": VolumeFile(b"1"), "sub/b": VolumeFile(b"2", 0o600)})
    assert {name: (folder / name).stat().st_ino for name in written} == written
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "sub/b").stat().st_mode) == 0o600
    write_volume(folder, {"a": VolumeFile(b"changed")})
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) == ["a"]
    assert (folder / "a").read_bytes() == b"changed"
