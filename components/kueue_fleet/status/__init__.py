"""How a live fleet is: queues with their use, what waits and why, workers, DWS requests, credentials.

No I/O: the command line does the listing.
"""

from kueue_fleet.status.conditions import dominant_reasons
from kueue_fleet.status.fleet_status import calendar_status, fleet_status
from kueue_fleet.status.history import budgets, finished_since, held_by_teams, team_weeks
from kueue_fleet.status.model import (
    CalendarStatus,
    ClusterObjects,
    ClusterStatus,
    FlavorTop,
    FleetStatus,
    PendingWorkload,
    QueueStatus,
    QueueTop,
    RequestStatus,
    StuckWorkload,
    TeamUse,
    TeamWeek,
    Top,
    Use,
)
from kueue_fleet.status.teams import team_use
from kueue_fleet.status.top import flavor_tops, queue_tops
