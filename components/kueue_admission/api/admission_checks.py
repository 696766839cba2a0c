"""AdmissionCheck.

Source: kueue@v0.19.2 apis/kueue/v1beta2/admissioncheck_types.go; no webhooks.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from kueue_admission.kernel import syntax
from kueue_admission.kernel.base import DnsLabel, DnsSubdomain, SpecModel, Text, syntax_of


class ParametersReference(SpecModel):
    """A cluster-scoped object with further parameters of a check."""

    api_group: DnsSubdomain
    """API group of the object."""
    kind: Annotated[str, Field(strict=True), syntax_of(syntax.kind)]
    """Kind of the object."""
    name: DnsLabel
    """Name of the object."""


class AdmissionCheckSpec(SpecModel):
    """`spec` of an AdmissionCheck."""

    removed: ClassVar[Mapping[str, str]] = {"retryDelayMinutes": "remove it: the check's controller sets the delay"}
    controller_name: Annotated[Text, Field(min_length=1, max_length=253)]
    """Who answers the check. Immutable."""
    parameters: ParametersReference | None = None
    """An object with further parameters."""
