"""`helm install` in a rehearsal; charts of engines are copied where it has done so before: see `installed_chart`.

Started by the program that `quick_rehearsals` puts in the place of helm, with helm's path and its arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from installed_chart import installed
from kueue_fleet.rehearsal.control_planes.clusters import ClustersRecord
from kueue_fleet.rehearsal.engines import EngineCache, Engines, find_engines
from kueue_fleet.rehearsal.paths import RehearsalPaths, engines_dir
from kueue_fleet.rehearsal.standins.gke_auth import STATE_VARIABLE
from one_cluster import OneCluster, pods_run, wait_until


def main(helm: str, *arguments: str) -> None:
    """Does what helm does with these arguments, of which the first is `install`; exits as it does where it fails."""
    found = find_engines(EngineCache(engines_dir()))
    engines = Engines({**found.programs, "helm": replace(found.programs["helm"], path=Path(helm))}, found.assets)
    charts = {
        str(path): name.removesuffix("-chart") for name, path in engines.assets.items() if name.endswith("-chart")
    }
    chart = charts.get(arguments[2])
    options = dict(pairwise(arguments))
    namespace, kubeconfig = options["--namespace"], options["--kubeconfig"]
    paths = RehearsalPaths(Path(os.environ[STATE_VARIABLE]))
    cluster = cluster_of(json.loads(Path(kubeconfig).read_text()), engines, paths)
    if chart is None or cluster.items(f"/apis/apps/v1/namespaces/{namespace}/deployments"):
        os.execv(helm, [helm, *arguments])
    values = json.dumps(json.loads(Path(options["--values"]).read_text()), sort_keys=True)
    others = {"--kubeconfig", kubeconfig, "--values", options["--values"]}
    decides = [Path(__file__).read_text(), values, *(each for each in arguments if each not in others)]

    def install() -> None:
        if code := subprocess.call([helm, *arguments]):
            sys.exit(code)

    def keep(made: Iterable[str]) -> list[str]:
        """Something else may be made at the same time: CRDs of another chart that are not established yet."""
        place = ["--namespace", namespace, "--kubeconfig", kubeconfig]
        names = {namespace, f"sh.helm.release.v1.{arguments[1]}.v1"}
        for shown in (["get", "manifest", arguments[1], *place], ["show", "crds", arguments[2]]):
            objects = yaml.load_all(subprocess.check_output([helm, *shown], text=True), yaml.CSafeLoader)
            names |= {each["metadata"]["name"] for each in objects if each}
        return [key for key in made if key.rpartition("/")[2] in names]

    installed(cluster, paths, chart, decides, install, keep)
    wait_until(lambda: pods_run(cluster, namespace), float(options["--timeout"].removesuffix("s")))


def cluster_of(kubeconfig: Any, engines: Engines, paths: RehearsalPaths) -> OneCluster:
    """The cluster of the rehearsal that a kubeconfig leads to."""
    server = kubeconfig["clusters"][0]["cluster"]["server"]
    record = ClustersRecord.read(paths.clusters_file)
    assert record is not None
    [name] = [name for name, each in record.clusters.items() if server.endswith(f":{each.port}")]
    token = paths.admin_token.read_text().strip()
    unknown: Any = None
    return OneCluster(name, unknown, engines, server, paths.root, token, paths.ca_certificate)


if __name__ == "__main__":
    main(*sys.argv[1:])
