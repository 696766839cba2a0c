"""`explain`: why a workload is pending, on a dump of live clusters or at a simulated moment; nothing is touched."""

from __future__ import annotations

import gc
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.input_files import Output, OutputOption
from kueue_admission.kernel.known_messages import known_messages
from kueue_admission.kernel.problem import Rule

if TYPE_CHECKING:
    # The other commands start without the admission core.
    from kueue_admission.cli.dumps import Cluster, Moment
    from kueue_admission.decide.model import Snapshot
    from kueue_admission.explain import Explanation
    from kueue_admission.releases import Release

    RoomOf = Callable[[Snapshot, str], Mapping[tuple[str, str], int]]


_LINK: Final = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
_MOST_LISTED: Final = 20
"""Where no workload is named, at most so many of those that wait are explained."""
_MOST_WAITING: Final = 8
"""At most so many jobs that have quota and wait for a worker are compared with what workers can hold."""


def explain(
    context: typer.Context,
    workload: options.Workload = "",
    objects: options.Dumps = (),  # type: ignore[assignment]
    second: options.Second = None,
    fair_sharing: options.FairSharing = False,
    kueue: options.Kueue = None,
    at: options.PrintedAt = None,
    short: options.Short = False,
    output: OutputOption = Output.text,
) -> None:
    """Explain why a workload is pending: one reason, the numbers, what would change it, and the next step.

    Every listed change was tried: Kueue's rules were applied again with the change. Nothing on a cluster changes.

    With --second, it simulates the objects up to that second and explains the state then. It is the state that
    `simulate objects` shows with the same input and --until.

    \b
    Examples:
      mkdir dump && for kind in resourceflavors cohorts clusterqueues \\
          localqueues admissionchecks topologies multikueueconfigs \\
          multikueueclusters provisioningrequestconfigs workloads \\
          workloadpriorityclasses priorityclasses jobs namespaces nodes \\
          pods limitranges runtimeclasses; \\
          do kubectl get $kind -A -o yaml > dump/$kind.yaml; done
      kubectl get configmap kueue-manager-config -n kueue-system -o yaml \\
          > dump/configuration.yaml
      kueue-admission explain --objects dump/
      kueue-admission explain team-a/train-1 --objects dump/
      kueue-admission explain team-a/train-1 --objects manager=m.yaml \\
          --objects us-east4=e.yaml --output json
      kueue-admission explain train-3 --objects dump/ --second 600
      kueue-admission explain KF105
    """
    if is_code(workload):
        options.refuse_idle(context, "", f"with {workload}, the code of a message")
        explain_code(workload)
        return
    if not objects:
        raise console.mistyped("what to explain is missing; give --objects PATH")
    check_options(context, workload, objects, second, at, output)
    simulation, decides = None, options.read_kueue(kueue)
    if second is not None:
        from kueue_admission.cli.dumps import simulate_dump

        simulation = partial(simulate_dump, Path(objects[0]), second, fair_sharing=fair_sharing, kueue=decides)
    show(workload, objects, at, simulation, fair_sharing=fair_sharing, kueue=decides, short=short, output=output)


def check_options(
    context: typer.Context,
    workload: str,
    objects: Sequence[str],
    second: float | None,
    at: datetime | None,
    output: Output,
) -> None:
    """Raises CommandError for options that do not go together."""
    options.check_seconds("--second", second)
    if second is not None and len(objects) > 1:
        raise console.mistyped("--second: simulates one cluster; give --objects once")
    if second is not None and at is not None:
        raise console.mistyped(
            "--at: says when objects were printed; with --second, which is a moment of its own, leave it out"
        )
    if output is Output.json:
        options.refuse_idle(context, "short", "with --output json")
    if not workload:
        options.refuse_idle(context, "short", "without a workload, as each has one line then")


