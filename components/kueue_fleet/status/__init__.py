"""How a live fleet is: queues with their use, what waits and why, workers, DWS requests, credentials.

No I/O: the command line does the listing.
"""

from kueue_fleet.status.conditions import condition, dominant_reasons, is_true
from kueue_fleet.status.fleet_status import calendar_status, fleet_status
from kueue_fleet.status.model import (
    CalendarStatus,
    ClusterObjects,
    ClusterStatus,
    FleetStatus,
    PendingWorkload,
    QueueStatus,
    RequestStatus,
    TeamUse,
    Use,
)
from kueue_fleet.status.teams import team_use
