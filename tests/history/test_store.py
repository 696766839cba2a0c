"""Events in Parquet files: what others read of them, and what is deleted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyarrow import dataset
from tests.history.workloads import ADMITTED, ASSIGNED, FINISHED, RESERVED, workload

from kueue_admission.history.events import Place, workload_events
from kueue_admission.history.schema import COLUMNS, Event, Kind
from kueue_admission.history.store import MOST_FILES, Store, StoreError
from kueue_admission.read.fields import seconds_of
from kueue_admission.read.printed import PrintedWorkload

DAY = 86_400.0


def life(uid: str = "u1", days: int = 0, team: str = "vision") -> list[Event]:
    """The events of a job, in the order of time."""
    data = workload(RESERVED, ADMITTED, FINISHED, admission=ASSIGNED)
    data["metadata"]["uid"] = uid
    result = workload_events(PrintedWorkload.of(data), Place("manager", team_of={"vision": team}))
    moved = [
        Event(**{name: getattr(item, name) for name in COLUMNS} | {"time": item.time + days * DAY}) for item in result
    ]
    return sorted(moved, key=lambda each: (each.time, each.key))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "history"), create=True)


def test_what_is_read_is_what_was_written(store: Store) -> None:
    store.add(life())
    assert store.read() == life()


def test_anybody_reads_it_as_one_table_by_day(store: Store) -> None:
    store.add([*life(), *life("u2", days=1)])
    table = dataset.dataset(f"{store.where}/events", partitioning="hive").to_table()
    assert sorted(set(table["day"].to_pylist())) == ["2026-11-01", "2026-11-02"]
    assert table.num_rows == 8
    assert table.schema.metadata[b"kueue-fleet.schemaVersion"] == b"1"


def test_a_file_that_is_there_twice_has_each_event_once(store: Store) -> None:
    store.add(life())
    (file,) = Path(store.where).rglob("*.parquet")
    shutil.copy(file, file.with_name("again.parquet"))
    assert store.read() == life()


def test_a_file_that_was_not_finished_does_not_count(store: Store) -> None:
    store.add(life())
    (file,) = Path(store.where).rglob("*.parquet")
    file.with_name(".unfinished").write_bytes(b"PAR1")
    assert store.read() == life()


def test_the_files_of_a_day_become_one(store: Store) -> None:
    for number in range(MOST_FILES + 1):
        store.add(life(f"u{number}"))
    assert len(list(Path(store.where).rglob("*.parquet"))) == 1
    assert len(store.read()) == 4 * (MOST_FILES + 1)


def test_what_is_pruned_by_team_and_age_is_gone_and_does_not_come_back(store: Store) -> None:
    both = [*life("u1", team="vision"), *life("u2", team="speech"), *life("u3", days=9, team="vision")]
    store.add(both)
    assert store.prune(seconds_of("2026-11-05T00:00:00Z"), "vision") == 4
    store.add(both)
    assert sorted({(item.uid, item.team) for item in store.read()}) == [("u2", "speech"), ("u3", "vision")]


def test_a_day_without_events_has_no_file(store: Store) -> None:
    store.add(life())
    store.prune(seconds_of("2026-11-05T00:00:00Z"))
    assert list(Path(store.where).rglob("*.parquet")) == []


def test_a_second_process_does_not_write_into_it(store: Store) -> None:
    with store.writing(), pytest.raises(StoreError, match="another process writes into it"), store.writing():
        pass


def test_a_store_of_a_newer_version_is_refused(store: Store) -> None:
    store.add(life())
    Path(store.where, "history.json").write_text('{"schemaVersion": 2, "pruned": []}')
    with pytest.raises(StoreError, match="schema version 2, newer than 1"):
        Store(store.where)


@pytest.mark.parametrize("text", ["[]", "{}", "{", '{"schemaVersion": "1", "pruned": []}', '{"schemaVersion": 1}'])
def test_a_store_whose_description_is_broken_is_refused(store: Store, text: str) -> None:
    store.add(life())
    Path(store.where, "history.json").write_text(text)
    with pytest.raises(StoreError, match="cannot be used: "):
        Store(store.where)


@pytest.mark.parametrize("content", [b"", b"garbage", b"PAR1garbagePAR1"])
def test_a_file_that_is_broken_is_named(store: Store, content: bytes) -> None:
    store.add(life())
    broken = next(Path(store.where, "events").glob("*/*.parquet"))
    broken.write_bytes(content)
    with pytest.raises(StoreError, match=f"{broken.name} of {broken.parent.name} is broken, or not Parquet"):
        store.read()


def test_a_folder_without_a_history_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has no history; write it with kueue-fleet record"):
        Store(str(tmp_path))


def test_another_kind_of_bucket_is_refused() -> None:
    with pytest.raises(StoreError, match="give a folder, or gs://BUCKET/PATH"):
        Store("s3://bucket/history")


def test_files_of_before_a_column_came_are_read(store: Store) -> None:
    from pyarrow import parquet

    store.add(life())
    (file,) = Path(store.where).rglob("*.parquet")
    parquet.write_table(parquet.read_table(file, partitioning=None).drop_columns(["spot", "flavors"]), file)
    assert [item.kind for item in store.read()] == [Kind.ARRIVED, Kind.RESERVED, Kind.ADMITTED, Kind.ENDED]


def test_times_that_touch_are_one(store: Store) -> None:
    for since, end in ((10.0, 20.0), (20.0, 30.0), (40.0, 50.0)):
        store.follow({"m": since}, end)
    assert Store(store.where).followed == {"m": [(10.0, 30.0), (40.0, 50.0)]}


def test_what_was_pruned_is_said(store: Store) -> None:
    store.add(life())
    store.prune(5.0, "vision")
    assert Store(store.where).pruned == [(5.0, "vision")]


def test_whole_days_go_by_age_and_size_and_the_last_stays(store: Store) -> None:
    for day in range(5):
        store.add(life(f"u{day}", days=day))
    assert store.bound(seconds_of("2026-11-02T23:00:00Z")) == 4
    assert store.days == ["2026-11-02", "2026-11-03", "2026-11-04", "2026-11-05"]
    [size] = [item.stat().st_size for item in Path(store.where, "events/day=2026-11-05").iterdir()]
    assert store.bound(most_bytes=2 * size + size // 2) == 8
    assert store.bound(most_bytes=1) == 4
    assert (store.days, store.bound(most_bytes=1), store.bound()) == (["2026-11-05"], 0, 0)
    assert Store(store.where).pruned == [(seconds_of("2026-11-05T00:00:00Z"), "")]


def test_what_prunes_more_takes_the_place_of_what_pruned_less(store: Store) -> None:
    for before, team in ((5.0, "vision"), (7.0, "vision"), (6.0, "speech"), (6.5, "")):
        store.prune(before, team)
    assert store.pruned == [(7.0, "vision"), (6.5, "")]
