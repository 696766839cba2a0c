"""Teams' accounts, members and regions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems
from tests.fleet_file.pool_builders import ZONES, pools_data

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no project in address": (
        {"teams/0/existingGoogleServiceAccount": "wi-team-a@.iam.gserviceaccount.com"},
        [
            (
                'teams[team-a].existingGoogleServiceAccount: "wi-team-a@.iam.gserviceaccount.com" has no project in '
                "it; write name@project.iam.gserviceaccount.com"
            ),
        ],
    ),
    "no dot before the domain": (
        {"teams/0/existingGoogleServiceAccount": "wi-team-a@iam.gserviceaccount.com"},
        [
            (
                'teams[team-a].existingGoogleServiceAccount: "wi-team-a@iam.gserviceaccount.com" has no project in '
                "it; write name@project.iam.gserviceaccount.com"
            ),
        ],
    ),
    "default account": (
        {"teams/0/existingGoogleServiceAccount": "123-compute@developer.gserviceaccount.com"},
        [
            (
                'teams[team-a].existingGoogleServiceAccount: "123-compute@developer.gserviceaccount.com" is a '
                "default service account, which may do almost anything; use one made for the team"
            ),
        ],
    ),
    "no address": (
        {"teams/0/existingGoogleServiceAccount": "wi-team-a"},
        [
            (
                'teams[team-a].existingGoogleServiceAccount: "wi-team-a" is not the address of a Google service '
                "account; write name@project.iam.gserviceaccount.com, with a name of 6 to 30 characters"
            ),
        ],
    ),
    "both accounts": (
        {
            "teams/0/existingGoogleServiceAccount": "team-a@my-project.iam.gserviceaccount.com",
            "teams/0/googleServiceAccount": {},
        },
        [
            ("teams[team-a].existingGoogleServiceAccount: set, but so is googleServiceAccount; keep one of the two"),
        ],
    ),
    "basic role": (
        {"teams/0/googleServiceAccount": {"roles": ["roles/editor", "roles/storage.admin", "roles/storage.admin"]}},
        [
            "teams[team-a].googleServiceAccount.roles[2]: roles/storage.admin is listed twice; list each role once",
            (
                "warning: "
                "teams[team-a].googleServiceAccount.roles[0]: roles/editor reaches everything in the project; "
                "name the roles that the jobs need, such as roles/storage.objectViewer"
            ),
        ],
    ),
    "no role": (
        {"teams/0/googleServiceAccount": {"roles": ["storage.admin"]}},
        [
            (
                'teams[team-a].googleServiceAccount.roles[0]: "storage.admin" is not an IAM role; write one such as '
                "roles/storage.objectViewer"
            ),
        ],
    ),
    "default SA": (
        {"teams/0/serviceAccount": "default"},
        [
            ("teams[team-a].serviceAccount: default is the account of every pod that names none; use another name"),
        ],
    ),
    "part of a GPU in a limit": (
        {"teams/0/resourceQuota": {"requests.nvidia.com/gpu": 4.5, "requests.cpu": 40.5}},
        [
            (
                "teams[team-a].resourceQuota[requests.nvidia.com/gpu]: 4500m is not a whole number, and "
                "requests.nvidia.com/gpu is counted in whole units; write 4 or 5"
            )
        ],
    ),
    "members": (
        {"teams/0/members": ["group:a@b.c", "group:a@b.c", "user:bob@b.c"]},
        [
            "teams[team-a].members[1]: group:a@b.c is listed twice; list each member once",
            (
                "warning: teams[team-a].members: group:a@b.c is a group, but batch looks up no groups; set "
                "clusters[...].rbacSecurityGroup, or name people with user:"
            ),
        ],
    ),
    "nobody": (
        {"teams/0/members": ["bob"]},
        [
            ('teams[team-a].members[0]: "bob" is not a member; write group:, user: or serviceAccount: and an address'),
        ],
    ),
    "group looked up": (
        {"teams/0/members": ["group:a@b.c"], "clusters/0/rbacSecurityGroup": "groups@b.c"},
        [
            (
                "clusters[batch].rbacSecurityGroup: groups@b.c, but GKE looks into one group only; write "
                "gke-security-groups@ and your domain, and put the other groups into it"
            ),
        ],
    ),
    "quota": (
        {"teams/0/resourceQuota": {"pods": -1, "pod": 5, "requests.hugepages-2Mi": "1Gi", "limits.cpu": 40}},
        [
            "teams[team-a].resourceQuota[pods]: -1 is negative; write 0 or more",
            "teams[team-a].resourceQuota[pod]: pod is not a resource that Kubernetes limits; did you mean pods?",
        ],
    ),
    "quota of devices and of objects": (
        {
            "teams/0/resourceQuota": {
                "nvidia.com/gpu": 8,
                "limits.nvidia.com/gpu": 8,
                "requests.nvidia.com/gpu": 8,
                "pods": "1500m",
                "count/job": 10,
                "count/secrets": 10,
                "count/jobs.batch": 10,
                "fast.storageclass.storage.k8s.io/requests.storage": "1Gi",
            }
        },
        [
            "warning: teams[team-a].resourceQuota[nvidia.com/gpu]: 8 has no effect, since Kubernetes limits devices by "
            "their requests alone; write requests.nvidia.com/gpu",
            "warning: teams[team-a].resourceQuota[limits.nvidia.com/gpu]: 8 has no effect, since Kubernetes limits "
            "devices by their requests alone; write requests.nvidia.com/gpu",
            "teams[team-a].resourceQuota[pods]: 1500m is not a whole number, and objects are counted in whole ones; "
            "write a whole number",
            "warning: teams[team-a].resourceQuota[count/job]: 10 has no effect, since Kubernetes' core group has no "
            "kind of objects job; did you mean count/jobs.batch?",
        ],
    ),
    "region unknown": (
        {"teams/0/allowedRegions": ["us-centrall1"]},
        [
            ("teams[team-a].allowedRegions[0]: us-centrall1 is not a known region; did you mean us-central1?"),
        ],
    ),
    "region without cluster": (
        {"teams/0/allowedRegions": ["us-east1", "us-east1"]},
        [
            "teams[team-a].allowedRegions[1]: us-east1 is listed twice; list each region once",
            (
                "teams[team-a].allowedRegions: no cluster that runs jobs is in us-east1, us-east1; use one of "
                "the regions: us-central1"
            ),
        ],
    ),
    "region of queue": (
        {
            "clusters": [
                {"name": "manager", "role": "manager", "region": "us-east1"},
                {"name": "batch", "role": "worker", "region": "us-central1", "mode": "Standard", "zones": ZONES},
                {"name": "east", "role": "worker", "region": "us-east1"},
            ],
            "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "a", "rotateBy": "2027-01-01"}},
            "clusterQueues/0/clusters": ["batch"],
            "teams/0/allowedRegions": ["us-east1"],
        },
        [
            (
                "warning: clusterQueues[gpu].resourceGroups: no quota for ephemeral-storage, and a job that requests "
                "it is never admitted (Autopilot adds requests for it to every pod); cover ephemeral-storage too"
            ),
            (
                "teams[team-a].allowedRegions: queue gpu is in us-central1 only; allow one of these regions, or use "
                "another queue"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_groups_where_several_clusters_look_up_none() -> None:
    [result] = problems(changed(fleet_data(), {"teams/0/members": ["group:a@b.c"]}))
    assert "but manager, worker-a, worker-b look up no groups" in result


GROUPS = {
    "multiKueue/dispatcher": "External",
    "multiKueue/external": {"name": "kueue-fleet.dev/dispatcher"},
    "controller": {"image": "example.com/controller:1", "regionGroups": {"us": ["us-east4"]}},
}


@pytest.mark.parametrize(("group", "wrong"), [("us", False), ("asia", True)])
def test_a_group_of_regions_is_allowed_where_regions_are(group: str, wrong: bool) -> None:
    result = problems(changed(fleet_data(), GROUPS | {"teams/0/allowedRegions": [group]}))
    assert ("teams[team-vision].allowedRegions[0]: asia is not a known region" in str(result)) is wrong


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []


def test_a_queue_that_reaches_beyond_the_regions_of_its_team() -> None:
    """Kueue's dispatchers would take the jobs there; the fleet's own does not."""
    regions = {"teams/0/allowedRegions": ["us-east4"]}
    assert problems(changed(fleet_data(), regions)) == [
        "warning: teams[team-vision].allowedRegions: us-east4, but manager, which stores its jobs with their names, "
        "commands and environment, is in europe-west4; put the manager into one of these regions, or have nothing in "
        "jobs that has to stay there",
        "warning: teams[team-vision].allowedRegions: queue vision is in europe-west4 too, and Kueue's own dispatchers "
        "know no regions; limit the clusters of the queue, or dispatch with the fleet's own controller",
    ]
    ours = {
        "multiKueue/dispatcher": "External",
        "multiKueue/external": {"name": "kueue-fleet.dev/dispatcher"},
        "controller": {"image": "example.com/controller:1"},
    }
    assert not [text for text in problems(changed(fleet_data(), regions | ours)) if "know no regions" in text]
