"""Random fleet files: they have no errors, and every field of a fleet file is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from hypothesis import Phase, given, seed, settings

from drawn import examples
from kueue_admission.kernel.schema_path import fields_of, is_model, plain_type
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from tests.fleet_files import fleet_files
from tests.fleet_files.drawing import Data

NOT_DRAWN = {
    "KueueConfiguration.namespace": "is that of kueue.namespace, or an error",
    "MultiKueueConfiguration.gcInterval": "is the fleet's multiKueue.gcInterval",
    "MultiKueueConfiguration.origin": "is the fleet's multiKueue.origin",
    "MultiKueueConfiguration.workerLostTimeout": "is the fleet's multiKueue.workerLostTimeout",
    "MultiKueueConfiguration.dispatcherName": "is the fleet's multiKueue.dispatcher",
    "MultiKueueConfiguration.incrementalDispatcherConfig": "is the fleet's multiKueue.incremental",
    "MultiKueueConfiguration.clusterProfile": "is the fleet's multiKueue.credentials",
    "IncrementalDispatcherConfig.stepSize": "is the fleet's multiKueue.incremental",
    **dict.fromkeys(
        (
            "ClusterEntry.kubernetes",
            "ClusterEntry.location",
            "ClusterEntry.nodes",
            "KubernetesConnection.context",
            "KubernetesConnection.server",
            "KubernetesConnection.certificateAuthorityData",
            "KubernetesConnection.tlsServerName",
            "KubernetesConnection.proxyUrl",
            "ClusterNodes.name",
            "ClusterNodes.count",
            "ClusterNodes.labels",
            "ClusterNodes.taints",
            "ClusterNodes.allocatable",
            "ClusterNodes.pricePerHour",
        ),
        "is of a cluster outside GKE, which tests/fleet_files/plain.py draws",
    ),
    "ClusterQueueEntry.goals": "needs a LocalQueue, which a drawn queue need not have; a team's are the same",
    "WaitGoal.priorityClass": "names a class of the file, which a drawn team need not have",
    "Goals.gpuHoursPerWeek": "is at most what the quota gives, which a drawn queue need not have of GPUs",
    "TeamEntry.secrets": "are nothing without the stack's config, which has what is in them",
    "TeamEntry.allowedPriorityClasses": "names classes of the file, which a drawn team need not have",
    "ClusterQueueEntry.fallback": "needs the fleet's controller, which a drawn fleet need not have",
    "FlavorPatience.flavor": "is of fallback",
    "FlavorPatience.patience": "is of fallback",
    "NodePoolEntry.acceleratorNetworkProfile": "is for A3 and newer machines, and no pool is of them",
    "NodePoolEntry.acceleratorNetworks": "is for A3 and newer machines too",
    "NodePoolEntry.ncclPlugin": "is for A3 and newer machines too",
    "PoolOverride.acceleratorNetworks": "is for A3 and newer machines too",
    "PoolNetworks.existing": "is of acceleratorNetworks",
    "NodeNetwork.network": "is of acceleratorNetworks",
    "NodeNetwork.subnetwork": "is of acceleratorNetworks",
    "WaitForPodsReady.unscheduledTimeout": "is a field of Kueue 0.20, and no file is for that",
    "WaitForPodsReady.maxTimeoutOnWorkload": "is a field of Kueue 0.20, and no file is for that",
    "NodePoolEntry.tpuTopology": "is for TPUs, and no pool is of them",
    "NodePoolEntry.acceleratorTopologyMode": "is for TPUs, and no pool is of them",
    "ClusterEntry.sliceController": "is for TPUs, and no pool is of them",
}
"""Fields that no file has, and why."""
BEST_SEEDS = (15, 5)
"""The files of these two have every field together; others are tried if that is no longer so."""
MOST_ROUNDS = 60
"""Of ten files each; five are enough as a rule."""


@settings(max_examples=examples(60), deadline=None)
@given(fleet_files())
def test_files_have_no_errors(data: Data) -> None:
    assert parse_fleet(data).name == data["name"]


def test_every_field_is_drawn() -> None:
    missing = set(_fields(FleetSpec)) - set(NOT_DRAWN)

    @settings(max_examples=10, deadline=None, phases=[Phase.generate], database=None)
    @given(fleet_files(everything=True))
    def draw(data: Data) -> None:
        assert parse_fleet(data).name == data["name"]
        missing.difference_update(_drawn((FleetSpec,), data))

    # Hypothesis draws much that is alike in one round; another seed begins elsewhere.
    for number in (*BEST_SEEDS, *range(MOST_ROUNDS)):
        if missing:
            seed(number)(draw)()
    assert missing == set()


def _fields(model: Any) -> Iterator[str]:
    """The fields of a model and of all models below it, as `ResourceQuota.nominalQuota`."""
    for name, (_, tp) in fields_of(model).items():
        yield f"{model.__name__}.{name}"
        for inner in _models(tp):
            yield from _fields(inner)


def _models(tp: Any) -> tuple[Any, ...]:
    """The models in a field: its own, those of its items or values, or those of a union."""
    tp = plain_type(tp)
    if isinstance(tp, tuple):
        return tuple(model for member in tp for model in _models(member))
    if is_model(tp):
        return (tp,)
    origin, arguments = get_origin(tp), get_args(tp)
    if origin is tuple:
        return _models(arguments[0])
    return _models(arguments[1]) if _is_map(tp) else ()


def _is_map(tp: Any) -> bool:
    origin = get_origin(plain_type(tp))
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _drawn(models: tuple[Any, ...], value: Any) -> Iterator[str]:
    """The fields that `value`, one of the models or a list of them, has; and all that are below."""
    if isinstance(value, list):
        for item in value:
            yield from _drawn(models, item)
        return
    # Of a union, the model that the value says it is.
    models = tuple(each for each in models if value.get("type") in (None, _type_of(each))) or models
    for name, item in value.items():
        owners = [model for model in models if name in fields_of(model)]
        yield from (f"{model.__name__}.{name}" for model in owners)
        inner = tuple(dict.fromkeys(below for model in owners for below in _models(fields_of(model)[name][1])))
        if inner and owners and item is not None:
            for entry in item.values() if _is_map(fields_of(owners[0])[name][1]) else (item,):
                yield from _drawn(inner, entry)


def _type_of(model: Any) -> Any:
    return model.model_fields["type"].default if "type" in model.model_fields else None
