"""How far a calculation is: lines on stderr now and then where that is not a terminal."""

from __future__ import annotations

import pytest

from kueue_fleet.cli import progress


def test_without_a_terminal_it_tells_now_and_then_and_only_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("kueue_fleet.cli.progress.time.monotonic", lambda: clock[0])
    with progress.counting("replaying") as say:
        for seconds in (1.0, 10.5, 11.0, 20.0, 21.0):
            clock[0] = seconds
            say(f"at {seconds:g}")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "at 10.5\nat 21\n")
