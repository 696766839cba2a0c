"""Stand-in for `pulumi-resource-gcp`: Google Cloud as far as a rehearsal needs it.

A real control plane on this machine for each Cluster and its node pools, both through the rehearsal's supervisor; for
the rest (networks, accounts, roles, services, fleets) the outputs that Google would give, kept in Pulumi's state only.
What is refused, what an update does and what Google answers is decided by the schema of the real provider and by
tables: see `gcp_checks`, `google.plan` and `google.answers`. A type without facts is kept as the program gives it,
with a warning. Refused by name: functions that read Google Cloud, imports of what only Pulumi's state knows, custom
endpoints.
"""

# ruff: noqa: N802  (the names are the protocol's)

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import grpc  # type: ignore[import-untyped]
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import provider_pb2

from kueue_admission.kernel.unknown import holds_unknown, is_set
from kueue_fleet.google.answers import function_answer
from kueue_fleet.google.gke_answers import without_no_accelerators
from kueue_fleet.google.plan import planned_changes, previewed, updated_state
from kueue_fleet.google.resource_kinds import RESERVATIONS, kind_of, kinds
from kueue_fleet.google.resource_types import CLUSTER, FILESTORE, LUSTRE, NODE_POOL
from kueue_rehearsal.processes.supervisor_client import SupervisorClient, SupervisorError
from kueue_rehearsal.standins.gcp_checks import check_inputs
from kueue_rehearsal.standins.gcp_resources import answered, check_version, completed, generated_name
from kueue_rehearsal.standins.plugin_errors import PluginError
from kueue_rehearsal.standins.plugin_server import (
    EngineLog,
    StandInProvider,
    check_response,
    diff_response,
    refusing,
    serve_provider,
)
from kueue_rehearsal.standins.property_values import Value, parse_struct, render_struct, reveal, with_secrets_of
from kueue_rehearsal.standins.supervised import call_supervisor

PROTECTED: Final = (
    "Cannot destroy cluster because deletion_protection is set to true. "
    "Set it to false to proceed with cluster deletion."
)
"""What the real provider says of a cluster whose deletionProtection is on."""
MAX_NAME_SUFFIX: Final = 7
"""Characters that a made-up name has at its end, at most."""
NO_TOKEN: Final = "a-rehearsal-has-no-access-token"  # noqa: S105  (none)
"""Instead of Google's."""
NOT_FOUND: Final = 404
"""HTTP status where something is not there."""

SETTINGS: Final = (
    "accessToken",
    "addPulumiAttributionLabel",
    "batching",
    "billingProject",
    "credentials",
    "defaultLabels",
    "deletionPolicy",
    "disableGooglePartnerName",
    "externalCredentials",
    "googlePartnerName",
    "impersonateServiceAccount",
    "impersonateServiceAccountDelegates",
    "pluginDownloadURL",
    "pollInterval",
    "preferGlobalEndpoints",
    "preferRegionalEndpoints",
    "project",
    "pulumiAttributionLabelAdditionStrategy",
    "region",
    "requestReason",
    "requestTimeout",
    "scopes",
    "universeDomain",
    "userProjectOverride",
    "version",
    "zone",
)
"""Settings of the real provider, less its endpoints, and the two that every provider has."""

_PLACE: Final = "projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/clusters"
_IDS: Final = {
    CLUSTER: re.compile(f"{_PLACE}/(?P<name>[^/]+)"),
    NODE_POOL: re.compile(f"{_PLACE}/(?P<cluster>[^/]+)/nodePools/(?P<name>[^/]+)"),
}
"""What is imported by its id."""

T = TypeVar("T")


