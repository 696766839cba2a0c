"""The controls of Pod Security Standards in CEL and in Python, beside those of a real API server, for drawn pods."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pytest

from kueue_admission.api.manifests import POD_SECURITY_LABEL
from kueue_fleet.objects.pod_security import controls
from kueue_fleet.objects.policies import denying_policy
from one_cluster import Json, OneCluster, Refused, wait_until

STANDARDS: Final = ("baseline", "restricted")
PODS: Final = 80
_CONTAINER_CONTEXTS: Final[Sequence[tuple[str, Sequence[Any]]]] = (
    ("privileged", (False, True)),
    ("allowPrivilegeEscalation", (False, False, False, True)),
    ("runAsNonRoot", (True, True, False)),
    ("runAsUser", (1000, 0)),
    ("capabilities", ({"drop": ["ALL"]}, {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, {"add": ["CHOWN"]},
                      {"add": ["SYS_ADMIN"]}, {"drop": ["KILL"]})),
    ("seccompProfile", ({"type": "RuntimeDefault"}, {"type": "Unconfined"},
                        {"type": "Localhost", "localhostProfile": "a"})),
)  # fmt: skip
_POD_CONTEXTS: Final[Sequence[tuple[str, Sequence[Any]]]] = (
    ("runAsNonRoot", (True, True, False)),
    ("runAsUser", (1000, 0)),
    ("seccompProfile", ({"type": "RuntimeDefault"}, {"type": "RuntimeDefault"}, {"type": "Unconfined"})),
    ("sysctls", ([], [{"name": "kernel.shm_rmid_forced", "value": "1"}], [{"name": "kernel.sem", "value": "1"}])),
)
_VOLUMES: Final[Sequence[Json]] = ({"emptyDir": {}}, {"configMap": {"name": "a"}}, {"hostPath": {"path": "/"}},
                   {"nfs": {"server": "a", "path": "/"}}, {"persistentVolumeClaim": {"claimName": "a"}})  # fmt: skip


def drawn_pod(draw: random.Random) -> Json:
    """The spec of a pod that the API server takes, but for its standard."""
    spec: Json = {"containers": [_container(draw, "main")], "restartPolicy": "Never"}
    if draw.random() < 0.3:
        spec["initContainers"] = [_container(draw, "init")]
    if draw.random() < 0.7:
        spec["securityContext"] = _some(draw, _POD_CONTEXTS, 0.6)
    if draw.random() < 0.4:
        spec["volumes"] = [{"name": "v", **draw.choice(_VOLUMES)}]
    ports = any("ports" in each for each in (*spec["containers"], *spec.get("initContainers", ())))
    if not ports and "sysctls" not in spec.get("securityContext", {}) and draw.random() < 0.3:
        # The API server refuses some sysctls beside them, and gives each port a hostPort beside the first.
        spec[draw.choice(("hostNetwork", "hostPID", "hostIPC"))] = True
    return spec


def _container(draw: random.Random, name: str) -> Json:
    made: Json = {"name": name, "image": "a:1", "securityContext": _some(draw, _CONTAINER_CONTEXTS, 0.6)}
    if draw.random() < 0.2:
        port = draw.choice((0, 80))
        made["ports"] = [{"containerPort": 80, **({"hostPort": port} if port else {})}]
    if made["securityContext"].get("privileged"):
        made["securityContext"].pop("allowPrivilegeEscalation", None)  # The API server refuses the two together.
    return made


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
    found = Namespaces(f"own-{standard}", f"cel-{standard}")
    for name, labels in ((found.own, {POD_SECURITY_LABEL: standard}), (found.cel, {"judged-by": standard})):
        metadata = {"name": name, "labels": labels}
        bare_cluster.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    each = ", ".join(
        f"[object.spec].exists(pod, {one.broken}) ? '{n}' : ''" for n, one in enumerate(controls(standard))
    )
    policy, binding = denying_policy(
        f"controls-{standard}",
        [("", "v1", ["pods"])],
        ("always", "true"),
        [{"expression": "size(variables.broken) == 0", "messageExpression": "'broken:' + variables.broken.join(',')"}],
        selector={"matchLabels": {"judged-by": standard}},
        variables={"broken": f"[{each}].filter(text, text != '')"},
    )
    group = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    bare_cluster.ensure(f"{group}ies", policy)
    bare_cluster.ensure(f"{group}ybindings", binding)
    bad = {"containers": [{"name": "a", "image": "a:1"}], "hostPID": True}
    # A namespace refuses every pod until it has its account.
    wait_until(lambda: "violates PodSecurity" in refusal(bare_cluster, found.own, bad))
    wait_until(lambda: "broken:" in refusal(bare_cluster, found.cel, bad))
    return found


def refusal(cluster: OneCluster, namespace: str, spec: Json) -> str:
    """Why a pod is refused; empty if it is not."""
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}, "spec": spec}
    try:
        cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    except Refused as error:
        return str(error)
    return ""


def test_cel_and_python_say_the_same_of_each_control(
    bare_cluster: OneCluster, judged: Namespaces, standard: str
) -> None:
    draw = random.Random(standard)
    seen: set[int] = set()
    for _ in range(PODS):
        spec = drawn_pod(draw)
        broken = [index for index, each in enumerate(controls(standard)) if each.breaks(spec)]
        seen.update(broken)
        said = refusal(bare_cluster, judged.cel, spec)
        assert bool(said) is bool(broken), (spec, said)
        assert list(map(int, re.findall(r"\d+", said.partition("broken:")[2]))) == broken, (spec, said)
    assert seen == set(range(len(list(controls(standard))))), "each control was broken by one of the pods"


def test_kubernetes_refuses_the_same_pods(bare_cluster: OneCluster, judged: Namespaces, standard: str) -> None:
    draw = random.Random(standard)
    for _ in range(PODS):
        spec = drawn_pod(draw)
        said = refusal(bare_cluster, judged.own, spec)
        assert not said or "violates PodSecurity" in said
        assert bool(said) is any(each.breaks(spec) for each in controls(standard)), (spec, said)