def show(
    workload: str,
    objects: Sequence[str],
    at: datetime | None,
    simulation: Callable[[], Moment] | None,
    *,
    fair_sharing: bool,
    kueue: Release | None,
    short: bool,
    output: Output,
    with_nodes: Callable[[Snapshot, Explanation], Explanation] | None = None,
    room_of: RoomOf | None = None,
) -> None:
    """Explain it on the clusters of these objects, or at the moment that is simulated, and print that.

    An empty `workload` stands for each that waits. `kueue` is the release that decides; None: that of the objects.
    `with_nodes` adds what only who knows the nodes' provider can say, and `room_of` tells of a cluster how much more
    nominal quota the nodes of its flavors can hold, by flavor and resource.

    Raises:
        CommandError: there is no such workload, or the input is wrong.
    """
    from kueue_admission.cli.dumps import Dump, tell_notes
    from kueue_admission.decide.errors import AdmissionError
    from kueue_admission.explain import text

    dumps: list[Dump] = []
    gc.disable()  # A large dump is millions of small objects, and the process ends with it.
    try:
        if simulation is not None:
            moment = simulation()
            clusters = moment.clusters
            explain_named = partial(_explain_moment, moment, with_nodes=with_nodes, room_of=room_of)
        else:
            now = time.time() if at is None else at.replace(tzinfo=UTC).timestamp()
            clusters = dumps = [Dump(manifest, now, fair_sharing=fair_sharing, kueue=kueue) for manifest in objects]
            explain_named = partial(explain_clusters, clusters, with_nodes=with_nodes, room_of=room_of)
        waiting = [] if workload else _waiting_on(clusters)
        explanations = [explain_named(workload)] if workload else []
        cluster_answers = [explain_clusters(clusters, key, with_changes=False) for _, key in waiting[:_MOST_LISTED]]
    except AdmissionError as refused:
        raise console.CommandError(str(refused)) from None
    except console.CommandError as refused:
        notes = (note for dump in dumps for note in dump.notes)
        raise console.CommandError(refused.message, refused.exit_code, (*refused.problems, *notes)) from None
    finally:
        gc.freeze()  # None of them is worth a look now, either.
        gc.enable()
    tell_notes(note for dump in dumps for note in dump.notes)
    if output is Output.json:
        console.json_document(
            text.render_json(*explanations) if explanations else text.render_waiting_json(cluster_answers, len(waiting))
        )
    elif explanations:
        console.text(text.render_short(*explanations) if short else text.render_clusters(*explanations))
    else:
        console.text(text.render_waiting(cluster_answers, [queue for queue, _ in waiting[_MOST_LISTED:]]))


def _waiting_on(clusters: Sequence[Cluster]) -> list[tuple[str, str]]:
    """LocalQueue and key of what waits: the first of each queue, then the second of each, so that none is missing."""
    queues = {key: queue for cluster in clusters for queue, key in cluster.waiting}
    ranks: Counter[str] = Counter()
    ranking = []
    for key, queue in queues.items():
        ranking.append((ranks[queue], queue, key))
        ranks[queue] += 1
    return [(queue, key) for _, queue, key in sorted(ranking, key=lambda each: each[0])]


def is_code(text: str) -> bool:
    """Whether it is the code of a message."""
    return re.fullmatch(r"[Kk][Ff]\d+", text) is not None


def explain_code(text: str, rules: Mapping[str, Rule] | None = None) -> None:
    """Print cause, remedy and source of the message, or of the one of these rules, that has this code.

    By default the rules are those of Kueue's objects, and of any file.

    Raises:
        CommandError: nothing has it.
    """
    from kueue_admission.kernel.job_rules import RULES

    code = text.upper()
    known_rules = {
        **(RULES if rules is None else rules),
        **{message.code: message for message in known_messages()},
    }
    if code not in known_rules:
        raise console.CommandError(f"{code}: no message has this code; docs/troubleshooting.md has all of them")
    rule = known_rules[code]
    lines = [f"{code}: {rule.seen}", f"Why: {rule.why}", f"What to do: {rule.remedy}"]
    for paragraph in (*lines, *([f"Source: {rule.page}"] if rule.page else [])):
        console.paragraph(_LINK.sub(r"\1 (docs/\2)", paragraph.replace("`", "").replace("*", "")))


def _explain_moment(
    moment: Moment,
    workload_text: str,
    *,
    with_nodes: Callable[[Snapshot, Explanation], Explanation] | None,
    room_of: RoomOf | None,
) -> list[Explanation]:
    """As `explain_clusters`; a job that has finished, or has yet to arrive, is in no cluster."""
    from kueue_admission.explain import explain_finished

    if any(cluster.keys(workload_text) for cluster in moment.clusters):
        return explain_clusters(moment.clusters, workload_text, with_nodes=with_nodes, room_of=room_of)
    gone = [
        record
        for record in moment.result.records
        if workload_text in (record.key, record.key.partition("/")[2], f"{record.namespace}/{record.name}", record.name)
    ]
    if len(gone) == 1:
        seconds = moment.result.seconds
        if gone[0].finished_at is None:
            raise console.CommandError(
                f"{gone[0].key}: is not there at second {moment.second:g}, it arrives at second "
                f"{seconds(gone[0].arrived_at):g}; give a later --second"
            )
        admission_time, finish_time = seconds(gone[0].admitted_at), seconds(gone[0].finished_at)
        message = f"It ran from second {admission_time:g} to second {finish_time:g}"
        return [explain_finished(gone[0].key, message, cluster=gone[0].cluster or "", queue=gone[0].cluster_queue)]
    return explain_clusters(moment.clusters, workload_text)


