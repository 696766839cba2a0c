"""Mocks for unit tests of Pulumi programs: they answer as Google Cloud and Kubernetes do.

    import pulumi
    from kueue_fleet.testing import Mocks

    mocks = Mocks()
    pulumi.runtime.set_mocks(mocks, preview=False)

A component reads what only Google or Kubernetes knows: the address and the certificate authority of a cluster, the
token in a Secret. Mocks that return their inputs alone have none of it; `Mocks(Own())` adds it to what they answer.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi.runtime import MockCallArgs, MockResourceArgs, rpc

from kueue_fleet.google.answers import filled, function_answer
from kueue_fleet.google.provider_facts import load_facts
from kueue_fleet.google.resource_kinds import CREATION_TIME, answered, completed, kind_of, kinds
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL

WHERE: Final = {"project": "mock-project", "region": "us-central1", "zone": "us-central1-a"}
"""The project and the place of what the program gives none."""
KUBERNETES_VERSION: Final = "1.36.3-gke.1"
"""Version of every cluster."""
CA_CERTIFICATE: Final = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nmock\n-----END CERTIFICATE-----\n").decode()
"""Certificate authority of every cluster, base64 PEM."""
_ACTIVE: Final = {"AdmissionCheck", "ClusterQueue", "LocalQueue", "MultiKueueCluster"}
"""Kinds of Kueue whose status says whether they are active."""


class Mocks(pulumi.runtime.Mocks):
    """Answers as Google Cloud and Kubernetes do, and remembers what the program declares.

    Types that the library does not know are answered with their inputs, functions with nothing.
    """

    made: list[MockResourceArgs]
    """What the program declares, in its order."""

    def __init__(self, own: pulumi.runtime.Mocks | None = None) -> None:
        """`own` are your mocks: their answers come first, and what they leave out is added."""
        self.made = []
        self._own = own
        self._clusters: dict[str, Mapping[str, Any]] = {}

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """The id and the state of a resource that is made or read."""
        self.made.append(args)
        id_, state = self._answer(args)
        if self._own is None:
            return id_, state
        own_id, own_state = self._own.new_resource(args)
        return own_id or id_, filled(own_state, state)

    def call(self, args: MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]]]:
        """What a function of a provider returns."""
        answer: dict[Any, Any] = function_answer(args.token, args.args, WHERE, "mock-access-token") or {}
        if args.token.startswith("gcp:secretmanager/get") and "SecretVersion" in args.token:
            answer = {"secretData": "mock-secret"}
        if self._own is None:
            return answer, []
        # Pulumi also accepts the answer alone, as its own pages show.
        own: Any = self._own.call(args)
        own_answer, failures = (own, []) if isinstance(own, dict) else own
        return {**answer, **own_answer}, failures or []

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Inputs of the resources of a type, by Pulumi name.

        `kind` is a whole type token, or its last part, such as `ClusterQueue`: then components do not count. Secrets
        are what they hold; `made` has them as Pulumi marks them. It is complete when the program has ended.
        """
        of_kind = (
            resource
            for resource in self.made
            if kind in (resource.typ, resource.custom and resource.typ.rpartition(":")[2])
        )
        return {resource.name: _opened(resource.inputs) for resource in of_kind}

    def _answer(self, args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if args.typ.startswith("gcp:"):
            return self._of_google(args)
        if args.typ.startswith("kubernetes:"):
            return _of_kubernetes(args)
        state = dict(args.inputs)
        if args.typ == "docker-build:index:Image":
            state["ref"] = f"{state['tags'][0]}@sha256:{'0' * 64}"
        return f"{args.name}-id", state

    def _of_google(self, args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
        name_field = {"name": args.name} if kind_of(args.typ).named or args.typ not in kinds() else {}
        inputs = completed(args.typ, {**name_field, **args.inputs}, WHERE)
        if args.typ == CLUSTER and args.resource_id:
            _, project, _, location, _, name = args.resource_id.split("/")
            inputs |= {"project": project, "location": location, "name": name}
            inputs.setdefault("nodeConfig", {"serviceAccount": "default"})
        if not _is_complete(args.typ, inputs):
            return f"{args.name}-id", inputs
        id_ = kind_of(args.typ).resource_id(inputs)
        control_plane: dict[str, Any] = {}
        if args.typ == CLUSTER:
            self._clusters[inputs["name"]] = inputs
            control_plane = _control_plane(inputs["name"], inputs["location"], id_)
        elif args.typ == NODE_POOL:
            cluster_state = self._clusters.get(str(inputs["cluster"]).rpartition("/")[2], {})
            control_plane = {"asked": cluster_state, "version": KUBERNETES_VERSION}
        return id_, answered(args.typ, inputs, id_, control_plane)


def _opened(value: Any) -> Any:
    """The value, with secrets as what they hold."""
    if isinstance(value, Mapping):
        is_secret = value.get(rpc._special_sig_key) == rpc._special_secret_sig
        return _opened(value["value"]) if is_secret else {key: _opened(item) for key, item in value.items()}
    return [_opened(item) for item in value] if isinstance(value, list) else value


def _is_complete(token: str, given_values: Mapping[str, Any]) -> bool:
    """Whether everything is known that Google needs; in a preview it may not be."""
    facts, template = load_facts().properties(token), kind_of(token).id_template
    needed_names = [name for name, fact in facts.items() if fact.required or f"{{{name}}}" in template]
    return not any(isinstance(given_values.get(name), pulumi.output.Unknown | None) for name in needed_names)


def _control_plane(name: str, location: str, id_: str) -> dict[str, Any]:
    """What a cluster answers that it was not asked for; the addresses are for documentation (RFC 5737)."""
    number = zlib.crc32(id_.encode()) % 254 + 1
    return {
        "endpoint": f"192.0.2.{number}",
        "privateEndpoint": f"198.51.100.{number}",
        "caCertificate": CA_CERTIFICATE,
        "version": KUBERNETES_VERSION,
        "selfLink": f"https://container.googleapis.com/v1/{id_}",
        "dnsEndpoint": f"gke-{name}.{location}.gke.goog",
    }


def _of_kubernetes(args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
    state, kind = dict(args.inputs), args.typ.rpartition(":")[2]
    if kind in ("Provider", "Release", "Chart"):
        return f"{args.name}-id", state
    metadata = {"name": args.name, "uid": f"uid-of-{args.name}", "creationTimestamp": CREATION_TIME}
    state["metadata"] = metadata = {**metadata, **(state.get("metadata") or {})}
    if state.get("type") == "kubernetes.io/service-account-token":
        token = base64.b64encode(f"token-of-{metadata['name']}".encode()).decode()
        state["data"] = {"token": token, "ca.crt": CA_CERTIFICATE, **(state.get("data") or {})}
    if kind in _ACTIVE:
        state["status"] = {"conditions": [{"type": "Active", "status": "True", "reason": "Ready"}]}
    place = [part for part in (metadata.get("namespace"), metadata["name"]) if part is not None]
    return "/".join(place) if all(isinstance(part, str) for part in place) else f"{args.name}-id", state
