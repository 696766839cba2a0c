"""The example of networks for GPUs: what the fleet makes of them, and what pods need to use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import problems

from kueue_admission.kernel import SpecError
from kueue_admission.simulate.documents import Document
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import FleetSpec, check_fleet, parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.google.resources import resources_on
from kueue_fleet.objects import objects_on
from kueue_fleet.objects.gpu_direct import INJECTOR

FOLDER = Path(__file__).parents[2] / "examples" / "gpu-networks"
FAMILIES = ("h100", "h100-mega", "h200", "b200")
MINE = [{"network": f"gpu-{number}", "subnetwork": f"gpu-{number}-us-central1"} for number in range(1, 5)]


def data() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((FOLDER / "fleet.yaml").read_text())
    return read


def fleet(**h100: Any) -> FleetSpec:
    """The example, with other fields of its first pool."""
    result = data()
    result["nodePools"][0] |= h100
    return parse_fleet(result)


def jobs() -> dict[str, dict[str, Any]]:
    """The example's jobs by the queue that they are for, and what is beside them by its kind."""
    result = yaml.safe_load_all((FOLDER / "jobs.yaml").read_text())
    return {job["metadata"].get("labels", {}).get("kueue.x-k8s.io/queue-name", job["kind"]): job for job in result}


def documents(*names: str) -> list[Document]:
    """Some of `jobs`."""
    result = jobs()
    return [Document("", result[name]) for name in names]


def template_of(job: Mapping[str, Any]) -> dict[str, Any]:
    pods: dict[str, Any] = job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return pods


def cloud(spec: FleetSpec, kind: str) -> dict[str, dict[str, Any]]:
    """The properties of resources of a kind, by their name in Google Cloud."""
    result = [entry for entry in resources_on(spec) if entry.type.endswith(f":{kind}") and not entry.read]
    return {str(item.properties["name"]): dict(item.properties) for item in result}


def inside(spec: FleetSpec, kind: str) -> dict[str, dict[str, Any]]:
    objects = [item.manifest for item in objects_on(spec, "gpus")]
    return {entry["metadata"]["name"]: dict(entry) for entry in objects if entry["kind"] == kind}


def test_each_card_of_a_pool_is_in_a_network_of_its_own() -> None:
    pools = cloud(fleet(), "NodePool")
    cards = {name: pools[name]["networkConfig"]["additionalNodeNetworkConfigs"] for name in FAMILIES}
    assert {name: len(item) for name, item in cards.items()} == {"h100": 4, "h100-mega": 8, "h200": 9, "b200": 9}
    assert cards["h200"][:2] == [
        {"network": "gpus-gvnic-1", "subnetwork": "gpus-gvnic-1"},
        {"network": "gpus-rdma", "subnetwork": "gpus-rdma-0"},
    ]


def test_networks_have_the_mtu_and_the_profile_of_their_machines() -> None:
    networks = cloud(fleet(), "Network")
    assert len(networks) == 1 + 8 + 2, "the fleet's own, those of A3 High and Mega, and those of RDMA"
    assert networks["gpus-vpc1"]["mtu"] == 8244
    rdma = networks["gpus-rdma"]
    profile = "projects/my-gcp-project/global/networkProfiles/us-central1-b-vpc-roce"
    assert (rdma["mtu"], rdma["networkProfile"]) == (8896, profile)


def test_ranges_of_the_networks_are_apart() -> None:
    ranges = [item["ipCidrRange"] for item in cloud(fleet(), "Subnetwork").values()]
    assert len(set(ranges)) == len(ranges) == 1 + 8 + 9


def test_subnets_without_rdma_have_what_policies_ask_of_subnets() -> None:
    subnets = cloud(fleet(), "Subnetwork")
    plain = {name for name, item in subnets.items() if item.get("privateIpGoogleAccess") and item.get("logConfig")}
    assert {*subnets} - plain == {f"gpus-rdma-{number}" for number in range(8)}


