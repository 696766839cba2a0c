"""The kinds of job that a rehearsal can submit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JOB_KINDS = {"Job": ("batch", "v1", "jobs"), "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets")}
"""Group, version and plural of each."""


def job_name(job: Mapping[str, Any]) -> str:
    """The name of a job, or what its generated name begins with."""
    return str(job["metadata"].get("name") or job["metadata"]["generateName"])
