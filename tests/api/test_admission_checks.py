"""AdmissionCheck and ProvisioningRequestConfig."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import model_problems

from kueue_admission.api import AdmissionCheckSpec, ProvisioningRequestConfigSpec

REFUSED_ADMISSION_CHECK_SPEC: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no controller": (
        {},
        ["controllerName: is missing; add controllerName"],
    ),
    "empty controller": (
        {"controllerName": ""},
        ['controllerName: "" is empty; write a value'],
    ),
    "controller too long": (
        {"controllerName": "c" * 254},
        [
            (
                "controllerName: "
                '"ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc..." is too long; '
                "use at most 253 characters"
            )
        ],
    ),
    "parameters": (
        {"controllerName": "c", "parameters": {"apiGroup": "Example", "kind": "1Foo", "name": "a.b"}},
        [
            (
                'parameters.apiGroup: "Example" has characters or a form that are not allowed; use lower-case '
                "letters, digits, hyphens and dots, with a letter or digit at both ends"
            ),
            (
                'parameters.kind: "1Foo" has characters or a form that are not allowed; use letters, digits and '
                "hyphens, with a letter at the start"
            ),
            (
                'parameters.name: "a.b" has characters or a form that are not allowed; use lower-case letters, '
                "digits and hyphens, with a letter or digit at both ends"
            ),
        ],
    ),
    "parameters incomplete": (
        {"controllerName": "c", "parameters": {"apiGroup": "example.com"}},
        ["parameters.kind: is missing; add kind", "parameters.name: is missing; add name"],
    ),
    "retryDelayMinutes of v1beta1": (
        {"controllerName": "c", "retryDelayMinutes": 15},
        ["retryDelayMinutes: was removed in Kueue's v1beta2; remove it: the check's controller sets the delay"],
    ),
}

ACCEPTED_ADMISSION_CHECK_SPEC: dict[str, dict[str, Any]] = {
    "all": {
        "controllerName": "example.com/c",
        "parameters": {"apiGroup": "example.com", "kind": "FooBar", "name": "a"},
    },
}

REFUSED_PROVISIONING_REQUEST_CONFIG_SPEC: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no class": (
        {},
        ["provisioningClassName: is missing; add provisioningClassName"],
    ),
    "class name": (
        {"provisioningClassName": "DWS"},
        [
            (
                'provisioningClassName: "DWS" has characters or a form that are not allowed; use lower-case '
                "letters, digits, hyphens and dots, with a letter or digit at both ends"
            )
        ],
    ),
    "101 parameters": (
        {"provisioningClassName": "c", "parameters": {f"a{i}": "b" for i in range(101)}},
        ["parameters: 101 items; use at most 100"],
    ),
    "long parameter": (
        {"provisioningClassName": "c", "parameters": {"a": "b" * 256}},
        [
            (
                "parameters[a]: "
                '"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb..." is too long; '
                "use at most 255 characters"
            )
        ],
    ),
    "number as parameter": (
        {"provisioningClassName": "c", "parameters": {"maxRunDurationSeconds": 3600}},
        ['parameters[maxRunDurationSeconds]: 3600 is given where text is needed; put it in quotes: "3600"'],
    ),
    "resource twice": (
        {"provisioningClassName": "c", "managedResources": ["cpu", "cpu"]},
        ["managedResources[1]: cpu is listed twice; list each resource once"],
    ),
    "9 node selectors": (
        {
            "provisioningClassName": "c",
            "podSetUpdates": {
                "nodeSelector": [{"key": f"k{i}", "valueFromProvisioningClassDetail": "d"} for i in range(9)]
            },
        },
        ["podSetUpdates.nodeSelector: 9 items; use at most 8"],
    ),
    "node selector twice": (
        {
            "provisioningClassName": "c",
            "podSetUpdates": {
                "nodeSelector": [
                    {"key": "k", "valueFromProvisioningClassDetail": "d"},
                    {"key": "k", "valueFromProvisioningClassDetail": "e"},
                ]
            },
        },
        ["podSetUpdates.nodeSelector[1].key: k is listed twice; list each key once"],
    ),
    "merge policy": (
        {"provisioningClassName": "c", "podSetMergePolicy": "Identical"},
        [
            (
                'podSetMergePolicy: "Identical" is not allowed; did you mean IdenticalPodTemplates? Allowed: '
                "IdenticalPodTemplates, IdenticalWorkloadSchedulingRequirements"
            )
        ],
    ),
    "negative retries": (
        {"provisioningClassName": "c", "retryStrategy": {"backoffLimitCount": -1}},
        ["retryStrategy.backoffLimitCount: -1 is too small; use at least 0"],
    ),
}

ACCEPTED_PROVISIONING_REQUEST_CONFIG_SPEC: dict[str, dict[str, Any]] = {
    "all": {
        "provisioningClassName": "queued-provisioning.gke.io",
        "parameters": {"maxRunDurationSeconds": "3600"},
        "managedResources": ["nvidia.com/gpu"],
        "retryStrategy": {"backoffLimitCount": 0, "backoffBaseSeconds": 1, "backoffMaxSeconds": 2},
        "podSetUpdates": {
            "nodeSelector": [{"key": "cloud.google.com/gke-nodepool", "valueFromProvisioningClassDetail": "RequestKey"}]
        },
        "podSetMergePolicy": "IdenticalPodTemplates",
    },
}


@pytest.mark.parametrize(
    ("data", "expected"), REFUSED_ADMISSION_CHECK_SPEC.values(), ids=REFUSED_ADMISSION_CHECK_SPEC.keys()
)
def test_admission_check_spec_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(AdmissionCheckSpec, data) == expected


@pytest.mark.parametrize("data", ACCEPTED_ADMISSION_CHECK_SPEC.values(), ids=ACCEPTED_ADMISSION_CHECK_SPEC.keys())
def test_admission_check_spec_accepted(data: dict[str, Any]) -> None:
    assert model_problems(AdmissionCheckSpec, data) == []


@pytest.mark.parametrize(
    ("data", "expected"),
    REFUSED_PROVISIONING_REQUEST_CONFIG_SPEC.values(),
    ids=REFUSED_PROVISIONING_REQUEST_CONFIG_SPEC.keys(),
)
def test_provisioning_request_config_spec_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(ProvisioningRequestConfigSpec, data) == expected


@pytest.mark.parametrize(
    "data", ACCEPTED_PROVISIONING_REQUEST_CONFIG_SPEC.values(), ids=ACCEPTED_PROVISIONING_REQUEST_CONFIG_SPEC.keys()
)
def test_provisioning_request_config_spec_accepted(data: dict[str, Any]) -> None:
    assert model_problems(ProvisioningRequestConfigSpec, data) == []
