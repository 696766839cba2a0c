"""The controls of Pod Security Standards in CEL and in Python, beside those of a real API server, for drawn pods."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pytest

from kueue_admission.api.manifests import POD_SECURITY_LABEL
from kueue_fleet.objects.pod_security import annotation_controls, controls
from kueue_fleet.objects.policies import denying_policy
from one_cluster import Json, OneCluster, Refused, wait_until

STANDARDS: Final = ("baseline", "restricted")
PODS: Final = 250
_CONTAINER_CONTEXTS: Final[Sequence[tuple[str, Sequence[Any]]]] = (
    ("privileged", (False, True)),
    ("allowPrivilegeEscalation", (False, False, False, True)),
    ("runAsNonRoot", (True, True, False)),
    ("runAsUser", (1000, 0)),
    ("capabilities", ({"drop": ["ALL"]}, {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, {"add": ["CHOWN"]},
                      {"add": ["SYS_ADMIN"]}, {"drop": ["KILL"]})),
    ("seccompProfile", ({"type": "RuntimeDefault"}, {"type": "Unconfined"},
                        {"type": "Localhost", "localhostProfile": "a"})),
    ("appArmorProfile", ({"type": "RuntimeDefault"}, {"type": "Unconfined"},
                         {"type": "Localhost", "localhostProfile": "a"})),
    ("seLinuxOptions", ({"type": "container_t"}, {"type": ""}, {"level": "s0"}, {"type": "spc_t"}, {"user": "u"},
                        {"role": "r"})),
    ("procMount", ("Default", "Default", "Unmasked")),
    ("windowsOptions", ({}, {"hostProcess": False})),
)  # fmt: skip
_POD_CONTEXTS: Final[Sequence[tuple[str, Sequence[Any]]]] = (
    ("runAsNonRoot", (True, True, False)),
    ("runAsUser", (1000, 0)),
    ("seccompProfile", ({"type": "RuntimeDefault"}, {"type": "RuntimeDefault"}, {"type": "Unconfined"})),
    ("appArmorProfile", ({"type": "RuntimeDefault"}, {"type": "RuntimeDefault"}, {"type": "Unconfined"})),
    ("seLinuxOptions", ({"type": "container_engine_t"}, {"level": "s0"}, {"type": "spc_t"}, {"user": "u"})),
    ("sysctls", ([], [{"name": "kernel.shm_rmid_forced", "value": "1"}], [{"name": "kernel.sem", "value": "1"}])),
)
_VOLUMES: Final[Sequence[Json]] = ({"emptyDir": {}}, {"configMap": {"name": "a"}}, {"hostPath": {"path": "/"}},
                   {"nfs": {"server": "a", "path": "/"}}, {"persistentVolumeClaim": {"claimName": "a"}})  # fmt: skip


_HTTP, _TCP = {"path": "/", "port": 80}, {"port": 80}
_HANDLERS: Final[Sequence[Json]] = (
    {"httpGet": _HTTP},
    {"tcpSocket": _TCP},
    {"httpGet": {**_HTTP, "host": "a.example"}},
    {"tcpSocket": {**_TCP, "host": "10.0.0.1"}},
)
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/main"


def drawn_pod(draw: random.Random) -> Json:
    """Annotations and spec of a pod."""
    spec: Json = {"containers": [_container(draw, "main")], "restartPolicy": "Never"}
    if draw.random() < 0.3:
        spec["initContainers"] = [_container(draw, "init")]
    if draw.random() < 0.7:
        spec["securityContext"] = _some(draw, _POD_CONTEXTS, 0.6)
    if draw.random() < 0.3:
        spec["hostUsers"] = draw.choice((True, False))
    if draw.random() < 0.4:
        spec["volumes"] = [{"name": "v", **draw.choice(_VOLUMES)}]
    ports = any("ports" in item for item in (*spec["containers"], *spec.get("initContainers", ())))
    if not ports and draw.random() < 0.3:
        # The API server gives each port a hostPort beside the first.
        spec[draw.choice(("hostNetwork", "hostPID", "hostIPC"))] = True
    if not ports and draw.random() < 0.05:
        context = spec.setdefault("securityContext", {})
        context["windowsOptions"], spec["hostNetwork"] = {"hostProcess": True}, True
    profile = draw.choice(("", "runtime/default", "localhost/a", "unconfined"))
    return {"annotations": {_APPARMOR: profile} if draw.random() < 0.2 else {}, "spec": spec}


def _container(draw: random.Random, name: str) -> Json:
    result: Json = {"name": name, "image": "a:1", "securityContext": _some(draw, _CONTAINER_CONTEXTS, 0.6)}
    if draw.random() < 0.2:
        port = draw.choice((0, 80))
        result["ports"] = [{"containerPort": 80, **({"hostPort": port} if port else {})}]
    if name == "main" and draw.random() < 0.3:
        probe = draw.choice(("livenessProbe", "readinessProbe", "startupProbe", "postStart", "preStop"))
        handler = draw.choice(_HANDLERS)
        result |= {probe: handler} if probe.endswith("Probe") else {"lifecycle": {probe: handler}}
    if result["securityContext"].get("privileged"):
        result["securityContext"].pop("allowPrivilegeEscalation", None)  # The API server refuses the two together.
    return result


def _some(draw: random.Random, fields: Sequence[tuple[str, Sequence[Any]]], share: float) -> Json:
    return {name: draw.choice(values) for name, values in fields if draw.random() < share}


class Namespaces(NamedTuple):
    """Where pods are judged by one standard."""

    own: str
    """By Kubernetes itself."""
    cel: str
    """By the controls, in CEL."""


@pytest.fixture(scope="module", params=STANDARDS)
def standard(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def judged(bare_cluster: OneCluster, standard: str) -> Namespaces:
    """Namespaces, where the policy counts already."""
    result = Namespaces(f"own-{standard}", f"cel-{standard}")
    for name, labels in ((result.own, {POD_SECURITY_LABEL: standard}), (result.cel, {"judged-by": standard})):
        metadata = {"name": name, "labels": labels}
        bare_cluster.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    conditions = [f"[object.spec].exists(pod, {one.broken})" for one in controls(standard)]
    annotations = "[object.metadata.?annotations.orValue({})]"
    conditions += [f"{annotations}.exists(annotations, {one.broken})" for one in annotation_controls(standard)]
    item = ", ".join(f"{condition} ? '{n}' : ''" for n, condition in enumerate(conditions))
    policy, binding = denying_policy(
        f"controls-{standard}",
        [("", "v1", ["pods"])],
        ("always", "true"),
        [{"expression": "size(variables.broken) == 0", "messageExpression": "'broken:' + variables.broken.join(',')"}],
        selector={"matchLabels": {"judged-by": standard}},
        variables={"broken": f"[{item}].filter(text, text != '')"},
    )
    group = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    bare_cluster.ensure(f"{group}ies", policy)
    bare_cluster.ensure(f"{group}ybindings", binding)
    bad = {"annotations": {}, "spec": {"containers": [{"name": "a", "image": "a:1"}], "hostPID": True}}
    # A namespace refuses every pod until it has its account.
    wait_until(lambda: "violates PodSecurity" in refusal(bare_cluster, result.own, bad))
    wait_until(lambda: "broken:" in refusal(bare_cluster, result.cel, bad))
    return result


def refusal(cluster: OneCluster, namespace: str, pod: Json) -> str:
    """Why a pod is refused; empty if it is not."""
    metadata = {"name": "it", "annotations": pod["annotations"]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}
    try:
        cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    except Refused as error:
        return str(error)
    return ""


def broken_by(standard: str, pod: Json) -> list[int]:
    """The places of the controls that a pod breaks."""
    broken = [control.breaks(pod["spec"]) for control in controls(standard)]
    broken += [control.breaks(pod["annotations"]) for control in annotation_controls(standard)]
    return [index for index, breaks in enumerate(broken) if breaks]


def judgements(cluster: OneCluster, namespace: str, seed: str) -> Iterator[tuple[Json, str]]:
    """Drawn pods that are valid, and why each is refused."""
    print("seed", seed)
    draw = random.Random(seed)
    for _ in range(PODS):
        pod = drawn_pod(draw)
        output = refusal(cluster, namespace, pod)
        if " is invalid: " not in output:
            yield pod, output


def test_cel_and_python_say_the_same_of_each_control(
    bare_cluster: OneCluster, judged: Namespaces, standard: str
) -> None:
    seen: set[int] = set()
    every = [*controls(standard), *annotation_controls(standard)]
    # The API server copies the annotation into the field.
    [copied] = (index for index, control in enumerate(every) if "appArmorProfile" in control.path)
    for pod, output in judgements(bare_cluster, judged.cel, standard):
        broken = broken_by(standard, pod)
        seen.update(broken)
        assert bool(output) is bool(broken), (pod, output)
        in_cel = set(map(int, re.findall(r"\d+", output.partition("broken:")[2])))
        assert in_cel - {copied} == set(broken) - {copied}, (pod, output)
        assert pod["annotations"] or (copied in in_cel) is (copied in broken), (pod, output)
    # Kubernetes itself refuses a pod that breaks the first; not the template of one in a JobSet.
    [unseen, *_] = (index for index, control in enumerate(every) if "procMount" in control.path)
    assert seen == set(range(len(every))) - {unseen}, "each control was broken by one of the pods"


def test_kubernetes_refuses_the_same_pods(bare_cluster: OneCluster, judged: Namespaces, standard: str) -> None:
    for seed in (standard, f"{standard} {random.randrange(10**9)}"):
        for pod, output in judgements(bare_cluster, judged.own, seed):
            assert not output or "violates PodSecurity" in output
            assert bool(output) is bool(broken_by(standard, pod)), (seed, pod, output)
