"""The life of single Kubernetes objects as the real provider handles them: check, diff, create, update, read, delete.

The protocol is in `kubernetes_provider`, Helm releases in `helm_release`.
Source: pulumi-kubernetes provider/pkg/provider/provider.go and provider/pkg/await/await.go, 4.34.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kueue_fleet.rehearsal.standins.autonaming import generated_name
from kueue_fleet.rehearsal.standins.plugin_errors import InitializationError, PluginError
from kueue_fleet.rehearsal.standins.property_diff import Differ, never_equal
from kueue_fleet.rehearsal.standins.property_values import Value, has_unknown, reveal, with_secrets_of
from kueue_fleet_offline import kube_objects as objects
from kueue_fleet_offline.kube_api import ApiError, KubeApi, Manifest, NoMatchError, UnreachableError
from kueue_fleet_offline.kube_awaits import UNSUPPORTED as UNSUPPORTED_AWAITS
from kueue_fleet_offline.kube_awaits import AwaitError, Waiter, annotated_rule
from kueue_fleet_offline.kube_settings import Settings

CREATE_RETRY_SECONDS: Final = (1, 2, 4, 8, 16)
"""Waits between tries to create an object whose kind or namespace is not there yet; 31 s in all, as the real one."""
CONFLICT_HELP: Final = (
    "https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/"
    "#handle-field-conflicts-on-existing-resources"
)
"""What to do where another field manager has a field."""
STATE_KEYS: Final = ("__inputs", "__initialApiVersion", "__fieldManager")
"""Keys of the state that are the provider's own."""

Properties = dict[str, Value]
"""Properties of a resource, as plain data."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How an object that was given no name gets one."""

    resource_name: str
    random_seed: bytes = b""
    proposed: str = ""
    """The name that the stack's autonaming settings want; empty to make one up."""
    disabled: bool = False
    """Whether the stack's settings forbid it."""


def _manifest(properties: Mapping[str, Value]) -> Manifest:
    plain: Manifest = objects.to_kubernetes_keys(reveal(dict(properties)))
    return plain


def checkpoint(inputs: Mapping[str, Value], live: Manifest, field_manager: str) -> Properties:
    """The state to store: the live object's fields, and beside them the inputs, with the inputs' secrets kept secret.

    `metadata.managedFields` is left out: it is not read, and doubles the size of a state file.
    """
    outputs = objects.to_pulumi_keys(live)
    if isinstance(outputs.get("metadata"), dict):
        kept = {key: value for key, value in outputs["metadata"].items() if key != "managedFields"}
        outputs = {**outputs, "metadata": kept}
    outputs = with_secrets_of(outputs, inputs)
    outputs["__inputs"] = with_secrets_of(dict(inputs), inputs)
    outputs["__initialApiVersion"] = live.get("apiVersion", "")
    outputs["__fieldManager"] = field_manager
    return outputs


def parse_checkpoint(state: Mapping[str, Value]) -> tuple[Manifest, Manifest]:
    """The inputs and the live object of a stored state, in plain values."""
    plain = _manifest(state)
    inputs = plain.get("__inputs") or {}
    return inputs, {key: value for key, value in plain.items() if key not in STATE_KEYS}


def apply_failure(error: ApiError, field_manager: str) -> PluginError:
    """`error` with the real provider's help where it is a conflict of field managers."""
    if error.reason != "Conflict":
        return error
    return PluginError(
        f"Server-Side Apply field conflict detected. See {CONFLICT_HELP} for troubleshooting help.\n"
        f'The resource managed by field manager "{field_manager}" had an apply conflict: {error}\n'
        f'To take the fields over, annotate it with "{objects.PATCH_FORCE}": "true", or set enablePatchForce.'
    )


