"""What is new to a store: no event twice, and none lost of those that clusters still have."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.history.workloads import ADMITTED, ASSIGNED, EXHAUSTED, FINISHED, RESERVED, Json, request, workload

from kueue_admission.history.events import Place
from kueue_admission.history.recorder import Recorder
from kueue_admission.history.schema import Event, Kind
from kueue_admission.history.store import Store
from kueue_admission.read.fields import seconds_of

PATH = "Workload/vision/job-train-1"
NOW = seconds_of("2026-11-03T00:00:00Z")
PLACE = Place("manager", pool_label="pool", spot_label="spot")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path), create=True)


def write(store: Store, *seen: Json) -> Recorder:
    recorder = Recorder(PLACE, store)
    for item in seen:
        recorder.see(PATH, item)
    store.add(recorder.take())
    return recorder


def kinds(events: list[Event]) -> list[Kind]:
    return sorted((event.kind for event in events), key=list(Kind).index)


def test_a_recorder_that_starts_again_writes_only_what_it_missed(store: Store) -> None:
    write(store, workload(RESERVED, admission=ASSIGNED))
    recorder = Recorder(PLACE, store)
    recorder.see(PATH, workload(RESERVED, ADMITTED, FINISHED, admission=ASSIGNED))
    assert kinds(recorder.take()) == [Kind.ADMITTED, Kind.ENDED]


def test_a_workload_that_is_seen_again_and_again_is_written_once(store: Store) -> None:
    recorder = write(store, workload(RESERVED), workload(RESERVED))
    recorder.see(PATH, workload(RESERVED))
    assert recorder.take() == []


def test_a_workload_that_is_deleted_before_its_end_is_gone(store: Store) -> None:
    recorder = write(store, workload(RESERVED))
    recorder.lose(PATH, NOW)
    (event,) = recorder.take()
    assert (event.kind, event.time, event.exact) == (Kind.DELETED, NOW, False)


def test_a_workload_that_is_deleted_after_its_end_is_not(store: Store) -> None:
    recorder = write(store, workload(FINISHED))
    recorder.lose(PATH, NOW)
    assert recorder.take() == []


def test_what_was_deleted_while_nobody_looked_is_noticed_once(store: Store) -> None:
    write(store, workload(RESERVED))
    for expected in ([Kind.DELETED], []):
        recorder = Recorder(PLACE, store)
        recorder.listed("Workload", NOW)
        result = recorder.take()
        store.add(result)
        assert kinds(result) == expected


def test_what_is_still_there_is_not_gone(store: Store) -> None:
    write(store, workload(RESERVED))
    recorder = Recorder(PLACE, store)
    recorder.see(PATH, workload(RESERVED))
    recorder.listed("Workload", NOW)
    assert recorder.take() == []


def test_another_workload_of_the_same_name_ends_the_former(store: Store) -> None:
    recorder = write(store, workload())
    other = workload()
    other["metadata"] |= {"uid": "u2", "creationTimestamp": "2026-11-02T09:00:00Z"}
    recorder.see(PATH, other)
    assert kinds(recorder.take()) == [Kind.ARRIVED, Kind.DELETED]


def test_nodes_of_a_pool_come_and_go(store: Store) -> None:
    metadata = {"name": "n1", "uid": "n1", "creationTimestamp": "2026-11-01T09:00:00Z"}
    node = {"kind": "Node", "metadata": {**metadata, "labels": {"pool": "l4", "spot": "true"}}}
    recorder = Recorder(PLACE, store)
    recorder.see("Node/n1", node)
    recorder.lose("Node/n1", NOW)
    added, gone = recorder.take()
    assert [(item.kind, item.pool, item.spot) for item in (added, gone)] == [
        (Kind.NODE_ADDED, "l4", True),
        (Kind.NODE_GONE, "l4", True),
    ]


def test_what_a_recorder_keeps_does_not_grow_with_what_is_gone(store: Store) -> None:
    recorder = Recorder(PLACE, store)
    sizes = []
    for number in range(3):
        item = workload()
        item["metadata"]["uid"] = f"u{number}"
        recorder.see(PATH, item)
        recorder.lose(PATH, NOW)
        recorder.take()
        sizes.append(sum(len(entry) for entry in vars(recorder).values() if isinstance(entry, (dict, set))))
    assert sizes == [0, 0, 0]


def test_a_stock_out_is_written_once_and_nothing_of_its_request_is_kept(store: Store) -> None:
    path = "ProvisioningRequest/vision/job-train-1-dws-2"
    for expected in ([Kind.STOCK_OUT], []):
        recorder = Recorder(PLACE, store)
        recorder.see(path, request(EXHAUSTED))
        recorder.see(path, request(EXHAUSTED))
        result = recorder.take()
        store.add(result)
        assert kinds(result) == expected
        recorder.lose(path, NOW)
        assert recorder.take() == []
        recorder.see(path, {**request(EXHAUSTED), "metadata": {**request()["metadata"], "uid": "r2"}})
        assert [event.uid for event in recorder.take()] == ["r2"]
        assert recorder.unknown() == (set(), 0.0)
