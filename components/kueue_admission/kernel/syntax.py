"""The syntax of Kubernetes' names, and of numbers that are texts.

A check returns None where the text is good, else what is wrong with it. The types of the models' fields say which name
has to follow which syntax.

Source: k8s.io/apimachinery pkg/api/validate/content and pkg/util/validation. Google Cloud's names: `gke.google_syntax`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from kueue_admission.kernel.form_rules import Fault

Check = Callable[[str], Fault | None]
"""Says what is wrong with a text, or nothing."""

_WHOLE_NUMBER = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
"""A DNS label of RFC 1035: it begins with a letter."""
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_KIND = re.compile(r"[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?")


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
    return in_form(text, _LABEL, 63, "use lower-case letters, digits and hyphens, with a letter or digit at both ends")


def dns_subdomain(text: str) -> Fault | None:
    """RFC 1123 subdomain: names of most objects."""
    return subdomain(text, 253)


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
    return in_form(text, _NAME_PART, 63, "use letters, digits, '-', '_' and '.', with a letter or digit at both ends")


def admission_check_name(text: str) -> Fault | None:
    """Name by which a queue refers to an AdmissionCheck: 1 to 316 characters (AdmissionCheckReference)."""
    if not text:
        return Fault("is empty", "write a name")
    return None if len(text) <= 316 else Fault(f"is {len(text)} characters long", "use at most 316")


def kind(text: str) -> Fault | None:
    """Kind of an object (admissioncheck_types.go, AdmissionCheckParametersReference)."""
    return in_form(text, _KIND, 63, "use letters, digits and hyphens, with a letter at the start")


def version(text: str) -> Fault | None:
    """Version of a chart: three numbers, without a leading v, with an optional pre-release."""
    if _VERSION.fullmatch(text):
        return None
    if _VERSION.fullmatch(text.removeprefix("v")):
        return Fault("begins with a v", f"write {text.removeprefix('v')}")
    return Fault("is not a valid version", "write three numbers, such as 0.19.2")


def subdomain(text: str, longest: int) -> Fault | None:
    """RFC 1123 subdomain of at most so many characters."""
    fix = "use lower-case letters, digits, hyphens and dots, with a letter or digit at both ends"
    return in_form(text, _SUBDOMAIN, longest, fix)


def in_form(text: str, pattern: re.Pattern[str], longest: int, form: str) -> Fault | None:
    """A name that has the pattern and at most so many characters; `form` says what to write."""
    if not text:
        return Fault("is empty", "write a name")
    if len(text) > longest:
        return Fault(f"is {len(text)} characters long", f"use at most {longest}")
    if pattern.fullmatch(text):
        return None
    if strange := strange_character(text):
        return Fault(f"has the character {strange}, which is not allowed", form)
    return Fault("has characters or a form that are not allowed", form)


def strange_character(text: str) -> str:
    """The first character outside ASCII, by its code and name, since it may look like another; empty: there is none."""
    strange = next((character for character in text if not character.isascii()), "")
    return strange and f"U+{ord(strange):04X} ({unicodedata.name(strange, 'without a name').lower()})"
