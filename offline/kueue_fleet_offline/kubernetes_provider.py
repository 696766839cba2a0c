"""Stand-in for `pulumi-resource-kubernetes`: Kubernetes objects and Helm releases on real API servers on loopback.

Does what the real provider does (4.34; pulumi-kubernetes provider/pkg/provider) for every kind and for
`helm.sh/v3:Release`. Refused by name: components that the provider constructs (helm v4 Chart, yaml v2, kustomize),
functions, List resources, client-side apply, YAML rendering, `replaceUnready`, and servers that are not on
this machine.
"""

# ruff: noqa: N802  (the names are the protocol's)

from __future__ import annotations

from typing import Any, Final, NoReturn

import grpc  # type: ignore[import-untyped]
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import provider_pb2

from kueue_fleet.rehearsal.standins.plugin_errors import PluginError
from kueue_fleet.rehearsal.standins.plugin_server import (
    EngineLog,
    StandInProvider,
    check_response,
    diff_response,
    refusing,
    serve_provider,
)
from kueue_fleet.rehearsal.standins.property_values import Value, parse_struct, render_struct
from kueue_fleet_offline.helm_release import HelmReleases
from kueue_fleet_offline.kube_api import KubeApi
from kueue_fleet_offline.kube_objects import is_patch_urn
from kueue_fleet_offline.kube_resources import KubeResources, Naming
from kueue_fleet_offline.kube_settings import Settings, check_settings, compare_settings, parse_settings
from kueue_fleet_offline.kubeconfig import ClusterAccess, KubeconfigError, cluster_access, load_kubeconfig

RELEASE_TYPE: Final = "kubernetes:helm.sh/v3:Release"
"""Pulumi type of a Helm release."""
UNREACHABLE_HINT: Final = (
    "If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation with the "
    'PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"'
)
"""What to do where the API server does not answer."""


