"""Which clusters there are, and the multiKueue section."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, fleet_data, problems
from tests.fleet_file.pool_builders import limits


def many(workers: int) -> list[dict[str, Any]]:
    """A manager, the two workers of the fleet's flavors, and so many workers in all."""
    others = ("a", "b", *(f"n{number}" for number in range(2, workers)))
    return [
        {"name": "manager", "role": "manager", "region": "us-east4", "mode": "Standard"},
        *({"name": f"worker-{name}", "role": "worker", "region": "us-east4"} for name in others),
    ]


def standard(*zones: str) -> dict[str, Any]:
    """worker-a is a Standard cluster that makes its own nodes."""
    return {"clusters/1/mode": "Standard", "clusters/1/zones": [*zones], "clusters/1/nodeAutoProvisioning": limits()}


FIRST_20 = [cluster["name"] for cluster in many(20)[1:]]
LAST_20 = [cluster["name"] for cluster in many(100)[81:]]

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nodes with an account of another project": (
        {"clusters/1/nodeServiceAccount": "nodes-1@other-project.iam.gserviceaccount.com"},
        [
            "warning: clusters[worker-a].nodeServiceAccount: is an account of other-project, and the nodes are in "
            "my-project; name one of that project, or allow it to be used there"
        ],
    ),
    "none": (
        {"clusters": [], "flavors/1/clusters": REMOVED},
        [
            "clusters: there are none; add a manager and its workers, or one cluster of role standalone",
            "multiKueue: is set, but there are no workers; remove it, or add clusters of role worker",
        ],
    ),
    "a region that is not there": (
        {"clusters/1/region": "us-eats4"},
        [
            (
                "clusters[worker-a].region: us-eats4 is not a known region; did you mean us-east4? A newer "
                "region needs a range in network.ranges"
            )
        ],
    ),
    "a region like no other": (
        {"clusters/1/region": "moon-base1"},
        [
            (
                "clusters[worker-a].region: moon-base1 is not a known region; use a region of Google Cloud; "
                "a newer one needs a range in network.ranges"
            )
        ],
    ),
    "a range that is none": (
        {"network": {"ranges": {"us-east4": "10.150.0.1/20"}}},
        [
            (
                'network.ranges[us-east4]: "10.150.0.1/20" is not an IPv4 range (10.150.0.1/20 has host bits set); '
                "write one such as 10.150.0.0/20"
            )
        ],
    ),
    "a range too small": (
        {"network": {"ranges": {"us-east4": "10.150.0.0/30"}}},
        ['network.ranges[us-east4]: "10.150.0.0/30" is too small for a subnet; use /29 or larger'],
    ),
    "second manager": (
        {"clusters/+": {"name": "boss", "role": "manager", "region": "us-east4"}},
        [
            (
                "clusters[boss].role: a second manager, beside manager; make it a worker, or describe it in a "
                "fleet of its own"
            )
        ],
    ),
    "standalone beside others": (
        {"clusters/+": {"name": "alone", "role": "standalone", "region": "us-east4"}},
        [
            (
                "clusters[alone].role: standalone, but it is not the only cluster; make it a manager or a "
                "worker, or describe it in a fleet of its own"
            )
        ],
    ),
    "workers without manager": (
        {"clusters/0": REMOVED},
        ["clusters: there are 2 workers but no manager; add a cluster of role manager"],
    ),
    "one worker alone": (
        {"clusters": [{"name": "worker-b", "role": "worker", "region": "us-east4"}]},
        ["clusters: there is a worker but no manager; give it role standalone, or add a cluster of role manager"],
    ),
    "manager alone": (
        {
            "clusters": [{"name": "manager", "role": "manager", "region": "us-east4", "mode": "Standard"}],
            "flavors/1/clusters": REMOVED,
            "multiKueue": REMOVED,
        },
        [
            "warning: clusters: there is a manager but no worker, so no job can run; add clusters of role worker",
            "clusterQueues[vision]: is on no cluster, since no cluster runs jobs; add clusters of role worker",
            "clusterQueues[language]: is on no cluster, since no cluster runs jobs; add clusters of role worker",
        ],
    ),
    "too many workers": (
        {"clusters": many(101), "clusterQueues/0/clusters": FIRST_20, "clusterQueues/1/clusters": LAST_20},
        ["clusters: there are 101 workers; a fleet has at most 100; split the fleet in two"],
    ),
    "a queue on too many workers": (
        {"clusters": many(21), "clusterQueues/1/clusters": FIRST_20},
        [
            "clusterQueues[vision].clusters: its jobs are offered to 21 workers, but a MultiKueueConfig names at most "
            "20; name at most 20 of them, such as those of one continent",
        ],
    ),
    "no date for tokens that no controller renews": (
        {"multiKueue/credentials/rotateBy": REMOVED},
        [
            (
                "multiKueue.credentials.rotateBy: is missing, but no controller renews the tokens; add the day by "
                "which to renew them, such as rotateBy: 2027-02-01, or the section controller"
            )
        ],
    ),
    "tokens of a minute": (
        {"multiKueue/credentials/lifetime": "1m"},
        ["multiKueue.credentials.lifetime: 1m is not accepted for a token; write 10m or more, such as 168h"],
    ),
    "no multiKueue": (
        {"multiKueue": REMOVED},
        [
            (
                "multiKueue: is missing, but there are workers; add it, with credentials: {type: "
                "ServiceAccountToken, rotation: ..., rotateBy: ...}"
            )
        ],
    ),
    "multiKueue without workers": (
        {"clusters": [{"name": "worker-b", "role": "standalone", "region": "us-east4"}]},
        ["multiKueue: is set, but there are no workers; remove it, or add clusters of role worker"],
    ),
    "unknown worker": (
        {"multiKueue/workers": ["worker-a", "worker-b", "worker-c"]},
        ["multiKueue.workers[2]: there is no worker worker-c; did you mean worker-b?"],
    ),
    "worker is the manager": (
        {"multiKueue/workers": ["worker-a", "worker-b", "manager"]},
        ["multiKueue.workers[2]: manager is the manager, not a worker; list workers only"],
    ),
    "worker left out": (
        {"multiKueue/workers": ["worker-a"]},
        [
            (
                "warning: multiKueue.workers: worker-b is a worker, but not listed, so it gets no jobs from the "
                "manager; add worker-b, or drain it (docs/tasks/drain-a-worker.md) and remove the cluster"
            )
        ],
    ),
    "worker listed twice": (
        {"multiKueue/workers": ["worker-a", "worker-b", "worker-a"]},
        ["multiKueue.workers[2]: worker-a is listed twice; list each name once"],
    ),
    "unknown queue": (
        {"multiKueue/queues": ["vison", "language"]},
        ["multiKueue.queues[0]: there is no queue vison; did you mean vision?"],
    ),
    "queue on no worker": (
        {
            "clusterQueues/1/clusters": ["manager"],
            "flavors/0/clusters": ["manager", "worker-a", "worker-b"],
            "multiKueue/queues": ["vision", "language"],
        },
        [
            (
                "multiKueue.queues[1]: queue language is on no worker, so there is no worker to dispatch to; add a "
                "worker to clusterQueues[language].clusters, or remove it here"
            )
        ],
    ),
    "queue listed twice": (
        {"multiKueue/queues": ["vision", "language", "vision"]},
        ["multiKueue.queues[2]: vision is listed twice; list each name once"],
    ),
    "incremental settings": (
        {"multiKueue/incremental": {"stepSize": 2}},
        ["multiKueue.incremental: set, but dispatcher is AllAtOnce; set dispatcher to Incremental or remove this"],
    ),
    "external settings": (
        {"multiKueue/external": {"name": "example.com/d"}},
        ["multiKueue.external: set, but dispatcher is AllAtOnce; set dispatcher to External or remove this"],
    ),
    "external without name": (
        {"multiKueue/dispatcher": "External"},
        ["multiKueue.external: not set, but dispatcher is External; set external.name to the dispatcher's name"],
    ),
    "negative gcInterval": (
        {"multiKueue/gcInterval": "-1m"},
        ["multiKueue.gcInterval: -1m is negative; write 0s or longer"],
    ),
    "negative workerLostTimeout": (
        {"multiKueue/workerLostTimeout": "-1m"},
        ["multiKueue.workerLostTimeout: -1m is negative; write 0s or longer"],
    ),
    "origin no label": (
        {"multiKueue/origin": "a b"},
        [
            (
                'multiKueue.origin: "a b" has characters or a form that are not allowed; use letters, digits, '
                "'-', '_' and '.', with a letter or digit at both ends"
            )
        ],
    ),
    "zones on Autopilot": (
        {"clusters/1/zones": ["us-east4-a"]},
        ["clusters[worker-a].zones: set, but mode is Autopilot; remove it or set mode to Standard"],
    ),
    "zone of another region": (
        standard("us-east1-b"),
        [
            (
                "clusters[worker-a].zones[0]: is us-east1-b, which is not in us-east4, the cluster's region; "
                "name zones of us-east4, or change region"
            )
        ],
    ),
    "zone that its region does not have": (
        standard("us-east4-z", "us-east4-ai1a"),
        [
            (
                "clusters[worker-a].zones[0]: is us-east4-z, which does not exist; use one of us-east4-a, us-east4-b, "
                "us-east4-c"
            )
        ],
    ),
    "zone twice": (
        standard("us-east4-a", "us-east4-a"),
        ["clusters[worker-a].zones[1]: us-east4-a is listed twice; list each zone once"],
    ),
}

