"""The life of single objects, on an API in memory."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from tests.offline.fake_api import FakeApi

from kueue_fleet.rehearsal.standins.plugin_errors import InitializationError, PluginError
from kueue_fleet.rehearsal.standins.property_diff import render_path
from kueue_fleet.rehearsal.standins.property_values import UNKNOWN, Secret
from kueue_fleet_offline import kube_resources
from kueue_fleet_offline.kube_api import ApiError
from kueue_fleet_offline.kube_resources import KubeResources, Naming, parse_checkpoint
from kueue_fleet_offline.kube_settings import Settings

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
URN = "urn:pulumi:dev::p::kubernetes:core/v1:ConfigMap::settings"


def _resources(api: FakeApi | None, **settings: Any) -> KubeResources:
    return KubeResources(
        api=api,
        unreachable="nobody there",
        settings=replace(Settings(), **settings),
        default_namespace="default",
        stop=threading.Event(),
        report=lambda urn, text: None,
    )


def _config_map(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, **parts}


def _check(token: str, news: dict[str, Any], olds: dict[str, Any] | None = None, **naming: Any) -> dict[str, Any]:
    return _resources(FakeApi()).check(token, Naming("settings", b"seed", **naming), news, olds or {})


def test_an_object_gets_the_default_namespace_and_keeps_its_secrets() -> None:
    checked = _check(CONFIG_MAP, _config_map(data={"a": Secret("s"), "b": UNKNOWN}))
    assert checked["metadata"] == {"name": "settings", "namespace": "default"}
    assert checked["data"] == {"a": Secret("s"), "b": UNKNOWN}


def test_a_cluster_scoped_object_gets_none() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    checked = _check("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", role)
    assert checked["metadata"] == {"name": "r"}


PATCH = "kubernetes:core/v1:ConfigMapPatch"
PATCH_URN = f"urn:pulumi:dev::p::my:own:Component${PATCH}::settings"


def test_a_patch_applies_its_fields_and_takes_only_them_away_again() -> None:
    api = FakeApi()
    api.objects["ConfigMap", "default", "settings"] = _config_map(data={"theirs": "1"})
    resources = _resources(api)
    news = resources.check(PATCH, Naming("settings"), _config_map(data={"mine": "2"}), {})
    assert news["kind"] == "ConfigMap"
    assert resources.create(PATCH_URN, news, seconds=1, preview=True) is None
    made = resources.create(PATCH_URN, news, seconds=1, preview=False)
    assert made is not None
    resource_id, state = made
    assert api.calls == ["apply"], "not created, and nothing forced"
    changed = {**news, "data": {"mine": "3"}}
    for wanted, paths in ((news, []), (changed, ["data.mine"])):
        differ, _ = resources.diff(state, wanted, [], patch=True)
        assert [render_path(path) for path in differ.changes] == paths
    assert resources.update(PATCH_URN, resource_id, changed, state, seconds=1, preview=False)
    resources.delete(PATCH, PATCH_URN, resource_id, state, news, seconds=1)
    assert api.calls == ["apply"] * 3
    left = api.objects["ConfigMap", "default", "settings"]
    assert "data" not in left, "what is applied last has no fields of its own"
    gone = FakeApi()
    _resources(gone).delete(PATCH, PATCH_URN, resource_id, state, news, seconds=1)
    assert gone.calls == [], "an object that is gone is not made again"


def test_metadata_may_be_secret_as_a_whole() -> None:
    checked = _check(CONFIG_MAP, _config_map(metadata=Secret({"name": "settings"})))
    assert checked["metadata"] == Secret({"name": "settings", "namespace": "default"})


def test_a_name_is_made_up_once_and_then_kept() -> None:
    first = _check(CONFIG_MAP, _config_map(metadata={}))
    assert first["metadata"]["name"].startswith("settings-")
    assert _check(CONFIG_MAP, _config_map(metadata={}), first)["metadata"]["name"] == first["metadata"]["name"]


def test_the_stacks_autonaming_is_followed() -> None:
    assert _check(CONFIG_MAP, _config_map(metadata={}), proposed="mine")["metadata"]["name"] == "mine"
    with pytest.raises(PluginError, match="autonaming is disabled"):
        _check(CONFIG_MAP, _config_map(metadata={}), disabled=True)


@pytest.mark.parametrize(
    ("token", "news", "words"),
    [
        (CONFIG_MAP, {"kind": "ConfigMap"}, "apiVersion is missing"),
        (CONFIG_MAP, {"apiVersion": "v1"}, "kind is missing"),
        (CONFIG_MAP, _config_map(metadata={"generateName": "a"}), "generateName"),
        (CONFIG_MAP, _config_map(metadata={"name": "a", "annotations": {"pulumi.com/waitFor": "Ready"}}), "prefix"),
        (CONFIG_MAP, _config_map(metadata=UNKNOWN), "not known yet as a whole"),
        (
            "kubernetes:core/v1:NamespacePatch",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {}},
            "patch resources require the `.metadata.name` field",
        ),
        ("kubernetes:core/v1:ConfigMapList", {"apiVersion": "v1", "kind": "ConfigMapList"}, "cannot be created"),
        (
            "kubernetes:networking.k8s.io/v1:Ingress",
            {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}},
            "no rule for when a Ingress is ready",
        ),
    ],
)
def test_what_cannot_work_is_refused_at_once(token: str, news: dict[str, Any], words: str) -> None:
    with pytest.raises(PluginError, match=words):
        _check(token, news)


def _created(api: FakeApi, inputs: dict[str, Any], **settings: Any) -> tuple[str, dict[str, Any]]:
    made = _resources(api, **settings).create(URN, inputs, seconds=0, preview=False)
    assert made is not None
    return made


def test_a_new_object_is_created_not_applied() -> None:
    api = FakeApi()
    inputs = _config_map(metadata={"name": "settings", "namespace": "default"}, data={"a": Secret("s")})
    resource_id, state = _created(api, inputs)
    assert resource_id == "default/settings"
    assert api.calls == ["create pulumi-kubernetes"]
    assert state["data"] == {"a": Secret("s")}
    assert state["__inputs"] == inputs
    assert "managedFields" not in state["metadata"]


def test_the_namespace_that_was_assumed_is_taken_from_a_cluster_scoped_object() -> None:
    api = FakeApi()
    queue = {"apiVersion": "k/v1", "kind": "ClusterQueue", "metadata": {"name": "q", "namespace": "default"}}
    resource_id, state = _created(api, queue)
    assert resource_id == "q"
    differ, _ = _resources(api).diff(state, {**queue, "metadata": {"name": "q"}}, [])
    assert not differ.changes


def test_an_existing_object_is_applied_over_only_with_upsert() -> None:
    api = FakeApi()
    inputs = _config_map(metadata={"name": "settings", "namespace": "default"})
    _created(api, inputs)
    with pytest.raises(PluginError, match="already exists"):
        _created(api, inputs)
    _created(api, inputs, upsert=True)
    assert api.calls[-1] == "apply"


def test_creation_is_tried_again_while_the_kind_or_namespace_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_resources, "CREATE_RETRY_SECONDS", (0, 0))
    api = FakeApi()
    missing = ApiError(404, "NotFound", 'namespaces "default" not found')
    api.failures = [missing, missing]
    _created(api, _config_map())
    api.failures = [missing, missing, missing]
    with pytest.raises(PluginError, match="was not successfully created"):
        _created(api, _config_map(metadata={"name": "other"}))
    with pytest.raises(PluginError, match="the apiVersion for this resource does not exist"):
        _created(FakeApi("ConfigMap"), _config_map())


def test_creation_is_not_tried_again_when_a_webhook_fails() -> None:
    api = FakeApi()
    api.failures = [ApiError(500, "InternalError", "Internal error occurred: failed calling webhook: no endpoints")]
    with pytest.raises(PluginError, match="failed calling webhook"):
        _created(api, _config_map())
    assert len(api.calls) == 1


def test_a_preview_is_a_dry_run_or_the_inputs() -> None:
    api = FakeApi()
    resources = _resources(api)
    made = resources.create(URN, _config_map(), seconds=0, preview=True)
    assert made is not None
    assert made[0] == ""
    assert api.calls == ["create dry"]
    assert api.objects == {}
    assert resources.create(URN, _config_map(data={"a": UNKNOWN}), seconds=0, preview=True) is None
    assert _resources(FakeApi("ConfigMap")).create(URN, _config_map(), seconds=0, preview=True) is None
    assert _resources(None).create(URN, _config_map(), seconds=0, preview=True) is None


def test_an_object_that_is_not_ready_is_stored_all_the_same() -> None:
    inputs = _config_map(
        metadata={"name": "settings", "annotations": {"pulumi.com/waitFor": "condition=Active"}},
        data={"a": Secret("s")},
    )
    with pytest.raises(InitializationError, match="was successfully created, but") as caught:
        _created(FakeApi(), inputs)
    assert caught.value.resource_id == "settings"
    assert caught.value.properties["data"] == {"a": Secret("s")}


def _changes(state: dict[str, Any], news: dict[str, Any], ignored: tuple[str, ...] = ()) -> dict[str, bool]:
    differ, _ = _resources(FakeApi()).diff(state, news, list(ignored))
    return {render_path(path): change.replaces for path, change in differ.changes.items()}


def test_changes_are_against_the_live_object_in_the_shape_of_the_inputs() -> None:
    api = FakeApi()
    inputs = _config_map(metadata={"name": "settings", "namespace": "default"}, data={"a": "1"})
    _, state = _created(api, inputs)
    assert _changes(state, inputs) == {}
    assert _changes(state, {**inputs, "data": {"a": "2"}}) == {"data.a": True}
    drifted = {**state, "data": {"a": "drifted"}, "immutable": True}
    assert _changes(drifted, inputs) == {"data.a": True}
    assert _changes(drifted, inputs, ("data",)) == {}


def test_a_replacement_deletes_first_when_the_name_stays() -> None:
    _, state = _created(FakeApi(), _config_map(data={"a": "1"}))
    resources = _resources(FakeApi())
    assert resources.diff(state, _config_map(data={"a": "2"}), [])[1] is True
    other = _config_map(metadata={"name": "other"}, data={"a": "2"})
    assert resources.diff(state, other, [])[1] is False


def test_an_update_applies_and_takes_over_what_the_create_left() -> None:
    api = FakeApi()
    inputs = _config_map(metadata={"name": "settings", "namespace": "default"}, data={"a": "1"})
    _, state = _created(api, inputs)
    resources = _resources(api)
    resources.update(URN, "default/settings", {**inputs, "data": {}}, state, seconds=0, preview=True)
    assert api.calls[-1] == "apply force dry", "a preview must not meet its own create as a conflict"
    updated = resources.update(URN, "default/settings", {**inputs, "data": {}}, state, seconds=0, preview=False)
    assert api.calls[-2:] == ["patch /metadata/managedFields", "apply"]
    assert updated is not None
    assert updated["__fieldManager"] == state["__fieldManager"]


def test_a_conflict_says_how_to_take_over() -> None:
    api = FakeApi()
    inputs = _config_map(metadata={"name": "settings", "namespace": "default"})
    _, state = _created(api, inputs)
    api.failures = [ApiError(409, "Conflict", 'Apply failed with 1 conflict: conflict with "x": .data.a')]
    with pytest.raises(PluginError, match=r"field conflict detected(.|\n)*pulumi\.com/patchForce"):
        _resources(api).update(URN, "default/settings", inputs, state, seconds=0, preview=False)
    _resources(api, patch_force=True).update(URN, "default/settings", inputs, state, seconds=0, preview=False)
    assert api.calls[-1] == "apply force"


def test_reading_gives_state_and_inputs_or_nothing() -> None:
    api = FakeApi()
    inputs = _config_map(metadata={"name": "settings", "namespace": "default"}, data={"a": Secret("1")})
    resource_id, state = _created(api, inputs)
    resources = _resources(api)
    api.objects["ConfigMap", "default", "settings"]["data"] = {"a": "2", "extra": "x"}
    found = resources.read(CONFIG_MAP, resource_id, state, inputs)
    assert found is not None
    assert found[1]["data"] == {"a": Secret("2")}
    assert found[0]["data"] == {"a": Secret("2"), "extra": "x"}
    imported = resources.read(CONFIG_MAP, resource_id, {}, {})
    assert imported is not None
    assert imported[1]["data"] == {"a": "2", "extra": "x"}
    assert set(imported[1]["metadata"]) == {"name", "namespace"}
    assert resources.read(CONFIG_MAP, "default/other", state, inputs) is None
    assert _resources(FakeApi("ConfigMap")).read(CONFIG_MAP, resource_id, state, inputs) is None


@pytest.mark.parametrize(
    ("policy", "expected"), [("", "Foreground"), ("background", "Background"), ("orphan", "Orphan")]
)
def test_deletion_waits_until_the_object_is_gone(policy: str, expected: str) -> None:
    api = FakeApi()
    annotations = {"pulumi.com/deletionPropagationPolicy": policy}
    inputs = _config_map(metadata={"name": "settings", "namespace": "default", "annotations": annotations})
    resource_id, state = _created(api, inputs)
    api.states = [None]
    resources = _resources(api)
    resources.delete(CONFIG_MAP, URN, resource_id, state, inputs, seconds=0)
    assert api.calls[-1] == f"delete {expected}"


def test_deleting_what_is_gone_is_fine() -> None:
    _, state = _created(FakeApi(), _config_map())
    for api in (FakeApi("ConfigMap"),):
        _resources(api).delete(CONFIG_MAP, URN, "default/settings", state, {}, seconds=0)


def test_the_state_is_inputs_and_live_object_apart() -> None:
    _, state = _created(FakeApi(), _config_map(data={"a": Secret("s")}))
    inputs, live = parse_checkpoint(state)
    assert inputs == _config_map(data={"a": "s"})
    assert live["data"] == {"a": "s"}
    assert not [key for key in live if key.startswith("__")]


def test_a_cluster_that_is_not_there_is_named() -> None:
    with pytest.raises(PluginError, match="configured Kubernetes cluster is unreachable: nobody there"):
        _resources(None).create(URN, _config_map(), seconds=0, preview=False)
