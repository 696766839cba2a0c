"""Helm releases: options, values, what changed; helm itself is a script that records."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from kueue_fleet.rehearsal.standins.plugin_errors import InitializationError, PluginError
from kueue_fleet.rehearsal.standins.property_diff import render_path
from kueue_fleet.rehearsal.standins.property_values import UNKNOWN, Asset, Secret
from kueue_fleet_offline.helm_command import HelmCommand, HelmError
from kueue_fleet_offline.helm_release import (
    HelmReleases,
    check_options,
    merged_values,
    resource_names,
)

STATUS = {"name": "r", "namespace": "ns", "revision": 1, "status": "deployed", "chart": "c", "version": "1.2.3"}
HELM = """#!/bin/sh
echo "$@" >> {folder}/arguments
case "$1" in
  template) printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {{name: x}}\\n' ;;
  get) if [ -e {folder}/absent ]; then echo 'Error: release: not found' >&2; exit 1; fi
       if [ "$2" = values ]; then cat {folder}/values; else cat {folder}/status; fi ;;
  install|upgrade)
    for word in "$@"; do
      if [ -n "$take" ]; then cat "$word" > {folder}/$take; take=; fi
      case "$word" in --values) take=given ;; --kubeconfig) take=kubeconfig ;; esac
    done
    stat -c %a "$word" > {folder}/mode
    if [ -e {folder}/broken ]; then echo 'Error: timed out waiting for the condition' >&2; exit 1; fi ;;
