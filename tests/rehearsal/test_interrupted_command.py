"""The whole command, interrupted, killed or failing, on stand-ins for engines: what it leaves, and the next one.

`tests/engines/test_rehearse_command.py` has the same on real ones, for jobs and for rehearsals that are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.rehearsal.fake_engines import NAMES, FakeEngines
from tests.rehearsal.fake_pulumi import write_fake_pulumi

from rehearse_command import Command, Project, cluster_starts, interrupt, project

COMMAND = """
from functools import partial
from pathlib import Path

from kueue_fleet.cli import main
from kueue_rehearsal import session
from kueue_rehearsal.engines import Engines, Program

there = {{name: Program(name, Path({folder!r}, name), "1", "PATH") for name in {programs!r}}}
session.build_engines = lambda *_: Engines(there, dict.fromkeys(("kueue-chart", "jobset-chart"), Path({folder!r})))
session.expected_build_seconds = lambda *_: 0.0
session.start_supervisor = partial(session.start_supervisor, services="none")
main()
"""
PROGRAMS = (*NAMES, "kueue", "jobset", "pulumi", "pulumi-resource-kubernetes")


@pytest.fixture
def engines(tmp_path: Path) -> FakeEngines:
    """With a Pulumi that takes long over a release."""
    result = FakeEngines(tmp_path / "engines")
    write_fake_pulumi(result.folder)
    result.misbehaves("pulumi", "slow 600")
    return result


@pytest.fixture
def tiny(engines: FakeEngines, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    command = COMMAND.format(folder=str(engines.folder), programs=PROGRAMS)
    environ = {"KUBEBUILDER_ASSETS": str(engines.folder), "KUEUE_FLEET_CACHE_DIR": str(tmp_path / "cache")}
    with project(tmp_path / "p", tmp_path_factory.mktemp("s"), command, **environ) as result:
        yield result


def supervisor_begins(command: Command, tiny: Project) -> None:
    command.until(lambda: tiny.paths().supervisor_log.is_file(), "the supervisor begins")


def helm_installs(command: Command, tiny: Project) -> None:
    events = tiny.paths().root / "pulumi-up.events.json"
    command.until(lambda: events.is_file() and '"resourcePreEvent"' in events.read_text(), "helm installs Kueue")


@pytest.mark.parametrize("moment", [supervisor_begins, cluster_starts, helm_installs])
def test_ctrl_c_leaves_nothing_but_logs(
    engines: FakeEngines, tiny: Project, moment: Callable[[Command, Project], None]
) -> None:
    if moment is cluster_starts:
        engines.misbehaves("kube-apiserver", "slow 600")
    command = tiny.start()
    moment(command, tiny)
    interrupt(command, tiny)


def test_a_killed_command_takes_everything_with_it(engines: FakeEngines, tiny: Project) -> None:
    engines.misbehaves("kube-apiserver", "slow 600")
    command = tiny.start()
    cluster_starts(command, tiny)
    command.kill()
    tiny.assert_gone()
    assert tiny.run(how="down").out == "The rehearsal of tiny was removed: its processes, clusters and state.\n"
    assert not tiny.paths().root.exists()


def test_after_a_killed_command_the_next_one_works(engines: FakeEngines, tiny: Project) -> None:
    command = tiny.start()
    helm_installs(command, tiny)
    command.kill()
    # At once, while the killed one's supervisor is still ending.
    engines.misbehaves("pulumi", "slow 0")
    following = tiny.run("--no-jobs")
    assert following.code == 0, following.err
    tiny.assert_gone()
    assert not tiny.paths().root.exists()


def test_a_pulumi_up_that_fails_half_way_leaves_nothing_but_logs(engines: FakeEngines, tiny: Project) -> None:
    engines.misbehaves("pulumi", "exit refused")
    ended = tiny.run("--no-jobs")
    root = tiny.paths().root
    assert (ended.code, ended.err) == (
        1,
        f"error: pulumi up failed:\n  refused\n  (its whole output is in {root}/pulumi-up.log)\n"
        f"  everything is taken down, the logs are in {root}\n",
    )
    tiny.assert_gone()
    assert tiny.left() == {"command.lock"}
