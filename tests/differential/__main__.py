"""Scenarios on the real Kueue, by hand. Needs the engines (`make engines`).

    PYTHONPATH=tests python -m differential record --seed 21 --count 240          # adds corpus/21-classical.jsonl.xz
    PYTHONPATH=tests python -m differential record --seed 22 --count 120 --fair   # adds corpus/22-fair.jsonl.xz
    PYTHONPATH=tests python -m differential shrink --seed 21 --index 17 [--fair]  # makes one mismatch small
    PYTHONPATH=tests python -m differential count                                 # the features of the corpus

`record` keeps what Kueue answers where core and Kueue agree. Where they differ it asks Kueue once more: a scenario
that Kueue then answers as the core does is kept with that answer; one that it answers in a third way depends on chance
and is dropped, and the number of these is printed; the others are mismatches: they are printed, and the command fails.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from differential import corpus, real
from differential.compare import mismatch
from differential.generate import scenario
from differential.shrink import shrunk
from one_cluster import OneCluster

Json = dict[str, Any]
BATCH = 150


def record(seed: int, count: int, fair: bool) -> int:
    """Asks Kueue, and keeps its answers."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, real.kueue(Path(folder), fair=fair) as cluster:
        found = ask_twice(cluster, [scenario(seed, index, fair=fair) for index in range(count)])
    corpus.save(corpus.FOLDER / f"{seed}-{'fair' if fair else 'classical'}.jsonl.xz", found.kept)
    print("\n\n".join(found.wrong))
    print(f"{len(found.kept)} kept, {found.chance} that depend on chance, {len(found.wrong)} mismatches")
    print(f"{(time.monotonic() - started) / count * 1000:.0f} s per 1,000 scenarios")
    return 1 if found.wrong else 0


class Asked(NamedTuple):
    """Scenarios to keep with their answers, banners of mismatches, and how many depend on chance."""

    kept: list[tuple[Json, Json]]
    wrong: list[str]
    chance: int


def ask_twice(cluster: OneCluster, cases: list[Json]) -> Asked:
    """Kueue's answers; where the core differs, Kueue is asked again together with the next batch."""
    answers: dict[str, list[Json]] = {case["name"]: [] for case in cases}
    again: list[Json] = []
    batch = 0
    while cases[batch * BATCH :] or again:
        asked = [*cases[batch * BATCH : (batch + 1) * BATCH], *again]
        for case, answer in zip(asked, real.answers(cluster, asked, f"b{batch}"), strict=True):
            answers[case["name"]].append(answer)
        again = [case for case in asked if len(answers[case["name"]]) == 1 and mismatch(case, answers[case["name"]][0])]
        batch += 1
    return sort_out([(case, answers[case["name"]]) for case in cases])


def sort_out(records: list[tuple[Json, list[Json]]]) -> Asked:
    """What to make of one or two answers to each scenario."""
    found = Asked([], [], 0)
    for case, answers in records:
        right = next((answer for answer in answers if mismatch(case, answer) is None), None)
        if right is not None:
            found.kept.append((case, right))
        elif len(answers) > 1 and answers[0]["rounds"] != answers[1]["rounds"]:
            found = found._replace(chance=found.chance + 1)
        else:
            found.wrong.append(mismatch(case, answers[0]) or "")
    return found


def shrink(case: Json) -> int:
    """Makes a mismatch small, on the real Kueue."""
    with tempfile.TemporaryDirectory() as folder, real.kueue(Path(folder), fair=case["fair"]) as cluster:
        asked = 0

        def differ(cases: list[Json]) -> list[bool]:
            nonlocal asked
            asked += 1
            answers = real.answers(cluster, cases, f"ask{asked}") if cases else []
            return [mismatch(one, answer) is not None for one, answer in zip(cases, answers, strict=True)]

        if not differ([case])[0]:
            print(f"scenario {case['name']}: no mismatch")
            return 0
        small = shrunk(case, differ)
        (answer,) = real.answers(cluster, [small], "last")
    print(mismatch(small, answer))
    return 1


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m differential", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=("record", "shrink", "count"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--fair", action="store_true")
    given = parser.parse_args()
    if given.command == "record":
        return record(given.seed, given.count, given.fair)
    if given.command == "shrink":
        return shrink(scenario(given.seed, given.index, fair=given.fair))
    records = corpus.load()
    print(f"{len(records)} scenarios")
    for name, count in sorted(corpus.counts(records).items()):
        print(f"{count:6} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
