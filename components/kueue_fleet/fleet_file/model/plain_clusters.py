"""Clusters of any Kubernetes, on premises or in another cloud: how they are reached, and the nodes that they have.

The names of the connection are those of a kubeconfig. Source: client-go@v0.36.3 tools/clientcmd/api/v1/types.go.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import Field

from kueue_admission.api.quotas import unit_problems
from kueue_admission.api.resource_flavor import Taint
from kueue_admission.kernel.base import (
    Count,
    DnsLabel,
    DnsSubdomain,
    LabelKey,
    LabelValue,
    Number,
    RuledModel,
    SpecModel,
    Text,
    syntax_of,
)
from kueue_admission.kernel.form_rules import OUT_OF_RANGE, Fault
from kueue_admission.kernel.given import ListOf
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import Quantity, QuantityMapField
from kueue_fleet.fleet_file.model.addresses import CaCertificate

_URL: Final = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:[1-9][0-9]{0,4})?(/[A-Za-z0-9._~/-]*)?")
_PORTS: Final = {"http": 80, "https": 443}
_LAST_PORT: Final = 65535


def _server(text: str) -> Fault | None:
    """Kueue refuses a kubeconfig whose server is not verified, so there is TLS."""
    form = "write https:// and the host, such as https://k8s.example.com:6443"
    is_url = _is_url(text) and text.startswith("https:")
    return None if is_url else Fault("is not the address of an API server with TLS", form)


def _proxy(text: str) -> Fault | None:
    """Of http or https, which the fleet's own controller takes."""
    form = "write http:// or https://, the host and the port"
    return None if _is_url(text) else Fault("is not the URL of a proxy", form)


def _is_url(text: str) -> bool:
    url_match = _URL.fullmatch(text)
    return url_match is not None and int((url_match[3] or ":0")[1:]) <= _LAST_PORT


class KubernetesConnection(SpecModel):
    """How a cluster that is not of GKE is reached. The fleet makes what is in it, and not the cluster."""

    context: Annotated[Text, Field(min_length=1)] | None = None
    """Kubeconfig context for Pulumi; default: the name of the cluster, which commands use."""
    server: Annotated[Text, syntax_of(_server)] | None = None
    """Address of the API server for the manager, such as https://k8s.example.com:6443; workers need it."""
    certificate_authority_data: CaCertificate | None = None
    """Certificates of the server's authority, PEM in base64; default: the cluster's own authority."""
    tls_server_name: DnsSubdomain | None = None
    """Name in the server's certificate, where it is not the host of `server`."""
    proxy_url: Annotated[Text, syntax_of(_proxy)] | None = None
    """Proxy through which the manager reaches `server`; default: none."""

    @property
    def host(self) -> str:
        """The host of `server`; empty: the file has none."""
        url_match = _URL.fullmatch(self.server or "")
        return url_match[2] if url_match else ""

    @property
    def port(self) -> int | None:
        """To which the manager connects: the proxy's, else the server's; None: the file has neither."""
        url_match = _URL.fullmatch(self.proxy_url or self.server or "")
        return int(url_match[3][1:] if url_match[3] else _PORTS[url_match[1]]) if url_match else None


class ClusterNodes(RuledModel):
    """Nodes of one kind of a cluster that is not of GKE."""

    name: DnsLabel = Field(kw_only=False)
    """What messages call them."""
    count: Annotated[Count, Field(ge=1)]
    """How many there are."""
    labels: Mapping[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels of each, as far as flavors name them."""
    taints: ListOf[Taint] = ()
    """Taints of each."""
    allocatable: Annotated[QuantityMapField[Text], Field(min_length=1)]
    """What pods may request of each, as `kubectl describe node` shows it."""
    price_per_hour: Annotated[Number, Field(ge=0)] | None = None
    """Price of one, used or not, in USD; default: not known."""

    @where_read
    def _amounts(self) -> Iterator[Problem]:
        for resource, amount in self.allocatable.items():
            if "/" in resource and amount.decimal % 1:
                # Source: kubernetes@v1.36.3 pkg/apis/core/validation/validation.go (validateResourceQuantityValue).
                yield OUT_OF_RANGE.at(f"allocatable[{resource}]", f"{amount} is not whole", "write a whole number")
            if amount < Quantity(0):
                yield OUT_OF_RANGE.at(f"allocatable[{resource}]", f"{amount} is negative", "write 0 or more")
            yield from unit_problems(resource, amount, f"allocatable[{resource}]")

    def own_problems(self) -> Iterator[Problem]:
        """Amounts that nodes can have."""
        yield from self._amounts()
