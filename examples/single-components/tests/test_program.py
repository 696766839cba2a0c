"""The program under mocks: no cluster."""

import base64
import json
import runpy
from pathlib import Path

import pulumi
import pytest
import yaml

from kueue_fleet.testing import Mocks

ROOT = Path(__file__).parents[1]
KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"


@pytest.fixture(scope="module")
def program() -> Mocks:
    """What the program declares."""
    mocks = Mocks()
    pulumi.runtime.set_mocks(mocks, project="single-components", preview=False)
    pulumi.runtime.set_all_config(yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"])
    run = pulumi.runtime.test(lambda: runpy.run_path(str(ROOT / "__main__.py")) and None)  # type: ignore[no-untyped-call]
    run()
    return mocks


def test_each_cluster_has_the_same_entrances(program: Mocks) -> None:
    entrances = [
        (name.partition("-")[0], made["metadata"]["namespace"], made["metadata"]["name"], made["spec"]["clusterQueue"])
        for name, made in program.of_type(f"{KUEUE}:LocalQueue").items()
    ]
    assert sorted(entrances) == [
        ("manager", "serving", "gpu", "production"),
        ("manager", "vision", "gpu", "research"),
        ("std", "serving", "gpu", "production"),
        ("std", "vision", "gpu", "research"),
    ]


def test_queues_borrow_from_each_other(program: Mocks) -> None:
    queues = program.of_type(f"{KUEUE}:ClusterQueue")
    assert {queue["spec"]["cohortName"] for queue in queues.values()} == {"company"}
    gpus = queues["std-research"]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert gpus == {"name": "nvidia.com/gpu", "nominalQuota": "4", "borrowingLimit": "4"}


@pytest.mark.parametrize(("cluster", "check"), [("std", "dws"), ("manager", "multikueue")])
def test_jobs_wait_for_machines_on_the_worker_and_for_the_worker_on_the_manager(
    program: Mocks, cluster: str, check: str
) -> None:
    strategy = program.of_type(f"{KUEUE}:ClusterQueue")[f"{cluster}-production"]["spec"]["admissionChecksStrategy"]
    assert strategy == {"admissionChecks": [{"name": check}]}


def test_the_manager_reaches_the_worker_with_the_token_of_its_account(program: Mocks) -> None:
    secret = program.of_type("kubernetes:core/v1:Secret")["multikueue/std"]["data"]
    kubeconfig = json.loads(base64.b64decode(secret["kubeconfig"]))
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://10.0.0.2"
    assert kubeconfig["users"][0]["user"]["token"].startswith("token-of-")


def test_each_object_goes_to_its_cluster(program: Mocks) -> None:
    for made in program.made:
        if made.typ.startswith("kubernetes:"):
            cluster = "std" if made.name.startswith("std-") else "manager"
            assert str(made.provider).endswith(f"::{cluster}::{cluster}-id"), made.name
