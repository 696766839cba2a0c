"""What Google answers, where that is not what it was asked for: defaults of its own, links, what it drops.

What Google chooses where nothing is said is in `defaults.json`; GKE's own answers are in `google.gke_answers`. The
page docs/google-cloud.md says of each how sure it is.
"""

from __future__ import annotations

import copy
import functools
import json
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pkgutil import get_data
from typing import Any, Final

from kueue_fleet.gke.machines import machine_type
from kueue_fleet.google.resource_types import (
    ACCOUNT_MEMBER,
    ALERT_POLICY,
    COMMITMENT,
    DASHBOARD,
    FIREWALL,
    FUTURE_RESERVATION,
    KEY_MEMBER,
    NETWORK,
    PROJECT_MEMBER,
    RESERVATION,
    ROUTER,
    ROUTER_NAT,
    SUBNETWORK,
)

COMPUTE_API: Final = "https://www.googleapis.com/compute/v1"
"""How links to resources of Compute Engine begin."""

IN_A_TEST: Final = "in a unit test: pulumi.runtime.set_mocks(kueue_fleet.testing.Mocks())"
"""What to do where nothing was answered because Pulumi's mocks are in use, which answer what they were asked for."""

Properties = dict[str, Any]
"""Properties of a resource or of a block, as plain data."""
Answer = Callable[[Properties], Properties]
"""The properties that were asked for in, those that Google reports out."""


@functools.cache
def _defaults() -> Mapping[str, Any]:
    return dict(json.loads(get_data(__package__, "defaults.json") or b""))


def google_defaults(name: str) -> Properties:
    """A table of `defaults.json`: what Google chooses where nothing is said."""
    return dict(copy.deepcopy(_defaults()[name]))


def filled(properties: Properties, defaults: Mapping[str, Any]) -> Properties:
    """`properties` with what is left out from `defaults`, block by block."""
    result = dict(properties)
    for name, value in defaults.items():
        if name not in result:
            result[name] = value
        elif isinstance(result[name], dict) and isinstance(value, dict):
            result[name] = filled(result[name], value)
    return result


def number_of(text: str) -> str:
    """A number as Google gives out, the same for the same text."""
    return str(10**11 + zlib.crc32(text.encode()))


def function_answer(
    token: str, arguments: Mapping[str, Any], where: Mapping[str, Any], access_token: str
) -> Properties | None:
    """What a function of the provider returns that tells a program where it is; None of any other one.

    `where` has project, region and zone of the provider.
    """
    if token == "gcp:organizations/getClientConfig:getClientConfig":  # noqa: S105  (a function)
        return {**where, "accessToken": access_token}
    if token == "gcp:organizations/getProject:getProject":  # noqa: S105  (a function)
        project = arguments.get("projectId") or where["project"]
        return {"projectId": project, "name": project, "number": number_of(project), "id": f"projects/{project}"}
    return None


def project_number(project: str) -> str:
    """The number of a project; Google answers with it where it was given the id."""
    return project if project.isdigit() else number_of(project)


def compute_link(link: Any, project: str, kind: str) -> Any:
    """The link to a network or the like, `kind` being `global/networks`, from a link or a name."""
    if not isinstance(link, str) or link.startswith("https://"):
        return link
    short = link if link.startswith("projects/") else f"projects/{project}/{kind}/{link}"
    return f"{COMPUTE_API}/{short}"


def _by_default(table: str) -> Answer:
    return lambda given: filled(given, google_defaults(table))


def _network_member(table: str | None = None) -> Answer:
    """A resource of Compute Engine that lies in a network."""

    def answer(properties: Properties) -> Properties:
        link = compute_link(properties.get("network"), str(properties["project"]), "global/networks")
        return {**filled(properties, google_defaults(table) if table else {}), **({"network": link} if link else {})}

    return answer


def _shared(settings: Properties) -> Properties:
    """Projects come back as numbers."""
    maps = settings.get("projectMaps")
    if not maps:
        return settings
    numbers = [project_number(str(entry["id"])) for entry in maps]
    return {**settings, "projectMaps": [{"id": number, "projectId": number} for number in numbers]}


