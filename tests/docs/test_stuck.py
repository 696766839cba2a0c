"""The page on what can be stuck: everything that its rows name exists, and nothing that is known is without a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from kueue_fleet.controller.ask_again import REASONS
from kueue_fleet.controller.fallback import FLAVOR_GIVEN_UP
from kueue_fleet.dispatch import Reason
from kueue_fleet.dispatch.rescue import (
    ENDED_SUSPENDED,
    HELD_EVICTION,
    LOST_COPY,
    LOST_END,
    LOST_JOB,
    STUCK_COPY,
    STUCK_EVICTION,
)
from kueue_fleet.dispatch.watchdog import PROVISIONING_TIMEOUT, RETRIES_USED, STUCK_CHECK
from kueue_fleet.google.alerts import alert_policies
from kueue_fleet.settings.dispatch import AdmissionControllerArgs

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "stuck.md").read_text()
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")][1:]
EVENTS = {
    ENDED_SUSPENDED,
    LOST_COPY,
    LOST_END,
    LOST_JOB,
    STUCK_EVICTION,
    HELD_EVICTION,
    STUCK_COPY,
    STUCK_CHECK,
    PROVISIONING_TIMEOUT,
    RETRIES_USED,
    FLAVOR_GIVEN_UP,
}
ALERTS = alert_policies(
    "lab",
    manager="manager",
    job_clusters=["worker"],
    kueue_namespace="kueue-system",
    provisioning_seconds=1800,
    controller_namespace="kueue-fleet-system",
)


def test_every_row_says_who_names_it_and_who_undoes_it() -> None:
    assert len(ROWS) > 15
    for row in ROWS:
        assert len(row) == 4, row
        assert all(row), row


def test_every_reason_of_an_event_has_a_row_and_no_other_is_named() -> None:
    """Those of dispatch decisions are reasons of events too."""
    named = set(re.findall(r"event `(\w+)`", PAGE))
    assert named >= EVENTS | set(REASONS)
    assert named - EVENTS == {Reason.FITS_NO_CLUSTER}
    assert set(re.findall(r"condition `kueue-fleet.dev/Dispatch`, reason `(\w+)`", PAGE)) <= {
        one.value for one in Reason
    }


def test_every_alert_has_a_row_and_no_other_is_named() -> None:
    named = {
        name for names in re.findall(r"alerts? ((?:`[a-z-]+`(?:, )?)+)", PAGE) for name in re.findall(r"`(.*?)`", names)
    }
    assert named == ALERTS.keys()


def test_everything_found_in_kueue_has_a_row() -> None:
    result = re.findall(r"^## (.+)$", (DOCS / "found-in-kueue.md").read_text(), re.MULTILINE)
    assert len(result) > 9
    linked = set(re.findall(r"found-in-kueue\.md#(\d+)-", PAGE))
    assert linked == {title.partition(".")[0] for title in result}


@pytest.mark.parametrize(("part", "setting", "default"), re.findall(r"`(watchdog|dispatch)\.(\w+)` \((\w+)\)", PAGE))
def test_every_setting_has_the_default_that_the_page_says(part: str, setting: str, default: str) -> None:
    section = getattr(AdmissionControllerArgs(), part)
    fields = {to_camel(name): getattr(section, name) for name in type(section).model_fields}
    assert str(fields[setting]) == default
