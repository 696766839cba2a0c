"""Asks Prometheus what Kueue counted, for `record --from http://...`."""

from __future__ import annotations

import http.client
import json
import math
import urllib.error
import urllib.parse
import urllib.request
from typing import Final

from kueue_admission.cli.console import CommandError
from kueue_admission.history.metrics import QUERY, read_answer
from kueue_admission.history.schema import Event
from kueue_admission.kernel.manifest import Manifest, is_object
from kueue_admission.kernel.problem import SpecError

_DAY: Final = 86_400.0
_PATIENCE_SECONDS: Final = 60.0


def is_address(text: str) -> bool:
    """Whether it is one of a server."""
    return text.startswith(("http://", "https://"))


def ask(address: str, cluster: str, now: float, since: float) -> list[Event]:
    """What was counted of each ClusterQueue of a cluster at NOW, and at the beginnings of days in UTC from SINCE on.

    `address` is that of Prometheus' HTTP API; its path ends before `/api/v1`. Raises CommandError.
    """
    begin = _DAY * math.ceil(since / _DAY)
    ranges = [(begin, now)] if begin < now else []
    try:
        events = [
            row for span in (*ranges, (now, now)) for row in read_answer(_answer(address, *span), address, cluster)
        ]
    except SpecError as wrong:
        raise CommandError(str(wrong.problems[0])) from None
    if not events:
        raise CommandError(
            f"{address}: has none of Kueue's waits; give a Prometheus that reads Kueue's metrics, or a longer --since"
        )
    return events


def _answer(address: str, begin: float, end: float) -> Manifest:
    query = urllib.parse.urlencode({"query": QUERY, "start": begin, "end": end, "step": _DAY})
    url = f"{address.rstrip('/')}/api/v1/query_range?{query}"
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE_SECONDS) as answer:  # noqa: S310 - http and https alone
            answer_data = json.loads(answer.read())
    except urllib.error.HTTPError as refusal:
        with refusal:
            answer_data = _refusal(refusal.read())
        if answer_data is None:
            raise _unreachable(address, f"{refusal.code} {refusal.reason}") from None
    except (OSError, ValueError, http.client.HTTPException) as failed:
        raise _unreachable(address, getattr(failed, "reason", failed)) from None
    return answer_data if is_object(answer_data) else {}


def _refusal(content: bytes) -> object:
    """What a refusal says in Prometheus' own form; None: it has another one."""
    try:
        answer_data = json.loads(content)
    except ValueError:
        return None
    return answer_data if is_object(answer_data) and "error" in answer_data else None


def _unreachable(address: str, why: object) -> CommandError:
    return CommandError(
        f"{address}: Prometheus does not answer: {why}; see whether its address is right, or forward it by kubectl "
        "port-forward"
    )
