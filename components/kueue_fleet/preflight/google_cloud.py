"""Reads of a Google Cloud project what `findings` compares, with the user's own credentials; changes nothing.

A read that is refused is named in the `Facts`, and the others go on. Where Google cannot be asked any more, what was
read until then stays.
Reads that Google asks to repeat are repeated, a few times, after the time that it says.
"""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any, Final

import httplib2

from kueue_admission.kernel.form_rules import Fault
from kueue_fleet.fleet_file.projects import HostGrant
from kueue_fleet.fleet_file.rules.commands import UNREAD
from kueue_fleet.preflight.facts import Facts, Quota, Reservation, Subnet, without_preemptible
from kueue_fleet.preflight.needs import Needs
from kueue_fleet.preflight.quotas import TPU_FAMILY_METRIC, Metric

with warnings.catch_warnings():
    # The library announces for each version of Python the day on which it will be too old.
    warnings.simplefilter("ignore", FutureWarning)
    import google.auth
    import google_auth_httplib2
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError
    from googleapiclient.discovery import build
    from googleapiclient.errors import HttpError
    from googleapiclient.http import set_user_agent

for _library in ("google.auth", "googleapiclient"):
    # Their warnings repeat on stderr what answers say.
    logging.getLogger(_library).setLevel(logging.ERROR)

SCOPES: Final = (
    "https://www.googleapis.com/auth/cloud-platform.read-only",
    "https://www.googleapis.com/auth/compute.readonly",
)
"""What service accounts are limited to; the credentials of people have the scopes of their login."""
TRIES: Final = 4
"""How often a read is tried."""
LONGEST_WAIT_SECONDS: Final = 60.0
"""A longer wait than this is not waited for."""
TIMEOUT_SECONDS: Final = 30
"""How long an answer may take."""

_PERMISSIONS_AT_ONCE: Final = 100
_AGAIN: Final = (429, 500, 502, 503, 504)
_RATE_LIMITS: Final = ("rateLimitExceeded", "userRateLimitExceeded")
_FILE_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
_LOGIN: Final = "run: gcloud auth application-default login"


class CannotAskError(Exception):
    """Nothing can be read at all, for what is in `fault`."""

    def __init__(self, wrong: str, fix: str) -> None:
        self.fault = Fault(wrong, fix, UNREAD)
        super().__init__(str(self.fault))


class RefusedError(Exception):
    """One read was refused, for what is in `fault`."""

    def __init__(self, wrong: str, fix: str, status: int) -> None:
        self.fault = Fault(wrong, fix, UNREAD)
        super().__init__(str(self.fault))
        self.status = status


