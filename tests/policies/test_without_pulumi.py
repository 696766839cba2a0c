"""`python -m kueue_fleet_policies`: the rules on what `kueue-fleet render --cloud -o json` prints."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from command_line import call
from kueue_fleet_policies.__main__ import main

STACKS = Path(__file__).parents[2] / "stacks"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    printed = call("render", STACKS / "Pulumi.dws-multikueue.yaml", "--cloud", "-o", "json").stdout
    result: dict[str, Any] = json.loads(printed)
    return result


def judged(
    document: object, tmp_path: Path, capsys: pytest.CaptureFixture[str], config: object = None, output: str = "text"
) -> tuple[int, str]:
    (tmp_path / "cloud.json").write_text(json.dumps(document))
    (tmp_path / "config.json").write_text(json.dumps(config or {}))
    code = main([str(tmp_path / "cloud.json"), "--config", str(tmp_path / "config.json"), "--output", output])
    return code, capsys.readouterr().out


def cluster(document: dict[str, Any]) -> dict[str, Any]:
    """The properties of a copy's first cluster."""
    result = next(one for one in document["resources"].values() if one["type"] == "gcp:container/cluster:Cluster")
    properties: dict[str, Any] = result["properties"]
    return properties


def test_a_fleet_of_the_library_breaks_no_mandatory_rule(
    document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = judged(document, tmp_path, capsys)
    assert code == 0
    assert "mandatory" not in out
    assert out.splitlines()[-1] == "44 resources, 0 broken rules that are not advisory"


def test_a_broken_rule_is_named_with_the_resource_the_property_and_what_to_do(
    document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = json.loads(json.dumps(document))
    cluster(changed)["enableLegacyAbac"] = True
    code, out = judged(changed, tmp_path, capsys)
    assert code == 1
    assert "mandatory: gke-no-legacy-abac: dws-multikueue/manager-europe-west4: enableLegacyAbac: " in out


def test_settings_change_levels(document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = judged(document, tmp_path, capsys, {"all": "disabled", "gke-secrets-cmek": "mandatory"})
    assert code == 1
    assert {line.split(": ")[1] for line in out.splitlines()[:-1]} == {"gke-secrets-cmek"}


def test_what_another_resource_decides_is_not_judged(
    document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = json.loads(json.dumps(document))
    cluster(changed)["enableLegacyAbac"] = "${Network/lab/vpc.selfLink}"
    assert judged(changed, tmp_path, capsys)[0] == 0


NOTHING = '{"resources": {}}'


@pytest.mark.parametrize(
    ("text", "config", "said"),
    [
        ("no json", {}, "-: cannot be read"),
        ("[]", {}, "-: cannot be read"),
        ('{"resources": {"a": {}}}', {}, "-: cannot be read"),
        (NOTHING, {"x": "mandatory"}, "config.json: cannot be used: no rule is called x"),
        (NOTHING, {"all": "mandatry"}, "all: there is no level mandatry; use advisory, mandatory"),
        (NOTHING, {"spend-pool-gpus": {"maxGpu": 4}}, "spend-pool-gpus: there is no setting maxGpu; use maxGpus"),
        (NOTHING, {"spend-pool-gpus": {"maxGpus": "4"}}, 'spend-pool-gpus.maxGpus: "4" is given; give a JSON integer'),
        (
            NOTHING,
            {"gke-auto-upgrade": {"exemptions": [{"resource": "x"}]}},
            'gke-auto-upgrade.exemptions: {"resource": "x"} has no reason; add it',
        ),
    ],
)
def test_what_cannot_be_read_is_a_wrong_call(
    text: str,
    config: object,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(SystemExit) as end:
        main(["--config", str(tmp_path / "config.json")])
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def with_legacy_abac(document: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(document))
    cluster(changed)["enableLegacyAbac"] = True
    return changed


def test_code_scanners_get_each_breach_with_its_rule(
    document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = judged(with_legacy_abac(document), tmp_path, capsys, output="sarif")
    run = json.loads(out)["runs"][0]
    assert code == 1
    assert run["tool"]["driver"]["name"] == "kueue-fleet-policies"
    assert ("gke-no-legacy-abac", "error") in {(one["ruleId"], one["level"]) for one in run["results"]}
    assert {one["ruleId"] for one in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_github_gets_an_annotation_of_each_breach(
    document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = judged(with_legacy_abac(document), tmp_path, capsys, output="github")
    assert code == 1
    assert next(line for line in out.splitlines() if line.endswith("[gke-no-legacy-abac]")).startswith("::error file=")


def test_the_folder_of_the_pack_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--pack"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert (folder / "PulumiPolicy.yaml").is_file()
    assert (folder / "__main__.py").is_file()