def test_pods_find_each_network_by_a_name() -> None:
    assert {*inside(fleet(), "Network")} == {
        *(f"vpc{number}" for number in range(1, 9)),
        "gvnic-1",
        *(f"rdma-{number}" for number in range(8)),
    }
    assert inside(fleet(), "GKENetworkParamSet")["rdma-7"]["spec"] == {
        "vpc": "gpus-rdma",
        "vpcSubnet": "gpus-rdma-7",
        "deviceMode": "RDMA",
    }


def test_networks_that_exist_are_taken_and_nothing_is_made() -> None:
    result = data()
    result["nodePools"] = [{**result["nodePools"][0], "acceleratorNetworks": {"existing": MINE}}]
    for section in ("flavors", "clusterQueues"):
        result[section] = result[section][:1]
    result["teams"][0]["localQueues"] = result["teams"][0]["localQueues"][:1]
    spec = parse_fleet(result)
    assert [*cloud(spec, "Network")] == ["gpu-networks"]
    assert cloud(spec, "NodePool")["h100"]["networkConfig"]["additionalNodeNetworkConfigs"] == MINE
    assert inside(spec, "GKENetworkParamSet")["vpc1"]["spec"]["vpc"] == "gpu-1"


def test_each_plugin_is_put_on_the_nodes_of_its_pools() -> None:
    def pools(daemon: dict[str, Any]) -> list[str]:
        terms = daemon["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        required = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        values: list[str] = required[0]["matchExpressions"][0]["values"]
        return values

    assert {name: pools(item) for name, item in inside(fleet(), "DaemonSet").items()} == {
        "nccl-tcpx-installer": ["h100"],
        "nccl-tcpxo-installer": ["h100-mega"],
        "nccl-rdma-installer": ["h200", "b200"],
        "nccl-rdma-installer-arm64": ["gb200"],
        INJECTOR: ["h100", "h100-mega"],
    }


def test_a_plugin_of_ones_own_is_left_alone() -> None:
    assert "nccl-tcpx-installer" not in inside(fleet(ncclPlugin=False), "DaemonSet")


def test_the_jobs_lack_nothing() -> None:
    result = check_manifests(fleet(), documents(*jobs()))
    assert (result.problems, result.warnings) == ([], [])


def _without_annotations(pods: dict[str, Any]) -> None:
    pods["metadata"]["annotations"] = {}


def _without_networks(pods: dict[str, Any]) -> None:
    pods["metadata"]["annotations"]["networking.gke.io/interfaces"] = "[]"


def _without_volumes(pods: dict[str, Any]) -> None:
    pods["spec"]["volumes"] = [item for item in pods["spec"]["volumes"] if item["name"] != "nvidia"]
    for container in (*pods["spec"]["containers"], *pods["spec"]["initContainers"]):
        container["volumeMounts"] = [entry for entry in container["volumeMounts"] if entry["name"] != "nvidia"]


def _without_daemon(pods: dict[str, Any]) -> None:
    del pods["spec"]["initContainers"]


def _without_variables(pods: dict[str, Any]) -> None:
    for container in (*pods["spec"]["containers"], *pods["spec"]["initContainers"]):
        container["env"] = []


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        (_without_annotations, "annotation networking.gke.io/default-interface"),
        (_without_networks, "default, vpc1, vpc2, vpc3, vpc4 in annotation networking.gke.io/interfaces"),
        (_without_volumes, "a volume of host path /home/kubernetes/bin/nvidia/lib64"),
        (_without_daemon, "container tcpx-daemon"),
        (_without_variables, "variable LD_LIBRARY_PATH"),
    ],
)
def test_what_a_job_lacks_is_named(change: Callable[[dict[str, Any]], None], lacks: str) -> None:
    job = jobs()["h100"]
    change(template_of(job))
    [warning] = check_manifests(fleet(), [Document("", job)]).warnings
    assert f"it lacks {lacks}" in warning.wrong


