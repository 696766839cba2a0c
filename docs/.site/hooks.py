"""What `make site` does beyond MkDocs' own: pages from outside docs/, links to the repository, and the navigation."""

from __future__ import annotations

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
}
"""Pages of the site by the file that they are made from."""
FIRST = ("tutorial.md", "concepts.md", "knobs.md", "troubleshooting.md", "batch-platform.md")
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Order the pages: what a newcomer reads, tasks, everything else, decisions."""
    docs = Path(config.docs_dir)
    others = sorted(page.name for page in docs.glob("*.md") if page.name not in FIRST)
    config.nav = [
        {"Start": "index.md"},
        *FIRST,
        {"How to": [f"tasks/{page.name}" for page in sorted((docs / "tasks").glob("*.md"))]},
        {"Reference": [*others, "kueue-admission.md", {"Policies": "policies.md"}]},
        {"Decisions": ["adr/README.md", *(f"adr/{page.name}" for page in sorted((docs / "adr").glob("[0-9]*.md")))]},
        {"Changelog": "changelog.md"},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for name, source in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


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
