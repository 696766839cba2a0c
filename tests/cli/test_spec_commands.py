import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from command_line import call

STACK = Path(__file__).parents[2] / "stacks" / "Pulumi.dws-multikueue.yaml"

GOOD = """
name: tiny
project: my-gcp-project
clusters: [{ name: solo, role: standalone, region: us-east4 }]
flavors: [{ name: l4, nodeLabels: { cloud.google.com/gke-accelerator: nvidia-l4 } }]
clusterQueues:
  - name: queue
    namespaceSelector: {}
    resourceGroups:
      - coveredResources: [nvidia.com/gpu, cpu, memory, ephemeral-storage]
        flavors:
          - name: l4
            resources:
              - { name: nvidia.com/gpu, nominalQuota: 4 }
              - { name: cpu, nominalQuota: 16 }
              - { name: memory, nominalQuota: 64Gi }
              - { name: ephemeral-storage, nominalQuota: 100Gi }
localQueues: [{ name: gpu, namespace: default, clusterQueue: queue }]
"""


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.yaml"
    file.write_text(GOOD)
    return file


def test_check_says_that_a_good_fleet_is_valid(fleet_file: Path) -> None:
    done = call("check", fleet_file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{fleet_file}: fleet tiny is valid: 1 cluster, 1 ClusterQueue, ")


def test_check_reads_standard_input() -> None:
    assert call("check", "-", stdin=GOOD).returncode == 0


def test_check_reports_every_problem_of_every_file_and_fails(fleet_file: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    wrong = GOOD.replace("nominalQuota: 4 ", "nominalQuota: -4 ").replace("region: us-east4", "regoin: us-east4")
    broken.write_text(wrong)
    done = call("check", fleet_file, broken)
    assert done.returncode == 1
    assert f"{fleet_file}: fleet tiny is valid" in done.stdout
    paths = [line.split(": ")[2] for line in done.stderr.splitlines()]
    assert "clusters[solo].regoin" in paths
    assert "clusterQueues[queue].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].nominalQuota" in paths


def test_check_as_json_is_one_document(fleet_file: Path) -> None:
    done = call("check", "--output", "json", fleet_file, "-", stdin="name: x")
    result = json.loads(done.stdout)
    assert done.returncode == 1
    assert [file["file"] for file in result["files"]] == [str(fleet_file), "-"]
    assert result["files"][0]["problems"] == []
    assert {"severity", "path", "wrong", "fix"} == set(result["files"][1]["problems"][0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: None, "no such file; give a Pulumi.<env>.yaml or a fleet YAML"),
        (lambda file: file.mkdir(), "is a folder; give a Pulumi.<env>.yaml or a fleet YAML"),
        (lambda file: file.write_bytes(b"name: \xff\xfe"), "is not UTF-8 text (byte 6); save it as UTF-8"),
    ],
    ids=["missing", "directory", "binary"],
)
def test_a_file_that_cannot_be_read_ends_in_one_sentence(tmp_path: Path, make: object, message: str) -> None:
    assert callable(make)
    file = tmp_path / "some.yaml"
    make(file)
    done = call("check", file)
    assert done.returncode == 1
    assert done.stderr == f"error: {file}: {message}\n"


def test_a_mistyped_option_exits_2() -> None:
    assert call("check", "--stirct", "x.yaml").returncode == 2


def test_schema_is_the_schema_of_a_stack_file() -> None:
    done = call("schema")
    schema = json.loads(done.stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "clusterQueues" in json.dumps(schema)


def test_render_prints_one_document_an_object_in_apply_order(fleet_file: Path) -> None:
    done = call("render", fleet_file)
    objects = [document for document in yaml.safe_load_all(done.stdout) if document]
    kinds = [each["kind"] for each in objects]
    assert done.returncode == 0, done.stderr
    assert kinds.index("ResourceFlavor") < kinds.index("ClusterQueue")


def test_render_of_one_cluster_names_the_known_ones_when_it_is_mistyped() -> None:
    done = call("render", STACK, "--cluster", "worker-us-east")
    assert done.returncode == 2
    assert "the fleet has no cluster 'worker-us-east'; it has manager-europe-west4, worker-europe-west4" in done.stderr


def test_render_of_the_dws_fleet(snapshot: SnapshotAssertion) -> None:
    done = call("render", STACK)
    assert done.returncode == 0, done.stderr
    assert done.stdout == snapshot


def test_render_into_a_closed_pipe_is_no_traceback(fleet_file: Path) -> None:
    code = f"{sys.executable} -c 'from kueue_fleet.cli import main; main()' render {STACK} | head -1"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "# Cluster manager-europe-west4\n"
    assert done.stderr == ""