esac
"""


@pytest.fixture
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "helm"
    script.write_text(HELM.format(folder=tmp_path), encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    Path(tmp_path, "status").write_text(json.dumps(STATUS), encoding="utf-8")
    Path(tmp_path, "values").write_text("null", encoding="utf-8")
    monkeypatch.setenv("KUEUE_FLEET_HELM", str(script))
    monkeypatch.delenv("KUEUE_FLEET_REHEARSAL", raising=False)
    return tmp_path


def _releases() -> HelmReleases:
    config = {"current-context": "c", "clusters": [], "contexts": [{"name": "c", "context": {"cluster": "k"}}]}
    return HelmReleases(config, "", "other", "default", threading.Event())


def _inputs(**more: Any) -> dict[str, Any]:
    return {"name": "r", "namespace": "ns", "chart": "oci://x/c", "timeout": 60, **more}


def _arguments(helm: Path) -> list[str]:
    return Path(helm, "arguments").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"postrender": "x"}, "postrender: the stand-in"),
        ({"verify": True}, "verify: the stand-in"),
        ({"chrt": "x"}, "chrt: is not a property of a Helm release"),
        ({"repositoryOpts": {"repo": "https://x", "password": Secret("p")}}, "repositoryOpts.password"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(inputs: dict[str, Any], words: str) -> None:
    ((_, reason),) = check_options(inputs)
    assert words in reason


def test_options_that_are_off_are_no_trouble() -> None:
    assert check_options({"verify": False, "chart": "c", "repositoryOpts": {"repo": "https://x"}}) == []


def test_check_completes_the_inputs_and_lists_what_the_chart_has(helm: Path) -> None:
    checked, failures = _releases().check({"chart": "oci://x/c", "values": {"a": Secret("s")}}, {}, "kueue", b"seed")
    assert failures == []
    assert checked["name"].startswith("kueue-")
    assert (checked["namespace"], checked["timeout"]) == ("default", 300)
    assert checked["resourceNames"] == {"ConfigMap/v1": ["x"]}
    assert len(checked["checksum"]) == 64
    assert checked["values"] == {"a": Secret("s")}
    again, _ = _releases().check({"chart": "oci://x/c"}, checked, "kueue", b"other")
    assert again["name"] == checked["name"]


def test_a_chart_is_not_rendered_while_a_value_is_unknown(helm: Path) -> None:
    checked, _ = _releases().check({"chart": "c", "values": {"a": UNKNOWN}}, {}, "kueue", b"")
    assert "checksum" not in checked
    assert not Path(helm, "arguments").exists()


def test_a_chart_on_disk_is_rendered_once_for_a_rehearsal(helm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = helm / "chart"
    chart.mkdir()
    Path(chart, "Chart.yaml").write_text("name: c\n", encoding="utf-8")
    monkeypatch.setenv("KUEUE_FLEET_REHEARSAL", str(helm / "state"))
    inputs = _inputs(chart=str(chart), values={"a": 1})
    first, _ = _releases().check(inputs, {}, "kueue", b"")
    assert _releases().check(inputs, {}, "kueue", b"")[0] == first
    assert len(_arguments(helm)) == 1
    Path(chart, "Chart.yaml").write_text("name: changed\n", encoding="utf-8")
    _releases().check(inputs, {}, "kueue", b"")
    _releases().check({**inputs, "values": {"a": 2}}, {}, "kueue", b"")
    assert len(_arguments(helm)) == 3


def test_install_passes_options_as_flags_and_values_in_a_private_file(helm: Path) -> None:
    inputs = _inputs(
        values={"password": Secret("s3cret")}, version="1.2.3", createNamespace=True, takeOwnership=True, atomic=False
    )
    resource_id, state = _releases().create(inputs, 0)
    assert resource_id == "ns/r"
    install = _arguments(helm)[0]
    for flag in (
        "--version 1.2.3",
        "--namespace ns",
        "--timeout 60s",
        "--wait",
        "--create-namespace",
        "--take-ownership",
    ):
        assert flag in install
    assert "--atomic" not in install
    assert "s3cret" not in install
    assert json.loads(Path(helm, "given").read_text(encoding="utf-8")) == {"password": "s3cret"}
    assert Path(helm, "mode").read_text(encoding="utf-8").strip() == "600"
    kubeconfig = json.loads(Path(helm, "kubeconfig").read_text(encoding="utf-8"))
    assert kubeconfig["contexts"][0]["context"]["cluster"] == "other"
    assert state["status"] == {**STATUS, "appVersion": ""}
    assert state["version"] == "1.2.3"
    assert state["values"] == {"password": Secret("s3cret")}
    assert state["__inputs"] == Secret(inputs)


def test_skip_await_does_not_wait_and_upgrade_has_its_own_flags(helm: Path) -> None:
    _releases().update(_inputs(skipAwait=True, maxHistory=3, cleanupOnFail=True, createNamespace=True), 0)
    upgrade = _arguments(helm)[0]
    assert "--wait" not in upgrade
    assert "--create-namespace" not in upgrade
    assert "--history-max 3" in upgrade
    assert "--cleanup-on-fail" in upgrade


def test_a_release_that_failed_but_is_there_is_kept_in_the_state(helm: Path) -> None:
    Path(helm, "broken").touch()
    with pytest.raises(InitializationError, match="failed to initialize completely") as caught:
        _releases().create(_inputs(), 0)
    assert caught.value.resource_id == "ns/r"
    Path(helm, "absent").touch()
    with pytest.raises(HelmError, match="timed out waiting"):
        _releases().create(_inputs(), 0)


def test_changes_are_between_the_inputs(helm: Path) -> None:
    _, state = _releases().create(_inputs(values={"a": Secret("1")}, atomic=False), 0)

    def changes(**more: Any) -> dict[str, bool]:
        differ = _releases().diff(state, _inputs(**{"values": {"a": "1"}, **more}))
        return {render_path(path): change.replaces for path, change in differ.changes.items()}

    assert changes() == {}
    assert changes(values={"a": "2"}) == {"values.a": False}
    assert changes(version="2.0.0") == {"version": False}
    assert changes(name="other") == {"name": True}
    assert changes(namespace="other") == {"namespace": True}


def test_reading_follows_values_that_were_changed_by_hand(helm: Path) -> None:
    _, state = _releases().create(_inputs(values={"a": 1}), 0)
    Path(helm, "values").write_text('{"a": 2}', encoding="utf-8")
    found = _releases().read("ns/r", state)
    assert found is not None
    assert found[1]["values"] == {"a": 2}
    imported = _releases().read("ns/r", {})
    assert imported is not None
    assert imported[1]["values"] == Secret({"a": 2})
    assert imported[1]["chart"] == "c"
    Path(helm, "absent").touch()
    assert _releases().read("ns/r", state) is None


def test_uninstalling_waits_as_the_release_was_made(helm: Path) -> None:
    _releases().delete(_inputs(), 0)
    _releases().delete(_inputs(skipAwait=True), 0)
    waiting, not_waiting = _arguments(helm)
    assert "--wait --timeout 60s" in waiting
    assert "--wait" not in not_waiting


def test_values_are_merged_in_order(tmp_path: Path) -> None:
    file = tmp_path / "v.yaml"
    file.write_text("a: {x: 1, y: 1}\nb: 1\n", encoding="utf-8")
    inputs = {"valueYamlFiles": [Asset(path=str(file)), Asset(text="b: 2")], "values": {"a": {"x": 2}}}
    assert merged_values(inputs) == {"a": {"x": 2, "y": 1}, "b": 2}
    with pytest.raises(PluginError, match="file and string assets only"):
        merged_values({"valueYamlFiles": [Asset(uri="https://x")]})


def test_resource_names_are_listed_by_kind() -> None:
    manifest = (
        "---\n# nothing\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b, namespace: n}\n"
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: n}\n"
        "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
    )
    assert resource_names(manifest) == {"Deployment.apps/apps/v1": ["n/a", "n/b"], "Service/v1": ["s"]}


def test_a_missing_helm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUEUE_FLEET_HELM", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    command = HelmCommand(None, "", "", threading.Event())
    with pytest.raises(HelmError, match="helm is not on PATH"):
        command.run(["version"])


def test_a_cancelled_helm_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "helm"
    script.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("KUEUE_FLEET_HELM", str(script))
    stop = threading.Event()
    stop.set()
    with pytest.raises(HelmError, match="helm install was cancelled"):
        HelmCommand(None, "", "", stop).run(["install", "x"])
