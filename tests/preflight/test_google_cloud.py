"""What is read of a project, from Google's APIs on this machine: every read, every page, every error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import google.auth
import httplib2
import pytest
from google.auth.exceptions import DefaultCredentialsError, RefreshError
from google.oauth2.credentials import Credentials
from tests.preflight import google_api
from tests.preflight.google_api import Failure, Project
from tests.preflight.projects import fleet_data, needs, reservation, roomy_project

from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.preflight.facts import Facts, Quota, Reservation
from kueue_fleet.preflight.findings import Finding, findings
from kueue_fleet.preflight.google_cloud import SCOPES, TRIES, CannotAskError, Google, connect, read_facts
from kueue_fleet.preflight.needs import needs_of
from kueue_fleet.preflight.quotas import Metric

Read = Callable[[], Facts]


@pytest.fixture
def project() -> Iterator[Project]:
    """What every test ends with: no request, and no answer, that Google's descriptions do not have."""
    result = roomy_project()
    yield result
    assert result.wrong == []


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def read(project: Project, waits: list[float]) -> Iterator[Read]:
    with project.served() as endpoints:
        http = httplib2.Http(timeout=5)
        yield lambda: read_facts(needs(), Google(http, endpoints, waits.append))


def not_fitting(facts: Facts) -> list[Finding]:
    return [item for item in findings(needs(), facts) if item.verdict != "fits"]


def test_a_fleet_fits_into_a_project_with_room(project: Project, read: Read) -> None:
    facts = read()
    assert not_fitting(facts) == []
    assert facts.unread == {}
    assert facts.subnets is None, "the network does not exist"
    assert set(project.calls) == set(google_api._ANSWERS) - {
        "compute.subnetworks.aggregatedList",
        # Of a Shared VPC's host project: tests/examples/test_shared_vpc.py.
        "compute.subnetworks.getIamPolicy",
        "cloudresourcemanager.projects.getIamPolicy",
        "serviceusage.services.consumerQuotaMetrics.list",
    }


def test_every_page_is_read(project: Project, read: Read) -> None:
    project.page_size = 1
    few = read()
    counted = {name: project.calls.count(name) for name in project.calls}
    assert counted["serviceusage.services.list"] == len(project.apis)
    assert counted["compute.regions.list"] == 3
    assert counted["compute.machineTypes.aggregatedList"] == 4
    project.page_size = 500
    assert read() == few


def test_kinds_of_gpu_that_came_later_are_read_of_service_usage(project: Project) -> None:
    data = fleet_data()
    data["nodePools"][3]["capacity"] = {"type": "onDemand"}
    expected = needs_of(parse_fleet(data))[0]
    project.other_limits = {
        "something_else": [({}, 7)],
        "gpus_per_gpu_family": [
            ({}, 0),
            ({"region": "us-central1"}, 1),
            ({"region": "us-central1", "gpu_family": "NVIDIA_H100"}, 16),
            ({"region": "us-east4", "gpu_family": "NVIDIA_H100"}, 99),
        ],
        "gpus_per_gpu_family_per_zone": [({"zone": "us-central1-a"}, 3)],
    }
    with project.served() as endpoints:
        facts = read_facts(expected, Google(httplib2.Http(timeout=5), endpoints))
    metric = Metric("GPUS_PER_GPU_FAMILY", "us-central1", "NVIDIA_H100")
    assert facts.quotas[metric] == Quota(16, None)


def test_kinds_of_tpu_are_of_a_family_of_their_own(project: Project) -> None:
    data = fleet_data()
    tpus = {"machineType": "tpu7x-standard-4t", "capacity": {"type": "onDemand"}, "zones": ["us-central1-c"]}
    data["nodePools"][3] |= tpus
    expected = needs_of(parse_fleet(data))[0]
    here = {"region": "us-central1"}
    limits = [(here, 1), ({**here, "tpu_family": "tpu7x"}, 64), ({**here, "tpu_family": "CT6E"}, 8)]
    project.other_limits = {"tpus_per_tpu_family": limits}
    with project.served() as endpoints:
        facts = read_facts(expected, Google(httplib2.Http(timeout=5), endpoints))
    assert facts.quotas[Metric("TPUS_PER_TPU_FAMILY", "us-central1", "tpu7x")] == Quota(64, None)


