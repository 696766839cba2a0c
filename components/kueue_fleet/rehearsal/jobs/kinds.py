"""The kinds of job that a rehearsal can submit, and of what jobs use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JOB_KINDS = {"Job": ("batch", "v1", "jobs"), "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets")}
"""Group, version and plural of each."""
USED_KINDS = {kind: ("", "v1", f"{kind.lower()}s") for kind in ("ConfigMap", "Secret", "Service")}
"""The same of what jobs use, and people write beside them."""


def job_name(job: Mapping[str, Any]) -> str:
    """The name of a job, or what its generated name begins with."""
    return str(job["metadata"].get("name") or job["metadata"]["generateName"])
