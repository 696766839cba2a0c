"""`make check` refuses an assert on control planes of what was read once; see `tests.engines.read_once`."""

from __future__ import annotations

import pytest

from tests.engines.read_once import read_once

REFUSED = {
    "in the assert": 'assert lab.workload("a")["status"]',
    "a path": 'assert cluster.get(f"{JOBS}/a")["status"]["active"] == 1',
    "a list of a path": "assert not cluster.items(PODS)",
    "by a name": 'job = cluster.get("/api/v1/pods/a")\nstatus = job["status"]\nassert status == 1',
    "in a block": "with stopped():\n    for one in (1, 2):\n        assert lab.objects(one, 'jobs')",
}
ALLOWED = {
    "a wait": 'wait_until(lambda: lab.workload("a"))\nassert wait_until(lambda: cluster.items(PODS))',
    "what a wait saw": 'job = wait_until(lambda: cluster.get("/api/v1/pods/a"))\nassert job["status"]',
    "a function for a wait": "def look():\n    assert cluster.items(PODS)\n    return True\nwait_until(look)",
    "a reason": 'job = lab.workload("a")  # settled: it has finished\nassert job',
    "a name that is something else by then": 'job = lab.workload("a")\njob = 1\nassert job',
    "values of a dict": 'assert status.get("active") in status.items()',
    "what is read and not asserted": 'lab.change(lab.workload("a"))',
}


def found(body: str) -> list[tuple[int, str]]:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    return list(read_once(f"def test_it(lab, cluster):\n{indented}\n"))


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_is_read_once_is_refused(body: str) -> None:
    assert len(found(body)) == 1


@pytest.mark.parametrize("body", ALLOWED.values(), ids=ALLOWED)
def test_what_waits_or_says_why_is_allowed(body: str) -> None:
    assert found(body) == []
