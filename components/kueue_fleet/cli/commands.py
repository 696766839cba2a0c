"""The commands of `kueue-fleet`."""

from __future__ import annotations

from typing import Final

from kueue_admission.cli import application
from kueue_admission.cli.application import Listed
from kueue_admission.kernel.names import PRODUCT


def _listed(module: str, text: str, extra: str = "", group: str = "", instead: str = "") -> Listed:
    return Listed(f"{__package__}.{module}", text, extra, group, instead)


_DESCRIBE: Final = "Describe a fleet"
_RUN: Final = "Run a fleet"
_USE: Final = "Use a fleet, as a member of a team"
_PLAN: Final = "Plan a fleet"

COMMANDS: Final = {
    "init": _listed("init", "Write a first fleet file that works.", group=_DESCRIBE),
    "import": _listed("adopt", "Write a fleet file from the objects of existing clusters.", group=_DESCRIBE),
    "check": _listed("check", "Check fleet files against every rule, no cluster needed.", group=_DESCRIBE),
    "diff": _listed("diff", "Show what differs between two fleet files, team by team.", group=_DESCRIBE),
    "render": _listed("spec_commands", "Print every Kubernetes object of a fleet as YAML.", group=_DESCRIBE),
    "simulate": _listed("simulate", "Show when and where jobs would run, without a cluster.", group=_DESCRIBE),
    "rehearse": _listed(
        "rehearse", "Bring a stack up on real control planes here, and run jobs.", "rehearsal", _DESCRIBE
    ),
    "cost": _listed("cost", "Show what a fleet costs, used or not, by hour and month.", group=_DESCRIBE),
    "preflight": _listed("preflight", "Check whether a fleet fits into its Google Cloud project.", "preflight", _RUN),
    "status": _listed("status", "Show a live fleet: queues, what waits and why, use, or as a page.", group=_RUN),
    "upgrade": _listed("upgrade", "Show what another release of Kueue breaks in a fleet.", group=_RUN),
    "submit": _listed("submit", "Write the job that a queue needs, check it, and submit it.", group=_USE),
    "describe": _listed("jobs", "Show one job: where it runs, its pods, or why it waits.", group=_USE),
    "explain": _listed("explain", "Explain why a workload is pending, and what would change it.", group=_USE),
    "when": _listed("when", "Estimate when a job starts that waits, or is not submitted yet.", group=_USE),
    "logs": _listed("jobs", "Print the logs of a job, from the cluster that runs it.", group=_USE),
    "cancel": _listed("jobs", "Delete a job where it was submitted, and so everywhere.", group=_USE),
    "record": _listed("record", "Write what happens to jobs into Parquet files, by day.", "history", _PLAN),
    "replay": _listed("replay", "Replay recorded jobs through a fleet, as it is or changed.", "history", _PLAN),
    "plan": _listed("plan", "Find the cheapest fleet that meets its goals with recorded jobs.", "history", _PLAN),
    # For machines, and for what few need.
    "controller": _listed("controller", "Run the fleet's own dispatcher, checks and watchdog.", "controller"),
    "schema": _listed("spec_commands", "Print the JSON schema of a stack file, for editors."),
    "rotate": _listed("rotate", "Replace the tokens by which the manager reaches the workers.", "controller"),
    "evidence": _listed("evidence", "Show where the jobs of teams ran, and whether they were allowed to.", "history"),
    "exec": _listed("jobs", "Run a command in a pod of a job, wherever it runs."),
    # An old name.
    "top": _listed("top", "Show who uses the GPUs now, and what each team used.", instead="status --usage"),
}
"""The commands, in the order of `--help`."""

app = application.application(
    PRODUCT,
    COMMANDS,
    "Describe a GPU batch fleet in one file; check, simulate, rehearse and run it. Begin with `kueue-fleet init`. "
    "`kueue-fleet COMMAND --help` has examples.",
    "Exit codes: 0 done; 1 the fleet, its input or the run has errors, which are on stderr; 2 the command line is "
    "not valid; 3 a goal is missed; 130 interrupted. Not in the list: controller, schema, rotate, evidence, exec.",
)
"""The command line as typer knows it."""


def run() -> int:
    """Run the command that was typed, and return its exit code. Raises OutputClosedError of what it prints."""
    return application.run(app)
