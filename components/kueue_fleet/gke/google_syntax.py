"""The syntax of Google Cloud's names, addresses and ranges. Sources are named on each function.

A check returns None where the text is good, else what is wrong with it, as those of `kernel.syntax` do.
"""

from __future__ import annotations

import ipaddress
import re

from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.problem import Rule
from kueue_admission.kernel.syntax import LABEL_1035, Check, in_form, strange_character

NO_PROJECT = Rule(
    "KF517",
    as_published="warning",
    seen="`has no project in it`",
    why="The address of a Google service account lacks its project, mostly because a variable was empty.",
    remedy="Write `name@project.iam.gserviceaccount.com`",
    source="https://cloud.google.com/iam/docs/service-account-overview",
)

_REGION = re.compile(r"[a-z]+(-[a-z]+)+[0-9]+")
_ZONE = re.compile(r"([a-z]+(?:-[a-z]+)+[0-9]+)-(?:[a-z]|ai[0-9]+[a-z])")
_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][-a-z0-9]{4,28}[a-z0-9]")
_PROJECT_NUMBER = r"[1-9][0-9]{5,18}"
_SERVICE_ACCOUNT = re.compile(
    r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])@(?P<project>[a-z][-a-z0-9.]*)\.iam\.gserviceaccount\.com"
)
_NO_PROJECT = re.compile(r"[^@]+@\.?iam\.gserviceaccount\.com")
_LONGEST_ADDRESS = 254
_REPOSITORY = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/")
_REGIONAL = re.compile(r"(?:^|/)regions/([^/]+)/(?:snapshots|subnetworks)/")


def _of_form(pattern: str, wrong: str, fix: str, *, longest: int | None = None) -> Check:
    """A check of texts of one form: that of the whole pattern, with at most so many characters."""
    form = re.compile(pattern)

    def check(text: str) -> Fault | None:
        fits = (longest is None or len(text) <= longest) and form.fullmatch(text)
        return None if fits else Fault(wrong, fix)

    return check


gke_version = _of_form(
    r"1\.[0-9]{1,3}(\.[0-9]{1,4}(-gke\.[0-9]{1,9})?)?",
    "is not a version of GKE",
    "write one such as 1.34 or 1.34.1-gke.1829001",
)
"""A version of GKE: two numbers, three, or three and `-gke.N` (Versioning and upgrades)."""
member = _of_form(
    r"(group|user|serviceAccount):[^@\s:]+@[^@\s:]+\.[^@\s:]+",
    "is not a member",
    "write group:, user: or serviceAccount: and an address",
    longest=len("serviceAccount:") + _LONGEST_ADDRESS,
)
"""Somebody: `group:`, `user:` or `serviceAccount:` and an address, as in IAM."""
email_address = _of_form(
    r"[^@\s:]+@[^@\s:]+\.[^@\s:]+", "is not an address", "write one such as ada@example.com", longest=_LONGEST_ADDRESS
)
"""The address of a user or group."""
iap_audience = _of_form(
    r"/projects/[1-9][0-9]{5,18}/global/backendServices/[0-9]{1,20}",
    "is not the audience of a backend service",
    "write /projects/NUMBER/global/backendServices/ID",
)
"""For whom IAP signs: a backend service of a global load balancer, as GKE's ingress makes one.

Source: https://cloud.google.com/iap/docs/signed-headers-howto.
"""
iam_role = _of_form(
    r"(roles|projects/[^/]+/roles|organizations/[0-9]+/roles)/[A-Za-z][A-Za-z0-9_.]*",
    "is not an IAM role",
    "write one such as roles/storage.objectViewer",
)
"""An IAM role: `roles/...`, or a custom role of a project or an organization."""
api = _of_form(
    r"[a-z][-a-z0-9]*\.googleapis\.com", "is not the name of an API", "write one such as container.googleapis.com"
)
"""Name of an API of Google Cloud (Service Usage)."""
kms_key = _of_form(
    r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+",
    "is not the name of a key of Cloud KMS",
    "write projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY",
)
"""Resource name of a key of Cloud KMS."""
gcp_label_key = _of_form(
    r"[a-z][-_a-z0-9]{0,62}",
    "is not a valid label key of Google Cloud",
    "use up to 63 lower-case letters, digits, '-' and '_', a letter first",
)
"""Key of a label on a Google Cloud resource (Resource Manager, Requirements for labels)."""
gcp_label_value = _of_form(
    r"[-_a-z0-9]{0,63}",
    "is not a valid label value of Google Cloud",
    "use at most 63 lower-case letters, digits, '-' and '_'",
)
"""Value of a label on a Google Cloud resource."""
project_number = _of_form(_PROJECT_NUMBER, "is not the number of a project", "write 6 to 19 digits")
"""The number of a project, not its id."""


def ipv4_range(text: str) -> Fault | None:
    """An IPv4 range of a subnet: /29 or larger (https://cloud.google.com/vpc/docs/subnets#ip-ranges)."""
    return _range(text, "10.150.0.0/20", 29, "a subnet")


