"""ValidatingAdmissionPolicies, which the API server evaluates: no webhook has to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.manifest import Manifest

POLICY_API: Final = "admissionregistration.k8s.io/v1"
"""API of admission policies."""


def denying_policy(
    name: str,
    resources: Iterable[tuple[str, str, Sequence[str]]],
    condition: tuple[str, str],
    validations: Sequence[Mapping[str, str]],
    *,
    selector: Mapping[str, Any] | None = None,
    variables: Mapping[str, str] | None = None,
    deleted: Iterable[tuple[str, str, Sequence[str]]] = (),
) -> list[Manifest]:
    """A policy that refuses what is made or changed against one of the validations, and its binding.

    `resources` are API group, version and kinds; `condition` has a name, and says in CEL for which requests the
    validations hold; `selector` says in which namespaces, by default in all; `variables` are CEL too. `deleted`: what
    may not be deleted against them either; `object` is null then.
    """
    policy: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            **({"namespaceSelector": selector} if selector is not None else {}),
            "resourceRules": [
                *(_rule(["CREATE", "UPDATE"], *resource) for resource in resources),
                *(_rule(["DELETE"], *rule_arguments) for rule_arguments in deleted),
            ],
        },
        "matchConditions": [{"name": condition[0], "expression": condition[1]}],
        **({"variables": [{"name": key, "expression": cel} for key, cel in variables.items()]} if variables else {}),
        "validations": validations,
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        manifest(POLICY_API, "ValidatingAdmissionPolicy", name, spec=policy),
        manifest(POLICY_API, "ValidatingAdmissionPolicyBinding", name, spec=binding),
    ]


def _rule(operations: Sequence[str], group: str, version: str, kinds: Sequence[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": [version], "operations": operations, "resources": list(kinds)}
