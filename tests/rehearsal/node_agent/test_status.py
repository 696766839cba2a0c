from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kueue_rehearsal.node_agent.status import (
    BACKOFF_LAST_SECONDS,
    ContainerState,
    pod_phase,
    pod_status,
    restart_delay_seconds,
    terminated,
)

NEW = ContainerState("c", "image")
RUNNING = NEW.running(1000.0, "process://1", has_startup_probe=False, has_readiness_probe=True)
READY = replace(RUNNING, ready=True)
DONE = RUNNING.ended(terminated(0, 1000.0, 1010.0))
BROKEN = RUNNING.ended(terminated(1, 1000.0, 1010.0))


@pytest.mark.parametrize(
    ("policy", "states", "phase"),
    [
        ("Always", [NEW], "Pending"),
        ("Always", [RUNNING, NEW], "Pending"),
        ("Always", [RUNNING], "Running"),
        ("Always", [BROKEN], "Running"),
        ("Always", [BROKEN.waiting("CrashLoopBackOff")], "Running"),
        ("Never", [DONE, RUNNING], "Running"),
        ("Never", [DONE, DONE], "Succeeded"),
        ("Never", [DONE, BROKEN], "Failed"),
        ("OnFailure", [BROKEN], "Running"),
        ("OnFailure", [DONE], "Succeeded"),
    ],
)
def test_phase(policy: str, states: list[ContainerState], phase: str) -> None:
    assert pod_phase(policy, True, states) == phase


def test_phase_is_pending_until_the_init_containers_are_done() -> None:
    assert pod_phase("Always", False, [RUNNING]) == "Pending"


@pytest.mark.parametrize(("restarts", "ran", "delay"), [(0, 1, 0), (1, 1, 1), (2, 1, 2), (4, 1, 8), (4, 60, 0)])
def test_restarts_slow_down_unless_the_container_ran_for_a_while(restarts: int, ran: float, delay: float) -> None:
    assert restart_delay_seconds(restarts, ran) == delay


def test_the_back_off_is_bounded() -> None:
    assert restart_delay_seconds(10_000, 0.1) == BACKOFF_LAST_SECONDS


def test_a_signal_ends_as_a_shell_would_say_it() -> None:
    end = terminated(-15, 5.0, 6.0).render()
    assert end == {
        "exitCode": 143,
        "signal": 15,
        "reason": "Error",
        "startedAt": "1970-01-01T00:00:05Z",
        "finishedAt": "1970-01-01T00:00:06Z",
    }


def status(pod: dict[str, Any], *states: ContainerState, now: float = 2000.0) -> dict[str, Any]:
    return pod_status(
        pod,
        containers=states,
        init_containers=[],
        initialized=True,
        pod_ip="127.70.1.2",
        host_ip="127.70.0.1",
        start_time=900.0,
        now=now,
    )


def condition(body: dict[str, Any], kind: str) -> dict[str, Any]:
    result: dict[str, Any] = next(one for one in body["conditions"] if one["type"] == kind)
    return result


def test_ready_needs_every_container_and_names_those_that_are_not() -> None:
    other = replace(RUNNING, name="d")
    body = status({"spec": {}}, READY, other)
    assert condition(body, "Ready") == {
        "type": "Ready",
        "status": "False",
        "lastTransitionTime": "1970-01-01T00:33:20Z",
        "reason": "ContainersNotReady",
        "message": "containers with unready status: [d]",
    }
    assert condition(status({"spec": {}}, READY), "Ready")["status"] == "True"


def test_a_condition_keeps_its_time_while_it_does_not_change() -> None:
    first = status({"spec": {}}, READY, now=2000.0)
    second = status({"spec": {}, "status": first}, READY, now=3000.0)
    assert condition(second, "Ready")["lastTransitionTime"] == condition(first, "Ready")["lastTransitionTime"]
    third = status({"spec": {}, "status": second}, RUNNING, now=3000.0)
    assert condition(third, "Ready")["lastTransitionTime"] == "1970-01-01T00:50:00Z"


def test_a_finished_pod_is_not_ready_and_says_so() -> None:
    body = status({"spec": {"restartPolicy": "Never"}}, DONE)
    assert body["phase"] == "Succeeded"
    assert condition(body, "Ready")["reason"] == "PodCompleted"


def test_the_last_end_stays_visible_through_a_restart() -> None:
    again = BROKEN.waiting("CrashLoopBackOff", "back-off").running(
        1020.0, "process://2", has_startup_probe=False, has_readiness_probe=False
    )
    rendered = again.render()
    assert rendered["lastState"]["terminated"]["exitCode"] == 1
    assert rendered["state"] == {"running": {"startedAt": "1970-01-01T00:17:00Z"}}
    assert rendered["ready"] is True


def test_a_restart_is_never_counted_without_its_end() -> None:
    """A test of the rehearsal once saw the count, and not why."""
    rendered = BROKEN.restarted().render()
    assert (rendered["restartCount"], rendered["lastState"]["terminated"]["exitCode"]) == (1, 1)


def test_addresses_of_an_earlier_life_are_replaced_not_merged() -> None:
    body = status({"spec": {}}, READY)
    assert body["podIPs"] == [{"$patch": "replace"}, {"ip": "127.70.1.2"}]
    assert body["hostIPs"] == [{"$patch": "replace"}, {"ip": "127.70.0.1"}]
