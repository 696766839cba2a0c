"""Teams: their namespaces, queues, accounts and limits.

The objects are made by `objects.teams`; rules between teams are in `check.teams`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any, Final, Literal, cast

from pydantic import Field

from kueue_admission.api import LocalQueueSpec
from kueue_admission.api.quotas import whole_problems
from kueue_admission.kernel import suggest, syntax
from kueue_admission.kernel.base import AtLeastOne, Count, DnsLabel, DnsSubdomain, RuledModel, SpecModel, Text
from kueue_admission.kernel.described import FormerName
from kueue_admission.kernel.duration import DurationField
from kueue_admission.kernel.form_rules import (
    EXCLUDED,
    LISTED_TWICE,
    NEEDED,
    NOT_ALLOWED,
    OUT_OF_RANGE,
    WHOLE_UNITS,
    WRONG_ORDER,
)
from kueue_admission.kernel.given import ListOf, ListOfText
from kueue_admission.kernel.model_problems import syntax_problems
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import Quantity, QuantityMapField
from kueue_fleet.fleet_file.model.gcp_names import IamRole, Member, TeamAccountAddress
from kueue_fleet.fleet_file.model.goals import Goals
from kueue_fleet.fleet_file.model.job_forms import form_problems
from kueue_fleet.fleet_file.rules.files import NAME_TAKEN, NO_EFFECT
from kueue_fleet.fleet_file.rules.teams import DEFAULT_LIMIT, TEAM_ACCOUNT
from kueue_fleet.gke.google_syntax import google_service_account
from kueue_fleet.settings.budgets import TeamBudget

DEFAULT_ROLES: Final = ("roles/logging.logWriter", "roles/monitoring.metricWriter")
"""What every job's account may do: write logs and metrics."""
CONTAINER_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources of containers that have no domain in their name, without huge pages."""
_CLASSES: Final = (".storageclass.storage.k8s.io", ".deviceclass.resource.k8s.io")
"""Ends of the domains of what a ResourceQuota limits by class. Source: kubernetes@v1.36 pkg/quota/v1/evaluator/core."""
_OBJECTS: Final = ("pods", "services", "services.nodeports", "services.loadbalancers", "secrets", "configmaps")
"""Kinds of objects that a ResourceQuota counts, of those in `_LIMITED`."""
_CORE: Final = (
    "pods",
    "services",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "serviceaccounts",
    "podtemplates",
    "limitranges",
    "endpoints",
    "events",
)
"""What `count/` limits without a group. Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/."""
_GROUPED: Final = ("jobs.batch", "cronjobs.batch", "jobsets.jobset.x-k8s.io", "deployments.apps", "rayjobs.ray.io")
"""Some of what it limits with one."""
_LIMITED: Final = (
    *(f"{of}{name}" for of in ("", "requests.", "limits.") for name in CONTAINER_RESOURCES),
    "requests.storage",
    "pods",
    "resourcequotas",
    "services",
    "services.nodeports",
    "services.loadbalancers",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
)
"""What a ResourceQuota limits without a domain in its name, without huge pages.

Source: kubernetes@v1.36 pkg/apis/core/helper (standardQuotaResources).
"""
BASIC_ROLES: Final = frozenset({"roles/owner", "roles/editor", "roles/viewer"})
"""Roles over everything in a project."""


class TeamQueue(LocalQueueSpec):
    """A LocalQueue that a team has in each of its namespaces."""

    name: DnsSubdomain = Field(kw_only=False)
    """Name of the LocalQueue, as jobs give it."""


class TeamGoogleServiceAccount(RuledModel):
    """A Google service account made for the team, called <fleet>-<team>."""

    roles: ListOfText[IamRole] = DEFAULT_ROLES
    """What it may do in the fleet's project; default: write logs and metrics."""

    def own_problems(self) -> Iterator[Problem]:
        """Roles once each, and none over everything."""
        yield from self.listed_once("roles", "role")
        for index, role in enumerate(self.roles):
            if role in BASIC_ROLES:
                yield TEAM_ACCOUNT.at(
                    f"roles[{index}]",
                    f"{role} reaches everything in the project",
                    "name the roles that the jobs need, such as roles/storage.objectViewer",
                )


