"""The fleet's own controller: how it is deployed, and what its decisions go by.

Frozen models with the rules of the section alone; what it has to do with the rest of the file is in `check.dispatch`.
Deciding is the admission core's job (`dispatch`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import combinations
from typing import Annotated, Final

from pydantic import Field

from kueue_admission.kernel.base import Count, DnsLabel, DnsSubdomain, Flag, Number, RuledModel, SpecModel, Text
from kueue_admission.kernel.described import FormerName
from kueue_admission.kernel.duration import Duration, DurationField, duration
from kueue_admission.kernel.form_rules import (
    BAD_AMOUNT,
    EXCLUDED,
    LISTED_TWICE,
    NEEDED,
    OUT_OF_RANGE,
    WRONG_ORDER,
    Fault,
)
from kueue_admission.kernel.given import NOT_GIVEN, ListOf, ListOfText
from kueue_admission.kernel.problem import Problem, Rule, where_read
from kueue_admission.kernel.quantity import OptionalQuantityField, Quantity
from kueue_fleet.settings.windows import CalendarWindow, together

DISPATCHER_NAME: Final = "kueue-fleet.dev/dispatcher"
"""`multiKueue.external.name` of a fleet whose dispatcher is this controller."""
CHECK_CONTROLLER: Final = "kueue-fleet.dev/admission-check"
"""`controllerName` of the AdmissionChecks that this controller answers."""
ASSIGNMENT_CHECK: Final = "kueue-fleet-assignment"
"""AdmissionCheck on the workers' queues: a copy is admitted once the controller has assigned the job to that worker."""
ASSIGNMENT_CONTROLLER: Final = "kueue-fleet.dev/assignment"
"""`controllerName` of that check, which this controller answers too."""
_LEAST_HISTORY: Final = Quantity("16Mi")
_STORE_PATH: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*/?", re.ASCII)
LONGEST_RUN: Final = "168h"
"""Longest run that DWS grants, seven days."""
IMAGE: Final = Rule(
    "KF811",
    severity="warning",
    seen="`does not say which version`",
    why="The image could change between two starts.",
    remedy="Add a tag other than latest, or a digest",
)
WINDOWS_OVERLAP: Final = Rule(
    "KF842",
    severity="warning",
    seen="`is open at the same time as`",
    why="A job must end within one window of its check; two overlapping windows do not count as one.",
    remedy="Merge the windows, or let one begin when the other ends",
)

Weight = Annotated[Number, Field(ge=0, le=1000)]
"""How much a part of the score counts, 0 to 1000."""
Price = Annotated[Number, Field(ge=0, le=10**9)]
"""For one device and hour, in any one currency; 0 to 1,000,000,000."""


class DispatchWeights(SpecModel):
    """How much each part of a cluster's score counts; only their proportion matters."""

    price: Weight = 1.0
    """The cheapest cluster is best; default 1."""
    waiting: Weight = 1.0
    """The cluster that admitted soonest lately is best; default 1."""
    free: Weight = 3.0
    """A cluster with free quota is best; default 3, which is more than price and waiting together."""


