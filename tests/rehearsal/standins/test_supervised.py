"""How a stand-in waits for the supervisor."""

from __future__ import annotations

from threading import Event

import pytest

from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.standins import supervised
from kueue_rehearsal.standins.plugin_errors import PluginError
from kueue_rehearsal.standins.supervised import call_supervisor


def test_its_answer_is_returned_and_its_refusal_is_the_plugins() -> None:
    def refuse() -> None:
        raise RehearsalError("no room")

    assert call_supervisor(lambda: 1, Event(), lambda seconds: None) == 1
    with pytest.raises(PluginError, match="no room"):
        call_supervisor(refuse, Event(), lambda seconds: None)


def test_a_long_request_is_reported_and_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "CANCEL_POLL_SECONDS", 0.01)
    monkeypatch.setattr(supervised, "PROGRESS_SECONDS", 0.02)
    stop, never = Event(), Event()

    def progress(seconds: float) -> None:
        assert seconds >= 0.02
        stop.set()

    with pytest.raises(PluginError, match="cancelled"):
        call_supervisor(never.wait, stop, progress)
    never.set()
