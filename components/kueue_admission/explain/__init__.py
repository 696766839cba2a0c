"""Why one workload is where it is: one dominant reason, the numbers, what would change it, and the next step.

Start at `explainer.explain`: a snapshot of one cluster in, an `answer.Explanation` out, which `text` renders. Every
word comes from what the admission core decides about it alone (`diagnosis`) and beside all others that wait
(`next_cycles`), and from its quotas (`worker_state`); a change is only suggested after the core has decided again with
it made (`trials`). What Kueue itself wrote is compared with that (`written`). `unmanaged` is for Jobs that Kueue never
sees. Deterministic: no clock, no I/O.
"""

from kueue_admission.explain.answer import Explanation
from kueue_admission.explain.explainer import explain, explain_elsewhere, explain_finished
from kueue_admission.explain.links import Links
from kueue_admission.explain.text import render_clusters, render_json, render_short, render_text
from kueue_admission.explain.unplaceable import fits_no_worker, is_dispatched
from kueue_admission.explain.unread import explain_unread, with_doubts
from kueue_admission.explain.written import Condition, written_on

__all__ = [
    "Condition",
    "Explanation",
    "Links",
    "explain",
    "explain_elsewhere",
    "explain_finished",
    "explain_unread",
    "fits_no_worker",
    "is_dispatched",
    "render_clusters",
    "render_json",
    "render_short",
    "render_text",
    "with_doubts",
    "written_on",
]
