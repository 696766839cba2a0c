"""The report of an example, the live page and the dashboard, and their pictures for the pages: `make screenshots`."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from playwright.sync_api import Browser, sync_playwright
from tests.browser.grafana.dashboard_page import page, shown
from tests.cli.test_ui_server import SUMMARY, job, running
from typer.testing import CliRunner

from kueue_fleet.cli import app
from kueue_fleet.cli.ui_server import View
from needed_programs import CHROMIUM

ROOT: Final = Path(__file__).parents[2]
PICTURES: Final = ROOT / "docs" / "images"
PICTURE_LOOKS: Final[dict[str, tuple[int, Literal["light", "dark"]]]] = {
    "light": (1280, "light"),
    "dark": (1280, "dark"),
    "phone": (390, "dark"),
}
"""Width and colours of each picture."""
HEIGHT: Final = 1200
SHOWN: Final = (
    "stacks/Pulumi.dws-multikueue.yaml",
    *("-w", "examples/dws-multikueue/workload.yaml"),
    *("--seed", "7"),
    *("--what-if", "jobs[detector].count=30"),
)

MANAGER, EUROPE, AMERICA = "manager-europe-west4", "worker-europe-west4", "worker-us-east4"
NO_GPUS = "couldn't assign flavors: insufficient unused quota for nvidia.com/gpu in flavor multikueue, 4 more needed"
WHY = {
    "reason": "WaitingForQuota",
    "message": NO_GPUS,
    "why": "It asks for 4 nvidia.com/gpu; 0 of 48 is free on the worker clusters together, 4 is missing.",
    "next": "Wait until 4 more nvidia.com/gpu on a worker cluster is free for ClusterQueue vision.",
    "place": "1 of 2 in ClusterQueue vision",
    "start": "p50 2026-11-27T10:12:00Z, p90 2026-11-27T10:31:00Z",
}
LIVE: Final = View(
    SUMMARY
    | {
        "fleet": "atlas",
        "clusters": [
            {**SUMMARY["clusters"][0], "name": name, "role": role, "pending": waits, "reserved": 1, "admitted": runs}
            for name, role, waits, runs in (
                (MANAGER, "manager", 2, 14),
                (EUROPE, "worker", 1, 9),
                (AMERICA, "worker", 0, 5),
            )
        ],
        "queues": [
            {
                "name": queue, "cluster": cluster, "active": True, "reason": "", "pending": pending, "admitted": 4,
                "use": [{"flavor": of, "resource": "nvidia.com/gpu", "used": used, "nominal": quota, "borrowed": over}],
            }
            for queue, cluster, of, used, quota, over, pending in (
                ("vision", EUROPE, "l4", "32", "32", "0", 1),
                ("language", EUROPE, "h100", "24", "64", "0", 0),
                ("vision", AMERICA, "l4", "20", "16", "4", 0),
            )
        ],
        "teams": [
            {"team": "vision", "jobs": 9, "gpus": 52, "borrowed": 4, "waitingJobs": 2, "waitingGpus": 12},
            {"team": "language", "jobs": 5, "gpus": 24, "borrowed": 0, "waitingJobs": 0, "waitingGpus": 0},
        ],
    },
    [
        job("detector-7", namespace="vision", queue="main", cluster=MANAGER, **WHY),
        job("detector-8", namespace="vision", queue="main", cluster=MANAGER, seconds=50.0),
        job("tuning-3", "Admitted", namespace="language", queue="main", cluster=EUROPE, seconds=90_000.0),
    ],
)  # fmt: skip
"""What the picture of the live page shows."""


def write_report(arguments: list[str], folder: Path) -> Path:
    """A report, by the command."""
    file, here = folder / "report.html", Path.cwd()
    os.chdir(ROOT)
    try:
        result = CliRunner().invoke(app, ["simulate", "fleet", *arguments, "--html", str(file)])
    finally:
        os.chdir(here)
    assert result.exit_code == 0, result.output
    return file


def main() -> None:
    """Take the pictures, and print where they are."""
    PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM.path(), args=["--no-sandbox"])
        # The day on which the picture is taken is not what it shows.
        date = (
            "[...document.querySelectorAll('dt')].find((each) => each.textContent === 'Date')?.parentElement.remove()"
        )
        take(browser, "report", write_report([*SHOWN], Path(folder)).as_uri(), "h1", date)
        with running(LIVE) as url:
            take(browser, "live-page", url, "[data-job]")
        with page(shown(MANAGER)) as url:
            take(browser, "dashboard", url, "[data-panel] canvas", height=740)
        browser.close()


def take(browser: Browser, name: str, url: str, ready: str, script: str = "null", height: int = HEIGHT) -> None:
    """A picture for each look, once what `ready` selects is there and `script` has run."""
    for look, (width, colours) in PICTURE_LOOKS.items():
        tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
        tab.goto(url, wait_until="networkidle")
        tab.wait_for_selector(ready)
        tab.evaluate(script)
        file = PICTURES / f"{name}-{look}.png"
        tab.screenshot(path=file)
        print(file)


if __name__ == "__main__":
    main()
