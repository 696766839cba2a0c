"""Charts that stand in for the operators of kinds of jobs: their definitions alone, so that Kueue manages the kinds.

Nothing runs the jobs: a job that Kueue admits stays Admitted. Pods and groups of them run, they need no operator.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from kueue_fleet.fleet_file.model.operators import FRAMEWORKS
from kueue_fleet.rehearsal.engines import Engines


def write_operator_charts(folder: Path, engines: Engines) -> dict[str, str]:
    """A chart below `folder` for each operator; returns their paths by the operators' fields in the fleet file."""
    charts = {}
    for operator in FRAMEWORKS:
        chart = folder / operator
        shutil.rmtree(chart, ignore_errors=True)
        shutil.copytree(engines.asset(f"{operator}-definitions"), chart / "crds")
        description = {"apiVersion": "v2", "name": operator.lower(), "version": "0.0.0"}
        (chart / "Chart.yaml").write_text(json.dumps(description))
        charts[operator] = str(chart)
    return charts
