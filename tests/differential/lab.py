"""A control plane with the real Kueue in it, of one release, arranged for hundreds of scenarios side by side."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from tests.differential import devices
from tests.differential.settings import LATEST, configuration

from kueue_rehearsal.engines import KUEUE_ENGINES
from one_cluster import OneCluster, one_cluster

Json = dict[str, Any]

API = "/apis/kueue.x-k8s.io/v1beta2"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
AT_ONCE = 24
"""Requests under way at the same time."""


@dataclass(frozen=True)
class Lab:
    """A cluster with Kueue of one setting."""

    cluster: OneCluster
    setting: str

    def session(self) -> aiohttp.ClientSession:
        """Connections to the API server as its administrator."""
        context = ssl.create_default_context(cafile=str(self.cluster.ca_file))
        connector = aiohttp.TCPConnector(limit=AT_ONCE + 4, ssl=context)
        headers = {"Authorization": f"Bearer {self.cluster.token}"}
        return aiohttp.ClientSession(self.cluster.server, connector=connector, headers=headers)

    def log(self) -> Path:
        """The log of the Kueue that runs now."""
        logs = self.cluster.folder.glob("clusters/*/system-0/pods/*/manager.log")
        return max(logs, key=lambda path: path.stat().st_mtime)


@contextmanager
def kueue(folder: Path, setting: str, release: str = LATEST) -> Iterator[Lab]:
    """Kueue of a minor release by its chart. Its webhooks are off, they would only check what is right; so are its
    events, which cost.

    The controller manager is halted meanwhile: nothing here is its business, and it would give up nodes without agents.
    """
    with one_cluster(folder, kueue=KUEUE_ENGINES[release]) as cluster:
        settings = folder / "kueue.json"
        settings.write_text(json.dumps(configuration(setting, release)))
        cluster.helm_install("kueue", "--set-file", f"managerConfig.controllerManagerConfigYaml={settings}")
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            for item in cluster.items(f"{HOOKS}/{kind}"):
                if "kueue" in item["metadata"]["name"]:
                    cluster.delete(f"{HOOKS}/{kind}/{item['metadata']['name']}")
        for role in cluster.items(ROLES):
            rules = [rule for rule in role["rules"] or () if "events" not in rule.get("resources", ())]
            if role["metadata"]["name"].startswith("kueue-") and rules != role["rules"]:
                cluster.request("PUT", f"{ROLES}/{role['metadata']['name']}", {**role, "rules": rules})
        for kind, items in devices.OBJECTS.items() if setting == "devices" else ():
            for item in items:
                cluster.request("POST", f"/apis/resource.k8s.io/v1/{kind}", item)
        cluster.supervisor.client.kill(cluster.name, "kube-controller-manager", "SIGSTOP")
        try:
            yield Lab(cluster, setting)
        finally:
            cluster.supervisor.client.kill(cluster.name, "kube-controller-manager", "SIGCONT")
