"""Events as Parquet: a folder, or a bucket of Cloud Storage, with files that are only added, in a folder for each day.

    DIR/history.json                    version of the schema, what was pruned, when which cluster was followed
    DIR/events/day=2026-11-27/*.parquet

A file is there as a whole or not at all. The same event may be in two files, after a crash; whoever reads takes one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from kueue_admission.forms.form_rules import UNREADABLE_FILE
from kueue_admission.forms.problem import Problem
from kueue_admission.history.schema import COLUMNS, SCHEMA_VERSION, Event, Kind

CLOSING: Final = (Kind.ENDED, Kind.DELETED, Kind.NODE_GONE)
"""The last events of a Workload or node."""
MOST_FILES: Final = 24
"""Files of a day; more are made one."""
_ABOUT: Final = "history.json"


class StoreError(Exception):
    """The store cannot be used; `problem` says why."""

    def __init__(self, where: str, wrong: str, fix: str) -> None:
        self.problem: Problem = UNREADABLE_FILE.at("", wrong, fix, source=where)
        super().__init__(str(self.problem))


def day_of(time: float) -> str:
    """The day of a time in UTC, as folders are called."""
    return datetime.fromtimestamp(time, UTC).date().isoformat()


class Store:
    """The events in a folder, or below `gs://bucket/path`. Raises StoreError where it cannot be used."""

    def __init__(self, where: str, *, create: bool = False) -> None:
        try:
            import pyarrow as pa
            from pyarrow import fs
        except ImportError:
            raise StoreError(where, "needs pyarrow", "pip install 'kueue-admission[history]'") from None
        self.where, self._pa, self._fs = where, pa, fs
        scheme, separator, _ = where.partition("://")
        if separator and scheme != "gs":
            raise StoreError(where, f"is of the kind {scheme}", "give a folder, or gs://BUCKET/PATH")
        if create and not separator and not Path(where).absolute().parent.is_dir():
            raise StoreError(where, f"there is no folder {Path(where).parent}", "make it, or give another --store")
        try:
            # Without a limit a bucket that cannot be reached is tried for a quarter of an hour.
            uri = f"{where}{'&' if '?' in where else '?'}retry_limit_seconds=60"
            self._files, path = fs.FileSystem.from_uri(uri if separator else Path(where).resolve().as_uri())
            self._root = path.rstrip("/")
            if create:
                self._files.create_dir(f"{self._root}/events", recursive=True)
            self._about = self._read_about()
        except (OSError, ValueError) as failed:
            number = failed.errno if isinstance(failed, OSError) else None
            why = os.strerror(number) if number else failed
            raise StoreError(where, f"cannot be used: {why}", "give another --store") from None
        if not create and not self._is_there(f"{self._root}/events"):
            raise StoreError(where, "has no history", "write it with kueue-fleet record")
        self._schema = pa.schema([(name, self._type(kind)) for name, kind in COLUMNS.items()])
        self._is_local = not separator

    def _type(self, kind: str) -> Any:
        pa = self._pa
        types = {
            "timestamp": pa.timestamp("us", tz="UTC"),
            "bool": pa.bool_(),
            "int | None": pa.int64(),
            "amounts": pa.map_(pa.string(), pa.float64()),
            "labels": pa.map_(pa.string(), pa.string()),
            "texts": pa.list_(pa.string()),
        }
        return types.get(kind, pa.string())

    def _is_there(self, path: str) -> bool:
        return bool(self._files.get_file_info(path).type != self._fs.FileType.NotFound)

    def _read_about(self) -> dict[str, Any]:
        path = f"{self._root}/{_ABOUT}"
        if not self._is_there(path):
            return {"schemaVersion": SCHEMA_VERSION, "pruned": []}
        with self._files.open_input_stream(path) as stream:
            about: dict[str, Any] = json.loads(stream.read())
        if about["schemaVersion"] > SCHEMA_VERSION:
            version = about["schemaVersion"]
            raise StoreError(self.where, f"has schema version {version}, newer than {SCHEMA_VERSION}", "upgrade")
        return about

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Only one process writes into a folder; into a bucket, whoever starts two has to know. Raises StoreError."""
        import fcntl

        if not self._is_local:
            yield
            return
        with Path(self._root, ".lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StoreError(self.where, "another process writes into it", "wait, or end that one") from None
            yield

    # Writing

    def add(self, events: Iterable[Event]) -> int:
        """Write events whose keys are not there yet, but for those that were pruned. How many these were."""
        days: dict[str, dict[str, Event]] = {}
        for event in events:
            if not self._is_pruned(event):
                days.setdefault(day_of(event.time), {}).setdefault(event.key, event)
        self._write_about()
        for day, of_it in sorted(days.items()):
            rows = sorted(of_it.values(), key=attrgetter("time", "key"))
            columns = [[getattr(each, name) for each in rows] for name in COLUMNS]
            columns[list(COLUMNS).index("time")] = [round(each.time * 1e6) for each in rows]
            arrays = [
                self._pa.array([list(v.items()) if isinstance(v, Mapping) else v for v in values], type=field.type)
                for values, field in zip(columns, self._schema, strict=True)
            ]
            self._write(day, self._pa.table(arrays, schema=self._schema))
            if len(self._paths(day)) > MOST_FILES:
                self._rewrite(day, lambda table: table)
        return sum(map(len, days.values()))

    def follow(self, since: Mapping[str, float], end: float) -> None:
        """Note that nothing of these clusters was missed from these times to END, and all that happened is written."""
        followed = self._about.setdefault("followed", {})
        for cluster, begin in since.items():
            times = followed.setdefault(cluster, [])
            if times and begin <= times[-1][1]:
                times[-1][1] = end
            else:
                times.append([begin, end])
        self._write_about()

    def _write_about(self) -> None:
        path = f"{self._root}/{_ABOUT}"
        unfinished = f"{self._root}/.{_ABOUT}" if self._is_local else path
        with self._files.open_output_stream(unfinished) as stream:
            stream.write(json.dumps(self._about, indent=1).encode())
        if unfinished != path:
            self._files.move(unfinished, path)

    def _write(self, day: str, table: Any) -> str:
        """Under a name that its content gives: written twice, it is there once."""
        from pyarrow import parquet

        table = table.replace_schema_metadata({"kueue-fleet.schemaVersion": str(SCHEMA_VERSION)})
        name = sha256("\n".join(table["key"].to_pylist()).encode()).hexdigest()[:24]
        folder = f"{self._root}/events/day={day}"
        self._files.create_dir(folder, recursive=True)
        path = f"{folder}/{name}.parquet"
        unfinished = f"{folder}/.{name}" if self._is_local else path
        parquet.write_table(table, unfinished, filesystem=self._files, compression="zstd")
        if unfinished != path:
            self._files.move(unfinished, path)
        return path

    def _rewrite(self, day: str, change: Callable[[Any], Any]) -> int:
        """The files of a day as one, changed; how many events are gone."""
        old = self._paths(day)
        before = self._once(self._table(old))
        after = change(before)
        written = self._write(day, after) if after.num_rows else ""
        for path in old:
            if path != written:
                self._files.delete_file(path)
        return int(before.num_rows - after.num_rows)

    def prune(self, before: float, team: str = "") -> int:
        """Delete events before a time, of a team or of all; they do not come back. How many there were."""
        from pyarrow import compute as pc

        self._about["pruned"] = [*self._about["pruned"], {"before": before, "team": team}]
        self._write_about()
        border = self._pa.scalar(round(before * 1e6), self._pa.timestamp("us", tz="UTC"))

        def kept(table: Any) -> Any:
            goes = pc.less(table["time"], border)
            return table.filter(pc.invert(pc.and_(goes, pc.equal(table["team"], team)) if team else goes))

        return sum(self._rewrite(day, kept) for day in self.days if day <= day_of(before))

    def _is_pruned(self, event: Event) -> bool:
        return any(event.time < each["before"] and each["team"] in ("", event.team) for each in self._about["pruned"])

    # Reading

    @property
    def followed(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """For each cluster the times without a gap in what was recorded, in seconds."""
        return {
            cluster: [(begin, end) for begin, end in times]
            for cluster, times in self._about.get("followed", {}).items()
        }

    @property
    def pruned(self) -> Sequence[tuple[float, str]]:
        """What was deleted: the time before which, and the team, where that is empty all."""
        return [(each["before"], each["team"]) for each in self._about["pruned"]]

    @property
    def days(self) -> Sequence[str]:
        """The days that have events."""
        found = self._files.get_file_info(self._fs.FileSelector(f"{self._root}/events", allow_not_found=True))
        return sorted(each.base_name.removeprefix("day=") for each in found if each.base_name.startswith("day="))

    def _paths(self, day: str) -> list[str]:
        selector = self._fs.FileSelector(f"{self._root}/events/day={day}", allow_not_found=True)
        found = self._files.get_file_info(selector)
        return sorted(each.path for each in found if each.base_name.endswith(".parquet") and each.base_name[0] != ".")

    def _table(self, paths: Iterable[str], columns: Sequence[str] | None = None) -> Any:
        from pyarrow import parquet

        schema = self._schema if columns is None else self._pa.schema([self._schema.field(name) for name in columns])
        tables = []
        for path in paths:
            with self._files.open_input_file(path) as file:
                read = parquet.ParquetFile(file)
                there = [name for name in schema.names if name in read.schema_arrow.names]
                tables.append(read.read(columns=there))
        return self._pa.concat_tables([schema.empty_table(), *tables], promote_options="default")

    def _once(self, table: Any) -> Any:
        """Each event once, in the order of time."""
        seen: set[str] = set()
        kept = [not (key in seen or seen.add(key)) for key in table["key"].to_pylist()]  # type: ignore[func-returns-value]
        return table.filter(self._pa.array(kept, self._pa.bool_())).sort_by(
            [("time", "ascending"), ("key", "ascending")]
        )

    def _since(self, day: str, columns: Sequence[str] | None = None) -> Any:
        return self._table([path for each in self.days if each >= day for path in self._paths(each)], columns)

    def keys(self, uids: Collection[str], since: float) -> dict[str, set[str]]:
        """The keys of these Workloads and nodes, by uid; they were created after `since`."""
        table = self._since(day_of(since), ("uid", "key"))
        table = table.filter(self._is_in(table["uid"], uids))
        found: dict[str, set[str]] = {}
        for uid, key in zip(table["uid"].to_pylist(), table["key"].to_pylist(), strict=True):
            found.setdefault(uid, set()).add(key)
        return found

    def open(self, cluster: str) -> list[Event]:
        """The first event of each Workload and node of a cluster that has not ended, and is not said to be gone."""
        from pyarrow import compute as pc

        table = self._since("")
        table = table.filter(pc.equal(table["cluster"], cluster))
        closed = set(self._of_kinds(table, CLOSING)["uid"].to_pylist())
        begun = self._of_kinds(table, (Kind.ARRIVED, Kind.NODE_ADDED))
        return self._events(self._once(begun.filter(pc.invert(self._is_in(begun["uid"], closed)))))

    def read(self, since: float = 0.0, kinds: Collection[Kind] = tuple(Kind)) -> list[Event]:
        """The events of these kinds from the day of a time on, in the order of time."""
        return self._events(self._once(self._of_kinds(self._since(day_of(since)), kinds)))

    def _of_kinds(self, table: Any, kinds: Collection[Kind]) -> Any:
        return table.filter(self._is_in(table["kind"], kinds))

    def _is_in(self, column: Any, values: Collection[str]) -> Any:
        from pyarrow import compute as pc

        return pc.is_in(column, value_set=self._pa.array([str(each) for each in sorted(values)], self._pa.string()))

    def _events(self, table: Any) -> list[Event]:
        table = table.set_column(
            table.schema.get_field_index("time"), "time", self._pa.compute.cast(table["time"], self._pa.int64())
        )
        columns = {name: table[name].to_pylist() for name in COLUMNS if name in table.column_names}
        columns["time"] = [time / 1e6 for time in columns["time"]]
        columns["kind"] = list(map(Kind, columns["kind"]))
        for name, kind in COLUMNS.items():
            if kind in ("amounts", "labels"):
                columns[name] = [None if each is None else dict(each) for each in columns[name]]
            elif kind == "texts":
                columns[name] = [tuple(each or ()) for each in columns[name]]
        names = list(columns)
        return [Event(**dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True)]
