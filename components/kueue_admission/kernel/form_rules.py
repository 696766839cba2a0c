"""The rules of any file, and of Kueue's objects.

Codes of the first kind begin with KF5 or KF9, of the second with KF7.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic_core import PydanticCustomError

from kueue_admission.kernel.problem import KUEUE_SOURCE, THE_INPUT, Problem, Rule

REMOVED_FIELD = Rule(
    "KF501",
    seen="`was removed in Kueue's v1beta2`",
    why="The text comes from a manifest or an example of Kueue's older API.",
    remedy="Write what the message names. `kueue-fleet import` reads old manifests and writes a new file",
    source=THE_INPUT,
)
UNKNOWN_FIELD = Rule(
    "KF502",
    seen="`is not a known field`",
    why="A typing error, a wrong indentation, or a field of another object.",
    remedy="The message names the nearest field; all of them are in the [reference](reference.md). `kueue-fleet "
    "schema` lets an editor complete them",
    source=THE_INPUT,
)
UNKNOWN_NAME = Rule(
    "KF503",
    seen="`there is no queue NAME`",
    why="An entry refers to another by a name that the file does not have.",
    remedy="Correct the name, or add the entry: queues name flavors, teams name queues, flavors name node pools",
    source=THE_INPUT,
)
MISSING = Rule(
    "KF504",
    seen="`is missing`",
    why="A field has no default, because any default would be wrong for somebody.",
    remedy="Add it; the message says what belongs there",
    source=THE_INPUT,
)
WRONG_TYPE = Rule(
    "KF507",
    seen="`is given where text is needed`",
    why="A value has another type than the field: YAML reads `on`, `1.10` and a date without quotes as something else "
    "than text.",
    remedy="Write a value of the type that the message names; put text in quotes",
    source=THE_INPUT,
)
NOT_ALLOWED = Rule(
    "KF508",
    seen="`is not allowed`",
    why="The field takes one of a few values.",
    remedy="Write one of those that the message lists",
    source=THE_INPUT,
)
BAD_SYNTAX = Rule(
    "KF509",
    seen="`has characters or a form that are not allowed`",
    why="A name or an address does not follow the syntax of Kubernetes or Google Cloud, which would refuse it later.",
    remedy="Write it in the form that the message describes",
    source="https://kubernetes.io/docs/concepts/overview/working-with-objects/names/",
)
BAD_AMOUNT = Rule(
    "KF510",
    seen="`is not a valid quantity`",
    why="An amount or a length of time is not one that Kubernetes or Go can read, such as `64GB` or `2d`.",
    remedy="Write a quantity such as `64Gi` or `500m`, and a duration such as `48h`",
    source="https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/",
)
OUT_OF_RANGE = Rule(
    "KF511",
    seen="`is too large`, `is negative`",
    why="A number, a length of time, a text or a list is beyond the limits of the field.",
    remedy="Write one within the limits that the message names",
    source=THE_INPUT,
)
LISTED_TWICE = Rule(
    "KF512",
    seen="`is listed twice`",
    why="A list has a value or a name twice, and it would not be clear which of the two counts.",
    remedy="Keep one of them, or give each a name of its own",
    source=THE_INPUT,
)
EXCLUDED = Rule(
    "KF513",
    seen="`set, but …`",
    why="Two settings exclude each other.",
    remedy="Keep one of the two",
    source=THE_INPUT,
)
NEEDED = Rule(
    "KF514",
    seen="`not set, but …`",
    why="A setting has no meaning without another one.",
    remedy="Add the one that the message names, or remove the other",
    source=THE_INPUT,
)
WRONG_ORDER = Rule(
    "KF515",
    seen="`is more than …`",
    why="Two limits are in the wrong order, such as a minimum above its maximum.",
    remedy="Lower the first or raise the second",
    source=THE_INPUT,
)
MISSPELT = Rule(
    "KF516",
    severity="warning",
    seen="`did you mean NAME?`",
    why="A name is not known, but similar to a known one. Other names are possible, and are not reported.",
    remedy="Correct the name, or leave it",
)
YAML = Rule(
    "KF518",
    seen="`is not readable as YAML`",
    why="The text is not YAML, has a field twice, or has parts that only programs write, such as tags.",
    remedy="Correct the line that the message names",
    source=THE_INPUT,
)
FORMER_NAME = Rule(
    "KF529",
    severity="warning",
    seen="`is an old name, which the next release does not have`",
    why="A field has another name since this release, which reads the old one too.",
    remedy="Write the new name; what the field holds stays as it is",
)
COVERED = Rule(
    "KF701",
    seen="`no quota for NAME, which coveredResources lists`",
    why="The quotas of a flavor and `coveredResources` of its group differ, which Kueue's webhook refuses.",
    remedy="Give each flavor of the group one quota for each covered resource",
    source="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/",
)
COVERED_TWICE = Rule(
    "KF702",
    seen="`is already covered by …`",
    why="A resource, or a flavor, belongs to one group of a queue only.",
    remedy="Keep it in one group",
    source="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/",
)
WHOLE_UNITS = Rule(
    "KF703",
    seen="`is not a whole number, and nvidia.com/gpu is counted in whole units`",
    why="Kubernetes gives out devices in whole units, and refuses such a limit of a namespace.",
    remedy="Write a whole number without a suffix",
    source="https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/apis/core/validation/validation.go#L8222",
)
BYTES = Rule(
    "KF704",
    severity="warning",
    seen="`is counted in bytes`",
    why="An amount of memory has no unit.",
    remedy="Add a unit, such as `Gi`",
)
LIMIT_WITHOUT_COHORT = Rule(
    "KF705",
    seen="`is set, but cohortName is not`",
    why="A queue lends to and borrows from the queues of its cohort only.",
    remedy="Set `cohortName`, or remove the limit",
    source="https://kueue.sigs.k8s.io/docs/concepts/cohort/",
)
LENDING = Rule(
    "KF706",
    seen="`is more than the nominalQuota`",
    why="A queue cannot lend more than it has.",
    remedy="Lower `lendingLimit`, or remove it, which lends everything",
    source=f"{KUEUE_SOURCE}/pkg/webhooks/clusterqueue_webhook.go#L383",
)
NO_QUOTA_ON_FLAVOR = Rule(
    "KF707",
    seen="`the queue has no quota on flavor NAME`",
    why="A check, a policy or `fallback` names a flavor that no group of the queue has.",
    remedy="Name a flavor of the queue",
    source=f"{KUEUE_SOURCE}/pkg/webhooks/clusterqueue_webhook.go#L138",
)
CONCURRENT_ADMISSION = Rule(
    "KF708",
    seen="`StrictFIFO cannot be used with concurrentAdmissionPolicy`",
    why="Kueue's webhook takes concurrent admission only with one group of at most 16 flavors and BestEffortFIFO.",
    remedy="Change the queue as the message says, or remove `concurrentAdmissionPolicy`",
    source=f"{KUEUE_SOURCE}/pkg/webhooks/clusterqueue_webhook.go#L231",
)
LOWEST_LEVEL = Rule(
    "KF710",
    seen="`can only be the lowest level`",
    why="A Topology ends at the nodes: below `kubernetes.io/hostname` there is nothing.",
    remedy="Put that level last",
    source="https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/",
)
COHORT_CYCLE = Rule(
    "KF714",
    seen="`the cohorts form a cycle`",
    why="Kueue admits nothing in such a tree.",
    remedy="Remove one of the parents",
    source=f"{KUEUE_SOURCE}/pkg/cache/scheduler/cache.go#L966",
)
UNUSUAL_UNITS = Rule(
    "KF753",
    severity="warning",
    seen="`is 34359738368 of nvidia.com/gpu`",
    why="Kueue takes any amount of an extended resource: it rounds a fraction up and reads a suffix of bytes as that "
    "many.",
    remedy="Write a whole number without a suffix, unless the resource is counted in bytes",
)
UNREADABLE_FILE = Rule(
    "KF904",
    seen="`cannot be read`",
    why="The file is not there, or is not text.",
    remedy="Give a file that exists",
    source=THE_INPUT,
)
JOB_UNKNOWN = Rule(
    "KF907",
    severity="warning",
    seen="`is not known`",
    why="What the job asks for depends on nodes or claim templates that the file does not describe.",
    remedy="Make sure that the cluster has it",
)
OBJECT = Rule(
    "KF916",
    seen="`is a list, not an object`",
    why="An object does not have the form that Kubernetes prints or takes.",
    remedy="Print it again with `kubectl get -o yaml`, or correct it as the message says",
    source=THE_INPUT,
)
NOT_MODELLED = Rule(
    "KF917",
    seen="`is not modelled`",
    why="Decisions would depend on a feature that is left out; [what is modelled](fidelity.md).",
    remedy="Remove it, or ask the cluster itself",
    source=THE_INPUT,
)


class Fault(NamedTuple):
    """What is wrong with one value, wherever it stands."""

    wrong: str
    """A clause that follows the value, such as `is longer than 63 characters`."""
    fix: str
    """What to do, as an instruction."""
    rule: Rule = BAD_SYNTAX

    def __str__(self) -> str:
        return f"{self.wrong}; {self.fix}"

    def error(self) -> PydanticCustomError:
        """What a validator raises for it."""
        return PydanticCustomError("fault", "{text}", {"text": str(self), "fault": self})


class FaultError(ValueError):
    """A value cannot be used, for the reason that `fault` gives."""

    def __init__(self, wrong: str, fix: str) -> None:
        self.fault = Fault(wrong, fix, BAD_AMOUNT)
        super().__init__(str(self.fault))


def listed_twice(path: str, value: str, noun: str) -> Problem:
    """The problem of a value that a list has before; `noun` is what messages call one."""
    return LISTED_TWICE.at(path, f"{value} is listed twice", f"list each {noun} once")
