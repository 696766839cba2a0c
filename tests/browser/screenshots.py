"""The report of an example, as a command writes it, and its pictures for the pages: `make screenshots`."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from kueue_fleet.cli import app
from needed_programs import CHROMIUM

ROOT: Final = Path(__file__).parents[2]
PICTURES: Final = ROOT / "docs" / "images"
SIZES: Final = {"wide": (1280, 1500), "narrow": (400, 1500)}
SHOWN: Final = (
    "stacks/Pulumi.dws-multikueue.yaml",
    *("-w", "examples/dws-multikueue/workload.yaml"),
    *("--seed", "7"),
    *("--what-if", "jobs[detector].count=30"),
)


def write_report(arguments: list[str], folder: Path) -> Path:
    """A report, by the command."""
    file, here = folder / "report.html", Path.cwd()
    os.chdir(ROOT)
    try:
        done = CliRunner().invoke(app, ["simulate", "fleet", *arguments, "--html", str(file)])
    finally:
        os.chdir(here)
    assert done.exit_code == 0, done.output
    return file


def main() -> None:
    """Take the pictures, and print where they are."""
    PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        file = write_report([*SHOWN], Path(folder))
        browser = driver.chromium.launch(executable_path=CHROMIUM.path(), args=["--no-sandbox"])
        for name, (width, height) in SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(file.as_uri())
            # The day on which the picture is taken is not what it shows.
            page.locator("dt", has_text="Date").locator("..").evaluate("(pair) => pair.remove()")
            page.screenshot(path=PICTURES / f"report-{name}.png")
            print(PICTURES / f"report-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
