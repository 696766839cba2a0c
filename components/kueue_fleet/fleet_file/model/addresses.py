"""Where images, charts and API servers are: what a text has to look like, and the types of fields that take one.

A check returns None where the text is good, else what is wrong with it, as those of `kernel.syntax` do.
"""

import base64
import re
from typing import Annotated

from kueue_admission.kernel.base import Text, syntax_of
from kueue_admission.kernel.form_rules import Fault

_IMAGE_REPOSITORY = re.compile(r"[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+")
_ENDPOINT = re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?")
_PEM = "-----BEGIN "


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


def endpoint(text: str) -> Fault | None:
    """Where an API server is, as kubeconfigs have it without the scheme: a host, and maybe a port."""
    if _ENDPOINT.fullmatch(text):
        return None
    return Fault("is not a host", "write the host alone, or host:port, without https://")


def ca_certificate(text: str) -> Fault | None:
    """Certificates in the way of kubeconfigs: PEM, in base64."""
    if _PEM in text:
        return Fault("is PEM itself", "give it in base64, as base64.b64encode makes it")
    try:
        is_certificate = base64.b64decode(text, validate=True).startswith(_PEM.encode())
    except ValueError:
        is_certificate = False
    return None if is_certificate else Fault("is not a certificate", "give PEM in base64, as kubeconfigs have it")


Chart = Annotated[Text, syntax_of(chart)]
"""Reference of a Helm chart: oci://, a repository's or a path."""
ImageRepository = Annotated[Text, syntax_of(image_repository)]
"""Repository of a container image, without tag or digest."""
Endpoint = Annotated[Text, syntax_of(endpoint)]
"""A host, or host:port."""
CaCertificate = Annotated[Text, syntax_of(ca_certificate)]
"""Certificates of an authority: PEM in base64."""
