"""The core decides every scenario that an older release was asked as that release did, by its named behaviours."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.differential import corpus
from tests.differential.compare import as_answered, is_known_by, mismatch

from drawn import some_of
from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.errors import NotModelledError
from kueue_admission.decide.model import AdmissionFairSharing, LocalQueue
from kueue_admission.decide.queue.usage_ledger import NANO, UsageLedger
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.releases import release

Json = dict[str, Any]

RELEASES = ("0.17", "0.18")
DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "releases.md"


@pytest.mark.parametrize("version", RELEASES)
def test_every_answer_is_the_releases(version: str) -> None:
    """All of them with `make releases`."""
    records = some_of(corpus.load(version), version)
    banners = [banner for case, answer in records if (banner := mismatch(case, answer)) is not None]
    assert not banners, f"{len(banners)} of {len(records)} scenarios differ\n\n" + "\n\n".join(banners[:3])


def test_the_page_says_how_many_scenarios_each_release_was_asked() -> None:
    latest, *older = (f"{len(corpus.load(version)):,}" for version in ("0.19", *RELEASES))
    page = " ".join((DOCS / "fidelity.md").read_text().split())
    assert f"{latest} random scenarios on 0.19.2, {older[0]} on 0.17.1 and {older[1]} on 0.18.3" in page


def test_a_release_that_decides_as_the_latest_adds_nothing_to_what_is_known() -> None:
    [(case, latest)] = corpus.read(corpus.file_of("asked-fair"))
    asked = {**case, "release": "0.17"}
    answer = as_answered(asked, latest)
    assert is_known_by(asked, answer, latest)
    answer["rounds"][-1]["changes"] = {**answer["rounds"][-1]["changes"], "w99": "Pending"}
    assert not is_known_by(asked, answer, latest)


@cache
def changed() -> dict[str, dict[str, tuple[Json, Json]]]:
    """By scenario and release: the smallest scenarios that show what changed, and what each release answered."""
    result: dict[str, dict[str, tuple[Json, Json]]] = {}
    for version in ("0.17", "0.18", "0.19"):
        for path in corpus.file_of("changed-*", version).parent.glob("changed-*"):
            for case, answer in corpus.read(path):
                result.setdefault(case["name"].removeprefix("changed-"), {})[version] = case, answer
    return result


SHOWN = {
    "labels": ("0.17", "0.18"),
    "candidates": ("0.18", "0.19"),
    "scan": ("0.18", "0.19"),
    "equal": ("0.17", "0.18"),
    "together": ("0.17", "0.18"),
    "leader": ("0.17", "0.18"),
    "nothing": ("0.17", "0.18"),
    "zero": ("0.18", "0.19"),
}
"""By scenario: the last release that decided in the one way, and the first of those here that decided in the other."""


@pytest.mark.parametrize("name", SHOWN)
def test_the_later_release_decides_otherwise(name: str) -> None:
    """The answer of the one is a mismatch for the core of the other."""
    before, after = SHOWN[name]
    asked = changed()[name]
    assert set(asked) == {"0.17", "0.18", "0.19"}
    (case, _), (_, other) = asked[after], asked[before]
    assert mismatch(case, other) is not None


def test_usage_is_sampled_in_thousandths_before_0_19_1() -> None:
    """The scenario `rounding`: a difference of less than the time that a log takes, which the comparison lets pass."""
    steps = {}
    for version, (_, answer) in changed()["rounding"].items():
        samples = [item[3]["cpu"] for one in answer["rounds"] for item in one["trace"] if item[0] in "st"]
        steps[version] = {Quantity(text).decimal * 1000 % 1 == 0 for text in samples}
    assert steps == {"0.17": {True}, "0.18": {True}, "0.19": {False}}


def test_each_behaviour_begins_with_a_release_and_has_a_source() -> None:
    for item in fields(Behaviours):
        assert item.metadata["source"]
        assert f"`{item.name}`" in PAGE.read_text()
        assert getattr(Behaviours.of(item.metadata["since"]), item.name)
        assert not getattr(Behaviours.of("0.17.0"), item.name)
    assert Behaviours.of("0.19.2") == Behaviours()


def test_pods_that_are_not_ready_are_waited_for_by_default_since_0_19() -> None:
    assert parse_configuration({}, release("0.18.3")).wait_for_pods_ready is None
    assert parse_configuration({}, release("0.19.0")).wait_for_pods_ready is not None
    assert parse_configuration({"waitForPodsReady": {}}, release("0.18.3")).wait_for_pods_ready is not None


USAGE = {"admissionFairSharing": {"usageHalfLifeTime": "30s"}}


def by_usage(**spec: Any) -> list[Json]:
    """A ClusterQueue whose LocalQueues have an order, and a job that may run with fewer pods in one of them."""
    queue = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}, **spec}
    pods = {"name": "main", "count": 2, "minCount": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}
    objects = (
        ("ClusterQueue", "q", queue),
        ("LocalQueue", "l", {"clusterQueue": "q"}),
        ("Workload", "w", {"queueName": "l", "podSets": [pods]}),
    )
    return [
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": item}
        for kind, name, item in objects
    ]


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({}, "ClusterQueue q: partial admission (minCount) of default/w"),
        ({"admissionChecksStrategy": {"admissionChecks": [{"name": "dws"}]}}, "ClusterQueue q: admission checks"),
    ],
)
def test_penalties_that_stay_are_refused_by_name_before_0_19_1(spec: Json, refused: str) -> None:
    objects = by_usage(**spec)
    with pytest.raises(NotModelledError, match=re.escape(f"{refused} with admission fair sharing before Kueue 0.19.1")):
        parse_objects(objects, parse_configuration(USAGE, release("0.18.3")))
    parse_objects(objects, parse_configuration(USAGE))
    parse_objects(objects, parse_configuration({}, release("0.18.3")))


def test_usage_is_rounded_to_thousandths_before_0_19_1() -> None:
    """With a half-life of a week, every five minutes; the page has the real ones."""
    settings = AdmissionFairSharing(half_life=168 * 3600.0, sampling_interval=300.0)
    used = {}
    for version in ("0.19.0", "0.19.1"):
        ledger = UsageLedger(settings, Behaviours.of(version))
        ledger.configure(settings, [LocalQueue("default", "l", "q", consumed=(("cpu", 2 * NANO),), sampled=0.0)])
        ledger.now = 300.0
        used[version] = ledger.usage("default/l")
    assert used == {"0.19.0": 1.999, "0.19.1": pytest.approx(2 * 0.5 ** (300 / (168 * 3600)))}


def test_topologies_that_share_nodes_are_refused_by_name_before_0_18() -> None:
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor"}
    flavors = [
        {**flavor, "metadata": {"name": name}, "spec": {"nodeLabels": labels, "topologyName": "t"}}
        for name, labels in (("a", {"gpu": "l4"}), ("b", {"gpu": "l4", "spot": "true"}))
    ]
    with pytest.raises(NotModelledError, match=r"ResourceFlavor a: .*TASHandleOverlappingFlavors"):
        parse_objects(flavors, parse_configuration({}, release("0.17.1")))
    parse_objects(flavors, parse_configuration({}, release("0.18.3")))


HOST = "kubernetes.io/hostname"
LATER: dict[str, tuple[Json, str]] = {
    "an added level": ({"rack": {}}, "Topology t: a lowest level above kubernetes.io/hostname"),
    "a partial slice": ({HOST: {"podSetSliceRequiredTopology": HOST, "podSetSliceSize": 2}}, "3 pods in slices of 2"),
    "slices in a group": (
        {HOST: {"podSetSliceRequiredTopology": HOST, "podSetSliceSize": 3, "podSetGroupName": "g"}},
        "slices in a podSetGroupName",
    ),
}
"""By what is placed otherwise since 0.20: the lowest level with the request for it, and what is refused."""


@pytest.mark.parametrize("name", LATER)
def test_what_new_gates_place_otherwise_is_refused_by_name_since_0_20(name: str) -> None:
    asked, refused = LATER[name]
    [(level, request)] = asked.items()
    pods = {"name": "main", "count": 3, "topologyRequest": request, "template": {"spec": {"containers": []}}}
    specs = (
        ("Topology", "t", {"levels": [{"nodeLabel": level}]}),
        ("ResourceFlavor", "f", {"topologyName": "t", "nodeLabels": {"a": "b"}}),
        ("Workload", "w", {"queueName": "l", "podSets": [pods]}),
    )
    objects = [
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, name, spec in specs
    ]
    with pytest.raises(NotModelledError, match=re.escape(refused)):
        parse_objects(objects, parse_configuration({}, release("0.20.0")))
    parse_objects(objects, parse_configuration({}, release("0.19.2")))
