"""A resource that breaks a rule, and the nearest that keeps it."""

from __future__ import annotations

import pytest
from tests.policies.declared import Declared, kube
from tests.policies.judged import gcp, says
from tests.policies.parts import (
    ADMISSION,
    EVERYTHING,
    HALVES,
    HOST,
    INGRESS_CLASS,
    INTERNAL,
    LATEST,
    LB_RANGES,
    LB_TYPE,
    PART_OF,
    RBAC,
    READING,
    SECRETS,
    SELECTS_ALL,
    TOO_LATE,
    affine,
    aggregated,
    annotated,
    arguments,
    authorized,
    binding,
    borrowing,
    called,
    config_map,
    context,
    environment,
    firewall,
    gateway,
    ingress,
    listing,
    mounted,
    namespace,
    of_container,
    of_pod,
    patch,
    patched_pod,
    role,
    secret,
    service,
    volume,
    with_token,
)

from kueue_fleet.gke.labels import ACCELERATOR

ELSEWHERE: list[list[tuple[str, str, list[str]]]] = [
    [(ACCELERATOR, "DoesNotExist", [])],
    [(ACCELERATOR, "NotIn", ["nvidia-l4"])],
    [(ACCELERATOR, "Exists", []), ("kubernetes.io/os", "In", ["linux"])],
    [("team", "NotIn", [ACCELERATOR])],
]
"""Terms that nodes without GPUs meet too."""
PAIRS: list[tuple[str, Declared, Declared]] = [
    *(
        ("spend-idle-gpus", gcp(kind, **bad), gcp(kind, **good))
        for kind, bad, good in (
            ("compute/instance:Instance", {"machineType": "a3-highgpu-8g"}, {"machineType": "n1-standard-8"}),
            (
                "compute/instance:Instance",
                {"machineType": "n1-standard-8", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 4}]},
                {"machineType": "n1-standard-8", "guestAccelerators": []},
            ),
            (
                "compute/instance:Instance",
                {"machineType": "g2-standard-12"},
                {"machineType": "g2-standard-12", "scheduling": {"maxRunDuration": {"seconds": 3600}}},
            ),
            ("tpu/v2Vm:V2Vm", {"acceleratorType": "v5p-128"}, {"runtimeVersion": "v2-alpha-tpuv5"}),
            (
                "workbench/instance:Instance",
                {"gceSetup": {"machineType": "a2-highgpu-8g"}},
                {"gceSetup": {"machineType": "e2-standard-4"}},
            ),
            (
                "container/nodePool:NodePool",
                {"nodeCount": 4, "nodeConfig": {"machineType": "ct5p-hightpu-4t"}},
                {"nodeCount": 4, "nodeConfig": {"machineType": "c3-standard-8"}},
            ),
        )
    ),
    ("kube-no-host-path", of_pod(volumes=[HOST]), of_pod(volumes=[{"name": "host", "emptyDir": {}}])),
    ("kube-no-host-path", mounted("Deployment", read_only=True), mounted("DaemonSet", read_only=True)),
    ("kube-no-host-path", mounted("DaemonSet", read_only=False), mounted("DaemonSet", read_only=True)),
    (
        "kube-no-host-path",
        of_pod("DaemonSet", volumes=[HOST], containers=[{"name": "c", "volumeMounts": [{"name": "host"}]}]),
        of_pod("DaemonSet", volumes=[HOST], nodeSelector={ACCELERATOR: "nvidia-l4"}),
    ),
    ("kube-no-host-path", volume(hostPath={"path": "/"}), volume(local={"path": "/mnt/disks/ssd0"})),
    *(
        ("kube-not-privileged", affine(*terms), affine((ACCELERATOR, "Exists", []), (ACCELERATOR, "In", ["nvidia-l4"])))
        for terms in ELSEWHERE
    ),
    (
        "kube-workload-service-account",
        of_pod(serviceAccountName=None),
        of_pod(serviceAccountName=None, serviceAccount="job"),
    ),
    (
        "kube-workload-service-account",
        of_pod(serviceAccountName="default"),
        patch("apps/v1:Deployment", spec={"template": {"spec": {"containers": [{"name": "main", "image": "job:2"}]}}}),
    ),
    ("kube-kernel-protection", annotated(app_armor="unconfined"), annotated(app_armor="runtime/default")),
    ("secret-not-in-annotations", annotated(token="hunter2-swordfish"), annotated(app_armor="runtime/default")),
    (
        "kube-no-default-namespace",
        kube("ray.io/v1:RayJob", "x", {}, by="p", namespace="default"),
        kube(f"{RBAC}:RoleBinding", "x", {}, by="p", namespace="default"),
    ),
    *(
        ("kube-own-type", called(*bad), called(*good))
        for bad, good in (
            (
                (RBAC, "ClusterRoleBinding", "core/v1:ConfigMap"),
                (RBAC, "ClusterRoleBinding", f"{RBAC}:ClusterRoleBinding"),
            ),
            (("v1", "Secret", "core/v1:ConfigMapPatch"), ("v1", "Secret", "core/v1:SecretPatch")),
            (("v1", "Secret", "example.com/v1:Secret"), ("core/v1", "Secret", "core/v1:Secret")),
        )
    ),
    *(
        ("kube-own-type", listing(f"{kind}List", metadata={}), listing(kind))
        for kind in ("core/v1:Secret", f"{RBAC}:ClusterRoleBinding", "ray.io/v1:RayJob")
    ),
    ("kube-own-type", listing("example.com/v1:Bundle", kind="Secret"), listing("example.com/v1:AllowList")),
    # What a patch does not say stays as it is.
    ("kube-no-masters", patch(f"{RBAC}:ClusterRoleBinding", subjects=[{"name": "system:masters"}]), binding("a")),
    ("kube-no-wildcard-roles", patch(f"{RBAC}:ClusterRole", rules=[EVERYTHING]), patch(f"{RBAC}:ClusterRole")),
    (
        "kube-namespace-pod-security",
        patch("core/v1:Namespace", metadata={"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}),
        patch("core/v1:Namespace", metadata={"labels": {"team": "vision"}}),
    ),
    (
        "kube-no-public-load-balancer",
        patch("core/v1:Service", spec={"type": "LoadBalancer"}),
        patch("core/v1:Service", spec={"ports": []}),
    ),
    ("secret-not-in-config-map", patch("core/v1:ConfigMap", data={"api-key": "a"}), patch("core/v1:ConfigMap")),
    ("kueue-limits-need-cohort", borrowing("ClusterQueue"), borrowing("ClusterQueuePatch")),
    (
        "kube-no-added-capabilities",
        context(capabilities={"add": ["NET_BIND_SERVICE", "SYS_ADMIN"]}),
        context(capabilities={"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}),
    ),
    ("kube-not-root", context(runAsUser=0), context(runAsUser=1)),
    ("kube-not-root", of_pod(securityContext={"runAsUser": 0}), of_pod(securityContext={"runAsNonRoot": True})),
    (
        "kube-not-root",
        of_pod(securityContext={"runAsUser": 0}, containers=[{"name": "a"}, {"securityContext": {"runAsUser": 5}}]),
        of_pod(securityContext={"runAsUser": 0}, containers=[{"securityContext": {"runAsUser": 5}}]),
    ),
    ("kube-not-root", context(runAsUser=0), context("DaemonSet", runAsUser=0)),
    (
        "kube-no-privilege-escalation",
        context(allowPrivilegeEscalation=True),
        context(allowPrivilegeEscalation=False),
    ),
    ("kube-kernel-protection", context(procMount="Unmasked"), context(procMount="Default")),
    (
        "kube-kernel-protection",
        of_pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
        of_pod(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
    ),
    (
        "kube-kernel-protection",
        of_pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        of_pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}),
    ),
    *(
        ("kube-kernel-protection", context(seLinuxOptions=bad), context(seLinuxOptions=good))
        for bad, good in (
            ({"type": "spc_t"}, {"type": "container_engine_t"}),
            ({"user": "system_u"}, {"user": "", "type": ""}),
            ({"role": "system_r"}, {"level": "s0:c123,c456"}),
        )
    ),
    (
        "kube-kernel-protection",
        of_pod(securityContext={"seLinuxOptions": {"type": "spc_t"}}),
        of_pod(securityContext={"seLinuxOptions": {"type": "container_t"}}),
    ),
    # What a patch says of a pod only.
    (
        "kube-kernel-protection",
        patched_pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
        patched_pod(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
    ),
    (
        "kube-not-privileged",
        patched_pod(securityContext={"windowsOptions": {"hostProcess": True}}),
        patched_pod(securityContext={"windowsOptions": {}}),
    ),
    ("kube-not-root", patched_pod(securityContext={"runAsUser": 0}), patched_pod(securityContext={"runAsUser": 1})),
    *(
        ("kube-no-host-namespaces", of_container(**{key: bad}), of_container(**{key: good}))
        for key, bad, good in (
            ("livenessProbe", {"httpGet": {"port": 80, "host": "127.0.0.1"}}, {"httpGet": {"port": 80, "host": ""}}),
            ("readinessProbe", {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}, {"tcpSocket": {"port": 80}}),
            ("startupProbe", {"httpGet": {"port": 80, "host": "metadata"}}, {"exec": {"command": ["host"]}}),
            ("lifecycle", {"preStop": {"httpGet": {"port": 80, "host": "a"}}}, {"preStop": {"httpGet": {"port": 80}}}),
        )
    ),
    ("kube-token-lifetime", with_token(86_401), with_token(86_400)),
    ("kube-token-lifetime", with_token(10**9), with_token(None)),
    (
        "kube-not-privileged",
        of_pod(securityContext={"windowsOptions": {"hostProcess": True}}),
        of_pod(securityContext={"windowsOptions": {"hostProcess": False}}),
    ),
    (
        "kube-not-privileged",
        of_pod(ephemeralContainers=[{"name": "debug", "securityContext": {"privileged": True}}]),
        of_pod(ephemeralContainers=[{"name": "debug"}]),
    ),
    # node-exporter
    ("kube-no-host-namespaces", of_pod(hostNetwork=True), of_pod("DaemonSet", hostNetwork=True, hostPID=True)),
    ("kube-no-host-namespaces", of_pod("DaemonSet", hostIPC=True), of_pod("DaemonSet", hostPID=True)),
    (
        "kube-no-host-namespaces",
        of_pod(containers=[{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]),
        of_pod(containers=[{"name": "c", "ports": [{"containerPort": 80}]}]),
    ),
    (
        "kube-no-escalation",
        role({"resources": ["clusterroles"], "verbs": ["bind"]}),
        role({"resources": ["clusterroles"], "verbs": ["bind"], "resourceNames": ["view"]}),
    ),
    (
        "kube-no-escalation",
        role({"resources": ["roles"], "verbs": ["escalate"], "resourceNames": ["view"]}, kind="Role"),
        role({"resources": ["roles"], "verbs": ["get", "create"]}, kind="Role"),
    ),
    (
        "kube-secret-access",
        role({"resources": ["pods", "secrets"], "verbs": ["watch"]}),
        role({"resources": ["secrets"], "verbs": ["watch"]}, kind="Role"),
    ),
    (
        "kube-secret-access",
        role({"resources": ["secrets"], "verbs": ["get"]}),
        role({"resources": ["secrets"], "verbs": ["get"], "resourceNames": ["ca"]}),
    ),
    *(
        (
            "kube-no-indirect-access",
            role({"resources": [resource], "verbs": ["create"]}),
            role({"resources": [resource], "verbs": ["create"]}, kind="Role"),
        )
        for resource in ("pods/exec", "pods/attach", "pods/ephemeralcontainers", "serviceaccounts/token", "nodes/proxy")
    ),
    (
        "kube-no-indirect-access",
        role({"resources": ["pods/exec"], "verbs": ["create"]}),
        role({"resources": ["pods", "pods/log"], "verbs": ["create", "get"]}),
    ),
    *(
        ("kube-no-indirect-access", role(given | {"verbs": [verb]}), role(given | {"verbs": READING}))
        for verb in ("create", "update", "patch", "*")
        for given in (
            {"resources": ["namespaces"]},
            {"resources": ["persistentvolumes"]},
            {"resources": ["validatingwebhookconfigurations"], "apiGroups": [ADMISSION]},
            {"resources": ["mutatingwebhookconfigurations"], "apiGroups": ["*"]},
            {"resources": ["mutatingadmissionpolicies"], "apiGroups": [ADMISSION]},
        )
    ),
    (
        "kube-no-indirect-access",
        role({"resources": ["namespaces"], "verbs": ["patch"]}, kind="Role"),
        role({"resources": ["namespaces"], "verbs": ["patch"], "apiGroups": ["example.com"]}, kind="Role"),
    ),
    (
        "kube-no-indirect-access",
        role({"resources": ["mutatingwebhookconfigurations"], "verbs": ["patch"], "apiGroups": [ADMISSION]}),
        role(
            {
                "resources": ["mutatingwebhookconfigurations"],
                "verbs": ["patch"],
                "apiGroups": [ADMISSION],
                "resourceNames": ["my-webhook"],
            }
        ),
    ),
    *(
        (rule, role(given, name=name, labels={PART_OF: part_of}), role(given, name=argo, labels={PART_OF: "argocd"}))
        for rule, given, argo in (
            ("kube-no-wildcard-roles", EVERYTHING, "argocd-application-controller"),
            ("kube-no-wildcard-roles", EVERYTHING, "blue-argocd-server"),
            ("kube-secret-access", SECRETS, "argocd-applicationset-controller"),
            ("kube-secret-access", SECRETS, "argocd-notifications-controller"),
            ("kube-no-indirect-access", {"resources": ["pods/exec"], "verbs": ["create"]}, "argocd-server"),
        )
        for name, part_of in ((argo, "tenant"), ("argocd-tenant", "argocd"))
    ),
    *(
        (
            "kube-no-wildcard-roles",
            aggregated(selector),
            aggregated({"matchLabels": {"example.com/aggregate-to-team": "true"}}),
        )
        for selector in SELECTS_ALL
    ),
    (
        "kube-no-wildcard-roles",
        role({"nonResourceURLs": ["*"], "verbs": ["get"]}),
        role({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}),
    ),
    *(
        (
            "kube-no-escalation",
            role({"resources": [resource], "verbs": [verb], "resourceNames": [own, theirs]}),
            role({"resources": [resource], "verbs": [verb], "resourceNames": [own]}),
        )
        for resource, verb, own, theirs in (
            ("groups", "impersonate", "platform@example.com", "system:masters"),
            ("users", "impersonate", "system:serviceaccount:team-a:job", "system:kube-controller-manager"),
            ("clusterroles", "bind", "view", "cluster-admin"),
        )
    ),
    *(
        ("kube-no-escalation", role(signers | bad), role(signers | good))
        for signers in [{"resources": ["signers"], "apiGroups": ["certificates.k8s.io"]}]
        for verb in ("approve", "sign")
        for bad, good in (
            ({"verbs": [verb]}, {"verbs": ["get"]}),
            (
                {"verbs": [verb], "resourceNames": ["kubernetes.io/kube-apiserver-client"]},
                {"verbs": [verb], "resourceNames": ["example.com/*"]},
            ),
            ({"verbs": [verb]}, {"verbs": [verb], "apiGroups": ["cert-manager.io"]}),
        )
    ),
    *(
        (
            "kube-no-escalation",
            role({"resources": ["serviceaccounts"], "verbs": [verb], "apiGroups": ["authentication.k8s.io"]}),
            role({"resources": ["pods"], "verbs": ["impersonate-on:serviceaccount:list"]}),
        )
        for verb in ("impersonate:user-info", "impersonate:serviceaccount", "impersonate:arbitrary-node")
    ),
    (
        "kube-secret-access",
        role(SECRETS | {"resourceNames": [""]}),
        role(SECRETS | {"resourceNames": ["", "ca"]}),
    ),
    ("kube-secret-access", role(SECRETS), role(SECRETS | {"apiGroups": ["example.com"]})),
    *(
        (
            "kube-no-indirect-access",
            role({"resources": [f"*/{name}"], "verbs": ["create"]}),
            role({"resources": [f"*/{name}"], "verbs": ["create"], "apiGroups": ["example.com"]}),
        )
        for name in ("exec", "token", "proxy")
    ),
    (
        "kube-no-indirect-access",
        role({"resources": ["*/exec"], "verbs": ["get"]}),
        role({"resources": ["*/scale"], "verbs": ["get"]}),
    ),
    ("kube-no-public-bindings", binding("system:serviceaccounts"), binding("system:serviceaccounts:team-a")),
    ("kube-no-masters", binding("system:masters"), binding("platform@example.com")),
    *(
        ("kube-no-cluster-admin", binding("a", to=name), binding("a", to=name, kind="RoleBinding"))
        for name in ("admin", "edit", "system:controller:job-controller", "system:kubelet-api-admin")
    ),
    (
        "kube-no-cluster-admin",
        binding("a", to="cluster-admin", kind="RoleBinding"),
        binding("a", to="system:auth-delegator"),
    ),
    ("kube-no-masters", binding("a", "system:masters", kind="RoleBinding"), binding("system:nodes")),
    ("kube-namespace-pod-security", namespace(), namespace(enforce="baseline")),
    ("kube-namespace-pod-security", namespace(warn="baseline"), namespace("kube-system")),
    ("kube-namespace-pod-security", namespace(enforce="privileged"), namespace(enforce="restricted")),
    ("kube-no-token-secrets", secret(), kube("core/v1:Secret", "x", {"type": "Opaque"}, by="p")),
    ("kube-no-token-secrets", secret(rotation="1"), secret(rotate_by=LATEST)),
    ("kube-no-token-secrets", secret(rotate_by=""), secret(rotate_by="kueue-fleet-controller")),
    ("kube-no-token-secrets", secret(rotate_by="never"), secret(rotate_by=LATEST)),
    ("kube-no-token-secrets", secret(rotate_by="2999-01-01"), secret(rotate_by="2026-11-01")),
    ("kube-no-token-secrets", secret(rotate_by=TOO_LATE), secret(rotate_by=LATEST)),
    ("kube-no-public-load-balancer", service(), service(INTERNAL)),
    (
        "kube-no-public-load-balancer",
        service({"a": "b"}),
        service(loadBalancerClass="networking.gke.io/l4-regional-internal"),
    ),
    (
        "kube-no-public-load-balancer",
        service(loadBalancerSourceRanges=HALVES),
        service(loadBalancerSourceRanges=["192.0.2.0/24"]),
    ),
    ("kube-no-public-load-balancer", service(), service(type="ClusterIP")),
    ("kube-no-public-load-balancer", service({LB_TYPE: "INTERNAL"}), service({LB_TYPE: "internal"})),
    (
        "kube-no-public-load-balancer",
        service({LB_TYPE: "External", "cloud.google.com/load-balancer-type": "Internal"}),
        service({LB_TYPE: "Internal", "cloud.google.com/load-balancer-type": "External"}),
    ),
    *(
        (
            "kube-no-public-load-balancer",
            service(INTERNAL, loadBalancerClass="networking.gke.io/l4-regional-external"),
            service(loadBalancerClass=class_),
        )
        for class_ in ("networking.gke.io/l4-regional-internal-legacy", "tailscale")
    ),
    (
        "kube-no-public-load-balancer",
        service(loadBalancerSourceRanges=[" 0.0.0.0/0"]),
        service(loadBalancerSourceRanges=[" 192.0.2.0/24"]),
    ),
    (
        "kube-no-public-load-balancer",
        service({LB_RANGES: " "}),
        service({LB_RANGES: "192.0.2.0/24, 198.51.100.0/24"}),
    ),
    (
        "kube-no-public-load-balancer",
        service({LB_RANGES: "192.0.2.0/24"}, loadBalancerSourceRanges=["0.0.0.0/0"]),
        service({LB_RANGES: "0.0.0.0/0"}, loadBalancerSourceRanges=["192.0.2.0/24"]),
    ),
    ("kube-no-external-ips", service(externalIPs=["192.0.2.1"]), service(externalIPs=[])),
    ("kube-no-external-ips", patch("core/v1:Service", spec={"externalIPs": ["192.0.2.1"]}), service(INTERNAL)),
    *(
        ("kube-no-public-ingress", ingress(*bad), ingress(*good))
        for bad, good in (
            ([None, None], ["gce-internal", None]),
            (["gce", None], [None, "nginx"]),
            (["gce", "nginx"], ["gce-internal", "gce"]),
            (["", None], ["nginx", None]),
        )
    ),
    *(
        ("kube-no-public-ingress", gateway(bad), gateway(good))
        for bad, good in (
            ("gke-l7-global-external-managed", "gke-l7-rilb"),
            ("gke-l7-regional-external-managed-mc", "gke-l7-cross-regional-internal-managed-mc"),
            ("gke-l7-gxlb", "istio"),
        )
    ),
    (
        "kube-no-public-ingress",
        kube("networking.gke.io/v1:MultiClusterIngress", "x", {}, by="p"),
        patch("networking.k8s.io/v1:Ingress", spec={"rules": []}),
    ),
    (
        "kube-no-public-ingress",
        patch("networking.k8s.io/v1:Ingress", metadata={"annotations": {INGRESS_CLASS: "gce"}}),
        patch("gateway.networking.k8s.io/v1:Gateway", spec={"listeners": []}),
    ),
    ("firewall-not-open", firewall(*HALVES), firewall("10.0.0.0/8", "172.16.0.0/12")),
    ("firewall-not-open", firewall("0.0.0.0/2", "64.0.0.0/2"), firewall("35.191.0.0/16", "130.211.0.0/22")),
    ("firewall-not-open", firewall("2000::/3"), firewall("2600:1901::/32")),
    ("firewall-not-open", firewall("0.0.0.0/0", ports=[]), firewall("192.0.2.0/24", ports=[])),
    *(
        (
            "firewall-not-open",
            gcp(f"compute/{name[0].lower()}{name[1:]}:{name}", action="allow", **opened),
            gcp(f"compute/{name[0].lower()}{name[1:]}:{name}", action="deny", **opened),
        )
        for name in ("FirewallPolicyRule", "NetworkFirewallPolicyRule", "RegionNetworkFirewallPolicyRule")
        for opened in [{"match": {"srcIpRanges": ["0.0.0.0/0"], "layer4Configs": [{"ipProtocol": "all"}]}}]
    ),
    ("gke-authorized-networks", authorized(*HALVES), authorized("192.0.2.0/24", "198.51.100.0/24")),
    ("gke-authorized-networks", authorized("::/1", "8000::/1"), authorized("2001:db8::/32")),
    (
        "gke-authorized-networks",
        authorized(*(f"{first}.0.0.0/7" for first in range(0, 256, 4))),
        authorized("10.0.0.0/8", "12.0.0.0/8", "17.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
    ),
    (
        "gke-authorized-networks",
        authorized("192.0.2.0/24", gcpPublicCidrsAccessEnabled=True),
        authorized("192.0.2.0/24", gcpPublicCidrsAccessEnabled=False),
    ),
    (
        "secret-not-in-environment",
        environment(HF_TOKEN="hunter2-swordfish"),
        environment(EOS_TOKEN="</s>", MAX_NEW_TOKEN="4096", PAD_TOKEN="0", BOS_TOKEN="<s>"),
    ),
    (
        "secret-not-in-config-map",
        config_map(access_token="a-word"),
        config_map(eos_token="</s>", pad_token="<pad>", max_token="4096"),
    ),
    *(
        ("secret-not-in-config-map", config_map(file=bad), config_map(file=good))
        for bad, good in (
            ("db:\n  password: hunter2-swordfish\n", "db:\n  passwordFile: hunter2-swordfish\n"),
            ('{"env": [{"name": "HF_TOKEN", "value": "a-word"}]}', '{"eos_token": "</s>", "sep_token": "[SEP]"}'),
            ("users:\n- user:\n    token: a-word\n", "token: ${TOKEN}\nsecret: name-of-a-secret\n"),
            ("access_token: a-word", "access_token = a-word"),
        )
    ),
    *(
        ("secret-not-in-environment", arguments(*bad), arguments(*good))
        for bad, good in (
            (["--password", "hunter2"], ["--password", "--verbose", "hunter2"]),
            (["--hf-token", "a-word"], ["--eos-token=</s>", "--pad-token", "<pad>", "--max-new-token", "4096"]),
            (["--set", "auth.password=hunter2"], ["--set", "auth.passwordFile=hunter2"]),
            (["sh", "-c", "DB_PASSWORD=hunter2 run"], ["sh", "-c", "DB_PASSWORD=$(cat /password) run"]),
            (["python", "-c", "TOKEN='hunter2'"], ["python", "-c", "login(user, token=token)"]),
            (["run", "postgres://app:hunter2@db/x"], ["run", "postgres://app@db/x", "https://proxy:3128"]),
        )
    ),
    *(
        ("secret-not-in-environment", gcp(kind, **{part: bad}), gcp(kind, **{part: good}))
        for kind, part, bad, good in (
            (
                "cloudrunv2/service:Service",
                "template",
                {"containers": [{"envs": [{"name": "DB_PASSWORD", "value": "hunter2-swordfish"}]}]},
                {
                    "containers": [
                        {"envs": [{"name": "DB_PASSWORD", "valueSource": {"secretKeyRef": {"secret": "db"}}}]}
                    ]
                },
            ),
            (
                "cloudrunv2/job:Job",
                "template",
                {"template": {"containers": [{"args": ["--password", "hunter2"]}]}},
                {"template": {"containers": [{"args": ["--password-file", "hunter2"]}]}},
            ),
            (
                "cloudrun/service:Service",
                "template",
                {"spec": {"containers": [{"envs": [{"name": "HF_TOKEN", "value": "a-word"}]}]}},
                {"spec": {"containers": [{"envs": [{"name": "EOS_TOKEN", "value": "</s>"}]}]}},
            ),
            (
                "cloudfunctionsv2/function:Function",
                "serviceConfig",
                {"environmentVariables": {"API_KEY": "hunter2-swordfish"}},
                {"environmentVariables": {"API_KEY_FILE": "hunter2-swordfish"}},
            ),
            ("cloudfunctions/function:Function", "environmentVariables", {"TOKEN": "a-word"}, {"TOKENS": "a-word"}),
        )
    ),
    (
        "secret-not-in-environment",
        kube("ray.io/v1:RayJob", "x", {"spec": {"runtimeEnvYAML": "env_vars:\n  HF_TOKEN: a-word\n"}}, by="p"),
        kube("ray.io/v1:RayJob", "x", {"spec": {"runtimeEnvYAML": "env_vars:\n  EOS_TOKEN: a-word\n"}}, by="p"),
    ),
]


@pytest.mark.parametrize(("rule", "bad", "good"), PAIRS, ids=[f"{i}-{one[0]}" for i, one in enumerate(PAIRS)])
def test_a_violation_and_the_nearest_that_is_allowed(rule: str, bad: Declared, good: Declared) -> None:
    assert says(rule, bad) != []
    assert says(rule, good) == []
