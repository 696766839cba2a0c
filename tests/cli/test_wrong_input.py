"""What a tired person types: every command answers with a message that says what to do, never with a traceback."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.cli.in_process import Command
from typer.testing import CliRunner

from kueue_admission.cli import input_files
from kueue_admission.cli.console import CommandError
from kueue_fleet.cli import COMMANDS, app

ROOT = Path(__file__).parents[2]
FLEET = "stacks/Pulumi.dws-multikueue.yaml"
PLANNED = "examples/plan/fleet.yaml"
QUOTA = "clusterQueues[dws].resourceGroups[0].flavors[t4-dws].resources[nvidia.com/gpu].nominalQuota"
PROD = "stacks/Pulumi.prod.yaml"
LOAD = "examples/dws-multikueue/workload.yaml"
NEW = "--name x --project my-project --region us-central1"


def _with_a_kubeconfig() -> list[tuple[str, int, str]]:
    """What is wrong with a command that reaches every cluster of a fleet."""
    return [
        ("", 2, "Missing argument 'FILE'"),
        ("nofile", 1, "nofile: no such file"),
        ("prod", 1, "did you mean stacks/Pulumi.prod.yaml?"),
        (LOAD, 1, "is a workload file"),
        (f"{FLEET} --kubeconfig nofile", 1, "nofile: no such file; give a kubeconfig with a context for each cluster"),
        (f"{FLEET} --kubeconfig bad.yaml", 1, "bad.yaml:1: a bracket is opened and not closed"),
        (f"{FLEET} --kubeconfig empty.yaml", 1, "is not a kubeconfig; give a kubeconfig with a context for"),
        (f"{FLEET} --kubeconfig bytes.yaml", 1, "bytes.yaml: is not UTF-8 text (byte 0)"),
        (f"{FLEET} --kubeconfig stacks", 1, "stacks: is a folder; give a kubeconfig with a context for each"),
        (f"{FLEET} --kubeconfig other.yaml", 1, "give a kubeconfig with a context manager-europe-west4"),
    ]


def _of_a_live_fleet() -> list[tuple[str, int, str]]:
    """What is wrong with a command that shows a fleet."""
    return [
        *_with_a_kubeconfig(),
        (f"{FLEET} --every 0", 2, "greater than or equal to 1"),
        (f"{FLEET} --watch -o json", 2, "--watch: shows text only"),
        ("- --prices -", 2, "`-` is given twice; only one can be read from stdin"),
        *_with_a_store(),
    ]


def _with_a_store() -> list[tuple[str, int, str]]:
    """What is wrong with the history of a live fleet."""
    return [
        (f"{FLEET} --store", 2, "Option '--store' requires an argument"),
        (f"{FLEET} --kubeconfig other.yaml --store nofolder", 1, "nofolder: has no history; write it with kueue-fleet"),
        (f"{FLEET} --kubeconfig other.yaml --store s3://bucket", 1, "s3://bucket: is of the kind s3; give a folder"),
    ]


def _of_a_job(more: str = "") -> list[tuple[str, int, str]]:
    """Wrong arguments of a command that takes a job, with `more` behind it."""
    job = f"train{more}"
    return [
        ("", 2, "Missing argument 'JOB'"),
        (f"Train{more} --kubeconfig other.yaml", 2, "JOB 'Train': has characters or a form that are not allowed"),
        (f"a/b/c{more} --kubeconfig other.yaml", 2, "is not a name of a job; write NAME, NAMESPACE/NAME or kind/NAME"),
        (f"job/{more} --kubeconfig other.yaml", 2, "is not a name of a job; write NAME, NAMESPACE/NAME or kind/NAME"),
        (f"{job} -n Vision --kubeconfig other.yaml", 2, "--namespace 'Vision': has characters or a form"),
        (f"a/{job} -n b --kubeconfig other.yaml", 2, "a/train and --namespace b: are two; leave one out"),
        (f"{job} --kubeconfig nofile", 1, "nofile: no such file; give a kubeconfig with a context for each cluster"),
        (f"{job} --kubeconfig bad.yaml", 1, "bad.yaml:1: a bracket is opened and not closed"),
        (f"{job} --kubeconfig stacks", 1, "stacks: is a folder; give a kubeconfig with a context for each"),
        (f"{job} --kubeconfig other.yaml", 1, "other.yaml: has no current context; give --context"),
        (f"{job} --kubeconfig other.yaml --context c", 1, "give a kubeconfig with a context c"),
        (f"{job} --namespac x", 2, "--namespace"),
    ]


# Below each command: arguments, exit code, and what the message says.
WRONG_FILES = [
    ("", 2, "Missing argument 'FILE'"),
    ("nofile", 1, "nofile: no such file"),
    ("prod", 1, "did you mean stacks/Pulumi.prod.yaml?"),
    (LOAD, 1, "is a workload file"),
    ("bad.yaml", 1, "a bracket is opened and not closed"),
    (f"{FLEET} {PROD}", 2, "unexpected extra argument"),
]
"""Of a command that takes one fleet."""
WRONG: dict[str, list[tuple[str, int, str]]] = {
    "": [
        ("chekc", 2, "there is no command chekc; did you mean check?"),
        ("Check", 2, "did you mean check?"),
        ("help", 2, "write kueue-fleet --help"),
        ("--verson", 2, "--version"),
        ("--stack prod", 2, "No such option: --stack"),
        ("kueue-fleet check", 2, "use one of the commands"),
    ],
    "check": [
        ("", 2, "Missing argument 'FILE'"),
        ("nofile.yaml", 1, "nofile.yaml: no such file; give a Pulumi.<env>.yaml"),
        ("prod", 1, "prod: no such file; did you mean stacks/Pulumi.prod.yaml?"),
        ("stacks", 1, "stacks: is a folder; give a Pulumi.<env>.yaml"),
        ("bad.yaml", 1, "error: bad.yaml:1: a bracket is opened and not closed, or a comma is missing: hello: [; "),
        ("empty.yaml", 1, "error: empty.yaml: is empty; write a fleet"),
        ("other.yaml", 1, "clusters: is missing; add a manager and its workers"),
        ("bytes.yaml", 1, "bytes.yaml: is not UTF-8 text"),
        (LOAD, 1, f"error: {LOAD}: is a workload file; give it with --workload"),
        ("examples/prod/jobs.yaml", 1, "holds a Kubernetes object, a List"),
        (f"--out json {FLEET}", 2, "--output"),
        (f"-o yaml {FLEET}", 2, "'yaml' is not one of 'text', 'json'"),
        ("--stack prod", 2, "No such option: --stack"),
        ("-", 1, "is empty; write a fleet"),
    ],
    "schema": [
        (FLEET, 2, "unexpected extra argument"),
        ("--json", 2, "No such option: --json"),
        ("--markdwn", 2, "--markdown"),
        ("-o json", 2, "No such option: -o"),
    ],
    "render": [
        ("", 2, "Missing argument 'FILE'"),
        ("nofile", 1, "nofile: no such file"),
        ("prod", 1, "did you mean stacks/Pulumi.prod.yaml?"),
        ("stacks", 1, "stacks: is a folder"),
        ("bad.yaml", 1, "a bracket is opened and not closed"),
        (f"{FLEET} --cluster worker-us-east", 2, "it has manager-europe-west4, worker-europe-west4"),
        (f"{FLEET} -c", 2, "requires an argument"),
        (f"{FLEET} worker-us-east4", 2, "unexpected extra argument"),
        (f"{FLEET} --output x", 2, "'x' is not one of 'yaml', 'json'"),
        (LOAD, 1, "is a workload file"),
        ("-", 1, "is empty"),
    ],
    "init": [
        ("", 2, "--project: is missing; give your Google Cloud project id"),
        ("My_Fleet --project my-project -y", 2, '"My_Fleet" has characters or a form that are not allowed'),
        ("a/b --project my-project -y", 2, "nothing is written"),
        ("x --project my-project --region us-centrl1 -y", 2, "did you mean us-central1?"),
        ("x --project My_Project -y", 2, "is not a valid project ID"),
        ("x --project my-project --gpus 0", 2, "greater than or equal to 1"),
        ("x --project my-project --gpus many", 2, "valid integer"),
        ("prod --project my-project -y", 1, "already exists; give another name, or --force to replace it"),
        (f"x --project my-project -C {FLEET} -y", 1, f"{FLEET} is not a folder; name another file"),
        ("x --project my-project --region us-central1,us-eats4 -y", 2, "did you mean us-east4?"),
        ("x --project 12345 -y", 2, "is a project's number; give its id"),
        ("x y z", 2, "unexpected extra argument"),
    ],
    "simulate": [
        ("fleet", 2, "Missing argument 'FILE'"),
        (f"fleet {FLEET}", 2, "the jobs are missing; give --workload FILE or --jobs PATH"),
        (f"fleet {FLEET} {LOAD}", 2, "unexpected extra argument"),
        (f"fleet {FLEET} -w nofile.yaml", 1, "nofile.yaml: no such file; give a workload file"),
        (f"fleet {FLEET} -w {FLEET}", 1, "is a fleet, not a workload file"),
        (f"fleet {LOAD} -w {FLEET}", 1, "is a workload file; give it with --workload"),
        ("fleet - -w -", 2, "`-` is given twice; only one can be read from stdin"),
        (f"fleet - -w {LOAD} --prices=-", 2, "`-` is given twice; only one can be read from stdin"),
        (f"fleet {FLEET} -w {LOAD} --seed x", 2, "valid integer"),
        (f"fleet {FLEET} -w {LOAD} --what-if foo", 2, "is not path=value; write it as"),
        (f"fleet {FLEET} -w {LOAD} --what-if clusterQueues[dsw].stopPolicy=Hold", 1, "there is no dsw; write one"),
        (f"fleet {FLEET} -w {LOAD} --what-if jobs[detector].count=many", 1, "write a whole number"),
        (f"fleet {FLEET} -w {LOAD} --until -5", 2, "write 0 to 1,000,000,000"),
        (f"fleet {FLEET} -w {LOAD} --until 1h", 2, "valid number"),
        (f"fleet {FLEET} -w {LOAD} --delay foo=1", 2, "names are decision, burst"),
        (f"fleet {FLEET} -w {LOAD} --max-wait gpu=3", 2, "--max-wait gpu=3: no job comes to this ClusterQueue; use"),
        (f"fleet {FLEET} -w {LOAD} --html -", 2, "--html -: a report goes into a file; name one"),
        (f"fleet {FLEET} -w {LOAD} --html stacks", 1, "--html stacks: is a folder; name a file"),
        (f"fleet {FLEET} -w stacks", 1, "stacks: is a folder; give a workload file"),
        (f"fleet {FLEET} -w examples/jobs/job.yaml", 1, "holds a Kubernetes object, a Job, and not the fields "),
        (f"fleet {FLEET} --jobs {LOAD}", 1, "is a workload file, not a Kubernetes object; give it to simulate"),
        ("objects nofile", 1, "nofile: no such file or folder"),
        ("objects items.json", 1, "has no kind, but items"),
    ],
    "explain": [
        ("", 2, "what to explain is missing"),
        ("train", 2, "give one of: --objects PATH, --stack FILE"),
        ("train --objects nofile", 1, "nofile: no such file or folder"),
        ("train --objects items.json", 1, "has no kind, but items"),
        ("train --objects empty.yaml", 1, "empty.yaml: holds no objects"),
        (f"train --stack {FLEET}", 2, "give one of"),
        (f"detector-3 --stack {FLEET} -w {LOAD}", 2, "give --second SECONDS, the moment to explain"),
        (f"nojob --stack {FLEET} -w {LOAD} --second 100", 1, "there is no workload nojob"),
        (f"a/b/c --stack {FLEET} -w {LOAD} --second 10", 1, "there is no workload a/b/c"),
        (f"detector-3 --stack {FLEET} -w {LOAD} --second -1", 2, "greater than or equal to 0"),
        (f"detector-3 --stack {FLEET} -w nofile --second 1", 1, "nofile: no such file; give a workload file"),
        (f"x --objects {LOAD} --at yesterday", 2, "valid datetime"),
    ],
    "diff": [
        ("", 2, "Missing argument 'OLD'"),
        (FLEET, 2, "Missing argument 'NEW'"),
        (f"{FLEET} nofile", 1, "nofile: no such file"),
        ("- -", 2, "only one can be read from stdin"),
        (f"{FLEET} bad.yaml", 1, "a bracket is opened and not closed"),
        (f"{FLEET} {LOAD}", 1, "is a workload file"),
        (f"{FLEET} {PROD} -w nofile", 1, "nofile: no such file; give a workload file"),
        (f"{FLEET} {PROD} {PROD}", 2, "unexpected extra argument"),
        ("stacks stacks", 1, "stacks: is a folder"),
        (f"{FLEET} {FLEET} --until x", 2, "valid number"),
        (f"{FLEET} {PROD} -o table", 2, "'table' is not one of 'text', 'json'"),
    ],
    "cost": [
        *WRONG_FILES,
        (f"{FLEET} --prices nofile", 1, "nofile: no such file; give a CSV file of prices"),
        (f"{FLEET} --prices stacks", 1, "stacks: is a folder; give a CSV file of prices"),
        (f"{FLEET} --prices {PROD}", 1, "the header is not `of,regions,onDemand,spot,flexStart`; write that line"),
        ("- --prices -", 2, "only one can be read from stdin"),
        (f"{FLEET} --store nofile", 1, "nofile: "),
        (f"{FLEET} --per week", 2, "--per: is for what teams used; give --store too"),
        (f"{FLEET} --store nofile --per day", 2, "'day' is not one of 'week', 'month'"),
        (f"{FLEET} -o csv", 2, "'csv' is not one of 'text', 'json'"),
        (f"{FLEET} --month", 2, "No such option: --month"),
    ],
    "upgrade": [
        (FLEET, 2, "Missing option '--to'"),
        ("", 2, "Missing argument 'FILE'"),
        (f"{FLEET} --to v0.19.2", 2, "--to: v0.19.2 begins with a v; write 0.19.2"),
        (f"{FLEET} --to 0.19", 2, "--to: 0.19 is not a valid version"),
        (f"{FLEET} --to 0.19.2 --rehearse -o json", 2, "--rehearse and --output json: contradict each other"),
        (f"{FLEET} --to 0.18.3 --project .", 2, "--project: is where --rehearse runs the fleet's program"),
        (f"{FLEET} --to 0.20.0 --rehearse", 1, "cannot be rehearsed:"),
        (f"{FLEET} --to newest", 2, "--to: newest is not a valid version; write three numbers, such as 0.19.2"),
        (f"{FLEET} --to 0.16.4", 2, "--to: Kueue 0.16.4 is not known; known are 0.17, 0.18, 0.19, 0.20"),
        (f"{FLEET} --to 0.19.2 --objects nofile", 1, "nofile: no such file"),
        (f"{FLEET} --to 0.19.2 --jobs nofile", 1, "nofile: no such file"),
        (f"{FLEET} --to 0.19.2 -o table", 2, "'table' is not one of 'text', 'json', 'sarif'"),
        ("stacks --to 0.19.2", 1, "stacks: is a folder"),
        ("- --to 0.19.2", 1, "is empty; write a fleet"),
    ],
    "preflight": [
        *WRONG_FILES,
        (f"{FLEET} -o table", 2, "'table' is not one of 'text', 'json'"),
        (f"{FLEET} --project x", 2, "No such option: --project"),
        ("stacks", 1, "stacks: is a folder"),
        ("-", 1, "is empty; write a fleet"),
    ],
    "import": [
        ("", 2, "Missing argument 'CLUSTER[=PATH]...'"),
        (f"a.yaml {NEW}", 2, "'a.yaml' names no cluster; write CLUSTER=a.yaml"),
        (f"a=nofile {NEW}", 1, "nofile: no such file or folder"),
        (f"a=empty.yaml {NEW}", 1, "empty.yaml: holds no objects"),
        (f"a=items.json {NEW}", 1, "items.json:1: has no kind, but items"),
        (f"a={FLEET} {NEW}", 1, "has no kind, but config"),
        (f"a=queues.yaml {NEW} --node-pools nofile", 2, "'nofile' names no cluster; write CLUSTER=nofile"),
        (f"a=queues.yaml {NEW} --node-pools a=nofile", 1, "nofile: no such file; give what gcloud prints"),
        (f"a=queues.yaml {NEW} --node-pools a=other.yaml -o {FLEET}", 1, "already exists"),
        (f"a=queues.yaml {NEW} --mode Autopilot --default-kueue -o {FLEET}/x.yaml", 1, "is not a folder"),
        (f"a=queues.yaml {NEW} --mode auto", 2, "'auto' for a is not a mode; write Autopilot or Standard"),
        (f"a=queues.yaml {NEW}", 1, "clusters[a].mode: is not known"),
        (f"a=queues.yaml a=queues.yaml {NEW}", 2, "a is given twice"),
        ("a=queues.yaml --name x --project my-project", 1, "clusters[a].region: is not known"),
        ("a=queues.yaml --name x --project my-project --region b=us-central1", 2, "there is no cluster b"),
        (f"a=queues.yaml {NEW} --rotate-by soon", 2, "does not match the formats"),
    ],
    "status": _of_a_live_fleet(),
    "top": [*_of_a_live_fleet(), (f"{FLEET} --prices nofile", 1, "nofile: no such file")],
    "describe": [*_of_a_job(), ("train -o yaml", 2, "'yaml' is not one of 'text', 'json'")],
    "logs": [*_of_a_job(), ("train --tail -1", 2, "greater than or equal to 0")],
    "exec": [*_of_a_job(" ls"), ("train", 2, "Missing argument 'CMD'")],
    "cancel": [*_of_a_job(), ("train other", 2, "unexpected extra argument")],
    "when": [
        ("", 2, "Missing argument 'FILE'"),
        (FLEET, 2, "give one of: --job NAME that waits, -f FILE that is not submitted"),
        (f"{FLEET} train", 2, "unexpected extra argument"),
        (f"{FLEET} --job Train --objects queues.yaml", 2, "JOB 'Train': has characters or a form that are not allowed"),
        (f"{FLEET} --job train --objects queues.yaml", 1, "queues.yaml: there is no job train; give -f FILE if"),
        (f"{FLEET} --job train --objects nofile", 1, "nofile: no such file or folder"),
        (f"{FLEET} --job train --kubeconfig nofile", 1, "nofile: no such file; give a kubeconfig"),
        (f"{FLEET} --job train --kubeconfig other.yaml", 1, "give a kubeconfig with a context manager-europe-west4"),
        (f"{FLEET} -f nofile", 1, "nofile: no such file or folder"),
        (f"{FLEET} -f queues.yaml --objects queues.yaml", 1, "is a ResourceFlavor; give jobs only"),
        (f"{FLEET} --job train --run-time 1h", 2, "--run-time '1h': is not a number of seconds; write a number"),
        (f"{FLEET} --job train --seeds 0", 2, "greater than or equal to 1"),
        (f"{LOAD} --job train", 1, "is a workload file"),
    ],
    "submit": [
        ("", 2, "--fleet: is missing; name the fleet file, or set KUEUE_FLEET_FILE"),
        (f"--fleet {FLEET}", 2, "--queue and --image: missing; give them, or a job with -f FILE"),
        ("--fleet nofile -q gpu --image i", 1, "nofile: no such file"),
        (f"--fleet {FLEET} -q gpuu --image i", 1, "queue: there is no LocalQueue gpuu; did you mean gpu?"),
        (f"--fleet {FLEET} -q team-vision/gpu --image i --gpus -1", 2, "greater than or equal to 0"),
        (f"--fleet {FLEET} -q team-vision/gpu --image i --gpus 10000 --dry-run", 1, "never starts"),
        (f"--fleet {FLEET} -q team-vision/gpu --image i --name Train --dry-run", 1, "metadata.name"),
        (f"--fleet {FLEET} -f queues.yaml", 1, "is a ResourceFlavor; give jobs only"),
        (f"--fleet {LOAD} -q gpu --image i", 1, "is a workload file"),
        (f"--fleet {FLEET} -q team-vision/gpu --image i --time 2", 2, "--time 2: is not a valid duration"),
    ],
    "record": [
        ("", 2, "Missing argument 'FILE'"),
        (FLEET, 2, "Missing option '--store'"),
        (f"{FLEET} --store", 2, "Option '--store' requires an argument"),
        (f"{FLEET} --store s3://bucket --once", 1, "s3://bucket: is of the kind s3; give a folder, or gs://BUCKET/PATH"),
        (f"{FLEET} --store nofolder/history --once", 1, "there is no folder"),
        (f"{FLEET} --store made --from nofile", 1, "nofile: no such file"),
        (f"{FLEET} --store made --from queues.yaml", 1, "holds no Workloads; print them with kubectl"),
        (f"{FLEET} --store made --kubeconfig nofile", 1, "nofile: no such file; give a kubeconfig"),
        (f"{FLEET} --store made --every 0", 2, "greater than or equal to 1"),
        (f"{FLEET} --store made --team a", 2, "say what --prune deletes; add --prune"),
        (f"{FLEET} --store made --prune", 2, "deletes nothing without a limit"),
        (f"{LOAD} --store made", 1, "is a workload file"),
    ],
    "replay": [
        ("", 2, "Missing argument 'FILE'"),
        (FLEET, 2, "Missing option '--store'"),
        (f"{FLEET} --store nofolder", 1, "nofolder: has no history; write it with kueue-fleet record"),
        (f"{FLEET} --store gs:/bucket", 1, "has no history"),
        (f"{FLEET} --store x --growth much", 2, "--growth much: is not a factor; write 1.2"),
        (f"{FLEET} --store x --growth -1", 2, "--growth -1: is not a factor; write 1.2"),
        (f"{FLEET} --store x --queue gpu", 2, "--queue gpu: is not OLD=NAMESPACE/QUEUE"),
        (f"{FLEET} --store x --what-if a", 2, "is not path=value"),
        (f"{FLEET} --store x --seeds 0", 2, "greater than or equal to 1"),
        (f"{FLEET} --store x --from soon", 2, "Invalid value for '--from'"),
        (f"{FLEET} --store x -o yaml", 2, "'yaml' is not one of 'text', 'json'"),
    ],
    "evidence": [
        ("", 2, "Missing argument 'FILE'"),
        (FLEET, 2, "Missing option '--store'"),
        (f"{FLEET} --store x --to 2026-12-01", 2, "Missing option '--from'"),
        (f"{FLEET} --store x --from 2026-11-01", 2, "Missing option '--to'"),
        (f"{FLEET} --store x --from 2026-11-01 --to soon", 2, "Invalid value for '--to'"),
        (f"{FLEET} --store x --from 2026-11-01 --to 2026-11-01", 2, "is not after --from; give a later time"),
        (f"{FLEET} --store x --from 2026-11-01 --to 2026-12-01", 1, "none has allowedRegions"),
        (f"{FLEET} --store x --from 2026-11-01 --to 2026-12-01 --team no", 2, "--team no: there is no such team"),
        (f"{FLEET} --store no --from 2026-11-01 --to 2026-12-01 --team team-vision", 1, "no: has no history"),
        (f"{LOAD} --store x --from 2026-11-01 --to 2026-12-01", 1, "is a workload file"),
    ],
    "plan": [
        ("", 2, "Missing argument 'FILE'"),
        (FLEET, 2, "Missing option '--store'"),
        (f"{FLEET} --store x", 1, "says nothing may change; write plan.mayChange, or give --may-change"),
        (f"{FLEET} --store x --may-change a", 2, "a: is not PATH=LOW..HIGH; write it as nodePools[l4].nodeCount=0..8"),
        (f"{FLEET} --store x --may-change a=0..1", 2, "a is not in the file, as there is no a; there are "),
        (f"{FLEET} --store x --may-change clusters=0..1", 2, "clusters is not a whole number in the file"),
        (f"{FLEET} --store x --may-change {QUOTA},{QUOTA}=0..8", 2, "is listed twice; list each path once"),
        (f"{FLEET} --store x --may-change =0..8", 2, '"" is not a path; write it as'),
        (f"{FLEET} --store x --may-change {QUOTA}=0..8/0", 2, "/0: step: 0 is too small; use at least 1"),
        (f"{FLEET} --store x --may-change {QUOTA}=a,a", 2, "a is listed twice; list each value once"),
        (f"{FLEET} --store x --may-change {QUOTA}*0=0..1", 2, "*0 is not a factor"),
        (f"{FLEET} --store x --may-change {QUOTA}=8..1", 2, "least: 8 is more than most, 1; write the lower number"),
        (f"{FLEET} --store x --may-change {QUOTA}=0..10000", 2, "most: gives more than 10,000 levels; write less"),
        (f"{FLEET} --store x --may-change {QUOTA}=8..9", 2, "is 4 in the file, which is none of the levels"),
        (f"{FLEET} --store x --may-change {QUOTA},{QUOTA}*2=1..4", 2, "are of different levels in the file"),
        (f"{FLEET} --store x --may-change {QUOTA}=0..8", 1, "has no goals; set goals of a ClusterQueue or a team"),
        (f"{FLEET} --store x --may-change {QUOTA}=0..8 --budget nan", 2, "greater than or equal to 1"),
        (f"{FLEET} --store x --may-change {QUOTA}=0..8 --fleets 0", 2, "greater than or equal to 1"),
        (f"{FLEET} --store x --may-change {QUOTA}=0..8 --hold-out -1", 2, "greater than or equal to 0"),
        (f"{PLANNED} --store no --may-change nodePools[l4-reserved].nodeCount=1..8", 1, "no: has no history"),
    ],
    "rotate": [
        *_with_a_kubeconfig(),
        (f"{FLEET} --worker worker-us-east", 2, "there is no worker worker-us-east; did you mean worker-us-east4"),
        (f"{FLEET} --worker", 2, "Option '--worker' requires an argument"),
    ],
    "controller": [
        ("", 2, "Missing option '--config'"),
        ("other.yaml", 2, "Missing option '--config'"),
        ("--config other.yaml", 2, "Missing option '--workers'"),
        ("--config nofile --workers stacks", 1, "nofile: "),
        ("--config bad.yaml --workers stacks", 1, "bad.yaml:1: a bracket is opened and not closed"),
        ("--config empty.yaml --workers stacks", 1, "deploy the controller with its component, which writes it"),
        ("--config other.yaml --workers stacks", 1, "deploy the controller with its component, which writes it"),
        ("--config bytes.yaml --workers stacks", 1, "deploy the controller with its component, which writes it"),
        ("--config stacks --workers stacks", 1, "deploy the controller with its component, which writes it"),
        ("--config other.yaml --workers stacks --listen x", 2, "--listen x: has no port; write HOST:PORT"),
    ],
    "rehearse": [
        ("run --stack nostack", 1, "Pulumi.nostack.yaml; use one of the stacks: batch-platform, dev, dws-multikueue"),
        ("run nostack", 1, "Pulumi.nostack.yaml; use one of the stacks: batch-platform, dev, dws-multikueue"),
        ("run dws-multikeue", 1, "Pulumi.dws-multikeue.yaml; did you mean dws-multikueue?"),
        ("run stacks/Pulumi.nostack.yaml", 1, "Pulumi.nostack.yaml: no such file; give one, or the name of a stack"),
        ("run --stack x/Pulumi.prod.yaml", 1, "x/Pulumi.prod.yaml: no such file; give one, or the name of a stack"),
        ("run elsewhere/Pulumi.prod.yaml", 1, "is not the file of stack prod, which is "),
        (f"run {PROD} --project examples", 1, "no such file; run this in a Pulumi project, or name one with --project"),
        ("run other.yaml", 1, "other.yaml does not describe a fleet:"),
        ("run --stack other.yaml", 1, "other.yaml does not describe a fleet:"),
        ("run nofile.yaml", 1, "nofile.yaml: no such file; give one, or the name of a stack"),
        (f"run {PROD} --stack prod", 2, f"{PROD} and --stack prod: both name the stack; leave one of them out"),
        ("run --stack a/b", 1, "not a stack name"),
        ("run --stack=", 2, "--stack: is empty; give a value, or leave the option out"),
        ("run --project nodir", 1, "no such file; run this in a Pulumi project, or name one with --project"),
        ("run --project bad.yaml", 1, "bad.yaml: is a file; name the folder with Pulumi.yaml"),
        ("run --jobs nofile", 1, "nofile: "),
        ("run --jobs bad.yaml", 1, "bad.yaml"),
        ("run --jobs other.yaml", 1, "other.yaml:1: has no kind, but a; write apiVersion and kind"),
        ("up --keep", 2, "No such option: --keep"),
        ("reclaim-spot foo", 1, "no rehearsal of dws-multikueue is running; run kueue-fleet rehearse up --stack"),
        ("reclaim-spot a=x", 2, "write CLUSTER, CLUSTER/POOL or CLUSTER/POOL=COUNT"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("wrong")
    for name in ("stacks", "examples"):
        shutil.copytree(ROOT / name, result / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    shutil.copy(ROOT / "Pulumi.yaml", result)
    (result / "elsewhere").mkdir()
    shutil.copy(ROOT / PROD, result / "elsewhere")
    texts = {"bad.yaml": b"hello: [\n", "empty.yaml": b"", "other.yaml": b"a: 1\n", "bytes.yaml": b"\xff\xfe\x00"}
    texts["items.json"] = b'{"items": 3}'
    texts["queues.yaml"] = b"apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: f}\n"
    for name, text in texts.items():
        (result / name).write_bytes(text)
    return result


def test_every_command_is_mistyped() -> None:
    assert set(WRONG) == {"", *COMMANDS}
    assert all(len(wrong) >= 10 for name, wrong in WRONG.items() if name not in ("", "schema"))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [pytest.param(f"{name} {rest}".strip(), code, says) for name, wrong in WRONG.items() for rest, code, says in wrong],
)
def test_it_is_said_what_to_do(
    arguments: str, code: int, says: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KUEUE_FLEET_STATE_DIR", str(folder / "state"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if "state" not in path.parts}
    result = CliRunner().invoke(app, arguments.split(), input="", env={**os.environ, "COLUMNS": "500", "NO_COLOR": "1"})
    if isinstance(result.exception, CommandError):
        results, message = result.exception.exit_code, str(result.exception)
    else:
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        results, message = result.exit_code, " ".join(result.output.split())
    assert says in message
    assert results == code
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize("text", ["a: [", "a: 1", "jobs: [{name: a}]"])
@pytest.mark.parametrize(
    "arguments",
    [
        f"simulate fleet {FLEET} -w -",
        f"simulate fleet - -w {LOAD}",
        "simulate objects -",
        f"simulate fleet {FLEET} -w - --what-if jobs[a].count=2",
        f"diff {FLEET} {FLEET} -w -",
        f"cost {FLEET} --prices -",
        f"check {FLEET} --jobs -",
        "explain default/a --objects -",
        f"explain team-a/a --stack {FLEET} -w - --second 5",
        "import a=- --name a --project my-project --region us-central1 --mode Autopilot",
    ],
)
def test_standard_input_is_called_so(arguments: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, arguments.split(), input=text)
    output = str(result.exception)
    assert result.exit_code == 1
    assert output.removeprefix("the input has 2 errors:\n  ").startswith("<stdin>")


def test_a_wrong_choice_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ended = Command(monkeypatch, capsys)("check f -o xml")
    wrong = "check: Invalid value for '--output' / '-o': 'xml' is not one of 'text', 'json', 'github', 'sarif'"
    assert f"{wrong}; see " in ended.err


def test_a_byte_order_mark_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "objects.json"
    file.write_bytes(b'\xef\xbb\xbf{"kind": "List", "items": []}')
    command = Command(monkeypatch, capsys)
    assert command(f"simulate objects {file}").err.startswith(f"error: {file}: holds no objects; ")
    assert command("simulate objects -", file.read_bytes()).err.startswith("error: <stdin>: holds no objects; ")


def test_endless_input_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(input_files, "_MOST_CHARACTERS", 100_000)
    command = Command(monkeypatch, capsys)
    output = "has more than 100,000 characters; give a Pulumi.<env>.yaml or a fleet YAML"
    assert output in command("check /dev/zero").err
    assert output in command("check -", b"a" * 100_001).err


def test_a_link_to_nothing_in_a_folder_of_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").symlink_to("gone")
    ended = Command(monkeypatch, capsys)(f"simulate objects {tmp_path}")
    assert ended.err == f"error: {tmp_path / 'a.yaml'}: no such file; give one with Kubernetes objects\n"
