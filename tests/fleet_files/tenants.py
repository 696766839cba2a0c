"""Teams, LocalQueues outside of them, and priority classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from tests.fleet_files.clusters import ZONES
from tests.fleet_files.drawing import Data, Draw, fields, flags, named, one_of, some_of

_PEOPLE: Final = (
    "group:vision@example.com",
    "user:ann@example.com",
    "serviceAccount:ci@my-project.iam.gserviceaccount.com",
)
_AMOUNTS: Final = {"count/jobs.batch": 500, "pods": "1k", "requests.storage": "10Ti"}
_LIMIT_RANGES: Final = (
    {"default": {"cpu": 2, "memory": "4Gi"}, "defaultRequest": {"cpu": "500m"}},
    {"default": {"nvidia.com/gpu": 0}, "max": {"nvidia.com/gpu": 8}, "min": {"cpu": "100m"}},
)
_TEMPLATE: Final = {
    "name": "usual", "image": "trainer:1", "command": ["python", "train.py"], "nodes": 2, "gpus": 1,
    "cpu": "4", "memory": "16Gi", "time": "4h", "env": {"MODE": "fast"}, "mounts": {"/data": "gs://data"},
}  # fmt: skip
_STOPS: Final = one_of("None", "Hold", "HoldAndDrain")
_GOALS: Final = one_of(
    {"wait": {"p50": "10m", "p95": "2h", "p99": "24h"}},
    {"wait": {"p90": "1h30m"}, "share": 20},
    {"share": 30},
)
_WEIGHTS: Final = one_of({"weight": 3}, {"weight": "250m"})


def teams(draw: Draw, queues: Sequence[Data], regions: Sequence[str], enforced: Sequence[str]) -> list[Data]:
    """Up to three teams; in queues of `enforced` their budgets may hold jobs back."""
    return [_team(draw, name, queues, regions, enforced) for name in draw(some_of(("vision", "language", "speech")))]


def _team(draw: Draw, name: str, queues: Sequence[Data], regions: Sequence[str], enforced: Sequence[str]) -> Data:
    team: Data = {"name": name}
    if draw(flags):
        team["namespaces"] = draw(some_of((f"{name}-dev", f"{name}-prod", name), 1))
    entrances = draw(some_of(("main", "spare.queue"))) if queues else []
    if entrances:
        team["localQueues"] = [_local_queue(draw, entrance, queues) for entrance in entrances]
    account = draw(one_of(None, None, "googleServiceAccount", "existingGoogleServiceAccount"))
    if account == "googleServiceAccount":
        team[account] = fields(draw, roles=one_of(["roles/storage.objectViewer"], []))
    elif account is not None:
        team[account] = "team-jobs@other-project.iam.gserviceaccount.com"
    return team | fields(
        draw,
        serviceAccount=one_of("runner", f"{name}.jobs"),
        members=some_of(_PEOPLE),
        # Any LocalQueue of the file may be in a namespace of the team.
        budget=_budgets(bool(enforced) and {queue["name"] for queue in queues} <= set(enforced)),
        jobTemplates=st.builds(lambda: [dict(_TEMPLATE)]),
        **({"goals": _GOALS} if entrances else {}),
        podSecurity=one_of("privileged", "baseline", "restricted"),
        resourceClaimTemplates=one_of(
            [
                {"name": "rdma", "deviceClassName": "mrdma.google.com", "count": 8},
                {"name": "one", "deviceClassName": "gpu"},
            ]
        ),
        limitRange=st.sampled_from(_LIMIT_RANGES),
        resourceQuota=some_of(list(_AMOUNTS)).map(lambda names: {key: _AMOUNTS[key] for key in names}),
        # Every region that has a cluster, or queues might be out of reach.
        allowedRegions=st.just([*regions, *(region for region in ZONES if region not in regions)]),
    )


def _budgets(enforces: bool) -> st.SearchStrategy[Data]:
    amounts = st.integers(1, 10**6)
    period = one_of("week", "month")
    more = {"per": period, **({"enforce": one_of("wait")} if enforces else {})}
    one = [
        st.fixed_dictionaries({"gpuHours": amounts}, optional={**more, "usd": amounts}),
        st.fixed_dictionaries({"usd": amounts}, optional=more),
    ]
    return st.one_of(one)


def _local_queue(draw: Draw, name: str, queues: Sequence[Data]) -> Data:
    queue = {"name": name, "clusterQueue": draw(one_of(*named(queues)))}
    return queue | fields(draw, stopPolicy=_STOPS, fairSharing=_WEIGHTS)


def local_queues(draw: Draw, queues: Sequence[Data]) -> list[Data]:
    """LocalQueues in namespaces that belong to no team, and in one that may."""
    if not queues:
        return []
    places = draw(some_of((("default", "trial"), ("shared", "trial"), ("shared", "other"), ("vision", "guest"))))
    return [{"namespace": namespace, **_local_queue(draw, name, queues)} for namespace, name in places]


def priority_classes(draw: Draw) -> Data:
    """Both kinds of priority class."""
    described = one_of("For what cannot wait")
    pods = [
        {"name": name, "value": value, **fields(draw, preemptionPolicy=one_of("Never", "PreemptLowerPriority"))}
        | fields(draw, description=described)
        for name, value in draw(some_of((("batch", -10), ("service.high", 1_000_000))))
    ]
    if pods:
        pods[0] |= fields(draw, globalDefault=flags)
    jobs = [
        {"name": name, "value": value, **fields(draw, description=described)}
        for name, value in draw(some_of((("urgent", 100), ("idle.time", -100))))
    ]
    return {
        **({"priorityClasses": pods} if pods else {}),
        **({"workloadPriorityClasses": jobs} if jobs else {}),
    }