def explain_clusters(
    clusters: Sequence[Cluster],
    wanted_key: str,
    *,
    with_changes: bool = True,
    with_nodes: Callable[[Snapshot, Explanation], Explanation] | None = None,
    room_of: RoomOf | None = None,
) -> list[Explanation]:
    """Why the workload `wanted_key` is where it is on each cluster; `with_nodes` and `room_of` as in `show`.

    Raises CommandError where there is none such.
    """
    from kueue_admission.explain import beside_workers, explain_elsewhere, explain_unread, with_doubts
    from kueue_admission.explain import explain as explain_on
    from kueue_admission.kernel.suggest import instead

    home = next((cluster for cluster in clusters if cluster.keys(wanted_key)), None)
    if home is None:
        for cluster in clusters:
            unmanaged_job = cluster.explain_unmanaged(wanted_key)
            if unmanaged_job is not None:
                return [unmanaged_job]
        known_names = [name for cluster in clusters for name in cluster.names if ("/" in name) == ("/" in wanted_key)]
        sources = ", ".join(dict.fromkeys(cluster.source for cluster in clusters))
        raise console.CommandError(
            f"{sources}: there is no workload {wanted_key}; {instead(wanted_key, known_names, 'workloads')}"
        )
    targets = home.keys(wanted_key)
    if len(targets) > 1:
        raise console.mistyped(
            f"{home.source}: {wanted_key} may be {', '.join(targets[:8])}; name one with its namespace"
        )
    key, queue = targets[0], home.queue_of(targets[0])
    snapshots = [cluster.snapshot(key, queue) for cluster in clusters]
    both = list(zip(clusters, snapshots, strict=True))
    left_out = [cluster.left_out(key, queue) for cluster in clusters]
    workload = next((w for w in snapshots[clusters.index(home)].workloads if w.key == key), None)
    if workload is None:
        return [explain_unread(left_out[clusters.index(home)][0], queue, cluster=home.name)]
    dispatch = home.dispatch(key)
    with_queue = [
        cluster.name
        for cluster, snapshot in both
        if any(local_queue.key == queue for local_queue in snapshot.objects.local_queues)
    ]
    rooms = [{} if room_of is None else room_of(snapshot, cluster.name) for cluster, snapshot in both]
    unplaceable = _unplaceable(home, [cluster for cluster in clusters if cluster is not home], key)
    answers = [
        _with(
            cluster.remark(key),
            explain_on(
                snapshot,
                key,
                cluster=cluster.name,
                dispatch=dispatch if cluster is home else cluster.dispatch(key),
                written=cluster.written(key),
                unplaceable=unplaceable if cluster is home else (),
                links=cluster.links,
                suspended_job=cluster.suspended_job(key),
                with_changes=with_changes,
                with_workers=cluster is home and len(clusters) > 1,
                room=room,
            ),
        )
        if any(workload.key == key for workload in snapshot.workloads)
        else explain_elsewhere(
            snapshot, workload, cluster=cluster.name, with_queue=with_queue, dispatch=dispatch, room=room
        )
        for (cluster, snapshot), room in zip(both, rooms, strict=True)
    ]
    answers = list(map(with_doubts, beside_workers(answers), left_out))
    return answers if with_nodes is None else list(map(with_nodes, snapshots, answers))


def _with(sentence: str, explanation: Explanation) -> Explanation:
    return replace(explanation, headline=f"{explanation.headline} {sentence}") if sentence else explanation


def _unplaceable(home: Cluster, workers: Sequence[Cluster], key: str) -> list[str]:
    """Of this workload and those with quota that wait for a worker, the ones that no worker can ever hold.

    Those of which the fleet's own dispatcher has decided are its business: it gives their quota back.
    """
    from kueue_admission.explain import fits_no_worker, is_dispatched

    if not workers:
        return []
    here = home.snapshot(key, home.queue_of(key))
    waiting = [w for w in here.workloads if w.status.admission and w.status.admitted_at is None and w.key != key]
    candidates = [w for w in here.workloads if w.key == key] + waiting[:_MOST_WAITING]
    return [
        candidate.key
        for candidate in candidates
        if is_dispatched(here.objects, candidate)
        and home.dispatch(candidate.key) is None
        and fits_no_worker(candidate, [worker.snapshot(candidate.key, candidate.local_queue) for worker in workers])
    ]
