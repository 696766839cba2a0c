"""The example with data of teams: what is made, what is mounted, what is refused, changed, paid; and its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import REMOVED, changed, problems, quota
from typer.testing import CliRunner

import pulumi_mocks
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet import Fleet
from kueue_fleet.cli import app
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.prerequisites import required_apis
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.google.cost import cost_of
from kueue_fleet.google.resource import CloudResource
from kueue_fleet.google.resources import resources_on
from kueue_fleet.jobs.new_job import JobRequest, job_for
from kueue_fleet.objects import render_cluster

FOLDER = Path(__file__).parents[2] / "examples" / "data"
FLEET = FOLDER / "fleet.yaml"
DATA: dict[str, Any] = yaml.safe_load(FLEET.read_text(encoding="utf-8"))
DATASETS, SCRATCH, HOME, WEIGHTS, CHECKPOINTS = (f"storage/{index}" for index in range(5))
SERVER = {"name": "nfs", "location": "us-central1-a", "address": "10.1.2.3", "share": "vol1"}
IN_EUROPE = {"teams/0/allowedRegions": ["europe-west4"]}


def fleet(changes: dict[str, Any] | None = None) -> FleetSpec:
    return parse_fleet(changed(DATA, changes or {}))


def made(kind: str, changes: dict[str, Any] | None = None) -> list[CloudResource]:
    return [item for item in resources_on(fleet(changes)) if item.type.endswith(f":{kind}")]


def rendered(kind: str, entry: str, changes: dict[str, Any] | None = None) -> Manifest:
    result = [each for each in render_cluster(fleet(changes), "batch") if each["kind"] == kind]
    [one] = [
        item for item in result if entry in (item["metadata"]["name"], item["spec"].get("claimRef", {}).get("name"))
    ]
    return one


def test_a_bucket_is_closed_to_the_public_and_open_to_its_team() -> None:
    [bucket, _] = made("Bucket")
    assert bucket.properties["publicAccessPrevention"] == "enforced"
    member = made("BucketIAMMember")[0].properties
    assert (member["role"], str(member["bucket"])) == ("roles/storage.objectUser", f"${{{bucket.key}.name}}")


def test_who_only_reads_may_only_read() -> None:
    changes = {f"{DATASETS}/readOnly": True}
    assert made("BucketIAMMember", changes)[0].properties["role"] == "roles/storage.objectViewer"
    assert rendered("PersistentVolume", "datasets", changes)["spec"]["csi"]["readOnly"] is True


def test_what_holds_data_is_protected_with_the_fleet() -> None:
    changes = {"deletionProtection": True}
    kept = [item for kind in ("Bucket", "Instance", "Disk") for item in made(kind, changes)]
    assert len(kept) == 6
    assert all(each.protect and each.retain_on_delete for each in kept)
    assert [entry.properties["deletionProtectionEnabled"] for entry in kept if "fileShares" in entry.properties] == [
        True
    ]


def test_lustre_comes_after_the_way_to_it() -> None:
    [lustre] = [entry for entry in made("Instance") if "filesystem" in entry.properties]
    assert set(lustre.needs) == {item.key for kind in ("GlobalAddress", "Connection") for item in made(kind)} | {
        "Firewall/data/storage/lustre"
    }


def test_the_network_of_somebody_else_is_left_alone() -> None:
    subnet = {"name": "s", "podRangeName": "pods", "serviceRangeName": "services"}
    existing = {"name": "shared", "project": "host-project", "subnets": {"us-central1": subnet}}
    changes = {"network": {"existing": existing}}
    assert made("GlobalAddress", changes) == []
    [filestore] = [item for item in made("Instance", changes) if "fileShares" in item.properties]
    assert filestore.properties["networks"][0]["connectMode"] == "PRIVATE_SERVICE_ACCESS"


def test_disks_of_several_zones_are_one_volume() -> None:
    assert [item.properties["labels"]["goog-gke-multi-zone"] for item in made("Disk")] == ["true", "true"]
    volume = rendered("PersistentVolume", "weights")["spec"]
    assert volume["csi"]["volumeHandle"] == "projects/my-gcp-project/zones/multi-zone/disks/data-weights"
    assert volume["accessModes"] == ["ReadOnlyMany"]


def test_a_claim_is_bound_to_its_volume_and_to_no_other() -> None:
    volume, claim = (rendered(kind, "scratch") for kind in ("PersistentVolume", "PersistentVolumeClaim"))
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert volume["spec"]["claimRef"] == {"namespace": "research", "name": "scratch"}
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"


def test_a_volume_that_grows_keeps_its_name() -> None:
    grown = {f"{SCRATCH}/volume/capacityGib": 18000}
    names = {rendered("PersistentVolume", "scratch", item)["metadata"]["name"] for item in ({}, grown)}
    assert len(names) == 1


def test_a_volume_that_leads_elsewhere_has_another_name() -> None:
    other = {f"{HOME}/volume/existing": {"us-central1": SERVER}}
    names = {rendered("PersistentVolume", "home", item)["metadata"]["name"] for item in ({}, other)}
    assert len(names) == 2


def test_what_exists_is_mounted_and_not_made() -> None:
    changes = {f"{HOME}/volume/existing": {"us-central1": SERVER}}
    assert ["filesystem" in item.properties for item in made("Instance", changes)] == [True]
    csi = rendered("PersistentVolume", "home", changes)["spec"]["csi"]
    assert csi["volumeHandle"] == "modeInstance/us-central1-a/nfs/vol1"
    assert csi["volumeAttributes"] == {"ip": "10.1.2.3", "volume": "vol1"}


def test_one_bucket_may_be_for_all_regions() -> None:
    changes = {f"{DATASETS}/volume/location": "US"}
    assert made("Bucket", changes)[0].properties["location"] == "US"


def test_checkpoints_are_kept_on_the_nodes_of_the_pool() -> None:
    spec = rendered("CheckpointConfiguration", "checkpoints")["spec"]
    assert spec["nodeSelector"] == {"cloud.google.com/gke-nodepool": "h100"}
    assert {"key": "nvidia.com/gpu", "operator": "Exists"} in spec["tolerations"]


def test_gkes_own_account_copies_checkpoints() -> None:
    subject = "my-gcp-project.svc.id.goog/subject/ns/gke-managed-checkpointing/sa/gke-checkpointing-multitier-node"
    members = [str(entry.properties["member"]) for entry in made("BucketIAMMember")]
    assert [item for item in members if item.startswith("principal://")] == [
        f"principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/{subject}"
    ]


def test_the_cluster_has_the_drivers() -> None:
    [cluster] = made("Cluster")
    assert {name: item["enabled"] for name, item in cluster.properties["addonsConfig"].items()} == {
        "gcePersistentDiskCsiDriverConfig": True,
        "gcpFilestoreCsiDriverConfig": True,
        "gcsFuseCsiDriverConfig": True,
        "lustreCsiDriverConfig": True,
        "highScaleCheckpointingConfig": True,
    }


def test_the_apis_are_enabled() -> None:
    names = {item.name for item in required_apis(fleet(), "my-gcp-project")}
    assert {"storage", "file", "lustre", "servicenetworking"} <= {entry.partition(".")[0] for entry in names}


def test_the_program_puts_in_where_file_servers_are() -> None:
    spec = fleet({"teams/0/secrets": REMOVED})
    recording = pulumi_mocks.run(lambda: Fleet(spec.name, spec))
    sources = [entry.inputs["spec"]["csi"] for entry in recording.of_type("PersistentVolume")]
    addresses = {each["volumeAttributes"]["ip"] for each in sources if "volumeAttributes" in each}
    assert len(addresses) == 2
    assert all(item.startswith("10.") for item in addresses)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a size that Google does not have": (
        {f"{SCRATCH}/volume/capacityGib": 9001},
        "storage[scratch].volume.capacityGib: 9001, which Google does not have; write 9000 to 1530000 in steps of 9000 "
        "or 1584000 to 10008000 in steps of 72000",
    ),
    "a throughput that Google does not have": (
        {f"{SCRATCH}/volume/perUnitStorageThroughput": 100},
        "storage[scratch].volume.perUnitStorageThroughput: 100, which Google does not have; write 125, 250, 500 or "
        "1000",
    ),
    "no size": (
        {f"{SCRATCH}/volume/capacityGib": REMOVED},
        "storage[scratch].volume.capacityGib: not set, but existing has none in us-central1, so that one is made; "
        "write its size, or name what exists there",
    ),
    "two zones for one instance": (
        {f"{SCRATCH}/volume/zones": ["us-central1-a", "us-central1-b"]},
        "storage[scratch].volume.zones[1]: is us-central1-b, but the instance of us-central1 is in us-central1-a; name "
        "one zone of each region",
    ),
    "a zone for an instance of a region": (
        {f"{HOME}/volume/tier": "REGIONAL", f"{HOME}/volume/zones": ["us-central1-a"]},
        "storage[home].volume.zones[0]: is us-central1-a, but an instance of tier REGIONAL is in all of its region; "
        "remove zones, or write tier ZONAL",
    ),
    "a bucket nowhere": (
        {f"{DATASETS}/volume/location": "us-central"},
        "storage[datasets].volume.location: us-central is not a known location of buckets; did you mean us-central1?",
    ),
    "no driver": (
        {"clusters/0/storageDrivers": ["GcsFuse", "Filestore", "PersistentDisk", "MultiTierCheckpoints"]},
        "clusters[batch].storageDrivers: without Lustre, which storage scratch needs; add it",
    ),
    "an empty disk": (
        {f"{WEIGHTS}/volume/snapshot": REMOVED},
        "storage[weights].volume.snapshot: not set, and a disk that is made of nothing stays empty: many nodes read it "
        "and none writes; write snapshot or image, or name disks in existing",
    ),
    "a bucket larger than the team's regions": (
        {"teams/0/allowedRegions": ["us-central1"], f"{DATASETS}/volume/location": "US"},
        "storage[datasets].volume.location: in US, but data of team research stays in us-central1; write one of these "
        "regions",
    ),
    "a server that exists outside of the team's regions": (
        {
            "teams/0/allowedRegions": ["us-central1"],
            f"{HOME}/volume/existing": {"us-central1": SERVER | {"location": "europe-west4-a"}},
        },
        "storage[home].clusters: in europe-west4, but data of team research stays in us-central1; name clusters there, "
        "or allow the region",
    ),
    "a snapshot outside of the team's regions": (
        {
            "teams/0/allowedRegions": ["us-central1"],
            f"{WEIGHTS}/volume/snapshot": "projects/my-gcp-project/regions/europe-west4/snapshots/gemma-3-12b",
        },
        "storage[weights].volume.snapshot: in europe-west4, but data of team research stays in us-central1; name a "
        "snapshot in one of these regions",
    ),
    "an image of a template outside of the team's regions": (
        {
            "teams/0/allowedRegions": ["us-central1"],
            "teams/0/jobTemplates": [
                {"name": "here", "image": "us-central1-docker.pkg.dev/my-gcp-project/research/train:1"},
                {"name": "there", "image": "europe-docker.pkg.dev/my-gcp-project/research/train:1"},
                {"name": "public", "image": "busybox"},
            ],
        },
        "warning: teams[research].jobTemplates[there].image: in europe, but data of team research stays in "
        "us-central1; use a repository there, or make sure that the image holds nothing of the team's",
    ),
    "a zone elsewhere": (
        {f"{SCRATCH}/volume/zones": ["us-east4-a"]},
        "storage[scratch].volume.zones[0]: is us-east4-a, but no cluster of the entry is in us-east4; use zones of "
        "us-central1",
    ),
    "fewer claims than there are": (
        {"teams/0/resourceQuota": {"persistentvolumeclaims": 3}},
        "teams[research].resourceQuota[persistentvolumeclaims]: 3, but its claims in `storage` take 4; write 4 or more",
    ),
    "a pool that is not there": (
        {f"{CHECKPOINTS}/volume/nodePool": "h200"},
        "storage[checkpoints].volume.nodePool: there is no node pool h200; did you mean h100?",
    ),
    "a version without the driver": (
        {"clusters/0/minMasterVersion": "1.33.1"},
        "warning: clusters[batch].minMasterVersion: 1.33.1, with which a new cluster begins, but storage scratch needs "
        "1.33.2-gke.1111000; write that or a newer one",
    ),
    "a disk for machines that take none": (
        {
            "nodePools/0": {"name": "l4", "machineType": "n1-standard-96", "nodeCount": 1},
            "clusterQueues/0/resourceGroups/0": {
                "coveredResources": ["cpu", "memory"],
                "flavors": [{"name": "l4", "resources": [quota("cpu", 90), quota("memory", "300Gi")]}],
            },
            "teams/0/localQueues": [{"name": "l4", "clusterQueue": "l4"}],
            "localQueues": [{"name": "h100", "namespace": "default", "clusterQueue": "h100"}],
        },
        "warning: storage[weights].volume.type: hyperdiskMl, which cannot be attached to the machines of its teams on "
        "batch, n1-standard-96; leave batch out of clusters, or use other machines or another kind of storage",
    ),
    "disks where no node of its teams is": (
        {f"{WEIGHTS}/volume/zones": ["us-central1-f"]},
        "warning: storage[weights].volume.zones: none is in us-central1-a, us-central1-c, where the nodes of its teams "
        "are on batch: no pod with it starts; name one of these",
    ),
    "a team that is not there": (
        {f"{HOME}/teams": ["vision"]},
        "storage[home].teams[0]: there is no team vision; use one of the teams: research",
    ),
}


SIZES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "Lustre only grows": (
        {f"{SCRATCH}/volume/capacityGib": 18000},
        {f"{SCRATCH}/volume/capacityGib": 9000},
        "storage[scratch].volume.capacityGib: 18000 -> 9000: `pulumi up` fails, since it can only grow; make another "
        "entry, copy what is in it, and remove this one",
    ),
    "Lustre grows within the range that it was made in": (
        {},
        {f"{SCRATCH}/volume/capacityGib": 1584000},
        "storage[scratch].volume.capacityGib: 9000 -> 1584000: `pulumi up` fails, since an instance stays in the range "
        "of sizes that it was made in, 9000 to 1530000 or 1584000 to 10008000",
    ),
    "so does Filestore": (
        {},
        {f"{HOME}/volume/capacityGib": 10240},
        "storage[home].volume.capacityGib: 1024 -> 10240: `pulumi up` fails, since an instance stays in the range of "
        "sizes that it was made in, 1024 to 9984 or 10240 to 102400",
    ),
    "a basic share only grows": (
        {f"{HOME}/volume/tier": "BASIC_HDD", f"{HOME}/volume/capacityGib": 2560},
        {f"{HOME}/volume/tier": "BASIC_HDD", f"{HOME}/volume/capacityGib": 1024},
        "storage[home].volume.capacityGib: 2560 -> 1024: `pulumi up` fails, since it can only grow; make another "
        "entry, copy what is in it, and remove this one",
    ),
    "a smaller disk is another one": (
        {f"{WEIGHTS}/volume/zones": ["us-central1-a"]},
        {f"{WEIGHTS}/volume/zones": ["us-central1-a"], f"{WEIGHTS}/volume/capacityGib": 50},
        "storage[weights]: disk weights in us-central1-a is deleted and made again, with all that is in it",
    ),
}


def consequences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [str(item) for item in compare_fleets(fleet(before), fleet(after)) if item.area == "consequences"]


@pytest.mark.parametrize("case", SIZES)
def test_sizes_that_google_does_not_give_what_is_there(case: str) -> None:
    before, after, expected = SIZES[case]
    assert consequences(before, after) == [expected]


@pytest.mark.parametrize(("entry", "size"), [(SCRATCH, 18000), (HOME, 2048), (WEIGHTS, 200)])
def test_what_grows_within_its_range_is_changed_in_place(entry: str, size: int) -> None:
    assert consequences({}, {f"{entry}/volume/capacityGib": size}) == []


def test_a_zonal_share_shrinks() -> None:
    assert consequences({f"{HOME}/volume/capacityGib": 2048}, {f"{HOME}/volume/capacityGib": 1024}) == []


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    changes, expected = REFUSED[case]
    assert problems(changed(DATA, changes)) == [expected]


def test_an_instance_is_paid_for_where_its_teams_run_nothing() -> None:
    changes = {"teams/0/localQueues": [{"name": "l4", "clusterQueue": "elsewhere"}]}
    said = (
        "storage[scratch].clusters: no queue of its teams is on batch, where data-scratch would be paid for; name the"
    )
    assert [text for text in problems(changed(DATA, changes)) if said in text]


def test_data_stays_in_the_regions_of_its_team() -> None:
    result = [item for item in problems(changed(DATA, IN_EUROPE)) if item.startswith("storage[")]
    assert len(result) == 5
    assert result[0] == (
        "storage[datasets].clusters: in us-central1, but data of team research stays in europe-west4; name clusters "
        "there, or allow the region"
    )


def test_a_bucket_needs_an_account_of_the_team() -> None:
    result = problems(changed(DATA, {"teams/0/googleServiceAccount": REMOVED}))
    assert result[0].startswith("teams[research].googleServiceAccount: not set, so its jobs cannot reach a bucket")


def test_checkpoints_are_not_for_autopilot() -> None:
    result = problems(changed(DATA, {"clusters/0/mode": "Autopilot"}))
    assert any("multiTierCheckpoints, which Autopilot does not have" in item for item in result)


def differences(changes: dict[str, Any]) -> list[str]:
    return [str(item) for item in compare_fleets(fleet(), fleet(changes)) if item.path.startswith("storage[")]


def test_diff_says_what_is_lost() -> None:
    assert "instance home in us-central1-a is deleted and made again" in " ".join(
        str(item) for item in compare_fleets(fleet(), fleet({f"{HOME}/volume/tier": "BASIC_HDD"}))
    )


def test_a_file_system_grows_in_place() -> None:
    assert not any("deleted" in item for item in differences({f"{SCRATCH}/volume/capacityGib": 18000}))


def test_file_servers_are_paid_whether_they_are_used_or_not() -> None:
    lines = {item.name: item for item in cost_of(fleet(), list_prices()).lines if item.kind == "storage"}
    assert lines["home"].always == pytest.approx(1024 * 0.25 / 730)
    assert lines["scratch"].missing == ("lustre-1000 in us-central1, onDemand",)


JOBS: dict[str, tuple[str, str, str, str]] = {
    "without the annotation": (
        "finetune.yaml",
        'gke-gcsfuse/volumes: "true"',
        'a/b: "true"',
        "mounts a bucket without the annotation gke-gcsfuse/volumes",
    ),
    "as another account": (
        "finetune.yaml",
        "serviceAccountName: research",
        "serviceAccountName: default",
        "mounts a bucket as service account default, which is not that of its team",
    ),
    "a claim that is not there": (
        "mnist.yaml",
        "claimName: home",
        "claimName: homes",
        "mounts claim homes, which the file does not have in namespace research",
    ),
}


@pytest.mark.parametrize("case", JOBS)
def test_check_says_what_a_job_cannot_mount(case: str, tmp_path: Path) -> None:
    name, old, new, expected = JOBS[case]
    job = tmp_path / "job.yaml"
    job.write_text((FOLDER / name).read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(FLEET), "--jobs", str(job)])
    assert expected in result.output.replace("\n  ", " ")


def test_images_of_other_regions_are_named(tmp_path: Path) -> None:
    job, file = tmp_path / "job.yaml", tmp_path / "fleet.yaml"
    text = (FOLDER / "mnist.yaml").read_text(encoding="utf-8")
    image = "europe-docker.pkg.dev/my-gcp-project/images/mnist:1"
    job.write_text(text.replace("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", image), encoding="utf-8")
    file.write_text(yaml.safe_dump(changed(DATA, {"teams/0/allowedRegions": ["us-central1"]})), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(file), "--jobs", str(job)])
    assert "has an image from europe" in result.output.replace("\n  ", " ")


@pytest.mark.parametrize("job", ["finetune.yaml", "mnist.yaml"])
def test_the_jobs_run(job: str) -> None:
    checked = CliRunner().invoke(app, ["check", str(FLEET), "--jobs", str(FOLDER / job)])
    assert checked.exit_code == 0, checked.output
    result = CliRunner().invoke(app, ["simulate", "fleet", str(FLEET), "--jobs", str(FOLDER / job)])
    assert "Finished" in result.output


def test_a_job_that_mounts_a_bucket_by_its_claim_says_so_to_gke() -> None:
    expected = JobRequest(name="train", queue="l4", image="i:1", gpus=2, mounts={"/datasets": "datasets"})
    job = job_for(fleet(), expected)
    assert job["spec"]["template"]["metadata"]["annotations"] == {"gke-gcsfuse/volumes": "true"}
