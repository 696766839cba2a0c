"""`kueue-fleet import`: from objects of clusters to a fleet file, and the things a tired person would type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.adopt.existing_platform import described_cluster
from typer.testing import CliRunner, Result

from kueue_admission.cli import console
from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet, parse_fleet_text
from kueue_fleet.objects import render_fleet
from plain_fleets import alone
from small_fleets import one_pool_data

ROOT = Path(__file__).parents[2]
STACK = ROOT / "stacks" / "Pulumi.dws-multikueue.yaml"
FLEET = ["--name", "dws-multikueue", "--project", "my-gcp-project"]
ASKED = ["--mode", "Autopilot", "--default-kueue"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["import", *arguments])


def failure(*arguments: str) -> console.CommandError:
    result = run(*arguments)
    assert isinstance(result.exception, console.CommandError), result
    return result.exception


def test_clusters_are_taken_over_in_place_unless_others_are_wanted(dumps: dict[str, Path], tmp_path: Path) -> None:
    for option in ((), ("--new",)):
        file = tmp_path / f"fleet{len(option)}.yaml"
        assert run(*given(dumps), *option, "--output", str(file)).exit_code == 0
        fleet = parse_fleet_text(file.read_text(), "fleet")
        assert {cluster.existing for cluster in fleet.clusters} == {not option}
        assert {cluster.upsert_existing_objects for cluster in fleet.clusters} == {not option}


def test_one_file_for_the_fleet_and_for_the_import_is_refused(dumps: dict[str, Path], tmp_path: Path) -> None:
    file = str(tmp_path / "ml.json")
    result = run(*given(dumps), "--pulumi-import", file, "--output", file)
    assert "is what --output writes too" in str(result.exception)
    assert not Path(file).exists()


@pytest.fixture
def dumps(tmp_path: Path) -> dict[str, Path]:
    """A file of objects for each cluster, as kubectl prints them."""
    fleet = parse_fleet_text(STACK.read_text(), "stack")
    files = {}
    for cluster, objects in render_fleet(fleet).items():
        files[cluster] = tmp_path / f"{cluster}.yaml"
        files[cluster].write_text(
            yaml.dump({"apiVersion": "v1", "kind": "List", "items": objects}, Dumper=yaml.CSafeDumper)
        )
    return files


def given(dumps: dict[str, Path]) -> list[str]:
    regions = [f"{name}={name.partition('-')[2]}" for name in dumps]
    return [
        *(f"{name}={file}" for name, file in dumps.items()),
        *(f"--region={region}" for region in regions),
        *FLEET,
        *ASKED,
    ]


def test_a_platform_becomes_a_fleet_file_that_renders_the_same(dumps: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    result = run(*given(dumps), "--rotate-by", "2027-02-01", "--output", str(file))
    assert result.exit_code == 0, result.output
    assert f"{file}: written" in result.stdout.replace("\n", "")
    before = parse_fleet_text(STACK.read_text(), "stack")
    after = parse_fleet_text(file.read_text(), "fleet")
    assert after.cluster_queues == before.cluster_queues
    assert after.flavors == before.flavors
    # The policy on a team's jobs names its classes in the order of the alphabet.
    assert after.teams == tuple(
        team.model_copy(
            update={
                "allowed_priority_classes": team.allowed_priority_classes
                and tuple(sorted(team.allowed_priority_classes))
            }
        )
        for team in before.teams
    )
    assert after.worker_names == before.worker_names


@pytest.mark.parametrize("output", [[], ["-o", "-"]])
def test_without_a_file_it_is_printed_and_notes_stay_off_stdout(output: list[str], dumps: dict[str, Path]) -> None:
    result = run(*given(dumps), *output)
    assert yaml.safe_load(result.stdout)["name"] == "dws-multikueue"
    assert "of Google Cloud only node pools are read" in result.stderr.replace("\n", " ")


def test_a_platform_with_mistakes_is_written_and_they_are_named(dumps: dict[str, Path], tmp_path: Path) -> None:
    text = dumps["worker-us-east4"].read_text().replace("clusterQueue: dws", "clusterQueue: dsw")
    alone = tmp_path / "alone.yaml"
    alone.write_text(text)
    result = run(f"alone={alone}", "--region", "us-east4", *FLEET, *ASKED)
    assert result.exit_code == 1
    assert "there is no queue dsw; did you mean dws? [KF503]" in result.stderr.replace("\n", " ")
    assert yaml.safe_load(result.stdout)["clusterQueues"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dump.yaml", "--region", "us-east4"], "CLUSTER=PATH: 'dump.yaml' names no cluster; write CLUSTER=dump.yaml"),
        (["a=x", "a=y", "--region", "us-east4"], "CLUSTER=PATH: a is given twice; give each cluster once"),
        (["a=nothing.yaml", "--region", "us-east4"], "nothing.yaml: no such file or folder"),
        (["a=x", "--region", "b=us-east4"], "--region: there is no cluster b; there are a"),
        (["a=x", "--region", "us-east4", "--region", "us-west1"], "--region: us-east4 and us-west1 are both for all"),
        (["a=x", "--region", "us-east4", "--node-pools", "b=p"], "--node-pools: there is no cluster b; there are a"),
        (["a=x", "--region", "us-east4", "--mode", "auto"], "--mode: 'auto' for a is not a mode; write"),
        (["a=x", "--region", "us-east4", "--mode", "b=Standard"], "--mode: there is no cluster b; there are a"),
    ],
)  # fmt: skip
def test_slips_are_named(arguments: list[str], message: str) -> None:
    assert message in str(failure(*arguments, *FLEET))


def test_a_file_is_not_replaced_unasked(dumps: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("mine")
    assert "already exists; give another name, or --force" in str(failure(*given(dumps), "-o", str(file)))
    assert file.read_text() == "mine"
    assert run(*given(dumps), "-o", str(file), "--force").exit_code == 0
    assert file.read_text() != "mine"


def test_what_is_no_node_pool_is_refused(dumps: dict[str, Path], tmp_path: Path) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text("- just text\n")
    result = failure(*given(dumps), "--node-pools", f"worker-us-east4={pools}")
    assert str(result).startswith(f"{pools}: holds no node pools; give what")


def test_clusters_that_disagree_are_named_and_nothing_is_written(dumps: dict[str, Path], tmp_path: Path) -> None:
    text = dumps["worker-us-east4"].read_text().replace("BestEffortFIFO", "StrictFIFO")
    dumps["worker-us-east4"].write_text(text)
    file = tmp_path / "fleet.yaml"
    result = failure(*given(dumps), "-o", str(file))
    assert "worker-us-east4.ClusterQueue dws.queueingStrategy: StrictFIFO, but BestEffortFIFO on" in str(result)
    assert not file.exists()


def test_what_no_object_says_is_asked_for_at_once(dumps: dict[str, Path]) -> None:
    file = dumps["worker-us-east4"]
    result = str(failure(f"alone={file}", "--region", "us-east4", *FLEET))
    assert "clusters[alone].mode: is not known" in result
    assert "alone.kueue.configuration: is not known" in result


@pytest.fixture
def described(tmp_path: Path) -> list[str]:
    """Objects and description of a cluster that is set up as a fleet's are, and what the command needs beside."""
    fleet = parse_fleet(one_pool_data())
    cluster = described_cluster(fleet, "batch")
    (tmp_path / "objects.yaml").write_text(
        yaml.dump({"kind": "List", "items": list(cluster.objects)}, Dumper=yaml.CSafeDumper)
    )
    (tmp_path / "gke.yaml").write_text(yaml.safe_dump(cluster.description))
    return [
        f"batch={tmp_path / 'objects.yaml'}",
        f"--description=batch={tmp_path / 'gke.yaml'}",
        "--name=lab",
        "--project=lab-project",
    ]


