"""An explanation as text of 80 columns, or as plain data for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from textwrap import fill
from typing import Final

from kueue_admission.decide.amounts import format_amount, format_request
from kueue_admission.explain.answer import (
    Explanation,
    FlavorFigures,
    NodeGroup,
    Placement,
    Position,
    ResourceFigures,
    Spared,
)
from kueue_admission.explain.changes import Change
from kueue_admission.explain.figures import LISTED
from kueue_admission.explain.headlines import step_of_waiting
from kueue_admission.explain.together import next_step_of_all
from kueue_admission.explain.turns import blocker_text
from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_admission.kernel.printable import printable
from kueue_admission.read.dispatch_report import ParsedReport, Scored, score_text

WIDTH: Final = 80
"""Columns of an explanation."""
SCHEMA_VERSION: Final = 1
"""Of the JSON document; larger where a reader of the former would misread it."""


def render_json(explanations: list[Explanation]) -> dict[str, object]:
    """The explanations as plain data, amounts in the core's units (CPU in thousandths, all else in whole units)."""
    return {
        "version": SCHEMA_VERSION,
        "explanations": [asdict(explanation) | {"code": explanation.code} for explanation in explanations],
        "next_step": next_step_of_all(explanations),
    }


def render_short(explanations: list[Explanation]) -> str:
    """One line for each cluster: state, reason, code, and the reason in words; and the next step."""
    lines = [_line(explanation) for explanation in explanations]
    step = _one_step([_without_list(explanation) for explanation in explanations])
    return "\n".join(lines) + f"{' ' if len(lines) == 1 else chr(10)}Next step: {step}\n"


def render_waiting(answers: Sequence[Sequence[Explanation]], rest: Sequence[str]) -> str:
    """A line for each workload that waits, as it stands where it was submitted; `rest`: the LocalQueues of others."""
    lines = [_line(_where_it_is(explanation)) for explanation in answers]
    if rest:
        counts = ", ".join(f"{queue} {count}" for queue, count in Counter(rest).most_common())
        lines.append(f"{len(rest)} more wait ({counts}); name one to explain it")
    return "\n".join(lines or ["No workload waits."]) + "\n"


def render_waiting_json(answers: Sequence[Sequence[Explanation]], count: int) -> dict[str, object]:
    """The same as plain data, each workload as `render_json` has it; `waiting` is the count."""
    return {
        "version": SCHEMA_VERSION,
        "waiting": count,
        "workloads": [render_json(list(explanation)) for explanation in answers],
    }


def _where_it_is(explanations: Sequence[Explanation]) -> Explanation:
    return next((explanation for explanation in explanations if explanation.is_there), explanations[0])


def _line(explanation: Explanation) -> str:
    where = f" on {explanation.cluster}" if explanation.cluster else ""
    code = f" [{explanation.code}]" if explanation.code else ""
    doubts = f" Not known: {'; '.join(explanation.not_known)}." if explanation.not_known else ""
    return f"{explanation.workload}{where}: {_standing(explanation)}{code}: {explanation.headline}{doubts}"


def _without_list(explanation: Explanation) -> Explanation:
    """The same, with a next step that says where the changes are listed."""
    if explanation.next_step != step_of_waiting(explanation):
        return explanation
    return replace(explanation, next_step=step_of_waiting(explanation, "changes that are listed without --short"))


def _one_step(explanations: list[Explanation]) -> str:
    return next_step_of_all(explanations) if len(explanations) > 1 else explanations[0].next_step


def render_clusters(explanations: list[Explanation]) -> str:
    """The explanations of one workload on each cluster, with a summary in front if there are several.

    What is the same on several clusters, but for the names of who holds the quota, is there once.
    """
    alike: dict[Explanation, list[Explanation]] = {}
    for explanation in explanations:
        alike.setdefault(_without_holders(explanation), []).append(explanation)
    texts = []
    for common, group in alike.items():
        shared_explanation = group[0] if len({explanation.flavors for explanation in group}) == 1 else common
        group_explanation = replace(shared_explanation, cluster=", ".join(explanation.cluster for explanation in group))
        texts.append(
            render_text(group_explanation if len(explanations) == 1 else replace(group_explanation, next_step=""))
        )
    if len(explanations) > 1:
        lines = [f"{explanations[0].workload} on {len(explanations)} clusters:"]
        for explanation in explanations:
            lines += _wrap(f"{explanation.cluster}: {_standing(explanation)}", "  ", "    ")
        lines += ["", *_wrap(f"Next step: {_one_step(explanations)}", "", "  ")]
        texts.insert(0, "\n".join(lines) + "\n")
    return f"\n{'-' * WIDTH}\n\n".join(texts)


