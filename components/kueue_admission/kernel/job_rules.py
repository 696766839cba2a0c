"""The rules of jobs and options, with codes that begin with KF9, and of what a file of objects has."""

from __future__ import annotations

import sys
from typing import Final

from kueue_admission.kernel import form_rules
from kueue_admission.kernel.problem import THE_INPUT, Rule
from kueue_admission.kernel.rule_lists import by_code, rules_of

BACKOFF = Rule(
    "KF712",
    severity="warning",
    seen="`is more than backoffMaxSeconds`",
    why="The first wait between two ProvisioningRequests is longer than the longest one, which then counts.",
    remedy="Raise `backoffMaxSeconds`, or lower `backoffBaseSeconds`",
)
JOB = Rule(
    "KF905",
    seen="`is a Pod; give jobs only`",
    why="The file of jobs has something that no simulation or check takes, or that Kubernetes would refuse.",
    remedy="Correct it as the message says",
    source="https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/",
)
JOB_NEVER_STARTS = Rule(
    "KF906",
    seen="`never starts`",
    why="The job cannot run on this fleet, even alone.",
    remedy="Change what it asks for, or the quotas and nodes of its queue",
    source="https://kueue.sigs.k8s.io/docs/concepts/workload/",
)
OPTION = Rule(
    "KF918",
    seen="`--what-if …: there is no NAME`",
    why="An option of the command line names something that is not there or cannot be read.",
    remedy="Write it as the message says",
    source=THE_INPUT,
)
NO_WORKLOAD = Rule(
    "KF921",
    seen="`there is no PriorityClass NAME`",
    why="Kueue makes no Workload of a job that names a priority class that is not there, that has no pods, or a "
    "negative number of them, and the job stays suspended. It leaves jobs on existing Ray clusters alone.",
    remedy="Add the class, or submit the job again with another; give it pods",
    source="https://github.com/kubernetes-sigs/kueue/issues/3439",
)
CHECKS_EXCLUDE = Rule(
    "KF709",
    seen="`Kueue allows no queue both`",
    why="A queue dispatches with one MultiKueue check for all of its flavors, or asks for capacity itself, not both.",
    remedy="Put the ProvisioningRequest check on the workers' queues",
    source="https://kueue.sigs.k8s.io/docs/concepts/multikueue/",
)
OBJECT_KIND = Rule(
    "KF711",
    seen="`Kueue has no kind NAME`",
    why="The object is not of the API that this release knows.",
    remedy="Write one of the kinds and the version that the message names",
    source="https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/",
)

RULES: Final = by_code(rules_of(form_rules), rules_of(sys.modules[__name__]))
"""All rules of this distribution, by code."""
