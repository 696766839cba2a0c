"""Node affinity: which nodes a pod may run on.

Source: k8s.io/apimachinery pkg/labels, k8s.io/component-helpers scheduling/corev1/nodeaffinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """`key operator values`, with the operators In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` meet the requirement."""
        value = labels.get(self.key)
        if self.operator == "In":
            return value is not None and value in self.values
        if self.operator == "NotIn":
            return value is None or value not in self.values
        if self.operator == "Exists":
            return value is not None
        if self.operator == "DoesNotExist":
            return value is None
        return _compare(self.operator, value, self.values)


def _compare(operator: str, value: str | None, bounds: tuple[str, ...]) -> bool:
    try:
        left, right = int(value or ""), int(bounds[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """One alternative of a node affinity: requirements on labels. A term without any matches nothing."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` meet the term."""
        return bool(self.requirements) and all(requirement.matches(labels) for requirement in self.requirements)
