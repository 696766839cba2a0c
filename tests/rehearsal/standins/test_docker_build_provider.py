"""The stand-in of the provider docker-build: what it refuses, what is a change to it, and that it builds nothing."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from engine_warnings import Warnings
from kueue_admission.kernel.unknown import UNKNOWN
from kueue_rehearsal.standins import docker_build_provider
from kueue_rehearsal.standins.docker_build_provider import IMAGE, DockerBuildProvider, context_hash
from kueue_rehearsal.standins.plugin_errors import PluginError
from kueue_rehearsal.standins.plugin_server import EngineLog
from kueue_rehearsal.standins.property_values import Secret, parse_struct, render_struct, reveal


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    (tmp_path / "Dockerfile.dockerignore").write_text("# what is in it\n*\n!app\n**/__pycache__\n")
    (tmp_path / "app" / "__pycache__").mkdir(parents=True)
    (tmp_path / "app" / "main.py").write_text("1")
    return {
        "tags": ["r.test/team/app:1"],
        "context": {"location": str(tmp_path)},
        "dockerfile": {"location": str(tmp_path / "Dockerfile")},
        "platforms": ["linux/amd64"],
        "push": True,
        "registries": [{"address": "r.test", "username": "me", "password": "one"}],
    }


def checked(inputs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    request = provider_pb2.CheckRequest(type=IMAGE, news=render_struct(inputs))
    answer = DockerBuildProvider("0.0.22", EngineLog(None)).Check(request, None)
    return parse_struct(answer.inputs), {failure.property: failure.reason for failure in answer.failures}


def changes(state: dict[str, Any], inputs: dict[str, Any]) -> list[str]:
    request = provider_pb2.DiffRequest(type=IMAGE, olds=render_struct(state), news=render_struct(inputs))
    answer = DockerBuildProvider("0.0.22", EngineLog(None)).Diff(request, None)
    assert not answer.replaces
    return list(answer.diffs)


def created(inputs: dict[str, Any], log: Warnings, *, preview: bool = False) -> dict[str, Any]:
    request = provider_pb2.CreateRequest(type=IMAGE, urn="urn:x", properties=render_struct(inputs), preview=preview)
    answer = DockerBuildProvider("0.0.22", log).Create(request, None)
    state: dict[str, Any] = reveal(parse_struct(answer.properties))
    assert answer.id == ("" if preview else state["digest"])
    return state


def test_defaults_of_the_schema_are_filled_in(inputs: dict[str, Any]) -> None:
    """As the real provider's Check answered when it was given the same."""
    zeros = {"pull": False, "load": False, "noCache": False, "exec": False, "target": ""}
    defaults = {"network": "default", "buildOnPreview": True, **zeros}
    dockerfile = {**inputs["dockerfile"], "inline": ""}
    whole, failures = checked(inputs)
    assert failures == {}
    assert isinstance(whole["registries"][0]["password"], Secret)
    assert reveal(whole) == {**inputs, **defaults, "dockerfile": dockerfile}


@pytest.mark.parametrize(
    ("change", "path", "reason"),
    [
        ({"tag": "a"}, "tag", "tag: pulumi-docker-build has no such property; did you mean tags?"),
        ({"push": None}, "push", "push: required field is not set; set it"),
        ({"push": "perhaps"}, "push", "push: str given; it is true or false"),
        ({"digest": "sha256:1"}, "digest", "digest: is set by the provider; remove it"),
        ({"platforms": ["linux/amd65"]}, "platforms[0]", "platforms[0]: 'linux/amd65' given; it is one of darwin/386"),
        ({"registries": [{}]}, "registries[0].address", "registries[0].address: required field is not set; set it"),
        (
            {"context": {"location": ".", "named": {"a": {}}}},
            "context.named.a.location",
            "context.named.a.location: required field is not set; set it",
        ),
        ({"context": {"location": "/no/folder"}}, "context.location", '"/no/folder": not a valid directory or URL'),
        ({"dockerfile": {"location": "/none"}}, "dockerfile.location", "open /none: no such file or directory"),
        ({"dockerfile": {"location": "a", "inline": "b"}}, "dockerfile", 'only specify "file" or "inline", not both'),
        ({"tags": ["R.test/Team/app"]}, "tags[0]", "repository name must be lowercase"),
        ({"tags": ["r.test/app:a b"]}, "tags[0]", "invalid reference format"),
        ({"tags": []}, "exports[0]", "at least one tag or export name is needed when pushing to a registry"),
    ],
)
def test_what_the_real_provider_refuses(inputs: dict[str, Any], change: dict[str, Any], path: str, reason: str) -> None:
    _, failures = checked(inputs | change)
    assert failures[path].startswith(reason)


def test_what_a_preview_cannot_know_is_not_looked_at(inputs: dict[str, Any]) -> None:
    unknown = {"tags": [UNKNOWN], "registries": [{"address": UNKNOWN, "password": UNKNOWN}]}
    assert checked(inputs | unknown)[1] == {}


def test_another_type_is_refused_by_name() -> None:
    with pytest.raises(PluginError, match="docker-build:index:Index: the stand-in"):
        docker_build_provider._known("docker-build:index:Index")


def test_it_says_that_nothing_was_built_and_makes_up_a_digest(inputs: dict[str, Any]) -> None:
    log = Warnings()
    state = created(inputs, log)
    assert log.warnings == [f"r.test/team/app:1: {docker_build_provider.NOTHING_BUILT}"]
    assert state["ref"] == f"r.test/team/app:1@{state['digest']}"
    assert state["digest"] == created(inputs, log)["digest"]


def test_a_preview_knows_no_digest_and_warns_of_nothing(inputs: dict[str, Any]) -> None:
    log = Warnings()
    state = created(inputs, log, preview=True)
    assert (state["digest"], state["ref"]) == (UNKNOWN, UNKNOWN)
    assert log.warnings == []


def test_only_what_is_in_the_image_changes_it(inputs: dict[str, Any], tmp_path: Path) -> None:
    log = Warnings()
    state = created(inputs, log)
    login = copy.deepcopy(inputs)
    login["registries"][0]["password"] = "another"
    (tmp_path / "other").write_text("ignored")
    (tmp_path / "app" / "__pycache__" / "main.pyc").write_text("ignored")
    assert changes(state, login) == []
    login["registries"][0]["username"] = "you"
    assert changes(state, login) == ["registries"]
    assert changes(state, {**inputs, "labels": {"a": "b"}}) == ["labels"]
    (tmp_path / "app" / "main.py").write_text("2")
    assert changes(state, inputs) == ["contextHash"]
    assert created(inputs, log)["digest"] != state["digest"]
    before = context_hash(inputs)
    (tmp_path / "app" / "main.py").chmod(0o755)
    assert context_hash(inputs) != before
