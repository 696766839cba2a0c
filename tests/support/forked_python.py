"""A virtual environment whose Python forks what Pulumi starts in it: programs, plugins, policy packs and stand-ins.

Two processes have imported what these need, see `fork_server`: one for stand-ins, which are started isolated, and one
for the others. Any other call goes to the real Python. Not for tests of what a killed Pulumi leaves behind.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from fork_server import start_fork_server, write_program
from kueue_rehearsal.standins.executables import BOOTSTRAP, PARTS, STAND_IN_GROUP

_PROGRAMS = """
import os, runpy, sys
import kueue_fleet, kueue_fleet.plugin, kueue_fleet_policies, pulumi.policy, pulumi_policy
import kueue_fleet.objects.dashboards
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes
from kueue_fleet import *

# Both SDKs import a part of theirs when it is first used.
_USED = (
    kubernetes.apiextensions.CustomResource, kubernetes.apiextensions.v1.CustomResourceDefinition,
    kubernetes.core.v1.Namespace, kubernetes.helm.v3.Release, kubernetes.rbac.v1.ClusterRole,
    gcp.compute.Network, gcp.container.Cluster, gcp.monitoring.AlertPolicy, gcp.projects.IAMMember,
    gcp.serviceaccount.Account,
)

sys.path.pop(0)

def run(arguments):
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.stdout.reconfigure(write_through=True)
    what, *sys.argv = arguments[2:]
    if what == "-m":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv.insert(0, what)
        if not os.path.isdir(what):
            sys.path.insert(0, os.path.dirname(what))
        runpy.run_path(what, run_name="__main__")
"""
_STAND_INS = """
import importlib, runpy, sys

for module in {modules}:
    importlib.import_module(module)

def run(arguments):
    sys.executable, _, _, _, _, _, module, version, *rest = arguments
    return importlib.import_module(module).main(version, rest)
"""
_PYTHON = """
options = sys.argv[1:]
if options[:3] == ["-I", "-S", {bootstrap!r}]:
    call({stand_ins!r})
if options[:1] == ["-u"]:
    call({programs!r})
os.execv({python!r}, [{python!r}, *options])
"""


@cache
def forked_python() -> Path:
    """Its executable, in `bin` of the environment; it is there until these tests end."""
    programs = start_fork_server(_PROGRAMS)
    modules = {point.value for point in entry_points(group=STAND_IN_GROUP)} | {part.module for part in PARTS} - {""}
    stand_ins = start_fork_server(_STAND_INS.format(modules=sorted(modules)))
    folder = programs.parent
    (folder / "lib").symlink_to(Path(sys.prefix) / "lib")
    (folder / "bin").mkdir()
    python = folder / "bin" / "python"
    script = _PYTHON.format(
        python=sys.executable, bootstrap=str(BOOTSTRAP), stand_ins=str(stand_ins), programs=str(programs)
    )
    write_program(python, script)
    return python