def test_a_description_says_region_mode_and_pools(described: list[str]) -> None:
    result = run(*described)
    assert result.exit_code == 0, result.output
    [cluster] = yaml.safe_load(result.stdout)["clusters"]
    assert cluster["region"] == "us-central1"
    assert cluster["mode"] == "Standard"
    assert cluster["existing"]
    assert [pool["name"] for pool in yaml.safe_load(result.stdout)["nodePools"]] == ["l4"]


def test_pulumi_import_writes_its_file_lists_what_up_changes_and_says_what_is_next(
    described: list[str], tmp_path: Path
) -> None:
    fleet, imported = tmp_path / "fleet.yaml", tmp_path / "import.json"
    result = run(*described, f"--pulumi-import={imported}", f"--output={fleet}")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == f"{fleet}: written"
    assert lines[1] == f"{imported}: written, 3 resources to import"
    assert "pulumi up changes batch/l4: nodeConfig.resourceLabels.kueue-fleet nothing -> lab" in lines
    assert lines[-1] == f"next: pulumi import --file {imported} --generate-code=false, then pulumi preview --diff"
    written = json.loads(imported.read_text())["resources"]
    assert next(entry["id"] for entry in written if "id" in entry).endswith("/us-central1/clusters/batch")
    assert not parse_fleet_text(fleet.read_text(), "fleet").clusters[0].existing