def _without_holders(explanation: Explanation) -> Explanation:
    """What an explanation says that does not name its cluster, or others' workloads there."""
    flavors = tuple(
        replace(
            flavor,
            resources=tuple(replace(figure, holders=(), holder_count=0) for figure in flavor.resources),
            spared=tuple(replace(group, workloads=()) for group in flavor.spared),
        )
        for flavor in explanation.flavors
    )
    return replace(explanation, cluster="", flavors=flavors)


def _standing(explanation: Explanation) -> str:
    if explanation.state == "Absent":
        return f"is not there; {explanation.message}"
    where = "" if explanation.is_there else "is not there; would be "
    if explanation.reason in (None, explanation.state):
        return f"{where}{explanation.state}"
    return f"{where}{explanation.state}, {explanation.reason}"


def render_text(explanation: Explanation) -> str:
    """The explanation to read; it ends with a newline."""
    where = f" on {explanation.cluster}" if explanation.cluster else ""
    reason = f": {explanation.reason}" if explanation.reason not in (None, explanation.state) else ""
    state = "not" if explanation.state == "Absent" else explanation.state
    code = f" [{explanation.code}]" if explanation.code else ""
    lines = _wrap(f"{explanation.workload} is {state}{where}{reason}{code}", "", "    ")
    lines += _wrap(explanation.headline, "  ")
    lines += _words(explanation)
    lines += [line for doubt in explanation.not_known for line in _wrap(f"Not known: {doubt}.", "  ", "    ")]
    lines += _about(explanation)
    if explanation.dispatch is not None:
        lines += _dispatch(explanation.dispatch)
    lines += _checks(explanation)
    lines += [line for text in (*explanation.nodes, *explanation.goals) for line in ("", *_wrap(text, "", "  "))]
    for flavor in explanation.flavors:
        lines += _flavor(flavor)
    for placement in explanation.placements:
        lines += _placement(placement)
    if explanation.position is not None:
        lines += _position(explanation.position)
    lines += _turns(explanation)
    if explanation.victims:
        lines += ["", "Preempted for it:"]
        lines += _wrapped([f"{v.workload} ({v.queue}, priority {v.priority})" for v in explanation.victims])
    if explanation.changes:
        lines += ["", "What would change it (each one tried):"]
        lines += [line for change in explanation.changes for line in _change(change)]
    if explanation.next_step:
        lines += ["", *_wrap(f"Next step: {explanation.next_step}", "", "  ")]
    return "\n".join(lines) + "\n"


def _words(explanation: Explanation) -> list[str]:
    """Kueue's sentence, as it wrote it or as its rules give it; both where they differ."""
    written_reason, message = explanation.written, explanation.message
    lines: list[str] = []
    if message and not explanation.checks and message.rstrip(".") not in explanation.headline:
        lines += _wrap(f"Kueue: {message}", "  ", "         ")
    if equal := explanation.equal_before:
        words = f"Kueue has written nothing on it, and does not look at it: {equal} is equal, and failed before it."
        lines += _wrap(words, "  ", "  ")
    if written_reason is not None and written_reason.message != message:
        what = " earlier" if not written_reason.is_current else "" if written_reason.agrees else " another answer"
        lines += _wrap(f"Kueue wrote{what} ({written_reason.reason}): {written_reason.message}", "  ", "         ")
    return lines


def _turns(explanation: Explanation) -> list[str]:
    lines: list[str] = []
    if explanation.turns and not explanation.blockers:
        turn_text = ", ".join(explanation.turns[:LISTED])
        more = len(explanation.turns) - LISTED
        lines += ["", *_wrap(f"Before it get quota: {turn_text}{f' and {more} more' if more > 0 else ''}", "", "  ")]
    if len(explanation.blockers) > 1:
        lines += ["", "In its way, when the next cycles look at the heads of all queues:"]
        lines += _wrapped([blocker_text(blocker, explanation.flavors) for blocker in explanation.blockers[:LISTED]])
        more = len(explanation.blockers) - LISTED
        lines += [f"  and {more} more"] if more > 0 else []
    return lines