class TeamLimitRange(RuledModel):
    """What each container in the team's namespaces asks for, as an item of type Container of a LimitRange says.

    Kueue and Kubernetes count containers without requests or limits with the defaults.

    Source: kubernetes@v1.36 pkg/apis/core/validation (ValidateLimitRange).
    """

    default: QuantityMapField[Text] = cast("Any", Field(default_factory=dict))
    """Limits of containers that do not have one, by resource; default: `max`."""
    default_request: QuantityMapField[Text] = cast("Any", Field(default_factory=dict))
    """Requests of containers that do not have one, by resource; default: `default`, else `min`."""
    max: QuantityMapField[Text] = cast("Any", Field(default_factory=dict))
    """The largest request and limit."""
    min: QuantityMapField[Text] = cast("Any", Field(default_factory=dict))
    """The smallest request and limit."""

    def own_problems(self) -> Iterator[Problem]:
        """It says something; amounts that Kubernetes takes, in order from `min` to `max`."""
        bounds = {"min": self.min, "defaultRequest": self.default_request, "default": self.default, "max": self.max}
        if not any(bounds.values()):
            yield NEEDED.at("", "has no amount", "set default, defaultRequest, max or min, or remove it")
        for field, amounts in bounds.items():
            yield from _amounts(field, amounts, CONTAINER_RESOURCES, "of containers")
        for (low, less), (high, more) in combinations(bounds.items(), 2):
            for name in less:
                if name in more and less[name] > more[name]:
                    yield WRONG_ORDER.at(
                        f"{low}[{name}]",
                        f"{less[name]} is more than {high}, {more[name]}",
                        "write a smaller one, or both",
                    )
        for name, amount in self.max.items():
            if "/" in name and name not in self.default:
                yield DEFAULT_LIMIT.at(
                    f"max[{name}]",
                    f"{amount.plain} is also what each container gets that asks for none",
                    f"add default: {{{name}: 0}}",
                )
        limits = {**self.max, **self.default}
        for name, amount in self.default_request.items():
            if name in limits and amount < limits[name] and ("/" in name or name.startswith("hugepages-")):
                limit = limits[name].plain
                wrong = f"{amount.plain} is less than the limit, {limit}, and {name} is requested as its limit is"
                yield WRONG_ORDER.at(f"defaultRequest[{name}]", wrong, f"write {limit}, or remove it")


@where_read
def _amounts(field: str, amounts: Mapping[str, Quantity], known_names: Sequence[str], what: str) -> Iterator[Problem]:
    """Amounts that Kubernetes takes, of resources with a domain in their name, huge pages, and those that are known."""
    for name, amount in amounts.items():
        if amount < Quantity(0):
            yield OUT_OF_RANGE.at(f"{field}[{name}]", f"{amount.plain} is negative", "write 0 or more")
        elif not name.endswith("/requests.storage"):
            yield from whole_problems(name, amount, f"{field}[{name}]")
        if "/" in name:
            yield from syntax_problems(f"{field}[{name}]", name, syntax.label_key)
        elif name not in known_names and not name.removeprefix("requests.").startswith("hugepages-"):
            fix = suggest.instead(name, known_names, "resources")
            yield NOT_ALLOWED.at(f"{field}[{name}]", f"{name} is not a resource {what}", fix)


class ClaimTemplate(SpecModel):
    """Devices that pods claim by Dynamic Resource Allocation, such as network cards of GPUs by DRANET: a
    ResourceClaimTemplate with one request for a number of devices, as Kueue counts them.

    Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra;
    https://kueue.sigs.k8s.io/docs/concepts/dynamic_resource_allocation/.
    """

    name: DnsSubdomain = Field(kw_only=False)
    """What pods name in `resourceClaimTemplateName`."""
    device_class_name: DnsSubdomain = Field(kw_only=False)
    """Class of the devices, such as mrdma.google.com."""
    count: AtLeastOne = 1
    """Devices of each pod; default 1."""


