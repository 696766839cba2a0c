"""The documented way to adopt a cluster, by the real Pulumi: import, pulumi import, and a preview of what changes.

The provider reads what Google has, as `gcloud` describes it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi.runtime.proto import provider_pb2

from kueue_fleet.adopt.google_cloud import cluster_state, pool_state
from kueue_fleet.fleet_file import parse_fleet
from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir
from small_fleets import one_pool_data
from tests.adopt.existing_platform import described_cluster
from tests.engines.memory_provider import plain
from tests.engines.plugin_lab import PlanningProvider, PluginLab, plugin_lab

OF_STATE = ("deletionProtection", "removeDefaultNodePool")
"""Properties that the provider keeps in the state alone."""
PLACE = "projects/lab-project/locations/us-central1/clusters/batch"


class Google(PlanningProvider):
    """Differs as Google's provider does: what a program does not say is Google's, and false and zero are nothing."""

    def Diff(self, request: Any, context: Any) -> Any:
        old, new = plain(request.old_inputs), plain(request.news)
        changed = [name for name in new if name not in OF_STATE and not is_there(new[name], old.get(name))]
        some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
        kind = provider_pb2.PropertyDiff.UPDATE
        return provider_pb2.DiffResponse(
            changes=some if changed else none,
            diffs=changed,
            detailedDiff={name: provider_pb2.PropertyDiff(kind=kind, inputDiff=True) for name in changed},
            hasDetailedDiff=True,
        )


def is_there(asked: Any, there: Any) -> bool:
    """Whether a value has all that is asked for."""
    if isinstance(asked, dict):
        return all(is_there(value, (there or {}).get(key)) for key, value in asked.items())
    if isinstance(asked, list) and isinstance(there, list) and len(asked) == len(there):
        return all(map(is_there, asked, there))
    return text(asked) == text(there) or not (asked or there)


def text(value: Any) -> str:
    """Google has numbers as text, and Pulumi as fractions."""
    return str(value).removesuffix(".0")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[PluginLab]:
    engines = build_engines(EngineCache(engines_dir()), names=["pulumi"])
    with plugin_lab(tmp_path, [engines.binary("pulumi")], Google) as result:
        yield result


def test_a_preview_changes_of_the_imported_cluster_what_import_lists_and_nothing_else(lab: PluginLab) -> None:
    result = described_cluster(parse_fleet(one_pool_data()), "batch")
    description: Any = result.description
    description["legacyAbac"] = {"enabled": True}
    description["loggingConfig"]["componentConfig"]["enableComponents"] = ["SYSTEM_COMPONENTS"]
    folder = lab.folder / "platform"
    (folder / "batch").mkdir(parents=True)
    (folder / "batch" / "objects.yaml").write_text(yaml.safe_dump_all(result.objects))
    (folder / "batch.yaml").write_text(yaml.safe_dump(description))
    for kind, state in google_has(description):
        lab.world.objects["gcp", kind, "us-central1", state["name"]] = state

    command = str(Path(sys.executable).with_name("kueue-fleet"))
    given = ("batch=batch", "--description", "batch=batch.yaml", "--name", "ml", "--project", "lab-project")
    files = ("--pulumi-import", "import.json", "--output", "stacks/Pulumi.ml.yaml")
    output = lab.run(command, "import", *given, *files, folder=folder)
    listed = set(re.findall(r"^pulumi up changes (\S+): (\w+)", output, re.MULTILINE))
    lab.run("pulumi", "stack", "init", "ml", folder=folder)
    lab.run("pulumi", "import", "--file", "import.json", "--generate-code=false", "--yes", folder=folder)
    printed = lab.run("pulumi", "preview", "--json", "--non-interactive", folder=folder)
    steps = json.loads(printed[printed.index("{\n") : printed.rindex("}") + 1])["steps"]
    changes = {step["urn"].partition("gcp:container/")[2]: step for step in steps if "gcp:container/" in step["urn"]}
    assert {step["op"] for step in changes.values()} == {"update"}
    previewed = {
        (urn.rpartition("::ml/")[2], name) for urn, step in changes.items() for name in step.get("detailedDiff", {})
    }
    assert previewed == listed
    assert ("batch", "enableLegacyAbac") in listed
    assert {step["op"] for step in steps} <= {"create", "update", "same"}, "nothing is replaced or deleted"


def google_has(description: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The states that the provider reads."""
    place = {"project": "lab-project", "location": "us-central1"}
    yield "Cluster", {**cluster_state(description), **place, "selfLink": PLACE}
    for pool in description["nodePools"]:
        within = {**place, "cluster": "batch", "selfLink": f"{PLACE}/nodePools/{pool['name']}"}
        yield "NodePool", {**pool_state(pool), **within}
