"""The rules KF900 to KF999 of what commands read beside the fleet: imports, jobs, projects and programs."""

from __future__ import annotations

from kueue_admission.kernel.problem import THE_INPUT, Rule

IMPORT_FORM = Rule(
    "KF901",
    seen="`is not a Kubernetes object with a kind and a name`",
    why="The input is not output of kubectl or gcloud.",
    remedy="Provide it as the message says",
    source=THE_INPUT,
)
IMPORT_DIFFERENCE = Rule(
    "KF902",
    seen="`AllAtOnce, but Incremental on CLUSTER`",
    why="An object differs between two clusters in a way that one fleet file cannot describe.",
    remedy="Make them the same, or import the clusters one at a time",
    source=THE_INPUT,
)
IMPORT_REFUSED = Rule(
    "KF903",
    seen="`is not known: … is not among the objects`",
    why="The given objects do not contain it, or are not those of one fleet.",
    remedy="Give the objects that the message names",
    source=THE_INPUT,
)
PROJECT = Rule(
    "KF908",
    seen="`the limit is N, but the fleet grows to M`",
    why="The project lacks something that the fleet needs; see "
    "[Prepare a project](tasks/create-a-fleet.md#prepare-a-project).",
    remedy="Ask for it as the message says",
    source="https://cloud.google.com/docs/quotas/overview",
)
PROJECT_IN_USE = Rule(
    "KF909",
    severity="warning",
    seen="`fits only if what is in use is this fleet's`",
    why="The project has it, but part of it is in use.",
    remedy="Ask for more if that is not this fleet",
)
RESERVATION_THERE = Rule(
    "KF910",
    seen="`it is not in ZONE; it is in ZONE`",
    why="An existing reservation differs from the file.",
    remedy="Write the same in the file",
    source="https://cloud.google.com/compute/docs/instances/reservations-consume",
)
RESERVATION_CHANGES = Rule(
    "KF911",
    severity="warning",
    seen="`it has N machines, not M`",
    why="A reservation of the fleet differs from the file.",
    remedy="Run `pulumi up`, or write the present values into the file",
)
NOT_PLAIN = Rule(
    "KF912",
    seen="`is a secret or comes from another resource`",
    why="The argument decides which resources exist, so it must be known before they are created.",
    remedy="Give a plain value",
    source=THE_INPUT,
)
COMPONENT = Rule(
    "KF913",
    seen="`is not a component of kueue-fleet`",
    why="The program names a component or an argument that the package does not have.",
    remedy="See its schema",
    source=THE_INPUT,
)
NOT_REHEARSED = Rule(
    "KF914",
    seen="`a rehearsal has no container engine`",
    why="The fleet declares something that no rehearsal can run.",
    remedy="Turn it off for the rehearsal",
    source=THE_INPUT,
)
OTHER_VERSION = Rule(
    "KF915",
    severity="warning",
    seen="`a rehearsal runs another version`",
    why="The rehearsal has the operator in the version that it was built with.",
    remedy="Nothing, or use that version",
)
UNREAD = Rule(
    "KF919",
    seen="`you may not call …`, `there are no Google credentials here`",
    why="Google denies access to this information, or cannot be asked, so it is not known whether the fleet fits.",
    remedy="Request the role that the message names, enable the API, or log in",
    source="https://cloud.google.com/iam/docs/permission-error-messages",
)
CLUSTER_NOT_READY = Rule(
    "KF922",
    seen="`the cluster does not serve KIND of VERSION`, `may not write …`, `Kueue is there, and Helm takes over …`",
    why="A cluster outside GKE does not answer, or does not take what `pulumi up` makes there.",
    remedy="Do what the message says; see [Workers outside GKE](tasks/workers-outside-gke.md)",
    source="https://kubernetes.io/docs/reference/access-authn-authz/authorization/",
)
NOT_CHECKED = Rule(
    "KF920",
    severity="warning",
    seen="`is not checked`",
    why="A component refers to an object by name, which this program does not declare.",
    remedy="Pass the component instead of its name, or make sure that the object exists",
)
