"""A Pulumi project in a folder: its settings, its stacks, and the config of a stack as its program gets it."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from kueue_admission.kernel import SpecError
from kueue_admission.kernel.suggest import instead
from kueue_admission.kernel.yaml_text import load_documents

PROJECT_FILE: Final = "Pulumi.yaml"
"""What makes a folder a project."""
NO_SECRET: Final = "not-decrypted"  # noqa: S105  (none)
"""In the place of each encrypted value: no key is asked for."""
_OTHERS: Final = "give the file of its fleet: only programs in Python and YAML are read"


class ProjectError(Exception):
    """A project that cannot be run here, or its program: `source: what is wrong; what to do`, and what it printed."""

    def __init__(self, source: object, wrong: str, fix: str, lines: Sequence[str] = ()) -> None:
        self.source, self.wrong, self.fix, self.printed = str(source), wrong, fix, tuple(lines)
        super().__init__("\n".join([f"{source}: {wrong}; {fix}", *lines]))


@dataclass(frozen=True, slots=True)
class Project:
    """The project in a folder."""

    folder: Path
    settings: Mapping[str, Any]
    """What Pulumi.yaml holds."""

    @classmethod
    def read(
        cls,
        folder: Path,
        missing_text: str = "give the folder of a Pulumi program",
        others: str = _OTHERS,
        languages: Collection[str] = ("python", "yaml"),
    ) -> Self:
        """The project in FOLDER; MISSING says what to do where there is none, OTHERS in a language that is not taken.

        Raises:
            ProjectError: there is none, it is in none of LANGUAGES, or it names no folder where one has to be.
        """
        file = folder / PROJECT_FILE
        settings = _mapping(file, missing_text)
        project = cls(folder, settings)
        if project.language not in languages:
            language_text = "is missing" if project.language is None else f"is {str(project.language)[:40]}"
            raise ProjectError(file, f"runtime: {language_text}", others)
        for name in ("stackConfigDir", "main"):
            if not isinstance(settings.get(name, ""), str):
                raise ProjectError(file, f"{name}: is not text", "write the name of a folder")
        return project

    @classmethod
    def above(cls, file: Path) -> Self | None:
        """The project of the nearest folder above FILE, if there is one.

        Raises:
            ProjectError: its program is not in Python or YAML.
        """
        folder = next((parent for parent in file.absolute().parents if (parent / PROJECT_FILE).is_file()), None)
        return None if folder is None else cls.read(folder)

    @property
    def name(self) -> str:
        """Its name, which is the namespace of its own config."""
        return str(self.settings.get("name") or self.folder.resolve().name)

    @property
    def language(self) -> object:
        """What its program is written in, such as python."""
        runtime = self.settings.get("runtime")
        return runtime.get("name") if isinstance(runtime, Mapping) else runtime

    @property
    def program(self) -> Path:
        """The file of the program, which may not be there."""
        if self.language == "yaml":
            return self.folder / PROJECT_FILE
        main = (self.folder / str(self.settings.get("main") or ".")).resolve()
        return main / "__main__.py" if main.is_dir() else main

    @property
    def config_folder(self) -> Path:
        """Where the files of the stacks are."""
        return self.folder / str(self.settings.get("stackConfigDir") or ".")

    @property
    def stacks(self) -> list[str]:
        """Names of the stacks that have a file."""
        files = self.config_folder.glob("Pulumi.*.yaml")
        return sorted(file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in files)

    def stack_file(self, stack: str) -> Path:
        """The file of a stack, which may not be there."""
        return self.config_folder / f"Pulumi.{stack}.yaml"

    def stack_of(self, file: Path) -> str | None:
        """The stack that FILE is of; None: it is of none of this project."""
        return next((stack for stack in self.stacks if file.samefile(self.stack_file(stack))), None)

    def stack_settings(self, stack: str) -> dict[str, Any]:
        """What the file of a stack holds. Raises ProjectError where there is none, but for the first of a project."""
        file = self.stack_file(stack)
        if not file.is_file():
            if known_stacks := self.stacks:
                raise ProjectError(f"stack {stack}", f"there is no {file}", instead(stack, known_stacks, "stacks"))
            return {}
        return _mapping(file, "give the file of a stack")

    def python(self) -> Path:
        """The Python of the project: of its virtual environment, or this one where it names none.

        Raises:
            ProjectError: the virtual environment is not there.
        """
        runtime = self.settings.get("runtime")
        options = (runtime.get("options") or {}) if isinstance(runtime, Mapping) else {}
        environment_name = options.get("virtualenv")
        if environment_name is None and options.get("toolchain") == "uv":
            environment_name = ".venv"
        if environment_name is None:
            return Path(sys.executable)
        python = self.folder / str(environment_name) / "bin" / "python"
        if not python.is_file():
            wrong = f"runtime.options.virtualenv: there is no {python}"
            raise ProjectError(self.folder / PROJECT_FILE, wrong, "make it with `pulumi install`")
        return python.absolute()

    def config(self, stack: str) -> tuple[dict[str, str], list[str]]:
        """The config of a stack as its program gets it, by whole keys, and the keys of secrets.

        Values of the project come first; encrypted ones are replaced by a placeholder.

        Raises:
            ProjectError: the file of the stack cannot be read.
        """
        values, secrets = {}, []
        for whole, value in self.values(stack).items():
            plain = without_secrets(value)
            values[whole] = plain if isinstance(plain, str) else json.dumps(plain, default=str)
            if plain != value:
                secrets.append(whole)
        return values, secrets

    def values(self, stack: str) -> dict[str, Any]:
        """The config of a stack as its files have it, by whole keys. Raises ProjectError where one cannot be read."""
        of_project = {key: _project_value(value) for key, value in (self.settings.get("config") or {}).items()}
        of_stack = self.stack_settings(stack).get("config") or {}
        return {
            key if ":" in str(key) else f"{self.name}:{key}": value
            for key, value in {**of_project, **of_stack}.items()
            if value is not None
        }


def _project_value(value: Any) -> Any:
    """A value in Pulumi.yaml: plain, or with its type and default; None where the stack has to set it."""
    if not isinstance(value, Mapping):
        return value
    return value.get("value", value.get("default"))


def without_secrets(value: Any, placeholder: str = NO_SECRET) -> Any:
    """Config with the placeholder in the place of each encrypted value."""
    if isinstance(value, Mapping):
        if value.keys() == {"secure"}:
            return placeholder
        return {key: without_secrets(part, placeholder) for key, part in value.items()}
    return [without_secrets(part, placeholder) for part in value] if isinstance(value, list) else value


def _mapping(file: Path, fix: str) -> dict[str, Any]:
    """The map of fields in a file. Raises ProjectError; FIX says what to do where there is no such file."""
    try:
        documents = load_documents(file.read_text(encoding="utf-8"), str(file))
    except OSError as wrong:
        is_missing = isinstance(wrong, FileNotFoundError | NotADirectoryError)
        reason = "no such file" if is_missing else str(wrong.strerror)
        raise ProjectError(file, reason, fix if is_missing else "check its permissions") from None
    except UnicodeDecodeError as wrong:
        raise ProjectError(file, f"is not UTF-8 text (byte {wrong.start})", "save it as UTF-8") from None
    except SpecError as refused:
        first = refused.problems[0]
        raise ProjectError(first.place, first.wrong, first.fix) from None
    mappings = [document.data for document in documents if document.data is not None] or [{}]
    if len(mappings) > 1 or not isinstance(mappings[0], Mapping):
        raise ProjectError(file, "is not one map of fields", "write a map of fields")
    return dict(mappings[0])
