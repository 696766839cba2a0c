"""The simulations of `plan`: in several processes, each once, also when an interrupted search goes on."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing import Pool
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kueue_admission.cli import console
from kueue_admission.cli.input_files import is_there, read_text, write_text
from kueue_fleet.planning.plan import Question, Tried
from kueue_fleet.planning.replay import Window
from kueue_fleet.planning.search import Point

if TYPE_CHECKING:
    from multiprocessing.pool import Pool as Processes

SCHEMA_VERSION: Final = 1
"""Of a study's lines; larger where a simulation would not give the same."""
_QUESTION: list[Question] = []
"""In each process: what is asked there."""
_Key = tuple[Point, int, bool, Window]


@contextmanager
def simulations(question: Question, seeds: Sequence[int], processes: int, study: Path | None) -> Iterator[Runs]:
    """What simulates fleets, until the end of the block. Raises CommandError for a study of something else."""
    known_trials = _read_study(study, question) if study is not None else {}
    if processes == 1:
        yield Runs(question, seeds, known_trials, study, None)
        return
    with Pool(processes, _begin, (question,)) as pool:
        yield Runs(question, seeds, known_trials, study, pool)


def _begin(question: Question) -> None:
    """The command ends its processes, whatever signal it gets."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _QUESTION[:] = [question]


def _simulate(key: _Key) -> Tried:
    point, seed, whole, window = key
    return _QUESTION[0].simulate(point, seed, whole=whole, window=window)


class Runs:
    """Simulates a fleet once for each seed. The study, a file of JSON lines, has every one that was done."""

    def __init__(
        self,
        question: Question,
        seeds: Sequence[int],
        known_trials: dict[_Key, Tried],
        study: Path | None,
        pool: Processes | None,
    ) -> None:
        self._question, self._seeds, self._known = question, seeds, known_trials
        self._study, self._pool = study, pool

    def __call__(self, point: Point, *, whole: bool, window: Window | None = None) -> list[Tried]:
        """The simulations of a point."""
        keys = [(point, seed, whole, window or self._question.window) for seed in self._seeds]
        missing_keys = [key for key in keys if self._lookup(key) is None]
        for key, trial in zip(missing_keys, self._run(missing_keys), strict=False):
            self._keep(key, trial)
            if trial.stopped and self._pool is None:
                return [trial]
        return [found for key in keys if (found := self._lookup(key)) is not None]

    def _run(self, keys: Sequence[_Key]) -> Iterator[Tried]:
        if self._pool is not None:
            yield from self._pool.imap(_simulate, keys)
            return
        for point, seed, whole, window in keys:
            yield self._question.simulate(point, seed, whole=whole, window=window)

    def _lookup(self, key: _Key) -> Tried | None:
        """One that went to its end says more than one that may be stopped."""
        point, seed, whole, window = key
        return self._known.get((point, seed, True, window)) or (None if whole else self._known.get(key))

    def _keep(self, key: _Key, trial: Tried) -> None:
        self._known[key] = trial
        if self._study is not None:
            point, seed, whole, window = key
            row = {"point": point, "seed": seed, "whole": whole, "window": [window.begin, window.end]}
            _append(self._study, {**row, "tried": trial.as_json()})


def _append(study: Path, row: object) -> None:
    try:
        with study.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    except OSError as wrong:
        raise console.CommandError(f"{study}: cannot be written: {wrong.strerror}; name another file") from None


def _read_study(study: Path, question: Question) -> dict[_Key, Tried]:
    """What a study has, which is begun where there is none. A line that was cut off is left out."""
    about = {"kueueFleetPlan": SCHEMA_VERSION, "of": _fingerprint(question)}
    if not is_there(study) or not (text := read_text(study, "a study of plan")):
        _append(study, about)
        return {}
    *lines, cut = text.split("\n")  # One that was cut off has no end.
    try:
        rows = [json.loads(line) for line in lines]
        if rows[:1] != [about]:
            fix = "give it a --study of its own"
            raise console.CommandError(f"{study}: is of another fleet, history or --may-change; {fix}")
        tried_runs = {
            (tuple(row["point"]), row["seed"], row["whole"], Window(*row["window"])): Tried.of_json(row["tried"])
            for row in rows[1:]
        }
    except (ValueError, KeyError, TypeError):
        raise console.CommandError(f"{study}: is not a study of plan; name another file") from None
    if cut:
        write_text(study, text.removesuffix(cut))
    return tried_runs


def _fingerprint(question: Question) -> str:
    """What simulations depend on."""
    past = question.past
    arrivals = [(job.arrival.key, job.ended, job.run_seconds) for job in past.jobs]
    about = [
        question.data,
        question.at.date(),
        arrivals,
        past.begin,
        past.end,
        question.queues,
        question.growth,
        question.seed,
    ]
    about += [[knob.text for knob in question.knobs], question.prices, past.waits]
    return sha256(repr(about).encode()).hexdigest()
