"""What others publish to be applied: jobs, queues and Configurations in the modules of Kueue and of jobs' operators,
and of platforms.

The modules are those from which the engines are built, so that Go's cache has them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from kueue_admission.api.job_kinds import KINDS
from kueue_rehearsal.engines.build import download_modules
from kueue_rehearsal.engines.cache import EngineCache
from kueue_rehearsal.engines.catalogue import ENGINES
from kueue_rehearsal.engines.toolchain import find_go, install_go
from kueue_rehearsal.paths import engines_dir

Json = dict[str, Any]
Path_ = tuple[str | int, ...]
MODULES: Final[Mapping[str, Sequence[str]]] = {
    "sigs.k8s.io/kueue": ("cmd/**/*.yaml", "test/e2e/config/**/*.yaml", "test/performance/**/*.yaml"),
    "sigs.k8s.io/jobset": ("config/samples/*.yaml",),
    "sigs.k8s.io/lws": ("config/samples/*.yaml", "docs/examples/**/*.yaml"),
    "github.com/ray-project/kuberay/ray-operator": ("config/samples/**/*.yaml",),
    "github.com/kubeflow/trainer/v2": ("examples/**/*.yaml",),
    "github.com/kubeflow/training-operator": ("examples/**/*.yaml",),
    "github.com/kubeflow/mpi-operator": ("examples/**/*.yaml",),
}
"""The folders of each module that are for its users."""
PLATFORMS: Final = Path(__file__).with_name("files_of_platforms.yaml")
"""What no module has: Google's tools and examples, as facts."""
DEFINITIONS: Final = (
    "config/crd/bases/*.yaml",
    "manifests/base/crds/*.yaml",
    "manifests/base/kubeflow.org_mpijobs.yaml",
)
JOBS: Final = {kind.kind: framework for framework, kind in KINDS.items()}
MANY_CHANGES: Final = 12
"""Of each file; which ones, a hash says."""


class Published(NamedTuple):
    """An object of a file: `where` is the file and the number of the document."""

    where: str
    data: Json


def module_folders() -> Mapping[str, Path]:
    """The folder of each module."""
    cache = EngineCache(engines_dir())
    go = find_go(os.environ) or install_go(cache, os.environ)
    kueue = next(engine for engine in ENGINES if engine.name == "kueue")
    return download_modules(kueue, list(MODULES), cache, go)


def of_platforms() -> Iterator[Published]:
    """Objects as the tools and examples of platforms write them."""
    for number, data in enumerate(_documents(PLATFORMS)):
        yield Published(f"{PLATFORMS.name}#{number}", json.loads(json.dumps(data)))


def published(folders: Mapping[str, Path]) -> Iterator[Published]:
    """Every object that is whole, each once."""
    yield from of_platforms()
    seen = set()
    for module, folder in folders.items():
        for file in sorted({file for pattern in MODULES[module] for file in folder.glob(pattern)}):
            for number, data in enumerate(_documents(file)):
                text = json.dumps(data, sort_keys=True, default=str)
                if text not in seen and isinstance(data.get("metadata", {}), dict):
                    seen.add(text)
                    yield Published(f"{module}/{file.relative_to(folder)}#{number}", json.loads(text))


def definitions(folders: Mapping[str, Path]) -> Iterator[Json]:
    """The definitions of kinds of jobs, without the webhooks that convert between their versions."""
    versions = {kind.kind: kind.version for kind in KINDS.values()}
    for folder in folders.values():
        for file in sorted({file for pattern in DEFINITIONS for file in folder.glob(pattern)}):
            for data in _documents(file):
                kind = data.get("spec", {}).get("names", {}).get("kind", "")
                served = [item["name"] for item in data.get("spec", {}).get("versions", ())]
                if kind != "JobSet" and versions.get(kind) in served:
                    data["spec"].pop("conversion", None)
                    yield data


def _documents(file: Path) -> list[Json]:
    text = file.read_text(errors="replace")
    if "{{" in text or not re.search(r"^kind:", text, re.MULTILINE):
        return []  # a template
    try:
        return [item for item in yaml.load_all(text, yaml.CSafeLoader) if isinstance(item, dict)]
    except yaml.YAMLError:
        return []  # no YAML, as some examples of others are


def changes(each: Published, data: Json) -> Iterator[tuple[str, Json]]:
    """Some of the objects that differ from `data` in one field, with what was changed."""
    result = [(how, path) for path in _paths(data["spec"], ("spec",)) for how in _HOW]
    for how, path in sorted(result, key=lambda change: sha256(repr((each.where, change)).encode()).digest())[
        :MANY_CHANGES
    ]:
        changed = deepcopy(data)
        place: Any = changed
        for step in path[:-1]:
            place = place[step]
        _HOW[how](place, path[-1])
        yield f"{how} {'.'.join(map(str, path))}", changed


def _paths(value: Any, path: Path_) -> Iterator[Path_]:
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for step, child in items:
        # What GKE reads, and the roles that an operator knows, no API server looks at.
        if not ("gke" in str(step) or str(path[-1]).endswith("ReplicaSpecs")):
            yield (*path, step)
        yield from _paths(child, (*path, step))


def _drop(place: Any, step: Any) -> None:
    del place[step]


def _misspell(place: Any, step: Any) -> None:
    if isinstance(place, dict):
        place[f"{step}z"] = place.pop(step)


def _retype(place: Any, step: Any) -> None:
    value = place[step]
    place[step] = "many" if isinstance(value, int) else 7 if isinstance(value, str) else "x"


def _rescale(place: Any, step: Any) -> None:
    value = place[step]
    negative = isinstance(value, int) and not isinstance(value, bool)
    place[step] = -value if negative else f"{value} GB" if isinstance(value, str) else [value]


def _empty(place: Any, step: Any) -> None:
    place[step] = None


_HOW: Final[Mapping[str, Callable[[Any, Any], None]]] = {
    "drop": _drop,
    "misspell": _misspell,
    "retype": _retype,
    "rescale": _rescale,
    "empty": _empty,
}
