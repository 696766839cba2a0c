"""What the Pod Security Standard baseline of Kubernetes 1.36 lets pods have.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/.
"""

from __future__ import annotations

from typing import Final

BASELINE_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
        "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip
"""Capabilities that a container may add."""
APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
"""Beginning of the annotation of a pod that was there before `appArmorProfile`, and that Kubernetes still reads."""
SAFE_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
    }
)  # fmt: skip
"""Sysctls that a pod may set."""
BASELINE_SELINUX_TYPES: Final = frozenset({"container_engine_t", "container_init_t", "container_kvm_t", "container_t"})
"""Types of SELinux that a pod or container may have."""
