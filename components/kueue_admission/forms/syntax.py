"""The syntax of names, Kubernetes' and Google Cloud's, and of numbers that are texts.

A check returns None where the text is good, else what is wrong with it. The types of the models' fields say which name
has to follow which syntax.

Source: k8s.io/apimachinery pkg/api/validate/content and pkg/util/validation; Google Cloud's as named on each function.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

from kueue_admission.forms.form_rules import NO_PROJECT, Fault

LONGEST_JOB_NAME = 63
"""Characters of the name of a Job: it is the value of a label."""
Check = Callable[[str], Fault | None]
"""Says what is wrong with a text, or nothing."""

_WHOLE_NUMBER = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_KIND = re.compile(r"[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?")
_GKE_VERSION = re.compile(r"1\.[0-9]{1,3}(\.[0-9]{1,4}(-gke\.[0-9]{1,9})?)?")
_REGION = re.compile(r"[a-z]+(-[a-z]+)+[0-9]+")
_ZONE = re.compile(r"([a-z]+(?:-[a-z]+)+[0-9]+)-(?:[a-z]|ai[0-9]+[a-z])")
_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][-a-z0-9]{4,28}[a-z0-9]")
_PROJECT_NUMBER = re.compile(r"[1-9][0-9]{5,18}")
_SERVICE_ACCOUNT = re.compile(
    r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])@(?P<project>[a-z][-a-z0-9.]*)\.iam\.gserviceaccount\.com"
)
_NO_PROJECT = re.compile(r"[^@]+@\.?iam\.gserviceaccount\.com")
_IMAGE_REPOSITORY = re.compile(r"[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+")
_MEMBER = re.compile(r"(group|user|serviceAccount):[^@\s:]+@[^@\s:]+\.[^@\s:]+")
_LONGEST_MEMBER = len("serviceAccount:") + 254
_ROLE = re.compile(r"(roles|projects/[^/]+/roles|organizations/[0-9]+/roles)/[A-Za-z][A-Za-z0-9_.]*")
_KMS_KEY = re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+")
_GCP_LABEL_KEY = re.compile(r"[a-z][-_a-z0-9]{0,62}")
_GCP_LABEL_VALUE = re.compile(r"[-_a-z0-9]{0,63}")


def whole_number(text: object) -> int | None:
    """The number that a text of up to 18 digits is, which fits into 64 bits; None for anything else.

    `int` alone refuses thousands of digits, and digits such as ² of which `str.isdigit` is true.
    """
    return int(text) if isinstance(text, str) and _WHOLE_NUMBER.fullmatch(text) else None


def number(text: object) -> float | None:
    """The number that a text is, infinite where it is too large; None for anything else.

    `float` alone also takes `nan`, `1_0` and digits of other scripts.
    """
    return float(text) if isinstance(text, str) and _NUMBER.fullmatch(text) else None


def dns_label(text: str) -> Fault | None:
    """RFC 1123 label: names of namespaces, and of what becomes part of a host name."""
    return _name(text, _LABEL, 63, "use lower-case letters, digits and hyphens, with a letter or digit at both ends")


def dns_subdomain(text: str) -> Fault | None:
    """RFC 1123 subdomain: names of most objects."""
    return _subdomain(text, 253)


def label_key(text: str) -> Fault | None:
    """Label key, resource name: `[prefix/]name` (content.IsLabelKey)."""
    prefix, slash, name = text.rpartition("/")
    if slash:
        if not prefix:
            return Fault("has nothing before the slash", "remove the slash or put a domain before it")
        if fault := dns_subdomain(prefix):
            return Fault(f"has a prefix that {fault.wrong}", fault.fix)
    if not name:
        return (
            Fault("is empty", "write a name")
            if not text
            else Fault("has nothing after the slash", "write a name there")
        )
    return _name_part(name)


def label_value(text: str) -> Fault | None:
    """Label value (content.IsLabelValue)."""
    return _name_part(text) if text else None


def _name_part(text: str) -> Fault | None:
    return _name(text, _NAME_PART, 63, "use letters, digits, '-', '_' and '.', with a letter or digit at both ends")


def admission_check_name(text: str) -> Fault | None:
    """Name by which a queue refers to an AdmissionCheck: 1 to 316 characters (AdmissionCheckReference)."""
    if not text:
        return Fault("is empty", "write a name")
    return None if len(text) <= 316 else Fault(f"is {len(text)} characters long", "use at most 316")


def kind(text: str) -> Fault | None:
    """Kind of an object (admissioncheck_types.go, AdmissionCheckParametersReference)."""
    return _name(text, _KIND, 63, "use letters, digits and hyphens, with a letter at the start")


def version(text: str) -> Fault | None:
    """Version of a chart: three numbers, without a leading v, with an optional pre-release."""
    if _VERSION.fullmatch(text):
        return None
    if _VERSION.fullmatch(text.removeprefix("v")):
        return Fault("begins with a v", f"write {text.removeprefix('v')}")
    return Fault("is not a valid version", "write three numbers, such as 0.19.2")


def gke_version(text: str) -> Fault | None:
    """A version of GKE: two numbers, three, or three and `-gke.N` (Versioning and upgrades)."""
    if _GKE_VERSION.fullmatch(text):
        return None
    return Fault("is not a version of GKE", "write one such as 1.34 or 1.34.1-gke.1829001")


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
    return Fault("is not a region of Google Cloud", "write one such as europe-west4")


def job_name(text: str) -> Fault | None:
    """Name of a Job or JobSet: a DNS subdomain of at most 63 characters, since it is a label of its pods too.

    Source: kubernetes@v1.36 pkg/apis/batch/validation (ValidateJob), apis/batch/v1 (LabelJobName).
    """
    return _subdomain(text, LONGEST_JOB_NAME)


def zone(text: str) -> Fault | None:
    """A zone of Google Cloud, such as europe-west4-a or us-central1-ai1a."""
    return None if _ZONE.fullmatch(text) else Fault("is not a zone of Google Cloud", "write one such as europe-west4-a")


def gke_cluster_name(text: str) -> Fault | None:
    """Name of a GKE cluster: at most 40 characters, a letter first.

    Source: container.googleapis.com v1 Cluster.name.
    """
    return _name(
        text,
        _LABEL_1035,
        40,
        "use lower-case letters, digits and hyphens, with a letter at the start and no hyphen at the end",
    )


def gce_name(text: str) -> Fault | None:
    """Name of a resource of Compute Engine: an RFC 1035 label (Compute Engine, Naming resources)."""
    return _name(text, _LABEL_1035, 63, "use lower-case letters, digits and hyphens, with a letter at the start")


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
    if _PROJECT_NUMBER.fullmatch(text):
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
    return Fault("is not the address of a Google service account", "write name@project.iam.gserviceaccount.com")


def image_repository(text: str) -> Fault | None:
    """Registry and path of a container image. Source: https://github.com/distribution/reference."""
    name = text.rpartition("/")[2]
    if "@" in text or ":" in name:
        return Fault("has a tag or a digest", "write the repository alone")
    return (
        None
        if _IMAGE_REPOSITORY.fullmatch(text)
        else Fault("is not REGISTRY/PATH of an image", "write one such as us-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE")
    )


