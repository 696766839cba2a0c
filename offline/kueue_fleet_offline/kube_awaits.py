"""When a Kubernetes object counts as ready, and waiting for it.

The rules are the real provider's (pulumi-kubernetes provider/pkg/await, provider/pkg/metadata/overrides.go): the
`pulumi.com/waitFor` annotation where it is set, else the kind's own rule, else ready at once. Kinds for which the
real provider waits and this module has no rule are in `UNSUPPORTED`; the caller refuses them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kueue_fleet.rehearsal.standins.plugin_errors import PluginError
from kueue_fleet_offline.kube_api import KubeApi, Manifest
from kueue_fleet_offline.kube_jsonpath import parse_jsonpath_wait
from kueue_fleet_offline.kube_objects import (
    SKIP_AWAIT,
    TIMEOUT_SECONDS,
    WAIT_FOR,
    annotation,
    is_annotated_true,
    parse_wait_for,
)

DEFAULT_SECONDS: Final = 600.0
"""Longest that an object takes to be ready, where it does not say itself."""
SECRET_SECONDS: Final = 300.0
"""For a service account's token. The real provider waits 5 s only; control planes on a small machine need longer."""
ENDPOINT_POLL_SECONDS: Final = 1.0
"""How often the endpoints of a Service are looked at."""
UNSUPPORTED: Final = frozenset(
    {
        ("networking.k8s.io/v1", "Ingress"),
        ("v1", "PersistentVolume"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "ReplicationController"),
    }
)
"""Kinds on which the real provider waits and this one does not."""
LEAVES_AT_ONCE: Final = frozenset(
    {
        ("v1", "Namespace"),
        ("v1", "Pod"),
        ("v1", "ReplicationController"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "Job"),
    }
)
"""Kinds for which skipAwait also skips waiting for the deletion, as in the real provider."""

Report = Callable[[str], None]
"""Called with what is waited for."""
Rule = Callable[[Manifest], str | None]
"""Returns what is still missing, None when the object is ready. Raises NeverReadyError."""


class NeverReadyError(PluginError):
    """The object says that it will not become ready."""


class AwaitError(PluginError):
    """The object exists and did not become ready; `last` is its last known state."""

    def __init__(self, message: str, last: Manifest) -> None:
        super().__init__(message)
        self.last = last


def timeout_seconds(requested: float, inputs: Mapping[str, Any], default: float) -> float:
    """The custom timeout, else the annotation's, else `default`; in seconds."""
    if requested:
        return requested
    given = annotation(inputs, TIMEOUT_SECONDS)
    return float(given) if given.isdecimal() else default


def _condition(manifest: Manifest, kind: str) -> Manifest:
    found = (manifest.get("status") or {}).get("conditions") or []
    return next((item for item in found if isinstance(item, dict) and item.get("type", "").lower() == kind.lower()), {})


def condition_rule(expression: str) -> Rule:
    """`condition=Type` or `condition=Type=Status`, as in `kubectl wait`; a stale condition does not count."""
    kind, _, wanted = expression.removeprefix("condition=").partition("=")
    status = wanted or "True"

    def missing(manifest: Manifest) -> str | None:
        found = _condition(manifest, kind)
        generation = manifest["metadata"].get("generation", 0)
        observed = found.get("observedGeneration", (manifest.get("status") or {}).get("observedGeneration", generation))
        if found.get("status", "").lower() == status.lower() and observed >= generation:
            return None
        words = " ".join(f"{found.get(key)}" for key in ("reason", "message") if found.get(key))
        state = f" (now {found['status']}: {words})" if found else ""
        return f'Waiting for condition "{kind}={status}"{state}'

    return missing


def jsonpath_rule(expression: str) -> Rule:
    """`jsonpath={.path}=value`, as in `kubectl wait`."""
    wait = parse_jsonpath_wait(expression)
    return lambda manifest: None if wait.is_met(manifest) else f"Waiting for {expression}"


def all_rules(rules: list[Rule]) -> Rule:
    """Ready when every rule is."""
    return lambda manifest: next((text for rule in rules if (text := rule(manifest)) is not None), None)


