"""What the Google provider refuses before it asks Google: by its schema, and by the forms of names, ranges and times.

What the schema says is in `google.provider_facts`; the forms are those that its validators, or the API, ask for
(`FORMS`).
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.google.provider_facts import Fact, Facts, load_facts
from kueue_fleet.google.resource_types import (
    ACCOUNT_MEMBER,
    CLUSTER,
    CUSTOM_ROLE,
    KEY_MEMBER,
    NODE_POOL,
    PROJECT_MEMBER,
    SERVICE_ACCOUNT,
)
from kueue_rehearsal.standins.property_values import Asset, Value, reveal


class Refusal(NamedTuple):
    """What the provider says of a property."""

    property: str
    reason: str


_SCALARS: Final = {"string": "a string", "int": "a whole number", "float": "a number", "bool": "true or false"}
_COLLECTIONS: Final = {"list": "a list", "set": "a list", "map": "an object", "block": "an object"}


def check_inputs(token: str, inputs: Mapping[str, Value], facts: Facts | None = None) -> list[Refusal]:
    """Everything in `inputs` that the provider refuses. What a preview cannot know is not looked at, nor are types that
    the facts do not have.

    `facts` are by default those of Google's provider.
    """
    facts = facts or load_facts()
    return list(_Checks(token, reveal(dict(inputs)), facts).problems()) if token in facts.resources else []


class _Checks:
    """The checks of one resource's inputs."""

    def __init__(self, token: str, inputs: Mapping[str, Any], facts: Facts) -> None:
        self._token = token
        self._facts = facts.resources[token]
        self._inputs = inputs

    def problems(self) -> Iterator[Refusal]:
        yield from self._block(self._facts, self._inputs, "", "")

    def _block(self, facts: Mapping[str, Fact], block: Mapping[str, Any], path: str, plain: str) -> Iterator[Refusal]:
        """`path` has the indices of lists, `plain` has not."""
        for name, value in block.items():
            if name not in facts and name != "__defaults" and value is not None:
                yield self._unknown(f"{path}{name}", name, facts)
        for name, fact in facts.items():
            value = block.get(name)
            if fact.of_blocks and value == []:
                value = None
            yield from self._property(fact, value, f"{path}{name}", f"{plain}{name}")

    def _unknown(self, here: str, name: str, facts: Mapping[str, Fact]) -> Refusal:
        near = difflib.get_close_matches(name, [name for name, fact in facts.items() if fact.is_input], n=1, cutoff=0.0)
        sdk = f"pulumi-{self._token.partition(':')[0]}"
        return Refusal(here, f"{here}: {sdk} has no such property{f'; did you mean {near[0]}?' if near else ''}")

    def _property(self, fact: Fact, value: Any, path: str, plain: str) -> Iterator[Refusal]:
        yield from self._groups(fact, value, path)
        if value is None:
            if fact.required:
                yield Refusal(path, f"{path}: required field is not set; set it")
            return
        if not fact.is_input:
            yield Refusal(
                path, f"{path}: is set by {'Google' if self._token.startswith('gcp:') else 'the provider'}; remove it"
            )
            return
        missing_names = [other for other in fact.together if self._at(other) is None]
        if missing_names:
            yield Refusal(path, f"{path}: needs {', '.join(missing_names)}; set it too, or remove {path}")
        others = [other for other in fact.conflicts if self._at(other) is not None]
        if others:
            yield Refusal(path, f"{path}: conflicts with {', '.join(others)}; remove one of them")
        yield from self._value(fact, value, path, plain)

    def _groups(self, fact: Fact, value: Any, path: str) -> Iterator[Refusal]:
        """Exactly one of a group, or at least one. Each group is reported once, with the first of its paths."""
        for group, at_most in ((fact.one_of, 1), (fact.some_of, len(fact.some_of))):
            names_there = [other for other in group if self._at(other) is not None]
            reported_name = names_there[0] if names_there else (group[0] if group else "")
            if group and path == reported_name and not 1 <= len(names_there) <= at_most:
                how = "exactly one" if at_most == 1 else "at least one"
                yield Refusal(
                    path, f"{path}: {how} of {', '.join(group)} is needed, given: {', '.join(names_there) or 'none'}"
                )

    def _at(self, path: str) -> Any:
        value: Any = self._inputs
        for part in path.replace("[]", "").split("."):
            if value is UNKNOWN:
                return UNKNOWN
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def _value(self, fact: Fact, value: Any, path: str, plain: str) -> Iterator[Refusal]:
        wanted_type: type[Any] = list if fact.kind in ("list", "set") else dict
        if value is UNKNOWN or isinstance(value, Asset):
            return
        if fact.kind in _SCALARS:
            yield from self._scalar(fact, value, path, plain)
        elif not isinstance(value, wanted_type):
            yield Refusal(path, f"{path}: {type(value).__name__} given; it is {_COLLECTIONS[fact.kind]}")
        elif fact.kind == "block":
            yield from self._block(fact.children, value, f"{path}.", f"{plain}.")
        elif fact.kind == "map":
            for key, item in value.items():
                yield from self._item(fact, item, f"{path}.{key}", plain)
        else:
            yield from self._items(fact, value, path, plain)

    def _items(self, fact: Fact, items: list[Any], path: str, plain: str) -> Iterator[Refusal]:
        if len(items) < fact.least or (fact.most is not None and len(items) > fact.most):
            most = "or more" if fact.most is None else f"to {fact.most}"
            yield Refusal(path, f"{path}: {len(items)} items given; {fact.least} {most} are allowed")
        for index, item in enumerate(items):
            yield from self._item(fact, item, f"{path}[{index}]", f"{plain}[]")

    def _item(self, fact: Fact, item: Any, here: str, plain: str) -> Iterator[Refusal]:
        if item is UNKNOWN:
            return
        if not fact.of_blocks:
            yield from _scalar_type("string", item, here)
            yield from _allowed(fact, item, here)
            yield from _form(self._token, plain, item, here)
        elif isinstance(item, dict):
            yield from self._block(fact.children, item, f"{here}.", f"{plain}.")
        else:
            yield Refusal(here, f"{here}: {type(item).__name__} given; it is an object")

    def _scalar(self, fact: Fact, value: Any, path: str, plain: str) -> Iterator[Refusal]:
        wrong = list(_scalar_type(fact.kind, value, path))
        yield from wrong
        if wrong:
            return
        yield from _allowed(fact, value, path)
        if fact.kind in ("int", "float"):
            if fact.minimum is not None and float(value) < fact.minimum:
                yield Refusal(path, f"{path}: {value} given; it is at least {fact.minimum:g}")
            if fact.maximum is not None and float(value) > fact.maximum:
                yield Refusal(path, f"{path}: {value} given; it is at most {fact.maximum:g}")
        yield from _form(self._token, plain, value, path)


