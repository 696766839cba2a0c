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


def test_schema_is_the_schema_of_a_stack_file() -> None:
    result = call("schema")
    schema = json.loads(result.stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "clusterQueues" in json.dumps(schema)


def test_render_prints_one_document_an_object_in_apply_order(fleet_file: Path) -> None:
    result = call("render", fleet_file)
    objects = [document for document in yaml.safe_load_all(result.stdout) if document]
    kinds = [item["kind"] for item in objects]
    assert result.returncode == 0, result.stderr
    assert kinds.index("ResourceFlavor") < kinds.index("ClusterQueue")


def test_render_of_one_cluster_names_the_known_ones_when_it_is_mistyped() -> None:
    result = call("render", STACK, "--cluster", "worker-us-east")
    assert result.returncode == 2
    assert (
        "the fleet has no cluster 'worker-us-east'; it has manager-europe-west4, worker-europe-west4" in result.stderr
    )


def test_render_of_the_dws_fleet(snapshot: SnapshotAssertion) -> None:
    result = call("render", STACK)
    assert result.returncode == 0, result.stderr
    assert result.stdout == snapshot


def test_render_of_the_cloud_is_a_program_in_pulumi_yaml(fleet_file: Path, snapshot: SnapshotAssertion) -> None:
    result = call("render", fleet_file, "--cloud")
    assert result.returncode == 0, result.stderr
    assert result.stdout == snapshot


def test_render_of_the_cloud_as_json_says_the_same(fleet_file: Path) -> None:
    texts = [call("render", fleet_file, "--cloud", *more).stdout for more in ([], ["--output", "json"])]
    assert {"schemaVersion": 1, **yaml.safe_load(texts[0])} == json.loads(texts[1])


@pytest.mark.parametrize("options", [["--cloud", "--cluster", "solo"], ["--output", "json"]])
def test_render_refuses_options_of_the_other_half(fleet_file: Path, options: list[str]) -> None:
    result = call("render", fleet_file, *options)
    assert (result.returncode, result.stderr) == (
        2,
        "error: --cluster goes with Kubernetes objects, --output json with --cloud; leave one out\n",
    )


def test_render_into_a_closed_pipe_is_no_traceback(fleet_file: Path) -> None:
    code = f"{sys.executable} -c 'from kueue_fleet.cli import main; main()' render {STACK} | head -1"
    result = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout == "# Cluster manager-europe-west4\n"
    assert result.stderr == ""
