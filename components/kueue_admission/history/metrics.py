"""What Kueue's metrics count, where no Workload was recorded: of each ClusterQueue how many were admitted and waited.

The text that Kueue serves at `/metrics`, and that Prometheus gives for `/federate`; or Prometheus' answer to a query of
a range. Nothing in it tells one job from another. Source: kueue@v0.19.2 pkg/metrics/metrics.go,
https://prometheus.io/docs/instrumenting/exposition_formats/ and https://prometheus.io/docs/prometheus/latest/querying/api/.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kueue_admission.history.schema import Event, Kind
from kueue_admission.kernel.form_rules import OBJECT
from kueue_admission.kernel.manifest import Manifest, is_object
from kueue_admission.kernel.problem import SpecError
from kueue_admission.read.goals import Goal, Judged, Standing

_SAMPLE: Final = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? +(?P<value>\S+)(?: +(?P<at>-?\d+))?\s*")
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_WAIT: Final = "kueue_admission_wait_time_seconds"
_START: Final = "process_start_time_seconds"
QUERY: Final = f'{{__name__=~"{_WAIT}_(bucket|count)|kueue_pending_workloads|kueue_evicted_workloads_total|{_START}"}}'
"""What Prometheus is asked for, as of a time: nothing is computed there."""
WITHIN: Final = "waitedAtMost"
"""Before the seconds of a bucket, in `counts`."""
SINCE: Final = "countedSeconds"
"""For how long it was counted, in `counts`: since the start of Kueue's process."""


class _Sample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


def is_metrics(text: str) -> bool:
    """Whether a text begins as metrics do."""
    return text.startswith(("# HELP ", "# TYPE ", "kueue_"))


def read_metrics(text: str, source: str, now: float) -> list[Event]:
    """A row for each ClusterQueue, of `now`, or of when the samples say that they are. Raises SpecError."""
    samples, at = list[_Sample](), list[float]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _SAMPLE.fullmatch(line)
        try:
            value = float(match["value"]) if match is not None else math.nan
        except ValueError:
            match = None
        if match is None:
            wrong, fix = "is not a sample of a metric", "give what Kueue serves at /metrics, or Prometheus at /federate"
            raise SpecError([OBJECT.at(f"line {number}", wrong, fix, source=source)])
        samples.append(_Sample(match["name"], dict(_LABEL.findall(match["labels"] or "")), value))
        if match["at"] is not None:
            at.append(int(match["at"]) / 1000)
    events = list(_rows(samples, max(at, default=now)))
    if not events:
        wrong, fix = f"has no {_WAIT}", "give the metrics of Kueue's controller; it has some once a job was admitted"
        raise SpecError([OBJECT.at("", wrong, fix, source=source)])
    return events


