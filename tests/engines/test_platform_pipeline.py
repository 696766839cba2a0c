"""The platform repository's `Preview` step, by the real Pulumi with its policy pack."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir
from tests.engines.plugin_lab import PluginLab, plugin_lab
from tests.examples.platform_pipeline import step

CHECK_FLEET = Path(__file__).parents[2] / "actions" / "check-fleet" / "check-fleet"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[PluginLab]:
    engines = build_engines(EngineCache(engines_dir()), names=["pulumi"])
    with plugin_lab(tmp_path, [engines.binary("pulumi")]) as result:
        yield result


def test_the_preview_passes_and_fails_with_the_companys_own_rule(lab: PluginLab) -> None:
    folder = lab.example("platform-repo")
    lab.run("pulumi", "stack", "init", "dev", folder=folder)
    preview = ("bash", "-ec", f"export STACK=dev; {step('Preview').run}")
    output = lab.run(*preview, folder=folder)
    assert "company:index:TeamSpace" in output
    assert "company@v1.0.0" in output
    assert lab.world.objects == {}

    component = folder / "company" / "team_space.py"
    component.write_text(component.read_text().replace("COST_CENTRE_LABEL: spec.cost_centre", '"owner": "nobody"'))
    config = folder / "Pulumi.dev.yaml"
    config.write_text(
        config.read_text().replace("nvidia.com/gpu, nominalQuota: 16", "nvidia.com/gpu, nominalQuota: 99")
    )
    lab.run("git", "init", "--quiet", folder=folder)
    judge = ("--stack", "dev", "--policy-pack", "policies", "--policy-pack-config", "policies/settings.json")
    path = f"PATH={lab.environment['PATH']}:{Path(sys.executable).parent}"
    output = lab.run("env", path, str(CHECK_FLEET), *judge, "Pulumi.dev.yaml", folder=folder, fails=True)
    assert "policies: **failed**" in output
    assert "space-cost-centre" in output, "the company's rule"
    assert "is missing, so no cost centre pays for this space" in output
    assert "spend-quota" in output, "a rule of the library, with the company's setting"
