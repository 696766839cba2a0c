"""The files of a pod's volumes, and how they reach the pod's folder.

`volume_files` does no I/O: it says which files a volume has, from its sources. `write_volume` makes a folder hold
exactly these, each replaced in one step, so that a program that reads during an update sees the old or the new file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kueue_admission.kernel.manifest import Manifest
from kueue_rehearsal.node_agent.pods import (
    HostFacts,
    PodError,
    Source,
    field_value,
    resource_value,
    source_content,
)
from kueue_rehearsal.private_files import make_private, write_private

_PUBLIC_MODE = 0o644
_SECRET_MODE = 0o600


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """One file. Modes of the Pod are not kept: a secret is 0600, all else 0644 below a folder with 0700."""

    content: bytes
    mode: int = _PUBLIC_MODE


@dataclass(frozen=True, slots=True)
class TokenProjection:
    """A service account token that a projected volume asks for."""

    path: str
    audience: str | None
    expiration_seconds: int


def volume_sources(volume: Manifest) -> set[Source]:
    """The ConfigMaps and Secrets that the volume refers to."""
    return {source for part in _parts(volume) if (source := _source_of(part)) is not None}


def _parts(volume: Manifest) -> Sequence[Manifest]:
    """What a volume is made of: the sources of a projected one, each of the form of a volume; else itself."""
    return (volume["projected"] or {}).get("sources") or () if "projected" in volume else [volume]


def _source_of(part: Manifest) -> Source | None:
    """The ConfigMap or Secret that a part is of; a volume calls the second one's name otherwise."""
    if "configMap" in part:
        return Source("configmaps", part["configMap"]["name"])
    secret = part.get("secret")
    return None if secret is None else Source("secrets", secret.get("secretName") or secret["name"])


def token_projections(volume: Manifest) -> list[TokenProjection]:
    """The tokens that the volume asks for; one hour where it does not say how long (TokenRequest's default)."""
    return [
        TokenProjection(
            part["serviceAccountToken"]["path"],
            part["serviceAccountToken"].get("audience"),
            part["serviceAccountToken"].get("expirationSeconds", 3600),
        )
        for part in _parts(volume)
        if "serviceAccountToken" in part
    ]


def volume_files(
    pod: Manifest,
    volume: Manifest,
    facts: HostFacts,
    sources: Mapping[Source, Mapping[str, bytes] | None],
    tokens: Mapping[TokenProjection, str],
) -> dict[str, VolumeFile]:
    """Path within the volume → file. Raises PodError when a source or a key that must exist does not."""
    files: dict[str, VolumeFile] = {}
    for part in _parts(volume):
        if (source := _source_of(part)) is not None:
            files |= _from_source(source, part.get("configMap") or part["secret"], sources)
        elif "downwardAPI" in part:
            files |= _from_downward(pod, part["downwardAPI"], facts)
        elif "projected" in volume and "serviceAccountToken" not in part:
            raise PodError(f"volume {volume['name']}: projected {next(iter(part), 'source')} is not known on this node")
    for projection in token_projections(volume):
        files[_safe(projection.path)] = VolumeFile(tokens[projection].encode(), _SECRET_MODE)
    return files


def _from_source(
    source: Source, reference: Manifest, sources: Mapping[Source, Mapping[str, bytes] | None]
) -> dict[str, VolumeFile]:
    optional = bool(reference.get("optional"))
    data = source_content(sources, source, optional, "ContainerCreating")
    mode = _SECRET_MODE if source.kind == "secrets" else _PUBLIC_MODE
    items = reference.get("items")
    if not items:
        return {_safe(key): VolumeFile(content, mode) for key, content in data.items()}
    files = {}
    for item in items:
        if item["key"] in data:
            files[_safe(item["path"])] = VolumeFile(data[item["key"]], mode)
        elif not optional:
            raise PodError(f"{source.kind[:-1]} {source.name} has no key {item['key']}", "ContainerCreating")
    return files


def _from_downward(pod: Manifest, reference: Manifest, facts: HostFacts) -> dict[str, VolumeFile]:
    files = {}
    for item in reference.get("items", ()):
        if "fieldRef" in item:
            text = field_value(pod, item["fieldRef"]["fieldPath"], facts)
        else:
            text = resource_value(pod, pod["spec"]["containers"][0], item["resourceFieldRef"])
        files[_safe(item["path"])] = VolumeFile(text.encode())
    return files


def _safe(path: str) -> str:
    """The path if it stays within the volume (the API server checks items, and so do we)."""
    relative = PurePosixPath(path)
    if relative.is_absolute() or ".." in relative.parts or not relative.parts:
        raise PodError(f"volume path {path!r} leaves the volume")
    return str(relative)


def write_volume(folder: Path, files: Mapping[str, VolumeFile]) -> None:
    """Makes `folder` (0700) hold exactly `files`; a file that is right already is left alone."""
    make_private(folder)
    wanted_files = {folder / path for path in files}
    for present in sorted(folder.rglob("*"), reverse=True):
        if present.is_dir() and not present.is_symlink():
            if not any(path.is_relative_to(present) for path in wanted_files):
                present.rmdir()
        elif present not in wanted_files:
            present.unlink()
    for name, file in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (path.is_file() and path.read_bytes() == file.content):
            write_private(path, file.content, file.mode)