def read_answer(answer: Manifest, source: str, cluster: str) -> list[Event]:
    """A row for each ClusterQueue and time of the answer to `QUERY` over a range; may be none. Raises SpecError.

    Where series have the label `cluster`, as a Prometheus of several clusters gives them, those of CLUSTER count alone.
    """
    data = answer.get("data")
    try:
        if answer.get("status") != "success" or not is_object(data) or data["resultType"] != "matrix":
            raise ValueError(answer.get("error") or "it has no matrix")
        series = [
            (_labels(series["metric"]), [_point(point) for point in series["values"]]) for series in data["result"]
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as failed:
        wrong = f"does not answer as Prometheus does: {failed}"
        fix = "give the address of Prometheus' HTTP API, such as http://localhost:9090"
        raise SpecError([OBJECT.at("", wrong, fix, source=source)]) from None
    cluster_names = {labels["cluster"] for labels, _ in series if "cluster" in labels}
    if cluster_names and cluster not in cluster_names:
        wrong = f"has metrics of {', '.join(sorted(cluster_names))}, by their label cluster, and none of {cluster}"
        raise SpecError([OBJECT.at("", wrong, "name the cluster: --from CLUSTER=ADDRESS", source=source)])
    series = [(labels, values) for labels, values in series if labels.get("cluster", cluster) == cluster]
    # Everything that Prometheus reads has a time at which it started; Kueue's is on the address of its other metrics.
    own = {labels.get("instance") for labels, _ in series if labels["__name__"] != _START}
    times: dict[float, list[_Sample]] = {}
    for labels, values in series:
        for at, value in values:
            if labels["__name__"] != _START or labels.get("instance") in own:
                times.setdefault(at, []).append(_Sample(labels["__name__"], labels, value))
    return [row for at, samples in sorted(times.items()) for row in _rows(samples, at)]


def _labels(manifest: Manifest) -> dict[str, str]:
    labels = {str(name): str(value) for name, value in manifest.items()}
    return {"__name__": labels["__name__"], **labels}


def _point(point: Sequence[object]) -> tuple[float, float]:
    at, value = point
    return float(str(at)), float(str(value))


def _rows(samples: Sequence[_Sample], time: float) -> Iterator[Event]:
    start_values = [sample.value for sample in samples if sample.name == _START and sample.value < time]
    queues: dict[str, dict[str, float]] = {}
    for sample in samples:
        # A replica that stands by counts what waits too.
        name, queue = _name(sample), sample.labels.get("cluster_queue", "")
        if name and queue and sample.labels.get("replica_role") != "follower" and math.isfinite(sample.value):
            counts = queues.setdefault(queue, {})
            counts[name] = counts.get(name, 0.0) + sample.value
    since = {SINCE: time - max(start_values)} if start_values else {}
    for queue, counts in sorted(queues.items()):
        if "admitted" in counts:
            yield Event(
                kind=Kind.COUNTED,
                time=time,
                key=f"metrics/{queue}/{time:.0f}",
                uid=f"metrics/{queue}",
                exact=False,
                cluster_queue=queue,
                counts={**counts, **since},
            )


def _name(sample: _Sample) -> str:
    """What a sample counts; empty: nothing that is kept."""
    labels = sample.labels
    match sample.name:
        case "kueue_admission_wait_time_seconds_count":
            return "admitted"
        case "kueue_admission_wait_time_seconds_bucket":
            return f"{WITHIN}{labels.get('le', '')}" if labels.get("le") != "+Inf" else ""
        case "kueue_pending_workloads":
            return f"pending{labels.get('status', '').capitalize()}"
        case "kueue_evicted_workloads_total":
            return f"evicted{labels.get('reason', '')}"
        case _:
            return ""


def judge_counted(goal: Goal, rows: Sequence[Event]) -> Judged:
    """How it was with a goal, by the last of these rows of its queue; not known of teams, classes, shares and hours.

    A bucket of the histogram says that so many waited at most so long: a goal between two of them is not known. Those
    that still wait may come to any wait.
    """
    if goal.of != "wait" or not goal.queue or goal.priority_class:
        return Judged(goal, Standing.NOT_KNOWN, "metrics tell of waits of a whole ClusterQueue alone")
    own = [row for row in rows if row.cluster_queue == goal.queue]
    if not own:
        return Judged(goal, Standing.NOT_KNOWN, f"no metrics of ClusterQueue {goal.queue} are recorded")
    counts = own[-1].counts or {}
    total, pending = counts["admitted"], sum(n for name, n in counts.items() if name.startswith("pending"))
    buckets = sorted((float(n.removeprefix(WITHIN)), count) for n, count in counts.items() if n.startswith(WITHIN))
    within = max((count for most, count in buckets if most <= goal.limit), default=0.0)
    longer = total - next((count for most, count in buckets if most >= goal.limit), total)
    need = math.ceil(goal.quantile * (total + pending))
    most = next((most for most, count in buckets if count >= math.ceil(goal.quantile * total)), math.inf)
    length = f"at most {most:g} s" if math.isfinite(most) else "longer than the metric tells"
    days = f" in {counts[SINCE] / 86_400:.1f} days" if SINCE in counts else ", since a time that is not known"
    why = f"by Kueue's metrics: of {total:.0f} admissions{days} {100 * goal.quantile:g} % waited {length}"
    why += f", and {pending:.0f} still wait" if pending else ""
    why += f"; the goal is {goal.limit:g} s"
    if total and within >= need:
        return Judged(goal, Standing.MET, why, most)
    if longer > total + pending - need:
        return Judged(goal, Standing.MISSED, why, most)
    return Judged(goal, Standing.NOT_KNOWN, f"{why}, which the metric does not tell apart")
