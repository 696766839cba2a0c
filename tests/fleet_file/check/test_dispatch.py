"""The fleet's own controller: the section alone, and with the rest of the file."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, fleet, fleet_data, model_problems, problems

from kueue_fleet.fleet_file.controller_image import built_image, controller_image
from kueue_fleet.objects.controller_values import controller_configuration
from kueue_fleet.settings.dispatch import AdmissionControllerArgs, FleetCheck

OURS = {"multiKueue/dispatcher": "External", "multiKueue/external": {"name": "kueue-fleet.dev/dispatcher"}}
CHECK = {"name": "fleet", "controllerName": "kueue-fleet.dev/admission-check", "clusters": ["manager"]}
AT = "controller"
IMAGE = {"image": "example.com/controller:1"}
WITH = {**OURS, AT: IMAGE}
USES = "clusterQueues/0/admissionChecksStrategy/admissionChecks/+"
NIGHTS = {"name": "nights", "start": "2026-12-01T20:00:00Z", "duration": "12h", "days": ["Monday", "Tuesday"]}

SECTION: dict[str, tuple[dict[str, Any], list[str]]] = {
    "replicas": ({"replicas": 0}, ["replicas: 0 is too small; use at least 1"]),
    "step": ({"dispatch": {"step": 21}}, ["dispatch.step: 21 is too large; use at most 20"]),
    "widen": (
        {"dispatch": {"widenAfter": "0s"}},
        ["dispatch.widenAfter: 0s is less than a second; write 1s or longer"],
    ),
    "given up before it is widened": (
        {"dispatch": {"widenAfter": "5m", "giveUpAfter": "1m"}},
        [
            "dispatch.giveUpAfter: 1m is shorter than widenAfter, 5m; make it longer, or jobs are given up before a "
            "second cluster is asked"
        ],
    ),
    "rest": ({"dispatch": {"retryAfter": "-1s"}}, ["dispatch.retryAfter: -1s is negative; write 0s or longer"]),
    "weight": ({"dispatch": {"weights": {"price": -1}}}, ["dispatch.weights.price: -1 is too small; use at least 0.0"]),
    "price": ({"prices": {"us-east4": {"l4": -1}}}, ["prices[us-east4][l4]: -1 is too small; use at least 0.0"]),
    "large price": (
        {"prices": {"us-east4": {"l4": 1e308}}},
        ["prices[us-east4][l4]: 1e+308 is too large; use at most 1000000000.0"],
    ),
    "more than DWS gives": (
        {"checks": [{"name": "fleet", "runDuration": {"max": "169h"}}]},
        ["checks[fleet].runDuration.max: 169h is not between 1s and 168h; write at most 168h"],
    ),
    "a history nowhere": (
        {"history": {}},
        [
            "history: sets neither store nor volumeClaim; write one of them: gs://BUCKET/PATH, or the name of a "
            "PersistentVolumeClaim"
        ],
    ),
    "a history twice": (
        {"history": {"store": "gs://lab-history/fleet", "volumeClaim": "history"}},
        [
            "history: sets both store and volumeClaim; write one of them: gs://BUCKET/PATH, or the name of a "
            "PersistentVolumeClaim"
        ],
    ),
    **{
        f"a history in {store}": (
            {"history": {"store": store}},
            [
                f"history.store: {store} is not a folder of a bucket; write gs://BUCKET/PATH, the path of letters, "
                "digits, -, _, . and /"
            ],
        )
        for store in (
            "gs://lab-history",
            "gs://lab-history/",
            "gs:///fleet",
            "s3://lab-history/fleet",
            "/mnt/history",
            "gs://Lab/fleet",
            'gs://lab-history/a") || true || ("',
            "gs://lab-history/a//b",
            "gs://lab-history/../others",
            "gs://lab-history/a?endpoint_override=evil.example",
        )
    },
    "what deletes from a bucket": (
        {"history": {"store": "gs://lab-history/fleet", "keep": "720h", "maxSize": "1Gi"}},
        [
            f"history.{name}: set, but the controller deletes nothing from a bucket; give the bucket a lifecycle rule, "
            "and remove it"
            for name in ("keep", "maxSize")
        ],
    ),
    "a history that keeps next to nothing": (
        {"history": {"volumeClaim": "history", "every": "1ms", "keep": "1h", "maxSize": "1Mi"}},
        [
            "history.every: 1ms is less than 1s; write 1s or more",
            "history.keep: 1h is less than 24h; write 24h or more",
            "history.maxSize: 1Mi is less than 16Mi; write 16Mi or more",
        ],
    ),
    "an empty window": (
        {"checks": [{"name": "fleet", "windows": [{"name": "w", "start": "2026-12-01T00:00:00Z", "duration": "0s"}]}]},
        ["checks[fleet].windows[w].duration: 0s is not longer than 0; write how long it lasts, such as 336h"],
    ),
    "a window twice": (
        {"checks": [{"name": "fleet", "windows": [{"name": "w", "start": "2026-12-01", "duration": "1h"}] * 2}]},
        ["checks[fleet].windows[w]: is listed twice; give each window a unique name"],
    ),
    "a window that opens again while it is open": (
        {"checks": [{"name": "fleet", "windows": [{**NIGHTS, "duration": "25h"}]}]},
        [
            "checks[fleet].windows[nights].duration: 25h is longer than the 24h after which it opens again; "
            "make it shorter, or name fewer days"
        ],
    ),
    "a day twice": (
        {"checks": [{"name": "fleet", "windows": [{**NIGHTS, "days": ["Monday", "Monday"]}]}]},
        ["checks[fleet].windows[nights].days[1]: Monday is listed twice; list each day once"],
    ),
    "a place that is not known": (
        {"checks": [{"name": "fleet", "windows": [{**NIGHTS, "timeZone": "Europe/Berlim"}]}]},
        ["checks[fleet].windows[nights].timeZone: there is no time zone Europe/Berlim; did you mean Europe/Berlin?"],
    ),
    "a clock without days": (
        {"checks": [{"name": "fleet", "windows": [{**NIGHTS, "days": [], "timeZone": "Europe/Berlin"}]}]},
        [
            "checks[fleet].windows[nights].timeZone: set, but days is not; "
            "name the days on which it opens, or remove timeZone"
        ],
    ),
    "a check twice": (
        {"checks": [{"name": "fleet"}, {"name": "fleet"}]},
        ["checks[fleet]: is listed twice; keep one of them"],
    ),
    "watchdog": (
        {"watchdog": {"provisioningTimeout": "0s"}},
        ["watchdog.provisioningTimeout: 0s is less than a second; write 1m or more"],
    ),
}


@pytest.mark.parametrize(("section", "expected"), SECTION.values(), ids=SECTION.keys())
def test_a_section_that_makes_no_sense(section: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(AdmissionControllerArgs, IMAGE | section) == expected


@pytest.mark.parametrize("image", ["registry/controller", "host:5000/controller:latest"])
def test_an_image_that_may_change(image: str) -> None:
    assert problems(changed(fleet_data(), {**OURS, AT: {"image": image}})) == [
        f"warning: controller.image: {image} does not say which version; add a tag other than latest, or a digest"
    ]


@pytest.mark.parametrize("image", ["r/controller:1.0", "h:5000/c:1", "r/c@sha256:abc", "r/c:latest@sha256:abc"])
def test_images_that_say_which(image: str) -> None:
    assert model_problems(AdmissionControllerArgs, {"image": image}) == []


def test_without_an_image_it_is_built_where_the_controller_runs() -> None:
    assert model_problems(AdmissionControllerArgs, {}) == []
    spec = fleet({**OURS, AT: {}, "project": "example.com:lab-project"})
    built = built_image(spec)
    assert built is not None
    assert controller_image(spec) == built.reference
    assert built.reference == (
        f"europe-west4-docker.pkg.dev/example.com/lab-project/{spec.name}/controller:{version('kueue-fleet')}"
    )


def test_no_image_is_built_where_one_is_named_or_no_controller_is_there() -> None:
    assert (built_image(fleet()), controller_image(fleet())) == (None, None)
    assert built_image(fleet(WITH)) is None
    assert controller_image(fleet(WITH)) == IMAGE["image"]


FLEETS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "not deployed": (
        OURS,
        [
            "multiKueue.external.name: kueue-fleet.dev/dispatcher is the fleet's own controller, which is not "
            "deployed; add the section controller"
        ],
    ),
    "almost the fleet's own": (
        {**WITH, "multiKueue/external": {"name": "kueue-fleet.dev/dispatchr"}},
        [
            "warning: multiKueue.external.name: kueue-fleet.dev/dispatchr is not the fleet's own controller; did you "
            "mean kueue-fleet.dev/dispatcher?"
        ],
    ),
    "another dispatcher": (
        {AT: {**IMAGE, "dispatch": {"step": 2}}},
        [
            "controller.dispatch: set, but another dispatcher is used; set multiKueue.dispatcher to External "
            "and multiKueue.external.name to kueue-fleet.dev/dispatcher, or remove it"
        ],
    ),
    "a check that nobody answers": (
        {**WITH, "admissionChecks/+": CHECK, USES: {"name": "fleet"}},
        [
            "admissionChecks[fleet].controllerName: kueue-fleet.dev/admission-check, but controller.checks "
            "has no fleet; add {name: fleet} there"
        ],
    ),
    "a check on workers": (
        {
            **OURS,
            AT: {**IMAGE, "checks": [{"name": "fleet"}]},
            "admissionChecks/+": {**CHECK, "clusters": ["worker-a"]},
            USES: {"name": "fleet"},
        },
        [
            "admissionChecks[fleet].clusters: names other clusters than the manager, where no controller answers this "
            "check; set it to [manager]"
        ],
    ),
    "a check of somebody else": (
        {**OURS, AT: {**IMAGE, "checks": [{"name": "dws"}]}},
        [
            "controller.checks[dws].name: dws is answered by another controller; set its controllerName to "
            "kueue-fleet.dev/admission-check"
        ],
    ),
    "a check that is not there": (
        {**OURS, AT: {**IMAGE, "checks": [{"name": "dvs"}]}},
        ["controller.checks[dvs].name: there is no check dvs; did you mean dws?"],
    ),
    "a price of nowhere": (
        {**OURS, AT: {**IMAGE, "prices": {"us-east5": {"l4": 1}}}},
        ["controller.prices[us-east5]: no cluster that runs jobs is in this region; did you mean us-east4?"],
    ),
    "a price of nothing": (
        {**OURS, AT: {**IMAGE, "prices": {"us-east4": {"h100": 1}}}},
        ["controller.prices[us-east4][h100]: there is no flavor h100; use one of the flavors: l4, t4"],
    ),
    "profiles": (
        {
            **OURS,
            AT: IMAGE,
            "multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"},
        },
        [],
    ),
    "a group of nowhere": (
        {**OURS, AT: {**IMAGE, "regionGroups": {"eu": ["europe-west4", "europe-west44"]}}},
        ["controller.regionGroups[eu][1]: there is no region europe-west44; did you mean europe-west4?"],
    ),
    "a group with a region's name": (
        {**OURS, AT: {**IMAGE, "regionGroups": {"us-east4": ["us-east5"]}}},
        ["controller.regionGroups[us-east4]: is a region's own name; use another name for the group"],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), FLEETS.values(), ids=FLEETS.keys())
def test_a_section_that_does_not_fit_the_fleet(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


def test_without_workers_there_is_nothing_to_dispatch() -> None:
    without = changed(fleet_data(), {"multiKueue": REMOVED, AT: IMAGE})
    expected = (
        "warning: controller: set, but there is no multiKueue section, and no checks, fallback, "
        "quotaFollows, during, enforced budget or history"
    )
    assert expected in [problem.partition("; ")[0] for problem in problems(without)]


def test_a_fleet_with_all_of_it_has_no_problem() -> None:
    window = {"name": "december", "start": "2026-12-01T00:00:00Z", "duration": "336h"}
    section = {
        "image": "registry.example.com/kueue-fleet/controller:1.0",
        "replicas": 3,
        "dispatch": {"step": 2, "widenAfter": "1m", "giveUpAfter": "24h", "retryAfter": "0s", "weights": {"free": 5}},
        "prices": {"us-east4": {"l4": 0.7}, "europe-west4": {"l4": 0.8, "t4": 0.35}},
        "regionGroups": {"eu": ["europe-west1", "europe-west4"]},
        "checks": [{"name": "fleet", "runDuration": {"max": "24h"}, "windows": [window], "regions": False}],
        "watchdog": {"provisioningTimeout": "48h", "retries": 0},
    }
    assert (
        problems(changed(fleet_data(), {**OURS, "admissionChecks/+": CHECK, USES: {"name": "fleet"}, AT: section}))
        == []
    )


def test_what_waits_for_dws_is_not_to_be_taken_back_within_hours() -> None:
    section = {**IMAGE, "dispatch": {"giveUpAfter": "2h"}, "watchdog": {"provisioningTimeout": "30m"}}
    result = problems(changed(fleet_data(), {**OURS, AT: section}))
    why = "but dws asks DWS for capacity, which may take days, and a job that is taken back loses its place there"
    assert result == [
        f"warning: controller.dispatch.giveUpAfter: 2h, {why}; write 24h or more",
        f"warning: controller.watchdog.provisioningTimeout: 30m, {why}; write 24h or more",
    ]
    assert problems(changed(fleet_data(), WITH)) == []


def test_the_name_of_the_assignment_check_is_taken() -> None:
    own = {"name": "kueue-fleet-assignment", "controllerName": "example.com/other", "clusters": ["manager"]}
    [result] = [text for text in problems(changed(fleet_data(), {**WITH, "admissionChecks/+": own})) if ".name" in text]
    assert result.endswith("is the fleet's own check of that name; use another name")


def test_what_the_controller_is_told() -> None:
    told = controller_configuration(
        fleet(
            {
                **WITH,
                "teams/0/allowedRegions": ["europe-west4"],
                "kueue/configuration": {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}},
            }
        )
    )
    assert told.dispatches
    assert [(worker.name, worker.region) for worker in told.workers] == [
        ("worker-a", "us-east4"),
        ("worker-b", "europe-west4"),
    ]
    assert told.team_regions == {"team-vision": ("europe-west4",)}
    assert told.workers[0].kueue["fairSharing"] == {"preemptionStrategies": ["LessThanInitialShare"]}
    assert not controller_configuration(fleet({AT: IMAGE})).dispatches


def test_without_a_controller_there_is_nothing_to_tell() -> None:
    with pytest.raises(ValueError, match="the fleet has no controller"):
        controller_configuration(fleet())


MORNINGS = {"name": "mornings", "start": "2026-12-01T06:00:00Z", "duration": "4h", "days": ["Tuesday", "Friday"]}


@pytest.mark.parametrize(
    ("window", "since"),
    [
        (MORNINGS, "2026-12-01T06:00Z"),
        ({**MORNINGS, "days": ["Wednesday"]}, "2026-12-02T06:00Z"),
        ({**MORNINGS, "start": "2026-12-01T08:00:00Z"}, None),
        ({**MORNINGS, "days": ["Thursday", "Friday"]}, None),
        ({**MORNINGS, "start": "2026-12-03T07:00:00Z", "days": []}, None),
        ({**MORNINGS, "start": "2027-01-05T07:00:00Z", "days": []}, "2027-01-05T07:00Z"),
        # At nine in Berlin it is eight by UTC in winter, and seven in summer.
        ({**MORNINGS, "start": "2026-12-01T08:00:00Z", "timeZone": "Europe/Berlin"}, "2027-03-30T07:00Z"),
    ],
)
def test_windows_that_are_open_at_the_same_time_are_warned_of(window: dict[str, Any], since: str | None) -> None:
    nights = {**NIGHTS, "start": "2026-11-30T20:00:00Z"}
    check = FleetCheck.model_validate({"name": "fleet", "windows": [nights, window]})
    wrong = [] if since is None else [f"is open at the same time as nights, as at {since}"]
    assert [item.wrong for item in check.own_problems()] == wrong
