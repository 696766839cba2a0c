"""The fleet's own decisions: where a job may run, when it may start, when to try elsewhere. Deterministic, no I/O.

`dispatcher.decide` filters the worker clusters, scores the rest and nominates; `worker_quota` is what it knows of a
worker's quota, with what is on its way there, and `later_quota` of what that may become. `assignment` says which one of
the nominated clusters may admit the job, `checks` decides admission checks, `watchdog` about capacity that does not
come, `rescue` about evictions that Kueue does not finish, `fallback` about flavors whose nodes do not come. Time is an
argument; callers keep nothing between two calls but the quotas, which follow from the objects of the clusters.
"""

from __future__ import annotations

from kueue_admission.kernel.names import REGIONS_LABEL
from kueue_admission.read.dispatch_report import Filtered, GivenUp, ParsedReport, Scored, Verdict
from kueue_fleet.dispatch.assignment import AssignmentDecision, Copy, Step, WorkerView, bound_to, decide_assignment
from kueue_fleet.dispatch.dispatcher import can_never_run, decide, report_of, rounds_begun
from kueue_fleet.dispatch.fallback import (
    REQUEUE_SECONDS,
    FallbackDecision,
    decide_fallback,
    waits_on_workers_since,
)
from kueue_fleet.dispatch.fleet_checks import CheckDecision, decide_check
from kueue_fleet.dispatch.later_quota import LaterQuota
from kueue_fleet.dispatch.model import (
    Action,
    Decision,
    FilterReason,
    Reason,
    Request,
    Worker,
)
from kueue_fleet.dispatch.rescue import watch_copy, watch_eviction
from kueue_fleet.dispatch.residency import Bound, Residency, parse_regions
from kueue_fleet.dispatch.waiting import WaitingTimes
from kueue_fleet.dispatch.watchdog import Provisioning, WatchdogDecision, watch
from kueue_fleet.dispatch.worker_quota import Fit, FitKind, WorkerQuota