class JobTemplate(RuledModel):
    """What `kueue-fleet submit --template NAME` takes for options that are not given; see `submit --help`."""

    name: DnsLabel = Field(kw_only=False)
    """Name of the template, of which the team has one."""
    queue: DnsSubdomain | None = None
    """LocalQueue in the team's first namespace."""
    image: Text | None = None
    """Container image."""
    command: ListOfText[Text] = ()
    """Program and arguments; those of the command line are added to it."""
    nodes: AtLeastOne | None = None
    """Pods that run together."""
    gpus: Annotated[Count, Field(ge=0)] | None = None
    """GPUs of each pod."""
    cpu: Text | None = None
    """CPUs of each pod."""
    memory: Text | None = None
    """Memory of each pod."""
    priority: DnsSubdomain | None = None
    """WorkloadPriorityClass."""
    time: DurationField | None = None
    """Longest run time."""
    env: Mapping[Text, Text] = Field(default_factory=dict)
    """Variables of the environment; those of the command line are added to them."""
    mounts: Mapping[Text, Text] = Field(default_factory=dict)
    """By absolute path: a PersistentVolumeClaim, or gs://BUCKET."""

    def own_problems(self) -> Iterator[Problem]:
        """What no job can have that is made of it."""
        yield from self._forms()
        if self.time is not None and self.time.seconds < 1:
            yield OUT_OF_RANGE.at("time", f"{self.time} is too short", "write a second or more")

    @where_read
    def _forms(self) -> Iterator[Problem]:
        yield from form_problems(self.image, {"cpu": self.cpu, "memory": self.memory}, self.env, self.mounts)


