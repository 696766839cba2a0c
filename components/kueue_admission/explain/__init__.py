"""Why one workload is where it is: one dominant reason, the numbers, what would change it, and the next step.

Start at `explainer.explain`: a snapshot of one cluster in, an `answer.Explanation` out, which `text` renders. Every
word comes from what the admission core decides about it alone (`diagnosis`) and beside all others that wait
(`next_cycles`), and from its quotas (`figures`); a change is only suggested after the core has decided again with
it made (`trials`). What Kueue itself wrote is compared with that (`written`). `unmanaged` is for Jobs that Kueue never
sees. Deterministic: no clock, no I/O. Names are loaded when they are first used; they are listed in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