def _scalar_type(kind: str, value: Any, path: str) -> Iterator[Refusal]:
    """Pulumi's bridge takes numbers and booleans as text, and text as numbers and booleans."""
    if isinstance(value, dict | list):
        fits = False
    elif kind == "bool":
        fits = isinstance(value, bool) or value in ("true", "false")
    elif kind in ("int", "float"):
        fits = not isinstance(value, bool) and _is_number(value, whole=kind == "int")
    else:
        fits = True
    if not fits:
        yield Refusal(path, f"{path}: {type(value).__name__} given; it is {_SCALARS[kind]}")


def _allowed(fact: Fact, value: Any, path: str) -> Iterator[Refusal]:
    if fact.allowed and str(value) not in fact.allowed:
        allowed_text = ", ".join(word for word in fact.allowed if word)
        yield Refusal(path, f"{path}: {value!r} given; it is one of {allowed_text}")


def _is_number(value: Any, *, whole: bool) -> bool:
    try:
        return float(value).is_integer() or not whole
    except (ValueError, OverflowError):
        return False


def _form(token: str, plain: str, value: Any, path: str) -> Iterator[Refusal]:
    form = FORMS.get((token, plain))
    if form is not None and value != "" and (wrong := form(str(value))):
        yield Refusal(path, f"{path}: {value!r} given; {wrong}")


# -- forms ----------------------------------------------------------------------------------------------------------

Form = Callable[[str], str | None]
"""What is wrong with a text; None: nothing."""


def _matching(pattern: str, meaning: str) -> Form:
    expression = re.compile(pattern)
    return lambda text: None if expression.fullmatch(text) else meaning


