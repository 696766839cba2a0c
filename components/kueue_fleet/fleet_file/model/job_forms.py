"""What no Kubernetes takes of a job that somebody describes in a few fields: a template of the file, or a request.

Source: kubernetes@v1.36 pkg/apis/core/validation (mounts, amounts); distribution/reference (names of images).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from kueue_admission.kernel import syntax
from kueue_admission.kernel.base import Text, syntax_of
from kueue_admission.kernel.form_rules import Fault, FaultError
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.settings.dispatch import bucket_name

LONGEST_JOB_NAME = 63
"""Characters of the name of a Job: it is the value of a label."""
BUCKET: Final = "gs://"
"""How a mount begins that is a bucket."""
IMAGE: Final = re.compile(
    r"([a-zA-Z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[\w][\w.-]{0,127})?"
    r"(@[a-z0-9]+([+._-][a-z0-9]+)*:[0-9a-fA-F]{32,})?"
)
"""A reference to an image that nodes can pull."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def form_problems(
    image: str | None, amounts: Mapping[str, str | None], env: Mapping[str, str], mounts: Mapping[str, str]
) -> Iterator[Problem]:
    """Problems of the image, of what pods ask for by resource, of variables, and of mounts by path."""
    if image is not None and IMAGE.fullmatch(image) is None:
        yield JOB.at("image", f"{image!r} is not the name of an image, and no node can pull it", "correct it")
    for name, text in amounts.items():
        try:
            negative = text is not None and Quantity(text) < Quantity(0)
        except FaultError as error:
            yield JOB.at(name, f'"{text}" {error.fault.wrong}', error.fault.fix)
            continue
        if negative:
            yield JOB.at(name, f"is {text}", "write 0 or more")
    for name in env:
        if not _VARIABLE.fullmatch(name):
            yield JOB.at(f"env.{name}", "is not a name of a variable", "write letters, digits and _ only")
    for path, source in mounts.items():
        if not path.startswith("/"):
            yield JOB.at(f"mounts.{path}", "is not an absolute path", "begin it with /")
        elif ":" in path or path == "/":
            yield JOB.at(f"mounts.{path}", "is not a path where a container can have it", "write another one")
        if not source.removeprefix(BUCKET):
            yield JOB.at(f"mounts.{path}", "names nothing", f"name a PersistentVolumeClaim or {BUCKET}BUCKET")
        elif source.startswith(BUCKET) and (fault := bucket_name(source.removeprefix(BUCKET))) is not None:
            yield JOB.at(f"mounts.{path}", f'"{source.removeprefix(BUCKET)}" {fault.wrong}', fault.fix)


def job_name(text: str) -> Fault | None:
    """Name of a Job or JobSet: a DNS subdomain of at most 63 characters, since it is a label of its pods too.

    Source: kubernetes@v1.36 pkg/apis/batch/validation (ValidateJob), apis/batch/v1 (LabelJobName).
    """
    return syntax.subdomain(text, LONGEST_JOB_NAME)


JobName = Annotated[Text, syntax_of(job_name)]
"""The name of a Job or JobSet: a DNS subdomain of at most 63 characters."""
