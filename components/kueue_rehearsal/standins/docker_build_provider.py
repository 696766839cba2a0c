"""Stand-in for `pulumi-resource-docker-build`: checks and compares images as the real one does, and builds none.

There is no container engine in a rehearsal. What is refused is decided by the real provider's schema and by its own
checks; a digest is made of what would be in the image. Each image that is "built" is warned of. Refused by name: Index.

Source: https://github.com/pulumi/pulumi-docker-build, v0.0.22, provider/internal/image.go and context.go.
"""

# ruff: noqa: N802  (the names are the protocol's)

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from pkgutil import get_data
from typing import Any, Final

import grpc  # type: ignore[import-untyped]
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import provider_pb2

from kueue_admission.kernel.unknown import UNKNOWN, Unknown, is_set
from kueue_fleet.google.plan import ZERO
from kueue_fleet.google.provider_facts import Fact, Facts, parse_facts
from kueue_rehearsal.standins.gcp_checks import Refusal, check_inputs
from kueue_rehearsal.standins.plugin_errors import PluginError
from kueue_rehearsal.standins.plugin_server import StandInProvider, check_response, refusing, serve_provider
from kueue_rehearsal.standins.property_values import (
    Secret,
    Value,
    parse_struct,
    render_struct,
    reveal,
    with_secrets_of,
)

