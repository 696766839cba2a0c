"""Label selectors, as Kubernetes has them, and whether one matches a set of labels.

Source: k8s.io/apimachinery pkg/apis/meta/v1/{types,helpers}.go, pkg/apis/meta/v1/validation (ValidateLabelSelector).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from kueue_admission.kernel.base import LabelKey, LabelValue, RuledModel
from kueue_admission.kernel.form_rules import EXCLUDED, NEEDED
from kueue_admission.kernel.given import ListOf, ListOfText
from kueue_admission.kernel.problem import Problem

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
"""How a label is compared with the values."""


def is_met(operator: str, values: Sequence[str], value: str | None) -> bool:
    """Whether a label with this value, None where it is missing, meets a condition; of nodes also with Gt and Lt.

    Source: k8s.io/apimachinery pkg/labels, k8s.io/component-helpers scheduling/corev1/nodeaffinity.
    """
    match operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


class LabelSelectorRequirement(RuledModel):
    """One condition on one label."""

    key: LabelKey
    """Key of the label the condition is about."""
    operator: Operator
    """`In` and `NotIn` compare with `values`; `Exists` and `DoesNotExist` take none."""
    values: ListOfText[LabelValue] = ()
    """What `In` and `NotIn` compare the label's value with."""

    def own_problems(self) -> Iterator[Problem]:
        """`In` and `NotIn` need values, the other two forbid them (ValidateLabelSelectorRequirement)."""
        if self.operator in ("In", "NotIn") and not self.values:
            yield NEEDED.at(
                "values", f"empty, but operator {self.operator} compares with it", "list at least one value"
            )
        if self.operator in ("Exists", "DoesNotExist") and self.values:
            yield EXCLUDED.at(
                "values",
                f"{', '.join(self.values)} given, but operator {self.operator} takes no values",
                "remove values, or use operator In or NotIn",
            )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` meet the condition. A missing label meets `NotIn`, as in Kubernetes."""
        return is_met(self.operator, self.values, labels.get(self.key))


class LabelSelector(RuledModel):
    """A query over labels: all of `matchLabels` and all of `matchExpressions`. The empty one matches everything."""

    match_labels: Mapping[LabelKey, LabelValue] | None = None
    """Labels that must all be there with just these values."""
    match_expressions: ListOf[LabelSelectorRequirement] | None = None
    """Conditions that must all be met."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether something with exactly these labels is selected."""
        return all(labels.get(key) == value for key, value in (self.match_labels or {}).items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions or ()
        )

    @property
    def keys(self) -> frozenset[str]:
        """Every label key the selector asks about."""
        return frozenset(self.match_labels or {}) | {item.key for item in self.match_expressions or ()}
