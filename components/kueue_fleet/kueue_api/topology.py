"""Topology: the levels of a data centre, from the widest to the node.

Source: kueue@v0.19.2 apis/kueue/v1beta2/topology_types.go (schema, CEL). The levels are immutable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from kueue_fleet.kueue_api.base import LabelKey, RuledModel, SpecModel
from kueue_fleet.kueue_api.names import HOSTNAME_LABEL
from kueue_fleet.kueue_api.problem import Problem


class TopologyLevel(SpecModel):
    """One level."""

    node_label: LabelKey
    """The node label whose value names the domain at this level."""


class TopologySpec(RuledModel):
    """`spec` of a Topology."""

    levels: Annotated[tuple[TopologyLevel, ...], Field(min_length=1, max_length=16)]
    """From the widest to the narrowest. Immutable."""

    def own_problems(self) -> Iterator[Problem]:
        """CEL: labels unique; the host name, if any, last."""
        labels = [level.node_label for level in self.levels]
        for index, label in enumerate(labels):
            if label in labels[:index]:
                yield Problem(f"levels[{index}].nodeLabel", f"{label} is listed twice", "list each label once")
            elif label == HOSTNAME_LABEL and index != len(labels) - 1:
                yield Problem(
                    f"levels[{index}].nodeLabel", f"{label} can only be the lowest level", "move it to the end"
                )
