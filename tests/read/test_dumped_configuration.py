"""Kueue's Configuration among the objects of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.simulation.objects import cluster, job, queue
from typer.testing import CliRunner

from kueue_admission.decide.model import FairSharingStrategy
from kueue_admission.read.dumped_configuration import dumped_configuration
from kueue_fleet.cli import app

V1BETA1, V1BETA2 = (f"config.kueue.x-k8s.io/{version}" for version in ("v1beta1", "v1beta2"))
BOTH = "fair sharing is on (LessThanOrEqualToFinalShare, LessThanInitialShare)"


def config_map(api: str, **sections: Any) -> dict[str, Any]:
    text = yaml.safe_dump({"apiVersion": api, "kind": "Configuration", **sections})
    metadata = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"controller_manager_config.yaml": text},
    }


@pytest.mark.parametrize(
    ("api", "section", "state"),
    [
        (V1BETA2, {"preemptionStrategies": ["LessThanInitialShare"]}, "fair sharing is on (LessThanInitialShare)"),
        (V1BETA2, {}, BOTH),
        (V1BETA1, {"enable": True}, BOTH),
    ],
)
def test_what_it_says_of_fair_sharing(api: str, section: dict[str, Any], state: str) -> None:
    result = dumped_configuration([config_map(api, fairSharing=section)], fair_sharing=False)
    assert result.notes == (f"Kueue's Configuration is that of ConfigMap kueue-system/kueue-manager-config: {state}",)
    assert result.configuration.fair_sharing is not None


@pytest.mark.parametrize(
    ("api", "sections"),
    [
        (V1BETA2, {}),
        (V1BETA1, {"fairSharing": {"enable": False, "preemptionStrategies": ["LessThanInitialShare"]}}),
    ],
)
def test_of_what_is_so_by_default_it_says_nothing(api: str, sections: dict[str, Any]) -> None:
    result = dumped_configuration([config_map(api, **sections)], fair_sharing=False)
    assert (result.notes, result.configuration.fair_sharing) == ((), None)


def test_the_option_keeps_the_strategies() -> None:
    given = config_map(V1BETA2, fairSharing={"preemptionStrategies": ["LessThanInitialShare"]})
    result = dumped_configuration([given], fair_sharing=True)
    assert result.configuration.fair_sharing == (FairSharingStrategy.LESS_THAN_INITIAL_SHARE,)


def test_other_settings_that_decide_are_read_too() -> None:
    given = config_map(V1BETA2, waitForPodsReady={"timeout": "7m"})
    settings = dumped_configuration([given], fair_sharing=False).configuration.wait_for_pods_ready
    assert settings is not None
    assert settings.timeout == 420


@pytest.mark.parametrize(
    ("sections", "wrong"),
    [
        ({"fairSharing": {"preemptionStrategies": ["Some"]}}, "'Some' is not a valid FairSharingStrategy"),
        ({"resources": {"deviceClassMappings": [{"sources": [{}]}]}}, "devices that share counters or capacity"),
    ],
)
def test_one_that_cannot_be_read_is_said(sections: dict[str, Any], wrong: str) -> None:
    [note] = dumped_configuration([config_map(V1BETA2, **sections)], fair_sharing=False).notes
    assert "the defaults of Kueue count instead: " in note
    assert wrong in note


@pytest.mark.parametrize(
    ("cohort", "fair_sharing", "said"),
    [({"cohortName": "c"}, False, 1), ({"cohortName": "c"}, True, 0), ({}, False, 0)],
)
def test_none_is_said_where_it_matters(cohort: dict[str, Any], fair_sharing: bool, said: int) -> None:
    notes = dumped_configuration([queue(**cohort)], fair_sharing=fair_sharing).notes
    assert len(notes) == said
    assert all("is in a cohort, where fair sharing counts as off; add what" in note for note in notes)


def to(name: str, second: int, run: str, local_queue: str) -> dict[str, Any]:
    result = job(name, second, run)
    result["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = local_queue
    return result


@pytest.fixture
def two_borrowers(tmp_path: Path) -> list[dict[str, Any]]:
    """Queue a has borrowed already; its second job is older than the first of queue b. Then two cores come free."""
    local = cluster()[2]
    queues = [
        item
        for name in ("a", "b")
        for item in (
            queue(name, cpu=0, cohortName="c"),
            {**local, "metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": name}},
        )
    ]
    jobs = [to("a1", 0, "100", "a"), job("own", 0, "10"), to("a2", 1, "100", "a"), to("b1", 2, "100", "b")]
    return [*cluster(cpu=4, cohortName="c"), *queues, *jobs]


@pytest.mark.parametrize(("sections", "first"), [({"fairSharing": {}}, "b1"), ({}, "a2")])
def test_simulate_decides_by_it(
    sections: dict[str, Any], first: str, two_borrowers: list[dict[str, Any]], tmp_path: Path
) -> None:
    dump = tmp_path / "dump.yaml"
    dump.write_text(yaml.safe_dump_all([*two_borrowers, config_map(V1BETA2, **sections)]))
    result = CliRunner().invoke(app, ["simulate", "objects", str(dump), "--until", "20", "-o", "json"])
    admitted = {w["name"] for w in json.loads(result.stdout)["workloads"] if w["admittedAt"] is not None}
    assert admitted & {"a2", "b1"} == {first}
    assert result.stderr.count("Kueue's Configuration is that of ConfigMap") == len(sections)


@pytest.mark.parametrize(("sections", "first"), [({"fairSharing": {}}, "fairSharing"), ({}, "age")])
def test_explain_decides_by_it(
    sections: dict[str, Any], first: str, two_borrowers: list[dict[str, Any]], tmp_path: Path
) -> None:
    """With two cores for three jobs: why the turn of the other queue's head comes first."""
    jobs = {each["metadata"]["name"]: each for each in two_borrowers if each["kind"] == "Job"}
    given = [item for item in two_borrowers if item not in (jobs["own"], jobs["a1"])]
    next(entry for entry in given if entry["metadata"]["name"] == "cq")["spec"].update(queue(cpu=2)["spec"])
    dump = tmp_path / "dump.yaml"
    dump.write_text(yaml.safe_dump_all([*given, config_map(V1BETA2, **sections)]))
    result = CliRunner().invoke(app, ["explain", "b1", "--objects", str(dump), "-o", "json"])
    [explanation] = json.loads(result.stdout)["explanations"]
    assert [blocker["first"] for blocker in explanation["blockers"]] == [first]


