"""ProvisioningRequestConfig.

Source: kueue@v0.19.2 apis/kueue/v1beta2/provisioningrequestconfig_types.go; no webhooks.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from kueue_admission.kernel.base import Count, DnsSubdomain, LabelKey, RuledModel, SpecModel, Text
from kueue_admission.kernel.form_rules import listed_twice
from kueue_admission.kernel.given import ListOf, ListOfText
from kueue_admission.kernel.job_rules import BACKOFF
from kueue_admission.kernel.problem import Problem, where_read


class RetryStrategy(SpecModel):
    """When a failed ProvisioningRequest is retried: after about base * 2^(n-1) seconds, at most max."""

    backoff_limit_count: Count = 3
    """Tries before the workload is deactivated; default 3; 0: no retry."""
    backoff_base_seconds: Count = 60
    """First wait, in seconds; default 60."""
    backoff_max_seconds: Count = 1800
    """Longest wait, in seconds; default 1800."""


class NodeSelectorUpdate(SpecModel):
    """A node selector that the pods get from what was provisioned."""

    key: Annotated[LabelKey, Field(max_length=317)]
    """Key of the node selector."""
    value_from_provisioning_class_detail: Annotated[Text, Field(min_length=1, max_length=32768)]
    """Key in the ProvisioningRequest's status.provisioningClassDetails to take the value from."""


class PodSetUpdates(SpecModel):
    """What is added to the pods once they are provisioned for."""

    node_selector: Annotated[ListOf[NodeSelectorUpdate], Field(max_length=8)] = ()
    """Node labels that the pods select."""


class ProvisioningRequestConfigSpec(RuledModel):
    """`spec` of a ProvisioningRequestConfig: how capacity is requested before a job starts."""

    provisioning_class_name: DnsSubdomain
    """Kind of request: `queued-provisioning.gke.io` is GKE's Dynamic Workload Scheduler."""
    parameters: Annotated[Mapping[Text, Annotated[Text, Field(max_length=255)]], Field(max_length=100)] | None = None
    """Parameters of the class, such as maxRunDurationSeconds."""
    managed_resources: Annotated[ListOfText[LabelKey], Field(max_length=100)] = ()
    """Only pods that request one of these resources are in the request; empty: all pods."""
    retry_strategy: RetryStrategy = Field(default_factory=RetryStrategy)
    """When a failed request is retried: after about base * 2^(n-1) seconds, at most max."""
    pod_set_updates: PodSetUpdates | None = None
    """What is added to the pods once they are provisioned for."""
    pod_set_merge_policy: Literal["IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"] | None = None
    """Which pod sets are merged into one in the request; absent: none."""

    def own_problems(self) -> Iterator[Problem]:
        """The set and map keys of the schema, and a wait that starts above its own maximum."""
        yield from self.listed_once("managed_resources", "resource")
        yield from self._updates()
        retry = self.retry_strategy
        if retry.backoff_base_seconds > retry.backoff_max_seconds:
            yield BACKOFF.at(
                "retryStrategy.backoffBaseSeconds",
                f"{retry.backoff_base_seconds} is more than backoffMaxSeconds, {retry.backoff_max_seconds}",
                "raise backoffMaxSeconds or lower this",
            )

    @where_read
    def _updates(self) -> Iterator[Problem]:
        updates = self.pod_set_updates.node_selector if self.pod_set_updates else ()
        keys = [update.key for update in updates]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                yield listed_twice(f"podSetUpdates.nodeSelector[{index}].key", key, "key")
