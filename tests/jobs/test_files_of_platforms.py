"""Files as the tools and examples of platforms write them are no mistakes; an API server takes the same ones in
`tests/engines/shared_cluster/test_files_of_others.py`."""

from __future__ import annotations

from typing import Any

from files_of_others import JOBS, of_platforms
from kueue_admission.kernel.names import QUEUE_LABEL
from kueue_admission.read.readable import parse_readable
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_simulation.job_findings import JobFindings, check_manifests

FILES = [each.data for each in of_platforms()]
QUEUE = next(each for each in FILES if each["kind"] == "ClusterQueue")
BESIDE = ("Role", "ClusterRoleBinding", "PersistentVolume", "ServiceAccount")
"""What jobs use."""


def fleet() -> FleetSpec:
    """A fleet with the queue without limit, in which nothing is missing."""
    [group] = QUEUE["spec"]["resourceGroups"]
    [flavor] = group["flavors"]
    tpus = {"name": "google.com/tpu", "nominalQuota": 64}
    group = {
        "coveredResources": [*group["coveredResources"], "google.com/tpu"],
        "flavors": [{"name": "any", "resources": [*flavor["resources"], tpus]}],
    }
    return parse_fleet(
        {
            "name": "others",
            "project": "my-project",
            "clusters": [
                {"name": "c", "role": "standalone", "region": "us-central1", "existing": True, "mode": "Standard"}
            ],
            "priorityClasses": [{"name": "usual", "value": 100}],
            "flavors": [{"name": "any"}],
            "clusterQueues": [{"name": "cq", "namespaceSelector": {}, "resourceGroups": [group]}],
            "localQueues": [{"name": "lq", "namespace": "default", "clusterQueue": "cq"}],
        }
    )


def queued(job: dict[str, Any]) -> dict[str, Any]:
    return {**job, "metadata": {**job["metadata"], "namespace": "default", "labels": {QUEUE_LABEL: "lq"}}}


def checked(*objects: dict[str, Any]) -> JobFindings:
    return check_manifests(fleet(), [Document(f"f.yaml:{number}", data) for number, data in enumerate(objects)])


def test_none_is_refused() -> None:
    result = checked(*(queued(item) for item in FILES if item["kind"] in JOBS))
    assert result.problems == []
    not_known = [warning.wrong for warning in result.warnings if "whether it starts is not known" in warning.wrong]
    assert len(not_known) == 2
    assert all("there is no ResourceClaimTemplate default/made-by-a" in wrong for wrong in not_known)


def test_a_queue_without_limit_is_read() -> None:
    of_queue = [entry for entry in FILES if entry["kind"] not in JOBS]
    live = [{**item, "metadata": {**item["metadata"], "uid": "u"}} for item in of_queue]
    assert parse_readable(live).left_out == ()


def test_what_people_write_beside_jobs_is_no_mistake() -> None:
    job = queued(FILES[0])
    beside = [{"kind": kind, "metadata": {"name": "x", "namespace": "default"}} for kind in BESIDE]
    assert checked(*beside, job) == checked(job)
    of_fleet = {"kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "default"}}
    result = checked(of_fleet, job)
    assert result.problems == []
    assert [warning.path for warning in result.warnings if "a fleet has its own" in warning.wrong] == [
        "LocalQueue default/lq"
    ]
    assert "give jobs only" in str(checked(of_fleet).problems)
