"""Kubernetes objects of people as kubectl reads them, by YAML 1.1: `yes` is true, and `010` is eight.

Source: go.yaml.in/yaml/v2@v2.4.4 resolve.go.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from kueue_admission.kernel.yaml_text import GO_TAG, YamlLoader, as_go_reads

_GO_FLAG: Final = r"y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF"
"""Texts that YAML 1.1 takes for true or false, beyond the core schema."""


class KubectlLoader(YamlLoader):
    """As kubectl reads what people write, by YAML 1.1."""

    bool_values: ClassVar[dict[str, bool]] = {**YamlLoader.bool_values, "y": True, "n": False}
    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {
        letter: [*resolvers] for letter, resolvers in YamlLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """With flags as keys in words, as JSON has them."""
        mapping = super().construct_mapping(node, deep=deep)
        return {str(key).lower() if isinstance(key, bool) else key: value for key, value in mapping.items()}


for _letter in "yYnNoO":
    KubectlLoader.yaml_implicit_resolvers.setdefault(_letter, []).append(
        ("tag:yaml.org,2002:bool", re.compile(rf"(?:{_GO_FLAG})\Z"))
    )
KubectlLoader.add_constructor(GO_TAG, lambda loader, node: as_go_reads(loader.construct_scalar(node)))
