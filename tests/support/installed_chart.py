"""A chart that helm has installed in one cluster, put into another one's etcd as the API server wrote it there.

That takes half of the CPU, as nothing is decoded, checked and merged again while it comes about. What is written is
kept beside the engines, for every run of the tests, by all that decides it.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kueue_rehearsal.control_planes.clusters import ClustersRecord
from kueue_rehearsal.control_planes.ports import HOST
from kueue_rehearsal.engines import Engines
from kueue_rehearsal.paths import RehearsalPaths, engines_dir

if TYPE_CHECKING:
    from one_cluster import OneCluster

_NOT_KEPT = ("configmaps/kube-root-ca.crt", "events/", "leases/", "pods/")
"""Beginnings of keys of what each cluster makes for itself."""


def installed(
    cluster: OneCluster,
    paths: RehearsalPaths,
    engine: str,
    settings: Sequence[str],
    install: Callable[[], None],
) -> bool:
    """Puts the chart into the cluster, in which it has never been; with `install` if it is not known yet.

    Of its CRDs, versions that nobody reads are left out: an API server keeps a cache for each version that is served,
    and asks the conversion webhook at every write for the sake of those that are not stored.

    Returns whether it was known. Its pods are not there then: controllers are about to make them.
    """
    with _file(cluster.engines, engine, settings) as file, closing(_Etcd(paths, cluster.name)) as etcd:
        if file.stat().st_size:
            etcd.put(json.loads(file.read_text()))
            return True
        before = etcd.revision()
        install()
        _leave_stored_versions(cluster)
        result = etcd.made_after(before)
        chart = engine.partition("-")[0]
        kept = [key for key in result if chart in key and not key.startswith(_NOT_KEPT)]
        written = file.with_suffix(".new")
        written.write_text(json.dumps({key: result[key] for key in kept}))
        written.replace(file)
        return False


def _leave_stored_versions(cluster: OneCluster) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for crd in cluster.items(crds):
        stored = [version for version in crd["spec"]["versions"] if version["storage"]]
        if stored != crd["spec"]["versions"]:
            patch = {"spec": {"versions": stored}}
            cluster.request("PATCH", f"{crds}/{crd['metadata']['name']}", patch, "application/merge-patch+json")


@contextmanager
def _file(engines: Engines, engine: str, settings: Sequence[str]) -> Iterator[Path]:
    """Where this chart's keys are kept; empty when they are not known. Others wait meanwhile."""
    programs = [
        engines.asset(f"{engine}-chart"),
        *(engines.binary(name) for name in (engine, "kube-apiserver", "helm")),
    ]
    decides = json.dumps([Path(__file__).read_text(), *map(str, programs), *map(_content, settings)])
    folder = engines_dir() / "installed-charts"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{engine}-{hashlib.sha256(decides.encode()).hexdigest()[:16]}.json"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file.touch()
        yield file


def _content(setting: str) -> str:
    """What the file has in it that an option of helm names; any other option as it is."""
    named = Path(setting.rpartition("=")[2])
    return named.read_text() if named.is_file() else setting


class _Etcd:
    """The keys of one cluster in the etcd of its rehearsal, without their prefix; values are in base64."""

    def __init__(self, paths: RehearsalPaths, cluster: str) -> None:
        record = ClustersRecord.read(paths.clusters_file)
        assert record is not None
        context = ssl.create_default_context(cafile=str(paths.pki / "ca.crt"))
        context.load_cert_chain(paths.pki / "etcd-client.crt", paths.pki / "etcd-client.key")
        self._connection = http.client.HTTPSConnection(HOST, record.etcd_client_port, context=context, timeout=60)
        self._prefix = f"/clusters/{cluster}/"

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def revision(self) -> int:
        """Of the last write."""
        return int(self._post("range", {"key": _text("/"), "limit": "1"})["header"]["revision"])

    def made_after(self, revision: int) -> dict[str, str]:
        """What was made after `revision` and is there, in the order in which it was made."""
        body = {
            "key": _text(self._prefix),
            "range_end": _text(self._prefix[:-1] + "0"),
            "min_create_revision": str(revision + 1),
            "sort_target": "CREATE",
        }
        result = self._post("range", body).get("kvs", ())
        return {base64.b64decode(item["key"]).decode().removeprefix(self._prefix): item["value"] for item in result}

    def put(self, objects: dict[str, str]) -> None:
        """Writes what is not there, in this order."""
        for name, value in objects.items():
            key = _text(self._prefix + name)
            absent = {"key": key, "target": "CREATE", "create_revision": "0"}
            self._post("txn", {"compare": [absent], "success": [{"request_put": {"key": key, "value": value}}]})

    def _post(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", f"/v3/kv/{method}", json.dumps(body))
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        result: dict[str, Any] = json.loads(text)
        return result


def _text(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
