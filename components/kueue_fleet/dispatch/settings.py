"""What the fleet file's `admissionController` means to the decisions."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from kueue_fleet.dispatch.fallback import FallbackRules
from kueue_fleet.dispatch.fleet_checks import CheckRules, Window
from kueue_fleet.dispatch.model import DispatchSettings, Weights
from kueue_fleet.dispatch.watchdog import WatchdogSettings
from kueue_fleet.settings.configuration import QueueFallback
from kueue_fleet.settings.dispatch import Dispatch, FleetCheck, Watchdog
from kueue_fleet.settings.windows import WEEKDAYS, CalendarWindow


def dispatch_settings(dispatch: Dispatch) -> DispatchSettings:
    """The section `dispatch`."""
    weights = dispatch.weights
    return DispatchSettings(
        step=dispatch.step,
        widen_after=dispatch.widen_after.seconds,
        reject_after=dispatch.reject_after.seconds,
        give_up_after=dispatch.give_up_after.seconds,
        retry_after=dispatch.retry_after.seconds,
        weights=Weights(weights.price, weights.waiting, weights.free),
    )


def watchdog_settings(section: Watchdog) -> WatchdogSettings:
    """The section `watchdog`."""
    return WatchdogSettings(section.provisioning_timeout.seconds, section.retries, section.stuck_after.seconds)


def fallback_rules(queue: QueueFallback) -> FallbackRules:
    """A queue's `fallback`, with its flavors in order."""
    patience = {entry.flavor: entry.patience.seconds for entry in queue.fallback}
    return FallbackRules(queue.flavors, patience, queue.manager_flavors, queue.backups)


def check_rules(check: FleetCheck) -> CheckRules:
    """One entry of `checks`."""
    return CheckRules(
        longest_run=check.run_duration.max.seconds if check.run_duration else None,
        windows=tuple(map(_window, check.calendar)),
        regions=check.regions,
    )


def _window(window: CalendarWindow) -> Window:
    start = window.start.timestamp()
    days = frozenset(map(WEEKDAYS.index, window.days))
    return Window(window.name, start, start + window.duration.seconds, days, ZoneInfo(window.time_zone))