def _one_node(made: dict[str, Any]) -> None:
    made["clusters"][0]["multiNetworking"] = False


def _two_zones(made: dict[str, Any]) -> None:
    made["nodePools"][3]["zones"] = ["us-central1-c"]


def _overlapping(made: dict[str, Any]) -> None:
    made["network"] = {"ranges": {"us-central1": "192.168.0.0/20"}}


def _shared(made: dict[str, Any]) -> None:
    subnet = {"name": "a", "podRangeName": "p"}
    made["network"] = {"existing": {"name": "vpc", "project": "host-project", "subnets": {"us-central1": subnet}}}


def _no_plugin(made: dict[str, Any]) -> None:
    made["nodePools"].append({"name": "l4", "machineType": "g2-standard-24", "nodeCount": 1, "ncclPlugin": True})


def _no_cards(made: dict[str, Any]) -> None:
    made["nodePools"].append({"name": "l4", "machineType": "g2-standard-24", "nodeCount": 1, "acceleratorNetworks": {}})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_no_cards, "KF672"),
        (_one_node, "KF669"),
        (_two_zones, "KF670"),
        (_overlapping, "KF606"),
        (_shared, "KF671"),
        (_no_plugin, "KF672"),
    ],
)
def test_what_cannot_be_is_refused(change: Callable[[dict[str, Any]], None], code: str) -> None:
    result = data()
    change(result)
    with pytest.raises(SpecError) as refused:
        parse_fleet(result)
    assert code in {problem.rule.code for problem in refused.value.problems}


TCP = [{"network": f"net-{number}", "subnetwork": f"subnet-{number}"} for number in range(4)]
RDMA = [TCP[0], *({"network": "rdma", "subnetwork": f"rdma-{number}"} for number in range(8))]


@pytest.mark.parametrize(
    ("pool", "networks", "wrong"),
    [
        (0, [*TCP[:3], TCP[0]], ["[3].network: net-0 is another card's too; name a network for each"]),
        (0, [{**TCP[0], "network": "gpu-networks"}, *TCP[1:]], ["[0].network: gpu-networks is that of the nodes"]),
        (2, [{**TCP[0], "network": "rdma"}, *RDMA[1:]], [f"[{number}].network: rdma is" for number in range(1, 9)]),
        (2, [*RDMA[:8], RDMA[1]], ["[8].subnetwork: rdma-0 is another card's too; name a subnet for each"]),
        (2, RDMA, []),
        (0, TCP, []),
    ],
)
def test_each_card_has_a_network_of_its_own(pool: int, networks: list[dict[str, str]], wrong: list[str]) -> None:
    result = data()
    at = f"nodePools[{result['nodePools'][pool]['name']}].acceleratorNetworks.existing"
    result["nodePools"][pool]["acceleratorNetworks"] = {"existing": networks}
    output = [text.partition("existing")[2] for text in problems(result) if text.startswith(at)]
    assert len(output) == len(wrong)
    assert all(text.startswith(begin) for text, begin in zip(output, wrong, strict=True))


def test_a_team_whose_pods_may_not_mount_the_plugin_is_warned() -> None:
    result = data()
    result["teams"][0]["podSecurity"] = "baseline"
    assert "KF830" in {problem.rule.code for problem in check_fleet(parse_fleet(result))}


def claiming(*, mapped: bool = True, covered: bool = True) -> FleetSpec:
    """The example, whose team has a template for the cards of A4X, by DRANET."""
    result = data()
    if not mapped:
        del result["kueue"], result["nvidiaDraDriver"]
    if not covered:
        [group] = result["clusterQueues"][-1]["resourceGroups"]
        group["coveredResources"].remove("example.com/rdma")
        [quotas] = group["flavors"]
        quotas["resources"] = [item for item in quotas["resources"] if item["name"] != "example.com/rdma"]
    return parse_fleet(result)