IMAGE: Final = "docker-build:index:Image"
"""Pulumi type of an image, the one resource of the provider that is known."""
NOTHING_BUILT: Final = (
    "nothing was built and nothing was pushed: a rehearsal has no container engine. The digest is made up, and the "
    "program of this installation runs instead of the image"
)
"""The warning about each image."""
SETTINGS: Final = ("host", "registries", "version", "pluginDownloadURL")
"""Settings of the real provider, and the two that every provider has."""
_TAG: Final = re.compile(
    r"((?=[^/]*[.:]|localhost/)[\w][\w.-]*(:\d+)?/)?[a-z0-9]+(([._]|__|-+|/)[a-z0-9]+)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
_REMOTE: Final = re.compile(r"(https?|git|ssh)://|github\.com/|git@")
_IGNORED: Final = ("registries", "contextHash", "digest", "ref")


@cache
def image_facts() -> Facts:
    """The facts of the provider, in the notation of Google's."""
    return parse_facts(get_data(__package__, "docker_build_facts.json") or b"")


class DockerBuildProvider(StandInProvider):
    """The provider protocol for images."""

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Refuses settings that the provider does not have."""
        unknown = [key for key in parse_struct(request.news) if key not in SETTINGS and key != "__defaults"]
        failures = [(key, f"{key}: pulumi-docker-build has no such setting; remove it") for key in unknown]
        return check_response(request.news, failures)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """No setting of the provider replaces it."""
        some = provider_pb2.DiffResponse.DIFF_SOME
        none = provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=none if request.olds == request.news else some)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        """Needs nothing: no engine is asked."""
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    @refusing
    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        """The inputs with the schema's defaults; refuses what the real provider refuses before it builds."""
        _known(request.type)
        inputs = completed(parse_struct(request.news))
        plain = reveal(inputs)
        failures = check_inputs(IMAGE, inputs, image_facts()) or list(_refused(plain))
        return check_response(render_struct(inputs), failures)

    @refusing
    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """Every change is an update. Another password is none; changed files are."""
        _known(request.type)
        state, inputs = reveal(parse_struct(request.olds)), reveal(parse_struct(request.news))
        changed_names = sorted(
            name
            for name in {*state, *inputs} - {*_IGNORED, "__defaults"}
            if state.get(name) != inputs.get(name) and name not in request.ignoreChanges
        )
        if _logins(state) != _logins(inputs):
            changed_names.append("registries")
        if context_hash(inputs) != state.get("contextHash") or all(
            is_set(inputs.get(name)) for name in ("pull", "push")
        ):
            changed_names.append("contextHash")
        update = provider_pb2.PropertyDiff(kind=provider_pb2.PropertyDiff.UPDATE)
        some = provider_pb2.DiffResponse.DIFF_SOME if changed_names else provider_pb2.DiffResponse.DIFF_NONE
        detailed_diff = dict.fromkeys(changed_names, update)
        return provider_pb2.DiffResponse(
            changes=some, diffs=changed_names, detailedDiff=detailed_diff, hasDetailedDiff=True
        )

    @refusing
    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        """The outputs of an image that would have been built; of a preview, what is known before it is."""
        state = self._built(request.urn, parse_struct(request.properties), preview=request.preview)
        resource_id = "" if request.preview else str(state["digest"])
        return provider_pb2.CreateResponse(id=resource_id, properties=render_struct(state))

    @refusing
    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        """Another image; the one before stays where it is."""
        state = self._built(request.urn, parse_struct(request.news), preview=request.preview)
        return provider_pb2.UpdateResponse(properties=render_struct(state))

    def _built(self, urn: str, inputs: dict[str, Value], *, preview: bool) -> dict[str, Value]:
        plain = reveal(inputs)
        outputs: dict[str, Value] = dict.fromkeys(("contextHash", "digest", "ref"), UNKNOWN)
        if not preview:
            context_digest, tag = context_hash(plain), next(iter(plain.get("tags") or ()), "")
            self._log.warning(urn, f"{tag or urn.rpartition('::')[2]}: {NOTHING_BUILT}")
            content = json.dumps([context_digest, {key: plain[key] for key in sorted(plain) if key not in _IGNORED}])
            digest = f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"
            outputs |= {"contextHash": context_digest, "digest": digest, "ref": f"{tag}@{digest}" if tag else ""}
        return with_secrets_of({**plain, **outputs}, inputs)

    @refusing
    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        """What Pulumi's state says: there is no registry to ask."""
        _known(request.type)
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Nothing is in a registry."""
        return empty_pb2.Empty()


def _known(token: str) -> None:
    if token != IMAGE:
        raise PluginError(f"{token}: the stand-in of the provider docker-build knows {IMAGE} only")


def completed(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """`inputs` as the real provider's Check has them: with defaults, zero values, and passwords as secrets."""
    whole = _completed(image_facts().resources[IMAGE], inputs)
    for login in whole.get("registries") or ():
        if isinstance(login, dict) and not isinstance(login.get("password", UNKNOWN), Secret | Unknown):
            login["password"] = Secret(login["password"])
    return whole


def _completed(facts: Mapping[str, Fact], inputs: Mapping[str, Value]) -> dict[str, Value]:
    whole = {**inputs}
    for name, fact in facts.items():
        whole_value = whole.get(name)
        if whole_value is None and fact.optional and fact.kind in ZERO:
            whole[name] = ZERO[fact.kind] if fact.default is None else fact.default
        elif fact.kind == "block" and isinstance(whole_value, dict):
            whole[name] = _completed(fact.children, whole_value)
    return whole


def _refused(inputs: Mapping[str, Any]) -> Iterator[Refusal]:
    """What the real provider's own checks refuse."""
    location, dockerfile = inputs.get("context", {}).get("location", "."), inputs.get("dockerfile", {})
    if UNKNOWN not in (location, dockerfile):
        local = not _REMOTE.match(location)
        if local and not Path(location).is_dir():
            yield Refusal("context.location", f'"{location}": not a valid directory or URL')
        if all(is_set(dockerfile.get(name)) for name in ("location", "inline")):
            yield Refusal("dockerfile", 'only specify "file" or "inline", not both')
        elif not is_set(dockerfile.get("inline")) and local and not _dockerfile(inputs).is_file():
            yield Refusal("dockerfile.location", f"open {_dockerfile(inputs)}: no such file or directory")
    tags = inputs.get("tags") or []
    for index, tag in enumerate(tags if isinstance(tags, list) else ()):
        if tag is not UNKNOWN and not _TAG.fullmatch(tag):
            small = _TAG.fullmatch(tag.lower())
            yield Refusal(
                f"tags[{index}]", "repository name must be lowercase" if small else "invalid reference format"
            )
    if inputs.get("push") is True and not tags:
        yield Refusal("exports[0]", "at least one tag or export name is needed when pushing to a registry")


def _dockerfile(inputs: Mapping[str, Any]) -> Path:
    location = inputs.get("context", {}).get("location", ".")
    return Path(inputs.get("dockerfile", {}).get("location") or Path(location, "Dockerfile"))


def _logins(inputs: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    return [(one.get("address"), one.get("username")) for one in inputs.get("registries") or ()]


def context_hash(inputs: Mapping[str, Any]) -> str:
    """A digest of the Dockerfile, and of contents, names and modes of the files that are not ignored."""
    root, dockerfile = Path(inputs.get("context", {}).get("location", ".")), _dockerfile(inputs)
    digest = hashlib.sha256(dockerfile.read_bytes() if dockerfile.is_file() else b"")
    own, shared_ignore_file = dockerfile.with_name(f"{dockerfile.name}.dockerignore"), root / ".dockerignore"
    patterns = next(
        (file.read_text(encoding="utf-8") for file in (own, shared_ignore_file) if file.is_file()), ""
    ).splitlines()
    rules = [_rule(line.strip()) for line in patterns if line.strip() and not line.startswith("#")]
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and not _is_ignored(name, rules):
            digest.update(path.read_bytes())
            digest.update(name.as_posix().encode())
            digest.update(stat.filemode(os.stat(path).st_mode).encode())
    return digest.hexdigest()


def _rule(line: str) -> tuple[bool, re.Pattern[str]]:
    """Whether a line of a .dockerignore ignores, and what it matches: a path, and all that is below it."""
    pattern = line.removeprefix("!").strip("/")
    text = re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    return not line.startswith("!"), re.compile(text.replace(r"\?", "[^/]") + "(/.*)?")


def _is_ignored(name: Path, rules: list[tuple[bool, re.Pattern[str]]]) -> bool:
    """As the last rule that matches says."""
    return next((ignores for ignores, pattern in reversed(rules) if pattern.fullmatch(name.as_posix())), False)


main = partial(serve_provider, DockerBuildProvider)
"""Serves the provider: `main(version, arguments)`."""
