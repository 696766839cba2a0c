"""Kueue's Configuration among the objects of a cluster: the ConfigMap of its installation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import yaml

from kueue_admission.api.old_configuration import configuration_as_v1beta2
from kueue_admission.api.resources import CONFIG_MAP, DEPLOYMENT, KUEUE_NAMESPACE
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import DEFAULT_STRATEGIES, Configuration
from kueue_admission.kernel import syntax
from kueue_admission.kernel.manifest import Manifest, inside, is_object
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.manifests import label_of
from kueue_admission.releases import DEFAULT_VERSION, Release, nearest, release

CONFIGURATION_KEY: Final = "controller_manager_config.yaml"
"""Where the ConfigMap has it."""
VERSION_LABELS: Final = ("app.kubernetes.io/version", "helm.sh/chart")
"""Labels that Kueue's chart gives the ConfigMap."""
_IMAGE: Final = re.compile(r"/kueue:v([0-9][\w.-]*)")


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
            configuration = yaml.load(text, Loader=yaml.CSafeLoader) if isinstance(text, str) else None
        except yaml.YAMLError:
            continue
        if is_object(configuration):
            yield config, configuration_as_v1beta2(configuration)[0]


def dumped_configuration(
    manifests: Iterable[Manifest], *, fair_sharing: bool, kueue: Release | None = None
) -> DumpedConfiguration:
    """Kueue's Configuration, and the defaults of its release where it is not among the objects or cannot be read.

    Its release is `kueue`, else that of `release_in`; 0.19.2 where the objects do not say.
    `fair_sharing`: it is on, whatever the Configuration says.
    """
    manifest_list = list(manifests)
    first_configuration = next(configurations_in(manifest_list), None)
    usual, is_asked = release(DEFAULT_VERSION), kueue is not None
    kueue = kueue or release_in(manifest_list) or usual
    name = kueue.version if kueue.minor == usual.minor else kueue.minor
    decision_note = "" if kueue.version == usual.version else f"it is decided as Kueue {name} does"
    default = Configuration(fair_sharing=DEFAULT_STRATEGIES if fair_sharing else None)
    if first_configuration is None:
        queues = (m for m in manifest_list if m.get("kind") == "ClusterQueue" and not fair_sharing)
        cohort_queue = next((queue for queue in queues if inside(queue, "spec").get("cohortName")), None)
        notes = () if cohort_queue is None else (_not_there(cohort_queue),)
        if not decision_note:
            return DumpedConfiguration(default, notes)
    try:
        read = parse_configuration(first_configuration[1] if first_configuration else {}, kueue)
    except (ObjectError, NotModelledError) as refused:
        assert first_configuration is not None
        wrong = "; ".join(map(str, refused.problems)) if isinstance(refused, ObjectError) else str(refused)
        return DumpedConfiguration(
            default, (f"{label_of(first_configuration[0])}: the defaults of Kueue count instead: {wrong}",)
        )
    if fair_sharing and read.fair_sharing is None:
        read = replace(read, fair_sharing=DEFAULT_STRATEGIES)
    if first_configuration is None:
        by_image = () if is_asked else (f"The image of Kueue's Deployment says its release: {decision_note}",)
        return DumpedConfiguration(read, (*notes, *by_image))
    strategies = ", ".join(read.fair_sharing or ())
    if not strategies and not decision_note:
        return DumpedConfiguration(read, ())
    state = f"fair sharing is on ({strategies})" if strategies else "fair sharing is off"
    state_text = f"{state}, and {decision_note}" if decision_note else state
    return DumpedConfiguration(
        read, (f"Kueue's Configuration is that of {label_of(first_configuration[0])}: {state_text}",)
    )


def version_in(manifests: Iterable[Manifest]) -> str | None:
    """The version of Kueue among the objects of a cluster: of its Deployment's image, else of its ConfigMap's labels.

    None where neither says. Kueue's own manifests, which xpk applies, have no such labels.
    """
    label_version = None
    for item in manifests:
        if item.get("kind") == "Deployment" and inside(item, "metadata").get("name") == DEPLOYMENT:
            containers = inside(item, "spec", "template", "spec").get("containers")
            images = [str(container.get("image")) for container in containers or () if is_object(container)]
            if match := next(filter(None, map(_IMAGE.search, images)), None):
                return match[1]
        elif item.get("kind") == "ConfigMap" and CONFIGURATION_KEY in inside(item, "data"):
            labels = inside(item, "metadata", "labels")
            text = next((str(labels[name]) for name in VERSION_LABELS if labels.get(name)), "")
            label_version = text.removeprefix("kueue-").removeprefix("v") or label_version
    return label_version


def release_in(manifests: Iterable[Manifest]) -> Release | None:
    """The release of Kueue among the objects of a cluster, by `version_in`; None where that is not known."""
    version = version_in(manifests)
    return None if version is None or syntax.version(version) is not None else nearest(version)


def _not_there(queue: Manifest) -> str:
    return (
        f"Kueue's Configuration is not among the objects, and {label_of(queue)} is in a cohort, where fair sharing "
        f"counts as off; add what `kubectl get configmap {CONFIG_MAP} -n {KUEUE_NAMESPACE} -o yaml` prints, or give "
        "--fair-sharing"
    )
