"""The stacks of the repository, and those of its examples, are right without a warning; and say what they should."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_admission.kernel import SpecError
from kueue_fleet.fleet_file import FleetSpec, check_fleet, parse_fleet_text, read_fleet_text
from kueue_fleet.gke.labels import GPU_RESOURCE

ROOT = Path(__file__).parents[2]
STACKS = sorted(
    [
        *(ROOT / "stacks").glob("Pulumi.*.yaml"),
        *(each for each in (ROOT / "examples").glob("*/Pulumi.*.yaml") if "kueue-fleet:fleet" in each.read_text()),
    ]
)
ENVIRONMENTS = {"dws-multikueue", "batch-platform", "dev", "staging", "prod"}


def read(name: str) -> FleetSpec:
    path = ROOT / "stacks" / f"Pulumi.{name}.yaml"
    return parse_fleet_text(path.read_text(encoding="utf-8"), path.name)


def config(name: str) -> dict[str, Any]:
    """The fleet of a stack as plain data."""
    data: dict[str, Any] = yaml.safe_load((ROOT / "stacks" / f"Pulumi.{name}.yaml").read_text(encoding="utf-8"))
    fleet: dict[str, Any] = data["config"]["kueue-fleet:fleet"]
    return fleet


def test_there_are_all_environments() -> None:
    assert {path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in STACKS} == {
        *ENVIRONMENTS,
        "dws-single-cluster",
        "second-fleet",
        "acme",
    }


@pytest.mark.parametrize("path", STACKS, ids=lambda path: str(path.name))
def test_nothing_to_say(path: Path) -> None:
    """But what the pages speak of: Kueue's own dispatchers, and a manager outside the regions of a team."""
    fleet = parse_fleet_text(path.read_text(encoding="utf-8"), path.name)
    known = {
        "Pulumi.dws-multikueue.yaml": ["multiKueue.dispatcher"],
        "Pulumi.acme.yaml": ["teams[language].allowedRegions"],
    }
    problems = check_fleet(fleet)
    assert [problem.path for problem in problems] == known.get(path.name, [])
    assert {problem.severity for problem in problems} <= {"warning"}


class TestBatchPlatform:
    def test_nodes(self) -> None:
        fleet = read("batch-platform")
        pools = {pool.name: pool for pool in fleet.node_pools_on("batch-dev")}
        assert {name: (pool.min_nodes, pool.max_nodes) for name, pool in pools.items()} == {
            "reserved-np": (4, 4),
            "ondemand-np": (0, 24),
            "spot-np": (0, 36),
            "dws-a100-np": (0, 2),
            "dws-h100-np": (0, 2),
        }
        for name in ("reserved-np", "ondemand-np", "spot-np"):
            assert (pools[name].machine_type, pools[name].gpus_per_node) == ("g2-standard-24", 2)
        system = fleet.system_pool_on("batch-dev")
        assert system is not None
        assert system.min_nodes == 6
        limits = fleet.cluster("batch-dev").node_auto_provisioning
        assert limits is not None
        assert (limits.limit("cpu"), limits.limit("memory"), limits.limit("nvidia-tesla-a100")) == (1000, 4000, 100)

    def test_queues(self) -> None:
        """Quotas and borrowing limits in GPUs, by kind of queue; four teams have the same."""
        fleet = read("batch-platform")
        result: dict[str, dict[str, tuple[str, str]]] = {}
        for queue in fleet.cluster_queues:
            kind = queue.name.rpartition("-")[2]
            quotas = {
                flavor.name: (str(quota.nominal_quota), str(quota.borrowing_limit))
                for group in queue.resource_groups
                for flavor in group.flavors
                for quota in flavor.resources
                if quota.name == GPU_RESOURCE
            }
            assert result.setdefault(kind, quotas) == quotas
        assert result == {
            "hp": {"gpu-l4-reserved": ("2", "2"), "gpu-l4-ondemand": ("4", "4")},
            "lp": {"gpu-l4-reserved": ("0", "4"), "gpu-l4-spot": ("12", "4")},
            "compact": {"gpu-a100-compact-spot": ("2", "0")},
            "queue": {"dws-a100": ("4", "None"), "dws-h100": ("16", "None")},
        }
        assert Counter(queue.cohort_name for queue in fleet.cluster_queues) == {
            "team-a-b": 6,
            "team-c-d": 6,
            None: 1,
        }

    def test_jobs(self) -> None:
        jobs = yaml.safe_load((ROOT / "examples/batch-platform/jobs.yaml").read_text(encoding="utf-8"))["items"]
        steps = Counter(job["metadata"]["labels"]["kueue-fleet.dev/step"] for job in jobs)
        assert steps == {"low-priority": 16, "high-priority": 16, "compact": 16, "jobset": 16, "dws": 2}
        assert len({job["metadata"]["name"] for job in jobs}) == 66
        fleet = read("batch-platform")
        queues = {(team.name, queue.name) for team in fleet.teams for queue in team.local_queues}
        for job in jobs:
            assert (job["metadata"]["namespace"], job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]) in queues

    def test_each_job_acts_as_the_account_of_its_team(self) -> None:
        jobs = yaml.safe_load((ROOT / "examples/batch-platform/jobs.yaml").read_text(encoding="utf-8"))["items"]
        accounts = {team.name: team.service_account for team in read("batch-platform").teams}
        for job in jobs:
            workers = job["spec"].get("replicatedJobs", [{"template": job}])
            pods = [item["template"]["spec"]["template"]["spec"] for item in workers]
            assert [pod["serviceAccountName"] for pod in pods] == [accounts[job["metadata"]["namespace"]]]


