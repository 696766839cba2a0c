"""Names of buckets.

Source: https://cloud.google.com/storage/docs/buckets#naming.
"""

from __future__ import annotations

import re

from kueue_admission.kernel.form_rules import Fault

_BUCKET = re.compile(r"(?!goog)[a-z0-9][-_.a-z0-9]{1,61}[a-z0-9]")


def bucket_name(text: str) -> Fault | None:
    """Name of a bucket (Cloud Storage, Bucket naming); those with dots are domains, and may be longer."""
    if _BUCKET.fullmatch(text) or ("." in text and len(text) <= 222):
        return None
    return Fault("is not the name of a bucket", "write 3 to 63 lower-case letters, digits, - and _, without gs://")
