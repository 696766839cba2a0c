"""The commands of `kueue-admission`."""

from __future__ import annotations

from typing import Final

from kueue_admission.cli import application, run_process
from kueue_admission.cli.application import Listed

COMMANDS: Final = {
    "explain": Listed("kueue_admission.cli.explain", "Explain why a workload is pending, and what would change it."),
    "simulate": Listed("kueue_admission.cli.simulate", "Show when jobs would be admitted, without a cluster."),
}
"""The commands, in the order of `--help`."""

app = application.application(
    "kueue-admission",
    COMMANDS,
    "What Kueue decides, from its objects alone: explained for one moment, simulated over time.",
    "Exit codes: 0 done; 1 the input or the run has errors, which are on stderr; 2 the command line is not valid; "
    "3 jobs would wait longer than --max-wait; 130 interrupted. Output is plain text where NO_COLOR is set or it is "
    "not a terminal.",
)
"""The command line as typer knows it."""


def main() -> None:
    """Run the command line, and exit."""
    run_process(lambda: application.run(app))