def test_a_template_claims_a_number_of_devices() -> None:
    assert inside(claiming(), "ResourceClaimTemplate")["rdma"]["spec"]["spec"]["devices"]["requests"] == [
        {
            "name": "rdma",
            "exactly": {"deviceClassName": "mrdma.google.com", "allocationMode": "ExactCount", "count": 4},
        }
    ]


@pytest.mark.parametrize(
    ("fleet_", "wrong"),
    [
        (claiming(mapped=False, covered=False), ["is in no deviceClassMappings"]),
        (claiming(covered=False), ["counts as example.com/rdma, for which no queue"]),
        (claiming(), []),
    ],
)
def test_what_kueue_does_not_count_is_warned_of(fleet_: FleetSpec, wrong: list[str]) -> None:
    result = [problem.wrong for problem in check_fleet(fleet_) if problem.rule.code == "KF831"]
    assert len(result) == len(wrong)
    assert all(text in item for text, item in zip(wrong, result, strict=True))


def test_claims_count_against_quota() -> None:
    """A pod claims 4 of 8 devices."""

    def warnings(pods: int) -> str:
        job = jobs()["gb200"]
        spec = job["spec"]["replicatedJobs"][0]["template"]["spec"]
        spec |= {"parallelism": pods, "completions": pods}
        container = template_of(job)["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "1"}, "claims": [{"name": "rdma"}]}
        template_of(job)["spec"]["resourceClaims"].pop()
        return str([item.wrong for item in check_manifests(claiming(), [Document("", job)]).problems])

    assert warnings(2) == "[]"
    assert "example.com/rdma" in warnings(3)


def with_pods(count: int) -> list[Document]:
    """The job on A4X with this many pods of little else than a channel, and its domain."""
    domain, job = documents("ComputeDomain", "gb200")
    spec = job.data["spec"]["replicatedJobs"][0]["template"]["spec"]
    spec |= {"parallelism": count, "completions": count}
    template = spec["template"]["spec"]
    template["resourceClaims"] = [item for item in template["resourceClaims"] if item["name"] == "nvlink"]
    template["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "claims": [{"name": "nvlink"}]}
    return [domain, job]


def test_a_channel_of_a_domain_counts_once_for_each_pod() -> None:
    assert check_manifests(fleet(), with_pods(2)).problems == []
    [problem] = check_manifests(fleet(), with_pods(3)).problems
    assert "example.com/nvlink" in problem.wrong


def test_a_domain_needs_the_driver_and_one_cluster() -> None:
    result = data()
    del result["nvidiaDraDriver"]
    [problem] = check_manifests(parse_fleet(result), documents("ComputeDomain", "gb200")).problems
    assert (problem.path, "write nvidiaDraDriver: {} in the fleet") == ("ComputeDomain research/nccl-a4x", problem.fix)
    result = data()
    result["clusters"] = [
        {"name": "manager", "role": "manager", "region": "us-central1"},
        {**result["clusters"][0], "role": "worker"},
    ]
    result["multiKueue"] = {"credentials": {"type": "ServiceAccountToken", "rotation": "1", "rotateBy": "2027-02-01"}}
    results = check_manifests(parse_fleet(result), documents("ComputeDomain", "gb200")).problems
    assert ["on manager, where jobs are submitted" in item.wrong for item in results] == [True]


@pytest.mark.parametrize("channel", [None, {}, {"resourceClaimTemplate": []}, {"resourceClaimTemplate": {"name": ""}}])
def test_a_domain_names_its_claim_template(channel: object) -> None:
    domain, job = documents("ComputeDomain", "gb200")
    domain.data["spec"]["channel"] = channel
    [problem] = check_manifests(fleet(), [domain, job]).problems
    assert problem.path == "ComputeDomain research/nccl-a4x.spec.channel.resourceClaimTemplate.name"


def test_claims_without_their_domain_are_named() -> None:
    """Others may have made it, so that the job is no mistake."""
    result = check_manifests(fleet(), documents("gb200"))
    assert result.problems == []
    [warning] = result.warnings
    why = "whether it starts is not known: there is no ResourceClaimTemplate research/nccl-a4x-channel"
    assert (why in warning.wrong, warning.rule.code) == (True, "KF907")


def test_machines_of_a_rack_without_a_domain_are_warned_of() -> None:
    [job] = documents("gb200")
    pods = template_of(job.data)["spec"]
    pods["resourceClaims"] = pods["resourceClaims"][:1]
    pods["containers"][0]["resources"]["claims"] = [{"name": "rdma"}]
    [warning] = check_manifests(fleet(), [job]).warnings
    assert "is in no ComputeDomain" in warning.wrong


def test_a_channel_is_on_machines_of_a4x_alone() -> None:
    domain, job = documents("ComputeDomain", "h200")
    template_of(job.data)["spec"]["resourceClaims"] = [
        {"name": "nvlink", "resourceClaimTemplateName": "nccl-a4x-channel"}
    ]
    result = check_manifests(fleet(), [domain, job]).problems
    assert ["which only nodes of A4X have" in item.wrong for item in result] == [True]


SECTIONS = ("nodePools", "flavors", "clusterQueues")
LABEL = "gke-no-default-nvidia-gpu-device-plugin"


def claimed(driver: str, **others: Any) -> dict[str, Any]:
    """The example with a pool whose GPUs pods claim."""
    result = data()
    accelerator = {"type": "nvidia-l4", "count": 2, "driverVersion": driver}
    pool = {"name": "l4", "machineType": "g2-standard-24", "nodeCount": 1, "accelerator": accelerator}
    result["nodePools"].append({**pool, "labels": {LABEL: "true"}})
    return result | others


def test_gpus_are_claimed_on_all_nodes_of_the_driver_or_on_none() -> None:
    with pytest.raises(SpecError) as refused:
        parse_fleet(claimed("DEFAULT"))
    results = [problem.path for problem in refused.value.problems if problem.rule.code == "KF841"]
    assert results == ["nodePools[gb200].labels", "nodePools[l4].accelerator.driverVersion"]
    result = claimed("INSTALLATION_DISABLED")
    result["nodePools"][4]["labels"][LABEL] = "true"
    result["nodePools"][4]["accelerator"] = {
        "type": "nvidia-gb200",
        "count": 4,
        "driverVersion": "INSTALLATION_DISABLED",
    }
    spec = parse_fleet(result)
    assert spec.nvidia_dra_driver is not None
    values = spec.nvidia_dra_driver.helm_values(spec.dra_pools_on("gpus"))
    assert values["resources"] == {"gpus": {"enabled": True}, "computeDomains": {"enabled": True}}


def test_a_driver_without_nodes_or_a_mapping_or_before_dra_is_named() -> None:
    result = data()
    result["clusters"][0]["minMasterVersion"] = "1.33"
    result["kueue"]["configuration"]["resources"]["deviceClassMappings"].pop()
    codes = {problem.rule.code: problem.wrong for problem in check_fleet(parse_fleet(result))}
    assert "nvidiaDraDriver needs 1.34" in codes["KF617"]
    assert "compute-domain-default-channel.nvidia.com is in no deviceClassMappings" in codes["KF831"]
    result["nodePools"], result["flavors"], result["clusterQueues"] = (result[name][:4] for name in SECTIONS)
    result["teams"][0]["localQueues"].pop()
    codes = {problem.rule.code: problem.wrong for problem in check_fleet(parse_fleet(result))}
    assert "no node pool is of A4X" in codes["KF525"]


def test_diff_says_that_claims_are_not_served() -> None:
    result = data()
    del result["nvidiaDraDriver"]
    results = " ".join(str(item) for item in compare_fleets(fleet(), parse_fleet(result)))
    assert "NVIDIA's DRA driver is uninstalled on gpus: pods that claim its devices no longer start" in results
