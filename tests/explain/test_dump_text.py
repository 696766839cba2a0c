"""A dump that is cut gives what a dump that is read gives: the same objects, and the same explanations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kueue_fleet.cli import app, explain_input
from kueue_fleet.explain.block_yaml import NotSimpleError
from kueue_fleet.explain.dump_text import cut

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
KUEUE = "kueue.x-k8s.io/v1beta2"


def workload(name: str = "train", **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "annotations": {"note": "name: other\n  kind: Job\n    namespace: other\n"},
            "ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": f"{name}-{kind}"} for kind in ("Job", "A")],
        },
        "spec": {"queueName": "gpus", "podSets": [{"name": "main", "count": 1}]},
        "status": status,
    }


def listed(*items: dict[str, Any], **fields: Any) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "items": list(items), "kind": "List", **fields})


class TestItems:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
    def test_they_are_whole(self, case: Path) -> None:
        objects = yaml.safe_load(case.read_text())["objects"]
        assert [item.whole() for item in cut(listed(*objects))] == objects

    def test_the_few_fields_of_a_workload(self) -> None:
        finished = {"conditions": [{"message": "type: Finished", "status": "True", "type": "Finished"}]}
        held = {"admission": {"clusterQueue": "cq", "podSetAssignments": []}, **finished}
        [pending, done] = cut(listed(workload("0x1"), workload("b", **held)))
        owners = [{"kind": "Job", "name": "0x1-Job"}, {"kind": "A", "name": "0x1-A"}]
        assert pending.data == {
            "kind": "Workload",
            "metadata": {"name": "0x1", "namespace": "team-a", "ownerReferences": owners},
            "spec": {"queueName": "gpus"},
            "status": {},
        }
        assert done.data["status"] == {
            "admission": {"clusterQueue": "cq"},
            "conditions": [{"type": "Finished", "status": "True"}],
        }
        assert done.whole() == workload("b", **held)

    def test_one_that_has_not_finished(self) -> None:
        [item] = cut(listed(workload(conditions=[{"status": "False", "type": "Finished"}])))
        assert item.data["status"] == {}

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "- a\n",
            yaml.safe_dump_all([workload(), workload("b")]),
            listed(workload()) + "---\n" + listed(workload("b")),
            listed(workload(), kind="WorkloadList2"),
            listed(workload()).replace("\n", "\r\n"),
            "apiVersion: v1\nitems:\n- kind: Workload\n  metadata:\n    name: &x a\n  spec: {}\n- *x\nkind: List\n",
        ],
    )
    def test_what_is_not_such_a_list(self, text: str) -> None:
        with pytest.raises(NotSimpleError):
            [item.whole() for item in cut(text)]


class TestExplanations:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
    def test_are_the_same(self, case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        loaded = yaml.safe_load(case.read_text())
        dump = tmp_path / "dump.yaml"
        dump.write_text(listed(*loaded["objects"]))
        texts = []
        for least in (10**9, 0):
            monkeypatch.setattr(explain_input, "_LARGE", least)
            texts.append(explained(dump, loaded["workload"]))
        assert texts[0] == texts[1]

    def test_text_that_cannot_be_cut_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        loaded = yaml.safe_load(CASES[1].read_text())
        dump = tmp_path / "dump.yaml"
        dump.write_text(yaml.safe_dump_all(loaded["objects"]))
        whole = explained(dump, loaded["workload"])
        monkeypatch.setattr(explain_input, "_LARGE", 0)
        assert explained(dump, loaded["workload"]) == whole

    def test_an_error_has_its_place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        loaded = yaml.safe_load(next(case for case in CASES if case.stem == "waiting-for-quota").read_text())
        for item in loaded["objects"]:
            if item["kind"] == "Workload":
                item["spec"]["priority"] = "high"
        dump = tmp_path / "dump.yaml"
        dump.write_text(listed(*loaded["objects"]))
        texts = []
        for least in (10**9, 0):
            monkeypatch.setattr(explain_input, "_LARGE", least)
            done = CliRunner().invoke(app, ["explain", loaded["workload"], "--objects", str(dump)])
            texts.append(str(done.exception))
        assert texts[0] == texts[1]
        assert f"{dump}:1: items[" in texts[0]
        assert "spec.priority: is the text 'high'" in texts[0]


def explained(dump: Path, name: str) -> str:
    done = CliRunner().invoke(app, ["explain", name, "--objects", str(dump), "--at", "2026-11-20T12:00:00"])
    assert done.exception is None, done.output
    return done.stdout
