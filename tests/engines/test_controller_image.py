"""The controller's image, built from the Dockerfile and run on a read-only root as nobody, on real control planes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bare_lab import BareCluster, bare_lab, until
from container_image import BuiltImage, build_image
from controller_load import configuration, install_crds, kubeconfig, prepare, submit
from kueue_fleet.kube.client import KubeApi
from needed_programs import BUILDAH, needed

WORKER = "w00"
TOOLS = re.compile(
    r"(ba|da|z)?sh|busybox|pip[\d.]*|apt(-get)?|dpkg|gcc|cc|c\+\+|ld|make|perl|curl|wget|uv|pulumi.*|helm|kubectl"
)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> BuiltImage:
    needed(BUILDAH)
    return build_image(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BareCluster]]:
    with bare_lab(tmp_path_factory.mktemp("lab")) as lab:
        result = lab.clusters("manager", "workers")
        for cluster in result:
            install_crds(cluster)
        yield result


def test_no_build_tool_and_no_shell_is_in_it(image: BuiltImage) -> None:
    programs = [path.name for path in image.files.rglob("*") if path.is_file() and os.access(path, os.X_OK)]
    assert "python3.11" in programs
    assert [name for name in programs if TOOLS.fullmatch(name)] == []
    assert not list(image.files.rglob("site-packages/pip")), "pip"
    assert not (image.files / "app/pip").exists()


def test_what_it_runs_belongs_to_root_and_nobody_else_may_change_it(image: BuiltImage) -> None:
    files = [path.lstat() for path in (image.files / "app").rglob("*") if not path.is_symlink()]
    assert len(files) > 100
    assert {(one.st_uid, one.st_gid) for one in files} == {(0, 0)}
    assert not any(one.st_mode & (stat.S_IWOTH | stat.S_IWGRP | stat.S_ISUID) for one in files)


def test_it_leads_and_nominates_on_a_read_only_root_as_nobody(
    image: BuiltImage, clusters: list[BareCluster], tmp_path: Path
) -> None:
    # Folders of pytest are for root alone.
    folder = tmp_path / "mounted"
    (folder / "workers").mkdir(parents=True)
    kubeconfig(folder, "manager", clusters[0])
    kubeconfig(folder / "workers", WORKER, clusters[1])
    (folder / "config.yaml").write_text(yaml.safe_dump(configuration([WORKER])))
    arguments = ["--config", "/fleet/config.yaml", "--workers", "/fleet/workers", "--kubeconfig", "/fleet/manager"]
    asyncio.run(submit_one(folder))
    log = tmp_path / "log"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = image.start([*arguments, "--listen", f"127.0.0.1:{port}"], {"/fleet": folder}, log)
    try:
        until(lambda: process.poll() is not None or answers(port, "/readyz"), "ready")
        assert process.poll() is None, log.read_text()
        until(lambda: nominated(clusters[0]) == [WORKER], "nominated")
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(r"^Uid:\t65532\t65532\t65532\t65532$", status, re.MULTILINE)
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
        assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
        mounts = [line.split() for line in Path(f"/proc/{process.pid}/mounts").read_text().splitlines()]
        root = next(fields for fields in mounts if fields[1] == "/")
        assert "ro" in root[3].split(",")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert "leading" in {line["message"] for line in lines}
    assert not [line for line in lines if line["level"] == "ERROR"]


def test_it_says_what_is_wrong_with_its_configuration(image: BuiltImage, tmp_path: Path) -> None:
    process = image.start(["--config", "/nowhere", "--workers", "/nowhere"], {}, tmp_path / "log")
    assert process.wait(60) == 1
    assert (tmp_path / "log").read_text().startswith("error: /nowhere: ")


async def submit_one(folder: Path) -> None:
    """What the controller reads of a fleet, and one Workload that has quota on the manager."""
    manager, worker = KubeApi(folder / "manager"), KubeApi(folder / "workers" / WORKER)
    try:
        await prepare(manager, worker, [WORKER], gpus=8)
        await submit(manager, "one-0", 1)
    finally:
        await manager.close()
        await worker.close()


def nominated(manager: BareCluster) -> list[str]:
    """The workers that the Workload may run on, as its status says."""
    status = manager.call("GET", "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads/one-0").body["status"]
    return list(status.get("nominatedClusterNames") or [])


def answers(port: int, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
