"""Keeps a pod's volumes on this machine up to date, its service account token among them.

Each ConfigMap and Secret that the pod refers to is watched by name, as a kubelet does; a change reaches the files
within milliseconds. Tokens come from TokenRequest, bound to the pod, and are renewed after 80 % of their life.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.new_kubeconfig import render_kubeconfig
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi, Watched
from kueue_rehearsal.node_agent.pods import HostFacts, PodError, Source
from kueue_rehearsal.node_agent.volumes import (
    TokenProjection,
    token_projections,
    volume_files,
    volume_sources,
    write_volume,
)
from kueue_rehearsal.private_files import make_private, write_private

log = logging.getLogger(__name__)

SERVICE_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where Kubernetes mounts the token of a pod's account."""
_RENEW_SHARE = 0.8
_RETRY_SECONDS = 2.0


class PodVolumes:
    """The volumes of one pod, below `folder`."""

    def __init__(self, api: ControlPlaneApi, pod: Mapping[str, Any], facts: HostFacts, folder: Path) -> None:
        self.folder = folder
        self.problem: PodError | None = PodError("volumes are not written yet", "ContainerCreating")
        """Why the volumes are not complete; None when they are."""
        self.ready = asyncio.Event()
        """Set once, when all volumes have been written for the first time."""
        self._api = api
        self._pod = pod
        self._facts = facts
        self._volumes: list[Mapping[str, Any]] = list(pod["spec"].get("volumes", ()))
        self._data: dict[Source, dict[str, bytes] | None] = {}
        self._tokens: dict[TokenProjection, str] = {}
        self._changed = asyncio.Event()
        make_private(folder)
        for volume in self._volumes:
            make_private(self.place(volume["name"]))

    def place(self, volume: str) -> Path:
        """The folder of a volume."""
        return self.folder / volume

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return str(self._pod["metadata"]["namespace"])

    async def run(self) -> None:
        """Watches, renews and writes until cancelled."""
        sources = set().union(*map(volume_sources, self._volumes))
        watches = [self._watch(source) for source in sources]
        async with asyncio.TaskGroup() as group:
            for watch in watches:
                group.create_task(watch.run())
            for volume in self._volumes:
                for projection in token_projections(volume):
                    group.create_task(self._renew(projection))
            for watch in watches:
                await watch.synced.wait()
            self._changed.set()
            while True:
                await self._changed.wait()
                self._changed.clear()
                self._write()

    def _watch(self, source: Source) -> Watched:
        self._data[source] = None

        def changed(_: str, __: Json | None, new: Json | None) -> None:
            self._data[source] = None if new is None else source_data(new)
            self._changed.set()

        return Watched(
            self._api,
            f"/api/v1/namespaces/{self.namespace}/{source.kind}",
            params={"fieldSelector": f"metadata.name={source.name}"},
            on_change=changed,
        )

    def _write(self) -> None:
        if any(p not in self._tokens for volume in self._volumes for p in token_projections(volume)):
            return
        try:
            for volume in self._volumes:
                if "emptyDir" not in volume:
                    files = volume_files(self._pod, volume, self._facts, self._data, self._tokens)
                    write_volume(self.place(volume["name"]), files)
        except PodError as error:
            self.problem = error
            return
        self.problem = None
        self.ready.set()

    async def _renew(self, projection: TokenProjection) -> None:
        metadata, account = self._pod["metadata"], self._pod["spec"].get("serviceAccountName", "default")
        spec: Json = {
            "expirationSeconds": projection.expiration_seconds,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]},
        }
        if projection.audience:
            spec["audiences"] = [projection.audience]
        body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        while True:
            try:
                answer = await self._api.create(
                    f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token", body
                )
            except ApiError as error:
                self.problem = PodError(f"token of service account {account}: {error}", "ContainerCreating")
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self._tokens[projection] = answer["status"]["token"]
            self._changed.set()
            await asyncio.sleep(projection.expiration_seconds * _RENEW_SHARE)


def source_data(item: Mapping[str, Any]) -> dict[str, bytes]:
    """The contents of a ConfigMap or Secret. Raises PodError where they are not base64."""
    if item.get("kind") == "Secret" or "type" in item:
        return {key: base64.b64decode(value) for key, value in (item.get("data") or {}).items()}
    data = {key: value.encode() for key, value in (item.get("data") or {}).items()}
    try:
        return data | {key: base64.b64decode(value) for key, value in (item.get("binaryData") or {}).items()}
    except binascii.Error as error:
        raise PodError(f"configmap {item['metadata']['name']}: binaryData is not base64") from error


def build_root(container: Mapping[str, Any], volumes: PodVolumes, root: Path) -> dict[str, str]:
    """Lays out the container's file tree below `root`, a link for each mount, and returns container path → place.

    A `subPath` mount is a copy made now: as in a kubelet, it does not follow later changes. Raises PodError for a mount
    within another.
    """
    make_private(root)
    places: dict[str, str] = {}
    for mount in sorted(container.get("volumeMounts", ()), key=lambda one: len(one["mountPath"])):
        target = root / mount["mountPath"].lstrip("/")
        if target.parent.resolve() != target.parent.absolute() and target.parent.exists():
            raise PodError(
                f"volumeMounts[{mount['mountPath']}]: lies within another mount, which this node does not do"
            )
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        source = volumes.place(mount["name"])
        sub_path = mount.get("subPath")
        if target.is_symlink() or target.is_file():
            target.unlink()
        elif target.is_dir():
            shutil.rmtree(target)
        if sub_path and (source / sub_path).is_file():
            file = source / sub_path
            write_private(target, file.read_bytes(), file.stat().st_mode & 0o777)
        else:
            if sub_path:
                source = source / sub_path
                make_private(source)
            target.symlink_to(source)
        places[mount["mountPath"]] = str(target)
    (root / "tmp").mkdir(exist_ok=True, mode=0o700)
    return places


def write_kubeconfig(path: Path, *, server: str, ca_file: Path, token_file: str, namespace: str) -> None:
    """A kubeconfig of the pod's service account. The token stays in its file, so that clients see it renewed."""
    cluster = {"server": server, "certificate-authority": str(ca_file.absolute())}
    document = render_kubeconfig("pod", cluster, {"tokenFile": token_file}, namespace=namespace)
    write_private(path, yaml.safe_dump(document, sort_keys=False).encode())
