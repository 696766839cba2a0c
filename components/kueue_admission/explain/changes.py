"""Changes that help, as plain data, amounts as the core counts them (CPU in thousandths)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NewAmount:
    """A number that a change sets: a field of a `ClusterQueue`, `Cohort` or `Workload`.

    `flavor` and `resource` are empty where it is no quota; `before` is None where there is none yet.
    """

    kind: str
    name: str
    field: str
    before: int | None
    after: int
    flavor: str = ""
    resource: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was made on a copy of the cluster, and what the core decided then.

    `kind` is a word for programs; `admits` whether the workload then gets its quota, perhaps after `preempts`.
    `amounts` are the numbers that it sets; without any it is no change of numbers.
    """

    kind: str
    what: str
    outcome: str
    admits: bool
    preempts: tuple[str, ...] = ()
    amounts: tuple[NewAmount, ...] = ()