class KubernetesProvider(StandInProvider):
    """The provider protocol for one cluster."""

    def __init__(self, version: str, log: EngineLog) -> None:
        super().__init__(version, log)
        self._settings = Settings()
        self._api: KubeApi | None = None
        self._access: ClusterAccess | None = None
        self._kubeconfig: dict[str, Any] = {}
        self._unreachable = "the provider is not configured"

    # -- the plugin ---------------------------------------------------------------------------------------------

    @refusing
    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> NoReturn:
        """Raises PluginError: no function of the provider is part of the stand-in."""
        raise PluginError(f"{request.tok}: the stand-in of the kubernetes provider has no functions")

    @refusing
    def Construct(self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext) -> NoReturn:
        """Raises PluginError: components are the real provider's alone."""
        why = "the stand-in of the kubernetes provider constructs no components; use helm.v3.Release or CustomResource"
        raise PluginError(f"{request.type}: {why}")

    @refusing
    def Call(self, request: provider_pb2.CallRequest, context: grpc.ServicerContext) -> NoReturn:
        """Raises PluginError: no method of the provider is part of the stand-in."""
        raise PluginError(f"{request.tok}: the stand-in of the kubernetes provider has no methods")

    # -- configuration ------------------------------------------------------------------------------------------

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Refuses settings that cannot be honoured."""
        return check_response(request.news, check_settings(parse_struct(request.news)))

    @refusing
    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """Says whether a changed configuration means another cluster."""
        change = compare_settings(parse_struct(request.olds), parse_struct(request.news))
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

    def _resources(self) -> KubeResources:
        return KubeResources(
            api=self._api,
            unreachable=self._unreachable,
            settings=self._settings,
            default_namespace=self._default_namespace,
            stop=self._stop,
            report=self._log.status,
        )

    def _helm(self, *, reachable: bool = False) -> HelmReleases:
        if reachable:
            self._resources().reachable()
        return HelmReleases(
            kubeconfig=self._kubeconfig,
            context=self._settings.context,
            cluster=self._settings.cluster,
            default_namespace=self._default_namespace,
            stop=self._stop,
        )

    # -- resources ----------------------------------------------------------------------------------------------

    @refusing
    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        """The inputs with a name and a namespace; refuses what could only fail later."""
        if self._api is None and self._settings.skip_update_unreachable:
            self._log.warning(request.urn, "Cluster is unreachable but skipUpdateUnreachable is set, skipping...")
            return provider_pb2.CheckResponse(inputs=request.olds)
        failures: list[tuple[str, str]] = []
        news, olds = parse_struct(request.news), parse_struct(request.olds)
        naming = _naming(request)
        if request.type == RELEASE_TYPE:
            checked, failures = self._helm().check(news, olds, naming.resource_name, naming.random_seed)
        else:
            checked = self._resources().check(request.type, naming, news, olds)
        return check_response(render_struct(checked), failures)

    @refusing
    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """What would change, compared with the live object as last seen."""
        news, state = parse_struct(request.news), parse_struct(request.olds)
        if request.type == RELEASE_TYPE:
            differ, delete_first = self._helm().diff(state, news), False
            differ.ignore(request.ignoreChanges)
        else:
            differ, delete_first = self._resources().diff(
                state, news, list(request.ignoreChanges), patch=is_patch_urn(request.urn)
            )
        return diff_response(differ.changes, delete_first=delete_first)

    @refusing
    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        """Creates the object and waits until it is ready; in a preview, as a dry run where the kind exists."""
        inputs = parse_struct(request.properties)
        if request.type != RELEASE_TYPE:
            created = self._resources().create(request.urn, inputs, seconds=request.timeout, preview=request.preview)
        elif request.preview:
            created = "", self._helm().preview(inputs)
        else:
            self._log.status(request.urn, f"helm install {request.name}")
            created = self._helm(reachable=True).create(inputs, request.timeout)
        if created is None:
            return provider_pb2.CreateResponse(properties=request.properties)
        resource_id, state = created
        return provider_pb2.CreateResponse(id=resource_id, properties=render_struct(state))

    @refusing
    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        """Applies the new inputs server-side and waits until the object is ready."""
        updated: dict[str, Value] | None
        inputs, state = parse_struct(request.news), parse_struct(request.olds)
        if request.type != RELEASE_TYPE:
            updated = self._resources().update(
                request.urn, request.id, inputs, state, seconds=request.timeout, preview=request.preview
            )
        elif request.preview:
            updated = self._helm().preview(inputs)
        else:
            self._log.status(request.urn, f"helm upgrade {request.name}")
            updated = self._helm(reachable=True).update(inputs, request.timeout)
        return provider_pb2.UpdateResponse(properties=request.news if updated is None else render_struct(updated))

    @refusing
    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        """The live object, for a refresh or an import; an empty answer when it is gone."""
        if self._api is None:
            return self._read_unreachable(request)
        state, inputs = parse_struct(request.properties), parse_struct(request.inputs)
        if request.type == RELEASE_TYPE:
            found = self._helm().read(request.id, state)
        else:
            found = self._resources().read(request.type, request.id, state, inputs)
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

    @refusing
    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Deletes the object and waits until it is gone; an object or kind that is not there any more is fine."""
        state = parse_struct(request.properties)
        if self._api is None:
            self._delete_unreachable(request)
        elif request.type == RELEASE_TYPE:
            self._log.status(request.urn, f"helm uninstall {request.name}")
            self._helm().delete(state, request.timeout)
        else:
            old_inputs = parse_struct(request.old_inputs)
            self._resources().delete(request.type, request.urn, request.id, state, old_inputs, seconds=request.timeout)
        return empty_pb2.Empty()

    def _delete_unreachable(self, request: provider_pb2.DeleteRequest) -> None:
        self._log.warning(request.urn, f"configured Kubernetes cluster is unreachable: {self._unreachable}")
        if not self._settings.delete_unreachable:
            raise PluginError(f"configured Kubernetes cluster is unreachable. {UNREACHABLE_HINT}")
        self._log.info(request.urn, "deleteUnreachable is set: the resource is deleted from Pulumi's state only")


def _naming(request: provider_pb2.CheckRequest) -> Naming:
    if not request.HasField("autonaming"):
        return Naming(request.name, request.randomSeed)
    return Naming(
        request.name,
        request.randomSeed,
        proposed=request.autonaming.proposed_name,
        disabled=request.autonaming.mode == provider_pb2.CheckRequest.AutonamingOptions.DISABLE,
    )


def main(version: str, arguments: list[str]) -> int:
    """Serves the provider for the engine whose address is the last argument."""
    return serve_provider(KubernetesProvider, version, arguments)