def _wrap(text: str, first: str, rest: str | None = None) -> list[str]:
    indent = first if rest is None else rest
    return fill(
        printable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ).split("\n")


def _wrapped(items: list[str]) -> list[str]:
    return [line for item in items for line in _wrap(item, "  ", "    ")]


def _about(explanation: Explanation) -> list[str]:
    if not explanation.requests:
        return []
    queue = f"LocalQueue {explanation.local_queue or '(none)'}"
    if explanation.cluster_queue:
        queue += f", ClusterQueue {explanation.cluster_queue}"
    if explanation.cohort:
        queue += f", cohort {explanation.cohort}"
    lines = ["", *_wrap(f"Queue: {queue}; priority {explanation.priority}", "", "  ")]
    if explanation.evicted_for:
        words = f": {explanation.evicted_message}" if explanation.evicted_message else ""
        lines += _wrap(f"Evicted before: {explanation.evicted_for}{words}", "", "  ")
    for request in explanation.requests:
        amounts = ", ".join(f"{format_request(name, amount)} {name}" for name, amount in request.amounts) or "nothing"
        pods = f"{request.count} pod{'' if request.count == 1 else 's'}"
        lines += _wrap(f"Asks for: {amounts} ({request.pod_set}: {pods})", "", "  ")
    if explanation.replaces:
        lines += _wrap(f"Replaces: {explanation.replaces}, whose quota it takes over", "", "  ")
    for lost in explanation.lost:
        lines += _wrap(f"Quota is less than the fleet file says, because nodes are missing, by {lost}", "", "  ")
    for holding in explanation.holdings:
        amounts = ", ".join(f"{format_request(name, amount)} {name}" for name, amount in holding.amounts)
        lines += _wrap(f"Has quota: {amounts} in flavor {holding.flavor}", "", "  ")
    return lines


def _checks(explanation: Explanation) -> list[str]:
    lines = []
    for check in explanation.checks:
        words = f": {check.message}" if check.message.rstrip(".") not in explanation.headline else ""
        controller = f" ({check.controller})" if check.controller else ""
        lines += ["", *_wrap(f"AdmissionCheck {check.name}{controller} is {check.state}{words}", "", "  ")]
        lines += _wrap(check.undo, "  ") if check.undo else []
    if explanation.links:
        lines += ["", f"Below ClusterQueue {explanation.cluster_queue}:"]
    for link in explanation.links:
        words = (
            link.message
            if link.reason in ("", "NotFound", "NoParameters", "Unknown")
            else f"{link.reason}: {link.message}"
        )
        lines += _wrap(f"{link.kind} {link.name}: {words}", "  ", "    ")
    return lines


def _dispatch(report: ParsedReport) -> list[str]:
    lines = ["", *_wrap(f"Dispatch: {report.summary}", "", "  ")]
    for verdict in report.verdicts:
        if isinstance(verdict, Scored):
            text = f"{verdict.cluster}: {score_text(verdict)}; {verdict.message}"
        else:
            text = f"{verdict.cluster}: {verdict.reason}: {verdict.message}"
        lines += _wrap(text, "  ", "    ")
    return lines


def _flavor(flavor: FlavorFigures) -> list[str]:
    stands = ": stands for the flavors of the worker clusters" if flavor.is_of_workers else ""
    untried_text = "" if flavor.tried else " (not tried: the search stopped before it)"
    lines = ["", f"Flavor {flavor.flavor}{stands}{untried_text}"]
    for figure in flavor.resources:
        lines += _figure(figure)
    lines += _spared(flavor.spared)
    lines += [line for text in flavor.against for line in _wrap(f"Kueue: {text}", "  ", "         ")]
    return lines


def _spared(groups: Iterable[Spared]) -> list[str]:
    """The workloads of each queue; of many queues for which the reason is alike, those of the first, then a sum."""
    alike: dict[str, list[Spared]] = {}
    for group in groups:
        alike.setdefault(group.why, []).append(group)
    texts = []
    for first, *others in alike.values():
        rest = others[LISTED - 1 :]
        for group in (first, *others[: LISTED - 1]):
            more = group.count - len(group.workloads)
            names = ", ".join(group.workloads) + (f" and {more} more" if more else "")
            texts.append(f"{names} ({group.queue}): {group.reason}")
        if rest:
            count = sum(group.count for group in rest)
            where = "another ClusterQueue" if len(rest) == 1 else f"{len(rest)} other ClusterQueues"
            texts.append(f"{count} more in {where}, for the same reason as those of {first.queue}")
    return [line for text in texts for line in _wrap(f"not preempted: {text}", "  ", "    ")]