def _machines(properties: Properties) -> Properties:
    """The GPUs and disks that come with a machine type are reported as if they had been asked for."""
    machine = machine_type(str(properties.get("machineType")))
    comes_with: Properties = {}
    if machine is not None and machine.gpus:
        comes_with["guestAccelerators"] = [{"acceleratorType": machine.accelerator, "acceleratorCount": machine.gpus}]
    if machine is not None and machine.local_ssds:
        comes_with["localSsds"] = [{"interface": "NVME", "diskSizeGb": machine.ssd_gib}] * machine.local_ssds
    return {**properties, **comes_with}


def _reservation(properties: Properties) -> Properties:
    answer = filled(properties, google_defaults("reservation"))
    block = answer["specificReservation"]
    if "instanceProperties" in block:
        answer["specificReservation"] = {**block, "instanceProperties": _machines(block["instanceProperties"])}
    return {**answer, "shareSettings": _shared(answer["shareSettings"])}


def _future_reservation(properties: Properties) -> Properties:
    answer = filled(properties, google_defaults("futureReservation"))
    settings = answer.pop("shareSettings", None)
    if settings and settings.get("shareType") != "LOCAL":
        answer["shareSettings"] = _shared(settings)
    answer["timeWindow"] = _ended(answer["timeWindow"])
    block = answer.get("specificSkuProperties") or {}
    if "instanceProperties" in block:
        machines = _machines(block["instanceProperties"])
        for disk in machines.get("localSsds", ()):
            disk["diskSizeGb"] = str(disk["diskSizeGb"])
        answer["specificSkuProperties"] = {**block, "instanceProperties": machines}
    return answer


def _ended(window: Properties) -> Properties:
    """A window of time with its end; the API takes a duration and never returns it."""
    if "duration" not in window:
        return window
    start = datetime.fromisoformat(str(window["startTime"]))
    end = start + timedelta(seconds=int(window["duration"].get("seconds") or 0))
    return {"startTime": window["startTime"], "endTime": end.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _dashboard(properties: Properties) -> Properties:
    """Cloud Monitoring drops what is zero, empty or false, and adds a name and an etag."""
    content = without_zeros(json.loads(str(properties["dashboardJson"])))
    computed_fields = {"name": f"projects/{project_number(str(properties['project']))}/dashboards/0", "etag": "0"}
    return {**properties, "dashboardJson": json.dumps({**content, **computed_fields}, sort_keys=True)}


def without_zeros(value: Any) -> Any:
    """`value` as proto3's JSON has it: without zeros, empty texts and lists, and false; empty objects stay."""
    if isinstance(value, dict):
        properties = {key: without_zeros(item) for key, item in value.items()}
        return {key: item for key, item in properties.items() if item not in (0, "", [], None)}
    return [without_zeros(item) for item in value] if isinstance(value, list) else value


def _alert_policy(properties: Properties) -> Properties:
    return {
        **properties,
        **without_zeros({name: properties[name] for name in ("conditions", "alertStrategy") if name in properties}),
    }


def _member(properties: Properties) -> Properties:
    """The address of a member in lower case; other kinds of members keep theirs."""
    kind, colon, name = str(properties["member"]).partition(":")
    is_lower_case = kind in ("serviceAccount", "user", "group", "domain")
    return {**properties, "member": f"{kind}{colon}{name.lower() if is_lower_case else name}"}


ANSWERS: Final[Mapping[str, Answer]] = {
    NETWORK: _by_default("network"),
    SUBNETWORK: _network_member("subnetwork"),
    ROUTER: _network_member(),
    FIREWALL: _network_member(),
    ROUTER_NAT: _by_default("routerNat"),
    RESERVATION: _reservation,
    FUTURE_RESERVATION: _future_reservation,
    COMMITMENT: _by_default("commitment"),
    DASHBOARD: _dashboard,
    ALERT_POLICY: _alert_policy,
    PROJECT_MEMBER: _member,
    ACCOUNT_MEMBER: _member,
    KEY_MEMBER: _member,
}
"""By type; a type that is not here is answered as it was asked for."""
