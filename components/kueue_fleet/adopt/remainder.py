"""What a fleet file does not say of the clusters that it was made from, and what applying it would change there.

An object that the fleet does not render is left out; one that it renders otherwise would be changed; what it renders
beside would be made. Nothing is lost unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Final

from kueue_admission.api.check_objects import SPECS
from kueue_admission.api.resources import DEPLOYMENT
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.names import KUEUE_GROUP
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.read_model import read_model
from kueue_fleet.adopt.configuration import is_configuration
from kueue_fleet.adopt.live_objects import MODELS, Key, Object, key_of, top_level
from kueue_fleet.adopt.platform import Platform
from kueue_fleet.adopt.teams import could_be_a_teams
from kueue_fleet.fleet_file.in_words import in_words, listed
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.kueue_pods import KUEUE_PRIORITY_CLASS
from kueue_fleet.objects.render import render_cluster

_SYSTEM: Final = ("kube-", "gke-", "gmp-", "system:", "system-", KUEUE_PRIORITY_CLASS)
"""Names of what Kubernetes, GKE and Kueue's installation bring begin like this."""
_OF_MACHINES: Final = ("kubernetes.io/", "k8s.io/", "pulumi.com/", "meta.helm.sh/")
"""Parts of labels and annotations that programs write."""
_MADE_BY_NAME: Final = ("Namespace", "PriorityClass")
_OF_TEAMS: Final = ("ResourceQuota", "LimitRange", "RoleBinding", "ServiceAccount")
_MOST_CHANGES: Final = 6
_LONGEST: Final = 120

Change = tuple[str, Any, Any]
"""Path, what is there, what would be."""


def remainder_notes(platform: Platform, fleet: FleetSpec, configurations: Mapping[str, Object]) -> list[str]:
    """What would be changed, what is left out, and what of Kueue's objects would be made."""
    notes: list[str] = []
    paths_left: dict[Key, list[str]] = {}
    beside: dict[Key, list[str]] = {}
    other_names: dict[Key, list[str]] = {}
    for cluster, objects in platform.objects.items():
        rendered_objects = {key_of(item): item for item in render_cluster(fleet, cluster)}
        for key, item in objects.given.items():
            if key not in rendered_objects and not _is_of_installation(key, item):
                stays_beside = any(_says_it_too(key, item, other, entry) for other, entry in rendered_objects.items())
                (beside if stays_beside else paths_left).setdefault(key, []).append(cluster)
        for key, item in rendered_objects.items():
            if key in objects.given:
                notes += _changed(f"{_name(key)} on {cluster}", _changes(key, objects.content(key), item))
                if lost := _lost_marks(objects.content(key), item):
                    notes.append(f"{_name(key)} on {cluster} keeps {listed(lost)}, which the file does not have")
            elif key[0] == KUEUE_GROUP or key[1] in _MADE_BY_NAME:
                other_names.setdefault(key, []).append(cluster)
        if cluster in configurations:
            configuration_after = kueue_configuration(fleet, cluster)
            notes += _changed(
                f"Kueue's Configuration on {cluster}", _differences(configurations[cluster], configuration_after)
            )
    stays = ", and pulumi up leaves it as it is" if fleet.clusters[0].upsert_existing_objects else ""
    unnamed = {key: clusters for key, clusters in paths_left.items() if _is_without_team(platform, fleet, key)}
    no_place = {key: clusters for key, clusters in paths_left.items() if key not in unnamed}
    notes += [f"{text} left out: a fleet file has no place for it{stays}" for text in _grouped(no_place)]
    notes += [f"{text} left out, as its namespace names no team{stays}" for text in _grouped(unnamed)]
    same = "there beside the fleet's own, which says what it says: delete it once that is made"
    notes += [f"{text} {same}" for text in _grouped(beside)]
    return notes + [f"{text} new" for text in _grouped(other_names)]


def _is_without_team(platform: Platform, fleet: FleetSpec, key: Key) -> bool:
    """Whether it would be in the entry of a team, if its namespace said which."""
    _, kind, namespace, _ = key
    of_jobs = namespace in {queue.namespace for queue in fleet.local_queues} and namespace not in fleet.team_of
    return of_jobs and kind in _OF_TEAMS and could_be_a_teams(platform, namespace)


def _says_it_too(key: Key, item: Object, other_key: Key, other: Object) -> bool:
    """Whether the fleet's own object of a namespace, with another name, has all limits of this one."""
    if key[:3] != other_key[:3] or key[1] not in ("ResourceQuota", "LimitRange"):
        return False
    given, wanted = inside(item, "spec"), inside(other, "spec")
    if key[1] == "LimitRange":
        return given == wanted
    hard = inside(given, "hard")
    return given.keys() == {"hard"} and all(inside(wanted, "hard").get(name) == str(hard[name]) for name in hard)