class TeamEntry(RuledModel):
    """A team: its namespaces and the queues it may use."""

    name: DnsLabel = Field(kw_only=False)
    """Name of the team; a namespace of this name is made for it, unless namespaces says otherwise."""
    namespaces: Annotated[ListOfText[DnsLabel], Field(min_length=1)] | None = None
    """Default: one namespace of the team's name."""
    local_queues: ListOf[TeamQueue] = ()
    """LocalQueues, in each of the namespaces, on every cluster that has the ClusterQueue."""
    service_account: DnsSubdomain | None = None
    """Kubernetes service account for its jobs, in each namespace; default: one with the team's name if it has a Google
    service account, else none."""
    google_service_account: TeamGoogleServiceAccount | None = None
    """Creates the Google service account <fleet>-<team>, which the Kubernetes one uses by Workload Identity."""
    existing_google_service_account: TeamAccountAddress | None = None
    """Or one that exists: name@project.iam.gserviceaccount.com. Its owner grants the binding."""
    members: ListOfText[Member] = ()
    """Who may submit and see jobs: group:..., user:..., serviceAccount:..."""
    resource_quota: QuantityMapField[Text] = cast("Any", Field(default_factory=dict))
    """A ResourceQuota of each namespace, against runaway submitters. Default: no Services that are reached from
    outside; where jobs are submitted, 1000 each of count/jobs.batch, ended ones included, count/configmaps and
    count/services.
    """
    limit_range: TeamLimitRange | None = None
    """Requests and limits of containers that do not name them, and bounds of those that do; default: none."""
    allowed_regions: ListOfText[DnsLabel] = ()
    """Regions in which its jobs may run, and groups of controller.regionGroups; default: any."""
    secrets: ListOfText[DnsSubdomain] = ()
    """Names of Secrets in each of its namespaces, wherever jobs run; what is in them is in the stack's config,
    `kueue-fleet:teamSecrets`, by name and key."""
    allowed_priority_classes: Annotated[ListOfText[DnsSubdomain] | None, FormerName("priorityClasses")] = None
    """WorkloadPriorityClasses and PriorityClasses that its jobs may name; default: all but the highest of each kind."""
    budget: TeamBudget | None = None
    """The most for a week or month; `status` and `simulate` warn near the limit."""
    resource_claim_templates: ListOf[ClaimTemplate] = ()
    """ResourceClaimTemplates for devices that pods claim, such as network cards of GPUs (DRANET), in each of its
    namespaces on every cluster. Kubernetes 1.34 or newer.
    """
    job_templates: ListOf[JobTemplate] = ()
    """Values for options that `kueue-fleet submit --template NAME` is not given."""
    goals: Goals | None = None
    """Goals for its jobs."""
    pod_security: Literal["privileged", "baseline", "restricted"] = "baseline"
    """Pod Security Standard that the API server enforces in its namespaces; default baseline, which refuses host
    paths, the node's network and privileged containers."""

    @property
    def namespace_names(self) -> Sequence[str]:
        """The team's namespaces."""
        return self.namespaces or (self.name,)

    @property
    def has_google_account(self) -> bool:
        """Whether its jobs act as a Google service account."""
        return self.google_service_account is not None or self.existing_google_service_account is not None

    @property
    def service_account_name(self) -> str | None:
        """The Kubernetes service account of its jobs; None: the namespace's default."""
        return self.service_account or (self.name if self.has_google_account else None)

    def own_problems(self) -> Iterator[Problem]:
        """One Google account, a Kubernetes account of its own; what is listed once each; no negative limits."""
        yield from self._accounts()
        yield from self.listed_once("members", "member")
        yield from self.listed_once("allowed_regions", "region")
        yield from self.listed_once("allowed_priority_classes", "priority class")
        yield from self.listed_once("secrets", "Secret")
        names = [template.name for template in self.job_templates]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield LISTED_TWICE.at(f"jobTemplates[{name}]", "is listed twice", "give each template a name of its own")
        yield from _amounts("resourceQuota", self.resource_quota, _LIMITED, "that Kubernetes limits")
        for name, amount in self.resource_quota.items():
            domain, slash, _ = name.partition("/")
            if slash and not domain.startswith("requests.") and domain != "count" and not domain.endswith(_CLASSES):
                wrong = f"{amount.plain} has no effect, since Kubernetes limits devices by their requests alone"
                fix = f"write requests.{name.removeprefix('limits.')}"
                yield NO_EFFECT.at(f"resourceQuota[{name}]", wrong, fix)
            elif domain == "count" and (kind := name.removeprefix("count/")) and "." not in kind and kind not in _CORE:
                wrong = f"{amount.plain} has no effect, since Kubernetes' core group has no kind of objects {kind}"
                plurals = {kind_name.partition(".")[0]: kind_name for kind_name in (*_CORE, *_GROUPED)}
                near = suggest.nearest(kind, plurals)
                fix = f"did you mean count/{plurals[near]}?" if near else "write it with its group, as jobs.batch"
                yield NO_EFFECT.at(f"resourceQuota[{name}]", wrong, fix)
            elif name in _OBJECTS and amount.decimal % 1:
                wrong = f"{amount.plain} is not a whole number, and objects are counted in whole ones"
                yield WHOLE_UNITS.at(f"resourceQuota[{name}]", wrong, "write a whole number")

    @where_read
    def _accounts(self) -> Iterator[Problem]:
        if self.service_account == "default":
            yield NAME_TAKEN.at(
                "serviceAccount", "default is the account of every pod that names none", "use another name"
            )
        if self.google_service_account is not None and self.existing_google_service_account is not None:
            yield EXCLUDED.at(
                "existingGoogleServiceAccount", "set, but so is googleServiceAccount", "keep one of the two"
            )
        if self.existing_google_service_account is not None:
            address = self.existing_google_service_account
            yield from syntax_problems("existingGoogleServiceAccount", address, google_service_account)
