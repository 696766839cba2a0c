"""Scenarios on the real Kueue, by hand. Needs the engines (`make engines`).

    export PYTHONPATH=tests/support
    python -m tests.differential record --setting fair --seed 21 --count 600   # corpus/fair-21.jsonl.xz
    python -m tests.differential record --release 0.18 --file fair-81 --count 200    # corpus/0.18/fair-81.jsonl.xz
    python -m tests.differential settle                                        # after the core was mended
    python -m tests.differential shrink --setting fair --seed 21 --index 17    # makes one mismatch small
    python -m tests.differential count                                         # the features of the corpus

`record` asks Kueue each scenario of the seed that is not yet in the file, and keeps the answers with which the core
agrees. Where it does not, Kueue is asked twice more: an answer with which the core agrees is kept, and listed,
for what Kueue does then depends on its speed. The others are mismatches: they are printed, and the command fails. They
are kept beside the corpus (`*.wrong`, not for git), from where `settle` takes them over once the core answers as Kueue
did.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.differential import corpus
from tests.differential.batch import answers
from tests.differential.compare import mismatch
from tests.differential.generate import scenario
from tests.differential.lab import Lab, kueue
from tests.differential.replay import parse
from tests.differential.settings import LATEST, SETTINGS, side_by_side
from tests.differential.shrink import shrunk
from tests.differential.steps import submitted

from kueue_admission.decide.errors import NotModelledError
from kueue_rehearsal.engines import KUEUE_ENGINES

Json = dict[str, Any]
BATCHES = 4
"""So many batches run on one control plane, which keeps what they leave."""
TIMES = 3


Record = tuple[Json, Json]


class Asking:
    """Scenarios that Kueue is asked: those to keep with their answers, and those that differ with theirs."""

    def __init__(self, cases: list[Json]) -> None:
        self.waiting = list(cases)
        self.kept: list[Record] = []
        self.wrong: list[Record] = []
        self.again: list[str] = []
        """The names of those that were asked more than once and are kept."""
        self._times: dict[str, int] = {}

    def go_on(self, lab: Lab, batch: str) -> None:
        """One batch; a scenario that differs waits to be asked again, but not for ever."""
        count = side_by_side(lab.setting)
        cases, self.waiting = self.waiting[:count], self.waiting[count:]
        for case, answer in zip(cases, answers(lab, cases, batch), strict=True):
            name = case["name"]
            self._times[name] = self._times.get(name, 0) + 1
            if mismatch(case, answer) is None:
                self.kept.append((case, answer))
                if self._times[name] > 1:
                    self.again.append(name)
            elif self._times[name] < TIMES:
                self.waiting.append(case)
            else:
                self.wrong.append((case, answer))

    def all(self, lab: Lab) -> None:
        """Every batch on one control plane."""
        number = 0
        while self.waiting:
            self.go_on(lab, f"b{number}")
            number += 1


def record(path: Path, cases: Iterable[Json]) -> int:
    """Asks Kueue what is not yet in the file, and keeps its answers there."""
    started = time.monotonic()
    known = corpus.read(path) if path.exists() else []
    names = {case["name"] for case, _ in known}
    asked = [one for one in cases if one["name"] not in names]
    refused = {one["name"]: f"{why.place}: {why.feature}" for one in asked if (why := not_modelled(one)) is not None}
    result = Asking([one for one in asked if one["name"] not in refused])
    result.kept.extend(known)
    print("".join(f"refused: {name}, {why}\n" for name, why in refused.items()), end="")
    while result.waiting:
        first = result.waiting[0]
        setting, release = first["setting"], first.get("release", LATEST)
        with tempfile.TemporaryDirectory() as folder, kueue(Path(folder), setting, release) as lab:
            for number in range(BATCHES):
                if result.waiting:
                    result.go_on(lab, f"b{number}")
                    corpus.save(path, result.kept)
                    corpus.save(path.with_name(f"{path.name}.wrong"), result.wrong)
                    print(f"{len(result.kept)} kept, asked more than once: {', '.join(result.again) or 'none'}")
                    print(f"{len(result.wrong)} mismatches, {time.monotonic() - started:.0f} s", flush=True)
    print("\n\n".join(mismatch(*one) or "" for one in result.wrong))
    return 1 if result.wrong else 0


def not_modelled(case: Json) -> NotModelledError | None:
    """Why the core refuses a scenario for its release."""
    try:
        parse(case, submitted(case))
    except NotModelledError as error:
        return error
    return None


def settle() -> int:
    """Adds to the corpus what differed when it was recorded and does not any more."""
    left = 0
    for path in sorted(corpus.FOLDER.rglob("*.wrong")):
        wrong = corpus.read(path)
        right = [one for one in wrong if mismatch(*one) is None]
        known = path.with_name(path.name.removesuffix(".wrong"))
        corpus.save(known, [*corpus.read(known), *right])
        wrong = [one for one in wrong if one not in right]
        corpus.save(path, wrong)
        left += len(wrong)
        print(f"{path.name}: {len(right)} settled, {len(wrong)} left")
    return 1 if left else 0


def shrink(case: Json) -> int:
    """Makes a mismatch small, on the real Kueue."""
    with tempfile.TemporaryDirectory() as folder, kueue(Path(folder), case["setting"]) as lab:
        asked = 0

        def differ(cases: list[Json]) -> list[bool]:
            nonlocal asked
            asked += 1
            result = answers(lab, cases, f"ask{asked}") if cases else []
            return [mismatch(one, answer) is not None for one, answer in zip(cases, result, strict=True)]

        if not differ([case])[0]:
            print(f"scenario {case['name']}: no mismatch")
            return 0
        small = shrunk(case, differ)
        (answer,) = answers(lab, [small], "last")
    print(mismatch(small, answer))
    return 1


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("command", choices=("record", "settle", "shrink", "count"))
    parser.add_argument("--setting", choices=SETTINGS, default="classical")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--release", choices=KUEUE_ENGINES, default=LATEST)
    parser.add_argument("--file", default="")
    given = parser.parse_args()
    if given.command == "record" and given.file:
        asked = corpus.of_release(given.file, given.release)[: given.count]
        return record(corpus.file_of(given.file, given.release), asked)
    if given.command == "record":
        cases = (scenario(given.seed, index, given.setting) for index in range(given.count))
        return record(corpus.file_of(f"{given.setting}-{given.seed}"), cases)
    if given.command == "settle":
        return settle()
    if given.command == "shrink":
        return shrink(scenario(given.seed, given.index, given.setting))
    records = corpus.load()
    print(f"{len(records)} scenarios")
    for name, number in sorted(corpus.counts(records).items()):
        print(f"{number:6} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