@pytest.mark.parametrize(
    ("labels", "own_labels", "said"),
    [
        ({"app.kubernetes.io/version": "v0.17.1"}, False, ", and it is decided as Kueue 0.17 does"),
        ({"helm.sh/chart": "kueue-0.18.3"}, True, ", and it is decided as Kueue 0.18 does"),
        ({"app.kubernetes.io/version": "v0.19.2"}, True, ""),
        ({}, True, ""),
    ],
)
def test_it_is_decided_as_its_release_does(labels: dict[str, str], own_labels: bool, said: str) -> None:
    config = config_map(V1BETA2)
    config["metadata"]["labels"] = labels
    result = dumped_configuration([config], fair_sharing=False)
    assert result.configuration.gates.behaviours.looks_at_own_labels_of_flavor is own_labels
    assert "".join(result.notes).endswith(f"fair sharing is off{said}" if said else "")


def deployment(image: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "manager", "image": image}]}
    metadata = {"name": "kueue-controller-manager", "namespace": "kueue-system"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": {"spec": pod}}}


@pytest.mark.parametrize("more", [[], [config_map(V1BETA1)]])
def test_a_dump_of_xpk_is_decided_as_its_release_does(more: list[dict[str, Any]]) -> None:
    """Kueue's own manifests give the ConfigMap no version; the image of the Deployment has it."""
    result = dumped_configuration([*more, deployment("registry.k8s.io/kueue/kueue:v0.17.1")], fair_sharing=False)
    assert not result.configuration.gates.behaviours.looks_at_own_labels_of_flavor
    assert result.notes[0].endswith("it is decided as Kueue 0.17 does")


@pytest.mark.parametrize("command", ["explain", "simulate"])
@pytest.mark.parametrize(
    ("asked", "admits"), [([], True), (["--kueue", "0.18.3"], True), (["--kueue", "0.17.1"], False)]
)
def test_commands_decide_as_another_release(
    command: str,
    asked: list[str],
    admits: bool,
    tmp_path: Path,
) -> None:
    """Before 0.18.2 a job that selects a label of one flavor does not get another flavor without that label."""
    flavors = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": 1}]} for name in ("a", "plain")]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    specs = {
        "ResourceFlavor a": {"nodeLabels": {"kind": "a"}},
        "ResourceFlavor plain": {},
        "ClusterQueue cq": {"namespaceSelector": {}, "resourceGroups": groups},
        "LocalQueue lq": {"clusterQueue": "cq"},
    }
    objects = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": name.split()[0],
            "metadata": {"name": name.split()[1]},
            "spec": spec,
        }
        for name, spec in specs.items()
    ]
    selecting = job("j", 0, "1", cpu="1")
    selecting["spec"]["template"]["spec"]["nodeSelector"] = {"kind": "b"}
    dump = tmp_path / "dump.yaml"
    dump.write_text(yaml.safe_dump_all([*objects, selecting]))
    arguments, text = {
        "explain": (["explain", "j", "--objects"], "the next cycle admits it"),
        "simulate": (["simulate", "objects"], "Finished"),
    }[command]
    result = CliRunner().invoke(app, [*arguments, str(dump), *asked])
    assert (text in result.stdout) is admits, result.output
