"""The rules KF500 to KF599 of what can be read, and what stands where."""

from __future__ import annotations

from kueue_admission.kernel.problem import THE_INPUT, Rule

UNKNOWN_REGION = Rule(
    "KF505",
    seen="`is not a known region`",
    why="A zone instead of a region, a typing error, or a region that is newer than this release.",
    remedy="Write a region, such as `europe-west4`; a newer one needs its ranges in `network.ranges`",
    source="https://cloud.google.com/compute/docs/regions-zones",
)
MORE_QUOTA_THAN_NODES = Rule(
    "KF506",
    as_published="warning",
    seen="`queues may use N nvidia.com/gpu of it …, but its nodes hold M`",
    why="Quota and machines differ. Kueue would admit jobs whose pods then stay pending.",
    remedy="Lower `nominalQuota`, or raise the number of nodes; both are amounts of one worker",
    source="https://kueue.sigs.k8s.io/docs/tasks/manage/setup_wait_for_ready_pods/",
)
NOT_A_FLEET = Rule(
    "KF519",
    seen="`is a workload file`, `is empty`",
    why="The file does not contain a fleet.",
    remedy="Write `name:`, `project:` and `clusters:`; in a stack file, below `config:` and `kueue-fleet:fleet:`",
    source=THE_INPUT,
)
STRAY_SECTION = Rule(
    "KF520",
    seen="`stands beside the fleet, where nothing reads it`",
    why="A section of the fleet has the indentation of another part of the stack file.",
    remedy="Write it below `kueue-fleet:fleet:`",
    source=THE_INPUT,
)
UNREAD_KEY = Rule(
    "KF521",
    severity="warning",
    seen="`is not read by anything`",
    why="A key of the stack looks like one of this project's.",
    remedy="Correct the key",
)
OTHER_PROJECT = Rule(
    "KF522",
    seen="`gcp:project of the stack is NAME`",
    why="The stack and the fleet name two projects.",
    remedy="Write the same project in both",
    source=THE_INPUT,
)
PLAIN_SECRET = Rule(
    "KF528",
    seen="`is in plain text, and so is every secret in it`",
    why="A secret in a stack file without encryption is read by all who read the repository.",
    remedy="Encrypt it with `pulumi config set --secret --path`, and replace it, since it was exposed",
    source="https://www.pulumi.com/docs/iac/concepts/secrets/",
)
NAME_TAKEN = Rule(
    "KF523",
    seen="`is already the name of …`",
    why="Another object has the name, or the fleet or Kubernetes reserves it.",
    remedy="Use another name",
    source=THE_INPUT,
)
UNUSED = Rule(
    "KF524",
    severity="warning",
    seen="`no queue uses this check`",
    why="An entry is declared, but nothing refers to it; you may pay for it without using it.",
    remedy="Refer to it, or remove it",
)
NO_EFFECT = Rule(
    "KF525",
    severity="warning",
    seen="`has no effect, since …`",
    why="The setting has an effect only with another one, which is off.",
    remedy="Turn the other one on, or remove it",
)
NOT_THERE = Rule(
    "KF526",
    seen="`does not exist on CLUSTER, where the queue does`",
    why="An entry is on fewer clusters than an entry that refers to it.",
    remedy="Add the cluster to its `clusters`, or leave it out of the other's",
    source=THE_INPUT,
)
PROGRAM = Rule(
    "KF527",
    seen="`the program gives …`",
    why="The program that uses the fleet gives `Fleet` an argument that contradicts the file.",
    remedy="Change the file or the program, as the message says",
    source=THE_INPUT,
)