def _range(text: str) -> str | None:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        return f"it is a range of addresses, such as 10.0.0.0/20 ({error})"
    return None if "/" in text else f"it needs the length of its prefix, such as {network}"


def _control_plane_range(text: str) -> str | None:
    return _range(text) or (None if text.endswith("/28") else "it is a range with a prefix of /28")


def _range_or_size(text: str) -> str | None:
    return None if re.fullmatch(r"/\d{1,2}", text) else _range(text)


def _time(text: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    has_zone = moment is not None and moment.tzinfo is not None and "T" in text
    return None if has_zone else "it is a time as in RFC 3339, such as 2026-01-31T00:00:00Z"


_NAME: Final = _matching(
    r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?",
    "it is 1 to 63 lower-case letters, digits and hyphens, begins with a letter and does not end with a hyphen",
)
_GKE_NAME: Final = _matching(
    r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?",
    "it is 1 to 40 lower-case letters, digits and hyphens, begins with a letter and does not end with a hyphen",
)
_MEMBER: Final = _matching(
    r"allUsers|allAuthenticatedUsers|[A-Za-z]+(:.+)+", "it is a kind and a name, such as serviceAccount:a@b.com"
)
_ACCOUNT_ID: Final = _matching(
    r"[a-z]([-a-z0-9]{4,28}[a-z0-9])",
    "it is 6 to 30 lower-case letters, digits and hyphens, begins with a letter and does not end with a hyphen",
)

_COMPUTE: Final = "gcp:compute/"
_WINDOW: Final = "maintenancePolicy.recurringWindow"
_EXCLUSION: Final = "maintenancePolicy.maintenanceExclusions[]"
FORMS: Final[Mapping[tuple[str, str], Form]] = {
    **{
        (f"{_COMPUTE}{kind}", "name"): _NAME
        for kind in (
            "network:Network",
            "subnetwork:Subnetwork",
            "router:Router",
            "routerNat:RouterNat",
            "firewall:Firewall",
            "address:Address",
            "reservation:Reservation",
            "futureReservation:FutureReservation",
            "regionCommitment:RegionCommitment",
            "resourcePolicy:ResourcePolicy",
        )
    },
    (f"{_COMPUTE}subnetwork:Subnetwork", "ipCidrRange"): _range,
    (f"{_COMPUTE}subnetwork:Subnetwork", "secondaryIpRanges[].ipCidrRange"): _range,
    (f"{_COMPUTE}subnetwork:Subnetwork", "secondaryIpRanges[].rangeName"): _NAME,
    (CLUSTER, "name"): _GKE_NAME,
    (NODE_POOL, "name"): _GKE_NAME,
    (CLUSTER, "masterAuthorizedNetworksConfig.cidrBlocks[].cidrBlock"): _range,
    (CLUSTER, "privateClusterConfig.masterIpv4CidrBlock"): _control_plane_range,
    (CLUSTER, "clusterIpv4Cidr"): _range_or_size,
    (CLUSTER, "ipAllocationPolicy.clusterIpv4CidrBlock"): _range_or_size,
    (CLUSTER, "ipAllocationPolicy.servicesIpv4CidrBlock"): _range_or_size,
    (CLUSTER, f"{_WINDOW}.startTime"): _time,
    (CLUSTER, f"{_WINDOW}.endTime"): _time,
    (CLUSTER, f"{_EXCLUSION}.startTime"): _time,
    (CLUSTER, f"{_EXCLUSION}.endTime"): _time,
    (CLUSTER, "maintenancePolicy.dailyMaintenanceWindow.startTime"): _matching(
        r"([01][0-9]|2[0-3]):[0-5][0-9]", "it is a time of day, such as 03:00"
    ),
    (SERVICE_ACCOUNT, "accountId"): _ACCOUNT_ID,
    (CUSTOM_ROLE, "roleId"): _matching(r"[a-zA-Z0-9_.]{3,64}", "it is 3 to 64 letters, digits, _ and ."),
    (ACCOUNT_MEMBER, "member"): _MEMBER,
    (PROJECT_MEMBER, "member"): _MEMBER,
    (KEY_MEMBER, "member"): _MEMBER,
}
"""The form of a property. Names of Compute Engine and GKE: RFC 1035; the rest as the provider's validators ask."""
