"""The dashboard of a fleet, judged by Grafana's schema, and on a page that draws it with Grafana's own components.

Both come from npm, at the versions of `package-lock.json`, and are installed once, into the cache of engines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final, NamedTuple

from tests.browser.grafana.fleet_metrics import END, fleet_metrics
from tests.engines.node import node_folder

from alerting import evaluate_series
from kueue_fleet.objects.monitoring import render_grafana
from kueue_rehearsal.engines import EngineCache
from kueue_rehearsal.paths import engines_dir

HERE: Final = Path(__file__).parent
BETWEEN: Final = (3000.0, END - 600)
"""What the page shows, in seconds."""
STEP: Final = 180
KEPT: Final = ("@grafana/data", "@grafana/prometheus", "@grafana/schema", "typescript")
"""Packages that the schema needs; the others are in the page."""
Board = dict[str, Any]
Series = dict[str, Any]


@cache
def grafana() -> tuple[Path, Path]:
    """Node.js, and the folder with the page, its icons and fonts, and the packages with Grafana's schema."""
    store = EngineCache(engines_dir())
    bin_folder = node_folder(store, os.environ)
    sources = [HERE / name for name in ("package.json", "package-lock.json", "page.tsx")]
    key = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]

    def install(folder: Path) -> None:
        run = partial(
            subprocess.run, check=True, cwd=folder, env=os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
        )
        for source in sources:
            shutil.copy(source, folder)
        run([bin_folder / "npm", "ci", "--silent", "--ignore-scripts", "--legacy-peer-deps"])
        bundle = ["--bundle", "--minify", "--jsx=automatic", "--loader:.ttf=empty", "--log-level=warning"]
        production = '--define:process.env.NODE_ENV="production"'
        run(["node_modules/.bin/esbuild", "page.tsx", *bundle, production, "--outfile=page.js"])
        installed, public = folder / "node_modules", folder / "public"
        shutil.copytree(installed / "@grafana" / "ui" / "dist" / "public", public / "build")
        (public / "fonts" / "inter").mkdir(parents=True)
        for name, weight in (("Regular", 400), ("Medium", 500)):
            font = installed / "@fontsource" / "inter" / "files" / f"inter-latin-{weight}-normal.woff2"
            shutil.copy(font, public / "fonts" / "inter" / f"Inter-{name}.woff2")
        installed.rename(folder / "all")
        for package in KEPT:
            shutil.copytree(folder / "all" / package, installed / package)
        shutil.rmtree(folder / "all")

    with store.locked("grafana-page", waiting=lambda: None):
        return bin_folder / "node", store.entry("grafana-page", key) or store.store("grafana-page", key, install)


COMPOSABLE: Final = "@grafana/schema/dist/esm/raw/composable"
OPTIONS: Final = {"timeseries": "TimeSeriesPanelCfg", "heatmap": "HeatmapPanelCfg"}
"""Where Grafana's schema has the options of each type of panel, and what it draws of a field."""
TYPES: Final = """\
import type { Dashboard, FieldConfig, FieldConfigSource, Panel, RowPanel, VariableModel } from '@grafana/schema';
import type { Prometheus } from './node_modules/@grafana/prometheus/dist/types/dataquery';
type Plain<T> = T extends string ? `${T}` : T extends (infer E)[] ? Plain<E>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
"""
"""Enums are written as their values in JSON."""


def schema_problems(board: Board) -> list[str]:
    """What Grafana's published schema says of a dashboard, each with the title of its panel."""
    node, folder = grafana()
    lines = [*TYPES.splitlines()]
    titles = [""] * len(lines)
    for number, (title, typed, value) in enumerate(_parts(board)):
        lines.append(f"export const part{number}: {typed} = {json.dumps(value)};")
        titles.append(title)
    with TemporaryDirectory() as work:
        (Path(work) / "node_modules").symlink_to(folder / "node_modules")
        (Path(work) / "board.ts").write_text("\n".join(lines))
        compiler = [
            str(node),
            "node_modules/typescript/lib/tsc.js",
            "board.ts",
            "--noEmit",
            "--strict",
            "--skipLibCheck",
        ]
        options = ["--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--pretty", "false"]
        result = subprocess.run([*compiler, *options], cwd=work, capture_output=True, text=True, check=False)
    results = re.findall(r"^board\.ts\((\d+),\d+\): error \w+: (.*)$", result.stdout, re.MULTILINE)
    assert bool(results) == bool(result.returncode), result.stdout + result.stderr
    return [f"{titles[int(line) - 1]}: {message}" for line, message in results]