class Dispatch(RuledModel):
    """When and how far jobs are offered to clusters."""

    step: Annotated[Count, Field(ge=1, le=20)] = 1
    """Clusters that are nominated at first, and that are added each time; default 1."""
    widen_after: DurationField = duration("5m")
    """Time after which more clusters are nominated; default 5m."""
    reject_after: DurationField = duration("2m")
    """How long quotas or regions must keep a job from all workers of its queue before it is rejected, and deactivated
    by Kueue; default 2m.
    """
    give_up_after: DurationField = duration("72h")
    """After how long without quota on any cluster a job starts over, and loses its place; default 72h. With an
    admission check of this controller it also gives the manager's quota back meanwhile.
    """
    retry_after: DurationField = duration("5m")
    """Pause after that; default 5m."""
    weights: DispatchWeights = Field(default_factory=DispatchWeights)
    """Weights of a cluster's score; only their proportion matters."""

    def own_problems(self) -> Iterator[Problem]:
        """Times are positive, and a job is given up later than it is offered to more."""
        for path, value in (("widenAfter", self.widen_after), ("giveUpAfter", self.give_up_after)):
            if value.nanoseconds < 10**9:
                yield OUT_OF_RANGE.at(path, f"{value} is less than a second", "write 1s or longer")
        for path, value in (("rejectAfter", self.reject_after), ("retryAfter", self.retry_after)):
            if value.nanoseconds < 0:
                yield OUT_OF_RANGE.at(path, f"{value} is negative", "write 0s or longer")
        if self.give_up_after < self.widen_after:
            yield WRONG_ORDER.at(
                "giveUpAfter",
                f"{self.give_up_after} is shorter than widenAfter, {self.widen_after}",
                "make it longer, or jobs are given up before a second cluster is asked",
            )


class RunDuration(RuledModel):
    """Jobs must declare their run time, up to a limit."""

    max: DurationField = duration(LONGEST_RUN)
    """The longest run; default 168h, seven days, the most that DWS gives."""

    def own_problems(self) -> Iterator[Problem]:
        """Between a second and the seven days of DWS."""
        if not 10**9 <= self.max.nanoseconds <= Duration(LONGEST_RUN).nanoseconds:
            yield OUT_OF_RANGE.at(
                "max", f"{self.max} is not between 1s and {LONGEST_RUN}", f"write at most {LONGEST_RUN}"
            )


class FleetCheck(RuledModel):
    """The conditions under which this controller lets an admission check pass."""

    name: DnsSubdomain = Field(kw_only=False)
    """Name of the entry in `admissionChecks`."""
    run_duration: RunDuration | None = None
    """Jobs must declare their run time, by the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds."""
    windows: Annotated[ListOf[CalendarWindow], FormerName("calendar")] = ()
    """Times in which jobs start, and must end. Default: the times of the calendar pools of the check's queues, where
    these have no other nodes.
    """
    regions: Flag = True
    """Whether some worker must be in a region where the job may run; default true."""

    def own_problems(self) -> Iterator[Problem]:
        """Windows once each."""
        for index, window in enumerate(self.windows):
            if window.name in [other.name for other in self.windows[:index]]:
                yield LISTED_TWICE.at(f"windows[{window.name}]", "is listed twice", "give each window a unique name")
        states = together(window for window in self.windows if not any(window.own_problems()))
        first: dict[tuple[str, str], datetime] = {}
        names = dict.fromkeys(window.name for window in self.windows)
        for names_open, at in states.items():
            for both in combinations([name for name in names if name in names_open], 2):
                first[both] = min(at, first.get(both, at))
        for other, name in combinations(names, 2):
            if (moment := first.get((other, name))) is not None:
                wrong = f"is open at the same time as {other}, as at {moment:%Y-%m-%dT%H:%MZ}"
                fix = "make one window of both, or let one begin where the other ends"
                yield WINDOWS_OVERLAP.at(f"windows[{name}]", wrong, fix)


class Watchdog(RuledModel):
    """What to do if DWS accepts a request and provides no capacity."""

    provisioning_timeout: DurationField = duration("72h")
    """How long a ProvisioningRequest may be Accepted and not Provisioned; default 72h, as DWS may take days. Then the
    job is withdrawn, unless only worse clusters could take it; on a standalone cluster the request is made again.
    """
    retries: Annotated[Count, Field(le=100)] = 3
    """How often a job is withdrawn for that, over all clusters, or its request created again; default 3; 0: never."""
    stuck_after: DurationField = duration("2m")
    """How long Kueue may take for an eviction or a deletion before the controller frees the job; default 2m."""

    def own_problems(self) -> Iterator[Problem]:
        """Lengths of time."""
        if self.provisioning_timeout.nanoseconds < 10**9:
            yield OUT_OF_RANGE.at(
                "provisioningTimeout", f"{self.provisioning_timeout} is less than a second", "write 1m or more"
            )
        if self.stuck_after.nanoseconds < 10**9:
            yield OUT_OF_RANGE.at("stuckAfter", f"{self.stuck_after} is less than a second", "write 1m or more")


