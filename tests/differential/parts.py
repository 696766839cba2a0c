"""A scenario's objects in a control plane that others share: every name has the scenario's prefix."""

from __future__ import annotations

from typing import Any

from tests.decide import expand

Json = dict[str, Any]

DEPTHS = {"root": 0, "left": 1, "right": 1, "deep": 2}
"""Parents are there before their children, and all of them before their ClusterQueues."""
SCENARIO_LABEL = "scenario"


class Parts:
    """The objects of one scenario as they stand.

    Every ClusterQueue also needs the flavor `gate`, which does not exist before all else does: one write opens all.
    """

    def __init__(self, case: Json, prefix: str, batch: str) -> None:
        self.case = case
        self.namespace = f"{prefix}team" if case["setting"] == "limits" else "default"
        """LimitRanges need a namespace of the scenario's own."""
        self.prefix = prefix
        self.batch = batch
        self.queues = dict(case["queues"])

    @property
    def gate(self) -> str:
        """The name of the flavor that opens all queues of the batch."""
        return f"{self.batch}-gate"

    def objects(self) -> list[Json]:
        """Everything but the workloads."""
        case, prefix = self.case, self.prefix
        result = self._limits()
        result += [
            {"apiVersion": "resource.k8s.io/v1", **expand.claim_template(f"{self.namespace}/{prefix}{name}", devices)}
            for name, devices in case.get("claimTemplates", {}).items()
        ]
        for name, levels in case.get("topologies", {}).items():
            spec = {"levels": [{"nodeLabel": level} for level in levels]}
            result.append({"kind": "Topology", "metadata": {"name": prefix + name}, "spec": spec})
        for name, spec in case["flavors"].items():
            result.append(expand.flavor(prefix + name, self._flavor(spec)))
        for name, short in case["cohorts"].items():
            parent = {"parent": prefix + short["parent"]} if "parent" in short else {}
            result.append(expand.cohort(prefix + name, {**short, **parent, "groups": self._groups(short)}))
        for name in case.get("checks", ()):
            check = {"kind": "AdmissionCheck", "spec": {"controllerName": "example.com/external"}}
            result.append({**check, "metadata": {"name": prefix + name}})
        result += [self.queue(name) for name in case["queues"]]
        for name in case["localQueues"]:
            result.append(self.local_queue(name, "None"))
        return result

    def nodes(self) -> list[Json]:
        """The scenario's nodes, each with its status."""
        result = []
        for name, short in self.case.get("nodes", {}).items():
            labels = {**short["labels"], SCENARIO_LABEL: self.prefix.rstrip("-")}
            if "kubernetes.io/hostname" in labels:
                labels["kubernetes.io/hostname"] = self.prefix + name
            node = expand.node(self.prefix + name, {**short, "labels": labels})
            result.append({"apiVersion": "v1", **node})
        return result

    def _flavor(self, spec: Json) -> Json:
        if "topologyName" not in spec:
            return spec
        labels = {**spec["nodeLabels"], SCENARIO_LABEL: self.prefix.rstrip("-")}
        return {**spec, "nodeLabels": labels, "topologyName": self.prefix + spec["topologyName"]}

    def queue(self, name: str) -> Json:
        """A ClusterQueue as it is now."""
        short = self.queues[name]
        given = {**short, "groups": [*self._groups(short), {self.gate: {"example.com/gate": "0"}}]}
        if "cohortName" in short:
            given["cohortName"] = self.prefix + short["cohortName"]
        if "checks" in short:
            given["checks"] = {
                self.prefix + check: [self.prefix + flavor for flavor in flavors]
                for check, flavors in short["checks"].items()
            }
        return expand.queue(self.prefix + name, given)

    def local_queue(self, name: str, stop_policy: str) -> Json:
        """A LocalQueue."""
        spec: Json = {"clusterQueue": self.prefix + self.case["localQueues"][name], "stopPolicy": stop_policy}
        if name in self.case.get("weights", {}):
            spec["fairSharing"] = {"weight": self.case["weights"][name]}
        metadata = {"name": self.prefix + name, "namespace": self.namespace}
        return {"kind": "LocalQueue", "metadata": metadata, "spec": spec}

    def workload(self, name: str, short: Json) -> Json:
        """A workload to create."""
        key = f"{self.namespace}/{self.prefix}{name}"
        named: Json = {part: self.prefix + short[part] for part in ("queue", "replaces") if part in short}
        result = expand.workload(key, {**short, **named})
        del result["metadata"]["uid"], result["metadata"]["creationTimestamp"], result["status"]
        result["metadata"]["labels"] = {"batch": self.batch}
        for pod_set in result["spec"]["podSets"]:
            pod = pod_set["template"]["spec"]
            pod["restartPolicy"] = "Never"
            if "resourceClaims" in pod:
                name = "resourceClaimTemplateName"
                pod["resourceClaims"] = [{**claim, name: self.prefix + claim[name]} for claim in pod["resourceClaims"]]
            if "runtimeClassName" in pod:
                pod["runtimeClassName"] = self.prefix + pod["runtimeClassName"]
            for container in (*pod["containers"], *pod.get("initContainers", ())):
                container["image"] = "none"
        return result

    def _limits(self) -> list[Json]:
        """The scenario's namespace, where it has one, and what adds to the requests of pods."""
        if self.namespace == "default":
            return []
        result = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}]
        result += [
            {"apiVersion": "v1", **expand.limit_range(f"{self.namespace}/{name}", items)}
            for name, items in self.case["limitRanges"].items()
        ]
        result += [
            {"apiVersion": "node.k8s.io/v1", **expand.runtime_class(self.prefix + name, overhead)}
            for name, overhead in self.case["runtimeClasses"].items()
        ]
        return result

    def _groups(self, short: Json) -> list[Json]:
        groups = short.get("groups", ())
        return [{self.prefix + flavor: quotas for flavor, quotas in group.items()} for group in groups]
