"""Where a rehearsal keeps its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueue_rehearsal.paths import RehearsalError, cache_dir, engines_dir, rehearsal_paths, state_dir


def test_own_variables_come_before_xdg() -> None:
    environ = {"KUEUE_FLEET_STATE_DIR": "/a", "KUEUE_FLEET_CACHE_DIR": "/b", "XDG_STATE_HOME": "/x"}
    assert state_dir(environ) == Path("/a")
    assert cache_dir(environ) == Path("/b")


def test_xdg_folders() -> None:
    environ = {"XDG_STATE_HOME": "/x/state", "XDG_CACHE_HOME": "/x/cache"}
    assert state_dir(environ) == Path("/x/state/kueue-fleet")
    assert engines_dir(environ) == Path("/x/cache/kueue-fleet/engines")


def test_relative_xdg_folders_are_ignored_as_its_specification_says() -> None:
    assert state_dir({"XDG_STATE_HOME": "state"}) == Path.home() / ".local/state/kueue-fleet"


def test_defaults_without_any_variable() -> None:
    assert state_dir({}) == Path.home() / ".local/state/kueue-fleet"
    assert cache_dir({}) == Path.home() / ".cache/kueue-fleet"


def test_each_stack_has_its_own_folder() -> None:
    environ = {"KUEUE_FLEET_STATE_DIR": "/s"}
    one, other = rehearsal_paths("one", environ), rehearsal_paths("other", environ)
    assert one.socket == Path("/s/rehearsals/one/supervisor.sock")
    assert one.cluster("worker") == Path("/s/rehearsals/one/clusters/worker")
    assert not other.root.is_relative_to(one.root)


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "-rf", "a b"])
def test_a_stack_name_cannot_leave_the_folder(name: str) -> None:
    with pytest.raises(RehearsalError, match="not a stack name"):
        rehearsal_paths(name, {"KUEUE_FLEET_STATE_DIR": "/s"})


def test_a_path_too_long_for_a_socket_names_the_way_out() -> None:
    with pytest.raises(RehearsalError, match="set KUEUE_FLEET_STATE_DIR to a shorter folder"):
        rehearsal_paths("stack", {"KUEUE_FLEET_STATE_DIR": "/" + "d" * 90})
