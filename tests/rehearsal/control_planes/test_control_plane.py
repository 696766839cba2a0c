"""The programs of a control plane as data."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from kueue_rehearsal.control_planes.certificates import KeyPair
from kueue_rehearsal.control_planes.control_plane import (
    CONTROLLERS,
    ClusterAccess,
    ControlPlanePlan,
    api_server_process,
    controller_manager_process,
    scheduler_process,
    write_control_plane_files,
)
from kueue_rehearsal.control_planes.etcd import EtcdPlan, etcd_process
from kueue_rehearsal.control_planes.kwok import kwok_process
from kueue_rehearsal.engines import Engines, Program
from kueue_rehearsal.processes.child_process import ProcessSpec

TOKEN = "s3cret-t0ken"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


def pair(name: str) -> KeyPair:
    return KeyPair(Path(f"/pki/{name}.crt"), Path(f"/pki/{name}.key"))


@pytest.fixture
def plan(tmp_path: Path) -> ControlPlanePlan:
    programs = {name: Program(name, Path(f"/bin/{name}"), "v1.36.3", "cache") for name in PROGRAMS}
    return ControlPlanePlan(
        name="worker-a",
        folder=tmp_path,
        programs=Engines(programs, {}),
        port=20001,
        node_port=20003,
        etcd_endpoint="https://127.0.0.1:20000",
        etcd_client=pair("etcd-client"),
        server=pair("server"),
        front_proxy=pair("front-proxy"),
        ca_file=Path("/pki/ca.crt"),
        service_account_key=Path("/pki/sa.key"),
        admin_token=TOKEN,
    )


def etcd_plan() -> EtcdPlan:
    return EtcdPlan(
        program=Path("/bin/etcd"),
        folder=Path("/lab/etcd"),
        client_port=20000,
        peer_port=20002,
        server=pair("etcd"),
        client=pair("etcd-client"),
        ca_file=Path("/pki/ca.crt"),
    )


def flags(spec: ProcessSpec) -> dict[str, str]:
    words = (word.removeprefix("--").partition("=") for word in spec.argv[1:])
    return {name: value for name, _, value in words}


def test_the_api_server_listens_on_loopback_and_lets_in_only_who_it_knows(plan: ControlPlanePlan) -> None:
    result = flags(api_server_process(plan))
    assert (result["bind-address"], result["secure-port"]) == ("127.0.0.1", "20001")
    assert result["anonymous-auth"] == "false"
    assert result["authorization-mode"] == "RBAC"


def test_every_cluster_has_its_own_keys_in_etcd(plan: ControlPlanePlan) -> None:
    result = flags(api_server_process(plan))
    assert result["etcd-prefix"] == "/clusters/worker-a"
    # The closing slash keeps `worker-a` apart from `worker-ab` when its keys are deleted.
    assert plan.etcd_prefix == "/clusters/worker-a/"


def test_the_controllers_open_no_port(plan: ControlPlanePlan) -> None:
    for spec in (controller_manager_process(plan), scheduler_process(plan)):
        assert flags(spec)["secure-port"] == "0"


def test_kwok_manages_only_simulated_nodes_and_listens_on_loopback(plan: ControlPlanePlan) -> None:
    result = flags(kwok_process(plan))
    assert result["manage-nodes-with-label-selector"] == "kueue-fleet.dev/simulated=true"
    assert result["server-address"] == "127.0.0.1:20003"


def test_a_pod_that_is_bound_does_not_wait_for_kwok_to_see_a_lease(plan: ControlPlanePlan) -> None:
    # With leases, and their watch behind by 1.5 s, a restarted kwok never ran such a pod.
    assert flags(kwok_process(plan))["node-lease-duration-seconds"] == "0"


def test_what_kueue_and_multikueue_rely_on_is_run(plan: ControlPlanePlan) -> None:
    run = flags(controller_manager_process(plan))["controllers"].split(",")
    # Token Secrets for MultiKueue, aggregated roles of Kueue's chart, jobs, Deployments, owners' garbage.
    assert {
        "serviceaccount-token-controller",
        "clusterrole-aggregation-controller",
        "job-controller",
        "deployment-controller",
        "garbage-collector-controller",
    } <= set(run)
    assert run == sorted(CONTROLLERS)


def test_etcd_asks_everyone_for_a_certificate_on_loopback() -> None:
    result = flags(etcd_process(etcd_plan()))
    for name in ("listen-client-urls", "listen-peer-urls", "advertise-client-urls", "initial-advertise-peer-urls"):
        assert result[name].startswith("https://127.0.0.1:")
    assert "client-cert-auth" in result
    assert "peer-client-cert-auth" in result
    assert result["trusted-ca-file"] == result["peer-trusted-ca-file"] == "/pki/ca.crt"


def test_the_token_is_in_no_command_line_and_no_representation(plan: ControlPlanePlan) -> None:
    for process in (api_server_process, controller_manager_process, scheduler_process, kwok_process):
        assert TOKEN not in repr(process(plan))
    assert TOKEN not in repr(plan)
    access = ClusterAccess(
        name="a",
        project="p",
        location="l",
        autopilot=True,
        server="https://127.0.0.1:1",
        ca_file=Path("/ca"),
        token=TOKEN,
        workdir=Path("/w"),
        engines=plan.programs,
        spawn=lambda spec: pytest.fail("nothing is started here"),
    )
    assert TOKEN not in repr(access)


def test_the_files_are_private_and_complete(plan: ControlPlanePlan) -> None:
    write_control_plane_files(plan)
    files = sorted(plan.folder.iterdir())
    assert [path.name for path in files] == ["admin.kubeconfig", "scheduler.json", "tokens.csv"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    kubeconfig = json.loads(plan.admin_kubeconfig.read_text())
    assert kubeconfig["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:20001",
        "certificate-authority": "/pki/ca.crt",
    }
    assert kubeconfig["users"][0]["user"] == {"token": TOKEN}
    assert (plan.folder / "tokens.csv").read_text() == f'{TOKEN},admin,admin,"system:masters"\n'
    scheduler = json.loads((plan.folder / "scheduler.json").read_text())
    assert scheduler["clientConnection"]["kubeconfig"] == str(plan.admin_kubeconfig)


def test_logs_are_in_the_clusters_own_folder(plan: ControlPlanePlan) -> None:
    specs = (api_server_process(plan), controller_manager_process(plan), scheduler_process(plan), kwok_process(plan))
    assert [spec.log for spec in specs] == [plan.folder / f"{name}.log" for name in PROGRAMS]