class GcpProvider(StandInProvider):
    """The provider protocol for one project."""

    def __init__(self, version: str, log: EngineLog) -> None:
        super().__init__(version, log)
        self._where: dict[str, Any] = {}

    # -- functions, methods, components -------------------------------------------------------------------------

    @refusing
    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> provider_pb2.InvokeResponse:
        """Its own settings, and a project. Raises PluginError for others: those read the real Google Cloud."""
        places = {key: self._where.get(key, "") for key in ("project", "region", "zone")}
        arguments = {name: reveal(value) for name, value in parse_struct(request.args).items()}
        answer = function_answer(request.tok, arguments, places, NO_TOKEN)
        if answer is None:
            raise PluginError(f"{request.tok}: the stand-in of the Google Cloud provider has no such function")
        return provider_pb2.InvokeResponse(**{"return": render_struct(answer)})

    @refusing
    def Call(self, request: provider_pb2.CallRequest, context: grpc.ServicerContext) -> NoReturn:
        """Raises PluginError: no method of the provider is part of the stand-in."""
        raise PluginError(f"{request.tok}: the stand-in of the Google Cloud provider has no methods")

    @refusing
    def Construct(self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext) -> NoReturn:
        """Raises PluginError: the real provider has no components either."""
        raise PluginError(f"{request.type}: the stand-in of the Google Cloud provider has no components")

    # -- configuration ------------------------------------------------------------------------------------------

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Refuses settings that the provider does not have, and custom endpoints."""
        failures = []
        for key in parse_struct(request.news):
            if key.endswith("CustomEndpoint"):
                failures.append((key, f"{key}: a rehearsal has no endpoints of Google's; leave it out"))
            elif key not in SETTINGS and key != "__defaults":
                near = difflib.get_close_matches(key, SETTINGS, n=1, cutoff=0.0)[0]
                failures.append((key, f"{key}: pulumi-gcp has no such setting; did you mean {near}?"))
        return check_response(request.news, failures)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """No setting of the provider replaces it."""
        old, new = (reveal(parse_struct(settings)) for settings in (request.olds, request.news))
        changed_names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
        some = provider_pb2.DiffResponse.DIFF_SOME if changed_names else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=some, diffs=changed_names)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        """Keeps project, region and zone."""
        values = reveal(parse_struct(request.args))
        self._where = {key: values[key] for key in ("project", "region", "zone") if is_set(values.get(key))}
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
        )

    # -- resources ----------------------------------------------------------------------------------------------

    @refusing
    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        """The inputs with a name, a project and a place; refuses what the provider's schema refuses."""
        kind = kind_of(request.type)
        news, olds = parse_struct(request.news), parse_struct(request.olds)
        inputs = dict(news)
        if kind.named and not is_set(inputs.get("name")) and "namePrefix" not in inputs:
            inputs["name"] = olds.get("name") or self._made_up_name(request)
        inputs = completed(request.type, inputs, self._where)
        failures = check_inputs(request.type, inputs)
        return check_response(render_struct(inputs), failures)

    def _made_up_name(self, request: provider_pb2.CheckRequest) -> str:
        if request.HasField("autonaming") and request.autonaming.proposed_name:
            return str(request.autonaming.proposed_name)
        return generated_name(request.name.lower(), request.randomSeed)[: -(8 - MAX_NAME_SUFFIX)]

    @refusing
    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        """What an update would change, against what Google answered, and what replaces the resource."""
        state, news = reveal(parse_struct(request.olds)), reveal(parse_struct(request.news))
        changes = planned_changes(request.type, state, news, request.ignoreChanges)
        # Google's names are unique: where the program sets the name, the old one must go first.
        return diff_response(changes, delete_first=state.get("name") == news.get("name"))

    @refusing
    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        """Makes the resource; a cluster is there when its control plane answers.

        Raises PluginError when an input is missing, refused, or cannot be carried out.
        """
        try:
            inputs = parse_struct(request.properties)
            if request.preview:
                return provider_pb2.CreateResponse(properties=render_struct(previewed(request.type, inputs)))
            resource_inputs = _request_body(request, {}, inputs)
            if request.type not in kinds():
                notice = (
                    f"{request.type} {_pulumi_name(request.urn)}: is not simulated; it is kept as the program gives it"
                )
                self._log.warning(request.urn, notice)
            resource_id = kind_of(request.type).resource_id(resource_inputs)
            state = self._applied(request.type, request.urn, resource_inputs, resource_id)
        except KeyError as error:
            raise PluginError(f"{request.type}: required field {error.args[0]} is not set; set it") from None
        return provider_pb2.CreateResponse(id=resource_id, properties=render_struct(with_secrets_of(state, inputs)))

    def _applied(self, token: str, urn: str, inputs: dict[str, Any], resource_id: str) -> dict[str, Value]:
        """What Google answers, after clusters, pools and reservations have been made as `inputs` wants them."""
        control_plane: dict[str, Any] = {}
        if token == CLUSTER:
            control_plane = self._put_cluster(urn, inputs)
        elif token == NODE_POOL:
            control_plane = self._put_pool(urn, inputs)
        elif token in RESERVATIONS:
            zone, name = inputs["zone"], inputs["name"]
            self._ask(urn, f"Reserving {name}", lambda client: client.put_reservation(zone, name, inputs))
        return answered(token, inputs, resource_id, control_plane)

    def _put_cluster(self, urn: str, inputs: dict[str, Any]) -> dict[str, Any]:
        name = inputs["name"]
        self._log.status(urn, "Starting the control plane")
        control_plane = self._ask(
            urn,
            f"Waiting for the control plane of {name}",
            lambda client: client.put_cluster(
                name,
                project=inputs["project"],
                location=inputs["location"],
                autopilot=inputs.get("enableAutopilot") is True,
            ),
        )
        check_version(inputs, str(control_plane["version"]))
        self._ask(urn, f"Configuring the nodes of {name}", lambda client: client.put_inputs(name, inputs))
        return control_plane

    def _ask(self, urn: str, what: str, ask: Callable[[SupervisorClient], T]) -> T:
        """What the supervisor answers; `what` is shown with the time while it works."""

        def progress(seconds: float) -> None:
            self._log.status(urn, f"{what} ({seconds:.0f} s)")

        answer = call_supervisor(lambda: ask(SupervisorClient.from_environment()), self._stop, progress)
        self._log.status(urn, "")
        return answer

    def _put_pool(self, urn: str, inputs: dict[str, Any]) -> dict[str, Any]:
        cluster, pool = str(inputs["cluster"]).rpartition("/")[2], inputs["name"]
        what = f"Waiting for node pool {pool} of {cluster}"
        control_plane = self._ask(urn, what, lambda client: client.get_cluster(cluster))
        if control_plane.get("autopilot"):
            raise PluginError(f"Autopilot clusters do not support mutating node pools; remove the pool of {cluster}")
        pool_inputs = {**without_no_accelerators(inputs), "cluster": cluster}
        self._ask(urn, what, lambda client: client.put_node_pool(cluster, pool, pool_inputs))
        inputs_of_cluster = self._ask(urn, what, lambda client: client.inputs(cluster))["cluster"]
        return {**control_plane, "asked": inputs_of_cluster}

    @refusing
    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        """Changes the resource in place; what is left out and is Google's to choose stays.

        Raises PluginError when Google would refuse the change.
        """
        inputs = parse_struct(request.news)
        olds = reveal(parse_struct(request.olds))
        if request.type == NODE_POOL and "nodeCount" in inputs:
            # GKE's own answer, and not asked for.
            olds.pop("initialNodeCount", None)
        resource_inputs = _request_body(request, olds, inputs)
        if request.preview or holds_unknown(reveal(inputs)):
            return provider_pb2.UpdateResponse(properties=render_struct(with_secrets_of(resource_inputs, inputs)))
        if request.type in (FILESTORE, LUSTRE):
            from kueue_fleet.google.storage import refused_update  # It takes long, and few fleets come here.

            if why := refused_update(request.type, olds, resource_inputs):
                raise PluginError(f"{request.type} {_pulumi_name(request.urn)}: Google refuses the update: {why}")
        state = self._applied(request.type, request.urn, resource_inputs, request.id)
        return provider_pb2.UpdateResponse(properties=render_struct(with_secrets_of(state, inputs)))

    @refusing
    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        """A cluster as the supervisor has it; of the rest, what Pulumi's state says. Empty when it is gone.

        Raises PluginError for an import of anything but clusters and node pools.
        """
        state, inputs = parse_struct(request.properties), parse_struct(request.inputs)
        if not state and request.type in _IDS:
            return self._read_by_id(request)
        if not state:
            raise PluginError(
                f"{request.type}: the stand-in of the Google Cloud provider cannot import it; let Pulumi create it"
            )
        if request.type in (CLUSTER, NODE_POOL):
            # Not of the inputs: what a program reads by its id has none.
            place = reveal(state)
            name = place["name"] if request.type == CLUSTER else str(place["cluster"]).rpartition("/")[2]
            live = self._ask(request.urn, f"Reading {name}", lambda client: _cluster_or_none(client, name))
            if live is None:
                return provider_pb2.ReadResponse()
            if request.type == CLUSTER:
                state = with_secrets_of(answered(CLUSTER, reveal(state), request.id, live), inputs)
        return provider_pb2.ReadResponse(id=request.id, properties=render_struct(state), inputs=request.inputs)

    def _read_by_id(self, request: provider_pb2.ReadRequest) -> provider_pb2.ReadResponse:
        """A cluster or pool that the state does not have, by its id; empty where there is none."""
        match = _IDS[request.type].fullmatch(request.id)
        if match is None:
            form = "projects/P/locations/L/clusters/NAME" + ("/nodePools/NAME" if request.type == NODE_POOL else "")
            raise PluginError(f"{request.id}: is not an id of a {request.type}; write {form}")
        place = match.groupdict()
        cluster = place.get("cluster") or place["name"]
        live = self._ask(request.urn, f"Reading {cluster}", lambda client: _cluster_or_none(client, cluster))
        if live is None or any(live[key] != place[key] for key in ("project", "location")):
            return provider_pb2.ReadResponse()
        cluster_inputs = self._ask(request.urn, f"Reading {cluster}", lambda client: client.inputs(cluster))
        if request.type == CLUSTER:
            live_inputs = {**cluster_inputs["cluster"], **place, "enableAutopilot": bool(live["autopilot"])}
        elif place["name"] in cluster_inputs["nodePools"]:
            live_inputs = {**cluster_inputs["nodePools"][place["name"]], **place}
        else:
            return provider_pb2.ReadResponse()
        state = answered(request.type, live_inputs, request.id, {**live, "asked": cluster_inputs["cluster"]})
        return provider_pb2.ReadResponse(
            id=request.id, properties=render_struct(state), inputs=render_struct(live_inputs)
        )

    @refusing
    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Removes the resource; a cluster with deletion protection in its state is kept, as Google's provider does."""
        state = reveal(parse_struct(request.properties))
        self._delete(request.type, request.urn, state)
        return empty_pb2.Empty()

    def _delete(self, token: str, urn: str, state: dict[str, Any]) -> None:
        if token == CLUSTER and state.get("deletionProtection", True) is not False:
            raise PluginError(PROTECTED)
        policy = state.get("deletionPolicy")
        if policy == "PREVENT":
            raise PluginError(f"{urn}: deletionPolicy is PREVENT in the state; change it to DELETE and update first")
        if policy == "ABANDON" or token not in (CLUSTER, NODE_POOL, *RESERVATIONS):
            return
        name = state["name"]
        if token in RESERVATIONS:
            self._ask(
                urn, f"Deleting reservation {name}", lambda client: client.delete_reservation(state["zone"], name)
            )
            return
        if token == CLUSTER:
            self._ask(urn, f"Waiting for the deletion of {name}", lambda client: _delete(client, name, None))
        else:
            cluster = str(state["cluster"]).rpartition("/")[2]
            self._ask(urn, f"Waiting for the deletion of {name}", lambda client: _delete(client, cluster, name))


def _pulumi_name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _request_body(
    request: provider_pb2.CreateRequest | provider_pb2.UpdateRequest, olds: dict[str, Any], inputs: dict[str, Value]
) -> dict[str, Any]:
    """What Google is asked for; what is not simulated has a name, as most types have."""
    made_up = {} if request.type in kinds() else {"name": _pulumi_name(request.urn)}
    return {**made_up, **updated_state(request.type, olds, reveal(inputs))}


def _cluster_or_none(client: SupervisorClient, name: str) -> dict[str, Any] | None:
    try:
        return client.get_cluster(name)
    except SupervisorError as error:
        if error.status == NOT_FOUND:
            return None
        raise


def _delete(client: SupervisorClient, cluster: str, pool: str | None) -> None:
    """Removes a cluster or a pool of it; one that is gone already is fine."""
    try:
        if pool is None:
            client.delete_cluster(cluster)
        else:
            client.delete_node_pool(cluster, pool)
    except SupervisorError as error:
        if error.status != NOT_FOUND:
            raise


def main(version: str, arguments: list[str]) -> int:
    """Serves the provider for the engine whose address is the last argument."""
    return serve_provider(GcpProvider, version, arguments)
