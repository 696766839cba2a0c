"""Cohort: a node of the tree in which queues lend each other what they do not use.

Source: kueue@v0.19.2 apis/kueue/v1beta2/cohort_types.go, pkg/webhooks/cohort_webhook.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from kueue_fleet.kueue_api.base import DnsSubdomain, RuledModel
from kueue_fleet.kueue_api.problem import Problem
from kueue_fleet.kueue_api.quotas import FairSharing, LimitRules, ResourceGroup, check_resource_groups


class CohortSpec(RuledModel):
    """`spec` of a Cohort."""

    parent_name: DnsSubdomain | None = None
    """The cohort above; absent: this is the root of its tree."""
    resource_groups: Annotated[tuple[ResourceGroup, ...], Field(max_length=16)] = ()
    """Quota of the cohort itself, shared by everything below it."""
    fair_sharing: FairSharing = Field(default_factory=FairSharing)
    """Weight under fair sharing."""

    def own_problems(self) -> Iterator[Problem]:
        """The rules of validateCohort. Unlike a queue, a cohort may lend more than its own nominal quota."""
        yield from check_resource_groups(self.resource_groups, LimitRules(self, "parentName"))