def chart(text: str) -> Fault | None:
    """Reference of a Helm chart, or the address of a repository of charts: it is a word of a command line."""
    if text and text.isprintable() and " " not in text:
        return None
    return Fault(
        "is not the reference of a Helm chart", "write oci:// and its address, its name, or a path without blanks"
    )


def member(text: str) -> Fault | None:
    """Somebody: `group:`, `user:` or `serviceAccount:` and an address, as in IAM."""
    if len(text) <= _LONGEST_MEMBER and _MEMBER.fullmatch(text):
        return None
    return Fault("is not a member", "write group:, user: or serviceAccount: and an address")


def iam_role(text: str) -> Fault | None:
    """An IAM role: `roles/...`, or a custom role of a project or an organization."""
    return (
        None if _ROLE.fullmatch(text) else Fault("is not an IAM role", "write one such as roles/storage.objectViewer")
    )


def kms_key(text: str) -> Fault | None:
    """Resource name of a key of Cloud KMS."""
    if _KMS_KEY.fullmatch(text):
        return None
    return Fault(
        "is not the name of a key of Cloud KMS",
        "write projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY",
    )


def gcp_label_key(text: str) -> Fault | None:
    """Key of a label on a Google Cloud resource (Resource Manager, Requirements for labels)."""
    if _GCP_LABEL_KEY.fullmatch(text):
        return None
    return Fault(
        "is not a valid label key of Google Cloud",
        "use up to 63 lower-case letters, digits, '-' and '_', a letter first",
    )


def gcp_label_value(text: str) -> Fault | None:
    """Value of a label on a Google Cloud resource."""
    if _GCP_LABEL_VALUE.fullmatch(text):
        return None
    return Fault("is not a valid label value of Google Cloud", "use at most 63 lower-case letters, digits, '-' and '_'")


def _subdomain(text: str, longest: int) -> Fault | None:
    fix = "use lower-case letters, digits, hyphens and dots, with a letter or digit at both ends"
    return _name(text, _SUBDOMAIN, longest, fix)


def _name(text: str, pattern: re.Pattern[str], longest: int, form: str) -> Fault | None:
    if not text:
        return Fault("is empty", "write a name")
    if len(text) > longest:
        return Fault(f"is {len(text)} characters long", f"use at most {longest}")
    return None if pattern.fullmatch(text) else Fault("has characters or a form that are not allowed", form)