def annotated_rule(text: str) -> Rule:
    """The rule of a `pulumi.com/waitFor` annotation. Raises PluginError when it cannot be read."""
    rules = [
        jsonpath_rule(value) if value.startswith("jsonpath=") else condition_rule(value)
        for value in parse_wait_for(text)
    ]
    return rules[0] if len(rules) == 1 else all_rules(rules)


def deployment_missing(manifest: Manifest) -> str | None:
    """A Deployment is ready when the latest generation is observed, rolled out and available.

    Raises NeverReadyError where it made no progress in time.
    """
    status, replicas = manifest.get("status") or {}, manifest["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < manifest["metadata"]["generation"]:
        return "Waiting for the Deployment to be observed"
    progressing = _condition(manifest, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        raise NeverReadyError(f"the Deployment made no progress in time: {progressing.get('message')}")
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if updated < replicas or available < replicas or status.get("replicas", 0) > updated:
        trouble = _condition(manifest, "ReplicaFailure") or _condition(manifest, "Available")
        detail = f": {trouble['message']}" if trouble.get("message") else ""
        return f"Waiting for app ReplicaSet to be available ({available}/{replicas} Pods available){detail}"
    return None


def stateful_set_missing(manifest: Manifest) -> str | None:
    """A StatefulSet is ready when all replicas of the current revision are ready."""
    status, replicas = manifest.get("status") or {}, manifest["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < manifest["metadata"]["generation"]:
        return "Waiting for the StatefulSet to be observed"
    ready = status.get("readyReplicas", 0)
    if ready < replicas or status.get("updatedReplicas", replicas) < replicas:
        return f"Waiting for StatefulSet update ({ready}/{replicas} Pods ready)"
    return None


def daemon_set_missing(manifest: Manifest) -> str | None:
    """A DaemonSet is ready when every scheduled node runs the current Pod."""
    status = manifest.get("status") or {}
    if status.get("observedGeneration", 0) < manifest["metadata"]["generation"]:
        return "Waiting for the DaemonSet to be observed"
    wanted = status.get("desiredNumberScheduled", 0)
    if min(status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)) < wanted:
        return f"Waiting for DaemonSet ({status.get('numberAvailable', 0)}/{wanted} Pods available)"
    return None


def job_missing(manifest: Manifest) -> str | None:
    """A Job is ready when it has completed. Raises NeverReadyError where it failed."""
    failed = _condition(manifest, "Failed")
    if failed.get("status") == "True":
        raise NeverReadyError(f"the Job failed: {failed.get('reason')}: {failed.get('message')}")
    return None if _condition(manifest, "Complete").get("status") == "True" else "Waiting for Job to complete"


def pod_missing(manifest: Manifest) -> str | None:
    """A Pod is ready when it is Ready or has succeeded. Raises NeverReadyError where it failed."""
    phase = (manifest.get("status") or {}).get("phase")
    if phase == "Failed":
        raise NeverReadyError(f"the Pod failed: {(manifest['status'].get('message') or '')}")
    if phase == "Succeeded" or _condition(manifest, "Ready").get("status") == "True":
        return None
    return f"Waiting for Pod to be ready ({phase})"


def resource_quota_missing(manifest: Manifest) -> str | None:
    """A ResourceQuota is ready when its limits are in its status."""
    wanted = manifest["spec"].get("hard")
    return None if (manifest.get("status") or {}).get("hard") == wanted else "Waiting for the quota to be in force"


def secret_missing(manifest: Manifest) -> str | None:
    """A service account's token Secret is ready when it has data; every other Secret at once."""
    if manifest.get("type") != "kubernetes.io/service-account-token" or manifest.get("data"):
        return None
    return "Waiting for the service account's token"


RULES: Final[Mapping[tuple[str, str], Rule]] = {
    ("apps/v1", "Deployment"): deployment_missing,
    ("apps/v1", "StatefulSet"): stateful_set_missing,
    ("apps/v1", "DaemonSet"): daemon_set_missing,
    ("batch/v1", "Job"): job_missing,
    ("v1", "Pod"): pod_missing,
    ("v1", "ResourceQuota"): resource_quota_missing,
    ("v1", "Secret"): secret_missing,
}
"""When an object is ready, by API group and kind."""


@dataclass(frozen=True)
class Waiter:
    """Waits for objects on one API server; `stop` ends every wait."""

    api: KubeApi
    stop: threading.Event

    def until_ready(self, live: Manifest, inputs: Manifest, requested_seconds: float, report: Report) -> Manifest:
        """The object once it is ready. Raises AwaitError when it is not in time, or says that it never will be."""
        if is_annotated_true(inputs, SKIP_AWAIT):
            return live
        kind = (live["apiVersion"], live["kind"])
        if text := annotation(inputs, WAIT_FOR):
            rule: Rule | None = annotated_rule(text)
        elif kind == ("v1", "Service"):
            return self._until_service_ready(live, inputs, requested_seconds, report)
        else:
            rule = RULES.get(kind)
        if rule is None or rule(live) is None:
            return live
        default = SECRET_SECONDS if kind == ("v1", "Secret") else DEFAULT_SECONDS
        seconds = timeout_seconds(requested_seconds, inputs, default)
        return self._until(rule, live, seconds, report)

    def _until(self, rule: Rule, live: Manifest, seconds: float, report: Report) -> Manifest:
        last, text = live, ""
        for state in self.api.watch(live, time.monotonic() + seconds, self.stop):
            if state is None:
                raise AwaitError(f"{_title(live)} was deleted while it was waited for", last)
            last = state
            try:
                now = rule(state)
            except NeverReadyError as error:
                raise AwaitError(str(error), last) from error
            if now is None:
                return state
            if now != text:
                text = now
                report(text)
        if self.stop.is_set():
            raise AwaitError(f"waiting for {_title(live)} was cancelled", last)
        raise AwaitError(f"timed out after {seconds:g} s waiting for {_title(live)} to be ready: {text}", last)

    def _until_service_ready(self, live: Manifest, inputs: Manifest, requested: float, report: Report) -> Manifest:
        spec = live["spec"]
        seconds = timeout_seconds(requested, inputs, DEFAULT_SECONDS)
        if spec.get("type") == "LoadBalancer":
            return self._until(_load_balancer_missing, live, seconds, report)
        if spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None" or not spec.get("selector"):
            return live
        metadata, deadline = live["metadata"], time.monotonic() + seconds
        selector = f"kubernetes.io/service-name={metadata['name']}"
        report("Finding Pods to direct traffic to")
        while time.monotonic() < deadline and not self.stop.is_set():
            slices = self.api.list(
                "discovery.k8s.io/v1", "EndpointSlice", metadata["namespace"], label_selector=selector
            )
            endpoints = [endpoint for item in slices for endpoint in item.get("endpoints") or []]
            if any((endpoint.get("conditions") or {}).get("ready") for endpoint in endpoints):
                return self.api.get(live)
            self.stop.wait(ENDPOINT_POLL_SECONDS)
        raise AwaitError(
            f"{_title(live)} does not target any Pods. Selected Pods may not be ready, or field '.spec.selector' may "
            "not match labels on any Pods",
            live,
        )

    def until_gone(self, live: Manifest, inputs: Manifest, requested_seconds: float, report: Report) -> None:
        """Returns once the object does not exist any more. Raises AwaitError when it still does in the end."""
        kind = (live["apiVersion"], live["kind"])
        if is_annotated_true(inputs, SKIP_AWAIT) and kind in LEAVES_AT_ONCE:
            return
        seconds = timeout_seconds(requested_seconds, inputs, DEFAULT_SECONDS)
        last, uid = live, live["metadata"].get("uid")
        for state in self.api.watch(live, time.monotonic() + seconds, self.stop):
            if state is None or (uid and state["metadata"]["uid"] != uid):
                return
            last = state
            if finalizers := state["metadata"].get("finalizers"):
                report(f"Waiting for deletion (finalizers: {', '.join(finalizers)})")
        finalizers = last["metadata"].get("finalizers") or []
        held = f"; finalizers might be preventing deletion ({', '.join(finalizers)})" if finalizers else ""
        why = "was cancelled" if self.stop.is_set() else f"timed out after {seconds:g} s"
        raise AwaitError(f"waiting for the deletion of {_title(live)} {why}{held}", last)


def _title(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{manifest['kind']} {namespace}{metadata['name']}"


def _load_balancer_missing(manifest: Manifest) -> str | None:
    given = ((manifest.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    return None if given else "Waiting for the load balancer's address"
