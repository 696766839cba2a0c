"""What `make site` does beyond MkDocs' own: pages from outside docs/ and of classes, links, the navigation."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "index.md": "README.md",
    "kueue-admission.md": "components/kueue_admission/README.md",
    "policies.md": "policies/README.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "examples.md": "examples/README.md",
    "contributing.md": "CONTRIBUTING.md",
}
"""Pages of the site by the file that they are made from."""
CLASSES = {
    "python/components.md": (
        "Components",
        ("kueue_fleet.fleet", "kueue_fleet.fleet_inputs", "kueue_fleet.gcp_components", "kueue_fleet.kueue_components"),
    ),
    "python/reading.md": (
        "Read, check and print",
        ("kueue_admission.kernel", "kueue_fleet.fleet_file", "kueue_fleet.objects"),
    ),
    "python/fleet-file.md": ("What the fleet file has", ("kueue_fleet.fleet_file.model", "kueue_fleet.settings")),
    "python/jobs.md": ("Submit jobs", ("kueue_fleet.cli", "kueue_fleet.jobs")),
    "python/kueue-objects.md": ("Kueue's objects and Configuration", ("kueue_admission.api",)),
}
"""Pages of all that `import kueue_fleet` has: title and packages; a name goes to the longest package that fits."""
DOORS = ("platform.md", "members.md", "program.md", "look-up.md", "contributing.md")
"""Pages that list the others, each with its title: the navigation."""
_ITEM = re.compile(r"- \[([^]]+)\]\(([^):#]+\.md)\)")
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the navigation the lists of the doors; Python's classes are below those for programs."""
    doors = [_door(Path(config.docs_dir), name) for name in DOORS]
    next(iter(doors[2].values())).append({"Classes": list(CLASSES)})
    config.nav = [{"Start": "index.md"}, *doors]
    return config


def _door(docs: Path, name: str) -> dict[str, list[object]]:
    """The pages below one door: those that its list items begin with, below its headings."""
    page = ROOT / PAGES[name] if name in PAGES else docs / name
    title, *lines = page.read_text(encoding="utf-8").splitlines()
    sites = {(ROOT / source).resolve(): site for site, source in PAGES.items()}
    nav: list[object] = [name]
    groups: dict[str, list[object]] = {"": nav}
    heading = ""
    for line in lines:
        if line.startswith("## "):
            heading = line.removeprefix("## ") if name == DOORS[0] else ""
        elif item := _ITEM.match(line):
            target = (page.parent / item[2]).resolve()
            if heading not in groups:
                groups[heading] = []
                nav.append({heading: groups[heading]})
            groups[heading].append({item[1]: sites.get(target) or target.relative_to(docs).as_posix()})
    return {title.removeprefix("# "): nav}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and those of the classes."""
    for name, content in _classes().items():
        files.append(File.generated(config, name, content=content))
    for name, source in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def _classes() -> dict[str, str]:
    """What mkdocstrings fills: each public name, on the page of its package."""
    stub = ast.parse((ROOT / "components" / "kueue_fleet" / "__init__.pyi").read_text(encoding="utf-8"))
    homes = {
        alias.name: node.module or "" for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    page_of = {package: page for page, (_, packages) in CLASSES.items() for package in packages}
    pages = {
        page: f"# {title}\n\nIn programs: `import kueue_fleet as kf`; see [Programs](../programs.md).\n"
        for page, (title, _) in CLASSES.items()
    }
    for name, home in sorted(homes.items()):
        package = max((package for package in page_of if f"{home}.".startswith(f"{package}.")), key=len)
        pages[page_of[package]] += f"\n::: {home}.{name}\n"
    return pages


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to pages at the site, and links to other files at the repository."""
    name = page.file.src_uri
    here = (ROOT / PAGES[name] if name in PAGES else Path(config.docs_dir) / name).parent
    by_file = {(ROOT / source).resolve(): page for page, source in PAGES.items()}

    def moved(link: re.Match[str]) -> str:
        if re.match(r"[a-z]+:", link[2]):
            return link[0]
        target = (here / link[2]).resolve()
        if target in by_file:
            place = by_file[target]
        elif target.is_relative_to(config.docs_dir) and target.suffix in (".md", ".png"):
            place = target.relative_to(config.docs_dir).as_posix()
        elif target.exists():
            kind = "tree" if target.is_dir() else "blob"
            return f"{link[1]}{config.repo_url}/{kind}/main/{target.relative_to(ROOT).as_posix()}{link[3]}"
        else:
            return link[0]  # MkDocs says that it is broken.
        up = "../" * name.count("/")
        return f"{link[1]}{up}{place}{link[3]}"

    return _LINK.sub(moved, markdown)