def _figure(figure: ResourceFigures) -> list[str]:
    def show(amount: int) -> str:
        return format_amount(figure.resource, amount)

    missing_text = f", missing {show(figure.missing)}" if figure.missing else ""
    lines = _wrap(f"{figure.resource}: asks {show(figure.asked)}, free {show(figure.free)}{missing_text}", "  ", "    ")
    limit = "" if figure.borrowing_limit is None else f", borrowing limit {show(figure.borrowing_limit)}"
    nominal = "none" if figure.nominal is None else show(figure.nominal)
    cohort = "" if figure.used_in_cohort is None else f", by its cohort {show(figure.used_in_cohort)}"
    lines += _wrap(
        f"nominal {nominal}{limit}, at most {show(figure.capacity)}; used by the queue {show(figure.used_by_queue)}"
        f"{cohort}",
        "    ",
    )
    if figure.holders:
        holder_texts = [f"{h.workload} {show(h.amount)} ({h.queue}, priority {h.priority})" for h in figure.holders]
        more = figure.holder_count - len(figure.holders)
        lines += _wrap("held by " + "; ".join(holder_texts) + (f"; {more} more" if more else ""), "    ", "      ")
    return lines


def _placement(placement: Placement) -> list[str]:
    pods = "1 pod" if placement.count == 1 else f"{placement.count} pods"
    wish = f", {placement.mode} in one {placement.level}" if placement.mode else ""
    wish += f", {placement.slices}" if placement.slices else ""
    lines = [
        "",
        *_wrap(
            f"Topology {placement.topology}, flavor {placement.flavor}: {pods} of {placement.pod_set}{wish}", "", "  "
        ),
    ]
    lines += _wrap(f"levels: {', '.join(placement.levels)}", "  ", "    ")
    labels = f" with {placement.node_labels}" if placement.node_labels else ""
    if placement.nodes is None:
        return [*lines, "  its nodes are not known: there is no Node among the objects"]
    nodes = "1 node" if placement.nodes == 1 else f"{placement.nodes or 'no'} nodes"
    lines += _wrap(f"{nodes}{labels}", "  ", "    ")
    lines += _node_groups(placement.lacking)
    if placement.unseen:
        lines += _wrap(
            f"Kueue counts the room of these, as the lowest level is not {HOSTNAME_LABEL}; pods that come there stay "
            "Pending:",
            "  ",
            "    ",
        )
        lines += _node_groups(placement.unseen)
    if placement.rooms:
        rooms = [
            f"{room.domain} {room.pods}" + (f" ({room.empty} if empty)" if room.empty != room.pods else "")
            for room in placement.rooms
        ]
        more = placement.domains - len(rooms)
        also = f"; {more} more with no more room" if more else ""
        lines += _wrap(f"pods that fit, by {placement.room_level}: {', '.join(rooms)}{also}", "  ", "    ")
    return lines


def _node_groups(groups: tuple[NodeGroup, ...]) -> list[str]:
    lines = []
    for group in groups:
        more = group.count - len(group.nodes)
        names = ", ".join(group.nodes) + (f" and {more} more" if more else "")
        lines += _wrap(f"{names}: {group.reason}", "    ", "      ")
    return lines


def _position(position: Position) -> list[str]:
    lines = ["", f"Number {position.place} of {position.of} pending ({position.strategy})"]
    if position.ahead:
        lines += _wrapped([f"ahead: {w.workload}, priority {w.priority}, {w.reason}" for w in position.ahead])
        more = position.place - 1 - len(position.ahead)
        lines += [f"  and {more} more ahead"] if more else []
    return lines


def _change(change: Change) -> list[str]:
    names = list(change.preempts[:3])
    more = len(change.preempts) - len(names)
    name_text = f" ({', '.join(names)}{f' and {more} more' if more else ''})" if names else ""
    return _wrap(f"- {change.what}: {change.outcome}{name_text}", "  ", "    ")
