"""Rules that depend on the day. The caller says which day it is, as the spec has no clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Final

from kueue_fleet.spec.clusters import ServiceAccountToken
from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.problem import Problem

WARNING_DAYS: Final = 14
"""How many days before `rotateBy` a warning begins."""


def check_dates(fleet: FleetSpec, today: date) -> list[Problem]:
    """What is due on `today`: warnings only, as a date that passes must not stop an urgent change."""
    return list(_rotation(fleet, today))


def _rotation(fleet: FleetSpec, today: date) -> Iterator[Problem]:
    credentials = fleet.multi_kueue.credentials if fleet.multi_kueue is not None else None
    if not isinstance(credentials, ServiceAccountToken):
        return
    days = (credentials.rotate_by - today).days
    if days > WARNING_DAYS:
        return
    due = f"in {days} days" if days > 1 else "tomorrow" if days == 1 else "today"
    passed = "was 1 day ago" if days == -1 else f"was {-days} days ago"
    yield Problem(
        "multiKueue.credentials.rotateBy",
        f"{credentials.rotate_by} is {due}" if days >= 0 else f"{credentials.rotate_by} {passed}",
        "set a new rotation serial and a later date, then apply: every worker gets a new token",
        "warning",
    )
