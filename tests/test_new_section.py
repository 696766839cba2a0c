"""A new section of the fleet file is four new modules and a line or two in four more, and everything has it then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[1]
SECTION: Final = ROOT / "tests" / "new_section"
NEW: Final = {
    "fleet_file/model/scratch_disks.py": SECTION / "model" / "scratch_disks.py",
    "fleet_file/check/scratch_disks.py": SECTION / "check" / "scratch_disks.py",
    "objects/scratch_disks.py": SECTION / "objects" / "scratch_disks.py",
    "google/scratch_disks.py": SECTION / "google" / "scratch_disks.py",
}
"""The modules of the section, by their places in `kueue_fleet`."""
FAR_DISK: Final = """
FAR_DISK = Rule(
    "KF899",
    seen="`ZONE is in no region of a cluster`",
    why="A disk can only be attached in its own zone.",
    remedy="Write a zone of a cluster",
    source="https://cloud.google.com/compute/docs/disks",
)
"""
LINES: Final = {
    "fleet_file/model/fleet_fields.py": {
        "from kueue_fleet.fleet_file.model.storage import StorageEntry\n": (
            "from kueue_fleet.fleet_file.model.scratch_disks import ScratchDiskEntry\n"
        ),
        "    namespace_labels: Mapping": (
            '    scratch_disks: ListOf[ScratchDiskEntry] = ()\n    """Empty disks of teams."""\n'
        ),
    },
    "fleet_file/rules/teams.py": {"NAMESPACE_SELECTOR = Rule(\n": FAR_DISK},
    "objects/parts.py": {
        "from kueue_fleet.objects.storage": "from kueue_fleet.objects.scratch_disks import render_scratch_disks\n",
        '    ClusterPart("gpu-drivers"': (
            '    ClusterPart("scratchDisks", render_scratch_disks, ("ConfigMap",), after="teams"),\n'
        ),
    },
    "google/parts.py": {
        "from kueue_fleet.google.storage": (
            "from kueue_fleet.google.scratch_disks import scratch_disk_arguments, scratch_disk_costs, scratch_disks\n"
        ),
        '    CloudPart("members"': (
            '    CloudPart("scratchDisks", scratch_disk_arguments, scratch_disks, scratch_disk_costs),\n'
        ),
    },
}
"""The lines of the section in modules that are there: before what, by module."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the library says that has the section."""
    components = tmp_path_factory.mktemp("components")
    library = components / "kueue_fleet"
    shutil.copytree(ROOT / "components" / "kueue_fleet", library, ignore=shutil.ignore_patterns("__pycache__"))
    for place, module in NEW.items():
        shutil.copy(module, library / place)
    for place, lines in LINES.items():
        text = (library / place).read_text(encoding="utf-8")
        for before, line in lines.items():
            assert text.count(before) == 1, (place, before)
            text = text.replace(before, line + before)
        (library / place).write_text(text, encoding="utf-8")
    paths = os.pathsep.join(map(str, (components, ROOT / "components")))
    command = [sys.executable, str(SECTION / "walk.py"), str(ROOT / "examples" / "lab" / "fleet.yaml")]
    result = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_it_takes_eight_files_of_which_four_are_new() -> None:
    assert (len(NEW), len(LINES)) == (4, 4)


def test_its_fields_and_rules_are_checked(walk: Any) -> None:
    assert walk["problems"] == [
        "scratchDisks[far].team: there is no team visoin; did you mean vision? [KF503]",
        "scratchDisks[far].zone: europe-west4-a is in no region of a cluster; write a zone of one [KF899]",
        "scratchDisks[scratch].sizeGib: 1, which is too small; write 10 or more [KF511]",
    ]


def test_its_objects_are_rendered(walk: Any) -> None:
    [disk] = walk["objects"]
    assert disk["metadata"]["name"] == "disk-scratch"


def test_its_resources_are_in_google_cloud(walk: Any) -> None:
    assert walk["resources"] == ["Disk/lab/scratchDisks/scratch/us-central1-a"]


def test_it_is_paid(walk: Any) -> None:
    assert walk["cost"] == ["500 GiB in us-central1-a"]


def test_diff_says_what_is_lost(walk: Any) -> None:
    assert walk["removed"][0].startswith(
        "scratchDisks[scratch]: disk scratch in us-central1-a is deleted, with all that is in it"
    )


def test_pulumi_makes_it(walk: Any) -> None:
    assert "gcp:compute/disk:Disk::lab/scratchDisks/scratch/us-central1-a" in walk["declared"]


def test_pulumi_makes_its_objects(walk: Any) -> None:
    [disk] = [item for item in walk["declared"] if item.startswith("kubernetes:") and "scratchDisks" in item]
    assert disk.endswith("/disk-scratch")


def test_the_reference_has_it(walk: Any) -> None:
    assert walk["reference"]
