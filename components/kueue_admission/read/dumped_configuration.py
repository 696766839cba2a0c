"""Kueue's Configuration among the objects of a cluster: the ConfigMap of its installation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import yaml

from kueue_admission.api.old_configuration import configuration_as_v1beta2
from kueue_admission.api.resources import CONFIG_MAP, KUEUE_NAMESPACE
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import DEFAULT_STRATEGIES, Configuration
from kueue_admission.forms.manifest import Manifest, inside, is_object
from kueue_admission.read.manifests import label_of
from kueue_admission.releases import DEFAULT_VERSION, Release, nearest, release

CONFIGURATION_KEY: Final = "controller_manager_config.yaml"
"""Where the ConfigMap has it."""


class DumpedConfiguration(NamedTuple):
    """What decides by the Configuration, and what is to be said about it."""

    configuration: Configuration
    notes: tuple[str, ...]


def configurations_in(manifests: Iterable[Manifest]) -> Iterator[tuple[Manifest, Mapping[str, Any]]]:
    """Each ConfigMap with a Configuration, and that in v1beta2.

    What is not YAML is left out: Kueue does not start with it either.
    """
    for config in manifests:
        text = inside(config, "data").get(CONFIGURATION_KEY) if config.get("kind") == "ConfigMap" else None
        try:
            found = yaml.load(text, Loader=yaml.CSafeLoader) if isinstance(text, str) else None
        except yaml.YAMLError:
            continue
        if is_object(found):
            yield config, configuration_as_v1beta2(found)[0]


def dumped_configuration(manifests: Iterable[Manifest], *, fair_sharing: bool) -> DumpedConfiguration:
    """Kueue's Configuration, and the defaults of 0.19.2 where it is not among the objects or cannot be read.

    Its release is that of the labels that Kueue's chart gives its ConfigMap, such as app.kubernetes.io/version; 0.19.2
    where it has none.
    `fair_sharing`: it is on, whatever the Configuration says.
    """
    given = list(manifests)
    found = next(configurations_in(given), None)
    default = Configuration(fair_sharing=DEFAULT_STRATEGIES if fair_sharing else None)
    if found is None:
        queues = (m for m in given if m.get("kind") == "ClusterQueue" and not fair_sharing)
        shared = next((queue for queue in queues if inside(queue, "spec").get("cohortName")), None)
        return DumpedConfiguration(default, () if shared is None else (_not_there(shared),))
    from kueue_admission.read.configuration import parse_configuration  # Its models take a while.

    config, data = found
    kueue = release_of(config, release(DEFAULT_VERSION))
    try:
        read = parse_configuration(data, kueue)
    except (ObjectError, NotModelledError) as refused:
        wrong = "; ".join(map(str, refused.problems)) if isinstance(refused, ObjectError) else str(refused)
        return DumpedConfiguration(default, (f"{label_of(config)}: the defaults of Kueue count instead: {wrong}",))
    if fair_sharing and read.fair_sharing is None:
        read = replace(read, fair_sharing=DEFAULT_STRATEGIES)
    strategies = ", ".join(read.fair_sharing or ())
    state = f"fair sharing is on ({strategies})" if strategies else "fair sharing is off"
    if kueue.minor != release(DEFAULT_VERSION).minor:
        state += f", and it is decided as Kueue {kueue.minor} does"
    return DumpedConfiguration(read, (f"Kueue's Configuration is that of {label_of(config)}: {state}",))


def release_of(config: Manifest, otherwise: Release) -> Release:
    """The release of the chart that made Kueue's ConfigMap, by its labels; `otherwise` where they do not say."""
    labels = inside(config, "metadata").get("labels") or {}
    version = str(labels.get("app.kubernetes.io/version") or labels.get("helm.sh/chart") or "")
    found = re.search(r"\d+\.\d+\.\d+", version)
    return nearest(found[0]) if found else otherwise


def _not_there(queue: Manifest) -> str:
    return (
        f"Kueue's Configuration is not among the objects, and {label_of(queue)} is in a cohort, where fair sharing "
        f"counts as off; add what `kubectl get configmap {CONFIG_MAP} -n {KUEUE_NAMESPACE} -o yaml` prints, or give "
        "--fair-sharing"
    )
