"""Whole fleet files, from their parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hypothesis import strategies as st

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from tests.fleet_files.clusters import clusters, network, reserved_capacity
from tests.fleet_files.configuration import installations
from tests.fleet_files.data import storage
from tests.fleet_files.drawing import Data, Draw, all_fields, composed, fields, flags, named, one_of, part, some_of
from tests.fleet_files.nodes import flavors, node_pools
from tests.fleet_files.queues import OURS, Nodes, admission_checks, cluster_queues, cohorts, managers_quotas
from tests.fleet_files.tenants import local_queues, priority_classes, teams

_DISPATCHER: Final = "kueue-fleet.dev/dispatcher"
_PAGE: Final = {"iap": {"host": "jobs.example.com", "audience": "/projects/1234567/global/backendServices/42"}}
_NIGHTS: Final[tuple[Data, ...]] = (
    {
        "name": "night",
        "start": "2027-03-01T20:00:00Z",
        "duration": "12h",
        "days": ["Monday"],
        "timeZone": "Europe/Berlin",
    },
    {"name": "night", "start": "2027-03-01T20:00:00Z", "duration": "12h"},
)
_PROFILES: Final = {"type": "ClusterProfile", "pluginImage": "gcp-auth-plugin"}


@st.composite
def fleet_files(draw: Draw, *, everything: bool = False) -> Data:
    """The data of a fleet file without errors, as YAML gives it; with `everything`, all it can have."""
    with all_fields(everything):
        return _file(draw)


def _file(draw: Draw) -> Data:
    data: Data = {"name": draw(one_of("batch-fleet", "f")), "project": draw(one_of("my-project", "other-project-7"))}
    data |= fields(draw, deletionProtection=flags, enableApis=flags, labels=one_of({"cost-centre": "ml", "env": "dev"}))
    data |= installations(draw)
    data["clusters"] = clusters(draw)
    data |= network(draw, data["clusters"])
    data |= reserved_capacity(draw, data["clusters"])
    pools = node_pools(draw, data["clusters"], data)
    result, topologies = flavors(draw, data["clusters"], pools)
    nodes = Nodes(data["clusters"], pools, result)
    tree = cohorts(draw, nodes)
    queues = cluster_queues(draw, nodes, tree)
    manager = nodes.has_manager
    multi_kueue = _multi_kueue(draw, nodes, queues) if manager else {}
    controller = _controller(draw, nodes, multi_kueue) if manager else {}
    checks = admission_checks(draw, nodes, queues, controller=bool(controller))
    if controller:
        controller["controller"] |= _answers(draw, checks)
        controller |= fields(draw, fleetPage=one_of({}, _PAGE))
        _follow_capacity(draw, queues)
        controller["controller"] |= _windows(draw, queues)
    entered = [queue for queue in queues if not queue.get("slack")]
    regions = sorted({entry["region"] for entry in data["clusters"] if entry["role"] != "manager"})
    enforced = multi_kueue["multiKueue"].get("queues", named(queues)) if controller else []
    sections = {
        "nodePools": pools,
        "flavors": result,
        "topologies": topologies,
        "cohorts": tree,
        "clusterQueues": queues,
        "admissionChecks": checks,
        "teams": teams(draw, entered, regions, enforced),
        "localQueues": local_queues(draw, entered),
    }
    sections["storage"] = storage(draw, sections["teams"], data["clusters"], pools)
    data |= {name: entries for name, entries in sections.items() if entries}
    if page := controller.get("fleetPage"):
        controller["fleetPage"] = {"iap": page["iap"] | _groups(draw, sections["teams"])}
    namespaces = [name for team in data.get("teams", ()) for name in team.get("namespaces", [team["name"]])]
    namespaces += [queue["namespace"] for queue in data.get("localQueues", ())]
    if namespaces:
        data |= fields(draw, namespaceLabels=one_of({namespaces[0]: {"purpose": "batch"}}))
    data |= priority_classes(draw) | multi_kueue | controller | _observability(draw)
    _name_what_is_there(data)
    if not _has_one_leader(data):
        data["kueue"] = {**data.get("kueue", {}), "replicas": 1}
    return data | fields(draw, plan=composed(lambda draw: _plan(draw, data)))


def _name_what_is_there(data: Data) -> None:
    """Templates of jobs name a LocalQueue and a priority class that their team has; without any, none."""
    classes = [entry["name"] for entry in data.get("workloadPriorityClasses", ())]
    for team in data.get("teams", ()):
        for template in team.get("jobTemplates", ()):
            queues = [queue["name"] for queue in team.get("localQueues", ())]
            # A team may use all but the highest class.
            names = {"queue": queues[:1], "priority": [name for name in classes[1:] if name == "idle.time"]}
            template |= {field: result[0] for field, result in names.items() if result}


def _plan(draw: Draw, data: Data) -> Data:
    """What `plan` may change: a number and a text of each node pool."""
    may_change: list[Data] = []
    for pool in data.get("nodePools", ()):
        at = f"nodePools[{pool['name']}]"
        number = next((name for name, value in pool.items() if type(value) is int), None)
        if number is not None:
            least = pool[number]
            limits = {"least": least, "most": least + 6}
            may_change.append({"paths": [f"{at}.{number}"], **limits, **fields(draw, step=one_of(1, 3))})
        may_change.append({"paths": [f"{at}.machineType"], "values": [pool["machineType"], "other-standard-8"]})
    return fields(draw, mayChange=some_of(may_change), budget=one_of(1, 250_000))


def _groups(draw: Draw, teams: Sequence[Data]) -> Data:
    """Who is in a group that is a member of a team."""
    result = [item.removeprefix("group:") for team in teams for item in team.get("members", ()) if item[:2] == "gr"]
    return fields(draw, groups=st.just({result[0]: ["ada@example.com"]})) if result else {}


def _has_one_leader(data: Data) -> bool:
    """Whether replicas of Kueue elect a leader everywhere."""
    installed = [data.get("kueue", {}), *(cluster.get("kueue", {}) for cluster in data["clusters"])]
    elections = (item.get("configuration", {}).get("leaderElection", {}) for item in installed)
    return all(election.get("leaderElect", True) for election in elections)


def fleets() -> st.SearchStrategy[FleetSpec]:
    """Fleets without errors, parsed."""
    return fleet_files().map(parse_fleet)


def _multi_kueue(draw: Draw, nodes: Nodes, queues: Sequence[Data]) -> Data:
    token = {"type": "ServiceAccountToken", "rotation": draw(one_of("2026-11", "b")), "rotateBy": "2999-02-01"}
    token |= draw(one_of({}, {"lifetime": "24h"}))
    section: Data = {"credentials": draw(one_of(token, token, _PROFILES))}
    section |= fields(
        draw,
        admissionCheckName=one_of("to-workers", "multi.kueue"),
        configName=one_of("workers"),
        workers=st.permutations(nodes.job_clusters).map(list),
        managerFlavorName=one_of("anywhere"),
        formerManagerFlavorNames=some_of(("before", "earlier")),
        headroomPercent=st.integers(0, 50),
        queues=some_of(named(queues)),
        gcInterval=one_of("0s", "2m"),
        origin=one_of("europe"),
        workerLostTimeout=one_of("30m"),
    )
    section |= draw(
        one_of(
            {},
            {"dispatcher": "AllAtOnce"},
            {"dispatcher": "Incremental"},
            {"dispatcher": "Incremental", "incremental": {"stepSize": 2}},
            {"dispatcher": "Incremental", "incremental": {}},
            {"dispatcher": "External", "external": {"name": "example.com/dispatcher"}},
        )
    )
    dispatched = section.get("queues", named(queues))
    own_flavor = section.get("managerFlavorName", "multikueue")
    for queue in queues:
        if queue["name"] in dispatched and draw(one_of(False, False, True)):
            queue |= managers_quotas(draw, queue, own_flavor)
    return {"multiKueue": section}


def _controller(draw: Draw, nodes: Nodes, multi_kueue: Data) -> Data:
    """The section `controller`, or nothing; it may be the dispatcher."""
    if draw(flags):
        return {}
    regions = sorted({entry["region"] for entry in nodes.clusters if entry["name"] in nodes.job_clusters})
    digest = "sha256:" + "0" * 64
    section: Data = {"image": draw(one_of("example.com/controller:1.2", f"example.com/controller@{digest}"))}
    section |= fields(
        draw,
        replicas=st.integers(1, 3),
        namespace=one_of("fleet-control"),
        regionGroups=st.just({"here": regions}),
        watchdog=part(provisioningTimeout=one_of("20m"), retries=st.integers(0, 5), stuckAfter=one_of("5m")),
        explainWaiting=st.booleans(),
        history=composed(_history),
    )
    if nodes.flavors:
        prices = {region: {nodes.flavors[0]["name"]: 2.5} for region in regions}
        section |= fields(draw, prices=st.just(prices))
    if draw(flags):
        multi_kueue["multiKueue"] |= {"dispatcher": "External", "external": {"name": _DISPATCHER}}
        multi_kueue["multiKueue"].pop("incremental", None)
        section |= fields(
            draw,
            dispatch=part(
                step=st.integers(1, 3),
                widenAfter=one_of("1m", "5m"),
                rejectAfter=one_of("0s", "2m"),
                giveUpAfter=one_of("30m", "2h"),
                retryAfter=one_of("0s", "10m"),
                weights=part(price=one_of(0, 2.5), waiting=one_of(1), free=one_of(10)),
            ),
        )
    return {"controller": section}


def _history(draw: Draw) -> Data:
    """In a bucket, or in a volume that is kept small."""
    labels = fields(draw, labels=one_of(["team", "example.com/model"]))
    if draw(flags):
        return {"store": "gs://jobs-of-fleet/history", **labels, **fields(draw, every=one_of("30m"))}
    return {"volumeClaim": "history", **labels, **fields(draw, keep=one_of("720h"), maxSize=one_of("5Gi"))}


def _follow_capacity(draw: Draw, queues: Sequence[Data]) -> None:
    """Quotas that the controller writes; one queue at most is slack, and others are there for jobs."""
    for queue in queues:
        queue |= fields(draw, quotaFollows=one_of("file", "capacity"))
        for quota in _quotas(queue):
            # As much as ever where that is lent: a queue lends no more than it has.
            lends = any("lendingLimit" in item for item in (quota, *quota.get("perCluster", {}).values()))
            kept = {name: quota[name] for name in ("borrowingLimit", "lendingLimit") if name in quota}
            less = one_of({"night": {"nominalQuota": quota["nominalQuota"] if lends else 0, **kept}})
            quota |= fields(draw, during=less)
            for own in quota.get("perCluster", {}).values():
                own |= fields(draw, during=less)
    follows = [queue for queue in queues if queue.get("quotaFollows") == "capacity" and "cohortName" in queue]
    if follows and len(queues) > 1:
        follows[0] |= fields(draw, slack=flags)


def _quotas(queue: Data) -> Iterator[Data]:
    return (quota for group in queue["resourceGroups"] for flavor in group["flavors"] for quota in flavor["resources"])


def _windows(draw: Draw, queues: Sequence[Data]) -> Data:
    """Those that quotas name."""
    named = any(
        "during" in item for queue in queues for q in _quotas(queue) for item in (q, *q.get("perCluster", {}).values())
    )
    return {"quotaWindows": [draw(one_of(*_NIGHTS))]} if named else {}


def _answers(draw: Draw, checks: Sequence[Data]) -> Data:
    """What the controller looks at for its own checks."""
    window = {"name": "spring", "start": "2027-03-01T00:00:00Z", "duration": "336h"}
    nights = {**window, "duration": "12h", "days": ["Monday", "Saturday"], "timeZone": "Europe/Berlin"}
    answers = [
        {
            "name": check["name"],
            **fields(draw, runDuration=part(max=one_of("24h")), windows=one_of([window], [nights]), regions=flags),
        }
        for check in checks
        if check.get("controllerName") == OURS
    ]
    return {"checks": answers} if answers else {}


def _observability(draw: Draw) -> Data:
    channel = "projects/my-project/notificationChannels/17"
    alerts = part(enabled=flags, notificationChannels=one_of([channel]), provisioningTimeout=one_of("1h"))
    grafana = part(
        enabled=flags,
        chart=one_of("./charts/grafana"),
        version=one_of("12.11.0"),
        image=one_of("mirror.example.com/grafana"),
        frontendImage=one_of("mirror.example.com/frontend"),
        namespace=one_of("graphs"),
    )
    on = fields(draw, managedPrometheus=st.just(True), dashboard=flags, alerts=alerts, grafana=grafana)
    off = {
        "managedPrometheus": False,
        "dashboard": False,
        "alerts": {"enabled": False},
        "grafana": draw(one_of({}, {"enabled": False}, {"existing": True})),
    }
    return draw(one_of({}, {"observability": on}, {"observability": off}))