_BUCKET = re.compile(r"(?!goog)[a-z0-9][-_.a-z0-9]{1,61}[a-z0-9]")


def bucket_name(text: str) -> Fault | None:
    """Name of a bucket; those with dots are domains, and may be longer.

    Source: https://cloud.google.com/storage/docs/buckets#naming.
    """
    if _BUCKET.fullmatch(text) or ("." in text and len(text) <= 222):
        return None
    return Fault("is not the name of a bucket", "write 3 to 63 lower-case letters, digits, - and _, without gs://")


class History(RuledModel):
    """Where the controller writes what happens to jobs, as `kueue-fleet record` does: in one of `store` and
    `volumeClaim`."""

    store: Text | None = None
    """A folder of a bucket that exists: gs://BUCKET/PATH. The controller may only create and read objects there; to
    delete them, use a lifecycle rule of the bucket."""
    volume_claim: DnsSubdomain | None = None
    """A PersistentVolumeClaim in the controller's namespace, of a volume that all its replicas may mount
    (ReadWriteMany)."""
    every: DurationField | None = None
    """Pause between two writes; default 1m, and 15m for a bucket, where each is an object that stays."""
    keep: DurationField | None = None
    """Days that are older are deleted from the volume; default: none."""
    max_size: OptionalQuantityField = NOT_GIVEN
    """Of the volume, in bytes: the oldest days are deleted where there is more, but for the last; default: no limit."""
    labels: ListOfText[Text] = ()
    """Labels and annotations of Workloads that are kept too."""

    @property
    def pause(self) -> float:
        """Seconds between two writes."""
        default = 60.0 if self.store is None else 900.0
        return default if self.every is None else self.every.seconds

    def bounds(self, now: float) -> tuple[float, int | None]:
        """The time before which days are deleted, and how many bytes are kept of the others."""
        size = self.max_size
        return 0.0 if self.keep is None else now - self.keep.seconds, None if size is None else size.value

    def own_problems(self) -> Iterator[Problem]:
        """One place; a path in a bucket; what deletes is for volumes."""
        if (self.store is None) == (self.volume_claim is None):
            wrong = "sets neither store nor volumeClaim" if self.store is None else "sets both store and volumeClaim"
            yield NEEDED.at("", wrong, "write one of them: gs://BUCKET/PATH, or the name of a PersistentVolumeClaim")
        elif self.store is not None:
            yield from self._store_problems(self.store)
        for path, value in (("every", self.every), ("keep", self.keep)):
            least = Duration("1s" if path == "every" else "24h")
            if value is not None and value < least:
                yield OUT_OF_RANGE.at(path, f"{value} is less than {least}", f"write {least} or more")
        if self.max_size is not None and self.max_size < _LEAST_HISTORY:
            wrong = f"{self.max_size} is less than {_LEAST_HISTORY}"
            yield OUT_OF_RANGE.at("maxSize", wrong, f"write {_LEAST_HISTORY} or more")

    def _store_problems(self, store: str) -> Iterator[Problem]:
        scheme, _, rest = store.partition("gs://")
        bucket, _, path = rest.partition("/")
        fault = bucket_name(bucket)
        if scheme or fault is not None or not _STORE_PATH.fullmatch(path):
            fix = "write gs://BUCKET/PATH, the path of letters, digits, -, _, . and /"
            yield BAD_AMOUNT.at("store", f"{store} is not a folder of a bucket", fix)
        for name, value in (("keep", self.keep), ("maxSize", self.max_size)):
            if value is not None:
                fix = "give the bucket a lifecycle rule, and remove it"
                yield EXCLUDED.at(name, "set, but the controller deletes nothing from a bucket", fix)


