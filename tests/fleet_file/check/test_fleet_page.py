"""Rules of the page for teams."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import fleet

from kueue_admission.kernel import SpecError
from kueue_fleet.fleet_file import check_fleet, parse_fleet
from small_fleets import fleet_data

GROUP, AUDIENCE = "ml@example.com", "/projects/1234567/global/backendServices/42"
IAP = {"host": "jobs.example.com", "audience": AUDIENCE, "groups": {GROUP: ["ada@example.com"]}}
OURS = {"dispatcher": "External", "external": {"name": "kueue-fleet.dev/dispatcher"}}


def data(page: Any, **changes: Any) -> dict[str, Any]:
    result = fleet_data("worker-us-east4", **changes)
    result["multiKueue"] = {**result.get("multiKueue", {}), **OURS}
    result["teams"][0]["members"] = [f"group:{GROUP}", "user:bob@example.com"]
    return {"controller": {"image": "example.com/controller:1"}, **result, "fleetPage": page}


def problems(made: dict[str, Any]) -> list[tuple[str, str]]:
    """Those of the page, of a file that is refused or not."""
    try:
        result = check_fleet(parse_fleet(made))
    except SpecError as refused:
        result = list(refused.problems)
    return [(item.path, item.wrong) for item in result if "fleetPage" in f"{item.path} {item.wrong}"]


@pytest.mark.parametrize("page", [{}, {"iap": IAP}])
def test_a_page_that_lets_its_viewers_in_has_no_problem(page: Any) -> None:
    assert problems(data(page)) == []


@pytest.mark.parametrize(
    ("iap", "path", "wrong"),
    [
        ({"audience": None}, "audience", "is absent, so the page refuses everybody"),
        ({"audience": "42"}, "audience", '"42" is not the audience of a backend service'),
        ({"audience": f"{AUDIENCE}/x"}, "audience", f'"{AUDIENCE}/x" is not the audience of a backend service'),
        ({"host": "https://jobs.example.com/"}, "host", '"https://jobs.example.com/" has'),
        ({"groups": {"group:ml@example.com": []}}, "groups", "is not an address"),
        ({"groups": {GROUP: ["ada"]}}, f"groups[{GROUP}][0]", '"ada" is not an address'),
        ({"groups": {GROUP: ["ada@example.com"] * 2}}, f"groups[{GROUP}]", "ada@example.com is listed twice"),
        (
            {"groups": {**IAP["groups"], "mk@example.com": []}},  # type: ignore[dict-item]
            "groups[mk@example.com]",
            "mk@example.com is a member of no team",
        ),
    ],
)
def test_what_is_wrong_behind_iap(iap: dict[str, Any], path: str, wrong: str) -> None:
    given = {name: value for name, value in {**IAP, **iap}.items() if value is not None}
    result = problems(data({"iap": given}))
    assert [(at, output) for at, output in result if at.startswith(f"fleetPage.iap.{path}") and wrong in output], result


def test_who_is_in_a_group_has_to_be_said() -> None:
    result = problems(data({"iap": {**IAP, "groups": {}}}))
    assert result == [
        ("teams[team-a].members", f"{GROUP} is not among fleetPage.iap.groups, so its members see nothing on the page")
    ]


def test_it_runs_the_controllers_image() -> None:
    result = data({})
    del result["controller"], result["multiKueue"]
    assert ("fleetPage", "needs the controller, whose image it runs") in problems(result)


def test_a_fleet_without_the_section_has_no_page() -> None:
    assert fleet({}).fleet_page is None


@pytest.mark.parametrize("namespace", ["kueue-fleet-page", "kueue-fleet-system"])
def test_teams_and_queues_have_other_namespaces(namespace: str) -> None:
    """Whoever makes pods there could mount what the controller has, the credentials of workers."""
    result = data({}, localQueues=[{"namespace": namespace, "name": "gpu", "clusterQueue": "gpu"}])
    result["teams"].append({"name": "taken", "namespaces": [namespace]})
    with pytest.raises(SpecError) as refused:
        parse_fleet(result)
    results = [item.path for item in refused.value.problems if f"{namespace} is the namespace of" in item.wrong]
    assert results == ["teams[taken].namespaces[0]", "localQueues[gpu].namespace"]