def test_what_exists_is_read_as_the_api_has_it(project: Project, read: Read) -> None:
    project.networks = ["lab"]
    network = "https://www.googleapis.com/compute/v1/projects/my-project/global/networks"
    secondary = [{"rangeName": "pods", "ipCidrRange": "10.64.0.0/14"}]
    project.subnetworks = {
        "us-central1": [
            {"name": "a", "network": f"{network}/lab", "ipCidrRange": "10.1.0.0/20", "secondaryIpRanges": secondary},
            {"name": "b", "network": f"{network}/other-lab", "ipCidrRange": "10.2.0.0/20"},
        ],
        "europe-west4": [],
    }
    attached = {
        "machineType": "n1-standard-4",
        "guestAccelerators": [{"acceleratorType": "zones/z/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 2}],
    }
    project.reservations["us-central1-a"] = [
        reservation("kept", "us-central1-a", machines={"instanceProperties": attached}, status="CREATING"),
        reservation("not asked for", "us-central1-a"),
    ]
    facts = read()
    assert [(subnet.name, subnet.region, subnet.cidr, subnet.secondary) for subnet in facts.subnets or ()] == [
        ("a", "us-central1", "10.1.0.0/20", ""),
        ("a", "us-central1", "10.64.0.0/14", "pods"),
    ]
    kept = Reservation(
        "us-central1-a", "CREATING", "n1-standard-4", (("nvidia-tesla-t4", 2),), 4, 1, True, "LOCAL", frozenset()
    )
    assert facts.reservations[("my-project", "kept")] == (kept,)
    assert set(facts.reservations) == {("my-project", "kept"), ("their-project", "theirs")}


@pytest.mark.parametrize(
    ("method", "failure", "part", "wrong", "fix"),
    [
        (
            "compute.regions.list",
            google_api.forbidden("compute.regions.list"),
            "quotas",
            "you may not call compute.regions.list: Required 'compute.regions.list' permission for "
            "'projects/my-project'",
            "ask for a role that may, such as roles/viewer and roles/serviceusage.serviceUsageConsumer",
        ),
        (
            "compute.projects.get",
            google_api.disabled("compute.googleapis.com"),
            "quotas",
            "compute.googleapis.com is not enabled, so that compute.projects.get cannot be asked",
            "enable it",
        ),
        (
            "compute.projects.get",
            google_api.not_found("projects/my-project"),
            "quotas",
            "compute.projects.get: The resource 'projects/my-project' was not found",
            "look at the project's id",
        ),
        (
            "cloudresourcemanager.projects.testIamPermissions",
            Failure(
                400, {"error": {"code": 400, "message": "Permission x is not valid.", "status": "INVALID_ARGUMENT"}}
            ),
            "permissions",
            "Google answers cloudresourcemanager.projects.testIamPermissions with 400: Permission x is not valid",
            "look at the fleet's project",
        ),
        (
            "serviceusage.services.list",
            google_api.too_many(3600),
            "apis",
            "Google answers serviceusage.services.list with 429 (Quota exceeded for quota metric 'Read requests' and "
            "limit 'Read requests per minute' of service) after 1 tries",
            "try again in 3600 s",
        ),
    ],
)
def test_a_read_that_is_refused_is_named_and_the_others_go_on(
    project: Project,
    read: Read,
    caplog: pytest.LogCaptureFixture,
    method: str,
    failure: Failure,
    part: str,
    wrong: str,
    fix: str,
) -> None:
    project.failures[method] = [failure]
    facts = read()
    assert caplog.records == [], "nothing is printed beside what the command says"
    assert {part: str(fault) for part, fault in facts.unread.items()} == {part: f"{wrong}; {fix}"}
    result = not_fitting(facts)
    assert {entry.part for entry in result} == {part}
    assert {(item.verdict, item.wrong, item.fix) for item in result} == {("unknown", wrong, fix)}


class TestRetries:
    def test_the_time_that_google_says_is_waited(self, project: Project, read: Read, waits: list[float]) -> None:
        project.failures["compute.regions.list"] = [google_api.too_many(7), google_api.unavailable()]
        project.failures["compute.networks.get"] = [google_api.too_many()]
        assert not_fitting(read()) == []
        assert waits == [7, 2, 1]

    def test_a_limit_on_calls_is_not_a_missing_permission(
        self, project: Project, read: Read, waits: list[float]
    ) -> None:
        limited = google_api._error(403, "Rate Limit Exceeded", "rateLimitExceeded")
        project.failures["compute.projects.get"] = [Failure(403, limited)]
        assert not_fitting(read()) == []
        assert waits == [1]

    def test_they_end(self, project: Project, read: Read, waits: list[float]) -> None:
        project.failures["compute.networks.get"] = [google_api.unavailable()] * 99
        facts = read()
        assert waits == [1, 2, 4]
        assert project.calls.count("compute.networks.get") == TRIES
        assert facts.unread["addresses"].wrong.startswith("Google answers compute.networks.get with 503 (")
        assert facts.unread["addresses"].wrong.endswith(") after 4 tries")
        assert facts.unread["addresses"].fix == "try again later"


def test_a_region_whose_quotas_google_does_not_have(project: Project, read: Read) -> None:
    project.region_warnings["us-central1"] = "Quota service is unavailable."
    result = not_fitting(read())
    assert {item.wrong for item in result} == {"Google has no quotas for now: Quota service is unavailable."}
    assert "NVIDIA_L4_GPUS in us-central1" in {entry.what for entry in result}
    assert "GPUS_ALL_REGIONS in all regions" not in {each.what for each in result}


def test_a_zone_that_does_not_answer(project: Project, read: Read) -> None:
    project.unreachable = ["https://www.googleapis.com/compute/v1/projects/my-project/zones/us-central1-c"]
    del project.machine_types["us-central1-c"]
    result = not_fitting(read())
    assert {item.what for item in result} >= {"g2-standard-24 in us-central1-c", "e2-standard-4 in us-central1-c"}
    assert {entry.verdict for entry in result} == {"unknown"}


def test_reservations_and_ranges_of_a_place_that_does_not_answer_are_unknown(project: Project, read: Read) -> None:
    project.networks = [needs().network]
    project.unreachable = ["https://www.googleapis.com/compute/v1/projects/my-project/zones/us-central1-a"]
    project.reservations.clear()
    unread = read().unread
    assert {"reservations my-project", "reservations their-project", "addresses"} <= set(unread)
    assert {fault.wrong for fault in unread.values()} == {"Google does not know at the moment what is in us-central1-a"}


class Answers:
    """Answers every request in the same way."""

    def __init__(self, status: int, content: bytes) -> None:
        self._answer = httplib2.Response({"status": str(status)}), content

    def request(self, *_: object, **__: object) -> tuple[httplib2.Response, bytes]:
        return self._answer


class TestCredentials:
    def test_requests_have_them(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        """The whole way, with those of a person: a token, the fleet's project as the one that is charged, our name."""
        person = Credentials(token="secret-token")  # type: ignore[no-untyped-call]
        asked: list[object] = []

        def default(**arguments: object) -> tuple[Credentials, None]:
            asked.append(arguments["scopes"])
            return person, None

        monkeypatch.setattr(google.auth, "default", default)
        with project.served() as endpoints:
            assert not_fitting(read_facts(needs(), connect("my-project", endpoints))) == []
        assert asked == [SCOPES]
        (headers,) = {
            (sent["authorization"], sent["x-goog-user-project"], sent["user-agent"].partition(" ")[0])
            for sent in project.headers
        }
        assert headers == ("Bearer secret-token", "my-project", "kueue-fleet-preflight")

    def test_there_are_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(**_: object) -> None:
            raise DefaultCredentialsError("Your default credentials were not found.")  # type: ignore[no-untyped-call]

        monkeypatch.setattr(google.auth, "default", none)
        monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
        with pytest.raises(CannotAskError, match=r"^there are no Google credentials here; run: "):
            connect("my-project")

    @pytest.mark.parametrize(("content", "wrong"), [(None, "was not found"), ("garbage", "is not a valid json file")])
    def test_their_file_is_none(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, wrong: str
    ) -> None:
        file = tmp_path / "key.json"
        if content is not None:
            file.write_text(content)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        with pytest.raises(CannotAskError, match=f"^GOOGLE_APPLICATION_CREDENTIALS cannot be used: .*{wrong}; correct"):
            connect("my-project")

    def test_they_have_expired(self, project: Project, waits: list[float]) -> None:
        class Expired:
            def request(self, *_: object, **__: object) -> None:
                raise RefreshError("Reauthentication is needed.\nmore")  # type: ignore[no-untyped-call]

        with pytest.raises(CannotAskError, match="does not accept the credentials: Reauthentication is needed"):
            read_facts(needs(), Google(Expired(), {}, waits.append))

    def test_they_are_refused(self, project: Project) -> None:
        refused = Answers(401, b'{"error": {"code": 401, "message": "Invalid Credentials."}}')
        with pytest.raises(
            CannotAskError, match=r"^Google does not accept the credentials: Invalid Credentials; run: "
        ):
            read_facts(needs(), Google(refused))

    def test_somebody_else_answers(self, project: Project) -> None:
        with pytest.raises(CannotAskError, match=r"services.list is not from Google; look at HTTPS_PROXY"):
            read_facts(needs(), Google(Answers(200, b"<html>Log in to the hotel's network</html>")))

    def test_google_cannot_be_reached(self, project: Project) -> None:
        with project.served() as endpoints:
            pass
        with pytest.raises(CannotAskError, match=r"Google cannot be reached: .*refused.*; look at "):
            read_facts(needs(), Google(httplib2.Http(timeout=5), endpoints))

    def test_what_was_read_before_the_end_stays(self, project: Project) -> None:
        class Ends:
            """Google, until it is asked for machine types."""

            calls = 0

            def request(self, uri: str, *arguments: object, **named: object) -> object:
                if "machineTypes" in uri or self.calls:
                    self.calls += 1
                    raise TimeoutError("timed out")
                return httplib2.Http(timeout=5).request(uri, *arguments, **named)

        http = Ends()
        with project.served() as endpoints:
            result = findings(needs(), read_facts(needs(), Google(http, endpoints)))
        assert {item.verdict for item in result if item.part in ("apis", "quotas")} == {"fits"}
        rest = [each for each in result if each.part not in ("apis", "quotas") and each.verdict != "fits"]
        assert {each.part for each in rest} >= {"machines", "reservations", "permissions"}
        assert {entry.wrong for entry in rest} == {"Google cannot be reached: timed out"}
        assert http.calls == 1, "nothing is asked again"


class TestTheApisHere:
    """What tests are done with is as strict as Google."""

    @pytest.mark.parametrize(
        ("verb", "path", "wrong"),
        [
            ("GET", "/compute/compute/v1/projects/p/regionz", "there is no such method"),
            ("DELETE", "/compute/compute/v1/projects/p/global/networks/n", "it changes something"),
            ("GET", "/compute/compute/v1/projects/p/regions?maxresults=5", "there is no parameter maxresults"),
            ("GET", "/compute/compute/v1/projects/p/regions?maxResults=x", "maxResults is not a number: x"),
            ("GET", "/compute/compute/v1/projects/p/regions?fields=items(nam)", "fields: answers have no nam"),
            ("GET", "/compute/compute/v1/projects/P_/regions", "project is not of the form "),
            (
                "GET",
                "/serviceusage/v1beta1/projects/p/services/c/consumerQuotaMetrics?view=ALL",
                "view is none of ",
            ),
            ("POST", "/cloudresourcemanager/v3/projects/p:testIamPermissions", "has no body"),
        ],
    )
    def test_a_wrong_request_is_refused(self, verb: str, path: str, wrong: str) -> None:
        project = roomy_project()
        with project.served() as endpoints:
            host = endpoints["compute"].partition("/compute/")[0]
            response, _ = httplib2.Http(timeout=5).request(f"{host}{path}", verb)
        assert response.status == 400
        assert [problem for problem in project.wrong if wrong in problem], project.wrong

    def test_a_wrong_answer_is_noticed(self) -> None:
        project = roomy_project()
        project.reservations["us-central1-a"] = [{"name": "kept", "sort": "of", "status": "FINE", "id": 5}]
        with project.served() as endpoints:
            read_facts(needs(), Google(httplib2.Http(timeout=5), endpoints))
        assert [problem.rpartition("]")[2] for problem in project.wrong] == [
            ".sort: there is no such field",
            ".status: FINE is none of the allowed values",
            ".id: is not string: 5",
        ]
