"""Raw Kubernetes objects: what is read, what is refused, and what every message says."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_admission.decide.amounts import UNLIMITED
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.gates import Gates
from kueue_admission.decide.model import Workload
from kueue_admission.decide.pods import TopologyRequest
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.releases import release

QUOTA = {"name": "cpu", "nominalQuota": "4", "borrowingLimit": "1500m"}
GROUP = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [QUOTA]}]}


def cluster_queue(**spec: Any) -> dict[str, Any]:
    return {"kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": {"resourceGroups": [GROUP], **spec}}


def batch_job(template: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    pod = {"containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}]}
    metadata = {"name": "j", "namespace": "ns", "labels": {"kueue.x-k8s.io/queue-name": "lq"}}
    job: dict[str, Any] = {
        "kind": "Job",
        "metadata": metadata,
        "spec": {"parallelism": 3, "template": template or {"spec": pod}},
    }
    job["metadata"].update(changes.pop("metadata", {}))
    job["spec"].update(changes)
    return job


def one(*objects: dict[str, Any]) -> Workload:
    (workload,) = parse_objects(objects).workloads
    return workload


def problems(*objects: Any) -> list[str]:
    with pytest.raises(ObjectError) as caught:
        parse_objects(objects)
    return list(map(str, caught.value.problems))


class TestWhatIsRead:
    def test_amounts_are_in_the_cores_units(self) -> None:
        (queue,) = parse_objects([cluster_queue()]).objects.cluster_queues
        quota = queue.groups[0].flavors[0].quotas[0][1]
        assert (quota.nominal, quota.borrowing_limit, quota.lending_limit) == (4000, 1500, None)

    def test_a_quota_beyond_int64_is_unlimited(self) -> None:
        group = {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "1E"}]}],
        }
        (queue,) = parse_objects([cluster_queue(resourceGroups=[group])]).objects.cluster_queues
        assert queue.groups[0].flavors[0].quotas[0][1].nominal == UNLIMITED

    def test_lists_are_unpacked(self) -> None:
        wrapped = {"kind": "List", "items": [cluster_queue(), {"kind": "Namespace", "metadata": {"name": "ns"}}]}
        objects = parse_objects([wrapped]).objects
        assert [queue.name for queue in objects.cluster_queues] == ["cq"]
        assert dict(objects.namespaces)["ns"] == (("kubernetes.io/metadata.name", "ns"),)

    def test_no_namespace_selector_selects_nothing(self) -> None:
        specs: list[dict[str, Any]] = [
            {},
            {"namespaceSelector": {}},
            {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        ]
        selectors = [
            parse_objects([cluster_queue(**spec)]).objects.cluster_queues[0].namespace_selector for spec in specs
        ]
        assert selectors[0] is None
        assert [s is not None and s.matches({"a": "c"}) for s in selectors] == [False, True, False]

    def test_a_job_is_one_pod_set_with_limits_as_missing_requests(self) -> None:
        workload = one(batch_job(completions=2))
        (pods,) = workload.pod_sets
        assert (workload.key, workload.queue, pods.count) == ("ns/j", "lq", 2)
        assert dict(pods.requests) == {"cpu": 1000, "memory": 2**30}

    def test_a_job_set_has_a_pod_set_for_each_replicated_job(self) -> None:
        template = {"spec": {"parallelism": 4, "template": {"spec": {"containers": []}}}}
        job_set = {
            "kind": "JobSet",
            "metadata": {"name": "js", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
            "spec": {
                "replicatedJobs": [
                    {"name": "driver", "template": {"spec": {"template": {"spec": {}}}}},
                    {"name": "worker", "replicas": 2, "template": template},
                ]
            },
        }
        assert [(pods.name, pods.count) for pods in one(job_set).pod_sets] == [("driver", 1), ("worker", 8)]

    def test_init_containers_raise_and_sidecars_add(self) -> None:
        def container(cpu: str, **more: str) -> dict[str, Any]:
            return {"resources": {"requests": {"cpu": cpu}}, **more}

        pod = {
            "initContainers": [container("1", restartPolicy="Always"), container("5"), container("2")],
            "containers": [container("3")],
            "overhead": {"cpu": "100m"},
        }
        (pods,) = one(batch_job({"spec": pod})).pod_sets
        assert dict(pods.requests)["cpu"] == 6100

    @pytest.mark.parametrize(
        ("annotations", "wanted"),
        [
            ({"podset-required-topology": "rack"}, TopologyRequest(required="rack")),
            ({"podset-preferred-topology": "rack"}, TopologyRequest(preferred="rack")),
            ({"podset-unconstrained-topology": "true"}, TopologyRequest(unconstrained=True)),
            ({"something-else": "x"}, None),
        ],
    )
    def test_topology_annotations(self, annotations: dict[str, str], wanted: TopologyRequest | None) -> None:
        template = {
            "metadata": {"annotations": {f"kueue.x-k8s.io/{k}": v for k, v in annotations.items()}},
            "spec": {},
        }
        assert one(batch_job(template)).pod_sets[0].topology == wanted

    def test_priorities_come_from_the_workload_class_then_the_pods_then_the_default(self) -> None:
        classes = [
            {"kind": "WorkloadPriorityClass", "metadata": {"name": "w"}, "value": 7},
            {"kind": "PriorityClass", "metadata": {"name": "p"}, "value": 5},
            {"kind": "PriorityClass", "metadata": {"name": "d"}, "value": 2, "globalDefault": True},
        ]
        labels = {"kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/priority-class": "w"}
        assert one(*classes, batch_job({"spec": {"priorityClassName": "p"}}, metadata={"labels": labels})).priority == 7
        assert one(*classes, batch_job({"spec": {"priorityClassName": "p"}})).priority == 5
        assert one(*classes, batch_job()).priority == 2

    def test_pods_outside_kueue_take_room_on_their_node(self) -> None:
        node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
        spec = {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": "1500m"}}}]}
        running = {"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        result = {"kind": "Pod", "metadata": {"name": "q"}, "spec": spec, "status": {"phase": "Succeeded"}}
        (results,) = parse_objects([node, running, result]).objects.nodes
        assert dict(results.used) == {"cpu": 1500, "pods": 1}


class TestWhatIsWrong:
    def test_all_problems_are_found_at_once_with_their_paths(self) -> None:
        broken = cluster_queue(
            queueingStrategy="Fifo",
            resourceGroups=[
                {"coveredResources": ["cpu"], "flavors": [{"resources": [{"name": "cpu", "nominalQuota": "4 Gi"}]}]}
            ],
        )
        assert problems(broken, {"kind": "LocalQueue", "metadata": {"name": "lq"}, "spec": {}}) == [
            "ClusterQueue cq.spec.resourceGroups[0].flavors[0].name: is missing; add name",
            'ClusterQueue cq.spec.resourceGroups[0].flavors[0].resources[cpu].nominalQuota: "4 Gi" has a space in it; '
            "write 4Gi",
            'ClusterQueue cq.spec.queueingStrategy: "Fifo" is not allowed; use one of StrictFIFO, BestEffortFIFO',
            "LocalQueue default/lq.spec.clusterQueue: is missing; add the name of the ClusterQueue behind it",
        ]

    @pytest.mark.parametrize(
        ("thing", "message"),
        [
            ("text", "[0]: is not an object; write a Kubernetes object with apiVersion and kind"),
            ({"metadata": {}}, "[0].kind: is missing; write the kind of the object"),
            (
                cluster_queue(cohort="c"),
                "ClusterQueue cq.spec.cohort: was removed in Kueue's v1beta2; write cohortName",
            ),
            (
                batch_job(parallelism="3"),
                "Job ns/j.spec.parallelism: is the text '3', not a whole number; write a number without quotes",
            ),
            (
                batch_job(metadata={"labels": {}}),
                "Job ns/j.metadata.labels: has no kueue.x-k8s.io/queue-name; name a LocalQueue there",
            ),
            (
                batch_job({"spec": {"priorityClassName": "p"}}),
                "Job ns/j.spec.template.spec.priorityClassName: there is no PriorityClass 'p'; there are no "
                "PriorityClasses yet: add one",
            ),
            (
                batch_job(metadata={"creationTimestamp": "yesterday"}),
                "Job ns/j.metadata.creationTimestamp: 'yesterday' is not a time; write it as 2026-01-31T12:00:00Z",
            ),
            (
                batch_job({"spec": {"containers": [{"resources": {"requests": {"cpu": "-1"}}}]}}),
                "Job ns/j.spec.template.spec.containers[0].resources.requests.cpu: is -1; write 0 or more",
            ),
        ],
    )
    def test_one_message(self, thing: Any, message: str) -> None:
        assert problems(thing) == [message]

    def test_what_a_later_kueue_added_is_passed_over(self) -> None:
        (queue,) = parse_objects(
            [cluster_queue(somethingNew={"a": 1}, cohortName="Not_A_DNS_Name")]
        ).objects.cluster_queues
        assert queue.cohort == "Not_A_DNS_Name"

    def test_a_negative_quota(self) -> None:
        group = {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "f", "resources": [{**QUOTA, "nominalQuota": "-1"}]}],
        }
        assert problems(cluster_queue(resourceGroups=[group])) == [
            "ClusterQueue cq.spec.resourceGroups.flavors[f].resources[cpu].nominalQuota: is -1; write 0 or more"
        ]

    def test_an_object_twice(self) -> None:
        result = problems(cluster_queue(), cluster_queue(stopPolicy="Hold"))
        assert result == [
            "ClusterQueue cq: is listed twice, and not the same; keep one of them; of several clusters, give each by "
            "itself"
        ]
        assert len(parse_objects([cluster_queue(), cluster_queue()]).objects.cluster_queues) == 1


class TestWhatIsRefused:
    def test_a_placement_that_waits_for_a_checks_node_selector(self) -> None:
        update = {"name": "main", "nodeSelector": {"pool": "x"}}
        workload = {
            "kind": "Workload",
            "metadata": {"name": "w"},
            "spec": {"podSets": [{"name": "main", "template": {"spec": {}}}]},
            "status": {
                "admission": {
                    "clusterQueue": "cq",
                    "podSetAssignments": [{"name": "main", "delayedTopologyRequest": "Pending"}],
                },
                "admissionChecks": [{"name": "c", "state": "Ready", "podSetUpdates": [update]}],
            },
        }
        with pytest.raises(NotModelledError, match="podSetUpdates"):
            parse_objects([workload])

    @pytest.mark.parametrize(
        ("configuration", "feature"),
        [
            ({"featureGates": {"VectorizedResourceRequests": False}}, "VectorizedResourceRequests=false"),
        ],
    )
    def test_in_kueues_configuration(self, configuration: dict[str, Any], feature: str) -> None:
        with pytest.raises(NotModelledError, match=feature):
            parse_configuration(configuration)

    @pytest.mark.parametrize(
        "gate", ["ElasticJobsViaWorkloadSlicesWithTAS", "TASBalancedPlacement", "TASRespectNodeAffinityPreferred"]
    )
    def test_alpha_gates_of_topologies_before_0_19_2(self, gate: str) -> None:
        gates = {"featureGates": {gate: True}}
        parse_configuration(gates)
        with pytest.raises(NotModelledError, match=rf"{gate} before Kueue 0\.19\.2"):
            parse_configuration(gates, release("0.18.3"))


class TestConfiguration:
    def test_defaults_are_those_of_kueue(self) -> None:
        result = parse_configuration({})
        assert result.fair_sharing is None
        assert result.wait_for_pods_ready is not None
        assert result.wait_for_pods_ready.timeout == 1800
        assert result.gates == Gates()

    def test_durations_strategies_and_gates(self) -> None:
        result = parse_configuration(
            {
                "waitForPodsReady": {"timeout": "1h30m", "blockAdmission": True},
                "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]},
                "resources": {"quotaCheckStrategy": "IgnoreUndeclared", "excludeResourcePrefixes": ["x.com/"]},
                "featureGates": {"PartialAdmission": False},
            }
        )
        assert result.wait_for_pods_ready is not None
        assert (result.wait_for_pods_ready.timeout, result.wait_for_pods_ready.recovery_timeout) == (5400, 5400)
        assert result.fair_sharing == ("LessThanInitialShare",)
        assert result.ignore_undeclared_resources
        assert result.gates.partial_admission is False

    def test_pods_ready_is_off_only_by_its_gate(self) -> None:
        assert parse_configuration({"featureGates": {"DisableWaitForPodsReady": True}}).wait_for_pods_ready is None

    def test_undeclared_resources_count_without_the_gate_of_the_strategy(self) -> None:
        given = {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}, "featureGates": {"QuotaCheckStrategy": False}}
        assert not parse_configuration(given).ignore_undeclared_resources

    def test_a_timeout_of_zero_is_the_default(self) -> None:
        result = parse_configuration({"waitForPodsReady": {"timeout": "0s"}}).wait_for_pods_ready
        assert result is not None
        assert (result.timeout, result.recovery_timeout) == (1800, 1800)

    def test_an_unknown_strategy(self) -> None:
        with pytest.raises(ObjectError, match=r"fairSharing\.preemptionStrategies: 'Most' is not a valid"):
            parse_configuration({"fairSharing": {"preemptionStrategies": ["Most"]}})

    def test_a_wrong_duration(self) -> None:
        with pytest.raises(ObjectError, match=r'waitForPodsReady\.timeout: "5 minutes" is not a valid duration'):
            parse_configuration({"waitForPodsReady": {"timeout": "5 minutes"}})


def test_every_cluster_has_the_priority_classes_of_the_system() -> None:
    [result] = parse_objects([batch_job({"spec": {"priorityClassName": "system-node-critical"}})]).workloads
    assert result.priority == 2_000_001_000