@dataclass(frozen=True)
class KubeResources:
    """The objects of one cluster. `stop` ends every wait; `report` shows a line beside the resource of a URN."""

    api: KubeApi | None
    unreachable: str
    """Why there is no `api`."""
    settings: Settings
    default_namespace: str
    stop: threading.Event
    report: Callable[[str, str], None]

    def reachable(self) -> KubeApi:
        """The API server. Raises PluginError when it cannot be reached."""
        if self.api is None:
            raise PluginError(f"configured Kubernetes cluster is unreachable: {self.unreachable}")
        return self.api

    def _reporter(self, urn: str) -> Callable[[str], None]:
        return lambda text: self.report(urn, text)

    def check(self, token: str, naming: Naming, news: Properties, olds: Properties) -> Properties:
        """The inputs with a name and a namespace. Raises PluginError for what could only fail later."""
        api_version, kind = objects.kind_of_token(token)
        _refuse_unsupported(token, api_version, kind, reveal(news))
        # The parts of metadata are looked at one by one; what of it is secret is marked again at the end.
        inputs = objects.without_read_only_metadata({**news, "metadata": reveal(news.get("metadata") or {})})
        inputs = _named(token, naming, inputs, reveal(olds))
        if not inputs["metadata"].get("namespace") and self._is_namespaced(api_version, kind):
            inputs = objects.with_namespace(inputs, self.default_namespace)
        if wait_for := objects.annotation(reveal(inputs), objects.WAIT_FOR):
            annotated_rule(wait_for)
        return with_secrets_of(inputs, news)

    def _is_namespaced(self, api_version: str, kind: str) -> bool:
        """Whether the kind lives in namespaces; assumed while the cluster does not know it, corrected on create."""
        if self.api is None:
            return True
        try:
            return self.api.resource_type(api_version, kind).namespaced
        except (NoMatchError, UnreachableError):
            return True

    def diff(
        self, state: Properties, news: Properties, ignored: list[str], *, patch: bool = False
    ) -> tuple[Differ, bool]:
        """What would change, and whether a replacement must delete first because the name stays the same."""
        old_inputs, live = parse_checkpoint(state)
        if patch:
            # Only the fields of the patch count; a list of the live object has other elements beside its own.
            live = old_inputs
        new = objects.with_string_data_encoded(objects.without_read_only_metadata(_manifest(news)))
        shape = objects.with_string_data_encoded(objects.without_read_only_metadata(old_inputs))
        seen = objects.pruned(live, shape)
        namespaced = self._is_namespaced(new.get("apiVersion", ""), new.get("kind", ""))
        if namespaced:
            seen = objects.with_namespace(seen, (seen.get("metadata") or {}).get("namespace") or "default")
            new = objects.with_namespace(new, (new.get("metadata") or {}).get("namespace") or "default")
        else:
            seen, new = objects.with_namespace(seen, ""), objects.with_namespace(new, "")
        seen["metadata"]["name"] = live["metadata"]["name"]
        replacing = objects.replacing_patterns(
            new, config_map_mutable=self.settings.config_map_mutable, secret_mutable=self.settings.secret_mutable
        )
        built_in = objects.is_built_in(new.get("apiVersion", ""))
        differ = Differ(replacing, objects.same_for_server if built_in else never_equal)
        differ.compare(seen, new)
        differ.ignore(ignored)
        same_place = objects.object_id(new) == objects.object_id(seen)
        return differ, same_place and not objects.is_annotated_true(new, objects.AUTONAMED)

    def create(self, urn: str, inputs: Properties, *, seconds: float, preview: bool) -> tuple[str, Properties] | None:
        """Id and state of the new object once it is ready; None for a preview that cannot be run on the server.

        Raises InitializationError when it was created and did not become ready.
        """
        manifest = _manifest(inputs)
        manager = objects.field_manager_for(manifest, {})
        if preview and objects.is_patch_urn(urn):
            return None
        if preview:
            return self._preview_create(urn, inputs, manifest, manager)
        api = self.reachable()
        live = self._created(api, manifest, manager, urn)
        if manifest["kind"] == "CustomResourceDefinition":
            api.forget_types()
        resource_id = objects.object_id(live)
        report = self._reporter(urn)
        try:
            live = Waiter(api, self.stop).until_ready(live, manifest, seconds, report)
        except AwaitError as error:
            message = (
                f'resource "{urn}" was successfully created, but the Kubernetes API server reported that it '
                f"failed to fully initialize or become live: {error}"
            )
            raise InitializationError(message, resource_id, checkpoint(inputs, error.last, manager)) from error
        self.report(urn, "")
        return resource_id, checkpoint(inputs, live, manager)

    def _preview_create(
        self, urn: str, inputs: Properties, manifest: Manifest, manager: str
    ) -> tuple[str, Properties] | None:
        if self.api is None or has_unknown(inputs):
            return None
        try:
            live = self.api.create(self._placed(self.api, manifest), field_manager=manager, dry_run=True)
        except (NoMatchError, UnreachableError):
            return None
        except ApiError as error:
            if error.code in (403, 404) or error.reason == "AlreadyExists" or "does not support dry run" in str(error):
                return None
            raise self._creation_failure(urn, error) from error
        live.pop("status", None)
        return "", checkpoint(inputs, live, manager)

    def _placed(self, api: KubeApi, manifest: Manifest) -> Manifest:
        return manifest if api.type_of(manifest).namespaced else objects.with_namespace(manifest, "")

    def _created(self, api: KubeApi, manifest: Manifest, manager: str, urn: str) -> Manifest:
        for attempt, pause in enumerate((*CREATE_RETRY_SECONDS, None)):
            try:
                placed = self._placed(api, manifest)
                if self.settings.upsert or objects.is_patch_urn(urn):
                    force = self._is_forced(manifest)
                    return api.apply(placed, field_manager=manager, force=force, dry_run=False)
                return api.create(placed, field_manager=manager, dry_run=False)
            except (NoMatchError, ApiError) as error:
                missing = isinstance(error, NoMatchError) or error.is_not_found
                if not missing or pause is None or self.stop.is_set():
                    raise self._creation_failure(urn, error, manager) from error
                self.report(urn, f"Retry #{attempt}; creation failed: {error}")
                self.stop.wait(pause)
        raise AssertionError("the last try returns or raises")

    def _creation_failure(self, urn: str, error: PluginError, manager: str = "") -> PluginError:
        if isinstance(error, NoMatchError):
            return PluginError(
                f'creation of resource "{urn}" with kind {error.api_version}/{error.kind} failed because the '
                "Kubernetes API server reported that the apiVersion for this resource does not exist. Verify that "
                f"any required CRDs have been created: {error}"
            )
        shown = apply_failure(error, manager) if isinstance(error, ApiError) else error
        return PluginError(f'resource "{urn}" was not successfully created by the Kubernetes API server: {shown}')

    def _is_forced(self, manifest: Manifest) -> bool:
        return self.settings.patch_force or objects.is_annotated_true(manifest, objects.PATCH_FORCE)

    def update(
        self, urn: str, resource_id: str, inputs: Properties, state: Properties, *, seconds: float, preview: bool
    ) -> Properties | None:
        """The state after the new inputs are applied; None for a preview that cannot be run on the server.

        Raises InitializationError when they were applied and the object did not become ready, PluginError when they
        were refused.
        """
        manifest = objects.without_read_only_metadata(_manifest(inputs))
        manager = objects.field_manager_for(manifest, reveal(state))
        if preview and (self.api is None or has_unknown(inputs)):
            return None
        api = self.reachable()
        try:
            applied = self._applied(api, manifest, manager, preview=preview, patch=objects.is_patch_urn(urn))
        except NoMatchError as error:
            if preview:
                return None
            raise PluginError(
                f'update of resource "{urn}" failed because the Kubernetes API server reported that the '
                f"apiVersion for this resource does not exist. Verify that any required CRDs have been created: {error}"
            ) from error
        except ApiError as error:
            if preview and error.code == 403:
                return None
            raise _update_failure(urn, resource_id, error, manager) from error
        if preview:
            return checkpoint(inputs, applied, manager)
        try:
            live = Waiter(api, self.stop).until_ready(applied, manifest, seconds, self._reporter(urn))
        except AwaitError as error:
            message = (
                f'the Kubernetes API server reported that "{resource_id}" failed to fully initialize or become live: '
                f"{error}"
            )
            raise InitializationError(message, resource_id, checkpoint(inputs, error.last, manager)) from error
        self.report(urn, "")
        return checkpoint(inputs, live, manager)

    def _applied(self, api: KubeApi, manifest: Manifest, manager: str, *, preview: bool, patch: bool) -> Manifest:
        placed = self._placed(api, manifest)
        live = api.get(placed)
        if manifest["kind"] == "CustomResourceDefinition":
            # A merge would keep versions and fields that the program has removed.
            replacing = {**placed["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
            replaced = api.replace({**placed, "metadata": replacing}, field_manager=manager, dry_run=preview)
            api.forget_types()
            return replaced
        managed = live["metadata"].get("managedFields", [])
        force = self._is_forced(manifest)
        if preview:
            force = force or bool(objects.owned_by_create(managed))
        elif not patch and (taken := objects.taken_over(managed, manager)) is not None:
            live = api.patch_json(
                placed,
                [
                    {"op": "test", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
                    {"op": "replace", "path": "/metadata/managedFields", "value": taken},
                ],
            )
        return api.apply(placed, field_manager=manager, force=force, dry_run=preview)

    def read(
        self, token: str, resource_id: str, state: Properties, inputs: Properties
    ) -> tuple[Properties, Properties] | None:
        """State and inputs of the live object; None when it is gone. Without `inputs` it is an import."""
        api = self.reachable()
        api_version, kind = objects.kind_of_token(token)
        namespace, name = objects.parse_object_id(resource_id)
        wanted = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}}
        try:
            live = api.get(wanted)
        except NoMatchError:
            return None
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        manager = objects.field_manager_for(live, reveal(state))
        if inputs:
            shape = objects.with_string_data_encoded(_manifest(inputs))
            # What a Secret was given as text is stored encoded: the program's own spelling stays in the inputs.
            if "stringData" in inputs:
                live_inputs: Properties = inputs
            else:
                live_inputs = objects.to_pulumi_keys(objects.pruned(live, shape))
        else:
            kept = {key: value for key, value in live.items() if key != "status"}
            live_inputs = objects.to_pulumi_keys(objects.without_read_only_metadata(kept))
        live_inputs = with_secrets_of(live_inputs, inputs)
        return checkpoint(live_inputs, live, manager), live_inputs

    def delete(
        self, token: str, urn: str, resource_id: str, state: Properties, old_inputs: Properties, *, seconds: float
    ) -> None:
        """Deletes the object and waits until it is gone; an object or kind that is not there any more is fine.

        Raises InitializationError when it was asked for and the object is still there in the end.
        """
        api = self.reachable()
        inputs, live = parse_checkpoint(state)
        api_version, kind = objects.kind_of_token(token)
        namespace, name = objects.parse_object_id(resource_id)
        doomed = {**live, "apiVersion": live.get("apiVersion", api_version), "kind": live.get("kind", kind)}
        doomed["metadata"] = {**(live.get("metadata") or {}), "name": name, "namespace": namespace}
        policy = objects.annotation(inputs, objects.DELETION_PROPAGATION).lower()
        propagation = {"orphan": "Orphan", "background": "Background"}.get(policy, "Foreground")
        manager = objects.field_manager_for(inputs, reveal(state))
        try:
            if objects.is_patch(token):
                # The object stays; what is not applied any more goes, if it has no other owner.
                bare = {key: doomed[key] for key in ("apiVersion", "kind")}
                bare["metadata"] = {"name": name, "namespace": namespace}
                api.get(bare)
                api.apply(bare, field_manager=manager, force=False, dry_run=False)
                return
            api.delete(doomed, propagation=propagation)
            Waiter(api, self.stop).until_gone(doomed, inputs, seconds, self._reporter(urn))
        except NoMatchError:
            return
        except ApiError as error:
            if not error.is_not_found:
                raise
        except AwaitError as error:
            stored = checkpoint(old_inputs or inputs, error.last, manager)
            raise InitializationError(str(error), resource_id, stored) from error


def _refuse_unsupported(token: str, api_version: str, kind: str, plain: Manifest) -> None:
    for key, wanted in (("apiVersion", api_version), ("kind", kind)):
        if not plain.get(key):
            raise PluginError(f"{token}: {key} is missing; set it to {wanted}")
    if kind.endswith("List") and objects.is_built_in(api_version):
        raise PluginError(
            f"{token}: list resources exist for compatibility with YAML manifests and Helm charts, and cannot be "
            "created directly. Use the underlying resource type instead"
        )
    if objects.is_patch(token) and isinstance(named := plain.get("metadata", {}), dict) and not named.get("name"):
        raise PluginError(f"{token}: patch resources require the `.metadata.name` field to be set; set it")
    if not isinstance(plain.get("metadata", {}), dict):
        raise PluginError(f"{token}: metadata is not known yet as a whole; give its name as a plain value")
    if objects.is_annotated_true(plain, objects.REPLACE_UNREADY):
        raise PluginError(f"{token}: the stand-in does not have {objects.REPLACE_UNREADY}; remove the annotation")
    if plain.get("metadata", {}).get("generateName"):
        raise PluginError("the `.metadata.generateName` field is not supported in Server-Side Apply mode")
    is_waited = not objects.is_annotated_true(plain, objects.SKIP_AWAIT)
    if (api_version, kind) in UNSUPPORTED_AWAITS and is_waited and not objects.annotation(plain, objects.WAIT_FOR):
        raise PluginError(
            f"{token}: the stand-in has no rule for when a {kind} is ready; "
            f"annotate it with {objects.WAIT_FOR} or {objects.SKIP_AWAIT}"
        )


def _named(token: str, naming: Naming, inputs: Properties, old: Manifest) -> Properties:
    if inputs["metadata"].get("name"):
        return inputs
    if objects.is_annotated_true(old, objects.AUTONAMED):
        return objects.with_name(inputs, old["metadata"]["name"], autonamed=True)
    if naming.disabled:
        raise PluginError(f"{token}: autonaming is disabled for the stack; set metadata.name")
    name = naming.proposed or generated_name(naming.resource_name, naming.random_seed)
    return objects.with_name(inputs, name, autonamed=True)


def _update_failure(urn: str, resource_id: str, error: ApiError, manager: str) -> PluginError:
    if error.is_not_found:
        return PluginError(f'update of resource "{urn}" failed: {error}; run `pulumi refresh` first')
    shown = apply_failure(error, manager)
    return PluginError(
        f'the Kubernetes API server reported that "{resource_id}" failed to fully initialize or become live: {shown}'
    )
