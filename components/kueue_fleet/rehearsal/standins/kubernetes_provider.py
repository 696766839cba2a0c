"""Stand-in for `pulumi-resource-kubernetes`: Kubernetes objects and Helm releases on real API servers on loopback.

In: the engine's calls for one provider resource. Out: server-side apply, watches and `helm`. Does what the real
provider does (4.34; pulumi-kubernetes provider/pkg/provider) for every kind and for `helm.sh/v3:Release`. Refused by
name: components that the provider constructs (helm v4 Chart, yaml v2, kustomize), functions, Patch and List
resources, client-side apply, YAML rendering, `replaceUnready`, and servers that are not on this machine.
"""

# ruff: noqa: N802  (the names are the protocol's)

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import grpc  # type: ignore[import-untyped]
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from kueue_fleet.rehearsal.standins import kube_objects as objects
from kueue_fleet.rehearsal.standins.helm_release import HelmReleases
from kueue_fleet.rehearsal.standins.kube_api import ApiError, KubeApi, Manifest, NoMatchError, UnreachableError
from kueue_fleet.rehearsal.standins.kube_awaits import UNSUPPORTED as UNSUPPORTED_AWAITS
from kueue_fleet.rehearsal.standins.kube_awaits import AwaitError, Waiter, annotated_rule
from kueue_fleet.rehearsal.standins.kube_settings import Settings, check_settings, compare_settings, parse_settings
from kueue_fleet.rehearsal.standins.kubeconfig import ClusterAccess, KubeconfigError, cluster_access, load_kubeconfig
from kueue_fleet.rehearsal.standins.plugin_server import (
    EngineLog,
    InitializationError,
    PluginError,
    fail,
    serve,
    standin_version,
)
from kueue_fleet.rehearsal.standins.property_diff import Differ, never_equal, render_path
from kueue_fleet.rehearsal.standins.property_values import (
    UnsupportedValueError,
    Value,
    has_unknown,
    parse_struct,
    render_struct,
    reveal,
    with_secrets_of,
)

RELEASE_TYPE: Final = "kubernetes:helm.sh/v3:Release"
CREATE_RETRY_SECONDS: Final = (1, 2, 4, 8, 16)
"""Waits between tries to create an object whose kind or namespace is not there yet; 31 s in all, as the real one."""
CONFLICT_HELP: Final = (
    "https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/"
    "#handle-field-conflicts-on-existing-resources"
)
STATE_KEYS: Final = ("__inputs", "__initialApiVersion", "__fieldManager")
UNREACHABLE_HINT: Final = (
    "If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation with the "
    'PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"'
)


def _manifest(properties: Mapping[str, Value]) -> Manifest:
    plain: Manifest = objects.to_kubernetes_keys(reveal(dict(properties)))
    return plain


