"""ResourceFlavor."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import model_problems

from kueue_admission.api import ResourceFlavorSpec

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "topology without labels": (
        {"topologyName": "rack"},
        [
            (
                "nodeLabels: empty, but topologyName is rack; add a label that the flavor's nodes have, or "
                "remove topologyName"
            )
        ],
    ),
    "label key": (
        {"nodeLabels": {"a b": "c"}},
        [
            (
                'nodeLabels: the key "a b" has characters or a form that are not allowed; use letters, digits, '
                "'-', '_' and '.', with a letter or digit at both ends"
            )
        ],
    ),
    "label value": (
        {"nodeLabels": {"a": "c d"}},
        [
            (
                "nodeLabels[a]: \"c d\" has characters or a form that are not allowed; use letters, digits, '-', "
                "'_' and '.', with a letter or digit at both ends"
            )
        ],
    ),
    "label value no text": (
        {"nodeLabels": {"a": True}},
        ['nodeLabels[a]: true is given where text is needed; put it in quotes: "true"'],
    ),
    "9 labels": (
        {"nodeLabels": {f"a{i}": "b" for i in range(9)}},
        ["nodeLabels: 9 items; use at most 8"],
    ),
    "9 taints": (
        {"nodeTaints": [{"key": f"a{i}", "effect": "NoSchedule"} for i in range(9)]},
        ["nodeTaints: 9 items; use at most 8"],
    ),
    "9 tolerations": (
        {"tolerations": [{"key": f"a{i}"} for i in range(9)]},
        ["tolerations: 9 items; use at most 8"],
    ),
    "taint twice": (
        {"nodeTaints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]},
        [
            (
                "nodeTaints[1]: a with effect NoSchedule is already at nodeTaints[0]; list each pair of key and "
                "effect once"
            )
        ],
    ),
    "taint effect": (
        {"nodeTaints": [{"key": "a", "effect": "NoRun"}]},
        ['nodeTaints[0].effect: "NoRun" is not allowed; use one of NoSchedule, PreferNoSchedule, NoExecute'],
    ),
    "taint without effect": (
        {"nodeTaints": [{"key": "a"}]},
        ["nodeTaints[0].effect: is missing; add effect"],
    ),
    "taint key": (
        {"nodeTaints": [{"key": "a/b/c", "effect": "NoSchedule"}]},
        [
            (
                'nodeTaints[0].key: "a/b/c" has a prefix that has characters or a form that are not allowed; use '
                "lower-case letters, digits, hyphens and dots, with a letter or digit at both ends"
            )
        ],
    ),
    "taint value": (
        {"nodeTaints": [{"key": "a", "value": "-", "effect": "NoSchedule"}]},
        [
            (
                'nodeTaints[0].value: "-" has characters or a form that are not allowed; use letters, digits, '
                "'-', '_' and '.', with a letter or digit at both ends"
            )
        ],
    ),
    "toleration of everything without Exists": (
        {"tolerations": [{"effect": "NoSchedule"}]},
        ["tolerations[0].operator: not set, but there is no key; set a key, or Exists here"],
    ),
    "toleration with Exists and value": (
        {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        ['tolerations[0].value: "b" is set, but operator is Exists; remove value or use Equal'],
    ),
    "tolerationSeconds without NoExecute": (
        {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]},
        [
            (
                "tolerations[0].tolerationSeconds: 5 is set, but effect is NoSchedule; set effect to NoExecute "
                "or remove tolerationSeconds"
            )
        ],
    ),
    "toleration operator": (
        {"tolerations": [{"key": "a", "operator": "Like"}]},
        ['tolerations[0].operator: "Like" is not allowed; use one of Equal, Exists'],
    ),
    "toleration effect": (
        {"tolerations": [{"key": "a", "effect": "None"}]},
        ['tolerations[0].effect: "None" is not allowed; use one of NoSchedule, PreferNoSchedule, NoExecute'],
    ),
    "toleration key": (
        {"tolerations": [{"key": "a b"}]},
        [
            (
                'tolerations[0].key: "a b" has characters or a form that are not allowed; use letters, digits, '
                "'-', '_' and '.', with a letter or digit at both ends"
            )
        ],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "topology": {"nodeLabels": {"a": "b"}, "topologyName": "rack"},
    "8 of each": {
        "nodeLabels": {f"a{i}": "b" for i in range(8)},
        "nodeTaints": [{"key": f"a{i}", "effect": "NoSchedule"} for i in range(8)],
        "tolerations": [{"key": f"a{i}"} for i in range(8)],
    },
    "same taint with two effects": {
        "nodeTaints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]
    },
    "tolerations": {
        "tolerations": [
            {"operator": "Exists"},
            {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5},
        ]
    },
}


@pytest.mark.parametrize(("data", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(ResourceFlavorSpec, data) == expected


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(data: dict[str, Any]) -> None:
    assert model_problems(ResourceFlavorSpec, data) == []