class AdmissionControllerArgs(RuledModel):
    """The fleet's controller on the manager: dispatcher, admission checks, watchdog."""

    image: Annotated[Text, Field(min_length=1)] | None = None
    """Image of the controller, with a tag or a digest; default: `pulumi up` builds it and pushes it to an Artifact
    Registry of the fleet.
    """
    replicas: Annotated[Count, Field(ge=1, le=5)] = 2
    """Number of pods: one leads, the others stand by; default 2."""
    namespace: DnsLabel = "kueue-fleet-system"
    """Where it runs on the manager. Its account on each worker is in Kueue's namespace there."""
    dispatch: Dispatch = Field(default_factory=Dispatch)
    """How workers are nominated."""
    prices: Mapping[Text, Mapping[Text, Price]] = Field(default_factory=dict)
    """Price of one device for an hour, in one currency: by region or group of regions, then by flavor. The price of a
    region overrides that of its group."""
    region_groups: Mapping[DnsLabel, ListOfText[Text]] = Field(default_factory=dict)
    """Names for several regions, for `prices`, the teams' `allowedRegions` and the label kueue-fleet.dev/regions:
    `eu: [europe-west1, europe-west4]`."""
    checks: ListOf[FleetCheck] = ()
    """Conditions for each of this controller's admission checks."""
    quota_windows: ListOf[CalendarWindow] = ()
    """Times at which ClusterQueues have other quotas: those that `during` of a quota gives for a window's name."""
    watchdog: Watchdog = Field(default_factory=Watchdog)
    """When the controller withdraws a job from a worker where it waits."""
    explain_waiting: Flag = True
    """Whether waiting Workloads get a condition with the reason, and their jobs an event; default true."""

    history: History | None = None
    """The history of jobs for `replay`, `plan`, `cost` and `evidence`, in `store` or `volumeClaim`; default: none."""

    def regions(self, words: Iterable[str]) -> tuple[str, ...]:
        """The regions that are named, and those of the groups that are."""
        return tuple(dict.fromkeys(region for word in words for region in self.region_groups.get(word, (word,))))

    def prices_in(self, region: str) -> Mapping[str, float]:
        """Price of one device for an hour in `region`, by flavor."""
        groups = (name for name, regions in self.region_groups.items() if region in regions)
        return {flavor: price for name in (*groups, region) for flavor, price in self.prices.get(name, {}).items()}

    def own_problems(self) -> Iterator[Problem]:
        """An image that says which; checks once each."""
        yield from self._image_problems()
        for index, check in enumerate(self.checks):
            if check.name in [other.name for other in self.checks[:index]]:
                yield LISTED_TWICE.at(f"checks[{check.name}]", "is listed twice", "keep one of them")
        for index, window in enumerate(self.quota_windows):
            if window.name in [other.name for other in self.quota_windows[:index]]:
                at = f"quotaWindows[{window.name}]"
                yield LISTED_TWICE.at(at, "is listed twice", "give each window a unique name")

    @where_read
    def _image_problems(self) -> Iterator[Problem]:
        repository, _, digest = (self.image or "").partition("@")
        tag = repository.rpartition("/")[2].partition(":")[2]
        if self.image is not None and not digest and tag in ("", "latest"):
            yield IMAGE.at(
                "image", f"{self.image} does not say which version", "add a tag other than latest, or a digest"
            )


class FlavorPatience(RuledModel):
    """How long a job waits for nodes of a flavor."""

    flavor: DnsSubdomain = Field(kw_only=False)
    """A flavor of the queue that others come after."""
    patience: DurationField = Field(kw_only=False)
    """How long a job may have quota on the flavor without all of its pods running: `30m`."""

    def own_problems(self) -> Iterator[Problem]:
        """At least a second: Kueue counts in seconds."""
        if self.patience.nanoseconds < 10**9:
            yield OUT_OF_RANGE.at("patience", f"{self.patience} is less than a second", "write 1s or longer")
