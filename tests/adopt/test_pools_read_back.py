"""What the renderer writes of a node pool, `import` reads back: the fields that it makes say the same properties."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueue_admission.kernel.base import DEFER_RULES
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.pool_properties import ROWS, file_path, pool_fields, pool_properties
from kueue_fleet.gke.machines import machine_names, machine_type, n1_accelerators
from kueue_fleet.gke.tpu_slices import tpu_topologies

ZONES = ["us-central1-a", "us-central1-b"]
DRIVERS = ["DEFAULT", "LATEST", "INSTALLATION_DISABLED"]
NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
COUNTS = st.integers(0, 20)
NETWORKS = st.fixed_dictionaries({"network": NAMES, "subnetwork": NAMES})
CAPACITIES = st.one_of(
    st.sampled_from([{"type": "onDemand"}, {"type": "onDemand", "affinity": "Any"}, {"type": "spot"}]),
    st.fixed_dictionaries(
        {"type": st.just("flexStart"), "queuedProvisioning": st.booleans(), "maxRunDuration": st.just("36h")}
    ),
    st.fixed_dictionaries(
        {"type": st.just("reserved"), "reservation": NAMES}, optional={"project": st.just("shared-1")}
    ),
    st.fixed_dictionaries(
        {"type": st.just("reserved"), "reservation": NAMES, "project": st.just("shared-1"), "block": NAMES},
        optional={"subBlock": NAMES},
    ),
)
TAINTS = st.lists(
    st.fixed_dictionaries(
        {"key": NAMES, "value": NAMES, "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])}
    ),
    max_size=2,
)
SIZES = st.one_of(
    st.fixed_dictionaries({"nodeCount": COUNTS}),
    st.fixed_dictionaries(
        {
            "autoscaling": st.fixed_dictionaries(
                {"totalMinNodeCount": COUNTS, "totalMaxNodeCount": st.integers(20, 40)},
                optional={"locationPolicy": st.sampled_from(["ANY", "BALANCED"])},
            )
        },
        optional={"initialNodeCount": COUNTS},
    ),
)
GPUS = {
    "driverVersion": st.sampled_from(DRIVERS),
    "partitionSize": st.sampled_from(["1g.5gb", "3g.40gb"]),
    "sharing": st.fixed_dictionaries(
        {"strategy": st.sampled_from(["TIME_SHARING", "MPS"]), "maxSharedClientsPerGpu": st.integers(2, 48)}
    ),
}
KUBELET = {
    "cpuManagerPolicy": st.sampled_from(["none", "static"]),
    "topologyManager": st.fixed_dictionaries(
        {"policy": st.sampled_from(["best-effort", "single-numa-node"]), "scope": st.sampled_from(["container", "pod"])}
    ),
    "memoryManager": st.fixed_dictionaries({"policy": st.sampled_from(["None", "Static"])}),
    "podPidsLimit": st.integers(1024, 4194304),
}


@st.composite
def pools(draw: st.DrawFn) -> NodePoolEntry:
    """A pool with any of the fields of the file; the rules of GKE are not looked at."""
    machine = draw(st.sampled_from(machine_names()))
    kinds = n1_accelerators() if machine.startswith("n1-") else {}
    fields: dict[str, st.SearchStrategy[Any]] = {
        "zones": st.lists(st.sampled_from(ZONES), max_size=2, unique=True),
        "diskSizeGb": st.integers(10, 500),
        "diskType": st.sampled_from(["pd-ssd", "hyperdisk-balanced"]),
        "localSsdCount": COUNTS,
        "secondaryBootDisks": st.lists(
            st.fixed_dictionaries({"diskImage": NAMES}, optional={"mode": st.just("CONTAINER_IMAGE_CACHE")}), max_size=2
        ),
        "fastSocket": st.booleans(),
        "kubeletConfig": st.fixed_dictionaries({}, optional=KUBELET),
        "maxPodsPerNode": st.integers(8, 256),
        "labels": st.dictionaries(NAMES, NAMES, max_size=2),
        "taints": TAINTS,
        "compactPlacement": st.booleans(),
        "acceleratorNetworkProfile": st.just("auto"),
        "acceleratorNetworks": st.fixed_dictionaries(
            {
                "existing": st.lists(
                    st.fixed_dictionaries({"network": NAMES, "subnetwork": NAMES}), min_size=1, max_size=8
                )
            }
        ),
        "management": st.fixed_dictionaries({"autoRepair": st.booleans(), "autoUpgrade": st.booleans()}),
        "upgrade": st.fixed_dictionaries({"maxSurge": COUNTS, "maxUnavailable": COUNTS}),
        "capacity": CAPACITIES,
    }
    if topologies := tpu_topologies(machine):
        fields["tpuTopology"] = st.sampled_from(topologies)
    own = machine_type(machine)
    if kinds or (own is not None and own.gpus):
        required = {"type": st.sampled_from(sorted(kinds)), "count": st.integers(1, 8)} if kinds else {}
        fields["accelerator"] = st.fixed_dictionaries(required, optional=GPUS)
    result = {"name": "pool", "machineType": machine, **draw(SIZES), **draw(st.fixed_dictionaries({}, optional=fields))}
    return NodePoolEntry.model_validate(result, context={DEFER_RULES: True})


@given(pools())
def test_what_the_renderer_writes_is_read_back(pool: NodePoolEntry) -> None:
    written = pool_properties(pool)
    read = NodePoolEntry.model_validate(pool_fields(written), context={DEFER_RULES: True})
    assert pool_properties(read) == written


def test_every_field_of_a_pool_is_a_row_of_the_table() -> None:
    """Beside those that are about the pool's place in the fleet, and what its resource policy says."""
    of_fleet = {"existing", "clusters", "deletionProtection", "ncclPlugin", "perCluster"}
    of_policy = {"acceleratorTopologyMode"}
    fields = {field.alias or name for name, field in NodePoolEntry.model_fields.items()}
    assert fields - of_fleet - of_policy == {row.field.partition(".")[0] for row in ROWS}


def test_a_part_of_a_property_is_a_part_of_the_field() -> None:
    assert file_path("nodeConfig.guestAccelerators[0].count") == "accelerator.count"
    assert file_path("nodeConfig.guestAccelerators[0].gpuPartitionSize") == "accelerator.partitionSize"
    clients = "nodeConfig.guestAccelerators[0].gpuSharingConfig.maxSharedClientsPerGpu"
    assert file_path(clients) == "accelerator.sharing.maxSharedClientsPerGpu"
    assert file_path("nodeConfig.taints[1]") == "taints[1]"
    assert file_path("nodeConfig.reservationAffinity") == "capacity"
    assert file_path("autoscaling") == "autoscaling"