def _parts(board: Board) -> Iterator[tuple[str, str, Any]]:
    """What has a type of its own in Grafana's schema: a title, the type in TypeScript, and the value.

    TypeScript names unknown keys only where nothing else is allowed, so what the schema leaves open goes apart.
    """
    yield "", "Plain<Omit<Dashboard, 'panels' | 'templating'>>", _without(board, "panels", "templating")
    yield "", "{ list: Plain<VariableModel>[] }", board["templating"]
    for panel in board["panels"]:
        title = panel["title"]
        if panel["type"] == "row":
            yield title, "Plain<RowPanel>", panel
            continue
        config = panel["fieldConfig"]
        module = f"import('{COMPOSABLE}/{panel['type']}/panelcfg/x/{OPTIONS[panel['type']]}_types.gen')"
        yield (
            title,
            "Plain<Omit<Panel, 'fieldConfig' | 'options' | 'targets'>>",
            _without(panel, "fieldConfig", "options", "targets"),
        )
        yield title, f"Partial<Plain<{module}.Options>>", panel["options"]
        yield title, "Plain<Prometheus>[]", panel["targets"]
        yield title, "Plain<Omit<FieldConfigSource, 'defaults'>>", _without(config, "defaults")
        yield title, "Plain<Omit<FieldConfig, 'custom'>>", _without(config["defaults"], "custom")
        yield title, f"Plain<{module}.FieldConfig>", config["defaults"].get("custom", {})


def _without(given: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in keys}


class Shown(NamedTuple):
    """What a page shows."""

    board: Board
    answers: Mapping[str, Any]
    """Of Prometheus to each query, by its text."""
    filters: str = "none"


@cache
def example() -> tuple[Board, Sequence[Series]]:
    """The dashboard of the example fleet as it is rendered, and its metrics."""
    fleet, metrics = fleet_metrics()
    (config_map,) = render_grafana(fleet, fleet.home)
    series = [{"metric": dict(labels), "values": values} for labels, values in metrics.series()]
    return json.loads(config_map["data"]["kueue-fleet.json"]), series


def shown(cluster: str = "") -> Shown:
    """The dashboard of the example fleet with its answers; those of one cluster, where the filters name it."""
    board, every = example()
    answers = {}
    for query in (target["expr"] for panel in board["panels"] for target in panel.get("targets", [])):
        named = {*re.findall(r"\w+", query)}
        about = [entry for entry in every if entry["metric"]["__name__"] in named]
        about = [item for item in about if item["metric"]["cluster"] == (cluster or item["metric"]["cluster"])]
        answers[query] = evaluate_series(query, about, BETWEEN, STEP)
    return Shown(board, answers, *([f"cluster = {cluster}"] if cluster else []))


@contextmanager
def page(what: Shown) -> Iterator[str]:
    """The URL of a page that shows a dashboard."""
    _, folder = grafana()
    script = json.dumps({**what._asdict(), "from": BETWEEN[0], "to": BETWEEN[1], "step": STEP}).replace("<", "\\u003c")
    with TemporaryDirectory() as work:
        for name in ("page.js", "page.css", "public"):
            (Path(work) / name).symlink_to(folder / name)
        (Path(work) / "index.html").write_text(
            '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css"><body style="margin: 0">'
            f'<div id="root"></div><script>window.shown = {script}</script><script src="page.js"></script>'
        )
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=work)) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}/"
            server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing is said of requests."""