def test_the_two_defects_of_the_batch_platform_are_found_and_nothing_else() -> None:
    path = ROOT / "examples/batch-platform/with-defects.yaml"
    with pytest.raises(SpecError) as refused:
        parse_fleet_text(path.read_text(encoding="utf-8"), path.name)
    assert [str(problem) for problem in refused.value.problems] == [
        "with-defects.yaml:73: flavors[gpu-l4-reserved]: queues may use 16 nvidia.com/gpu of it on batch-dev "
        "(cq-team-a-hp 4, cq-team-b-hp 4, cq-team-c-hp 4, cq-team-d-hp 4), but its nodes hold 8 (nodes: "
        "reserved-np 4); lower nominalQuota to 8 in all, or add nodes",
        *(
            f"with-defects.yaml:{line}: teams[{team}].existingGoogleServiceAccount: "
            f'"wi-{team}@.iam.gserviceaccount.com" has no project in it; write name@project.iam.gserviceaccount.com'
            for line, team in ((240, "team-a"), (249, "team-b"), (258, "team-c"), (266, "team-d"))
        ),
    ]


def test_as_published_the_two_defects_are_warnings_and_other_errors_stay() -> None:
    text = (ROOT / "examples/batch-platform/with-defects.yaml").read_text(encoding="utf-8")
    published = read_fleet_text(text, "f.yaml", as_published=True)
    assert published.fleet is not None
    assert [problem.severity for problem in published.problems] == ["warning"] * 5
    assert [str(problem) for problem in published.problems] == [
        str(problem) for problem in read_fleet_text(text, "f.yaml").problems
    ]
    worse = read_fleet_text(text.replace("wi-team-d@.iam.gserviceaccount.com", "team-d"), "f.yaml", as_published=True)
    assert worse.fleet is None
    assert [problem.path for problem in worse.problems if problem.severity == "error"] == [
        "teams[team-d].existingGoogleServiceAccount"
    ]


class TestCompany:
    """dev, staging and prod of one fleet."""

    def test_shape(self) -> None:
        fleet = read("prod")
        assert fleet.manager is not None
        assert len(fleet.worker_names) == 3
        assert len(fleet.teams) == 6
        queue = fleet.queue("vision")
        assert queue is not None
        pools = [fleet.flavor(name) for name in queue.flavor_names]
        kinds = [
            fleet.flavor_nodes(flavor, fleet.worker_names[0])[0].capacity.type for flavor in pools if flavor is not None
        ]
        assert kinds == ["reserved", "flexStart", "spot", "onDemand"]
        assert fleet.deletion_protection
        assert not read("dev").deletion_protection

    @pytest.mark.parametrize("other", ["dev", "staging"])
    def test_environments_differ_only_where_they_must(self, other: str) -> None:
        """In names, where images are, release channel, protection, exclusions, channels of alerts; and in numbers."""
        assert set(_differences(config("prod"), config(other))) <= {
            "name",
            "project",
            "deletionProtection",
            "clusters[].releaseChannel",
            "clusters[].maintenance.exclusions",
            "reservations[].count",
            "nodePools[].nodeCount",
            "nodePools[].autoscaling.totalMaxNodeCount",
            "cohorts[].resourceGroups[].flavors[].resources[].nominalQuota",
            "clusterQueues[].resourceGroups[].flavors[].resources[].nominalQuota",
            "observability.alerts",
            "controller.image",
            "multiKueue.credentials.pluginImage",
        }

    def test_the_same_jobs(self) -> None:
        texts = {
            (ROOT / f"examples/{name}/jobs.yaml").read_text(encoding="utf-8").replace(f"{name}/jobs", "/jobs")
            for name in ("dev", "staging", "prod")
        }
        assert len({yaml.safe_dump(yaml.safe_load(text)) for text in texts}) == 1


def _differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Paths at which two values differ, without indices."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            results
            for key in {**one, **other}
            for results in _differences(one.get(key), other.get(key), f"{path}.{key}" if path else key)
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [result for a, b in zip(one, other, strict=True) for result in _differences(a, b, f"{path}[]")]
    return [] if one == other else [path]