def checkpoint(inputs: Mapping[str, Value], live: Manifest, field_manager: str) -> dict[str, Value]:
    """The state to store: the live object's fields, and beside them the inputs, with the inputs' secrets kept secret.

    `metadata.managedFields` is left out: nobody reads it, and it doubles the size of a state file.
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


class KubernetesProvider(provider_pb2_grpc.ResourceProviderServicer):
    """The provider protocol for one cluster."""

    def __init__(self, version: str, log: EngineLog) -> None:
        self._version = version
        self._log = log
        self._stop = threading.Event()
        self._settings = Settings()
        self._api: KubeApi | None = None
        self._access: ClusterAccess | None = None
        self._kubeconfig: dict[str, Any] = {}
        self._unreachable = "the provider is not configured"

    # -- the plugin ---------------------------------------------------------------------------------------------

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        """Answers what the provider understands."""
        self._log.attach(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, supports_autonaming_configuration=True)

    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Uses another engine's log."""
        self._log.attach(request.address)
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """The version served, marked as a stand-in's."""
        return plugin_pb2.PluginInfo(version=standin_version(self._version))

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Ends every wait and every `helm`."""
        self._stop.set()
        return empty_pb2.Empty()

    def cancel(self) -> None:
        """Ends every wait and every `helm`; for the end of the process."""
        self._stop.set()

    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> NoReturn:
        """Refused: no function of the provider is part of the stand-in."""
        fail(context, PluginError(f"{request.tok}: the stand-in of the kubernetes provider has no functions"))

    def Construct(self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext) -> NoReturn:
        """Refused: components are the real provider's alone."""
        why = "the stand-in of the kubernetes provider constructs no components; use helm.v3.Release or CustomResource"
        fail(context, PluginError(f"{request.type}: {why}"))

    def Call(self, request: provider_pb2.CallRequest, context: grpc.ServicerContext) -> NoReturn:
        """Refused: no method of the provider is part of the stand-in."""
        fail(context, PluginError(f"{request.tok}: the stand-in of the kubernetes provider has no methods"))

    # -- configuration ------------------------------------------------------------------------------------------

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Refuses settings that cannot be honoured."""
        failures = [
            provider_pb2.CheckFailure(property=key, reason=reason)
            for key, reason in check_settings(parse_struct(request.news))
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """Says whether a changed configuration means another cluster."""
        try:
            change = compare_settings(parse_struct(request.olds), parse_struct(request.news))
        except PluginError as error:
            fail(context, error)
        changes = provider_pb2.DiffResponse.DIFF_SOME if change.changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=changes, diffs=change.changed, replaces=change.replacing)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        """Reads the kubeconfig and asks the cluster once; a cluster that does not answer fails later, by operation."""
        self._settings = parse_settings(parse_struct(request.args))
        try:
            self._connect()
        except KubeconfigError as error:
            self._api, self._unreachable = None, str(error)
        except PluginError as error:
            self._api, self._unreachable = None, f"unable to load schema information from the API server: {error}"
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
        )

    def _connect(self) -> None:
        if not self._settings.kubeconfig:
            raise KubeconfigError(
                "kubeconfig: not set; the stand-in never uses the ambient kubeconfig, give the provider one"
            )
        self._kubeconfig = load_kubeconfig(self._settings.kubeconfig)
        self._access = cluster_access(self._kubeconfig, self._settings.context, self._settings.cluster)
        api = KubeApi(self._access)
        api.version()
        self._api = api

    @property
    def _default_namespace(self) -> str:
        of_context = self._access.namespace if self._access else ""
        return self._settings.namespace or of_context or "default"

    def _reachable(self) -> KubeApi:
        if self._api is None:
            raise PluginError(f"configured Kubernetes cluster is unreachable: {self._unreachable}")
        return self._api

    def _helm(self) -> HelmReleases:
        return HelmReleases(
            kubeconfig=self._kubeconfig,
            context=self._settings.context,
            cluster=self._settings.cluster,
            default_namespace=self._default_namespace,
            stop=self._stop,
        )

    def _reporter(self, urn: str) -> Callable[[str], None]:
        return lambda text: self._log.status(urn, text)

    # -- resources ----------------------------------------------------------------------------------------------

    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        """The inputs with a name and a namespace; refuses what could only fail later."""
        try:
            news, olds = parse_struct(request.news), parse_struct(request.olds)
            if self._api is None and self._settings.skip_update_unreachable:
                self._log.warning(request.urn, "Cluster is unreachable but skipUpdateUnreachable is set, skipping...")
                return provider_pb2.CheckResponse(inputs=request.olds)
            if request.type == RELEASE_TYPE:
                checked, failures = self._helm().check(news, olds, request.name, request.randomSeed)
            else:
                checked, failures = self._check(request, news, olds), []
        except (PluginError, UnsupportedValueError) as error:
            fail(context, PluginError(str(error)))
        reasons = [provider_pb2.CheckFailure(property=key, reason=reason) for key, reason in failures]
        return provider_pb2.CheckResponse(inputs=render_struct(checked), failures=reasons)

    def _check(
        self, request: provider_pb2.CheckRequest, news: dict[str, Value], olds: dict[str, Value]
    ) -> dict[str, Value]:
        api_version, kind = objects.kind_of_token(request.type)
        inputs = dict(news)
        self._refuse_unsupported(request.type, api_version, kind, inputs)
        inputs = objects.without_read_only_metadata(inputs)
        inputs = self._named(request, inputs, olds)
        metadata = inputs["metadata"]
        if not metadata.get("namespace") and self._is_namespaced(api_version, kind):
            inputs = objects.with_namespace(inputs, self._default_namespace)
        if (wait_for := objects.annotation(reveal(inputs), objects.WAIT_FOR)) != "":
            annotated_rule(wait_for)
        return with_secrets_of(inputs, news)

    def _refuse_unsupported(self, token: str, api_version: str, kind: str, inputs: dict[str, Value]) -> None:
        plain = reveal(inputs)
        for key, wanted in (("apiVersion", api_version), ("kind", kind)):
            if not plain.get(key):
                raise PluginError(f"{token}: {key} is missing; set it to {wanted}")
        if kind.endswith("Patch") and objects.is_built_in(api_version):
            raise PluginError(f"{token}: the stand-in of the kubernetes provider has no Patch resources")
        if kind.endswith("List") and objects.is_built_in(api_version):
            raise PluginError(
                f"{token}: list resources exist for compatibility with YAML manifests and Helm charts, and cannot be "
                "created directly. Use the underlying resource type instead"
            )
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

    def _named(
        self, request: provider_pb2.CheckRequest, inputs: dict[str, Value], olds: dict[str, Value]
    ) -> dict[str, Value]:
        if (reveal(inputs.get("metadata") or {})).get("name"):
            return inputs
        old = reveal(olds)
        if objects.is_annotated_true(old, objects.AUTONAMED):
            return objects.with_name(inputs, old["metadata"]["name"], autonamed=True)
        autonaming = request.autonaming if request.HasField("autonaming") else None
        modes = provider_pb2.CheckRequest.AutonamingOptions
        if autonaming is not None and autonaming.mode == modes.DISABLE:
            raise PluginError(f"{request.type}: autonaming is disabled for the stack; set metadata.name")
        if autonaming is not None and autonaming.proposed_name:
            return objects.with_name(inputs, autonaming.proposed_name, autonamed=True)
        name = objects.generated_name(request.name, request.randomSeed)
        return objects.with_name(inputs, name, autonamed=True)

    def _is_namespaced(self, api_version: str, kind: str) -> bool:
        """Whether the kind lives in namespaces; assumed while the cluster does not know it, corrected on create."""
        if self._api is None:
            return True
        try:
            return self._api.resource_type(api_version, kind).namespaced
        except (NoMatchError, UnreachableError):
            return True

    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """What would change, compared with the live object as last seen."""
        try:
            news, state = parse_struct(request.news), parse_struct(request.olds)
            if request.type == RELEASE_TYPE:
                differ, delete_first = self._helm().diff(state, news), False
                differ.ignore(request.ignoreChanges)
            else:
                differ, delete_first = self._diff(state, news, list(request.ignoreChanges))
        except (PluginError, UnsupportedValueError) as error:
            fail(context, PluginError(str(error)))
        some = provider_pb2.DiffResponse.DIFF_SOME if differ.changes else provider_pb2.DiffResponse.DIFF_NONE
        detailed = {
            render_path(path): provider_pb2.PropertyDiff(kind=provider_pb2.PropertyDiff.Kind.ValueType(int(change)))
            for path, change in differ.changes.items()
        }
        return provider_pb2.DiffResponse(
            changes=some,
            replaces=differ.replaced_paths,
            deleteBeforeReplace=bool(differ.replaced_paths) and delete_first,
            detailedDiff=detailed,
            hasDetailedDiff=True,
            diffs=sorted({render_path(path[:1]) for path in differ.changes}),
        )

    def _diff(self, state: dict[str, Value], news: dict[str, Value], ignored: list[str]) -> tuple[Differ, bool]:
        old_inputs, live = parse_checkpoint(state)
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
            new, config_map_mutable=self._settings.config_map_mutable, secret_mutable=self._settings.secret_mutable
        )
        built_in = objects.is_built_in(new.get("apiVersion", ""))
        differ = Differ(replacing, objects.same_for_server if built_in else never_equal)
        differ.compare(seen, new)
        differ.ignore(ignored)
        same_place = objects.object_id(new) == objects.object_id(seen)
        return differ, same_place and not objects.is_annotated_true(new, objects.AUTONAMED)

    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        """Creates the object and waits until it is ready; in a preview, as a dry run where the kind exists."""
        try:
            inputs = parse_struct(request.properties)
            if request.type == RELEASE_TYPE:
                resource_id, state = self._create_release(request, inputs)
            else:
                created = self._create(request, inputs)
                if created is None:
                    return provider_pb2.CreateResponse(properties=request.properties)
                resource_id, state = created
        except (PluginError, UnsupportedValueError) as error:
            fail(context, error if isinstance(error, PluginError) else PluginError(str(error)))
        return provider_pb2.CreateResponse(id=resource_id, properties=render_struct(state))

    def _create_release(
        self, request: provider_pb2.CreateRequest, inputs: dict[str, Value]
    ) -> tuple[str, dict[str, Value]]:
        if request.preview:
            return "", self._helm().preview(inputs)
        self._reachable()
        return self._helm().create(inputs, request.timeout, self._reporter(request.urn))

    def _create(
        self, request: provider_pb2.CreateRequest, inputs: dict[str, Value]
    ) -> tuple[str, dict[str, Value]] | None:
        manifest = _manifest(inputs)
        manager = objects.field_manager_for(manifest, {})
        if request.preview:
            return self._preview_create(request.urn, inputs, manifest, manager)
        api = self._reachable()
        live = self._created(api, manifest, manager, request.urn)
        if manifest["kind"] == "CustomResourceDefinition":
            api.forget_types()
        resource_id = objects.object_id(live)
        report = self._reporter(request.urn)
        try:
            live = Waiter(api, self._stop).until_ready(live, manifest, request.timeout, report)
        except AwaitError as error:
            message = (
                f'resource "{request.urn}" was successfully created, but the Kubernetes API server reported that it '
                f"failed to fully initialize or become live: {error}"
            )
            raise InitializationError(message, resource_id, checkpoint(inputs, error.last, manager)) from error
        self._log.status(request.urn, "")
        return resource_id, checkpoint(inputs, live, manager)

    def _preview_create(
        self, urn: str, inputs: dict[str, Value], manifest: Manifest, manager: str
    ) -> tuple[str, dict[str, Value]] | None:
        if self._api is None or has_unknown(inputs):
            return None
        try:
            live = self._api.create(self._placed(self._api, manifest), field_manager=manager, dry_run=True)
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
                if self._settings.upsert:
                    force = self._is_forced(manifest)
                    return api.apply(placed, field_manager=manager, force=force, dry_run=False)
                return api.create(placed, field_manager=manager, dry_run=False)
            except (NoMatchError, ApiError) as error:
                missing = isinstance(error, NoMatchError) or error.is_not_found
                if not missing or pause is None or self._stop.is_set():
                    raise self._creation_failure(urn, error, manager) from error
                self._log.status(urn, f"Retry #{attempt}; creation failed: {error}")
                self._stop.wait(pause)
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
        return self._settings.patch_force or objects.is_annotated_true(manifest, objects.PATCH_FORCE)

    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        """Applies the new inputs server-side and waits until the object is ready."""
        try:
            inputs, state = parse_struct(request.news), parse_struct(request.olds)
            if request.type == RELEASE_TYPE:
                updated: dict[str, Value] | None = self._update_release(request, inputs, state)
            else:
                updated = self._update(request, inputs, state)
        except (PluginError, UnsupportedValueError) as error:
            fail(context, error if isinstance(error, PluginError) else PluginError(str(error)))
        properties = request.news if updated is None else render_struct(updated)
        return provider_pb2.UpdateResponse(properties=properties)

    def _update_release(
        self, request: provider_pb2.UpdateRequest, inputs: dict[str, Value], state: dict[str, Value]
    ) -> dict[str, Value]:
        if request.preview:
            return self._helm().preview(inputs)
        self._reachable()
        return self._helm().update(inputs, state, request.timeout, self._reporter(request.urn))

    def _update(
        self, request: provider_pb2.UpdateRequest, inputs: dict[str, Value], state: dict[str, Value]
    ) -> dict[str, Value] | None:
        manifest = objects.without_read_only_metadata(_manifest(inputs))
        manager = objects.field_manager_for(manifest, reveal(state))
        if request.preview and (self._api is None or has_unknown(inputs)):
            return None
        api = self._reachable()
        try:
            applied = self._applied(api, manifest, parse_checkpoint(state)[1], manager, request)
        except NoMatchError as error:
            if request.preview:
                return None
            raise PluginError(
                f'update of resource "{request.urn}" failed because the Kubernetes API server reported that the '
                f"apiVersion for this resource does not exist. Verify that any required CRDs have been created: {error}"
            ) from error
        except ApiError as error:
            if request.preview and error.code == 403:
                return None
            raise self._update_failure(request, error, manager) from error
        if request.preview:
            return checkpoint(inputs, applied, manager)
        try:
            live = Waiter(api, self._stop).until_ready(applied, manifest, request.timeout, self._reporter(request.urn))
        except AwaitError as error:
            message = (
                f'the Kubernetes API server reported that "{request.id}" failed to fully initialize or become live: '
                f"{error}"
            )
            raise InitializationError(message, request.id, checkpoint(inputs, error.last, manager)) from error
        self._log.status(request.urn, "")
        return checkpoint(inputs, live, manager)

    def _update_failure(self, request: provider_pb2.UpdateRequest, error: ApiError, manager: str) -> PluginError:
        if error.is_not_found:
            return PluginError(f'update of resource "{request.urn}" failed: {error}; run `pulumi refresh` first')
        shown = apply_failure(error, manager)
        return PluginError(
            f'the Kubernetes API server reported that "{request.id}" failed to fully initialize or become live: {shown}'
        )

    def _applied(
        self, api: KubeApi, manifest: Manifest, stored: Manifest, manager: str, request: provider_pb2.UpdateRequest
    ) -> Manifest:
        placed = self._placed(api, manifest)
        live = api.get(placed)
        if manifest["kind"] == "CustomResourceDefinition":
            # A merge would keep versions and fields that the program has removed.
            replacing = {**placed["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
            replaced = api.replace({**placed, "metadata": replacing}, field_manager=manager, dry_run=request.preview)
            api.forget_types()
            return replaced
        managed = live["metadata"].get("managedFields", [])
        force = self._is_forced(manifest)
        if request.preview:
            force = force or bool(objects.owned_by_create(managed))
        elif (taken := objects.taken_over(managed, manager)) is not None:
            live = api.patch_json(
                placed,
                [
                    {"op": "test", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
                    {"op": "replace", "path": "/metadata/managedFields", "value": taken},
                ],
            )
        return api.apply(placed, field_manager=manager, force=force, dry_run=request.preview)

    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        """The live object, for a refresh or an import; an empty answer when it is gone."""
        try:
            if self._api is None:
                return self._read_unreachable(request)
            state, inputs = parse_struct(request.properties), parse_struct(request.inputs)
            if request.type == RELEASE_TYPE:
                found = self._helm().read(request.id, state)
            else:
                found = self._read(request, state, inputs)
        except (PluginError, UnsupportedValueError) as error:
            fail(context, PluginError(str(error)))
        if found is None:
            return provider_pb2.ReadResponse()
        live_state, live_inputs = found
        return provider_pb2.ReadResponse(
            id=request.id, properties=render_struct(live_state), inputs=render_struct(live_inputs)
        )

    def _read_unreachable(self, request: provider_pb2.ReadRequest) -> provider_pb2.ReadResponse:
        self._log.warning(request.urn, f"configured Kubernetes cluster is unreachable: {self._unreachable}")
        if self._settings.delete_unreachable:
            return provider_pb2.ReadResponse()
        if self._settings.skip_update_unreachable:
            return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)
        raise PluginError(f"failed to read resource state due to unreachable cluster. {UNREACHABLE_HINT}")

    def _read(
        self, request: provider_pb2.ReadRequest, state: dict[str, Value], inputs: dict[str, Value]
    ) -> tuple[dict[str, Value], dict[str, Value]] | None:
        api = self._reachable()
        api_version, kind = objects.kind_of_token(request.type)
        namespace, name = objects.parse_object_id(request.id)
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
                live_inputs: dict[str, Value] = inputs
            else:
                live_inputs = objects.to_pulumi_keys(objects.pruned(live, shape))
        else:
            kept = {key: value for key, value in live.items() if key != "status"}
            live_inputs = objects.to_pulumi_keys(objects.without_read_only_metadata(kept))
        live_inputs = with_secrets_of(live_inputs, inputs)
        return checkpoint(live_inputs, live, manager), live_inputs

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Deletes the object and waits until it is gone; an object or kind that is not there any more is fine."""
        try:
            state = parse_struct(request.properties)
            if self._api is None:
                self._delete_unreachable(request)
            elif request.type == RELEASE_TYPE:
                self._helm().delete(state, request.timeout)
            else:
                self._delete(self._api, request, state)
        except (PluginError, UnsupportedValueError) as error:
            fail(context, error if isinstance(error, PluginError) else PluginError(str(error)))
        return empty_pb2.Empty()

    def _delete_unreachable(self, request: provider_pb2.DeleteRequest) -> None:
        self._log.warning(request.urn, f"configured Kubernetes cluster is unreachable: {self._unreachable}")
        if not self._settings.delete_unreachable:
            raise PluginError(f"configured Kubernetes cluster is unreachable. {UNREACHABLE_HINT}")
        self._log.info(request.urn, "deleteUnreachable is set: the resource is deleted from Pulumi's state only")

    def _delete(self, api: KubeApi, request: provider_pb2.DeleteRequest, state: dict[str, Value]) -> None:
        inputs, live = parse_checkpoint(state)
        api_version, kind = objects.kind_of_token(request.type)
        namespace, name = objects.parse_object_id(request.id)
        doomed = {**live, "apiVersion": live.get("apiVersion", api_version), "kind": live.get("kind", kind)}
        doomed["metadata"] = {**(live.get("metadata") or {}), "name": name, "namespace": namespace}
        policy = objects.annotation(inputs, objects.DELETION_PROPAGATION).lower()
        propagation = {"orphan": "Orphan", "background": "Background"}.get(policy, "Foreground")
        try:
            api.delete(doomed, propagation=propagation)
            Waiter(api, self._stop).until_gone(doomed, inputs, request.timeout, self._reporter(request.urn))
        except NoMatchError:
            return
        except ApiError as error:
            if not error.is_not_found:
                raise
        except AwaitError as error:
            manager = objects.field_manager_for(inputs, reveal(state))
            stored = checkpoint(parse_struct(request.old_inputs) or inputs, error.last, manager)
            raise InitializationError(str(error), request.id, stored) from error


def main(version: str, arguments: list[str]) -> int:
    """Serves the provider for the engine whose address is the last argument."""
    log = EngineLog(arguments[-1] if arguments else None)
    provider = KubernetesProvider(version, log)

    def add(server: grpc.Server) -> None:
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)

    return serve(add, provider.cancel)