class Google:
    """Clients of Google's APIs that repeat reads."""

    def __init__(
        self, http: Any, endpoints: Mapping[str, str] | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """`http` sends requests, with credentials; `endpoints` replaces addresses of APIs, by name, as `gcloud` can."""
        self._http, self._sleep = http, sleep
        self._endpoints = dict(endpoints or {})
        self._apis: dict[tuple[str, str], Any] = {}
        self._end: CannotAskError | None = None
        self.has_answered = False
        """Whether it once did, be it with a refusal."""

    def api(self, name: str, version: str) -> Any:
        """The client of an API, from the description of it that comes with Google's client library."""
        if (name, version) not in self._apis:
            options = {"api_endpoint": self._endpoints[name]} if name in self._endpoints else None
            self._apis[name, version] = build(
                name, version, http=self._http, client_options=options, static_discovery=True, cache_discovery=False
            )
        return self._apis[name, version]

    def answer(self, request: Any) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            RefusedError: Google refuses it, or does not answer after several tries.
            CannotAskError: the credentials have expired, or Google cannot be reached; nothing is asked after that.
        """
        if self._end is not None:
            raise self._end
        try:
            content = self._answer(request)
        except CannotAskError as end:
            self._end = end
            raise
        except RefusedError:
            self.has_answered = True
            raise
        self.has_answered = True
        return content

    def _answer(self, request: Any) -> dict[str, Any]:
        for attempt in range(1, TRIES + 1):
            try:
                content = request.execute()
                if not isinstance(content, dict):
                    wrong = f"the answer to {request.methodId} is not from Google"
                    raise CannotAskError(wrong, "look at HTTPS_PROXY, or log in to the network")
                return content
            except HttpError as refused:
                if refused.status_code == 401:
                    wrong = f"Google does not accept the credentials: {_first_line(refused.reason or refused)}"
                    raise CannotAskError(wrong.rstrip("."), _LOGIN) from None
                wait = _wait(refused, attempt)
                if wait is None or attempt == TRIES:
                    raise _refused(refused, request.methodId, attempt) from None
                self._sleep(wait)
            except RefreshError as expired:
                raise CannotAskError(
                    f"Google does not accept the credentials: {_first_line(expired)}", _LOGIN
                ) from None
            except (OSError, HTTPException, httplib2.error.HttpLib2Error, GoogleAuthError) as failed:
                wrong = f"Google cannot be reached: {_first_line(failed)}"
                raise CannotAskError(wrong, "look at the network and HTTPS_PROXY, and try again") from None
        raise AssertionError("the last try returns or raises")

    def pages(self, collection: Any, method: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """The answers of a list, page by page. Raises as `answer`."""
        token = None
        while True:
            page = self.answer(getattr(collection, method)(**arguments, pageToken=token))
            yield page
            token = page.get("nextPageToken")
            if not token:
                return


def connect(project: str, endpoints: Mapping[str, str] | None = None) -> Google:
    """Clients with the user's own credentials; `endpoints` as of `Google`.

    Raises:
        CannotAskError: there are none.
    """
    try:
        with warnings.catch_warnings():
            # That credentials of people have no project to charge, which they get below.
            warnings.simplefilter("ignore", UserWarning)
            credentials, _ = google.auth.default(scopes=SCOPES)
    except DefaultCredentialsError as missing:
        if os.environ.get(_FILE_VARIABLE):
            wrong = f"{_FILE_VARIABLE} cannot be used: {_first_line(missing.args[0]).rstrip('.')}"
            raise CannotAskError(wrong, f"correct it, or unset it and {_LOGIN}") from None
        raise CannotAskError("there are no Google credentials here", _LOGIN) from None
    except GoogleAuthError as wrong:
        raise CannotAskError(f"the Google credentials cannot be used: {_first_line(wrong)}", _LOGIN) from None
    if getattr(credentials, "quota_project_id", "") is None and hasattr(credentials, "with_quota_project"):
        credentials = credentials.with_quota_project(project)
    http = google_auth_httplib2.AuthorizedHttp(credentials, http=httplib2.Http(timeout=TIMEOUT_SECONDS))
    return Google(set_user_agent(http, "kueue-fleet-preflight"), endpoints)


def read_facts(needs: Needs, google: Google) -> Facts:
    """What the project of NEEDS has of all that they name.

    Raises:
        CannotAskError: nothing can be read at all.
    """
    return _Reader(needs, google).facts()


class _Reader:
    def __init__(self, needs: Needs, google: Google) -> None:
        self._needs, self._google = needs, google
        self._number = ""
        self._unread: dict[str, Fault] = {}

    def facts(self) -> Facts:
        return Facts(
            enabled_apis=self._enabled_apis(),
            quotas=self._quotas(),
            machine_types=self._offered("machineTypes", {need.machine_type for need in self._needs.machines}),
            accelerators=self._offered(
                "acceleratorTypes", {need.accelerator for need in self._needs.machines if need.accelerator}
            ),
            reservations=self._reservations(),
            project_number=self._project_number(),
            subnets=self._subnets(),
            host_grants=self._host_grants(),
            permissions=self._permissions(),
            unread=self._unread,
        )

    @contextmanager
    def _reading(self, *parts: str) -> Iterator[None]:
        """Note what is refused within it as not read. Raises CannotAskError if Google has answered nothing."""
        try:
            yield
        except CannotAskError as end:
            if not self._google.has_answered:
                raise
            self._unread |= dict.fromkeys(parts, end.fault)
        except RefusedError as refused:
            self._unread |= dict.fromkeys(parts, refused.fault)

    def _compute(self, collection: str) -> Any:
        return getattr(self._google.api("compute", "v1"), collection)()

    def _enabled_apis(self) -> frozenset[str]:
        names: set[str] = set()
        services = self._google.api("serviceusage", "v1").services()
        arguments = {"parent": f"projects/{self._needs.project}", "filter": "state:ENABLED", "pageSize": 200}
        with self._reading("apis"):
            for page in self._google.pages(services, "list", **arguments, fields="services(name),nextPageToken"):
                names |= {service["name"].rpartition("/")[2] for service in page.get("services", ())}
        return frozenset(names)

    def _quotas(self) -> dict[Metric, Quota]:
        quotas: dict[Metric, Quota] = {}
        with self._reading("quotas"):
            project = self._google.answer(self._compute("projects").get(project=self._needs.project, fields="quotas"))
            quotas |= _quotas_of(project, "")
            region_pages = self._google.pages(
                self._compute("regions"),
                "list",
                project=self._needs.project,
                fields="items(name,quotas,quotaStatusWarning),nextPageToken",
            )
            for region in (region for page in region_pages for region in page.get("items", ())):
                quotas |= _quotas_of(region, region["name"])
                if "quotaStatusWarning" in region:
                    message = region["quotaStatusWarning"].get("message", "for a reason that it does not say")
                    wrong = f"Google has no quotas for now: {message}"
                    self._unread[f"quotas {region['name']}"] = Fault(wrong, "try again later", UNREAD)
        if "quotas" not in self._unread:
            metrics = {need.metric for need in self._needs.quotas if not need.metric.unread}
            quotas |= self._other_limits(metrics - quotas.keys())
            standard = {need.standard for need in self._needs.quotas if without_preemptible(need, quotas)}
            quotas |= self._other_limits({metric for metric in standard if metric is not None} - quotas.keys())
        return quotas

    def _other_limits(self, metrics: Iterable[Metric]) -> dict[Metric, Quota]:
        """Quotas that Compute Engine's own API does not report; how much of them is in use is not reported here."""
        names = {f"compute.googleapis.com/{metric.name.lower()}": metric.name for metric in metrics}
        if not names:
            return {}
        buckets: dict[str, list[dict[str, Any]]] = {}
        quotas = self._google.api("serviceusage", "v1beta1").services().consumerQuotaMetrics()
        parent = f"projects/{self._needs.project}/services/compute.googleapis.com"
        with self._reading(f"quotas {next(iter(names.values()))}"):
            for page in self._google.pages(quotas, "list", parent=parent, view="FULL", pageSize=100):
                for metric_data in page.get("metrics", ()):
                    limits = metric_data.get("consumerQuotaLimits", ()) if metric_data["metric"] in names else ()
                    # Quotas by zone are beside those by region.
                    quota_buckets = [
                        bucket for limit in limits if "{zone}" not in limit["unit"] for bucket in limit["quotaBuckets"]
                    ]
                    buckets.setdefault(names.get(metric_data["metric"], ""), []).extend(quota_buckets)
        limits = {metric: _effective(buckets.get(metric.name, []), metric) for metric in metrics}
        return {metric: Quota(limit, None) for metric, limit in limits.items() if limit is not None}

    def _offered(self, collection: str, names: set[str]) -> frozenset[tuple[str, str]]:
        """Zone and name of each of NAMES."""
        places_offered: set[tuple[str, str]] = set()
        words = {"machineTypes": "machine types", "acceleratorTypes": "accelerators"}
        with self._reading(f"machines {words[collection]}"):
            for scope, machine in self._aggregated(collection, names, part="machines {place}") if names else ():
                places_offered.add((scope.removeprefix("zones/"), machine["name"]))
        return frozenset(places_offered)

    def _aggregated(
        self, collection: str, names: Iterable[str], project: str = "", *, part: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Scope and content of what is called so, in all zones; PART is not read where a place does not answer."""
        name_filter = " OR ".join(f'(name = "{name}")' for name in sorted(names))
        pages = self._google.pages(
            self._compute(collection),
            "aggregatedList",
            project=project or self._needs.project,
            filter=name_filter or None,
            maxResults=500,
        )
        for page in pages:
            for scope in page.get("unreachables", ()):
                place = scope.rpartition("/")[2]
                wrong = f"Google does not know at the moment what is in {place}"
                self._unread[part.format(place=place)] = Fault(wrong, "try again later", UNREAD)
            for scope, content in page.get("items", {}).items():
                yield from ((scope, entry) for entry in content.get(collection, ()))

    def _reservations(self) -> dict[tuple[str, str], tuple[Reservation, ...]]:
        names: dict[str, list[str]] = {}
        for need in self._needs.reservations:
            names.setdefault(need.project, []).append(need.name)
        reservations: dict[tuple[str, str], tuple[Reservation, ...]] = {}
        for project, names_there in names.items():
            part = f"reservations {project}"
            with self._reading(part):
                for scope, reservation in self._aggregated("reservations", names_there, project, part=part):
                    key = project, reservation["name"]
                    reservations[key] = (
                        *reservations.get(key, ()),
                        _reservation(reservation, scope.removeprefix("zones/")),
                    )
        return reservations

    def _project_number(self) -> str:
        """Only a shared reservation of another project, or grants of a host project, name this one by its number."""
        project = self._needs.project
        asking = [f"reservations {need.project}" for need in self._needs.reservations if need.project != project]
        asking += ["grants"] if self._needs.host_grants else []
        if not asking:
            return ""
        projects = self._google.api("cloudresourcemanager", "v3").projects()
        with self._reading(*asking):
            answer = self._google.answer(projects.get(name=f"projects/{project}", fields="name"))
            self._number = str(answer["name"]).removeprefix("projects/")
        return self._number

    def _subnets(self) -> tuple[Subnet, ...] | None:
        project, network = self._needs.network_project, self._needs.network
        subnets: list[Subnet] = []
        if not self._needs.reads_network:
            return ()
        with self._reading("addresses"):
            try:
                self._google.answer(self._compute("networks").get(project=project, network=network, fields="name"))
            except RefusedError as refused:
                if refused.status == 404:
                    return None
                raise
            for scope, subnet in self._aggregated("subnetworks", (), project, part="addresses"):
                if subnet["network"].endswith(f"/projects/{project}/global/networks/{network}"):
                    subnets += _ranges(subnet, scope.removeprefix("regions/"))
        return tuple(subnets)

    def _host_grants(self) -> frozenset[HostGrant]:
        if not (self._needs.host_grants and self._number):
            return frozenset()
        host_grants: list[HostGrant] = []
        host, projects = self._needs.network_project, self._google.api("cloudresourcemanager", "v3").projects()
        with self._reading("grants"):
            in_project = self._granted(projects.getIamPolicy(resource=f"projects/{host}", body={}))
            of_subnets = {
                (region, name): self._granted(
                    self._compute("subnetworks").getIamPolicy(project=host, region=region, resource=name)
                )
                for region, name in dict.fromkeys(subnet for need in self._needs.host_grants for subnet in need.subnets)
            }
            host_grants += [
                need
                for need in self._needs.host_grants
                if (grant := (need.role, f"serviceAccount:{need.agent.format(self._number)}")) in in_project
                or (need.subnets and all(grant in of_subnets[subnet] for subnet in need.subnets))
            ]
        return frozenset(host_grants)

    def _granted(self, request: Any) -> set[tuple[str, str]]:
        """Roles and who has them, by a policy. Raises as `answer`."""
        bindings = self._google.answer(request).get("bindings", ())
        return {(binding["role"], member) for binding in bindings for member in binding.get("members", ())}

    def _permissions(self) -> frozenset[str]:
        permission_names = list(dict.fromkeys(name for need in self._needs.roles for name in need.permissions))
        permissions_held: set[str] = set()
        projects = self._google.api("cloudresourcemanager", "v3").projects()
        with self._reading("permissions"):
            for start in range(0, len(permission_names), _PERMISSIONS_AT_ONCE):
                body = {"permissions": permission_names[start : start + _PERMISSIONS_AT_ONCE]}
                request = projects.testIamPermissions(resource=f"projects/{self._needs.project}", body=body)
                permissions_held |= set(self._google.answer(request).get("permissions", ()))
        return frozenset(permissions_held)


def _quotas_of(resource: Mapping[str, Any], region: str) -> dict[Metric, Quota]:
    return {
        Metric(quota["metric"], region): Quota(quota["limit"], quota["usage"]) for quota in resource.get("quotas", ())
    }


def _effective(buckets: Iterable[Mapping[str, Any]], metric: Metric) -> float | None:
    """The limit of the bucket that says most about METRIC."""
    family = "tpu_family" if metric.name == TPU_FAMILY_METRIC else "gpu_family"
    dimensions = {"region": metric.region} | ({family: metric.family} if metric.family else {})
    known_buckets = [bucket for bucket in buckets if (bucket.get("dimensions") or {}).items() <= dimensions.items()]
    best = max(known_buckets, key=lambda each: len(each.get("dimensions") or {}), default=None)
    return None if best is None or best.get("effectiveLimit") is None else float(best["effectiveLimit"])


def _reservation(reservation: Mapping[str, Any], zone: str) -> Reservation:
    machines = reservation.get("specificReservation", {})
    properties = machines.get("instanceProperties", {})
    share = reservation.get("shareSettings", {})
    gpus = [
        (guest_accelerator["acceleratorType"].rpartition("/")[2], int(guest_accelerator["acceleratorCount"]))
        for guest_accelerator in properties.get("guestAccelerators", ())
    ]
    return Reservation(
        zone=zone,
        status=reservation.get("status", ""),
        machine_type=properties.get("machineType", ""),
        accelerators=tuple(gpus),
        machines=int(machines.get("count", 0)),
        in_use=int(machines.get("inUseCount", 0)),
        specific=bool(reservation.get("specificReservationRequired", False)),
        share_type=share.get("shareType", "LOCAL"),
        shared_with=frozenset(share.get("projectMap", {})),
    )


def _ranges(subnet: Mapping[str, Any], region: str) -> Iterator[Subnet]:
    if "ipCidrRange" in subnet:
        yield Subnet(subnet["name"], region, subnet["ipCidrRange"], "")
    for secondary_ip_range in subnet.get("secondaryIpRanges", ()):
        yield Subnet(subnet["name"], region, secondary_ip_range["ipCidrRange"], secondary_ip_range["rangeName"])


def _wait(error: HttpError, attempt: int) -> float | None:
    """Seconds until the next try; None: there is none."""
    again = error.status_code in _AGAIN or (
        error.status_code == 403 and any(reason in _reasons(error) for reason in _RATE_LIMITS)
    )
    after = str(error.resp.get("retry-after", ""))
    wait = float(after) if after.isdigit() else 2.0 ** (attempt - 1)
    return wait if again and wait <= LONGEST_WAIT_SECONDS else None


def _reasons(error: HttpError) -> list[str]:
    details = error.error_details if isinstance(error.error_details, list) else []
    return [str(detail.get("reason")) for detail in details if isinstance(detail, dict) and "reason" in detail]


def _refused(error: HttpError, method: str, tries: int) -> RefusedError:
    status, reason = error.status_code, _first_line(error.reason or "").rstrip(".")
    api = f"{method.partition('.')[0]}.googleapis.com"
    if status == 403 and {"SERVICE_DISABLED", "accessNotConfigured"} & set(_reasons(error)):
        return RefusedError(f"{api} is not enabled, so that {method} cannot be asked", "enable it", status)
    if status == 403:
        fix = "ask for a role that may, such as roles/viewer and roles/serviceusage.serviceUsageConsumer"
        return RefusedError(f"you may not call {method}: {reason}", fix, status)
    if status in _AGAIN:
        after = error.resp.get("retry-after")
        later = f"in {after} s" if after else "later"
        wrong = f"Google answers {method} with {status} ({reason}) after {tries} tries"
        return RefusedError(wrong, f"try again {later}", status)
    if status == 404:
        return RefusedError(f"{method}: {reason}", "look at the project's id", status)
    return RefusedError(f"Google answers {method} with {status}: {reason}", "look at the fleet's project", status)


def _first_line(wrong: object) -> str:
    return next(iter(str(wrong).splitlines()), "") or type(wrong).__name__
