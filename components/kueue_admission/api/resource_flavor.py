"""ResourceFlavor: a kind of node, by its labels and taints; and Topology, the levels of the data centre that it is in.

Source: kueue@v0.19.2 apis/kueue/v1beta2/{resourceflavor,topology}_types.go (schema, CEL),
pkg/webhooks/{resourceflavor,workload}_webhook.go (validateNodeTaints, validateTolerations).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kueue_admission.kernel.base import LabelKey, LabelValue, RuledModel, SpecModel, Text, Whole
from kueue_admission.kernel.form_rules import EXCLUDED, LISTED_TWICE, LOWEST_LEVEL, NEEDED, listed_twice
from kueue_admission.kernel.given import NOT_GIVEN, ListOf
from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.references import OptionalTopologyName

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
"""What a taint does to pods that do not tolerate it."""


class Taint(SpecModel):
    """A taint that the flavor's nodes carry."""

    key: LabelKey
    """Key of the taint."""
    value: LabelValue = ""
    """Value of the taint; default empty."""
    effect: Effect
    """What happens to pods that do not tolerate it."""


class Toleration(RuledModel):
    """A toleration that Kueue adds to the pods it admits on the flavor."""

    key: LabelKey | None = None
    """Key of the taint; absent: every taint, which needs operator Exists."""
    operator: Literal["Equal", "Exists"] | None = None
    """Absent counts as Equal."""
    value: Text | None = None
    """The taint's value; none with operator Exists."""
    effect: Effect | None = None
    """The taint's effect; absent: every effect."""
    toleration_seconds: Whole | None = None
    """How long the pod stays on a node with the taint, in seconds; only with effect NoExecute."""

    def own_problems(self) -> Iterator[Problem]:
        """The CEL rules on tolerations."""
        if self.key is None and self.operator != "Exists":
            yield NEEDED.at(
                "operator", f"{self.operator or 'not set'}, but there is no key", "set a key, or Exists here"
            )
        if self.operator == "Exists" and self.value is not None:
            yield EXCLUDED.at("value", f'"{self.value}" is set, but operator is Exists', "remove value or use Equal")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            yield EXCLUDED.at(
                "tolerationSeconds",
                f"{self.toleration_seconds} is set, but effect is {self.effect or 'not set'}",
                "set effect to NoExecute or remove tolerationSeconds",
            )


class ResourceFlavorSpec(RuledModel):
    """`spec` of a ResourceFlavor."""

    replaced: ClassVar[Mapping[str, str]] = {"topology": "topologyName"}
    node_labels: Annotated[Mapping[LabelKey, LabelValue], Field(max_length=8)] = Field(default_factory=dict)
    """Labels of the flavor's nodes; Kueue adds them to the node selector of the pods it admits."""
    node_taints: Annotated[ListOf[Taint], Field(max_length=8)] = ()
    """Taints of the flavor's nodes; only jobs that tolerate them, or that `tolerations` cover, get the flavor."""
    tolerations: Annotated[ListOf[Toleration], Field(max_length=8)] = ()
    """Tolerations that Kueue adds to the pods it admits on the flavor."""
    topology_name: OptionalTopologyName = NOT_GIVEN
    """The Topology for topology-aware scheduling. Once set, it, nodeLabels and tolerations are immutable."""

    def own_problems(self) -> Iterator[Problem]:
        """CEL: a topology needs a node label. Webhook: taints unique by key and effect."""
        if self.topology_name and not self.node_labels:
            yield NEEDED.at(
                "nodeLabels",
                f"empty, but topologyName is {self.topology_name}",
                "add a label that the flavor's nodes have, or remove topologyName",
            )
        first_index: dict[tuple[str, str], int] = {}
        for index, taint in enumerate(self.node_taints):
            first = first_index.setdefault((taint.key, taint.effect), index)
            if first != index:
                yield LISTED_TWICE.at(
                    f"nodeTaints[{index}]",
                    f"{taint.key} with effect {taint.effect} is already at nodeTaints[{first}]",
                    "list each pair of key and effect once",
                )


class TopologyLevel(SpecModel):
    """One level."""

    node_label: LabelKey = Field(kw_only=False)
    """The node label whose value names the domain at this level."""


class TopologySpec(RuledModel):
    """`spec` of a Topology: the levels of a data centre, from the widest to the node."""

    levels: Annotated[ListOf[TopologyLevel], Field(min_length=1, max_length=16)]
    """From the widest to the narrowest. Immutable."""

    def own_problems(self) -> Iterator[Problem]:
        """CEL: labels unique; the host name, if any, last."""
        labels = [level.node_label for level in self.levels]
        for index, label in enumerate(labels):
            if label in labels[:index]:
                yield listed_twice(f"levels[{index}].nodeLabel", label, "label")
            elif label == HOSTNAME_LABEL and index != len(labels) - 1:
                yield LOWEST_LEVEL.at(
                    f"levels[{index}].nodeLabel", f"{label} can only be the lowest level", "move it to the end"
                )