def test_a_platform_with_errors_gets_its_file_for_pulumi_too(described: list[str], tmp_path: Path) -> None:
    objects = tmp_path / "objects.yaml"
    objects.write_text(objects.read_text().replace("clusterQueue: gpu", "clusterQueue: gpus"))
    imported = tmp_path / "import.json"
    result = run(*described, f"--pulumi-import={imported}", f"--output={tmp_path / 'fleet.yaml'}")
    assert (result.exit_code, "[KF503]" in result.output) == (1, True)
    assert json.loads(imported.read_text())["resources"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pulumi-import=i.json"], "--pulumi-import: needs the file of the fleet too; add --output FILE"),
        (["--pulumi-import=i.json", "--new", "-o=f"], "--new: clusters that are to be made are not imported; leave"),
        (["--region=us-central1"], "--region: the description of batch has it; leave one out"),
        (["--mode=batch=Standard"], "--mode: the description of batch has it; leave one out"),
        (["--node-pools=batch=p"], "--node-pools: the description of batch has it; leave one out"),
        (["--description=other=x"], "--description: there is no cluster other; there are batch"),
    ],
)  # fmt: skip
def test_slips_with_descriptions_are_named(arguments: list[str], message: str, described: list[str]) -> None:
    assert message in str(failure(*described, *arguments))


def test_pulumi_import_asks_for_every_description(dumps: dict[str, Path]) -> None:
    result = str(failure(*given(dumps), "--pulumi-import", "i.json", "-o", "f"))
    assert result.startswith("--pulumi-import: no description of ")
    assert "; add --description " in result


def test_what_is_no_description_is_refused(described: list[str], tmp_path: Path) -> None:
    for text, wrong in (
        ("- a\n", "is not described by a map with name, location and networkConfig"),
        ("name: other\nlocation: l\nnetworkConfig: {}\n", "is described as other"),
        ("name: batch\nlocation: l\nnetworkConfig: {}\nnodePools: 5\n", "nodePools: is not a list of node pools"),
        ("name: batch\nlocation: l\nnetworkConfig: {}\nnodePools: [5]\n", "nodePools[0]: is not a node pool with "),
    ):
        (tmp_path / "gke.yaml").write_text(text)
        assert wrong in str(failure(*described))


def test_a_stack_file_has_the_fleet_in_its_config_and_a_project_around_it(described: list[str], tmp_path: Path) -> None:
    file = tmp_path / "stacks" / "Pulumi.ml.yaml"
    assert run(*described, f"--output={file}").exit_code == 0
    assert parse_fleet(yaml.safe_load(file.read_text())["config"]["kueue-fleet:fleet"]).name == "lab"
    assert yaml.safe_load((tmp_path / "Pulumi.yaml").read_text())["stackConfigDir"] == "stacks"
    assert (tmp_path / "__main__.py").is_file()