REFUSED["no queue is dispatched"] = (
    {"multiKueue/queues": []},
    [
        "warning: multiKueue.queues: is empty, so that the manager dispatches no queue; name queues, or remove it for "
        "all that are on a worker"
    ],
)

ACCEPTED: dict[str, dict[str, Any]] = {
    "a newer region": {"clusters/1/region": "moon-base1", "network": {"ranges": {"moon-base1": "10.250.0.0/20"}}},
    "workers in another order": {"multiKueue/workers": ["worker-b", "worker-a"]},
    "incremental": {"multiKueue/dispatcher": "Incremental", "multiKueue/incremental": {"stepSize": 1}},
    "external": {"multiKueue/dispatcher": "External", "multiKueue/external": {"name": "example.com/dispatcher"}},
    "zones of a Standard cluster": standard("us-east4-a", "us-east4-b"),
    "garbage collection off": {
        "multiKueue/gcInterval": "0s",
        "multiKueue/workerLostTimeout": "0s",
        "multiKueue/origin": "fleet-1",
    },
    "20 workers": {"clusters": many(20)},
    "100 workers": {"clusters": many(100), "clusterQueues/0/clusters": FIRST_20, "clusterQueues/1/clusters": LAST_20},
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changes: dict[str, Any]) -> None:
    assert problems(changed(fleet_data(), changes)) == []


def test_an_empty_security_group_is_refused_with_the_command_that_revokes_one() -> None:
    command = 'gcloud container clusters update worker-a --location us-east4 --security-group=""'
    assert problems(changed(fleet_data(), {"clusters/1/rbacSecurityGroup": ""})) == [
        "clusters[worker-a].rbacSecurityGroup: empty, with which the Google provider crashes when it creates the "
        f"cluster; remove it; to revoke the rights of a group, use `{command}`"
    ]


def test_a_worker_that_is_renamed_in_one_place_is_named_where_it_is_missed() -> None:
    """Of a queue that is on some workers, where the fleet's own controller dispatches."""
    section = {"name": "kueue-fleet.dev/dispatcher"}
    changes = {
        "clusterQueues/0/clusters": ["worker-a", "worker-b"],
        "clusters/1/name": "worker-c",
        "multiKueue/dispatcher": "External",
        "multiKueue/external": section,
        "controller": {"image": "example.com/controller:1.2"},
    }
    result = problems(changed(fleet_data(), changes))
    assert any("clusters[0]: there is no cluster worker-a" in text for text in result)