def _is_of_installation(key: Key, item: Object) -> bool:
    """What every cluster has, what Kueue's chart makes, and Kueue's Configuration, which has its own section."""
    group, kind, namespace, name = key
    default = kind == "Node" or (name == "default" and kind in ("Namespace", "ServiceAccount"))
    labels = item["metadata"].get("labels") or {}
    of_kueue = group != KUEUE_GROUP and (labels.get("app.kubernetes.io/name") == "kueue" or name == DEPLOYMENT)
    # In a namespace of its owner a name says nothing, but for the certificates that Kubernetes puts into each.
    of_system = namespace.startswith(_SYSTEM) or (kind, name) == ("ConfigMap", "kube-root-ca.crt")
    of_system = of_system or (not namespace and group != KUEUE_GROUP and name.startswith(_SYSTEM))
    return default or of_kueue or of_system or is_configuration(item)


def _name(key: Key) -> str:
    _, kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _grouped(found: Mapping[Key, list[str]]) -> Iterator[str]:
    """One sentence for all objects of a kind that are on the same clusters."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for key, clusters in found.items():
        groups.setdefault((key[1], tuple(clusters)), []).append(_name(key).removeprefix(f"{key[1]} "))
    for (kind, where), names in groups.items():
        yield f"{kind} {listed(names)} on {listed(where)} {'is' if len(names) == 1 else 'are'}"


def _changed(subject: str, changes: Sequence[Change]) -> list[str]:
    if not changes:
        return []
    parts = [f"{path} {' -> '.join(_apart(was, becomes))}" for path, was, becomes in changes[:_MOST_CHANGES]]
    more = f" and {len(changes) - _MOST_CHANGES} more" if len(changes) > _MOST_CHANGES else ""
    return [f"{subject} would be changed: {', '.join(parts)}{more}"]


def _apart(was: Any, becomes: Any) -> Iterator[str]:
    """Both in words; of lists of maps, the items that the other has not; of texts, the first line that differs."""
    if isinstance(was, list) and isinstance(becomes, list) and any(isinstance(item, Mapping) for item in was):
        only = [item for item in was if item not in becomes], [become for become in becomes if become not in was]
        was, becomes = only if any(only) else (was, becomes)
    sides = [in_words(value).splitlines() for value in (was, becomes)]
    pair = next((pair for pair in zip_longest(*sides, fillvalue="") if pair[0] != pair[1]), ("", ""))
    same = next(
        (at for at, (one, other) in enumerate(zip(*pair, strict=False)) if one != other), len(min(pair, key=len))
    )
    yield from (_part(line.strip(), max(0, same - _LONGEST // 2)) for line in pair)


def _part(line: str, start: int) -> str:
    if len(line) <= _LONGEST:
        return line
    return f"{'...' if start else ''}{line[start : start + _LONGEST]}{'...' if len(line) > start + _LONGEST else ''}"


def _changes(key: Key, given: Object, rendered: Object) -> list[Change]:
    """What of an object the fleet's rendering would change. Of Kueue's, a default is the same as nothing."""
    changes = [*_leaves(_marks(given), _marks(rendered))]
    model = MODELS.get(key[1]) if key[0] in (KUEUE_GROUP, "scheduling.k8s.io") else None

    def body(item: Object) -> Object:
        return (item.get("spec") or {}) if key[1] in SPECS else top_level(item)

    bodies = body(given), body(rendered)
    if model is not None:
        with suppress(SpecError):  # Then as it is written.
            sides = [read_model(model, body) for body in bodies]
            return changes if sides[0] == sides[1] else changes + _differences(sides[0].wire(), sides[1].wire())
    return [*changes, *_leaves(*bodies)]


def _marks(item: Object) -> Object:
    return {mark: item["metadata"].get(mark) or {} for mark in ("labels", "annotations")}


def _lost_marks(given: Object, rendered: Object) -> list[str]:
    """Labels and annotations of an object's owner: a server-side apply leaves them, a new cluster has none of them."""
    there, here = _marks(given), _marks(rendered)
    marks = [(kind, key) for kind, values in there.items() for key in values if key not in here[kind]]
    return [f"{kind}.{key}" for kind, key in marks if not any(part in key for part in _OF_MACHINES)]


def _differences(given: Any, wanted: Any) -> list[Change]:
    """Each place at which the two differ."""
    only_given = {path: (path, was, None) for path, _, was in _leaves(wanted, given)}
    return list((only_given | {change[0]: change for change in _leaves(given, wanted)}).values())


def _leaves(given: Any, wanted: Any, path: str = "") -> Iterator[Change]:
    """Each place at which `given` is not what is `wanted`; what is only in `given` is passed over."""
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        for key, value in wanted.items():
            yield from _leaves(given.get(key), value, f"{path}.{key}" if path else str(key))
    elif isinstance(given, list) and isinstance(wanted, list) and len(given) == len(wanted):
        for index, (one, other) in enumerate(zip(given, wanted, strict=True)):
            yield from _leaves(one, other, f"{path}[{index}]")
    elif given != wanted and (given or wanted):
        yield path, given, wanted