def test_the_rest_of_a_stack_file_stays(described: list[str], tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.ml.yaml"
    file.write_text("encryptionsalt: v1:abc\nconfig:\n  gcp:region: us-central1\n  kueue-fleet:fleet: {name: old}\n")
    assert run(*described, f"--output={file}", "--force").exit_code == 0
    stack = yaml.safe_load(file.read_text())
    assert (stack["encryptionsalt"], stack["config"]["gcp:region"]) == ("v1:abc", "us-central1")
    assert stack["config"]["kueue-fleet:fleet"]["name"] == "lab"


def test_what_cuts_clients_off_is_said_before_all_else(described: list[str], tmp_path: Path) -> None:
    file = tmp_path / "gke.yaml"
    description = yaml.safe_load(file.read_text())
    description["controlPlaneEndpointsConfig"]["ipEndpointsConfig"] = {"enabled": True}
    file.write_text(yaml.safe_dump(description))
    result = run(*described, f"--pulumi-import={tmp_path / 'i.json'}", f"--output={tmp_path / 'fleet.yaml'}")
    text = (
        "warning: pulumi up changes who reaches the API server of batch: controlPlaneEndpointsConfig.ipEndpointsConfig"
    )
    assert result.stderr.startswith(text)
    assert "; to let addresses in, write network.controlPlaneAccess: AuthorizedNetworks" in result.stderr
    description["controlPlaneEndpointsConfig"]["dnsEndpointConfig"] = {}
    description["masterAuthorizedNetworksConfig"] = {"enabled": True, "cidrBlocks": [{"cidrBlock": "10.0.0.0/8"}]}
    description["privateClusterConfig"] = {"enablePrivateNodes": True, "enablePrivateEndpoint": True}
    file.write_text(yaml.safe_dump(description))
    result = run(*described, f"--pulumi-import={tmp_path / 'i.json'}", f"--output={tmp_path / 'fleet.yaml'}", "--force")
    assert "privateClusterConfig.enablePrivateEndpoint true -> false" in result.stderr
    assert "to let addresses in" not in result.stderr, "they are in the file"


def test_nodes_that_lose_their_addresses_are_said(described: list[str], tmp_path: Path) -> None:
    file = tmp_path / "gke.yaml"
    description = yaml.safe_load(file.read_text())
    del description["privateClusterConfig"]
    file.write_text(yaml.safe_dump(description))
    result = run(*described, f"--pulumi-import={tmp_path / 'i.json'}", f"--output={tmp_path / 'fleet.yaml'}")
    text = "warning: nodes of batch lose their external addresses; what pods read from the internet needs Cloud NAT"
    assert result.stderr.startswith(text)
    assert "who reaches the API server" not in result.stderr


def test_a_cluster_outside_gke_needs_no_project(tmp_path: Path) -> None:
    dump = tmp_path / "paris.yaml"
    objects = render_fleet(alone())["paris"]
    dump.write_text(yaml.dump({"apiVersion": "v1", "kind": "List", "items": objects}, Dumper=yaml.CSafeDumper))
    result = run(f"paris={dump}", "--name=lab", "--kubernetes=paris", "--default-kueue")
    assert result.exit_code == 0, result.output
    assert parse_fleet_text(result.stdout, "fleet").plain_clusters == ("paris",)


def test_a_cluster_of_gke_needs_one(dumps: dict[str, Path]) -> None:
    arguments = [f"{name}={file}" for name, file in dumps.items()]
    assert str(failure(*arguments, "--name=lab")).startswith("--project: is missing, and ")


def test_a_cluster_without_a_path_is_read_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("{apiVersion: v1, kind: Config, clusters: [], users: [], contexts: []}")
    live = ("lab", "--name=lab", "--kubernetes=lab", f"--kubeconfig={kubeconfig}")
    assert "has no context lab" in str(failure(*live))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab").mkdir()
    assert "lab: is also a file or a folder here; write lab=lab to read that" in str(failure(*live))
    (tmp_path / "lab").rmdir()
    assert "no cluster is read live" in str(failure("lab=x", *live[1:]))
