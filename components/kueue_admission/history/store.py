"""Events as Parquet: a folder, or a bucket of Cloud Storage, with files that are only added, in a folder for each day.

    DIR/history.json                    version of the schema, and what was pruned
    DIR/events/day=2026-11-27/*.parquet
    DIR/followed/CLUSTER/BEGIN-END      empty: nothing of it was missed between these milliseconds since 1970
    DIR/clusters/CLUSTER/UID            empty: kube-system of a cluster that had this name has this uid

A file is there as a whole or not at all. The same event may be in two files, after a crash; readers take one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from kueue_admission.history.schema import COLUMNS, SCHEMA_VERSION, Event, Kind
from kueue_admission.kernel.form_rules import UNREADABLE_FILE
from kueue_admission.kernel.problem import Problem

CLOSING: Final = (Kind.ENDED, Kind.DELETED, Kind.NODE_GONE)
"""The last events of a Workload or node."""
MOST_FILES: Final = 24
"""Files of a day; more are made one."""
NOTE_SECONDS: Final = 3600.0
"""After which it is noted again that a cluster is followed, where no note can be replaced."""
_ABOUT: Final = "history.json"
_DAY: Final = 86_400.0
_AT_ONCE: Final = 16
"""Objects of a bucket that are read at the same time."""
_BRIEF: Final = tuple(name for name in COLUMNS if name not in ("requests", "pod_sets", "labels"))
"""The columns that say what a Workload or node is, without what only admission looks at."""


class StoreError(Exception):
    """The store cannot be used; `problem` says why."""

    def __init__(self, where: str, wrong: str, fix: str) -> None:
        self.problem: Problem = UNREADABLE_FILE.at("", wrong, fix, source=where)
        super().__init__(str(self.problem))


def day_of(time: float) -> str:
    """The day of a time in UTC, as folders are called."""
    return datetime.fromtimestamp(time, UTC).date().isoformat()


def _is_whole(name: str) -> bool:
    """Whether a file has that name once it is finished."""
    return name.endswith(".parquet") and not name.startswith(".")


class Store:
    """The events in a folder, or below `gs://bucket/path`. Raises StoreError where it cannot be used.

    With `appends` files are only created: nothing is deleted or written again, for who may do no more in a bucket.
    """

    def __init__(self, where: str, *, create: bool = False, appends: bool = False) -> None:
        try:
            import pyarrow as pa
            from pyarrow import fs
        except ImportError:
            raise StoreError(where, "needs pyarrow", "pip install 'kueue-admission[history]'") from None
        self.where, self._pa, self._fs, self._appends = where, pa, fs, appends
        self._noted: dict[str, tuple[float, float]] = {}
        """For each cluster since when it is followed, and until when that is noted; with `appends`, not yet noted."""
        if not where:  # It would be the working directory.
            raise StoreError("--store", "is empty", "give a folder, or gs://BUCKET/PATH")
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
            self._is_local = not separator
            if create:
                self._make_folder("events")
            is_new = not self._is_there("", _ABOUT)
            self._about: dict[str, Any] = (
                {"schemaVersion": SCHEMA_VERSION, "pruned": []} if is_new else self._read_about()
            )
            if create and is_new:
                self._write_about()
        except (OSError, ValueError) as failed:
            number = failed.errno if isinstance(failed, OSError) else None
            why = os.strerror(number) if number else failed
            raise StoreError(where, f"cannot be used: {why}", "give another --store") from None
        if is_new and not create:
            raise StoreError(where, "has no history", "write it with kueue-fleet record")
        self._schema = pa.schema([(name, self._type(kind)) for name, kind in COLUMNS.items()])

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

    def _make_folder(self, name: str) -> None:
        """Not in a bucket, which has none; to ask for one takes a right on the whole bucket."""
        if self._is_local:
            self._files.create_dir(f"{self._root}/{name}", recursive=True)

    def _is_there(self, folder: str, name: str) -> bool:
        """By a list: who may list only below a path in a bucket is refused where an object is asked for in vain."""
        return any(entry.base_name == name for entry in self._listed(folder, recursive=False))

    def _read_about(self) -> dict[str, Any]:
        path = f"{self._root}/{_ABOUT}"
        with self._files.open_input_stream(path) as stream:
            about: dict[str, Any] = json.loads(stream.read())
        version = about.get("schemaVersion") if isinstance(about, dict) else None
        if not isinstance(version, int) or not isinstance(about.get("pruned"), list):
            raise ValueError(f"{_ABOUT} is not one of a history")
        if version > SCHEMA_VERSION:
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
        for day, of_it in sorted(days.items()):
            rows = sorted(of_it.values(), key=attrgetter("time", "key"))
            columns = [[getattr(row, name) for row in rows] for name in COLUMNS]
            columns[list(COLUMNS).index("time")] = [round(row.time * 1e6) for row in rows]
            arrays = [
                self._pa.array([list(v.items()) if isinstance(v, Mapping) else v for v in values], type=field.type)
                for values, field in zip(columns, self._schema, strict=True)
            ]
            self._write(day, self._pa.table(arrays, schema=self._schema))
            if not self._appends and len(self._paths(day)) > MOST_FILES:
                self._rewrite(day, lambda table: table)
        return sum(map(len, days.values()))

    def follow(self, since: Mapping[str, float], end: float) -> None:
        """Note that nothing of these clusters was missed from these times to END, and all that happened is written."""
        for cluster, begin in since.items():
            first, last = self._noted.get(cluster, (begin, begin))
            if begin > last:
                self._finish_note(cluster)
                first = last = begin
            self._noted[cluster] = (first, end)
            if not self._appends:
                self._write_note(cluster, first, end)
                if last > first:
                    self._files.delete_file(self._note(cluster, first, last))
            elif end - first >= NOTE_SECONDS:
                self._finish_note(cluster)

    def meet(self, cluster: str, identity: str) -> bool:
        """Note which cluster has that name; whether it is another one than all that had it before."""
        known_identities = self._identities(cluster)
        if identity in known_identities:
            return False
        self._make_folder(f"clusters/{cluster}")
        self._files.open_output_stream(f"{self._root}/clusters/{cluster}/{identity}").close()
        return bool(known_identities)

    def is_another(self, cluster: str, identity: str) -> bool:
        """Whether a cluster of that name was met, and none with this identity."""
        known_identities = self._identities(cluster)
        return bool(known_identities) and identity not in known_identities

    def _identities(self, cluster: str) -> set[str]:
        return {entry.base_name for entry in self._listed(f"clusters/{cluster}")}

    def finish(self) -> None:
        """Note what is not noted yet, at the end."""
        for cluster in list(self._noted):
            self._finish_note(cluster)

    def _finish_note(self, cluster: str) -> None:
        first, last = self._noted.get(cluster, (0.0, 0.0))
        if self._appends and last > first:
            self._write_note(cluster, first, last)
            self._noted[cluster] = (last, last)

    def _note(self, cluster: str, begin: float, end: float) -> str:
        return f"{self._root}/followed/{cluster}/{1000 * begin:.0f}-{1000 * end:.0f}"

    def _write_note(self, cluster: str, begin: float, end: float) -> None:
        self._make_folder(f"followed/{cluster}")
        self._files.open_output_stream(self._note(cluster, begin, end)).close()

    def _write_about(self) -> None:
        path = f"{self._root}/{_ABOUT}"
        partial_path = f"{self._root}/.{_ABOUT}" if self._is_local else path
        with self._files.open_output_stream(partial_path) as stream:
            stream.write(json.dumps(self._about, indent=1).encode())
        if partial_path != path:
            self._files.move(partial_path, path)

    def _write(self, day: str, table: Any) -> str:
        """Under a name that its content gives: written twice, it is there once."""
        from pyarrow import parquet

        table = table.replace_schema_metadata({"kueue-fleet.schemaVersion": str(SCHEMA_VERSION)})
        name = sha256("\n".join(table["key"].to_pylist()).encode()).hexdigest()[:24]
        folder = f"{self._root}/events/day={day}"
        self._make_folder(f"events/day={day}")
        path = f"{folder}/{name}.parquet"
        if self._appends and self._is_there(f"events/day={day}", f"{name}.parquet"):
            return path  # An upload of which the answer was lost: to write it again would take the right to delete.
        partial_path = f"{folder}/.{name}" if self._is_local else path
        parquet.write_table(table, partial_path, filesystem=self._files, compression="zstd")
        if partial_path != path:
            self._files.move(partial_path, path)
        return path

    def _rewrite(self, day: str, change: Callable[[Any], Any]) -> int:
        """The files of a day as one, changed; how many events are gone."""
        old = self._paths(day)
        before = self._once(self._table(old))
        after = change(before)
        new_path = self._write(day, after) if after.num_rows else ""
        for path in old:
            if path != new_path:
                self._files.delete_file(path)
        return int(before.num_rows - after.num_rows)

    def prune(self, before: float, team: str = "") -> int:
        """Delete events before a time, of a team or of all; they do not come back. How many there were."""
        from pyarrow import compute as pc

        others = [
            prune for prune in self._about["pruned"] if prune["before"] > before or team not in ("", prune["team"])
        ]
        self._about["pruned"] = [*others, {"before": before, "team": team}]
        self._write_about()
        border = self._pa.scalar(round(before * 1e6), self._pa.timestamp("us", tz="UTC"))

        def kept(table: Any) -> Any:
            goes = pc.less(table["time"], border)
            return table.filter(pc.invert(pc.and_(goes, pc.equal(table["team"], team)) if team else goes))

        return sum(self._rewrite(day, kept) for day in self.days if day <= day_of(before))

    def bound(self, oldest: float = 0.0, most_bytes: int | None = None) -> int:
        """Delete whole days: those before OLDEST, then the first while there is more. How many events there were.

        The last day stays, whatever its size.
        """
        days = self._by_day()
        sizes = {day: sum(file.size for file in files) for day, files in days.items()}
        gone = [day for day in days if day < day_of(oldest)]
        days_left = [day for day in days if day not in gone]
        while most_bytes is not None and len(days_left) > 1 and sum(sizes[day] for day in days_left) > most_bytes:
            gone.append(days_left.pop(0))
        return self.prune(datetime.fromisoformat(gone[-1]).replace(tzinfo=UTC).timestamp() + _DAY) if gone else 0

    def _is_pruned(self, event: Event) -> bool:
        return any(
            event.time < pruning["before"] and pruning["team"] in ("", event.team) for pruning in self._about["pruned"]
        )

    # Reading

    @property
    def followed(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """For each cluster the times without a gap in what was recorded, in seconds."""
        spans: dict[str, list[tuple[float, float]]] = {}
        times = []
        for path in (file.path for file in self._listed("followed")):
            cluster, _, name = path.rpartition("/")
            begin, _, end = name.partition("-")
            if begin.isdecimal() and end.isdecimal():
                times.append((int(begin) / 1000, int(end) / 1000, cluster.rpartition("/")[2]))
        for begin, end, cluster in sorted(times):
            of_it = spans.setdefault(cluster, [])
            if of_it and begin <= of_it[-1][1]:
                begin, end = of_it[-1][0], max(of_it.pop()[1], end)
            of_it.append((begin, end))
        return spans

    @property
    def pruned(self) -> Sequence[tuple[float, str]]:
        """What was deleted: the time before which, and the team, where that is empty all."""
        return [(pruning["before"], pruning["team"]) for pruning in self._about["pruned"]]

    @property
    def days(self) -> Sequence[str]:
        """The days that have events."""
        return list(self._by_day())

    def _listed(self, folder: str, *, recursive: bool = True) -> Any:
        """Every file in a folder, and those below."""
        selector = self._fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True, recursive=recursive)
        return [entry for entry in self._files.get_file_info(selector) if entry.type == self._fs.FileType.File]

    def _by_day(self) -> dict[str, list[Any]]:
        """The files of each day, in order."""
        files_by_day: dict[str, list[Any]] = {}
        for file in sorted(self._listed("events"), key=attrgetter("path")):
            day = file.path.split("/")[-2].removeprefix("day=")
            if _is_whole(file.base_name):
                files_by_day.setdefault(day, []).append(file)
        return files_by_day

    def _paths(self, day: str) -> list[str]:
        return sorted(file.path for file in self._listed(f"events/day={day}") if _is_whole(file.base_name))

    def _table(self, paths: Sequence[str], columns: Sequence[str] | None = None) -> Any:
        schema = self._schema if columns is None else self._pa.schema([self._schema.field(name) for name in columns])
        with ThreadPoolExecutor(1 if self._is_local else _AT_ONCE) as pool:
            tables = list(pool.map(partial(self._columns, names=schema.names), paths))
        return self._pa.concat_tables([schema.empty_table(), *tables], promote_options="default")

    def _columns(self, path: str, names: Sequence[str]) -> Any:
        """Of a file, as far as it has them."""
        from pyarrow import parquet

        with self._files.open_input_file(path) as file:
            # All at once: pyarrow holds the interpreter while it reads the end of a file by itself.
            content = file.read_buffer()
        try:
            read = parquet.ParquetFile(self._pa.BufferReader(content))
            return read.read(columns=[name for name in names if name in read.schema_arrow.names])
        except (OSError, ValueError):
            wrong = f"{path.rpartition('/')[2]} of {path.split('/')[-2]} is broken, or not Parquet"
            raise StoreError(self.where, wrong, "put it back from a copy, or take it out of the folder") from None

    def _once(self, table: Any) -> Any:
        """Each event once, in the order of time."""
        seen_keys: set[str] = set()
        are_first = [not (key in seen_keys or seen_keys.add(key)) for key in table["key"].to_pylist()]  # type: ignore[func-returns-value]
        return table.filter(self._pa.array(are_first, self._pa.bool_())).sort_by(
            [("time", "ascending"), ("key", "ascending")]
        )

    def _paths_since(self, day: str) -> list[str]:
        return [file.path for file_day, files in self._by_day().items() if file_day >= day for file in files]

    def keys(self, uids: Collection[str], since: float) -> dict[str, set[str]]:
        """The keys of these Workloads and nodes, by uid; they were created after `since`."""
        keys_by_kind: dict[str, set[str]] = {}
        for path in self._paths_since(day_of(since)):
            table = self._table([path], ("uid", "key"))
            table = table.filter(self._is_in(table["uid"], uids))
            for uid, key in zip(table["uid"].to_pylist(), table["key"].to_pylist(), strict=True):
                keys_by_kind.setdefault(uid, set()).add(key)
        return keys_by_kind

    def open(self, cluster: str) -> list[Event]:
        """The first event of each Workload and node of a cluster that has not ended, and is not said to be gone.

        Without requests, pod sets and labels. Of what is over, only a day and the next are in memory at a time.
        """
        from pyarrow import compute as pc

        begun: dict[str, Event] = {}
        before: set[str] = set()
        for files in self._by_day().values():
            table = self._table([file.path for file in files], _BRIEF)
            table = table.filter(pc.equal(table["cluster"], cluster))
            # A clock that is behind another's has the end of something on the day before it begins.
            over = set(self._of_kinds(table, CLOSING)["uid"].to_pylist())
            firsts = self._events(self._once(self._of_kinds(table, (Kind.ARRIVED, Kind.NODE_ADDED))))
            begun |= {first.uid: first for first in firsts if first.uid not in before}
            for uid in over:
                begun.pop(uid, None)
            before = over
        return list(begun.values())

    def read(self, since: float = 0.0, kinds: Collection[Kind] = tuple(Kind)) -> list[Event]:
        """The events of these kinds from the day of a time on, in the order of time."""
        return self._events(self._once(self._of_kinds(self._table(self._paths_since(day_of(since))), kinds)))

    def _of_kinds(self, table: Any, kinds: Collection[Kind]) -> Any:
        return table.filter(self._is_in(table["kind"], kinds))

    def _is_in(self, column: Any, values: Collection[str]) -> Any:
        from pyarrow import compute as pc

        return pc.is_in(column, value_set=self._pa.array([str(value) for value in sorted(values)], self._pa.string()))

    def _events(self, table: Any) -> list[Event]:
        table = table.set_column(
            table.schema.get_field_index("time"), "time", self._pa.compute.cast(table["time"], self._pa.int64())
        )
        columns = {name: table[name].to_pylist() for name in COLUMNS if name in table.column_names}
        columns["time"] = [time / 1e6 for time in columns["time"]]
        columns["kind"] = list(map(Kind, columns["kind"]))
        for name, kind in ((name, COLUMNS[name]) for name in columns):
            if kind in ("amounts", "labels"):
                columns[name] = [None if row is None else dict(row) for row in columns[name]]
            elif kind == "texts":
                columns[name] = [tuple(cell or ()) for cell in columns[name]]
        if len(columns) < len(COLUMNS):
            names = list(columns)
            return [Event(**dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True)]
        # A month has a quarter of a million: by position, which is that of the columns, takes half as long.
        return [Event(*row) for row in zip(*columns.values(), strict=True)]
