"""Objects of a live cluster that cannot be read: whose answers they touch, and their own answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kueue_admission.explain.answer import Explanation
from kueue_admission.explain.relevance import WorkloadIndex
from kueue_admission.kernel.manifest import key_of
from kueue_admission.read.kueue_objects import LeftOut
from kueue_admission.read.manifests import QUEUED, label_of
from kueue_admission.read.readable import is_without_workload, why


def left_out_for(left_out: Iterable[LeftOut], index: WorkloadIndex, key: str, local_queue: str) -> Sequence[LeftOut]:
    """The workload `key` itself, if it is one of them; else those that may change what it gets."""
    objects_left_out = list(left_out)
    own = [left_out for left_out in objects_left_out if left_out.manifest is index.workloads.get(key)]
    tree = index.tree(key, local_queue)

    def may_matter(left_out: LeftOut) -> bool:
        kind = left_out.manifest.get("kind")
        if kind == "ClusterQueue":
            return tree is None or key_of(left_out.manifest).partition("/")[2] in tree
        return (kind in QUEUED and not is_without_workload(left_out)) or (kind == "Node" and tree is None)

    return own or list(filter(may_matter, objects_left_out))


def explain_unread(left_out: LeftOut, local_queue: str, *, cluster: str = "") -> Explanation:
    """The answer for a workload or job that is left out itself."""
    manifest, reason = left_out.manifest, why(left_out)
    headline = f"Where it stands is not known, since this {manifest.get('kind')} cannot be read: {reason}."
    if is_without_workload(left_out):
        headline = f"Kueue makes no Workload of this {manifest.get('kind')}, so that it stays as it is: {reason}."
    fix = next(problem.fix for problem in left_out.problems)
    return Explanation(
        workload=key_of(manifest),
        cluster=cluster,
        state="without a Workload" if is_without_workload(left_out) else "not known",
        reason=None,
        message="",
        headline=headline,
        local_queue=local_queue.partition("/")[2],
        next_step=f"{fix[:1].upper()}{fix[1:]}.",
        code=left_out.problems[0].rule.code,
    )


def with_doubts(explanation: Explanation, left_out: Iterable[LeftOut]) -> Explanation:
    """The explanation of a workload, with what may change it and is not known."""
    doubts = (
        f"what {label_of(left_out_object.manifest)} takes, since {why(left_out_object)}" for left_out_object in left_out
    )
    return replace(explanation, not_known=tuple(doubts))
