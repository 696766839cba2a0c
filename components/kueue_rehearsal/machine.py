"""Whether this machine has room for a rehearsal, looked at before anything is started."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

from kueue_fleet.fleet_file import FleetSpec
from kueue_rehearsal.paths import STATE_DIR_VARIABLE, RehearsalError, RehearsalPaths

_MIB = 1024**2
# etcd reserves two log files of 64 MB; the rest is objects, logs and Pulumi's state of some minutes.
_BASE_MIB, _CLUSTER_MIB = 300, 50
# For the files of certificates: 6 of kube-apiserver, and one of Kueue's leader for its visibility API. JobSet takes 2,
# other operators one or none.
_INOTIFY_OF_CLUSTER, _INOTIFY_OF_REPLICA, _INOTIFY_OF_OPERATOR = 7, 2, 2
INOTIFY_LIMIT = "fs.inotify.max_user_instances"
"""The sysctl that limits how many inotify instances each user has (inotify(7))."""
INOTIFY_LIMIT_FILE = Path("/proc/sys", *INOTIFY_LIMIT.split("."))
"""The file of this sysctl."""


def inotify_instances(fleet: FleetSpec) -> int:
    """How many inotify instances the programs of its rehearsal take at most."""
    operators = len(fleet.operators.installed) + fleet.job_set.enabled
    of_cluster = _INOTIFY_OF_CLUSTER + _INOTIFY_OF_REPLICA * fleet.kueue.replicas + _INOTIFY_OF_OPERATOR * operators
    return of_cluster * len(fleet.clusters)


def check_machine(paths: RehearsalPaths, fleet: FleetSpec) -> None:
    """Raises RehearsalError with everything of which this machine has too little for the fleet.

    That is the disk of the state folder, and inotify instances, of which Linux gives a user 128 by default: where Kueue
    and JobSet get none they end, and start again until there are some.
    """
    problems, clusters = [], len(fleet.clusters)
    needs = _BASE_MIB + _CLUSTER_MIB * clusters
    free = shutil.disk_usage(paths.root).free // _MIB
    if free < needs:
        problems.append(
            f"{paths.root}: a rehearsal of {clusters} clusters needs about {needs} MiB of disk, {free} MiB are free; "
            f"free some, or set {STATE_DIR_VARIABLE} to a folder on another disk"
        )
    wanted_instances = inotify_instances(fleet)
    available = _available(wanted_instances)
    if available < wanted_instances:
        limit = int(INOTIFY_LIMIT_FILE.read_text())
        remedy = f"run `sudo sysctl {INOTIFY_LIMIT}={max(1024, 2 * limit)}`, or end other programs that watch files"
        problems.append(
            f"{INOTIFY_LIMIT}: a rehearsal of {clusters} clusters needs {wanted_instances} inotify instances, "
            f"you can have {available} more; {remedy}"
        )
    if problems:
        raise RehearsalError("\n".join(problems))


def _available(wanted_instances: int) -> int:
    """How many of so many inotify instances this user can have now. None is kept."""
    if sys.platform != "linux":
        return wanted_instances  # The supervisor says that a rehearsal needs Linux.
    create = ctypes.CDLL(None).inotify_init1
    open_descriptors: list[int] = []
    try:
        while len(open_descriptors) < wanted_instances and (descriptor := create(os.O_CLOEXEC)) >= 0:
            open_descriptors.append(descriptor)
    finally:
        for descriptor in open_descriptors:
            os.close(descriptor)
    return len(open_descriptors)