def secondary_range(text: str) -> Fault | None:
    """An IPv4 range for pods or Services: /28 or larger (GKE, Creating a VPC-native cluster)."""
    return _range(text, "10.4.0.0/14", 28, "pods or Services")


def address_range(text: str) -> Fault | None:
    """Any IPv4 range, single addresses as /32 (Terraform's Google provider needs the prefix length)."""
    return _range(text, "203.0.113.0/24") or (
        None if "/" in text else Fault("has no prefix length", f"write {text}/32")
    )


def _range(text: str, example: str, longest: int = 32, purpose: str = "") -> Fault | None:
    """An IPv4 range whose prefix is not longer than `longest` bits."""
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as wrong:
        return Fault(f"is not an IPv4 range ({wrong})", f"write one such as {example}")
    return None if network.prefixlen <= longest else Fault(f"is too small for {purpose}", f"use /{longest} or larger")


def region(text: str) -> Fault | None:
    """A region of Google Cloud, such as europe-west4."""
    if _REGION.fullmatch(text):
        return None
    if _ZONE.fullmatch(text):
        return Fault("is a zone, not a region", f"write {text.rpartition('-')[0]}")
    return Fault(f"is not a region of Google Cloud{_strange(text)}", "write one such as europe-west4")


def zone(text: str) -> Fault | None:
    """A zone of Google Cloud, such as europe-west4-a or us-central1-ai1a."""
    if _ZONE.fullmatch(text):
        return None
    # What is meant has a dash at another place, as names of AWS have.
    meant = re.fullmatch(r"([a-z]+-[a-z]+)-?(\d+)-?([a-z])", text.lower())
    fix = "did you mean {}{}-{}?".format(*meant.groups()) if meant else "write one such as europe-west4-a"
    return Fault(f"is not a zone of Google Cloud{_strange(text)}", fix)


def _strange(text: str) -> str:
    strange = strange_character(text)
    return strange and f", as it has the character {strange}"


def gke_cluster_name(text: str) -> Fault | None:
    """Name of a GKE cluster: at most 40 characters, a letter first.

    Source: container.googleapis.com v1 Cluster.name.
    """
    return in_form(
        text,
        LABEL_1035,
        40,
        "use lower-case letters, digits and hyphens, with a letter at the start and no hyphen at the end",
    )


def gce_name(text: str) -> Fault | None:
    """Name of a resource of Compute Engine: an RFC 1035 label (Compute Engine, Naming resources)."""
    return in_form(text, LABEL_1035, 63, "use lower-case letters, digits and hyphens, with a letter at the start")


def project_id(text: str) -> Fault | None:
    """Id of a project: 6 to 30 lower-case letters, digits and hyphens (Resource Manager, Creating projects)."""
    if _PROJECT.fullmatch(text):
        return None
    if text.isdigit():
        return Fault("is a project number", "write the project id")
    return Fault(
        "is not a valid project ID", "write 6 to 30 lower-case letters, digits and hyphens, with a letter at the start"
    )


def project(text: str) -> Fault | None:
    """Number or id of a project."""
    if re.fullmatch(_PROJECT_NUMBER, text):
        return None
    return Fault("is not a valid project number", "write 6 to 19 digits") if text.isdigit() else project_id(text)


def google_service_account_or_no_project(text: str) -> Fault | None:
    """The same, or one without the project."""
    return None if _NO_PROJECT.fullmatch(text) else google_service_account(text)


def google_service_account(text: str) -> Fault | None:
    """Address of a Google service account: `name@project.iam.gserviceaccount.com`, the project being there."""
    if _SERVICE_ACCOUNT.fullmatch(text):
        return None
    if _NO_PROJECT.fullmatch(text):
        return Fault("has no project in it", "write name@project.iam.gserviceaccount.com", NO_PROJECT)
    if text.endswith(("@developer.gserviceaccount.com", "@appspot.gserviceaccount.com")):
        return Fault("is a default service account, which may do almost anything", "use one made for the team")
    form = "write name@project.iam.gserviceaccount.com, with a name of 6 to 30 characters"
    return Fault("is not the address of a Google service account", form)


def ip_address(text: str) -> Fault | None:
    """An IPv4 address."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return Fault("is not an IPv4 address", "write one such as 10.0.0.2")
    return None


def repository_location(image: str) -> str | None:
    """Where the repository of an image is, by its name; None where that does not say.

    Source: https://cloud.google.com/artifact-registry/docs/repositories/repo-locations.
    """
    match = _REPOSITORY.match(image)
    return match[1] if match else None


def region_in_link(link: str) -> str | None:
    """The region of a snapshot or a subnet, by its link or whole name; None of a global snapshot, whose name does not
    say where it is stored, and of a short name.

    Source: https://cloud.google.com/compute/docs/disks/snapshots (storage location).
    """
    match = _REGIONAL.search(link)
    return match[1] if match else None
